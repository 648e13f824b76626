"""What can be said about a plan before it is sent to a cluster, and which of its images are there already."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from argo_harbor.engines.base import SubmitOptions
from argo_harbor.errors import Refused, UsageError
from argo_harbor.model.plan import ImagePlan, RunPlan
from argo_harbor.model.platform import Platform
from argo_harbor.model.taskset import Warned
from argo_harbor.planning.argo import argo_findings
from argo_harbor.registry.client import Registries
from argo_harbor.registry.credentials import BrokenConfig, Login, logins
from argo_harbor.registry.errors import RegistryError, Unreachable
from argo_harbor.registry.reference import parse_image

_AT_ONCE = 8


def check_argo(plan: RunPlan, options: SubmitOptions) -> list[Warned]:
    """Warnings about a plan that can run in a cluster.

    Raises: Refused with every finding; UsageError for options of the local engine.
    """
    if options.base == "preview" or options.allow_unfenced_network:
        flag = "--base preview" if options.base == "preview" else "--allow-unfenced-network"
        raise UsageError(
            "bad_usage", f"{flag} is for the local engine", "leave it out, or add --engine local"
        )
    findings = argo_findings(plan, host_variables=True)
    if findings:
        raise Refused.of(findings)
    return list(_warnings(plan))


def _warnings(plan: RunPlan) -> Iterator[Warned]:
    narrowed = [part for part in plan.parts if part.rules.narrowed]
    if narrowed:
        yield Warned(
            "network_narrowed",
            f"{len(narrowed)} of {len(plan.parts)} tasks ask for more network than the profile "
            f"{plan.head.profile.name} leaves them: they get what it allows",
            hint="argo-harbor profiles show says what a profile allows",
        )


def user_registries(platform: Platform, environ: Mapping[str, str]) -> Registries:
    """Registries as this user reaches them: with the logins of `docker login`, where there are any."""
    return Registries(logins=_logins(environ), insecure=platform.insecure_registries)


def look_up(
    images: Iterable[ImagePlan], platform: Platform, environ: Mapping[str, str]
) -> dict[str, bool | None]:
    """Whether each image that is built is in its registry, by image key.

    None where the registry cannot be asked from here, which is no error: the build steps ask it again, from
    inside.
    """
    registries = user_registries(platform, environ)
    wanted = {image.key: image for image in images if image.key}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        unreachable: set[str] = set()
        there = pool.map(lambda image: _is_there(image, registries, unreachable), wanted.values())
        return dict(zip(wanted, there, strict=True))


def all_images(plan: RunPlan) -> Iterable[ImagePlan]:
    """The images of all containers of a plan's tasks, repeats included."""
    for part in plan.parts:
        yield from part.sides.values()


def _is_there(image: ImagePlan, registries: Registries, unreachable: set[str]) -> bool | None:
    name = parse_image(image.reference)
    if name.registry in unreachable:
        return None
    try:
        return registries.digest(name) is not None
    except Unreachable:
        unreachable.add(name.registry)
    except RegistryError:
        pass  # it answers, and not to this user
    return None


def _logins(environ: Mapping[str, str]) -> Mapping[str, Login]:
    folder = environ.get("DOCKER_CONFIG") or os.path.join(environ.get("HOME", ""), ".docker")
    try:
        return logins("config.json", (Path(folder) / "config.json").read_bytes())
    except (OSError, BrokenConfig):
        # Most have none, or keep logins with a helper program: then the registry is asked without.
        return {}
