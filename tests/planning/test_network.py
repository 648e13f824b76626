from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argo_harbor.errors import Refused
from argo_harbor.model.base import canonical_json, sha256_hex
from argo_harbor.model.plan import PhaseRules
from argo_harbor.model.platform import Platform
from argo_harbor.model.profile import DENIED_RANGES, Profile
from argo_harbor.planning.hosts import HostSet, covers, expand
from tests.planning.support import OPEN, SITE, calling, part_of, places, plan_of, refused, spec

NOTHING = PhaseRules(mode="none")
PUBLIC = PhaseRules(mode="public")
CLOSED = Profile(name="closed")
STANDARD = Profile(
    name="standard",
    agent_setup_egress=("@debian",),
    verifier_egress=("@python", "git.example"),
    shared_verifier="open",
)
SOME = Profile(name="some", hosts=("*.allowed.example", "8.8.0.0/16"))


def hosts(*names: str) -> PhaseRules:
    return PhaseRules(mode="hosts", hosts=names)


def allow(*names: str) -> dict[str, Any]:
    return {"network_mode": "allowlist", "allowed_hosts": list(names)}


def test_a_public_task_gets_what_the_profile_leaves() -> None:
    closed = part_of(profile=CLOSED).rules
    assert (closed.setup, closed.agent, closed.verifier) == (NOTHING, NOTHING, NOTHING)
    assert closed.asked == "public"
    assert closed.narrowed
    assert closed.network_class == "none"
    opened = part_of(profile=OPEN).rules
    assert (opened.setup, opened.agent, opened.verifier) == (PUBLIC, PUBLIC, PUBLIC)
    assert not opened.narrowed
    assert opened.network_class == "internet"
    some = part_of(profile=SOME).rules
    assert some.agent == hosts("*.allowed.example", "8.8.0.0/16")
    assert some.narrowed


def test_no_network_is_nothing_whatever_the_profile_allows() -> None:
    rules = part_of({"environment": {"network_mode": "no-network"}}, profile=STANDARD).rules
    assert (rules.setup, rules.agent, rules.verifier) == (NOTHING, NOTHING, NOTHING)
    assert (rules.asked, rules.narrowed) == ("no-network", False)


def test_an_empty_allowlist_is_no_network() -> None:
    rules = part_of({"environment": allow()}, profile=CLOSED).rules
    assert (rules.agent, rules.asked) == (NOTHING, "no-network")


def test_an_allowlist_inside_the_profile_stays_as_it_is() -> None:
    rules = part_of({"environment": allow("b.allowed.example", "8.8.4.4")}, profile=SOME).rules
    assert rules.agent == hosts("8.8.4.4", "b.allowed.example")
    assert (rules.asked, rules.narrowed) == ("allowlist", False)


@pytest.mark.parametrize("table", ["environment", "agent", "verifier"])
def test_an_allowlist_outside_the_profile_is_refused_where_it_stands(table: str) -> None:
    config = {"verifier": {"environment_mode": "separate"}, "environment": {"network_mode": "no-network"}}
    config[table] = {**config.get(table, {}), **allow("in.allowed.example", "allowed.example")}
    found = refused(config, profile=SOME)
    assert places(found) == [("host_outside_profile", f"{table}.allowed_hosts")]
    assert "allowed.example is outside" in found[0].message
    assert (found[0].task, found[0].file) == ("acme/hello", "hello/task.toml")


def test_an_allowlist_of_a_step_and_of_a_separate_verifier() -> None:
    bad = allow("x.example")
    found = refused(
        {
            "steps": [
                {"name": "one", "agent": bad},
                {"name": "two", "verifier": {"environment": bad}},
                {"name": "three", "verifier": bad},
            ]
        },
        profile=SOME,
    )
    assert places(found) == [
        ("host_outside_profile", "steps[0].agent.allowed_hosts"),
        ("host_outside_profile", "steps[1].verifier.environment.allowed_hosts"),
        ("host_outside_profile", "steps[2].verifier.allowed_hosts"),
    ]
    assert places(refused({"verifier": {"environment": bad}}, profile=SOME)) == [
        ("host_outside_profile", "verifier.environment.allowed_hosts")
    ]


def test_setup_hosts_are_for_agents_that_install_and_grading_hosts_for_the_verifier() -> None:
    oracle = part_of(profile=STANDARD).rules
    assert oracle.setup == NOTHING
    assert oracle.agent == NOTHING
    assert oracle.verifier == hosts("*.files.example", "git.example", "packages.example")
    assert oracle.opened_for_grading == ("*.files.example", "git.example", "packages.example")
    codex = part_of(profile=STANDARD, request=calling()).rules
    assert codex.setup == hosts("mirror.example")
    assert codex.agent == hosts("llm.example")


def test_a_verifier_allowlist_may_name_grading_hosts() -> None:
    rules = part_of({"verifier": allow("packages.example")}, profile=STANDARD).rules
    assert rules.verifier == hosts("*.files.example", "git.example", "packages.example")


def test_model_hosts_open_in_the_agent_phase_only() -> None:
    rules = part_of({"environment": {"network_mode": "public"}}, profile=CLOSED, request=calling()).rules
    assert (rules.setup, rules.agent, rules.verifier) == (NOTHING, hosts("llm.example"), NOTHING)
    isolated = {"environment": {"network_mode": "no-network"}}
    assert part_of(isolated, profile=CLOSED, request=calling()).rules.agent == hosts("llm.example")


def test_no_network_and_a_model_that_browses_is_refused() -> None:
    found = refused({"agent": {"network_mode": "no-network"}}, request=calling("browsing"), platform=SITE)
    assert places(found) == [("closed_book_required", "agent")]
    assert part_of({"environment": {"network_mode": "public"}}, request=calling("browsing"))


def test_same_refuses_wider_grading_in_the_agents_container() -> None:
    config: dict[str, Any] = {"agent": {"network_mode": "no-network"}, "verifier": allow("a.allowed.example")}
    assert places(refused(config, profile=SOME)) == [("verifier_network_wider", "verifier")]
    config["verifier"]["environment_mode"] = "separate"
    rules = part_of(config, profile=SOME).rules
    assert rules.verifier == hosts("a.allowed.example")
    assert rules.opened_for_grading == ()


def test_open_and_kill_say_what_was_opened() -> None:
    config = {"agent": {"network_mode": "no-network"}}
    opened = part_of(config, profile=OPEN)
    assert opened.rules.opened_for_grading == ("@public",)
    assert not opened.kill_before_grading
    killing = OPEN.model_copy(update={"shared_verifier": "kill"})
    assert part_of(config, profile=killing).kill_before_grading
    assert not part_of(profile=killing).kill_before_grading


def test_steps_have_rules_of_their_own_and_setup_only_once() -> None:
    part = part_of(
        {"steps": [{"name": "one"}, {"name": "two", "agent": {"network_mode": "no-network"}}]}, profile=OPEN
    )
    first, second = (step.rules for step in part.steps)
    assert (first.setup, first.agent) == (PUBLIC, PUBLIC)
    assert (second.setup, second.agent, second.verifier) == (NOTHING, NOTHING, PUBLIC)
    assert second.opened_for_grading == ("@public",)
    assert (part.rules.setup, part.rules.agent) == (PUBLIC, PUBLIC)
    assert part.rules.opened_for_grading == ("@public",)


def test_an_undefined_group_names_the_key_to_set() -> None:
    found = refused(profile=STANDARD, platform=Platform())
    assert places(found) == [("group_undefined", "groups.debian"), ("group_undefined", "groups.python")]
    assert "set groups.debian" in found[0].hint


@pytest.mark.parametrize("host", ["10.1.2.3", "169.254.169.254", "fd00::/9", "127.0.0.2"])
def test_addresses_in_denied_ranges(host: str) -> None:
    denied = host != "127.0.0.2"
    everything = Profile(name="everything", hosts=("0.0.0.0/0", "::/0"))
    if denied:
        found = refused({"environment": allow(host)}, profile=everything)
        assert places(found) == [("host_outside_profile", "environment.allowed_hosts")]
        assert "always denied" in found[0].message
    else:
        assert part_of({"environment": allow(host)}, profile=everything).rules.agent == hosts(host)


def test_a_profile_or_model_inside_a_denied_range_is_refused_unless_the_platform_opens_it() -> None:
    private = Profile(name="private", hosts=("10.1.0.0/16",))
    assert places(refused(profile=private)) == [("invalid_profile", "hosts")]
    inside = SITE.model_copy(update={"undeny": ("10.0.0.0/8",)})
    plan = plan_of(profile=private, platform=inside)
    assert plan.parts[0].rules.agent == hosts("10.1.0.0/16")
    assert "10.0.0.0/8" not in plan.head.denied
    literally = SITE.model_copy(update={"undeny": ("10.1.0.0/16",)})
    assert places(refused(profile=private, platform=literally)) == [("invalid_profile", "hosts")]
    models = Platform.from_data({"models": {"coder": {"base_url": "http://10.1.2.3:8000", "model": "m"}}})
    assert places(refused(request=calling(), platform=models)) == [("invalid_platform", "models")]


def test_a_broken_host_of_a_profile_or_model() -> None:
    assert places(refused(profile=Profile(name="odd", hosts=("https://x",)))) == [
        ("invalid_profile", "hosts")
    ]
    models = Platform.from_data({"models": {"coder": {"base_url": "http://_x_/", "model": "m"}}})
    assert places(refused(request=calling(), platform=models)) == [("invalid_platform", "models.coder.hosts")]


def test_denied_is_the_built_in_list_and_the_profiles() -> None:
    profile = Profile(name="deny", deny=("8.8.8.0/24",))
    assert plan_of(profile=profile).head.denied == (*DENIED_RANGES, "8.8.8.0/24")


def test_the_digest_is_of_phases_and_denied_ranges() -> None:
    plan = plan_of(profile=SOME)
    rules = plan.parts[0].rules
    body = {
        "setup": json.loads(rules.setup.model_dump_json()),
        "agent": json.loads(rules.agent.model_dump_json()),
        "verifier": json.loads(rules.verifier.model_dump_json()),
        "denied": list(plan.head.denied),
    }
    assert rules.digest == sha256_hex(canonical_json(body))


NAMES = ["a.one.example", "b.one.example", "*.one.example", "two.example", "8.8.8.8", "8.8.0.0/16", "9.9.9.9"]
POLICY = st.one_of(
    st.just({}),
    st.just({"network_mode": "public"}),
    st.just({"network_mode": "no-network"}),
    st.lists(st.sampled_from(NAMES), max_size=3).map(lambda names: allow(*names)),
)
ENTRIES = st.lists(st.sampled_from([*NAMES, "@python", "@public"]), max_size=3).map(tuple)


@settings(max_examples=120, deadline=None)
@given(
    environment=POLICY,
    agent=POLICY,
    verifier=POLICY,
    own=st.none() | POLICY,
    wide=ENTRIES,
    setup=ENTRIES,
    grading=ENTRIES,
    shared=st.sampled_from(["same", "open", "kill"]),
    calls_model=st.booleans(),
)
def test_a_profile_only_narrows(
    environment: dict[str, Any],
    agent: dict[str, Any],
    verifier: dict[str, Any],
    own: dict[str, Any] | None,
    wide: tuple[str, ...],
    setup: tuple[str, ...],
    grading: tuple[str, ...],
    shared: Any,
    calls_model: bool,
) -> None:
    """Whatever is planned lies in the profile and the phase's extras, and nothing opens without a wish."""
    profile = Profile(
        name="p", hosts=wide, agent_setup_egress=setup, verifier_egress=grading, shared_verifier=shared
    )
    config = {"environment": environment, "agent": agent, "verifier": {**verifier}}
    if own is not None:
        config["verifier"]["environment"] = own
    request = calling() if calls_model else spec()
    codes = set()
    try:
        plan = plan_of(config, profile=profile, request=request)
    except Refused as error:
        codes = {item.code for item in error.items}
    if codes:
        assert codes <= {"host_outside_profile", "verifier_network_wider"}
        return
    rules = plan.parts[0].rules
    allowed = _union(wide)
    model = HostSet(frozenset({"llm.example"} if calls_model else ()))
    for phase, bound in (
        (rules.setup, allowed | _union(setup if calls_model else ())),
        (rules.agent, allowed | model),
        (rules.verifier, allowed | _union(grading)),
    ):
        assert phase.mode != "public" or bound.public
        assert all(bound.covers(host) for host in phase.hosts)
        assert (phase.mode == "hosts") == bool(phase.hosts)
        assert list(phase.hosts) == sorted(set(phase.hosts))
    effective_agent = agent or environment
    if effective_agent.get("network_mode") == "no-network":
        assert set(rules.agent.hosts) <= model.entries
        assert rules.agent.mode != "public"
    if effective_agent.get("allowed_hosts"):
        assert all(
            host in model.entries or any(covers(w, host) for w in effective_agent["allowed_hosts"])
            for host in rules.agent.hosts
        )
    assert set(DENIED_RANGES) <= set(plan.head.denied)


def _union(entries: tuple[str, ...]) -> HostSet:
    union = HostSet()
    for entry in entries:
        union |= expand(entry, SITE.groups)
    return union
