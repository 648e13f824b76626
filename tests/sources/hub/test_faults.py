"""A Hub that is down, slow, broken or private: every wait ends, and the error says what to do."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

from argo_harbor.errors import PlatformError, UsageError
from argo_harbor.sources.hub import tasks as hub_tasks
from tests.support.fixtures_hub import NAME, HubSite

pytestmark = [
    pytest.mark.remote,
    pytest.mark.filterwarnings("ignore:The '.*' parameter is deprecated:DeprecationWarning"),
]

REQUESTS = [
    "dataset_version_tag",
    "dataset_version_task",
    "dataset_version_file",
    "rpc/resolve_task_version",
    "/storage/",
]


def fault(hub_site: HubSite, where: str, **what: Any) -> None:
    from tests.support.hub_server import Fault

    hub_site.hub.faults.append(Fault(where, **what))


def without_waiting(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Harbor's own second and third try come at once."""
    from harbor.db.client import RegistryDB
    from tenacity import wait_none

    monkeypatch.setattr(getattr(RegistryDB, method).retry, "wait", wait_none())


@pytest.mark.parametrize("where", REQUESTS)
def test_a_passing_fault_is_passed_over(hub_site: HubSite, where: str) -> None:
    fault(hub_site, where, status=503)
    assert len(hub_site.load(tasks="0,1")) == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b'{"message": "upstream"}'),
        (429, b"slow down"),
        (503, b'{"code": "PGRST002", "message": "no schema cache"}'),
        (500, b'{"code": "57P01", "message": "terminating connection"}'),
    ],
)
def test_however_it_is_said(hub_site: HubSite, status: int, body: bytes) -> None:
    fault(hub_site, "dataset_version_tag", status=status, body=body)
    assert hub_site.source().list().total == 3


def test_a_transfer_that_breaks_off_is_repeated(hub_site: HubSite) -> None:
    fault(hub_site, "/storage/", breaks_off=True, times=2)
    assert len(hub_site.load(tasks="0")) == 1
    assert len(hub_site.hub.downloads()) == 3


@pytest.mark.parametrize("where", REQUESTS)
def test_a_lasting_fault_ends_after_three_tries(hub_site: HubSite, where: str) -> None:
    fault(hub_site, where, status=502, times=99)
    with pytest.raises(PlatformError, match="the Hub answers 502 Bad Gateway") as caught:
        hub_site.load(tasks="0")
    assert caught.value.code == "source_unreachable"
    assert "--taskset" in caught.value.hint
    assert sum(where in line for line in hub_site.hub.asked) == 3


@pytest.mark.parametrize("where", ["dataset_version_tag", "rpc/resolve_task_version"])
def test_a_silent_hub_is_left_with_the_time_that_was_waited(hub_site: HubSite, where: str) -> None:
    fault(hub_site, where, hangs=True, times=99)
    problem = hub_site.fails(answer=0.6)
    assert problem.code == "source_unreachable"
    assert "did not answer within 1 s" in problem.message


def test_an_archive_that_never_comes_is_left_too(hub_site: HubSite) -> None:
    fault(hub_site, "/storage/", hangs=True, times=99)
    problem = hub_site.fails(archive=0.6)
    assert "did not answer within 1 s; 0 of 3 tasks were fetched" in problem.message


def test_a_hub_that_is_gone_is_not_waited_for_once_for_every_task(
    hub_site: HubSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_tasks, "AT_A_TIME", 1)
    fault(hub_site, "task-0001", status=502, times=99)
    problem = hub_site.fails()
    assert isinstance(problem, PlatformError)
    assert "1 of 3 tasks were fetched and stay in the cache" in problem.message
    assert not any("task-0002" in line for line in hub_site.hub.downloads())
    hub_site.hub.faults.clear()
    before = len(hub_site.hub.downloads())
    assert len(hub_site.load()) == 3
    assert len(hub_site.hub.downloads()) == before + 2


def test_what_was_refused_is_listed_with_an_unreachable_hub(hub_site: HubSite) -> None:
    first, second, _ = hub_site.version.tasks
    hub_site.hub.objects[first.archive] = b""
    fault(hub_site, second.digest, status=502, times=99)
    problem = hub_site.fails()
    assert (problem.code, [item.task for item in problem.items]) == ("source_unreachable", [first.name])


def test_a_closed_port_is_said(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting(monkeypatch, "resolve_dataset_version")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr("harbor.auth.client.SUPABASE_URL", f"http://127.0.0.1:{port}")
    problem = hub_site.fails()
    assert (problem.code, problem.exit_status) == ("source_unreachable", 5)
    assert "cannot be reached" in problem.message
    assert "HARBOR_SUPABASE_URL" in problem.hint


@pytest.mark.parametrize("url", ["http://hub.example", "ftp://127.0.0.1", "nonsense"])
def test_no_hub_is_asked_in_the_clear(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr("harbor.auth.client.SUPABASE_URL", url)
    problem = hub_site.fails()
    assert (problem.code, "TLS" in problem.message) == ("source_unreachable", True)
    assert "https://" in problem.hint


@pytest.mark.parametrize(
    ("where", "body"),
    [
        ("dataset_version_tag", b"<html>sign in to the wireless network</html>"),
        ("dataset_version_tag", b'[{"package": {}}]'),
        ("dataset_version_tag", b"[[]]"),
        ("dataset_version_task", b"<html>sign in to the wireless network</html>"),
        ("dataset_version_task", b"[1]"),
        ("dataset_version_file", b"[1]"),
        ("dataset_version_file", b"\xff"),
    ],
)
def test_nonsense_is_no_dataset(hub_site: HubSite, where: str, body: bytes) -> None:
    fault(hub_site, where, status=200, body=body)
    problem = hub_site.fails()
    assert problem.code in {"source_unreachable", "source_unreadable"}
    assert hub_site.hub.downloads() == []


@pytest.mark.parametrize("body", [b'{"id": 1}', b'{"id": 1, "archive_path": 2, "content_hash": 3}'])
def test_nonsense_is_no_version_of_a_task(hub_site: HubSite, body: bytes) -> None:
    fault(hub_site, "rpc/resolve", status=200, body=body, times=99)
    problem = hub_site.fails()
    assert (problem.code, "not understood" in problem.message) == ("source_unreachable", True)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("where", ["dataset_version_tag", "/storage/"])
def test_who_is_not_let_in_is_told_to_sign_in(
    hub_site: HubSite, where: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(hub_site, where, status=status, body=b"no", times=99)
    problem = hub_site.fails()
    assert (problem.code, "does not let us in" in problem.message) == ("source_unreachable", True)
    assert "harbor auth login" in problem.hint
    assert all(hub_site.hub.asked.count(line) == 1 for line in hub_site.hub.asked if where in line)


def test_a_refusal_that_the_storage_hides_in_the_body_is_no_missing_archive(hub_site: HubSite) -> None:
    body = b'{"statusCode": "403", "error": "Unauthorized", "message": "jwt expired"}'
    fault(hub_site, "/storage/", status=400, body=body, times=99)
    problem = hub_site.fails()
    assert (problem.code, "harbor auth login" in problem.hint) == ("source_unreachable", True)
    hub_site.hub.faults.clear()
    fault(hub_site, "/storage/", status=404, body=b"x" * 100_000, times=99)
    assert hub_site.fails().code == "source_unreadable"


def test_an_expired_token_says_so(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    without_waiting(monkeypatch, "resolve_dataset_version")
    body = b'{"code": "PGRST303", "message": "JWT expired"}'
    fault(hub_site, "dataset_version_tag", status=401, body=body, times=99)
    problem = hub_site.fails()
    assert "JWT expired" in problem.message
    assert "harbor auth login" in problem.hint


def test_a_private_dataset_needs_a_key(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.hub_server import KEY

    hub_site.hub.private = True
    unknown = hub_site.fails()
    assert (unknown.code, "harbor auth login" in unknown.hint) == ("unknown_source_ref", True)
    monkeypatch.setenv("HARBOR_API_KEY", KEY)
    assert len(hub_site.load()) == 3
    # A second conversation in the same process exchanges the key again.
    assert hub_site.source().list().total == 3


def test_a_key_that_is_rejected(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_API_KEY", "sk-harbor-old_secret")
    problem = hub_site.fails()
    assert (problem.code, "harbor auth login" in problem.hint) == ("source_unreachable", True)
    assert "secret" not in problem.message
    assert [line for line in hub_site.hub.asked if "/rest/" in line] == []


def test_an_exchange_that_is_down_is_no_reason_to_sign_in(
    hub_site: HubSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.hub_server import KEY

    async def at_once(_: float) -> None:
        """Harbor waits between its tries."""

    monkeypatch.setattr("harbor.auth.tokens.asyncio.sleep", at_once)
    monkeypatch.setenv("HARBOR_API_KEY", KEY)
    fault(hub_site, "api-key-exchange", status=503, times=99)
    problem = hub_site.fails()
    assert (problem.code, "harbor auth login" in problem.hint) == ("source_unreachable", False)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("acme/mino", "no dataset acme/mino", "did you mean acme/mini?"),
        ("nobody/else", "no dataset nobody/else", "harbor auth login"),
        (f"{NAME}@lates", "no version lates of acme/mini", "did you mean @latest?"),
        (f"{NAME}@7", "no version 7 of acme/mini", "there are latest, 1"),
        (f"{NAME}@sha256:{'0' * 64}", "no version sha256:0000", "there are latest, 1"),
        ("acme/single", "acme/single is a task on the Hub", "name a dataset"),
        ("acme/bare@1", "no version 1 of acme/bare", "no version that is not withdrawn"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(
    hub_site: HubSite, text: str, said: str, hint: str
) -> None:
    hub_site.hub.packages = {"acme/single": "task", "acme/bare": "dataset"}
    for call in (hub_site.source(text).list, hub_site.source(text).load):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.code == "unknown_source_ref"
        assert said in caught.value.message
        assert hint in caught.value.hint


@pytest.mark.parametrize("part", ["harbor.db.client", "harbor.storage.supabase"])
def test_harbor_may_be_absent(hub_site: HubSite, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, part, None)
    problem = hub_site.fails()
    assert (problem.code, problem.exit_status) == ("harbor_not_found", 5)
    assert "pip install 'argo-harbor[pod]'" in problem.hint
    assert hub_site.hub.asked == []


def test_a_long_fetch_shows_that_it_moves(hub_site: HubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_tasks, "SAY_EVERY", 0)
    hub_site.load()
    assert hub_site.said[-1] == "3 of 3 tasks are here"
