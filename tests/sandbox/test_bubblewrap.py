"""One sandbox from start to stop: commands, what stays alive, what ends, what is out of reach."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argo_harbor.errors import Refused
from argo_harbor.sandbox import process
from argo_harbor.sandbox.base import OUTPUT_LIMIT, SandboxDied, SandboxError, SandboxStartFailed
from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.commands import entry_script
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.preview import Preview
from argo_harbor.sandbox.scratch import remove_scratch

pytestmark = pytest.mark.sandbox


def processes_mentioning(word: str) -> list[int]:
    """Host processes with this word on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def wait_until(true: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_a_command_gets_environment_folder_and_empty_input(sandboxes):
    async def use(sandbox):
        return await sandbox.exec(
            'echo "$A|$B|$C|$HOME|$PWD"; id -u; cat; echo err >&2; exit 7', env={"C": "3"}
        )

    base = Base(env={"A": "x y'z", "B": "image", "PATH": "/usr/bin:/bin", "HOME": "/root"}, workdir="/app")
    result = sandboxes.run(use, base=base, env={"B": "caller\nsecond $line"})
    assert result.stdout == "x y'z|caller\nsecond $line|3|/root|/app\n0\n"
    assert (result.stderr, result.return_code, result.timed_out) == ("err\n", 7, False)


def test_the_folder_of_a_command(sandboxes):
    async def use(sandbox):
        inside = await sandbox.exec("pwd", cwd="/tmp")
        missing = await sandbox.exec("pwd", cwd="/no such")
        return inside.stdout, missing.return_code, missing.stderr

    inside, status, complaint = sandboxes.run(use, workdir="/logs")
    assert inside == "/tmp\n"
    assert status == 126
    assert "/no such" in complaint


def test_bash_is_the_shell_and_signals_show_in_the_status(sandboxes):
    async def use(sandbox):
        pipe = await sandbox.exec("set -o pipefail; [[ a == a ]] && false | cat")
        killed = await sandbox.exec("kill -KILL $$")
        return pipe.return_code, killed.return_code

    assert sandboxes.run(use) == (1, 137)


def test_only_root_is_a_user(sandboxes):
    async def use(sandbox):
        for user in ("root", "0", 0, None):
            assert (await sandbox.exec("id -un", user=user)).stdout == "root\n"
        with pytest.raises(Refused) as refused:
            await sandbox.exec("true", user="agent")
        return refused.value.code

    assert sandboxes.run(use) == "local_user_unsupported"


def test_a_variable_that_no_shell_can_set_is_an_error():
    for name, value in (("A-B", "x"), ("", "x"), ("A", "nul\0")):
        with pytest.raises(SandboxError):
            entry_script("true", cwd="/", env={name: value}, shells=["/bin/sh"])


def test_variables_of_a_task_never_reach_a_program_outside(sandboxes, tmp_path):
    """A preloaded library would run on the host if nsenter had the variable."""

    async def use(sandbox):
        running = asyncio.create_task(
            sandbox.exec("sleep 987654", env={"LD_DEBUG": "files", "MARK": "planted"})
        )
        while not (found := processes_mentioning("987654")):
            await asyncio.sleep(0.01)
        parents = {Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1] for pid in found}
        outside = [Path(f"/proc/{pid}/environ").read_bytes() for pid in parents]
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in parents]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return outside, lines

    outside, lines = sandboxes.run(use)
    assert outside
    assert all(b"planted" not in text for text in outside + lines)


def test_a_server_left_running_answers_a_later_command(sandboxes):
    server = (
        "python3 -c 'import http.server as h;"
        'h.HTTPServer(("127.0.0.1", 8000), h.SimpleHTTPRequestHandler).serve_forever()\' &'
    )
    ask = (
        "for i in $(seq 100); do python3 -c '"
        'import urllib.request as r; print(r.urlopen("http://127.0.0.1:8000/").status)'
        "' 2>/dev/null && exit; sleep 0.05; done; exit 1"
    )

    async def use(sandbox):
        begun = time.monotonic()
        await sandbox.exec(server)
        seconds = time.monotonic() - begun
        return seconds, await sandbox.exec(ask), await sandbox.exec("pgrep -c python3")

    seconds, answer, alive = sandboxes.run(use)
    assert seconds < 5, "the command waited for its server"
    assert answer.stdout == "200\n"
    assert alive.stdout == "1\n"


def test_a_server_that_keeps_writing_is_not_broken_by_a_closed_pipe(sandboxes):
    async def use(sandbox):
        await sandbox.exec("(while echo more; do echo x >> /tmp/beat; sleep 0.01; done) &")
        before = int((await sandbox.exec("wc -l < /tmp/beat")).stdout)
        while int((await sandbox.exec("wc -l < /tmp/beat")).stdout) < before + 5:
            await asyncio.sleep(0.02)

    sandboxes.run(use)


def test_a_time_out_ends_the_group_but_nothing_else(sandboxes, monkeypatch):
    monkeypatch.setattr(process, "TERM_SECONDS", 0.5)

    async def use(sandbox):
        await sandbox.exec("setsid sleep 1111 >/dev/null 2>&1 &")
        polite = await sandbox.exec("trap 'echo bye; exit 3' TERM; sleep 2222 & wait", timeout_sec=1)
        stubborn = await sandbox.exec("trap '' TERM; while :; do sleep 3333; done", timeout_sec=0.2)
        left = await sandbox.exec("pgrep -a sleep")
        return polite, stubborn, left.stdout

    polite, stubborn, left = sandboxes.run(use)
    assert (polite.timed_out, polite.return_code, polite.stdout) == (True, 3, "bye\n")
    assert (stubborn.timed_out, stubborn.return_code) == (True, 137)
    assert left.split()[1:] == ["sleep", "1111"]


def test_cancelling_ends_the_command(sandboxes):
    async def use(sandbox):
        running = asyncio.create_task(sandbox.exec("sleep 4444"))
        while not (await sandbox.exec("pgrep -f '^sleep 4444'")).stdout:
            pass
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return (await sandbox.exec("pgrep -f '^sleep 4444'")).stdout

    assert sandboxes.run(use) == ""


def test_large_output_keeps_the_tail_and_says_what_is_gone(sandboxes):
    async def use(sandbox):
        return await sandbox.exec("head -c 5000000 /dev/zero | tr '\\0' x; echo end; printf '\\377' >&2")

    result = sandboxes.run(use)
    first, _, rest = result.stdout.partition("\n")
    assert first == f"[{5_000_004 - OUTPUT_LIMIT} bytes of output dropped]"
    assert len(rest) == OUTPUT_LIMIT
    assert rest.endswith("xend\n")
    assert result.stderr == "\ufffd"


def test_killing_leftovers_spares_the_sandbox(sandboxes):
    async def use(sandbox):
        await sandbox.exec("trap '' TERM; (while :; do sleep 0.01 & sleep 0.01; done) >/dev/null 2>&1 &")
        await sandbox.exec("setsid sleep 5555 >/dev/null 2>&1 &")
        await sandbox.exec("rm -f /bin/kill /usr/bin/kill")
        await sandbox.kill_leftovers()
        return (await sandbox.exec("pgrep -c sleep")).stdout

    assert sandboxes.run(use) == "0\n"


def test_orphans_are_collected(sandboxes):
    async def use(sandbox):
        await sandbox.exec("for i in $(seq 20); do (sleep 0 &) ; done")
        for _ in range(100):
            states = (await sandbox.exec("ps -eo stat=")).stdout
            if "Z" not in states:
                return True
        return False

    assert sandboxes.run(use)


def test_stop_ends_everything_whatever_it_does(sandboxes):
    async def use(sandbox):
        await sandbox.exec("cp /bin/sleep /tmp/stubborn-sleeper")
        await sandbox.exec("trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; /tmp/stubborn-sleeper 777' &")
        await sandbox.exec("f() { while :; do (sleep 0.02; f) & wait -n; done; }; f >/dev/null 2>&1 &")
        assert processes_mentioning("stubborn-sleeper")
        return sandbox

    sandbox = sandboxes.run(use)
    assert processes_mentioning("stubborn-sleeper") == []
    assert processes_mentioning(str(sandbox.folder)) == []
    assert str(sandbox.folder) not in Path("/proc/mounts").read_text()
    assert not sandbox.folder.exists()
    asyncio.run(sandbox.stop())


def test_commands_in_flight_learn_that_the_sandbox_is_gone(sandboxes):
    async def use(sandbox):
        running = asyncio.create_task(sandbox.exec("sleep 6666"))
        while not (await sandbox.exec("pgrep -f '^sleep 6666'")).stdout:
            pass
        await sandbox.stop()
        with pytest.raises(SandboxDied):
            await running
        with pytest.raises(SandboxDied):
            await sandbox.exec("true")

    sandboxes.run(use)


def test_a_sandbox_that_loses_its_first_process_is_dead(sandboxes):
    async def use(sandbox):
        (child,) = (
            Path(f"/proc/{sandbox._process.pid}/task/{sandbox._process.pid}/children").read_text().split()
        )
        os.kill(int(child), signal.SIGKILL)
        await sandbox._process.wait()
        with pytest.raises(SandboxDied):
            await sandbox.exec("true")
        with pytest.raises(SandboxDied):
            await sandbox.kill_leftovers()

    sandboxes.run(use)


def test_a_sandbox_that_cannot_start_says_why_and_leaves_nothing(sandboxes, scratch):
    broken = sandboxes.preview.model_copy(update={"host_trees": (), "links": {}})
    gone = sandboxes.preview.model_copy(update={"setpriv": "/no/such/program", "bwrap": "/no/such/bwrap"})
    for number, preview in enumerate((broken, gone)):
        folder = scratch / f"broken-{number}"
        with pytest.raises(SandboxStartFailed) as failed:
            asyncio.run(BubblewrapSandbox(folder, ground=preview, base=Base.bare()).start())
        assert "no such" in str(failed.value).lower() or "can't" in str(failed.value).lower()
        assert not folder.exists()


_OWNER = """
import asyncio, json, sys
from pathlib import Path
from argo_harbor.sandbox.bubblewrap import BubblewrapSandbox
from argo_harbor.sandbox.image import Base
from argo_harbor.sandbox.preview import Preview
from argo_harbor.sandbox.scratch import remove_scratch

async def main():
    preview = Preview.from_json(sys.argv[2])
    sandbox = BubblewrapSandbox(Path(sys.argv[1]), ground=preview, base=Base.bare())
    await sandbox.start()
    await sandbox.exec("cp /bin/sleep /tmp/orphaned-sleeper")
    await sandbox.exec("trap '' TERM; setsid /tmp/orphaned-sleeper 888 &")
    print("started", flush=True)
    await sandbox.exec("/tmp/orphaned-sleeper 999")

asyncio.run(main())
"""


def test_a_sandbox_ends_with_its_owner(preview, scratch):
    command = [sys.executable, "-c", _OWNER, str(scratch / "orphan"), preview.canonical().decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "started\n"
        wait_until(lambda: len(processes_mentioning("orphaned-sleeper 999")) > 0)
        assert processes_mentioning("orphaned-sleeper 888")
        owner.kill()
    wait_until(lambda: processes_mentioning("orphaned-sleeper") == [])
    wait_until(lambda: processes_mentioning(str(scratch / "orphan")) == [])
    remove_scratch(scratch / "orphan")
    assert not (scratch / "orphan").exists()


def test_without_network_there_is_a_working_loopback_and_nothing_else(sandboxes):
    talk = (
        'python3 -c \'import socket; s = socket.create_server(("127.0.0.1", 0));'
        "c = socket.create_connection(s.getsockname()); print(c.getpeername()[0])'"
    )

    async def use(sandbox):
        return await sandbox.exec(f"{talk}; tail -n +3 /proc/net/dev | cut -d: -f1")

    assert sandboxes.run(use).stdout.split() == ["127.0.0.1", "lo"]


@pytest.fixture
def host_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_host_is_reached_only_when_unfenced(sandboxes, host_server):
    async def use(sandbox):
        return (await sandbox.exec(f"exec 3<>/dev/tcp/127.0.0.1/{host_server}")).return_code

    assert sandboxes.run(use) != 0
    assert sandboxes.run(use, network="unfenced") == 0


def test_an_unfenced_sandbox_resolves_names_as_the_host(sandboxes):
    async def use(sandbox):
        return (await sandbox.exec("cat /etc/resolv.conf")).stdout

    host = Path("/etc/resolv.conf")
    expected = host.read_text() if host.exists() else ""
    assert sandboxes.run(use, network="unfenced") == expected
    assert sandboxes.run(use) == ""


def test_capabilities_are_those_of_a_container(sandboxes):
    async def use(sandbox):
        await sandbox.exec("touch /tmp/x; chmod 000 /tmp/x; chown 0:0 /tmp/x")
        mount = await sandbox.exec("mount -t tmpfs none /mnt")
        status = await sandbox.exec("grep -E 'CapEff|NoNewPrivs' /proc/self/status; cat /tmp/x")
        return mount.return_code, status

    mount, status = sandboxes.run(use)
    assert mount != 0
    assert status.return_code == 0
    assert status.stdout.split() == ["CapEff:", "00000000000404fb", "NoNewPrivs:", "1"]


def test_two_sandboxes_share_nothing(sandboxes):
    async def whole():
        async with sandboxes() as one, sandboxes() as other:
            await one.exec(
                "echo mine > /usr/local/bin/mine; echo mine > /tmp/mine; rm /usr/bin/awk; sleep 7777 &"
            )
            return await other.exec(
                "ls /usr/local/bin/mine /tmp/mine; pgrep sleep; test -e /usr/bin/awk && echo ok"
            )

    assert asyncio.run(whole()).stdout == "ok\n"
    assert Path("/usr/bin/awk").exists()


def test_start_and_exec_are_quick(sandboxes, capsys):
    async def whole():
        begun = time.monotonic()
        async with sandboxes() as sandbox:
            started = time.monotonic()
            for _ in range(5):
                await sandbox.exec("true")
            return started - begun, (time.monotonic() - started) / 5

    start, each = asyncio.run(whole())
    with capsys.disabled():
        print(f"\nsandbox start {start * 1000:.0f} ms, exec {each * 1000:.0f} ms")


def test_a_preview_can_be_passed_on(preview):
    assert Preview.from_json(preview.canonical()) == preview
