from __future__ import annotations

import json

import pytest

from argo_harbor.engines import argo_submit, events, run_names
from argo_harbor.engines.argo_submit import user_label
from argo_harbor.engines.base import SubmitOptions
from argo_harbor.errors import Conflict, PlatformError, Refused, UsageError
from argo_harbor.model.platform import BUILT_IN
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.store import layout
from tests.engines.argo_bench import ArgoBench
from tests.support.api_server import Trouble


def of[E: events.Event](seen: list[events.Event], kind: type[E]) -> E:
    (found,) = [event for event in seen if isinstance(event, kind)]
    return found


def test_a_run_is_a_workflow_with_its_users_name_and_a_request_in_the_store(argo: ArgoBench) -> None:
    planned = argo.plan()
    run_id, seen = argo.submit(planned)
    assert layout.is_run_id(run_id)
    workflow = argo.api.workflow(run_id)
    metadata = workflow["metadata"]
    assert "generateName" not in metadata
    assert metadata["labels"]["argo-harbor/plan"] == planned.digest[:16]
    assert metadata["labels"]["argo-harbor/user"] == user_label("somebody")
    assert metadata["annotations"]["argo-harbor/plan"] == planned.digest
    assert metadata["annotations"]["argo-harbor/user"] == "somebody"
    assert metadata["annotations"]["argo-harbor/taskset"] == planned.head.taskset.ref
    assert run_id not in json.dumps(workflow["spec"])
    request = json.loads(argo.store.get(layout.request(run_id)))
    assert (request["engine"], request["user"], request["rerun"]) == ("argo", "somebody", "again")
    assert request["plan_digest"] == planned.digest
    assert argo.store.exists(layout.plan_head(planned.digest))
    published = of(seen, events.Published).taskset
    assert (published.added, len(published.tasks), published.total) == (1, 1, 1)
    accepted = of(seen, events.RunAccepted)
    assert (accepted.run, accepted.base, accepted.network) == (run_id, "image", "fenced")


def test_another_run_on_the_same_taskset_is_told_and_blocks_nothing(argo: ArgoBench) -> None:
    first, _ = argo.submit()
    second, seen = argo.submit()
    assert first != second
    assert of(seen, events.AlreadyRunning).run == first
    argo.says(first, "Succeeded")
    _, seen = argo.submit()
    assert of(seen, events.AlreadyRunning).run == second


def test_the_same_key_and_request_is_the_same_run(argo: ArgoBench) -> None:
    run_id, _ = argo.submit(key="k")
    assert run_id == run_names.keyed_name("argo-harbor", "somebody", "k")
    again, seen = argo.submit(key="k")
    assert again == run_id
    assert seen == [events.RunFound(run_id)]
    argo.forget(run_id)
    assert argo.submit(key="k")[0] == run_id
    assert argo.api.named("workflows") == []
    assert argo.submit(key="other")[0] != run_id


def test_the_same_key_for_something_else_shows_what_differs(argo: ArgoBench) -> None:
    run_id, _ = argo.submit(key="k")
    with pytest.raises(Conflict) as conflict:
        argo.submit(argo.plan(attempts=3), key="k")
    assert (conflict.value.code, conflict.value.exit_status) == ("idempotency_conflict", 4)
    assert run_id in conflict.value.message
    assert [(item.key, item.message) for item in conflict.value.items] == [("n_attempts", "1 → 3")]
    argo.forget(run_id)
    with pytest.raises(Conflict):
        argo.submit(argo.plan("nop"), key="k")


def test_keys_of_other_users_are_other_runs(argo: ArgoBench) -> None:
    mine, _ = argo.submit(key="k")
    argo.api.user = "another"
    del argo.engine
    theirs, _ = argo.submit(key="k")
    assert mine != theirs


def test_two_who_submit_at_once_under_one_key(argo: ArgoBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find nothing first; the API server lets one create."""
    run_id, _ = argo.submit(key="k")
    looks = iter(["", argo.plan().digest])
    monkeypatch.setattr(argo_submit, "_earlier", lambda *_: next(looks))
    again, seen = argo.submit(key="k")
    assert again == run_id
    assert of(seen, events.RunFound).run == run_id
    looks = iter(["", argo.plan().digest])
    with pytest.raises(Conflict):
        argo.submit(argo.plan("nop"), key="k")


def test_an_answer_that_got_lost_is_looked_for(argo: ArgoBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    argo.api.troubles = [Trouble("POST", "/workflows", 504, "Timeout", after=True)]
    run_id, seen = argo.submit()
    assert argo.api.named("workflows") == [run_id]
    assert of(seen, events.RunAccepted).run == run_id


def test_an_unclear_failure_prints_the_key_to_repeat_with(
    argo: ArgoBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    argo.api.troubles = [Trouble("POST", "/workflows", 504, "Timeout")]
    with pytest.raises(PlatformError) as unclear:
        argo.submit()
    assert unclear.value.code == "platform_unreachable"
    key = unclear.value.hint.partition("--idempotency-key ")[2].partition(":")[0]
    run_id, _ = argo.submit(key=key)
    assert run_id in unclear.value.message


def host_plan(argo: ArgoBench) -> object:
    request = RunSpec.from_data(
        {"spec": {"target": {"source": {"name": "oracle"}, "env": {"KEY": "host:MY_KEY"}}}, "execution": {}}
    )
    return argo.plan(request=request)


def test_host_variables_go_into_a_secret_that_the_run_owns(argo: ArgoBench) -> None:
    planned = host_plan(argo)
    run_id, _ = argo.submit(planned, environ={"MY_KEY": "s3cr3t"})  # type: ignore[arg-type]
    secret = argo.api.objects[f"/api/v1/namespaces/argo-harbor/secrets/{run_id}-host"]
    assert secret["data"] == {"KEY": "czNjcjN0"}
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"]) == (run_id, argo.api.workflow(run_id)["metadata"]["uid"])
    assert "{{workflow.name}}-host" in json.dumps(argo.api.workflow(run_id))
    everything = b"".join(path.read_bytes() for path in argo.folder.rglob("store/**/*") if path.is_file())
    assert b"s3cr3t" not in everything + json.dumps(argo.api.workflow(run_id)).encode()


def test_a_secret_goes_away_with_a_run_that_was_not_taken(argo: ArgoBench) -> None:
    argo.api.troubles = [Trouble("POST", "/workflows", 403, "Forbidden", "quota exceeded")]
    with pytest.raises(PlatformError, match="quota exceeded") as refused:
        argo.submit(host_plan(argo), environ={"MY_KEY": "s3cr3t"})  # type: ignore[arg-type]
    assert refused.value.code == "platform_refused"
    assert argo.api.named("secrets") == ["argo-harbor-store"]


def test_a_variable_that_is_not_set_is_refused_before_anything_happens(argo: ArgoBench) -> None:
    with pytest.raises(Refused) as refused:
        argo.submit(host_plan(argo))  # type: ignore[arg-type]
    assert refused.value.code == "env_not_granted"
    assert not (argo.folder / "store").exists()


def test_flags_of_the_local_engine_and_plans_of_other_namespaces(argo: ArgoBench) -> None:
    planned = argo.plan()
    for options in (SubmitOptions(base="preview"), SubmitOptions(allow_unfenced_network=True)):
        with pytest.raises(UsageError, match="is for the local engine"):
            argo.engine.check(planned, argo.taskset, options=options)
    elsewhere = plan(
        argo.taskset,
        RunSpec.for_agent("oracle"),
        platform=BUILT_IN.model_copy(update={"namespace": "elsewhere"}),
    )
    with pytest.raises(PlatformError, match="namespace elsewhere"):
        argo.engine.check(elsewhere, argo.taskset, options=SubmitOptions())
