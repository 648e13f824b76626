"""What the runner says when it cannot even begin."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from argo_harbor.runner import in_pod
from argo_harbor.runner.__main__ import main
from argo_harbor.runner.command import parse
from argo_harbor.runner.harbor_process import harbor_process
from argo_harbor.runner.process import Interrupt
from argo_harbor.store import layout
from argo_harbor.workflow import names
from tests.runner.conftest import Desk
from tests.support.suites import make_suite


def test_a_wrong_command_line_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["trial"])
    assert caught.value.code == 2
    assert "--plan" in capsys.readouterr().err


def test_unreadable_settings(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = desk.arguments("trial")
    Path(arguments[-1]).write_text("{}")
    assert main(arguments) == 5
    assert "error[plan_unreadable]" in capsys.readouterr().err


def test_a_plan_that_is_not_there_is_broken_or_another(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.digest = "0" * 64
    assert main(desk.arguments("trial")) == 5
    planned = desk.plan(make_suite(desk.folder / "suite", tasks=1))
    assert main(desk.arguments("trial", task=7)) == 5
    desk.store.put(layout.plan_task(planned.digest, 0), b"{}")
    assert main(desk.arguments("trial")) == 5
    desk.store.put(layout.plan_head(planned.digest), b"{}")
    assert main(desk.arguments("trial")) == 5
    said = capsys.readouterr().err
    assert said.count("error[plan_unreadable]") == 4
    assert not list(desk.store.list(layout.trials(desk.run)))


def test_grading_without_an_agents_half(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.plan(make_suite(desk.folder / "suite", tasks=1))
    assert main(desk.arguments("verify")) == 5
    assert "no agent's half" in capsys.readouterr().err


def test_a_missing_archive_is_a_final_record(desk: Desk) -> None:
    planned = desk.plan(make_suite(desk.folder / "suite", tasks=1))
    desk.store.delete(layout.task_archive(planned.parts[0].digest))
    assert main(desk.arguments("trial")) == 0
    record = desk.record()
    assert (record.final, record.outcome.value) == (True, "errored")
    assert record.error is not None
    assert record.error.code == "task_unusable"
    assert desk.store.exists(desk.key(layout.STARTED))
    # The attempt is decided, so a further try leaves nothing behind.
    assert main(desk.arguments("trial", try_=1, uid="b" * 32)) == 0
    assert not desk.store.exists(desk.key(layout.STARTED, try_=1, uid="b" * 32))


def test_an_archive_with_other_content_is_not_run(desk: Desk) -> None:
    suite = make_suite(desk.folder / "suite", tasks=2)
    planned = desk.plan(suite)
    other = desk.store.get(layout.task_archive(planned.parts[1].digest))
    desk.store.put(layout.task_archive(planned.parts[0].digest), other)
    assert main(desk.arguments("trial")) == 0
    error = desk.record().error
    assert error is not None
    assert "source_unreadable" in error.message


def test_a_pods_uid_comes_from_its_environment(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["agent", "--plan", "p", "--run", "r", "--task", "1", "--attempt", "2", "--try", "3"]
    command = parse(arguments, {names.POD_UID_ENV: "0a1b2c3d-0000"})
    assert (command.uid, command.settings, command.work_name) == ("0a1b2c3d-0000", None, "1-2-3-0a1b2c3d")
    with pytest.raises(SystemExit):
        parse([*arguments, "--settings", "x"], {names.POD_UID_ENV: "0a1b2c3d-0000"})
    assert "--settings needs --uid" in capsys.readouterr().err


def test_other_commands_of_pods_have_modules_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("gate")
    other.main = len  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "argo_harbor.runner.gate", other)
    assert main(["gate", "--plan", "p"]) == 2


def test_outside_of_a_pod_there_is_nothing_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = parse(["trial", "--plan", "p", "--run", "r", "--task", "0", "--attempt", "0", "--try", "0"], {})
    monkeypatch.delenv(names.POD_UID_ENV, raising=False)
    with harbor_process(tmp_path, command.work_name) as child:
        assert in_pod.run(command, child, Interrupt()) == 1
    assert "error[platform_not_configured]" in capsys.readouterr().err
