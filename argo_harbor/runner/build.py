"""`python -m argo_harbor.runner build`: makes sure that one image of a task is in the registry.

The registry is asked first, so that a second run builds nothing. What is not there is built by the BuildKit
daemon beside this container. Whatever comes of it is recorded: in the run's build records, which the merge
reads to say why trials never started, and for whoever asks for the state of the image. Two may build one
image at once: both push the same tag, whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argo_harbor.runner.build_image import ImageBuild
from argo_harbor.runner.build_job import BuildJob, job_of_builds, job_of_run
from argo_harbor.runner.build_login import read_logins
from argo_harbor.runner.build_secrets import read_secrets
from argo_harbor.runner.exits import run_command
from argo_harbor.runner.pod import Pod, claim_run, read_pod
from argo_harbor.runner.process import Interrupt
from argo_harbor.store.base import Store
from argo_harbor.workflow import names


@dataclass(frozen=True, slots=True)
class Arguments:
    """Either `plan`, `run`, `index` and `side`, or `builds` and `image`."""

    try_: int
    plan: str = ""
    run: str = ""
    index: int = 0
    side: str = "agent"
    builds: str = ""
    image: int = 0


def parse(arguments: Sequence[str]) -> Arguments:
    """Raises SystemExit 2 for a wrong command line."""
    parser = argparse.ArgumentParser(prog="python -m argo_harbor.runner build", description=__doc__)
    parser.add_argument("--plan", default="", help="digest of the run's plan, 64 hex")
    parser.add_argument("--run", default="")
    parser.add_argument("--task", type=int, help="index of a task that uses the image")
    parser.add_argument("--side", default="agent", help="which of the task's containers uses it")
    parser.add_argument("--builds", default="", help="digest of a plan of builds only, 64 hex")
    parser.add_argument("--image", type=int, help="place of the image in that plan")
    parser.add_argument("--try", required=True, type=int, dest="try_")
    given = parser.parse_args(arguments)
    if given.builds and given.image is not None:
        return Arguments(given.try_, builds=given.builds, image=given.image)
    if not given.plan or not given.run or given.task is None:
        parser.error("give --plan, --run and --task, or --builds and --image")
    return Arguments(given.try_, plan=given.plan, run=given.run, index=given.task, side=given.side)


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when the image is there, 75 to try again, 1 when it cannot be built."""
    given = parse(arguments)
    interrupt = Interrupt()
    interrupt.listen()
    return run_command(lambda: open_build(given, read_pod(), interrupt).run())


def open_build(
    given: Arguments,
    pod: Pod,
    interrupt: Interrupt,
    *,
    logins: Path = Path(names.REGISTRY_PATH),
    secrets: Path = Path(names.BUILD_SECRETS_PATH),
    **client: str,
) -> ImageBuild:
    """Reads what the plan says about the image. Raises PlatformError."""
    store = pod.store()
    job = _job(given, pod, store)
    return ImageBuild(
        job,
        pod=pod,
        store=store,
        interrupt=interrupt,
        logins=read_logins(job.platform.secrets, logins),
        secrets=read_secrets(job.image.secrets, secrets),
        **client,
    )


def _job(given: Arguments, pod: Pod, store: Store) -> BuildJob:
    if given.builds:
        return job_of_builds(store, builds=given.builds, place=given.image)
    claim_run(store, given.run, pod.workflow_uid)
    return job_of_run(store, run=given.run, plan=given.plan, index=given.index, side=given.side)
