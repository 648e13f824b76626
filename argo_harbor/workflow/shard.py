"""The parent of a run that is too large for one Workflow: steps that create its parts one after another.

One at a time, so that the run's cap holds. A part's step ends when the part ends, whatever became of it,
and the next one follows; only the gate behind the canary's part can end the chain. The parent alone merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from argo_harbor.model.plan import RunPlan
from argo_harbor.workflow import names
from argo_harbor.workflow.entries import dag_template, ended
from argo_harbor.workflow.objects import DAGTask, Template
from argo_harbor.workflow.pods import ACCOUNT_PATCH, WHOLE, retries, runner
from argo_harbor.workflow.text import inputs, parameter

# It only follows: giving up on a part that still runs would let the merge begin beside it.
_TRIES = 10
# More parts than fit in one DAG stand in chunks of this many.
_CHUNK = 150


def shard_template(plan: RunPlan) -> Template:
    """Creates one part from the plan's `parts/` in the store and follows it; a retry finds the part by its
    name."""
    return {
        "name": names.SHARD,
        "inputs": {"parameters": [{"name": "part"}]},
        "metadata": {"labels": {names.NET_LABEL: names.NET_SYSTEM}},
        "serviceAccountName": names.SHARD_ACCOUNT,
        "automountServiceAccountToken": True,
        "podSpecPatch": ACCOUNT_PATCH,
        "retryStrategy": {**retries(plan), "limit": str(_TRIES)},
        "container": runner(
            plan, "shard", WHOLE, arguments=["--part", inputs("part"), "--try", "{{retries}}"]
        ),
    }


def chain(parts: int, *, canary_parts: int, first: str) -> list[Template]:
    """`main` and, if needed, its chunks: the steps for `parts` parts, the canary's before the gate.

    `first` is what the first step depends on.
    """
    shards = [_entry(number) for number in range(parts)]
    head, rest = shards[:canary_parts], shards[canary_parts:]
    if head:
        head.append({"name": names.GATE, "template": names.GATE})
    if len(head) + len(rest) <= _CHUNK:
        return [dag_template(names.MAIN, _in_order([*head, *rest], first))]
    chunks = [rest[start : start + _CHUNK] for start in range(0, len(rest), _CHUNK)]
    titles = [names.chunk_name(number) for number in range(len(chunks))]
    entries: list[DAGTask] = [{"name": title, "template": title} for title in titles]
    return [
        dag_template(names.MAIN, _in_order([*head, *entries], first)),
        *(dag_template(title, _in_order(chunk, "")) for title, chunk in zip(titles, chunks, strict=True)),
    ]


def _entry(number: int) -> DAGTask:
    return {
        "name": names.shard_name(number),
        "template": names.SHARD,
        "arguments": {"parameters": [parameter("part", f"{number:03}")]},
    }


def _in_order(entries: Sequence[DAGTask], first: str) -> list[DAGTask]:
    ordered: list[DAGTask] = [{**entries[0], "depends": first} if first else entries[0]]
    for before, entry in pairwise(entries):
        # Nothing may pass a gate that said no; a part that failed holds nobody up.
        depends = f"{names.GATE}.Succeeded" if before["name"] == names.GATE else ended(before["name"])
        ordered.append({**entry, "depends": depends})
    return ordered
