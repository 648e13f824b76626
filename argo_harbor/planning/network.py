"""What a sandbox may reach in each phase of a trial: the only home of network rules.

The profile narrows what the task wishes for (`planning.wishes`) and adds what it allows in a phase beyond the
task: setup hosts while an agent is installed, grading hosts while the verifier runs, the model's hosts while
the agent works. A phase that wishes for nothing gets none of that, except the hosts of a closed-book model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.model.plan import NetworkRules, PhaseRules
from argo_harbor.model.platform import Platform, ServedModel
from argo_harbor.model.profile import DENIED_RANGES, Profile, SharedVerifier
from argo_harbor.model.task_network import normalize_host
from argo_harbor.planning.hosts import HostSet, UndefinedGroupError, denied_by, expand
from argo_harbor.planning.report import Report
from argo_harbor.planning.wishes import Asked, Wish, Wishes

_WIDTH: tuple[Asked, ...] = ("no-network", "allowlist", "public")
_NOTHING = PhaseRules(mode="none")
_NO_HOSTS = HostSet()


@dataclass(frozen=True)
class Allowed:
    """What profile and platform allow, groups expanded."""

    hosts: HostSet
    setup: HostSet
    """Beyond `hosts` while the agent is installed; empty for an agent that installs nothing."""
    verifier: HostSet
    """Beyond `hosts` while grading."""
    model: HostSet
    """Of the model that the agent calls."""
    closed_book: bool
    """True when the model may be called by an agent that has no network otherwise."""
    denied: tuple[str, ...]
    shared_verifier: SharedVerifier
    profile: str
    """Its name, for messages."""


class Planned(NamedTuple):
    """Rules with what the profile's `shared_verifier` makes of them."""

    rules: NetworkRules
    kill: bool
    """True when everything in the sandbox is killed before grading."""


def denied_ranges(profile: Profile, platform: Platform) -> tuple[str, ...]:
    """Ranges denied in every phase; `undeny` opens one only where it is spelled alike."""
    ranges = dict.fromkeys((*DENIED_RANGES, *profile.deny))
    return tuple(text for text in ranges if text not in platform.undeny)


def model_hosts(model: ServedModel) -> tuple[str, ...]:
    """Hosts to open for a model: the listed ones, else the host of its URL. Raises ValueError."""
    return tuple(normalize_host(host) for host in model.hosts or (urlsplit(model.base_url).hostname or "",))


def allowed_hosts(
    profile: Profile,
    platform: Platform,
    report: Report,
    *,
    installs: bool,
    model: Iterable[str] = (),
    closed_book: bool = False,
) -> Allowed:
    """Expand the profile's hosts. Reports `group_undefined`, and entries that can never be reached."""
    denied = denied_ranges(profile, platform)

    def expanded(field: str, entries: Sequence[str]) -> HostSet:
        found = _NO_HOSTS
        for entry in entries:
            try:
                found |= expand(entry, platform.groups)
            except UndefinedGroupError as error:
                report.refuse(
                    "group_undefined",
                    f"profile {profile.name} uses {entry}, which the platform does not define",
                    key=f"groups.{error.group}",
                    hint=f'set groups.{error.group} = ["host", …] in the platform file',
                )
            except ValueError as error:
                report.refuse("invalid_profile", str(error), key=field, hint="name hosts, @groups or @public")
        _refuse_denied(found.entries, denied, report, code="invalid_profile", key=field)
        return found

    hosts = expanded("hosts", profile.hosts)
    setup = expanded("agent_setup_egress", profile.agent_setup_egress)
    verifier = expanded("verifier_egress", profile.verifier_egress)
    called = HostSet(frozenset(model))
    _refuse_denied(called.entries, denied, report, code="invalid_platform", key="models")
    return Allowed(
        hosts=hosts,
        setup=setup if installs else _NO_HOSTS,
        verifier=verifier,
        model=called,
        closed_book=closed_book,
        denied=denied,
        shared_verifier=profile.shared_verifier,
        profile=profile.name,
    )


def _refuse_denied(
    entries: Iterable[str], denied: Sequence[str], report: Report, *, code: str, key: str
) -> None:
    for entry in sorted(entries):
        if inside := denied_by(entry, denied):
            report.refuse(
                code,
                f"{entry} lies in {inside}, which is always denied",
                key=key,
                hint=f'name a public host, or let the platform\'s admin set undeny = ["{inside}"]',
            )


class Networks:
    """Plans the rules of tasks. Tasks of a suite mostly wish for the same, so each wish is planned once."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._known: dict[tuple[Wishes, bool], Planned] = {}

    def plan(self, wishes: Wishes, report: Report, *, first: bool = True) -> Planned:
        """Rules of one step. `first` is false for later steps, which have no setup of their own.

        Reports `host_outside_profile`, `verifier_network_wider` and `closed_book_required`.
        """
        known = self._known.get((wishes, first))
        if known is not None:
            return known
        before = len(report.findings)
        planned = self._plan(wishes, report, first=first)
        if len(report.findings) == before:
            self._known[wishes, first] = planned
        return planned

    def together(self, steps: Sequence[Planned]) -> Planned:
        """What a whole multi-step task may reach: in each phase the widest of its steps."""
        rules = [step.rules for step in steps]
        asked = max((each.asked for each in rules), key=_WIDTH.index)
        phases = [
            _as_rules(_union(getattr(each, phase) for each in rules))
            for phase in ("setup", "agent", "verifier")
        ]
        opened = tuple(sorted({host for each in rules for host in each.opened_for_grading}))
        whole = self._rules(phases, asked, narrowed=any(each.narrowed for each in rules), opened=opened)
        return Planned(whole, any(step.kill for step in steps))

    def _plan(self, wishes: Wishes, report: Report, *, first: bool) -> Planned:
        allowed = self._allowed
        before = len(report.findings)
        setup = self._phase(wishes.setup, allowed.setup, report) if first else _NO_HOSTS
        agent = self._phase(wishes.agent, _NO_HOSTS, report)
        if wishes.agent.mode != "no-network" or allowed.closed_book:
            agent |= allowed.model
        elif allowed.model.entries:
            report.refuse(
                "closed_book_required",
                "the agent calls a model, the task allows it no network, and the model is not closed_book",
                key=wishes.agent.key,
                hint="use a model with closed_book = true in the platform file, or leave the task out",
            )
        verifier = self._phase(wishes.verifier, allowed.verifier, report)
        opened = verifier.less(agent) if wishes.shared else ()
        # Hosts that are refused already would only be named twice.
        if opened and allowed.shared_verifier == "same" and len(report.findings) == before:
            report.refuse(
                "verifier_network_wider",
                f"grading needs {_listed(opened)}, which the agent in the same container may not reach",
                key=wishes.verifier.key,
                hint="use a separate verifier, or a profile whose shared_verifier is open or kill",
            )
        phases = [_as_rules(hosts) for hosts in (setup, agent, verifier)]
        wanted = ((wishes.setup, setup), (wishes.agent, agent), (wishes.verifier, verifier))
        rules = self._rules(
            phases,
            max((wish.mode for wish in wishes[:3]), key=_WIDTH.index),
            narrowed=any(
                wish.mode == "public" and not got.public for wish, got in (wanted if first else wanted[1:])
            ),
            opened=opened,
        )
        return Planned(rules, bool(opened) and allowed.shared_verifier == "kill")

    def _phase(self, wish: Wish, extra: HostSet, report: Report) -> HostSet:
        if wish.mode == "no-network":
            return _NO_HOSTS
        if wish.mode == "public":
            return self._allowed.hosts | extra
        within = self._allowed.hosts | extra
        key = f"{wish.key}.allowed_hosts"
        for host in wish.hosts:
            if not within.covers(host):
                report.refuse(
                    "host_outside_profile",
                    f"{host} is outside the hosts of profile {self._allowed.profile}",
                    key=key,
                    hint="choose a profile that allows it (argo-harbor profiles list), or remove the host",
                )
        _refuse_denied(wish.hosts, self._allowed.denied, report, code="host_outside_profile", key=key)
        return HostSet(frozenset(wish.hosts)) | extra

    def _rules(
        self, phases: Sequence[PhaseRules], asked: Asked, *, narrowed: bool, opened: tuple[str, ...]
    ) -> NetworkRules:
        setup, agent, verifier = phases
        body = {
            "setup": setup.as_data(),
            "agent": agent.as_data(),
            "verifier": verifier.as_data(),
            "denied": list(self._allowed.denied),
        }
        return NetworkRules(
            setup=setup,
            agent=agent,
            verifier=verifier,
            asked=asked,
            narrowed=narrowed,
            opened_for_grading=opened,
            digest=sha256_hex(canonical_json(body)),
        )


def _as_rules(hosts: HostSet) -> PhaseRules:
    if hosts.public:
        return PhaseRules(mode="public")
    return PhaseRules(mode="hosts", hosts=tuple(sorted(hosts.entries))) if hosts.entries else _NOTHING


def _union(phases: Iterable[PhaseRules]) -> HostSet:
    union = _NO_HOSTS
    for phase in phases:
        union |= HostSet(frozenset(phase.hosts), public=phase.mode == "public")
    return union


def _listed(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:3])
    return f"{shown} and {len(hosts) - 3} more" if len(hosts) > 3 else shown
