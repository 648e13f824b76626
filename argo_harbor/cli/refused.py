"""`--skip-refused`: what to do without the tasks that nobody can plan or run."""

from __future__ import annotations

from collections.abc import Callable

from argo_harbor.errors import Finding, Refused
from argo_harbor.planning.report import Refusals

_OF_STATE = frozenset({"image_not_built"})
"""Refusals that say what to do first, and nothing against the tasks."""


def without_refused[Made, Answer](
    make: Callable[[Refusals], Made], use: Callable[[Made], Answer], *, skip: bool
) -> tuple[Made, Answer]:
    """Make a plan and use it; with `skip`, again without the tasks that its user refuses.

    `make` is given what was refused so far. Raises Refused where nothing may be left out, or nothing of it
    would help.
    """
    refused: dict[str, list[Finding]] = {}
    while True:
        made = make(refused)
        try:
            return made, use(made)
        except Refused as refusal:
            more: dict[str, list[Finding]] = {}
            for item in refusal.items:
                more.setdefault(item.task, []).append(item)
            if not skip or refusal.code in _OF_STATE or "" in more or more.keys() <= refused.keys():
                raise
            refused |= more
