"""Every error a user can meet, and what it means for the exit status.

The class of an error says what the reader must do about it; the code is the stable name that
scripts and documents rely on. `CODES` is the only list of codes: a class refuses any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

EXIT_OK = 0
EXIT_FAILED = 1
"""The run ended failed, cancelled or expired, or a check said no."""
EXIT_INTERRUPTED = 130

USAGE: Mapping[str, str] = {
    "two_sources": "more than one task source was given",
    "no_source": "no task source was given",
    "unknown_tasks": "a selected task does not exist in the suite",
    "no_tasks_selected": "the selection leaves no task",
    "unknown_flag_value": "a flag has a value it does not take",
    "unknown_source_ref": "a remote source has no such branch, tag, commit, version or folder",
    "bad_usage": "flags are missing, unknown or exclude one another",
    "unknown_run": "no run of that name is in the store",
    "output_not_empty": "the output folder holds files that compile did not write",
}
REFUSED: Mapping[str, str] = {
    "invalid_task_config": "a task's files are broken: TOML, types, ranges, missing files, escaping links",
    "source_unreadable": "a folder or file of the source cannot be read",
    "unknown_profile": "the named sandbox profile does not exist",
    "group_undefined": "a profile uses a host group that the platform does not define",
    "host_outside_profile": "a task asks for a host that the profile does not allow",
    "resources_exceed_policy": "a task or flag asks for more than the profile's ceiling",
    "gpu_unsupported": "a task asks for a GPU and the profile has none",
    "invalid_compose_file": "a task's compose file cannot be mapped",
    "image_not_built": "an image of a published task is not built yet",
    "lfs_pointer": "a file of a git source is a Git LFS pointer, without the content it stands for",
    "source_changed": "a task changed while it was being read or published",
    "env_not_granted": "a task reads a variable that the run does not grant",
    "env_conflict": "one variable has two values in two maps of the run",
    "verifier_network_wider": "grading needs hosts that the agent did not have, in the agent's container",
    "separate_verifier_steps_unsupported": "a multi-step task with a separate verifier on this engine",
    "metric_script_unsupported": "a dataset brings a metric script, which is never run",
    "compile_split": "the workflow is split into parts and cannot be one document",
    "local_network_unenforceable": "the local engine cannot enforce the network that a task needs",
    "local_agent_unsupported": "the local engine does not run this agent",
    "local_user_unsupported": "the local engine cannot run as the user that a task names",
    "local_env_unsupported": "the local engine cannot read this kind of variable",
    "preview_unsupported": "a Dockerfile instruction that the preview base cannot carry out",
    "invalid_spec": "the request file is broken or incomplete",
    "invalid_profile": "a profile file is broken",
    "invalid_platform": "the platform file is broken",
    "model_required": "a model-calling agent without a model",
    "closed_book_required": "a no-network task with a model-calling agent needs a closed-book model",
}
CONFLICT: Mapping[str, str] = {
    "idempotency_conflict": "the key belongs to a run with another request",
    "run_active": "the run is still driven by the process that submitted it",
}
PLATFORM: Mapping[str, str] = {
    "platform_not_configured": "no platform is configured",
    "platform_unreachable": "the platform does not answer",
    "platform_refused": "the cluster does not allow it, or does not take what was sent",
    "cluster_refused": "the cluster does not allow a request to this user, or does not take an object",
    "git_not_found": "there is no git program on PATH",
    "harbor_not_found": "Harbor, whose client reads its Hub, is not installed",
    "source_unreachable": "the server of a remote source does not answer, or does not let us in",
    "store_write_failed": "the store did not take a file",
    "store_unreadable": "the store cannot be read",
    "sandbox_unavailable": "sandboxes cannot be started on this machine",
    "plan_unreadable": "a stored plan is newer than this program, broken or incomplete",
    "run_id_reused": "the run's name belongs to another workflow",
    "bundle_unreadable": "a result bundle is incomplete or broken",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a batch: where it is, what is wrong, what cures it.

    `task` is the task's name, `file` a path relative to the suite or as the user gave it, `key` a dotted
    TOML, JSON or YAML key. Any of them may be empty when it does not apply.
    """

    code: str
    message: str
    hint: str = ""
    task: str = ""
    file: str = ""
    key: str = ""

    def as_json(self) -> dict[str, str]:
        return {
            "task": self.task,
            "file": self.file,
            "key": self.key,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.task, self.file, self.key) if part)
        return f"{where}: {self.code}: {self.message}" if where else f"{self.code}: {self.message}"


class HarborError(Exception):
    """An error with a code, a message, a hint and, for batches, all findings.

    `exit_status` is what the program exits with; `retryable` says whether the same call may succeed later.
    """

    codes: ClassVar[Mapping[str, str]] = {}
    exit_status: ClassVar[int] = EXIT_FAILED
    retryable: ClassVar[bool] = False

    def __init__(self, code: str, message: str, hint: str = "", items: Iterable[Finding] = ()) -> None:
        if code not in self.codes:
            raise ValueError(f"{code} is no code of {type(self).__name__}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.items = tuple(items)

    @classmethod
    def of(cls, findings: Iterable[Finding], what: str = "task") -> HarborError:
        """One error out of all findings of a batch: it carries the first finding's code.

        `what` names what was refused, in the singular. Raises ValueError for an empty batch.
        """
        found = tuple(findings)
        if not found:
            raise ValueError("a batch error needs at least one finding")
        if len(found) == 1:
            return cls(
                found[0].code, str(found[0]).replace(f"{found[0].code}: ", "", 1), found[0].hint, found
            )
        places = len({(item.task or item.file) for item in found})
        plural = what if places == 1 else f"{what}s"
        return cls(found[0].code, f"{len(found)} findings in {places} {plural}", found[0].hint, found)

    def as_json(self) -> dict[str, object]:
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "items": [item.as_json() for item in self.items],
            }
        }


class UsageError(HarborError):
    """The command line is wrong: read the message and call again."""

    codes = USAGE
    exit_status = 2


class Refused(HarborError):
    """What was asked for is not valid or not allowed: change the task, spec, profile or flags."""

    codes = REFUSED
    exit_status = 3


class Conflict(HarborError):
    """The request contradicts one that was already accepted."""

    codes = CONFLICT
    exit_status = 4


class PlatformError(HarborError):
    """The platform, the store or the machine is not ready: repair it or try again."""

    codes = PLATFORM
    exit_status = 5
    retryable = True


CODES: Mapping[str, type[HarborError]] = {
    code: kind for kind in (UsageError, Refused, Conflict, PlatformError) for code in kind.codes
}
"""Every code and the class that carries it."""
