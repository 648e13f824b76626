"""Names inside a task that become folders or services: steps, compose services, artifact paths."""

import re
import unicodedata

_NOT_PORTABLE = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[1-9¹²³])", re.IGNORECASE)
_SERVICE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_MAX_NAME_BYTES = 255


def check_step_name(name: str) -> str:
    """A step names one folder on every operating system. Raises ValueError otherwise."""
    if (
        not name.strip()
        or name in {".", ".."}
        or name.endswith((".", " "))
        or _NOT_PORTABLE.search(name)
        or _DEVICE.fullmatch(name.partition(".")[0].rstrip(" "))
    ):
        raise ValueError(f"{name!r} cannot be the name of a folder on every system")
    if len(name.encode()) > _MAX_NAME_BYTES:
        raise ValueError(f"the name of a step has at most {_MAX_NAME_BYTES} bytes")
    return name


def check_distinct(names: list[str]) -> None:
    """Raises ValueError when two names are one folder where case or Unicode form does not count."""
    seen: set[str] = set()
    for name in names:
        key = unicodedata.normalize("NFC", name).casefold()
        if key in seen:
            raise ValueError(f"{name!r} names a second step, apart from case and Unicode form")
        seen.add(key)


def check_service(name: str) -> str:
    """A compose service, white space around it removed. Raises ValueError."""
    stripped = name.strip()
    if not _SERVICE.fullmatch(stripped):
        raise ValueError(f"{name!r} is no name of a compose service")
    return stripped


def check_artifact_source(source: str) -> str:
    """A container path that also decides where the artifact lands. Raises ValueError when it climbs."""
    if ".." in source.split("/"):
        raise ValueError(f"{source!r} must not contain '..'")
    if "\0" in source:
        raise ValueError("an artifact path must not hold a NUL character")
    return source


def check_artifact_destination(destination: str) -> str:
    """A path inside the trial's artifacts folder. Raises ValueError when it could leave it."""
    parts = [part for part in destination.split("/") if part not in {"", "."}]
    if "\\" in destination or "\0" in destination:
        raise ValueError(f"{destination!r} must use '/' between folders")
    if destination.startswith("/"):
        raise ValueError(f"{destination!r} must be relative")
    if not parts or ".." in parts:
        raise ValueError(f"{destination!r} must name a file or folder inside the artifacts folder")
    if parts == ["manifest.json"]:
        raise ValueError("'manifest.json' is reserved for the list of collected artifacts")
    return destination


def is_absolute_in_container(path: str) -> bool:
    """True for a POSIX-absolute path and for one with a drive letter."""
    return path.startswith("/") or bool(_DRIVE.match(path))
