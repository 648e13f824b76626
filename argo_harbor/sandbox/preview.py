"""The preview base: this machine's own programs, and nothing of its data.

A task's image is not there on the local engine, so its sandbox shows the host's `/usr` (and what links to it)
as the lowest layer of an overlay, below a fresh root folder with a small `/etc`. Prepared once a run by the
engine, then loaded by every trial process of it.

Host folders belong to an id that does not exist inside, so nothing in them could be changed. A *skeleton*
layer on top of them holds the same folders, empty and owned by the sandbox's root: a build step can then
write to `/usr/local/lib`, replace a program or remove it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import override

from argo_harbor.sandbox.ground import Ground, Program, Tree
from argo_harbor.sandbox.host import find_tools, reachable_bwrap
from argo_harbor.sandbox.locks import exclusive
from argo_harbor.sandbox.scratch import give_away, make_owned_folder, remove_scratch, sandbox_id

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PREVIEW_ENV = {"PATH": DEFAULT_PATH, "HOME": "/root", "LANG": "C.UTF-8"}
"""What a command inside has when neither image nor caller sets anything."""

_HOST_TREES = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "alternatives",
    "ssl/certs",
    "nsswitch.conf",
    "localtime",
    "debian_version",
    "profile",
    "bash.bashrc",
)
_FOLDERS = {
    "app": 0o755,
    "dev": 0o755,
    "etc": 0o755,
    "home": 0o755,
    "logs": 0o777,
    "logs/agent": 0o777,
    "logs/artifacts": 0o777,
    "logs/verifier": 0o777,
    "media": 0o755,
    "mnt": 0o755,
    "opt": 0o755,
    "proc": 0o755,
    "root": 0o700,
    "run": 0o755,
    "run/lock": 0o1777,
    "srv": 0o755,
    "sys": 0o755,
    "tmp": 0o1777,
    "var": 0o755,
    "var/cache": 0o755,
    "var/lib": 0o755,
    "var/log": 0o755,
    "var/tmp": 0o1777,
}
_LINKS = {"var/run": "/run", "var/lock": "/run/lock"}
_PASSWD = """\
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUP = "root:x:0:\ndaemon:x:1:\nbin:x:2:\ntty:x:5:\nwww-data:x:33:\nusers:x:100:\nnogroup:x:65534:\n"
_HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\tsandbox\n"

_SKELETON_DEPTH = 3
"""Levels of folders below a host tree that can be written to: reaches `lib/python3/dist-packages`.
`usr/local` is counted from itself."""
_SHALLOW = ("share", "include", "src")
"""Of these only the folder itself: a thousand folders for data that no build changes in place."""


class Preview(Ground):
    """A prepared preview base on this machine."""

    folder: str
    """Holds `root`, the lowest layer of `/`, and `skeleton/<tree>`, one layer for each host tree."""
    host_trees: tuple[str, ...]
    """Top folders of the host that are shown, `usr` first."""
    links: dict[str, str]
    """Top names that are links on the host, such as `bin`, and where they point."""
    shell: str
    """`/bin/bash`, or `/bin/sh` on a host without it."""

    @override
    def trees(self, layers: str) -> tuple[Tree, ...]:
        def own(name: str) -> tuple[str, ...]:
            return (f"{layers}/{name}",) if layers else ()

        root = Tree("root", "/", (f"{self.folder}/root", *own("root")))
        rest = (
            Tree(name, f"/{name}", (f"/{name}", f"{self.folder}/skeleton/{name}", *own(name)))
            for name in self.host_trees
        )
        return (root, *rest)

    @override
    def inside(self, program: Program) -> list[str]:
        match program:
            case "sh":
                return [self.shell]
            case "setpriv":
                return [self.setpriv]
            case "setsid":
                return [self.setsid]
        return [program]

    @property
    @override
    def shells(self) -> tuple[str, ...]:
        return (self.shell,)


def prepare_preview(scratch: Path) -> Preview:
    """The preview of the run whose scratch folder this is, prepared by the first caller of any process.

    As an ordinary user it reads the metadata of all of `/usr` (a second or two): the kernel would let the
    sandbox read what this user may read, so what is closed to others is taken out by name.

    Raises: PlatformError `sandbox_unavailable`; OSError when the scratch folder cannot be written.
    """
    record = scratch / "preview.json"
    with exclusive(scratch / "preview.lock"):
        if record.exists():
            return Preview.from_json(record.read_bytes())
        remove_scratch(scratch / "preview")
        preview = _prepare(scratch / "preview")
        record.write_bytes(preview.canonical())
    return preview


def _prepare(folder: Path) -> Preview:
    tools = find_tools()
    folder.mkdir()
    folder.chmod(0o755)
    present = [name for name in _HOST_TREES if Path("/", name).exists()]
    links = {name: str(Path("/", name).readlink()) for name in present if Path("/", name).is_symlink()}
    trees = tuple(name for name in present if name not in links)
    _make_root(folder / "root", trees, links)
    make_owned_folder(folder / "skeleton", 0o755)
    for tree in trees:
        make_skeleton(Path("/", tree), folder / "skeleton" / tree)
    return Preview(
        folder=str(folder),
        host_trees=trees,
        links=links,
        shell="/bin/bash" if Path("/bin/bash").exists() else "/bin/sh",
        bwrap=str(reachable_bwrap(tools.bwrap, folder / "tools")),
        nsenter=str(tools.nsenter),
        setpriv=str(tools.setpriv),
        setsid=str(tools.setsid),
    )


def _make_root(root: Path, trees: tuple[str, ...], links: dict[str, str]) -> None:
    make_owned_folder(root, 0o755)
    for name, mode in _FOLDERS.items():
        make_owned_folder(root / name, mode)
    for tree in trees:
        make_owned_folder(root / tree, 0o755)
    for name, target in (links | _LINKS).items():
        (root / name).symlink_to(target)
        give_away(root / name)
    etc = root / "etc"
    make_owned_folder(etc / "ssl", 0o755)
    for name in _ETC:
        copy_readable(Path("/etc", name), etc / name)
    for name, text in (("passwd", _PASSWD), ("group", _GROUP), ("hosts", _HOSTS), ("hostname", "sandbox\n")):
        (etc / name).write_text(text)
        (etc / name).chmod(0o644)
        give_away(etc / name)


def copy_readable(source: Path, target: Path) -> None:
    """Copy what others may read of a host path, links as links; nothing happens for anything else."""
    try:
        found = source.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(found.st_mode) and found.st_mode & stat.S_IROTH:
        shutil.copyfile(source, target)
        target.chmod(stat.S_IMODE(found.st_mode) & 0o755 | 0o200)
    elif stat.S_ISDIR(found.st_mode) and found.st_mode & 0o005 == 0o005:
        make_owned_folder(target, 0o755)
        for entry in sorted(source.iterdir()):
            copy_readable(entry, target / entry.name)
    else:
        return
    give_away(target)


def make_skeleton(source: Path, target: Path) -> None:
    """The layer above a host tree: folders to write in, whiteouts for what others may not read."""
    make_owned_folder(target, 0o755)
    for relative in _writable_folders(source):
        make_owned_folder(target / relative, 0o755)
    for hidden in closed_paths(source):
        _hide(target, hidden)


def _writable_folders(source: Path) -> Iterator[Path]:
    """Relative paths, parents first; folders that are closed to others left out."""
    pending = [(Path(), 0)]
    while pending:
        relative, depth = pending.pop()
        if depth == _SKELETON_DEPTH:
            continue
        with os.scandir(source / relative) as entries:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        for entry in folders:
            if entry.stat(follow_symlinks=False).st_mode & 0o005 != 0o005:
                continue
            inner = relative / entry.name
            yield inner
            if str(inner) not in _SHALLOW:
                pending.append((inner, 0 if str(inner) == "local" else depth + 1))


def closed_paths(source: Path) -> Iterator[Path]:
    """What an ordinary caller may read in a host tree and others may not, relative, parents before children.

    Empty for root: its sandboxes run as an id that owns nothing and is in no group, so the kernel refuses
    them.
    """
    if sandbox_id() is not None:
        return
    mine = os.getuid()
    groups = {os.getgid(), *os.getgroups()}
    device = source.stat().st_dev
    # Some hundred thousand entries: strings, and no look at links, halve the time.
    pending = [str(source)]
    while pending:
        with suppress(PermissionError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    continue
                found = entry.stat(follow_symlinks=False)
                folder = entry.is_dir(follow_symlinks=False)
                needed = 0o005 if folder else 0o004
                if found.st_mode & needed != needed:
                    if found.st_uid == mine or found.st_gid in groups:
                        yield Path(entry.path).relative_to(source)
                elif folder and found.st_dev == device:
                    pending.append(entry.path)


def _hide(layer: Path, relative: Path) -> None:
    """Put an overlay whiteout (a 0:0 character device, which anybody may make) into a layer."""
    for folder in reversed(relative.parents):
        with suppress(FileExistsError):
            make_owned_folder(layer / folder, 0o755)
    os.mknod(layer / relative, stat.S_IFCHR | 0o600, os.makedev(0, 0))
