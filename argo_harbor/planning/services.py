"""The containers beside a task's sandbox: what its compose file asks for, with images, resources and the
values of its variables decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from argo_harbor.model.plan import ImagePlan, Resources, ServicePlan, ServiceVariable
from argo_harbor.model.platform import Platform
from argo_harbor.model.services import Compose, Service, ServiceMount, ServiceValue
from argo_harbor.model.task import MAIN_SERVICE
from argo_harbor.model.taskset import Task
from argo_harbor.planning.environment import Granted, how_to_grant
from argo_harbor.planning.images import ImagePlanner
from argo_harbor.planning.report import Report
from argo_harbor.planning.resources import Sizes

_CODE = "invalid_compose_file"
_COMPOSE = "environment/docker-compose.yaml"
MAX_TEXT = 60_000
"""Bytes that the texts of a task's services may take in the definition of a pod, which must stay below what
one variable of a process can hold."""
_PLAIN = re.compile(r"[A-Za-z0-9._/:@-]")
_ESCAPED_BYTES = 7
"""Of every other character: it is written as an escape."""


class Services(NamedTuple):
    """What a compose file adds to a task's part of the plan."""

    services: tuple[ServicePlan, ...] = ()
    environment: tuple[ServiceVariable, ...] = ()
    """Of the agent's sandbox."""
    mounts: tuple[ServiceMount, ...] = ()
    """Of the agent's sandbox."""
    workdir: str = ""
    """Of the agent's sandbox."""
    granted: tuple[str, ...] = ()
    """Names that its containers read, sorted."""


class ServicePlanner:
    """Plans the services of tasks."""

    def __init__(
        self, images: ImagePlanner, sizes: Sizes, granted: Granted, *, taken: frozenset[str] = frozenset()
    ) -> None:
        """`taken` are names that mean something else to the pod, see `taken_names`."""
        self._taken = taken
        self._images = images
        self._sizes = sizes
        self._granted = granted

    def plan(self, task: Task, main: Resources, report: Report) -> Services:
        """Reports `invalid_compose_file`, `env_not_granted`, `resources_exceed_policy`, and what its images
        have. `main` are the resources of the agent's sandbox."""
        compose = task.compose
        if compose is None:
            return Services()
        file = f"{task.folder}/{_COMPOSE}"
        if not _mapped(compose, file, report):
            return Services()
        _refuse_verifiers(task, file, report)
        self._refuse_names(compose, file, report)
        environment = self._variables(MAIN_SERVICE, compose.environment, file, report)
        services = tuple(self._service(service, file, report) for service in compose.services)
        sizes = {service.name: service.resources for service in services}
        self._sizes.check_together(main, sizes, file, report)
        if (length := sum(map(_length, _texts(services)))) > MAX_TEXT:
            report.refuse(
                _CODE,
                f"commands, variables and healthchecks take {length} bytes in a pod's definition, "
                f"at most {MAX_TEXT}",
                key="services",
                file=file,
                hint="put long scripts and texts into files of the image",
            )
        variables = (*environment, *(each for service in services for each in service.environment))
        return Services(
            services=services,
            environment=environment,
            mounts=compose.mounts,
            workdir=compose.working_dir,
            granted=tuple(sorted({each.granted for each in variables} - {""})),
        )

    def _refuse_names(self, compose: Compose, file: str, report: Report) -> None:
        for service in compose.services:
            if service.name in self._taken:
                report.refuse(
                    _CODE,
                    "has the name of a host of the platform, which the pod's own programs must reach",
                    key=f"services.{service.name}",
                    file=file,
                    hint="give the service another name",
                )

    def _service(self, service: Service, file: str, report: Report) -> ServicePlan:
        return ServicePlan(
            name=service.name,
            image=_image(service, self._images, report),
            entrypoint=service.entrypoint,
            command=service.command,
            environment=self._variables(service.name, service.environment, file, report),
            working_dir=service.working_dir,
            user=service.user,
            group=service.group,
            probe=service.probe,
            once=service.once,
            resources=self._sizes.of_service(service),
            mounts=service.mounts,
        )

    def _variables(
        self, service: str, values: Iterable[ServiceValue], file: str, report: Report
    ) -> tuple[ServiceVariable, ...]:
        found = []
        for value in values:
            key = f"services.{service}.environment.{value.name}"
            if value.variable in self._granted.target:
                if value.variable in self._granted.runtime and service != MAIN_SERVICE:
                    report.refuse(
                        "env_not_granted",
                        f"reads {value.variable}, which is granted as runtime: and exists in the runner only",
                        key=key,
                        file=file,
                        hint=f"grant it as secret:NAME/{value.variable} or host:{value.variable}",
                    )
                found.append(ServiceVariable(name=value.name, granted=value.variable))
            elif value.text is not None:
                found.append(ServiceVariable(name=value.name, text=value.text))
            elif not value.optional:
                report.refuse(
                    "env_not_granted",
                    f"reads {value.variable}, which the run does not grant",
                    key=key,
                    file=file,
                    hint=how_to_grant(value.variable, "target"),
                )
        return tuple(found)


def taken_names(platform: Platform) -> frozenset[str]:
    """Hosts that the containers of a pod reach besides services: a service of that name would be asked in
    their place, and told what is meant for them."""
    network = platform.network
    urls = [platform.store.endpoint, *(model.base_url for model in platform.models.values())]
    urls += [f"//{server}" for server in network.api_server]
    return frozenset(map(_host, urls))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""  # names no host; compiling refuses such a platform


def service_images(task: Task, images: ImagePlanner, report: Report) -> Iterator[tuple[str, ImagePlan]]:
    """The images of the task's services by their side, as in `TaskPlan.sides`, for who plans no more than
    images. Reports as `ServicePlanner.plan`."""
    compose = task.compose
    if compose is not None and _mapped(compose, f"{task.folder}/{_COMPOSE}", report):
        for service in compose.services:
            yield f"service-{service.name}", _image(service, images, report)


def _mapped(compose: Compose, file: str, report: Report) -> bool:
    """Whether the file can be mapped; reports why not."""
    for finding in compose.findings:
        report.refuse(finding.code, finding.message, key=finding.key, hint=finding.hint, file=file)
    return not compose.findings


def _image(service: Service, images: ImagePlanner, report: Report) -> ImagePlan:
    return images.of_service(service.image, f"services.{service.name}.image", report)


def _refuse_verifiers(task: Task, file: str, report: Report) -> None:
    """A separate verifier without a definition of its own would be the agent's environment once more, with
    services of its own."""
    separate = (task.verifier_image, *task.step_verifier_images)
    if any(source is not None and not source.bundles_tests for source in separate):
        report.refuse(
            _CODE,
            "is the environment of a separate verifier too, which would need the services a second time",
            file=file,
            hint="give the verifier tests/Dockerfile or verifier.environment.docker_image, or let it share "
            "the agent's sandbox",
        )


def _texts(services: Iterable[ServicePlan]) -> Iterable[str]:
    for service in services:
        yield from service.entrypoint or ()
        yield from service.command or ()
        yield from service.probe.command if service.probe else ()
        yield service.working_dir
        for variable in service.environment:
            yield variable.name
            yield variable.text
        for mount in service.mounts:
            yield mount.path


def _length(text: str) -> int:
    plain = len(_PLAIN.findall(text))
    return plain + (len(text) - plain) * _ESCAPED_BYTES
