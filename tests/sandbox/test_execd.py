"""The sandbox of a pod over an execd that answers oddly; the real program is in the contract tests."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from argo_harbor.sandbox import execd, execd_events, execd_files
from argo_harbor.sandbox.base import (
    OUTPUT_LIMIT,
    ExecResult,
    SandboxDied,
    SandboxError,
    SandboxRestarted,
    SandboxStartFailed,
    TransferFailed,
    TransferRefused,
)
from argo_harbor.sandbox.execd import ExecdSandbox, UnknownUser
from argo_harbor.sandbox.execd_client import ExecdClient
from tests.sandbox.odd_server import OddServer, Request, document, odd_server, reply, stream

INIT = {"type": "init", "text": "c1"}
DONE = {"type": "execution_complete", "execution_time": 1}
PASSWD = (
    b"root:x:0:0::/root:/bin/sh\nann:x:1000:1001:Ann:/home/ann:/bin/sh\nbad line\nneg:x:-1:0::/:/bin/sh\n"
)


def stat(started: int = 777, name: str = "execd", oom: str = "0") -> str:
    fields = ["S", *["0"] * 18, str(started), *["0"] * 20]
    return f"1 ({name}) {' '.join(fields)}|{oom}\n"


def said(text: str, status: int = 0) -> bytes:
    ending = DONE if status == 0 else {"type": "error", "error": {"evalue": str(status), "traceback": []}}
    return stream([INIT, {"type": "stdout", "text": text}, ending])


class Box:
    """A started sandbox and the server behind it."""

    def __init__(self, server: OddServer) -> None:
        self.server = server
        self.where = stat()
        self.tar = "gnu"
        self.scripts: list[str] = []
        self.answers: dict[str, bytes] = {}
        """What commands that contain the key get."""
        server.on("GET", "/ping", reply(200))
        server.on("POST", "/command", self._command)
        server.on("GET", "/files/download", self._download)
        server.on("DELETE", "/files", reply(200))
        self.files: dict[str, bytes] = {"/etc/passwd": PASSWD}
        self.sandbox = ExecdSandbox(ExecdClient("127.0.0.1", server.port, "token"), scratch="/scratch")

    async def _command(self, request: Request, writer: asyncio.StreamWriter) -> None:
        command = str(request.json()["command"])
        self.scripts.append(command)
        for key, answer in self.answers.items():
            if key in command:
                writer.write(answer)
                return
        if "command -v tar" in command:
            writer.write(said(self.where + self.tar + "\n"))
        elif "/proc/1/stat" in command:
            writer.write(said(self.where))
        else:
            writer.write(said("out"))

    async def _download(self, request: Request, writer: asyncio.StreamWriter) -> None:
        path = request.query["path"][0]
        found = self.files.get(path, self.files.get("*") if path.startswith("/scratch/") else None)
        writer.write(reply(404) if found is None else reply(200, found, "application/octet-stream"))


def run[T](work: Callable[[Box], Coroutine[Any, Any, T]], *, tar: str = "gnu") -> T:
    async def whole() -> T:
        async with odd_server() as server:
            box = Box(server)
            box.tar = tar
            await box.sandbox.start()
            return await work(box)

    return asyncio.run(whole())


def ended(answer: bytes) -> ExecResult:
    async def work(box: Box) -> ExecResult:
        box.answers["odd"] = answer
        return await box.sandbox.exec("odd")

    return run(work)


@pytest.mark.parametrize("prefix", ["", "data: ", "event: message\ndata:"])
def test_both_framings_are_understood(prefix: str) -> None:
    events = [
        INIT,
        {"type": "stdout", "text": "a\n"},
        {"type": "ping"},
        {"type": "stderr", "text": "b"},
        DONE,
    ]
    assert ended(stream(events, prefix=prefix)) == ExecResult("a\n", "b", 0)


@pytest.mark.parametrize(
    ("evalue", "status", "stderr"),
    [("3", 3, ""), (4, 4, ""), ("-1", 137, ""), ("fork: no memory", 126, "fork: no memory")],
)
def test_how_a_command_ended(evalue: object, status: int, stderr: str) -> None:
    done = ended(stream([INIT, {"type": "error", "error": {"ename": "x", "evalue": evalue}}]))
    assert (done.return_code, done.stderr, done.timed_out) == (status, stderr, False)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (stream([INIT, {"type": "stdout", "text": "half"}]), "events ended before"),
        (stream([INIT])[:-5], "cut short"),
        (reply(200, b"{nope\n", "text/event-stream"), "no JSON"),
        (reply(200, b"[1]\n", "text/event-stream"), "no object"),
        (reply(200, b"", "text/event-stream"), "events ended before"),
        (document({"code": "RUNTIME_ERROR", "message": "no fork"}), "no fork"),
        (document({"error": "Unauthorized"}, 401), "Unauthorized"),
        (reply(500, b"\xff\xfe", "text/plain"), "500"),
        (reply(404), "no reason given"),
    ],
)
def test_a_command_that_does_not_say_how_it_ended_means_a_dead_sandbox(answer: bytes, reason: str) -> None:
    with pytest.raises(SandboxDied, match=reason):
        ended(answer)


def test_a_command_that_cannot_be_started_is_the_callers_fault() -> None:
    done = ended(document({"code": "INVALID_REQUEST_BODY", "message": "no such folder"}, 400))
    assert done == ExecResult("", "no such folder", 126)


def test_of_endless_output_the_end_is_kept() -> None:
    lines = [{"type": "stdout", "text": "x" * 65536}] * 40
    done = ended(stream([INIT, *lines, {"type": "stdout", "text": "the end"}, DONE]))
    assert done.stdout.endswith("xthe end")
    assert done.stdout.startswith(f"[{40 * 65536 + 7 - OUTPUT_LIMIT} bytes of output dropped]")


def test_an_event_may_only_be_so_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execd_events, "MAX_EVENT", 1000)
    with pytest.raises(SandboxDied, match="larger than 1000"):
        ended(stream([INIT, {"type": "stdout", "text": "x" * 200_000}, DONE]))


def test_what_a_command_gets() -> None:
    async def work(box: Box) -> list[dict[str, object]]:
        await box.sandbox.exec("one")
        await box.sandbox.exec("two", cwd="/srv", env={"A": "b", "HOME": "/own"}, user="ann")
        await box.sandbox.exec("three", user="4242")
        with pytest.raises(UnknownUser, match="nobody-here"):
            await box.sandbox.exec("four", user="nobody-here")
        return [request.json() for request in box.server.calls("POST", "/command")[-3:]]

    first, second, third = run(work)
    own = {"TMPDIR": "/tmp", "EXECD_ACCESS_TOKEN": ""}
    assert first == {"command": "one", "envs": own}
    assert second == {
        "command": "two",
        "cwd": "/srv",
        "uid": 1000,
        "gid": 1001,
        "envs": own | {"HOME": "/own", "USER": "ann", "A": "b"},
    }
    assert (third["uid"], third["gid"], third["envs"]) == (4242, 0, own | {"HOME": "/"})


def test_without_a_passwd_only_numbers_are_users() -> None:
    async def work(box: Box) -> ExecResult:
        box.files.clear()
        with pytest.raises(UnknownUser):
            await box.sandbox.exec("one", user="ann")
        box.server.on("GET", "/files/download", reply(500))
        with pytest.raises(SandboxDied):
            await box.sandbox.exec("one", user=7)
        box.server.on("GET", "/files/download", b"")
        with pytest.raises(SandboxDied):
            await box.sandbox.exec("one", user=7)
        return await box.sandbox.exec("one", user=0)

    assert run(work).return_code == 0


class Endless:
    """A command that runs until it is interrupted."""

    def __init__(self, box: Box, *, obeys: bool = True, begins: bool = True) -> None:
        self.interrupted = asyncio.Event()
        self.began = asyncio.Event()
        self._obeys = obeys
        self._begins = begins
        box.server.on("POST", "/command", self._command)
        box.server.on("DELETE", "/command", self._interrupt)
        box.server.on("GET", "/command/status/c1", document({"running": not obeys}))

    async def _command(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if self._begins:
            head = stream([INIT, {"type": "stdout", "text": "begun"}]).removesuffix(b"0\r\n\r\n")
            writer.write(head)
            await writer.drain()
        self.began.set()
        await self.interrupted.wait()
        if self._obeys:
            text = json.dumps({"type": "error", "error": {"evalue": "-1"}}) + "\n\n"
            writer.write(f"{len(text):x}\r\n{text}\r\n0\r\n\r\n".encode())
        else:
            await asyncio.sleep(5)

    async def _interrupt(self, request: Request, writer: asyncio.StreamWriter) -> None:
        assert request.query == {"id": ["c1"]}
        self.interrupted.set()
        writer.write(reply(200))


def test_our_own_clock_interrupts_a_command() -> None:
    async def work(box: Box) -> ExecResult:
        Endless(box)
        return await box.sandbox.exec("sleep", timeout_sec=0.05)

    assert run(work) == ExecResult("begun", "", 137, timed_out=True)


@pytest.mark.parametrize("begins", [True, False])
def test_a_command_that_cannot_be_ended_means_a_dead_sandbox(
    begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execd, "END_SECONDS", 0.1)

    async def work(box: Box) -> ExecResult:
        Endless(box, obeys=False, begins=begins)
        return await box.sandbox.exec("sleep", timeout_sec=0.05)

    with pytest.raises(SandboxDied, match="cannot be ended"):
        run(work)


def test_a_command_that_ended_while_it_was_interrupted_has_ended() -> None:
    async def work(box: Box) -> ExecResult:
        endless = Endless(box)

        async def too_late(request: Request, writer: asyncio.StreamWriter) -> None:
            endless.interrupted.set()
            writer.write(document({"message": "not running"}, 500))

        box.server.on("DELETE", "/command", too_late)
        box.server.on("GET", "/command/status/c1", reply(404))
        return await box.sandbox.exec("sleep", timeout_sec=0.05)

    assert run(work).timed_out


def test_cancelling_the_call_ends_the_command() -> None:
    async def work(box: Box) -> bool:
        endless = Endless(box)
        running = asyncio.create_task(box.sandbox.exec("sleep"))
        await endless.began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return endless.interrupted.is_set()

    assert run(work)


def test_a_container_that_came_back_is_another_one() -> None:
    async def work(box: Box) -> None:
        await box.sandbox.same()
        box.where = stat(started=778)
        with pytest.raises(SandboxRestarted, match="came back empty"):
            await box.sandbox.same()

    run(work)


def test_what_the_kernel_ended_for_lack_of_memory_is_counted() -> None:
    async def work(box: Box) -> int:
        assert box.sandbox.oom_kills == 0
        box.where = stat(oom="3")
        await box.sandbox.same()
        return box.sandbox.oom_kills

    assert run(work) == 3


def test_an_execd_that_drops_line_ends_gets_them_back() -> None:
    async def work() -> str:
        async with odd_server() as server:
            box = Box(server)
            lines = [stat().strip(), "tar"]
            answer = stream([INIT, *({"type": "stdout", "text": line} for line in lines), DONE])
            box.answers["command -v tar"] = answer
            await box.sandbox.start()
            box.answers["two"] = stream([INIT, *({"type": "stdout", "text": text} for text in "ab"), DONE])
            return (await box.sandbox.exec("two")).stdout

    assert asyncio.run(work()) == "a\nb\n"


def test_a_sandbox_that_does_not_say_where_it_is_does_not_start() -> None:
    async def work() -> None:
        async with odd_server() as server:
            box = Box(server)
            box.where = "odd\n"
            with pytest.raises(SandboxStartFailed, match="does not say where it is"):
                await box.sandbox.start()
            await box.sandbox.stop()

    asyncio.run(work())


def test_a_refused_token_and_a_late_execd() -> None:
    async def work() -> int:
        async with odd_server() as server:
            box = Box(server)
            server.on("GET", "/ping", document({"error": "Unauthorized"}, 401))
            with pytest.raises(SandboxStartFailed, match="Unauthorized"):
                await box.sandbox.start()
            server.on("GET", "/ping", b"")
            starting = asyncio.create_task(box.sandbox.start())
            while len(server.calls("GET", "/ping")) < 3:
                await asyncio.sleep(0.01)
            server.on("GET", "/ping", reply(200))
            await starting
            await box.sandbox.stop()
            return len(box.scripts)

    assert asyncio.run(work()) == 3


def test_leftovers_are_killed_only_where_execd_is_spared() -> None:
    async def work(box: Box) -> None:
        await box.sandbox.kill_leftovers()
        assert "kill -9 -1" in box.scripts[-1]
        box.answers["kill -9"] = said(stat(), status=1)
        with pytest.raises(SandboxDied, match="could not be killed"):
            await box.sandbox.kill_leftovers()
        box.where = stat(name="sleep")
        count = len(box.scripts)
        with pytest.raises(SandboxError, match="not the first process"):
            await box.sandbox.kill_leftovers()
        assert "kill -9" not in box.scripts[count]
        await box.sandbox.stop()

    run(work)


def test_a_script_of_ours_may_not_last_for_ever() -> None:
    async def work(box: Box) -> None:
        endless = Endless(box)
        with pytest.raises(SandboxDied, match="did not answer"):
            await box.sandbox.script("true", seconds=0.05)
        assert endless.interrupted.is_set()

    run(work)


def archive(*members: tuple[str, bytes | None]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as out:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/shadow"
                out.addfile(info)
            else:
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def test_a_folder_comes_as_one_archive_of_which_links_are_only_listed(tmp_path: Path) -> None:
    async def work(box: Box) -> None:
        box.files["*"] = archive(("./a", b"hello"), ("./b/c", b"x"), ("./link", None))
        done = await box.sandbox.download_folder("/logs", tmp_path / "got")
        assert (done.files, [link.path for link in done.links]) == (2, ["link"])
        assert "tar -c --format=gnu" in box.scripts[-1]
        assert box.server.calls("DELETE", "/files")[0].query["path"][0].startswith("/scratch/")

    run(work)
    assert (tmp_path / "got/b/c").read_bytes() == b"x"
    assert not (tmp_path / "got/link").is_symlink()


@pytest.mark.parametrize(("status", "reason"), [(44, "there is no /logs"), (2, "status 2")])
def test_a_folder_that_cannot_be_packed(status: int, reason: str, tmp_path: Path) -> None:
    async def work(box: Box) -> None:
        box.answers["tar -c"] = said(stat(), status=status)
        await box.sandbox.download_folder("/logs", tmp_path / "got")

    with pytest.raises(TransferFailed, match=reason):
        run(work)


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (archive(("./a", b"hello"))[:700], TransferFailed, "cut short"),
        (archive(("../../a", b"hello")), TransferRefused, "leaves its folder"),
        (b"x" * 1024, TransferRefused, "broken"),
    ],
)
def test_hostile_archives(content: bytes, kind: type[Exception], reason: str, tmp_path: Path) -> None:
    async def work(box: Box) -> None:
        box.files["*"] = content
        await box.sandbox.download_folder("/logs", tmp_path / "got")

    with pytest.raises(kind, match=reason):
        run(work)


def test_an_archive_may_only_be_so_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execd_files, "MAX_ARCHIVE", 100)

    async def work(box: Box) -> None:
        box.files["*"] = archive(("./a", b"hello"))
        with pytest.raises(TransferRefused, match="more than 100"):
            await box.sandbox.download_folder("/logs", tmp_path / "got")
        del box.files["*"]
        with pytest.raises(TransferFailed, match="404"):
            await box.sandbox.download_folder("/logs", tmp_path / "got")

    run(work)


def test_one_file(tmp_path: Path) -> None:
    async def work(box: Box) -> None:
        box.files["*"] = archive(("./exit", b"3"))
        done = await box.sandbox.download_file("/logs/exit", tmp_path / "status")
        assert (done.files, (tmp_path / "status").read_bytes()) == (1, b"3")
        assert "--no-recursion" in box.scripts[-1]

    run(work)


def uploads(box: Box, *, lose: bool = False) -> dict[str, bytes]:
    """Have the server keep what is uploaded."""
    kept: dict[str, bytes] = {}

    async def take(request: Request, writer: asyncio.StreamWriter) -> None:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        _, metadata, content, _ = request.body.split(b"--" + boundary)
        told = json.loads(metadata.split(b"\r\n\r\n", 1)[1])
        kept[told["path"]] = b"" if lose else content.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
        writer.write(reply(200))

    async def info(request: Request, writer: asyncio.StreamWriter) -> None:
        path = request.query["path"][0]
        found = kept.get(path)
        entry = {path: {"path": path, "type": "file", "size": len(found or b""), "mode": 644}}
        writer.write(reply(404) if found is None else document(entry))

    box.server.on("POST", "/files/upload", take)
    box.server.on("GET", "/files/info", info)
    box.server.on("POST", "/directories", reply(200))
    return kept


def a_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tests"
    (folder / "sub").mkdir(parents=True)
    (folder / "test.sh").write_text("echo")
    (folder / "test.sh").chmod(0o755)
    (folder / "sub/link").symlink_to("../test.sh")
    return folder


def test_a_folder_goes_as_one_archive(tmp_path: Path) -> None:
    async def work(box: Box) -> dict[str, bytes]:
        kept = uploads(box)
        await box.sandbox.upload(a_folder(tmp_path), "/tests")
        assert "mkdir -p -- /tests && tar -x" in box.scripts[-1]
        return kept

    [content] = run(work).values()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert sorted(tar.getnames()) == ["sub", "sub/link", "test.sh"]


def test_uploads_that_do_not_arrive(tmp_path: Path) -> None:
    async def work(box: Box) -> None:
        folder = a_folder(tmp_path)
        with pytest.raises(TransferFailed, match=r"/x: .*404"):
            await box.sandbox.upload(folder / "test.sh", "/x")
        uploads(box, lose=True)
        with pytest.raises(TransferFailed, match="4 bytes were sent and 0 arrived"):
            await box.sandbox.upload(folder / "test.sh", "/x")
        uploads(box)
        box.answers["tar -x"] = said(stat(), status=2)
        with pytest.raises(TransferFailed, match="status 2"):
            await box.sandbox.upload(folder, "/tests")
        with pytest.raises(TransferFailed, match="absent"):
            await box.sandbox.upload(tmp_path / "absent", "/x")
        box.server.on("POST", "/files/upload", b"")
        with pytest.raises(SandboxDied):
            await box.sandbox.upload(folder / "test.sh", "/x")

    run(work)


def test_without_tar_files_go_one_by_one(tmp_path: Path) -> None:
    async def work(box: Box) -> None:
        kept = uploads(box)
        await box.sandbox.upload(a_folder(tmp_path), "/tests")
        assert kept == {"/tests/test.sh": b"echo"}
        [folders] = [request.json() for request in box.server.calls("POST", "/directories")]
        assert set(folders) == {"/tests", "/tests/sub"}
        assert "ln -sfn -- ../test.sh /tests/sub/link" in box.scripts[-1]
        box.answers["ln -sfn"] = said(stat(), status=1)
        with pytest.raises(TransferFailed):
            await box.sandbox.upload(tmp_path / "tests", "/tests")

    run(work, tar="none")


def test_without_tar_files_come_one_by_one(tmp_path: Path) -> None:
    def entry(path: str, kind: str) -> dict[str, object]:
        return {"path": path, "type": kind, "size": 1, "mode": 755}

    async def work(box: Box) -> None:
        listed = [entry("/logs/a", "file"), entry("/logs/d", "directory"), entry("/logs/l", "symlink")]
        box.server.on("GET", "/files/search", document([*listed, entry("/etc/passwd", "file")]))
        box.files["/logs/a"] = b"hello"
        done = await box.sandbox.download_folder("/logs", tmp_path / "got")
        assert (done.files, [link.path for link in done.links]) == (1, ["l"])
        uploads(box)["/logs/a"] = b"hello"
        assert (await box.sandbox.download_file("/logs/a", tmp_path / "a")).files == 1
        with pytest.raises(TransferFailed, match="there is no /logs/b"):
            await box.sandbox.download_file("/logs/b", tmp_path / "b")
        del box.files["/logs/a"]
        with pytest.raises(TransferFailed, match="404"):
            await box.sandbox.download_folder("/logs", tmp_path / "got")
        box.server.on("GET", "/files/search", reply(404))
        with pytest.raises(TransferFailed, match="there is no /logs"):
            await box.sandbox.download_folder("/logs", tmp_path / "got")
        for odd in ({"not": "a list"}, ["no object"]):
            box.server.on("GET", "/files/search", document(odd))
            with pytest.raises(SandboxDied):
                await box.sandbox.download_folder("/logs", tmp_path / "got")

    run(work, tar="none")
    assert (tmp_path / "got/a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "got/d").is_dir()
