"""What a Python process of ours needs of an environment to start; nothing else is handed on."""

from __future__ import annotations

from collections.abc import Mapping

_NAMES = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PREFIXES = ("PYTHON", "LC_")


def interpreter_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that a Python process needs, so that a caller's credentials end here."""
    return {name: value for name, value in environ.items() if name in _NAMES or name.startswith(_PREFIXES)}
