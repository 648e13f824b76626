from __future__ import annotations

from argo_harbor.store import layout


def test_every_file_of_a_try_leads_back_to_it() -> None:
    folder = layout.try_folder("run-1", 7, 2, 1, "0f8c1a2b-1111-2222-3333-444455556666")
    assert folder == "runs/run-1/trials/7/2/1-0f8c1a2b/"
    found = layout.parse_try(folder + "verifier/reward.txt")
    assert found is not None
    assert (found.run, found.index, found.attempt, found.try_, found.uid, found.file) == (
        "run-1",
        7,
        2,
        1,
        "0f8c1a2b",
        "verifier/reward.txt",
    )
    assert folder.startswith(layout.attempt("run-1", 7, 2))
    assert folder.startswith(layout.trials("run-1"))


def test_other_keys_belong_to_no_try() -> None:
    for key in (
        "runs/r/state.json",
        "runs/r/trials/1/0/",
        "runs/r/trials/x/0/0-00000000/a",
        "tasks/t.tar.gz",
    ):
        assert layout.parse_try(key) is None


def test_keys() -> None:
    digest = "ab" * 32
    assert layout.task_archive(digest) == f"tasks/{digest}.tar.gz"
    assert layout.taskset("suite", digest) == f"tasksets/suite/{digest}.json"
    assert layout.tasksets("suite") == "tasksets/suite/"
    assert layout.plan_head(digest) == f"plans/{digest}/plan.json"
    assert layout.plan_task(digest, 3) == f"plans/{digest}/tasks/3.json"
    assert layout.plan_part(digest, 3) == f"plans/{digest}/parts/003.yaml"
    assert layout.bundle("run-1", "run.json") == "runs/run-1/agent-eval-results/run.json"
    assert layout.build_record("run-1", digest, "u").startswith(layout.builds("run-1"))
    assert layout.cancel_mark("run-1", "u").startswith(layout.cancel_marks("run-1"))
    assert layout.state("run-1").startswith(layout.run("run-1"))
    assert layout.request("run-1") == "runs/run-1/request.json"
    assert layout.workflow_mark("run-1", "u") == "runs/run-1/workflows/u"
    assert layout.run("run-1").startswith(layout.runs())
