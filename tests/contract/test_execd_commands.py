"""Commands: what their streams say, whom they run as, and how they end."""

from __future__ import annotations

import http.client
import json
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd import Execution, OutputMessage, RunCommandOpts
from opensandbox.models.execd_sync import ExecutionHandlersSync

from tests.contract.daemons import EXECD_TOKEN, Program, Reply, call, ping
from tests.contract.sdk import EXECD_HEADER, EXECD_PORT, Execd

pytestmark = pytest.mark.contract

NOBODY = 65534


def lines(messages: list[OutputMessage]) -> list[str]:
    """The lines of an output; releases differ in whether an event keeps its line's end."""
    return [line for message in messages for line in message.text.splitlines() if line]


def post(**request: object) -> Reply:
    return call(EXECD_PORT, "POST", "/command", json.dumps(request), headers={EXECD_HEADER: EXECD_TOKEN})


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


def start(sandbox: Execd, command: str) -> str:
    execution = sandbox.commands.run(command, opts=RunCommandOpts(background=True))
    assert execution.id is not None
    return execution.id


def wait_until_ended(sandbox: Execd, command: str) -> None:
    deadline = time.monotonic() + 10
    while sandbox.commands.get_command_status(command).running:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/ping"),
        ("POST", "/command"),
        ("DELETE", "/command?id=x"),
        ("GET", "/command/status/x"),
        ("GET", "/command/x/logs"),
        ("POST", "/files/upload"),
        ("GET", "/files/download?path=/etc/passwd"),
        ("GET", "/files/info?path=/"),
        ("GET", "/files/search?path=/etc"),
        ("DELETE", "/files?path=/nothing"),
        ("POST", "/directories"),
    ],
)
@pytest.mark.parametrize("token", [None, "another"])
def test_nothing_without_the_token(sandbox: Execd, method: str, path: str, token: str | None) -> None:
    headers = {} if token is None else {EXECD_HEADER: token}
    reply = call(EXECD_PORT, method, path, headers=headers)
    assert reply.status == 401
    assert "Unauthorized" in reply.body


def test_ping(sandbox: Execd) -> None:
    assert sandbox.health.ping("any")


def test_output_and_success(sandbox: Execd) -> None:
    execution = sandbox.commands.run("echo one; echo two >&2; printf three")
    assert execution.exit_code == 0
    assert execution.complete is not None
    assert lines(execution.logs.stdout) == ["one", "three"]
    assert lines(execution.logs.stderr) == ["two"]
    assert execution.id


def test_exit_status(sandbox: Execd) -> None:
    execution = sandbox.commands.run("exit 7")
    assert execution.exit_code == 7
    assert execution.error is not None
    assert execution.error.name == "CommandExecError"
    assert execution.error.traceback == ["exit status 7"]


def test_stream_is_objects_and_empty_lines(sandbox: Execd) -> None:
    """The bare framing, byte for byte: what a client without a library for it has to read."""
    *events, rest = post(command="echo hello").body.split("\n\n")
    assert rest == ""
    told = [json.loads(event) for event in events]
    assert [event["type"] for event in told if event["type"] != "ping"] == [
        "init",
        "stdout",
        "execution_complete",
    ]
    assert all(isinstance(event["timestamp"], int) for event in told)


def test_long_silence_is_bridged_by_pings(sandbox: Execd) -> None:
    assert '"type":"ping"' in post(command="sleep 3.3").body


def test_folder_and_variables(sandbox: Execd, tmp_path: Path) -> None:
    options = RunCommandOpts(working_directory=str(tmp_path), envs={"GREETING": "hello\nworld"})
    execution = sandbox.commands.run('pwd; echo "$GREETING"', opts=options)
    assert lines(execution.logs.stdout) == [str(tmp_path), "hello", "world"]


@pytest.mark.parametrize("folder", ["/nothing/here", "/etc/passwd"])
def test_folder_that_is_none(sandbox: Execd, folder: str) -> None:
    reply = post(command="true", cwd=folder)
    assert reply.status == 400
    assert json.loads(reply.body)["code"] == "INVALID_REQUEST_BODY"


@pytest.mark.parametrize(
    "request_body",
    [{}, {"command": "true", "timeout": -1}, {"command": "true", "gid": 1}, {"command": ""}],
)
def test_broken_requests(sandbox: Execd, request_body: dict[str, object]) -> None:
    reply = post(**request_body)
    assert reply.status == 400
    assert json.loads(reply.body)["code"] == "INVALID_REQUEST_BODY"


def test_other_user(sandbox: Execd) -> None:
    options = RunCommandOpts(uid=NOBODY, gid=NOBODY, working_directory="/")
    execution = sandbox.commands.run("id -u; id -g; touch /etc/argo-harbor-was-here", opts=options)
    assert lines(execution.logs.stdout) == [str(NOBODY), str(NOBODY)]
    assert execution.exit_code == 1


def test_no_input(sandbox: Execd) -> None:
    assert sandbox.commands.run("cat").exit_code == 0


def test_timeout_kills_the_group(sandbox: Execd, tmp_path: Path) -> None:
    started = time.monotonic()
    options = RunCommandOpts(timeout=timedelta(milliseconds=300))
    execution = sandbox.commands.run(f"(sleep 2; touch {tmp_path}/late) & sleep 30", opts=options)
    assert time.monotonic() - started < 5
    assert execution.exit_code == -1
    assert execution.error is not None
    assert execution.error.traceback == ["signal: killed"]
    time.sleep(2.2)
    assert not (tmp_path / "late").exists()


def test_interrupt(sandbox: Execd) -> None:
    ended: list[Execution] = []
    listening = threading.Event()
    ids: list[str] = []

    def note(init: object) -> None:
        ids.append(init.id)  # type: ignore[attr-defined]

    # Its socket belongs to the namespace of the thread that opens it, so the interrupting call is elsewhere.
    def interrupt() -> None:
        assert listening.wait(10)
        sandbox.commands.interrupt(ids[0])

    # A thread starts in the namespace of the thread that makes it.
    helper = threading.Thread(target=interrupt)
    helper.start()
    # An interrupt that comes before the trap would just end the shell.
    command = "trap 'echo stopping; exit 5' TERM; echo listening; sleep 30 & wait"
    handlers = _handlers(note, lambda said: listening.set())
    ended.append(sandbox.commands.run(command, handlers=handlers))
    helper.join(timeout=10)
    assert ended[0].exit_code == 5
    assert lines(ended[0].logs.stdout) == ["listening", "stopping"]


def test_interrupt_kills_what_does_not_listen(sandbox: Execd) -> None:
    command = start(sandbox, "trap '' TERM; sleep 60 & while :; do sleep 1; done")
    sandbox.commands.interrupt(command)
    wait_until_ended(sandbox, command)
    assert sandbox.commands.get_command_status(command).exit_code == -1


def test_interrupt_of_nothing(sandbox: Execd) -> None:
    with pytest.raises(SandboxApiException):
        sandbox.commands.interrupt("0" * 32)
    ended = sandbox.commands.run("true")
    assert ended.id is not None
    with pytest.raises(SandboxApiException):
        sandbox.commands.interrupt(ended.id)


def test_background(sandbox: Execd, tmp_path: Path) -> None:
    go = tmp_path / "go"
    command = start(sandbox, f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two >&2; exit 4")
    status = sandbox.commands.get_command_status(command)
    assert status.running
    assert status.exit_code is None
    logs = sandbox.commands.get_background_command_logs(command, cursor=0)
    while not logs.content:
        logs = sandbox.commands.get_background_command_logs(command, cursor=0)
    assert (logs.content, logs.cursor) == ("one\n", 4)
    go.touch()
    wait_until_ended(sandbox, command)
    rest = sandbox.commands.get_background_command_logs(command, cursor=logs.cursor)
    assert (rest.content, rest.cursor) == ("two\n", 8)
    status = sandbox.commands.get_command_status(command)
    assert (status.running, status.exit_code) == (False, 4)


def test_background_timeout(sandbox: Execd) -> None:
    options = RunCommandOpts(background=True, timeout=timedelta(milliseconds=200))
    execution = sandbox.commands.run("sleep 60", opts=options)
    assert execution.id is not None
    wait_until_ended(sandbox, execution.id)
    assert sandbox.commands.get_command_status(execution.id).exit_code == -1


def test_unknown_command(sandbox: Execd) -> None:
    headers = {EXECD_HEADER: EXECD_TOKEN}
    assert call(EXECD_PORT, "GET", f"/command/status/{'0' * 32}", headers=headers).status == 404
    assert call(EXECD_PORT, "GET", f"/command/{'0' * 32}/logs", headers=headers).status == 400


def test_client_that_goes_stops_nothing(sandbox: Execd, tmp_path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", EXECD_PORT)
    body = json.dumps({"command": f"touch {tmp_path}/begun; sleep 0.6; touch {tmp_path}/done"})
    connection.request("POST", "/command", body=body, headers={EXECD_HEADER: EXECD_TOKEN})
    wait_for(tmp_path / "begun")
    connection.close()
    wait_for(tmp_path / "done")


def test_what_a_command_leaves_behind_holds_nothing_up(sandbox: Execd) -> None:
    started = time.monotonic()
    execution = sandbox.commands.run("sleep 20 & echo done")
    assert time.monotonic() - started < 5
    assert lines(execution.logs.stdout) == ["done"]


def test_much_output(sandbox: Execd) -> None:
    size = 0

    def count(message: OutputMessage) -> None:
        nonlocal size
        size += len(message.text.replace("\n", ""))

    handlers = ExecutionHandlersSync(on_stdout=count, skip_accumulation=True)
    assert sandbox.commands.run("seq 1 300000", handlers=handlers).exit_code == 0
    assert size == sum(len(str(number)) for number in range(1, 300001))


def test_broken_text_and_wide_characters(sandbox: Execd) -> None:
    execution = sandbox.commands.run(r"printf 'drei \344\270\211 \377 end\n'")
    assert lines(execution.logs.stdout) == ["drei 三 � end"]


def test_variables_from_the_file_are_read_each_time(sandbox: Execd, request: pytest.FixtureRequest) -> None:
    file = Path(lines(sandbox.commands.run('echo "$EXECD_ENVS"').logs.stdout)[0])
    file.write_text("# comment\nBASE=one\nOVER=file\nEXPANDED=$BASE-$HOME\n")
    try:
        options = RunCommandOpts(envs={"OVER": "request"})
        execution = sandbox.commands.run('echo "$BASE $OVER"', opts=options)
        assert lines(execution.logs.stdout) == ["one request"]
        file.write_text("BASE=two\n")
        assert lines(sandbox.commands.run('echo "$BASE"').logs.stdout) == ["two"]
    finally:
        file.unlink()


def test_removed_scratch_folder_is_made_again(sandbox: Execd, execd_program: Program) -> None:
    execution = sandbox.commands.run('rm -rf "$TMPDIR"; echo still here')
    assert execution.exit_code == 0
    execution = sandbox.commands.run("echo again")
    assert lines(execution.logs.stdout) == ["again"]


def test_program_without_a_shell(sandbox: Execd, execd_program: Program) -> None:
    if not execd_program.ours:
        pytest.skip("older releases know no argv")
    assert '"a b; exit 1\\n"' in post(argv=["echo", "a b; exit 1"]).body
    assert post(argv=["echo"], command="true").status == 400
    assert "no-such-program" in post(argv=["no-such-program"]).body


def test_it_still_answers(sandbox: Execd) -> None:
    assert ping().status == 200


def _handlers(note: object, said: object = None) -> ExecutionHandlersSync:
    return ExecutionHandlersSync(on_init=note, on_stdout=said)  # type: ignore[arg-type]
