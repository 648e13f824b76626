"""What COPY finds in a build context, and that nothing outside of it is ever found."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from pathlib import Path

import pytest

from argo_harbor.sandbox.context import Context, ContextError, check_context, is_archive
from argo_harbor.sandbox.dockerfile import Copy, plan_build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "environment"
    for name in ("a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt", ".hidden", "node/x", "run.sh"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "run.sh").chmod(0o755)
    (root / "inner").symlink_to("sub/c.txt")
    (tmp_path / "secret").write_text("secret")
    (root / "escape").symlink_to("../secret")
    (root / "absolute").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    return root


def packed(context: Context, *, target: str, sources=(), inline=(), mode=-1, is_folder=False, unpacks=False):
    """Where a COPY goes, and the archive's members as {name: (mode, content)}."""
    out = io.BytesIO()
    step = Copy("line 1", tuple(sources), tuple(inline), target, mode, unpacks)
    into = context.pack(step, out, target_is_folder=is_folder)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        members = {}
        for member in tar:
            content = (
                tar.extractfile(member).read().decode(errors="replace") if member.isreg() else member.linkname
            )
            members[member.name] = (member.mode, content)
    return into, members


def names(context: Context, pattern: str) -> list[str]:
    return [source.name for source in context.sources(pattern)]


def test_patterns(folder):
    context = Context(folder)
    assert names(context, "*.txt") == ["a.txt", "b.txt"]
    assert names(context, "/a.txt") == names(context, "./sub/../a.txt") == ["a.txt"]
    assert names(context, "sub/*") == ["sub/c.txt", "sub/deep"]
    assert names(context, "[ab].tx?") == ["a.txt", "b.txt"]
    assert names(context, ".") == ["."]


@pytest.mark.parametrize(
    "pattern", ["../secret", "sub/../../secret", "escape", "absolute/passwd", "abs*", "../*"]
)
def test_no_source_leads_out(folder, pattern):
    with pytest.raises(ContextError, match="leads out"):
        Context(folder).sources(pattern)


@pytest.mark.parametrize("pattern", ["missing", "*.nothing", "loop", "a.txt/x"])
def test_a_source_must_exist(folder, pattern):
    with pytest.raises(ContextError, match="nothing"):
        Context(folder).sources(pattern)


def test_a_pipe_is_no_source(folder):
    import os

    os.mkfifo(folder / "pipe")
    with pytest.raises(ContextError, match="neither"):
        Context(folder).sources("pipe")


def test_one_file_is_renamed_or_goes_into_a_folder(folder):
    context = Context(folder)
    assert packed(context, sources=["run.sh"], target="/x/go") == ("/x", {"go": (0o755, "run.sh")})
    assert packed(context, sources=["run.sh"], target="/x/")[1].keys() == {"run.sh"}
    assert packed(context, sources=["run.sh"], target="/x", is_folder=True)[0] == "/x"
    assert packed(context, sources=["inner"], target="/x/")[1] == {"inner": (0o644, "sub/c.txt")}
    assert packed(context, sources=["*.txt"], target="/x")[1].keys() == {"a.txt", "b.txt"}


def test_of_a_folder_the_content_is_copied_links_as_links(folder):
    into, members = packed(Context(folder), sources=["."], target="/app")
    assert into == "/app"
    assert members["sub/deep/d.txt"] == (0o644, "sub/deep/d.txt")
    assert members["escape"][1] == "../secret"
    assert "secret" not in {content for _, content in members.values()}
    into, members = packed(Context(folder), sources=["sub", "a.txt"], target="/app/", mode=0o700)
    assert members == {
        "c.txt": (0o700, "sub/c.txt"),
        "deep": (0o700, ""),
        "deep/d.txt": (0o700, "sub/deep/d.txt"),
        "a.txt": (0o700, "a.txt"),
    }


def test_here_documents_become_files(folder):
    context = Context(folder)
    assert packed(context, inline=[("EOF", "x\n")], target="/etc/conf") == ("/etc", {"conf": (0o644, "x\n")})
    into, members = packed(context, inline=[("a", "1"), ("b", "2")], target="/d/", mode=0o600)
    assert (into, members) == ("/d/", {"a": (0o600, "1"), "b": (0o600, "2")})


def test_ignored_files_stay_out(folder):
    (folder / ".dockerignore").write_text("# comment\n\nnode\n/sub/deep/../deep\n**/*.sh\n.hidden\n.\n")
    context = Context(folder)
    members = packed(context, sources=["."], target="/app")[1]
    assert not {"node", "node/x", "sub/deep", "run.sh", ".hidden"} & members.keys()
    assert {"a.txt", "sub/c.txt"} <= members.keys()
    with pytest.raises(ContextError):
        context.sources("run.sh")
    assert packed(context, sources=["sub"], target="/app")[1].keys() == {"c.txt"}


def test_patterns_of_ignored_files_start_at_the_context_and_know_exceptions(folder):
    (folder / ".dockerignore").write_text("c.txt\nsub/*\n!sub/deep\n!sub/c.txt\nnode\n! node/x\n")
    members = packed(Context(folder), sources=["."], target="/app")[1]
    assert {"sub/c.txt", "sub/deep/d.txt", "node/x"} <= members.keys()


def test_an_ignore_file_that_cannot_be_read(folder):
    (folder / ".dockerignore").write_bytes(b"\xff\xfe")
    with pytest.raises(ContextError, match="dockerignore"):
        Context(folder)
    plan = plan_build("FROM x\nCOPY a.txt /\n", file="Dockerfile")
    assert [found.code for found in check_context(plan, folder, file="Dockerfile")] == ["invalid_task_config"]


def test_findings_before_a_build(folder):
    plan = plan_build(
        "FROM x\nRUN true\nCOPY a.txt missing /x/\nADD escape /x\n", file="environment/Dockerfile"
    )
    found = check_context(plan, folder, file="environment/Dockerfile")
    assert [(item.code, item.file) for item in found] == [
        ("invalid_task_config", "environment/Dockerfile")
    ] * 2
    assert "line 3" in found[0].message
    assert "line 4" in found[1].message


def test_archives_are_known_by_their_content(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(__file__, "x")
    plain = out.getvalue()
    for number, (data, expected) in enumerate(
        [
            (plain, True),
            (gzip.compress(plain), True),
            (bz2.compress(plain), True),
            (lzma.compress(plain), True),
            (gzip.compress(b"text"), False),
            (b"\x1f\x8bnonsense", False),
            (b"BZhnonsense", False),
            (b"\xfd7zXZ\0nonsense" * 9, False),
            (lzma.compress(b"x" * 512), False),
            (b"", False),
            (bytes(1024), False),
        ]
    ):
        path = tmp_path / str(number)
        path.write_bytes(data)
        assert is_archive(path) is expected, number


def test_an_added_archive_needs_a_folder(folder, tmp_path):
    with tarfile.open(folder / "t.tgz", "w:gz") as tar:
        tar.add(__file__, "x")
    context = Context(folder)
    assert packed(context, sources=["t.tgz"], target="/opt/t", unpacks=True)[0] == "/opt/t"
    assert context.archives(Copy("", ("t.tgz", "a.txt", "sub"), (), "/x/", unpacks=True)) == ["t.tgz"]
    assert context.archives(Copy("", ("t.tgz",), (), "/x/")) == []
