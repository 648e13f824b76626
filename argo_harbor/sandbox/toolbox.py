"""The ground of image sandboxes: nothing of this machine but a few programs of ours, out of the way.

An image may hold any system, or hardly one. What starts, enters and empties its sandboxes (a shell, setpriv,
setsid, tar, mkdir) comes from this machine, with its libraries and their loader, so that it runs above any
C library or none. It is shown read-only below `/dev`, where no program looks for its data.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, get_args, override

from argo_harbor.errors import PlatformError
from argo_harbor.sandbox.ground import Ground, Program, Tree
from argo_harbor.sandbox.host import CODE, find_tools, reachable_bwrap
from argo_harbor.sandbox.locks import exclusive
from argo_harbor.sandbox.scratch import remove_scratch

INSIDE: Final = "/dev/.argo-harbor"
_LOADER: Final = "loader"
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh", "/usr/bin/sh")
_LIBRARY = re.compile(r"^\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_SOURCES: Mapping[str, tuple[str, ...]] = {"sh": ("bash", "sh")}
"""A first process must collect orphans while it waits, which bash does and dash does not."""
_PRELOAD, _NO_PRELOAD = b"/etc/ld.so.preload", b"/proc/self/preload"
"""The list of libraries that a loader adds to every program, and a file of that length that never exists: a
task may write the former, and its library would run in our programs before they give up their rights."""
_SECONDS = 10.0


class ImageGround(Ground):
    """What sandboxes of all images of a run have in common."""

    toolbox: str
    """Folder of the host with the programs that are shown inside."""
    static: tuple[str, ...] = ()
    """Programs that need no loader."""

    @override
    def trees(self, layers: str) -> tuple[Tree, ...]:
        return (Tree("root", "/", (f"{layers}/root",)),)

    @override
    def inside(self, program: Program) -> list[str]:
        path = f"{INSIDE}/{program}"
        return [path] if program in self.static else [f"{INSIDE}/{_LOADER}", "--library-path", INSIDE, path]

    @property
    @override
    def shells(self) -> tuple[str, ...]:
        return _SHELLS

    @property
    @override
    def shown(self) -> tuple[tuple[Path, str], ...]:
        return ((Path(self.toolbox), INSIDE),)


def prepare_image_ground(scratch: Path) -> ImageGround:
    """The ground of the run whose scratch folder this is, prepared by the first caller of any process.

    Raises: PlatformError `sandbox_unavailable`; OSError when the scratch folder cannot be written.
    """
    record = scratch / "images.json"
    with exclusive(scratch / "images.lock"):
        if record.exists():
            return ImageGround.from_json(record.read_bytes())
        folder = scratch / "images"
        remove_scratch(folder)
        folder.mkdir()
        folder.chmod(0o755)
        tools = find_tools()
        static = fill_toolbox(folder / "toolbox")
        ground = ImageGround(
            bwrap=str(reachable_bwrap(tools.bwrap, folder / "tools")),
            nsenter=str(tools.nsenter),
            setpriv=str(tools.setpriv),
            setsid=str(tools.setsid),
            toolbox=str(folder / "toolbox"),
            static=static,
        )
        record.write_bytes(ground.canonical())
    return ground


def fill_toolbox(folder: Path) -> tuple[str, ...]:
    """Copy our programs, their libraries and the loader into the new folder. Returns the static ones.

    Raises: PlatformError `sandbox_unavailable` for a program that this machine lacks.
    """
    folder.mkdir()
    folder.chmod(0o755)
    static = []
    for program in get_args(Program.__value__):
        names = _SOURCES.get(program, (program,))
        found = (shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin") for name in names)
        source = next((path for path in found if path is not None), None)
        if source is None:
            raise PlatformError(CODE, f"sandboxes of images need the program {program}", f"install {program}")
        _copy(Path(source), folder / program)
        libraries = _libraries(source)
        if not libraries:
            static.append(program)
        for name, path in libraries.items():
            if not (folder / name).exists():
                _copy(path, folder / name)
    return tuple(static)


def _libraries(program: str) -> dict[str, Path]:
    """Libraries of a program by the name under which they are asked for, with its loader; empty for a static
    one."""
    try:
        listed = subprocess.run(
            ["ldd", program],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={"PATH": "/usr/bin:/usr/sbin:/bin:/sbin", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlatformError(
            CODE, f"the libraries of {program} are unknown: {error}", "install ldd, or choose --base preview"
        ) from error
    found = {}
    for match in _LIBRARY.finditer(listed.stdout):
        # Without an arrow it is the loader itself; with one it may be the loader under the C library's name.
        name, path = match["name"], Path(match["path"])
        found[_LOADER if name is None else name] = path
    return found


def _copy(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes().replace(_PRELOAD, _NO_PRELOAD))
    target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
