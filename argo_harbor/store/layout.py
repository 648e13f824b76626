"""The keys of the store: where everything of a run lies. The only place that spells them.

tasks/<digest>.tar.gz
tasksets/<name>/<digest>.json
images/<image key>/ready.json, failed.json
plans/<digest>/plan.json, tasks/<index>.json, parts/<nnn>.yaml
builds/<digest>.json
runs/<run>/request.json
runs/<run>/workflows/<uid>
runs/<run>/builds/<image key>/<pod uid>.json
runs/<run>/trials/<index>/<attempt>/<try>-<uid, 8 hex>/started.json … trial.json
runs/<run>/marks/cancel/<uuid>.json
runs/<run>/marks/start/<index>-<attempt>-<try>-<uid, 8 hex>
runs/<run>/agent-eval-results/…
runs/<run>/state.json
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BUNDLE = "agent-eval-results"
STARTED = "started.json"
TRIAL = "trial.json"
AGENT_HALF = "agent.json"
PHASE = "phase.json"
"""Where a running try is, `{"phase", "at"}`: overwritten at each phase, of no use once it has ended."""

_RUN_ID = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_TRY = re.compile(r"^runs/([^/]+)/trials/(\d+)/(\d+)/(\d+)-([0-9a-f]{8})/(.+)$")


@dataclass(frozen=True, slots=True)
class TryKey:
    """Which try a key of the store belongs to."""

    run: str
    index: int
    attempt: int
    try_: int
    uid: str
    """First 8 hex of the pod's uid."""
    file: str
    """The rest of the key: a path inside the try's folder."""


def task_archives() -> str:
    return "tasks/"


def task_archive(digest: str) -> str:
    return f"tasks/{digest}.tar.gz"


def taskset(name: str, digest: str) -> str:
    return f"tasksets/{name}/{digest}.json"


def tasksets(name: str = "") -> str:
    return f"tasksets/{name}/" if name else "tasksets/"


def images() -> str:
    return "images/"


def image_ready(image_key: str) -> str:
    """Record of the last build that made the image, or found it."""
    return f"images/{image_key}/ready.json"


def image_failed(image_key: str) -> str:
    """Record of the last build that failed. Says nothing about a build that came after it."""
    return f"images/{image_key}/failed.json"


def build_plan(digest: str) -> str:
    """Plan of a workflow that only builds images."""
    return f"builds/{digest}.json"


def plan_folder(digest: str) -> str:
    return f"plans/{digest}/"


def plan_head(digest: str) -> str:
    return f"plans/{digest}/plan.json"


def plan_task(digest: str, index: int) -> str:
    return f"plans/{digest}/tasks/{index}.json"


def plan_part(digest: str, number: int) -> str:
    return f"plans/{digest}/parts/{number:03}.yaml"


def is_run_id(text: str) -> bool:
    """True for what can be the name of a workflow, and so of a run. Others make no keys."""
    return bool(_RUN_ID.fullmatch(text))


def runs() -> str:
    return "runs/"


def run(run_id: str) -> str:
    return f"runs/{run_id}/"


def request(run_id: str) -> str:
    return f"runs/{run_id}/request.json"


def state(run_id: str) -> str:
    return f"runs/{run_id}/state.json"


def workflow_mark(run_id: str, uid: str) -> str:
    return f"runs/{run_id}/workflows/{uid}"


def workflow_marks(run_id: str) -> str:
    return f"runs/{run_id}/workflows/"


def build_record(run_id: str, image_key: str, uid: str) -> str:
    return f"runs/{run_id}/builds/{image_key}/{uid}.json"


def builds(run_id: str) -> str:
    return f"runs/{run_id}/builds/"


def cancel_mark(run_id: str, uid: str) -> str:
    return f"runs/{run_id}/marks/cancel/{uid}.json"


def cancel_marks(run_id: str) -> str:
    return f"runs/{run_id}/marks/cancel/"


def start_marks(run_id: str) -> str:
    return f"runs/{run_id}/marks/start/"


def start_mark(run_id: str, started: str) -> str:
    """Mark of one of the run's first tries, whose `started.json` has the key `started`."""
    folder = started.rpartition("/")[0].removeprefix(trials(run_id))
    return f"{start_marks(run_id)}{folder.replace('/', '-')}"


def trials(run_id: str) -> str:
    return f"runs/{run_id}/trials/"


def attempt(run_id: str, index: int, number: int) -> str:
    return f"runs/{run_id}/trials/{index}/{number}/"


def try_folder(run_id: str, index: int, attempt_number: int, try_number: int, uid: str) -> str:
    """Folder of one try, with a trailing slash. `uid` may be a whole pod uid: its first 8 hex are used."""
    return f"{attempt(run_id, index, attempt_number)}{try_number}-{uid.replace('-', '')[:8]}/"


def bundle(run_id: str, file: str = "") -> str:
    return f"runs/{run_id}/{BUNDLE}/{file}"


def parse_try(key: str) -> TryKey | None:
    """Take a key below a try's folder apart; None for any other key."""
    found = _TRY.match(key)
    if found is None:
        return None
    run_id, index, number, try_number, uid, file = found.groups()
    return TryKey(run_id, int(index), int(number), int(try_number), uid, file)
