"""What image builds are given by name: values for ARG, and Kubernetes Secrets for `RUN --mount=type=secret`.

The platform's come first, the request's after them, a task's own last. A name that a Dockerfile does not
declare is passed over, so that it changes no image.
"""

from __future__ import annotations

from argo_harbor.model.build import BuildInputs
from argo_harbor.model.platform import Platform
from argo_harbor.model.taskset import ImageSource
from argo_harbor.planning.report import Report

NO_INPUTS = BuildInputs()
_PREFIXES = ("host:", "lit:", "runtime:", "secret:")
"""Of values in environment maps; a build argument has none, since it ends up in the image."""


def merged_inputs(platform: Platform, asked: BuildInputs, report: Report) -> BuildInputs:
    """What the builds of a request are given.

    Reports values that look as if they came from somewhere else: `invalid_spec`, or `invalid_platform`.
    """
    _check(platform.build, "invalid_platform", "build.args", report)
    _check(asked, "invalid_spec", "execution.build.args", report)
    return BuildInputs(
        args={**platform.build.args, **asked.args}, secrets={**platform.build.secrets, **asked.secrets}
    )


def arguments_of(source: ImageSource, inputs: BuildInputs) -> dict[str, str]:
    """Values for the ARGs that the Dockerfile declares, by name, sorted."""
    values = {**inputs.args, **dict(source.own_arguments)}
    return {name: values[name] for name in source.arguments if name in values}


def secrets_of(source: ImageSource, inputs: BuildInputs, report: Report) -> tuple[tuple[str, str], ...]:
    """Id and `NAME/KEY` of the secrets that the Dockerfile mounts, sorted.

    Reports `env_not_granted` for one that the build cannot do without and nobody grants.
    """
    for identity in source.required_secrets:
        if identity not in inputs.secrets:
            report.refuse(
                "env_not_granted",
                f"needs the build secret {identity!r}, which is not granted",
                hint=f"add --build-secret {identity}=SECRET/KEY, or set [build.secrets] in the platform file",
                file=f"{source.context}/{source.dockerfile}",
            )
    return tuple(
        (identity, inputs.secrets[identity]) for identity in source.secrets if identity in inputs.secrets
    )


def _check(inputs: BuildInputs, code: str, key: str, report: Report) -> None:
    for name, value in inputs.args.items():
        if value.startswith(_PREFIXES):
            report.refuse(
                code,
                f"{value.partition(':')[0]}: means nothing here, its value stands in the image",
                key=f"{key}.{name}",
                hint="write the value itself; what is secret goes to --build-secret ID=SECRET/KEY",
            )
