"""Options that several commands share, so that one flag means one thing everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

_SOURCE = "Tasks"
_AGENT = "Agent and request"
_SANDBOX = "Sandbox (agent's only; not with --spec-file)"
_BUILDS = "Image builds"
WHERE = "Where"

HarborDir = Annotated[
    Path | None,
    typer.Option(
        "--harbor-dir", metavar="DIR", help="A suite of Harbor tasks, or one task.", rich_help_panel=_SOURCE
    ),
]
HarborGit = Annotated[
    str | None,
    typer.Option(
        "--harbor-git",
        metavar="URL@REF",
        help="Tasks in a Git repository: its folder `tasks`, or URL/tree/REF/FOLDER. Any host, or a path.",
        rich_help_panel=_SOURCE,
    ),
]
HarborHub = Annotated[
    str | None,
    typer.Option(
        "--harbor-hub",
        metavar="ORG/NAME[@REF]",
        help="A dataset of Harbor's Hub; REF is a tag, a revision or sha256:…; default: the latest.",
        rich_help_panel=_SOURCE,
    ),
]
TasksetRef = Annotated[
    str | None,
    typer.Option(
        "--taskset",
        metavar="NAME#DIGEST",
        help="A taskset published earlier; 12 characters of the digest suffice.",
        rich_help_panel=_SOURCE,
    ),
]
Tasks = Annotated[
    str | None,
    typer.Option(
        "--tasks",
        metavar="LIST",
        help="Indexes, names or globs, comma-separated. Default: all.",
        rich_help_panel=_SOURCE,
    ),
]
ListTasks = Annotated[
    bool,
    typer.Option("--list-tasks", help="Print indexes and names, and exit.", rich_help_panel=_SOURCE),
]
SkipRefused = Annotated[
    bool,
    typer.Option(
        "--skip-refused",
        help="Go on with the other tasks when some are refused; in a run, these count as missing.",
        rich_help_panel=_SOURCE,
    ),
]
Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="A built-in Harbor agent; `oracle` and `nop` call no model.",
        rich_help_panel=_AGENT,
    ),
]
SpecFile = Annotated[
    Path | None,
    typer.Option(
        "--spec-file", metavar="FILE", help="Request file: JSON, YAML or TOML.", rich_help_panel=_AGENT
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "-O",
        "--set",
        metavar="KEY=VALUE",
        help="Override one value of the request, e.g. spec.target.n_attempts=3. Repeatable.",
        rich_help_panel=_AGENT,
    ),
]
Canary = Annotated[
    int | None,
    typer.Option(
        "--canary",
        metavar="N",
        min=0,
        help="Run N tasks first, one of every kind before any other; the rest only if the platform held.",
        rich_help_panel=_AGENT,
    ),
]
Experiment = Annotated[
    str | None,
    typer.Option(
        "--experiment",
        metavar="NAME",
        help="Label of the results; replaces the request file's publication.",
        rich_help_panel=_AGENT,
    ),
]
IntakeDataset = Annotated[
    str | None,
    typer.Option(
        "--intake-dataset",
        metavar="NAME[@VERSION]",
        help="Dataset that results of a published taskset count for; needs --taskset and --experiment.",
        rich_help_panel=_AGENT,
    ),
]
SandboxProfile = Annotated[
    str | None,
    typer.Option(
        "--sandbox-profile", metavar="NAME", help="Limits set by the admin.", rich_help_panel=_SANDBOX
    ),
]
Cpus = Annotated[float | None, typer.Option("--cpus", metavar="N", rich_help_panel=_SANDBOX, help="CPUs.")]
MemoryMb = Annotated[
    int | None, typer.Option("--memory-mb", metavar="MB", rich_help_panel=_SANDBOX, help="Memory.")
]
StorageMb = Annotated[
    int | None, typer.Option("--storage-mb", metavar="MB", rich_help_panel=_SANDBOX, help="Disk.")
]
BuildArg = Annotated[
    list[str] | None,
    typer.Option(
        "--build-arg",
        metavar="NAME[=VALUE]",
        help="Value for an ARG of Dockerfiles; without one, of the variable in this shell. Repeatable.",
        rich_help_panel=_BUILDS,
    ),
]
BuildSecret = Annotated[
    list[str] | None,
    typer.Option(
        "--build-secret",
        metavar="ID=SECRET/KEY",
        help="Kubernetes Secret for `RUN --mount=type=secret,id=ID` of Dockerfiles. Repeatable.",
        rich_help_panel=_BUILDS,
    ),
]
Base = Annotated[
    Literal["auto", "image", "preview"],
    typer.Option(
        "--base",
        help="What sandboxes start from: real images, or a preview of this machine's own programs.",
        rich_help_panel="Local engine",
    ),
]
PlatformFile = Annotated[
    Path | None,
    typer.Option(
        "--platform",
        metavar="FILE",
        help="Platform file; else $ARGO_HARBOR_PLATFORM, else the installed or the built-in one.",
        rich_help_panel=WHERE,
    ),
]
StoreDir = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="Local store; else $ARGO_HARBOR_STORE, else ~/.local/share/argo-harbor.",
        rich_help_panel=WHERE,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="Kube context; else the current one.", rich_help_panel=WHERE
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "--workspace", metavar="NAME", help="Namespace of the cluster.", rich_help_panel=WHERE
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
TasksetArgument = Annotated[
    str,
    typer.Argument(metavar="NAME#DIGEST", help="A published taskset; 12 characters of the digest suffice."),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run id, or `last`.")]


@dataclass(frozen=True, kw_only=True)
class NewSource:
    """Which tasks a command brings into a store. As the two below, one parameter of a command
    (`flags.spread`)."""

    harbor_dir: HarborDir = None
    harbor_git: HarborGit = None
    harbor_hub: HarborHub = None


@dataclass(frozen=True, kw_only=True)
class Source(NewSource):
    """Which tasks a command works on."""

    taskset: TasksetRef = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which run a command plans."""

    skip_refused: SkipRefused = False
    agent: Agent = None
    spec_file: SpecFile = None
    overrides: Set = None
    canary: Canary = None
    experiment: Experiment = None
    intake_dataset: IntakeDataset = None
    profile: SandboxProfile = None
    cpus: Cpus = None
    memory_mb: MemoryMb = None
    storage_mb: StorageMb = None
    build_args: BuildArg = None
    build_secrets: BuildSecret = None
