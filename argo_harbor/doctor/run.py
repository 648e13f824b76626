"""All checks at once, in threads, and every trace of them removed in the end, also after Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import NamedTuple

from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError, Forbidden
from argo_harbor.doctor import argo, containers, installed, network, places, server, supplies
from argo_harbor.doctor.result import Result, failed, skipped
from argo_harbor.doctor.server import Question
from argo_harbor.doctor.visit import Stopped, Visit
from argo_harbor.model.platform import BUILT_IN, Platform


class Check(NamedTuple):
    """Something to look at, on its own thread."""

    lines: tuple[str, ...]
    """Names of its lines in the table, where it can say nothing else."""
    look: Callable[[], list[Result]]


class Line(NamedTuple):
    """A result, and how long its check took."""

    result: Result
    seconds: float


class Examination:
    """One run of the doctor: `lines` yields what each check finds as it ends; `order` says where each line
    belongs in the table."""

    def __init__(
        self, cluster: Cluster, platform: Platform | Result, *, quick: bool, seconds: float = 50
    ) -> None:
        """`platform` is the one in force, or what keeps it from being known: then only the API server is
        asked."""
        self._cluster = cluster
        self._visit = Visit(cluster, seconds=seconds)
        self._checks = list(self._plan(platform, quick=quick))
        self._open = set(self._checks)
        self.leftovers: list[str] = []
        """API paths of what could not be removed."""

    @property
    def waiting(self) -> tuple[str, ...]:
        """Names of the lines that are still to come."""
        return tuple(name for check in self._checks if check in self._open for name in check.lines)

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(name for check in self._checks for name in check.lines)

    def lines(self, tick: Callable[[], None] = lambda: None) -> Generator[Line]:
        """Look, and yield what is found; `tick` is called about twice a second.

        All traces are removed after the last line, when the generator is closed, and on any exception.
        """
        began = time.monotonic()
        try:
            with ThreadPoolExecutor(len(self._checks)) as threads:
                running = {threads.submit(_look, check): check for check in self._checks}
                try:
                    while running:
                        done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                        for future in done:
                            self._open.discard(running.pop(future))
                            for result in future.result():
                                yield Line(result, time.monotonic() - began)
                        tick()
                finally:
                    self._visit.stop()
        finally:
            self.leftovers = self._visit.leave()

    def _plan(self, platform: Platform | Result, *, quick: bool) -> Iterator[Check]:
        cluster, visit = self._cluster, self._visit
        yield Check(("kubernetes",), lambda: server.kubernetes_version(cluster))
        yield Check(("argo kinds",), lambda: server.argo_kinds(cluster))
        yield Check(("clock",), lambda: server.clock(cluster))
        known = platform if isinstance(platform, Platform) else BUILT_IN
        yield Check(("permissions",), lambda: server.permissions(cluster, known.store.secret))
        if isinstance(platform, Result):
            yield Check((installed.INSTALLATION,), lambda: [platform])
            return
        yield Check((installed.INSTALLATION,), lambda: installed.installation(cluster, platform))
        yield Check((installed.SECRETS,), lambda: installed.named_secrets(cluster, platform))
        yield Check((places.HERE, places.CLOCK), lambda: places.store_from_here(cluster, platform, visit.id))
        if quick:
            return
        yield Check((), self._tidy)
        pods = (Question("create", "", "pods"), Question("delete", "", "pods"), Question("list", "", "pods"))
        policies = (
            Question("create", "networking.k8s.io", "networkpolicies"),
            Question("delete", "networking.k8s.io", "networkpolicies"),
        )
        workflows = (
            Question("create", "argoproj.io", "workflows"),
            Question("delete", "argoproj.io", "workflows"),
            pods[2],
        )
        for lines, look, needs in (
            ((supplies.STORE, supplies.CLOCK, supplies.REGISTRY, supplies.DNS), supplies.supplies, pods),
            ((network.POLICY, network.OPEN), network.fence, (*pods, *policies)),
            ((containers.SIDECAR,), containers.native_sidecar, pods),
            (containers.NAMES, containers.images, pods),
            ((argo.CONTROLLER, argo.STEP, argo.NETWORK), argo.workflow, workflows),
        ):
            yield Check(lines, _with_rights(cluster, needs, lines, _bound(look, visit, platform)))

    def _tidy(self) -> list[Result]:
        self._visit.remove_stale()
        return []


def _bound(
    look: Callable[[Visit, Platform], list[Result]], visit: Visit, platform: Platform
) -> Callable[[], list[Result]]:
    return lambda: look(visit, platform)


def _with_rights(
    cluster: Cluster, needs: Sequence[Question], lines: tuple[str, ...], look: Callable[[], list[Result]]
) -> Callable[[], list[Result]]:
    """The check for who has the rights that its objects take; others get to know which they lack."""

    def ask_first() -> list[Result]:
        lacking = server.may_not(cluster, needs)
        if not lacking:
            return look()
        told = f"you may not {', '.join(map(str, lacking))}"
        return [skipped(name, told, "ask the namespace's admin to run the doctor") for name in lines]

    return ask_first


def _look(check: Check) -> list[Result]:
    """What a check finds; a cluster that says no is a finding too."""
    try:
        return check.look()
    except Stopped:
        return []
    except Forbidden as error:
        return [skipped(name, error.message, "ask the namespace's admin") for name in check.lines]
    except ClusterError as error:
        return [failed(name, error.message, "see the API server's own words") for name in check.lines]
