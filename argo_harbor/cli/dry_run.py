"""`argo-harbor runs submit --dry-run`: one table of what was looked at, and what only running can show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from argo_harbor.cli import output
from argo_harbor.cli.show import brief
from argo_harbor.errors import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from argo_harbor.cli.request import Planned
    from argo_harbor.engines.base import Engine, SubmitOptions
    from argo_harbor.model.taskset import Warned

_CANARY = (
    "images can be pulled on the nodes and their users and shells work",
    "the agent installs with the hosts that the profile opens",
    "the model answers, and takes the key",
    "verifiers find what they need",
    "how long a trial takes",
)


def show_dry_run(
    planned: Planned, engine: Engine, wanted: SubmitOptions, warned: Iterable[Warned], *, as_json: bool
) -> int:
    """Print what a submit would meet. 0 when nothing stands against it, else 1."""
    from argo_harbor.model.documents import DryRunDocument, DryRunLine, Item

    plan = planned.plan
    found = engine.dry_run(plan, planned.taskset, options=wanted)
    ok = all(look.state != "failed" for look in found)
    if as_json:
        lines = tuple(DryRunLine(what=look.what, state=look.state, detail=look.detail) for look in found)
        output.document(
            DryRunDocument(
                ok=ok, plan_digest=plan.digest, lines=lines, untested=_CANARY, warnings=Item.each(warned)
            )
        )
        return EXIT_OK if ok else EXIT_FAILED
    output.table(["Looked at", "", "Result"], ([look.what, look.state, brief(look.detail)] for look in found))
    output.line("\nOnly a canary shows (add --canary 1) whether:")
    for text in _CANARY:
        output.line(f"  {text}")
    trials = len(plan.parts) * plan.head.n_attempts
    verdict = "can be submitted" if ok else "cannot be submitted like this"
    output.line(f"\n{len(plan.parts)} tasks, {trials} trials: {verdict}; nothing was started")
    output.line(f"Plan {plan.digest}")
    return EXIT_OK if ok else EXIT_FAILED
