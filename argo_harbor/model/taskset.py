"""A taskset as read from a source: tasks with their files, digests and image definitions.

Made by `sources`, read by `planning`. Nothing here opens a file; `Task.root` only says where the bytes are,
and is no part of any digest or plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from argo_harbor.errors import Finding
from argo_harbor.model.base import Model
from argo_harbor.model.task import StepConfig, TaskConfig

if TYPE_CHECKING:
    from argo_harbor.model.services import Compose


@dataclass(frozen=True, slots=True)
class TaskFile:
    """One hashed file of a task."""

    path: str
    """POSIX path relative to the task folder."""
    size: int
    """Bytes."""
    mode: int
    """Permission bits, 0o7777 masked."""
    sha256: str
    """64 hex. A link inside the task is hashed as the file it names."""


@dataclass(frozen=True, slots=True)
class VariableBases:
    """FROM lines in which build arguments stand: which images they name shows when the values are known."""

    words: tuple[str, ...]
    """What each FROM names, as written."""
    stages: tuple[str, ...]
    """Names of build stages, lower case."""
    defaults: tuple[tuple[str, str], ...]
    """ARGs before the first FROM with their defaults, in order."""


@dataclass(frozen=True, slots=True)
class ImageSource:
    """Where the image of one sandbox comes from."""

    kind: Literal["prebuilt", "dockerfile", "compose"]
    reference: str = ""
    """The image named by `docker_image`; only for `prebuilt`."""
    context: str = ""
    """Build context relative to the task folder: `environment`, `tests`, `steps/<name>/tests`, or what a
    compose file names below one of them."""
    dockerfile: str = "Dockerfile"
    """Relative to the context."""
    target: str = ""
    """Build stage to stop at; empty for the last."""
    arguments: tuple[str, ...] = ()
    """Names that the Dockerfile declares with ARG, sorted: only these can a build be given values for."""
    secrets: tuple[str, ...] = ()
    """Ids of `RUN --mount=type=secret`, sorted."""
    required_secrets: tuple[str, ...] = ()
    """Those of them without which the build fails."""
    own_arguments: tuple[tuple[str, str], ...] = ()
    """Values that the task itself gives to build arguments (compose `build.args`), sorted."""
    environment_digest: str = ""
    """64 hex; its first 32 are Harbor's `environment_content_hash` of the context folder."""
    executables: tuple[str, ...] = ()
    """Files of the context with an executable bit, sorted; Harbor's hash leaves modes out."""
    links: tuple[str, ...] = ()
    """Links of the context with the SHA-256 of what they name, as `path sha256`, sorted. Harbor's hash leaves
    them out as well, so contexts that differ only in a link would be taken for one image."""
    bases: tuple[str, ...] = ()
    """Images named by FROM with the ARGs' own defaults, in order, build stages left out."""
    variable_bases: VariableBases | None = None
    """Set when build arguments stand in a FROM."""
    bundles_tests: bool = False
    """True for a verifier image that must bring `/tests` itself: Harbor then uploads no tests."""
    workdir: str = ""
    """Last WORKDIR of the final build stage, absolute; empty when the Dockerfile sets none."""


@dataclass(frozen=True, slots=True)
class Task:
    """One Harbor task of a suite."""

    name: str
    """`[task].name`, else the folder."""
    folder: str
    """Base name of the task's folder."""
    index: int
    """Position by the UTF-8 bytes of the name over the whole suite; a selection keeps it."""
    digest: str
    """Content digest as Harbor's packager computes it, 64 hex."""
    config: TaskConfig
    files: tuple[TaskFile, ...]
    """Exactly the hashed files, sorted by path: what an archive of the task holds."""
    agent_image: ImageSource
    verifier_image: ImageSource | None = None
    """Of a separate verifier of the task; None when it grades in the agent's sandbox."""
    step_verifier_images: tuple[ImageSource | None, ...] = ()
    """One entry a step; None where the step grades in the agent's sandbox."""
    compose: "Compose | None" = None
    """What `environment/docker-compose.yaml` asks for besides; None without that file."""
    root: Path | None = field(default=None, compare=False)
    """The task folder on this machine."""

    @property
    def steps(self) -> tuple[StepConfig, ...]:
        return tuple(self.config.steps or ())

    @property
    def short_name(self) -> str:
        """The part after `/`, as `--tasks` accepts it."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Warned(Finding):
    """Something that is probably a mistake but stops nothing.

    Codes: `unknown_key`, `not_a_task`, `deprecated_key`, `link_left_out`; of a Hub, `version_yanked`; of a
    store, `tasks_not_published`; of a run, `network_narrowed`.
    """

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.task, self.file, self.key) if part)
        return f"{where}: {self.message}" if where else self.message


@dataclass(frozen=True, slots=True)
class Origin:
    """The remote source that a taskset was read from, pinned."""

    pinned: str
    """What to give to `--harbor-git` or `--harbor-hub` to get the same again, with a local repository's name
    in place of its path."""
    name: str
    """Name of the dataset, as people know it."""
    version: str
    """Resolved commit, or `sha256:…` of the dataset."""

    @property
    def label(self) -> str:
        """Value of `--intake-dataset`."""
        return f"{self.name}@{self.version}"


class TasksetMember(Model):
    """One task of a suite by name, folder and content digest; its index is its place in the list."""

    name: str
    folder: str = Field(pattern=r"^[^/\x00]+$")
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class StoredTaskset(Model):
    """`tasksets/<name>/<digest>.json`: a published taskset. All members, also those not published yet."""

    schema_version: Literal["taskset-1"] = "taskset-1"
    name: str
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    members: tuple[TasksetMember, ...]
    published: tuple[int, ...] | None = None
    """Indexes of the members that somebody chose to publish, sorted; null when it was the whole suite."""
    source: str = ""
    """`Origin.pinned` of the first remote source that it was published from; empty for a folder."""
    dataset: str = ""
    """`Origin.label` of that source."""

    @property
    def ref(self) -> str:
        """`name#digest`."""
        return f"{self.name}#{self.digest}"

    @property
    def origin(self) -> Origin | None:
        """As `Taskset.origin`."""
        if not self.source:
            return None
        name, _, version = self.dataset.rpartition("@")
        return Origin(pinned=self.source, name=name, version=version)

    @property
    def dataset_label(self) -> str:
        """As `Taskset.dataset_label`."""
        return self.dataset or f"{self.name}@{self.digest}"


@dataclass(frozen=True, slots=True)
class Taskset:
    """A named list of tasks, pinned by digest, possibly narrowed to a selection."""

    name: str
    digest: str
    """64 hex over the set of all members' names and digests: neither order nor a selection changes it."""
    tasks: tuple[Task, ...]
    """The selected tasks, by index."""
    total: int
    """Tasks of the whole suite."""
    warnings: tuple[Warned, ...] = ()
    members: tuple[TasksetMember, ...] = ()
    """All tasks of the suite in order of their index, whatever is selected."""
    origin: Origin | None = None
    """None for a folder of this machine, whose path is nobody else's business."""

    @property
    def ref(self) -> str:
        """`name#digest`."""
        return f"{self.name}#{self.digest}"

    @property
    def dataset_label(self) -> str:
        """Name and version under which results are compared: the source's, else the taskset's own."""
        return self.origin.label if self.origin else f"{self.name}@{self.digest}"

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)
