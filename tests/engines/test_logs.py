from __future__ import annotations

from pathlib import Path

from argo_harbor.engines.logs import MAX_BYTES, build_logs, trial_logs
from argo_harbor.model.base import canonical_json
from argo_harbor.model.build import BuildRecord
from argo_harbor.store import layout
from tests.support.records import digest_of, make_run


def test_logs_of_every_try_and_no_artifacts(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    first, second = run.start(0), run.start(0, 0, 1)
    for uid, number in ((first, 0), (second, 1)):
        folder = run.folder(0, 0, number, uid)
        for name in ("agent/oracle.txt", "trial.log", "artifacts/a.log", "verifier/reward.txt"):
            run.store.put(folder + name, f"{number}".encode())
    run.store.put(layout.request(run.run_id), canonical_json({"plan": run.plan}))
    found = list(trial_logs(run.run_id, run.store, 0))
    assert [(log.try_, log.file, log.text) for log in found] == [
        (0, "agent/oracle.txt", "0"),
        (0, "trial.log", "0"),
        (1, "agent/oracle.txt", "1"),
        (1, "trial.log", "1"),
    ]
    chosen = trial_logs(run.run_id, run.store, 0, attempt=0, file="artifacts/a.log")
    assert [log.text for log in chosen] == ["0", "1"]
    assert list(trial_logs(run.run_id, run.store, 0, attempt=1)) == []


def test_the_end_of_a_long_log(tmp_path: Path) -> None:
    run = make_run(tmp_path, 1)
    run.store.put(run.folder(0, 0, 0, run.start(0)) + "trial.log", b"x" * MAX_BYTES + b"the end")
    (log,) = trial_logs(run.run_id, run.store, 0)
    assert (len(log.text), log.text[-7:]) == (MAX_BYTES, "the end")


def test_how_images_were_built(tmp_path: Path) -> None:
    run = make_run(tmp_path, 2)
    run.store.put(layout.request(run.run_id), canonical_json({"plan": run.plan}))
    for index, ok in ((0, True), (1, False)):
        record = BuildRecord(
            image_key=digest_of(f"image {index}"),
            ok=ok,
            reference=f"r/env:{index}",
            digest="sha256:1" if ok else "",
            step="" if ok else "RUN exit 7",
            message="" if ok else "it failed",
        )
        run.store.put(layout.build_record(run.run_id, record.image_key, "pod"), record.canonical())
    run.store.put(layout.build_record(run.run_id, "0" * 64, "other"), b"no record")
    good, bad = build_logs(run.run_id, run.store)
    if "failed" in good.text:
        good, bad = bad, good
    assert good.text == "pushed r/env:0 sha256:1"
    assert bad.text == "RUN exit 7\nit failed"
    assert [log.text for log in build_logs(run.run_id, run.store, 1)] == [bad.text]
