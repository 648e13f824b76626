"""What holds for every compiled run, whatever its tasks: checked on runs of all shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argo_harbor.errors import Refused, UsageError
from argo_harbor.model.plan import AgentPlan, RunPlan, TaskPlan
from argo_harbor.workflow import compile as compiling
from argo_harbor.workflow.compile import compile_workflow
from argo_harbor.workflow.emit import to_yaml
from argo_harbor.workflow.limits import DISPLAY_NAME_ANNOTATION, MAX_WORKFLOW_BYTES, breaches, size
from argo_harbor.workflow.text import PLAIN
from tests.support import workflows
from tests.support.plans import built, prebuilt, resources, run_plan, task_plan
from tests.workflow.test_goldens import three

Object = workflows.Object

OWN_TAGS = {
    "{{item}}",
    "{{retries}}",
    "{{workflow.name}}",
    "{{workflow.uid}}",
    "{{workflow.parameters.run}}",
    "{{workflow.parameters.workflow}}",
}


@st.composite
def run_plans(draw: st.DrawFn) -> RunPlan:
    """Plans of a few or of hundreds of tasks, with few or many images, shapes, attempts and canaries."""
    count = draw(st.sampled_from((1, 2, 7, 40, 120, 210, 330)))
    images = draw(st.sampled_from((1, 3, count)))
    shapes = draw(st.sampled_from((1, 4, 160)))
    separate = draw(st.sampled_from((0, 1, 3)))
    verifier_images = draw(st.sampled_from((1, 5, count)))
    ready = draw(st.sampled_from((0, 1, 4)))
    parts = [
        task_plan(
            index * 3,
            image=prebuilt() if ready and index % ready == 0 else built(f"image {index % images}"),
            verifier_image=(
                built(f"tests {index % verifier_images}") if separate and index % separate == 0 else None
            ),
            sandbox=resources(memory_mb=1024 + index % shapes),
            network="none" if index % 5 else "public",
        )
        for index in range(count)
    ]
    chosen = draw(st.sampled_from((0, 1, 10, count)))
    return run_plan(
        parts,
        attempts=draw(st.sampled_from((1, 1, 3, 60))),
        canary=[part.index for part in parts[::2]][:chosen],
    )


def compiled(plan: RunPlan) -> list[Object]:
    return [dict(document) for document in compile_workflow(plan)]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run_plans())
def test_every_run(plan: RunPlan) -> None:
    documents = compiled(plan)
    for document in documents:
        assert breaches(document) == []  # type: ignore[arg-type]  # a plain dict here
        assert size(document).total <= MAX_WORKFLOW_BYTES  # type: ignore[arg-type]
        check_parameters(document)
        check_shape(document)
    check_trials(plan, documents)
    check_builds(plan, documents)
    check_order(plan, documents)


def check_parameters(document: Object) -> None:
    for _, entry in workflows.entries(document):
        for value in workflows.arguments(entry).values():
            assert PLAIN.fullmatch(value) or workflows.TAGS.fullmatch(value)
    inputs = {
        f"{{{{inputs.parameters.{each['name']}}}}}"
        for template in workflows.templates(document).values()
        for each in template.get("inputs", {}).get("parameters", [])
    }
    for text in workflows.strings(document):
        assert set(workflows.TAGS.findall(text)) <= OWN_TAGS | inputs
        assert text.count("{{") == len(workflows.TAGS.findall(text))


def check_shape(document: Object) -> None:
    spec = workflows.spec_of(document)
    known = workflows.templates(document)
    if "onExit" in spec:
        assert "container" in known[spec["onExit"]]
        assert "retryStrategy" not in known[spec["onExit"]]
    for template in known.values():
        assert not {"hooks", "failFast", "parallelism", "onExit", "timeout"} & template.keys()
        assert DISPLAY_NAME_ANNOTATION not in template.get("annotations", {})
        if "dag" in template:
            assert template["dag"]["failFast"] is False
            assert "activeDeadlineSeconds" not in template
        if "container" in template:
            container = template["container"]
            assert container["command"]
            assert container["securityContext"]["runAsNonRoot"]
            assert container["resources"]["limits"]
            assert "activeDeadlineSeconds" in template or template["name"] == "shard"
    for _, entry in workflows.entries(document):
        assert not {"hooks", "onExit", "continueOn", "withItems", "withParam", "when"} & entry.keys()
        # An entry brings every parameter that its template asks for and has no value for.
        asked = known[entry["template"]].get("inputs", {}).get("parameters", [])
        given_ = workflows.arguments(entry).keys()
        assert {each["name"] for each in asked if "value" not in each} <= given_
        assert given_ <= {each["name"] for each in asked}


def check_trials(plan: RunPlan, documents: list[Object]) -> None:
    planned = {(part.index, attempt) for part in plan.parts for attempt in range(plan.head.n_attempts)}
    found = workflows.trials(documents)
    assert found.keys() == planned
    assert set(found.values()) == {1}
    for document in documents:
        for _, entry in workflows.trial_entries(document):
            part = plan.part(int(workflows.arguments(entry)["index"]))
            assert workflows.arguments(entry)["image"] == part.images.agent.reference
            verifier = part.images.verifier
            assert workflows.arguments(entry).get("verifier-image") == (verifier and verifier.reference)


def check_builds(plan: RunPlan, documents: list[Object]) -> None:
    """Every trial waits for the builds of its own images and for no other."""
    for document in documents:
        builds = {
            (where, entry["name"]): built_key(plan, workflows.arguments(entry))
            for where, entry in workflows.entries(document)
            if entry["template"] == "build"
        }
        for where, entry in workflows.trial_entries(document):
            waited = {builds[where, name] for name in waits_for(entry) if (where, name) in builds}
            if where != "main":
                chunk = next(each for at, each in workflows.entries(document) if each["name"] == where)
                waited |= {builds["main", name] for name in waits_for(chunk) if ("main", name) in builds}
            part = plan.part(int(workflows.arguments(entry)["index"]))
            images = [image for image in (part.images.agent, part.images.verifier) if image is not None]
            assert waited == {image.key for image in images if image.kind == "build"}


def check_order(plan: RunPlan, documents: list[Object]) -> None:
    """Nothing starts before the network is fenced; with a canary, nothing else before the gate."""
    canary = set(plan.head.canary)
    gated = bool(canary) and len(canary) < len(plan.parts)
    for number, document in enumerate(documents):
        main = {entry["name"]: entry for where, entry in workflows.entries(document) if where == "main"}
        assert ("gate" in main) == (gated and number == 0)
        # Argo starts leaves by name: the watch must get its place before the pods that it watches.
        assert (min(main) == "A--watch") == (number == 0)
        for name, entry in main.items():
            before = ancestors(main, name)
            if name != "A--watch" and not name.startswith("network-") and len(documents) == 1:
                assert {"network-base", "network-internet"} <= before
            if (
                "gate" in main
                and name != "gate"
                and entry["template"] not in ("network-base", "network-internet")
            ):
                indexes = trials_below(document, entry)
                assert not indexes or ("gate" in before) == (not indexes <= canary)
                assert not indexes or not (indexes & canary and indexes - canary)


def waits_for(entry: Object) -> set[str]:
    words = entry.get("depends", "").replace("(", " ").replace(")", " ").split()
    return {word.partition(".")[0] for word in words if "." in word}


def ancestors(entries: dict[str, Object], name: str) -> set[str]:
    direct = waits_for(entries[name])
    return direct.union(*(ancestors(entries, each) for each in direct))


def trials_below(document: Object, entry: Object) -> set[int]:
    if "image" in workflows.arguments(entry):
        return {int(workflows.arguments(entry)["index"])}
    return {
        int(workflows.arguments(each)["index"])
        for where, each in workflows.trial_entries(document)
        if where == entry["template"]
    }


def built_key(plan: RunPlan, arguments: dict[str, str]) -> str:
    images = plan.part(int(arguments["index"])).images
    image = images.verifier if arguments.get("side") == "verifier" else images.agent
    assert image is not None
    return image.key


def hostile_strings() -> Iterator[str]:
    yield from ("{{workflow.name}}", "{{=1/0}}", "{{{{", "}}", "a\n---\nb", "{", "\u2028", "é{{x", "x" * 5000)


USER_TEXT = st.sampled_from(list(hostile_strings())) | st.text(st.characters(exclude_categories=("Cs",)))


@settings(max_examples=40, deadline=None)
@given(taskset=USER_TEXT, agent=USER_TEXT, name=USER_TEXT)
def test_user_text_is_never_evaluated(taskset: str, agent: str, name: str) -> None:
    part = task_plan(0, name=name or "x")
    agent_plan = AgentPlan(name=agent, calls_model=False, kwargs={"prompt": agent})
    plan = run_plan([part], taskset=taskset, agent=agent_plan)
    for kind in ("workflow", "workflowtemplate", "cronworkflow"):
        [document] = compile_workflow(plan, kind=kind, schedule="@daily")  # type: ignore[arg-type]
        check_parameters(dict(document))
        annotations = document["metadata"]["annotations"]
        assert all(text == " ".join(text.split()) for text in annotations.values())
        assert all(len(text) < 500 for text in annotations.values())


def test_the_same_plan_gives_the_same_bytes() -> None:
    def text() -> str:
        return "".join(to_yaml(document) for document in compile_workflow(three()))

    first = text()
    again = RunPlan(
        head=three().head.from_json(three().head.canonical()),
        parts=tuple(TaskPlan.from_json(part.canonical()) for part in three().parts),
    )
    assert first == text()
    assert first == "".join(to_yaml(document) for document in compile_workflow(again))
    assert yaml.safe_load(first) == compile_workflow(three())[0]


def canary_run(attempts: int) -> RunPlan:
    parts = [task_plan(index, image=built(f"image {index % 9}")) for index in range(60)]
    return run_plan(parts, attempts=attempts, canary=range(0, 20, 2))


def test_a_split_run_has_the_canary_before_the_gate_in_the_parent() -> None:
    parent, *parts = compiled(canary_run(attempts=90))
    main = {entry["name"]: entry for where, entry in workflows.entries(parent) if where == "main"}
    canary_parts = [
        part for part in parts if {index for index, _ in workflows.trials([part])} <= set(range(0, 20, 2))
    ]
    last = f"shard-{len(canary_parts) - 1:03}"
    assert waits_for(main["gate"]) == {last}
    behind = main[f"shard-{len(canary_parts):03}"]
    assert behind["depends"] == "gate.Succeeded"
    assert main["shard-000"]["depends"] == "network-base.Succeeded"
    assert len(parts) > len(canary_parts) > 0
    assert parent["spec"]["onExit"] == "merge"


def test_parts_name_the_run_by_parameter() -> None:
    _, *parts = compiled(canary_run(attempts=90))
    for number, part in enumerate(parts):
        text = json.dumps(part["spec"]["templates"])
        assert "{{workflow.parameters.run}}" in text
        names = [each["name"] for each in part["spec"]["arguments"]["parameters"]]
        assert names == ["run", "workflow"]
        assert part["metadata"]["generateName"] == f"part-{number:03}-"
        # Policies and probes are of the part's own pods.
        arguments = [argument for each in workflows.templates(part).values() for argument in args(each)]
        assert "{{workflow.name}}" not in arguments


def args(template: Object) -> list[str]:
    found: list[str] = template.get("container", {}).get("args", [])
    return found


def test_attempts_that_fit_into_no_workflow_are_refused() -> None:
    plan = run_plan([task_plan(0, verifier_image=built("tests")), task_plan(1)], attempts=1000)
    with pytest.raises(Refused, match="acme/task-0000 alone do not fit"):
        compile_workflow(plan)


def test_a_plan_without_tasks_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        compile_workflow(run_plan([]))
    assert caught.value.code == "no_tasks_selected"


def test_a_broken_object_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "breaches", lambda _: ["spec: wrong"])
    with pytest.raises(AssertionError, match="spec: wrong"):
        compile_workflow(three())


def test_stored_kinds() -> None:
    options: list[dict[str, Any]] = [
        {"kind": "workflowtemplate"},
        {"kind": "cronworkflow", "schedule": "0 3 * * 1"},
    ]
    template, cron = (dict(compile_workflow(three(), **each)[0]) for each in options)
    assert template["metadata"]["name"] == cron["metadata"]["name"] == "three"
    assert template["spec"]["workflowMetadata"] == cron["spec"]["workflowMetadata"]
    title = template["spec"]["workflowMetadata"]["annotations"]["workflows.argoproj.io/title"]
    assert title == "three · terminus-2 · 3 tasks"
    assert cron["spec"]["schedules"] == ["0 3 * * 1"]
    whole = dict(compile_workflow(three())[0])
    assert cron["spec"]["workflowSpec"] == whole["spec"]


@pytest.mark.parametrize(
    ("taskset", "name"),
    [("Terminal Bench_2", "terminal-bench-2"), ("---", "suite"), ("a" * 90, "a" * 52), ("", "suite")],
)
def test_a_stored_name_is_one_of_kubernetes(taskset: str, name: str) -> None:
    [document] = compile_workflow(run_plan([task_plan(0)], taskset=taskset), kind="workflowtemplate")
    assert document["metadata"]["name"] == name


@pytest.mark.parametrize(
    "schedule",
    [
        "0 3 * * 1",
        "*/15 0-6 1,15 JAN-Mar MON",
        "59 23 31 12 6",
        "0/5 ? * * sun-sat/2",
        "01 03 * * *",
        "@hourly",
    ],
)
def test_schedules(schedule: str) -> None:
    [document] = compile_workflow(three(), kind="cronworkflow", schedule=schedule)
    assert dict(document)["spec"]["schedules"] == [schedule]


def test_a_cronworkflow_without_a_schedule_is_suspended() -> None:
    [document] = compile_workflow(three(), kind="cronworkflow")
    spec = dict(document)["spec"]
    assert (spec["suspend"], spec["schedules"]) == (True, ["0 0 * * *"])
    [scheduled] = compile_workflow(three(), kind="cronworkflow", schedule="@daily")
    assert "suspend" not in dict(scheduled)["spec"]


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "0 3 * *",
        "0 3 * * 1 2",
        "@sometimes",
        "0 3 * * {{x}}",
        "0  3 * * 1",
        # What Argo's own parser refuses.
        "60 * * * *",
        "0 24 * * *",
        "0 3 0 * *",
        "0 3 32 * *",
        "0 0 * 13 *",
        "0 3 * * 7",
        "0 3 * * MON#2",
        "0 3 L * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "1-2-3 * * * *",
        "0/5/2 * * * *",
        "0 0 * mon jan",
    ],
)
def test_wrong_schedules(schedule: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_workflow(three(), kind="cronworkflow", schedule=schedule)
    assert caught.value.code == "unknown_flag_value"
