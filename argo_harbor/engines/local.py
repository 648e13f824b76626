"""The embedded engine: runs a plan on this machine, in the foreground, to a merged bundle."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from argo_harbor.bundle import merge as bundle_merge
from argo_harbor.bundle.images import image_states
from argo_harbor.bundle.plans import find_plan
from argo_harbor.bundle.results import Survey, survey
from argo_harbor.engines import events, scratch
from argo_harbor.engines.base import LiveLog, LogSource, Look, RunInterrupted, SubmitOptions
from argo_harbor.engines.base_builder import BaseBuilder
from argo_harbor.engines.bases import ChosenBase, base_maker, choose_base, images_of
from argo_harbor.engines.build_images import ImageLine, lines_of, refuse_unbuilt
from argo_harbor.engines.build_images_local import (
    LocalBuilding,
    build_here,
    check_images,
    start_images,
)
from argo_harbor.engines.builds import Builds
from argo_harbor.engines.grants import resolve
from argo_harbor.engines.launch import Launcher
from argo_harbor.engines.local_checks import check_local, network_of
from argo_harbor.engines.marks import mark_cancelled, now
from argo_harbor.engines.publish import publish
from argo_harbor.engines.request import (
    end_owner,
    find_same,
    owner_lives,
    read_request,
    user_name,
    write_request,
)
from argo_harbor.engines.run_names import fresh_key, keyed_name
from argo_harbor.engines.schedule import Schedule
from argo_harbor.errors import Conflict
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.causes import Cause, Causes
from argo_harbor.model.documents import RunInfo
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.runner import RunnerSettings, SandboxSettings
from argo_harbor.model.states import RunPhase
from argo_harbor.model.taskset import Taskset, Warned
from argo_harbor.store import layout
from argo_harbor.store.directory import DirectoryStore

CANCEL_SECONDS = 30.0
"""What the process that drives a run gets to end its trials; they get 10 s themselves."""
QUIET_SECONDS = 20.0
"""What the last processes of a killed run get to end by themselves before a merge gives up on them."""


class LocalEngine:
    """See `Engine`. Everything that it tells about runs comes from the store."""

    name: Literal["local"] = "local"

    def __init__(self, store: DirectoryStore, scratch_folder: Path) -> None:
        self.store = store
        self._scratch = scratch_folder
        self._chosen: dict[tuple[str, str], ChosenBase] = {}

    @classmethod
    def open(cls, root: Path) -> Self:
        """The engine whose store is `<root>/local`. Creates nothing yet."""
        return cls(DirectoryStore(root / "local"), root / "scratch")

    def check(self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions) -> list[Warned]:
        """Refusals and warnings of this machine. Changes nothing but what a builder has fetched.

        Raises: Refused with all findings, PlatformError `sandbox_unavailable`.
        """
        warnings = check_local(plan, taskset, options, lambda: self._base(plan, options))
        resolve(plan.head.grants, options.environ)
        if options.build_first:
            keys = [image.key for image in images_of(plan.parts) if image.key]
            states = image_states(self.store, keys, base=self._base(plan, options).kind)
            refuse_unbuilt(plan, states, options.build_first)
        return warnings

    def look_at_images(self, plan: BuildPlan) -> list[ImageLine]:
        """By the last build of each, whatever it was based on."""
        keys = [planned.image.key for planned in plan.images]
        return lines_of(plan, image_states(self.store, keys, base=None))

    def build_images(
        self,
        plan: BuildPlan,
        taskset: Taskset,
        *,
        base: Literal["auto", "image", "preview"] = "auto",
        progress: events.Progress = events.silent,
    ) -> LocalBuilding:
        """Raises: Refused, PlatformError; KeyboardInterrupt after SIGINT."""
        images = start_images(plan, taskset)
        chosen = check_images(plan, taskset, lambda: choose_base(images, base))
        return build_here(plan, self.store, base=chosen, preferred=self._scratch, progress=progress)

    def _base(self, plan: RunPlan, options: SubmitOptions) -> ChosenBase:
        """The base of a run, asked for once: a check and the submit after it must not see two."""
        key = (plan.digest, options.base)
        if key not in self._chosen:
            self._chosen[key] = choose_base(images_of(plan.parts), options.base)
        return self._chosen[key]

    def dry_run(self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions) -> list[Look]:
        """Raises: Refused, PlatformError `sandbox_unavailable`."""
        granted = resolve(plan.head.grants, options.environ)
        base = self._base(plan, options)
        return [
            Look("variables", "ok", f"{len({*granted.target, *granted.verifier})} granted"),
            Look("profile", "ok", f"{plan.head.profile.name}, network {_network_name(plan)}"),
            Look("base", "ok", f"{base.kind}" + (f": {base.reason}" if base.reason else "")),
            Look("store", "ok", self.store.name),
        ]

    @property
    def place(self) -> str:
        """Empty: there is nothing to choose between on one machine."""
        return ""

    def submit(
        self,
        plan: RunPlan,
        taskset: Taskset,
        *,
        options: SubmitOptions | None = None,
        progress: events.Progress = events.silent,
    ) -> str:
        """Run the plan until it is merged and return the run's id.

        Raises: Refused, Conflict `idempotency_conflict`, PlatformError; RunInterrupted after SIGINT or
        SIGTERM, with the run left for `merge`.
        """
        options = options or SubmitOptions()
        self.check(plan, taskset, options=options)
        granted = resolve(plan.head.grants, options.environ)
        run_id = keyed_name(self.name, user_name(), options.idempotency_key or fresh_key())
        if options.idempotency_key and find_same(run_id, plan, options.idempotency_key, self.store):
            progress(events.RunFound(run_id))
            return run_id
        preferred = options.scratch or self._scratch
        scratch.sweep(preferred)
        published = publish(plan, taskset, self.store)
        progress(events.Published(published.taskset))
        for other in self._running(plan):
            progress(events.AlreadyRunning(other))
        base = self._base(plan, options)
        write_request(self.store, run_id, plan, base=base.kind, submitted_at=now(), more=options.request)
        cap = min(plan.head.limits.cap, 2 * (os.cpu_count() or 1))
        with scratch.run_scratch(run_id, preferred) as folder:
            with scratch.writing(folder):
                schedule = self._schedule(
                    run_id, plan, folder, base=base, grants=granted.as_input(), cap=cap, progress=progress
                )
            progress(
                events.RunAccepted(
                    run=run_id,
                    plan_digest=plan.digest,
                    tasks=len(plan.parts),
                    trials=len(plan.parts) * plan.head.n_attempts,
                    cap=cap,
                    base=base.kind,
                    base_reason=base.reason,
                    store=self.store.name,
                    network=_network_name(plan),
                )
            )
            asyncio.run(schedule.execute())
            if schedule.stopped == "interrupted":
                if not any(self.store.list(layout.cancel_marks(run_id))):
                    mark_cancelled(self.store, run_id, "interrupted")
                raise RunInterrupted(run_id)
            progress(events.MergeStarted(run_id))
            self._merge(run_id, plan.digest, folder, schedule)
        return run_id

    def _running(self, plan: RunPlan) -> list[str]:
        """Runs on the same taskset that a process of this machine drives now."""
        return [
            run_id
            for run_id in self._run_ids()
            if bundle_merge.read_state(run_id, self.store) is None
            and read_request(self.store, run_id).get("taskset_ref") == plan.head.taskset.ref
            and owner_lives(self.store, run_id)
        ]

    def _merge(self, run_id: str, plan: str, folder: Path, schedule: Schedule) -> None:
        try:
            bundle_merge.merge(
                run_id,
                self.store,
                plan=plan,
                engine=self.name,
                ended_by=RunPhase.EXPIRED if schedule.stopped == "expired" else None,
                causes=_causes(schedule),
                scratch=folder,
            )
        except KeyboardInterrupt:
            raise RunInterrupted(run_id) from None

    def _schedule(
        self,
        run_id: str,
        plan: RunPlan,
        folder: Path,
        *,
        base: ChosenBase,
        grants: bytes,
        cap: int,
        progress: events.Progress,
    ) -> Schedule:
        unfenced = any(network_of(part) == "unfenced" for part in plan.parts)
        settings = RunnerSettings(
            store=str(self.store.root.absolute()),
            sandbox=SandboxSettings(
                base=base.kind, network="unfenced" if unfenced else "none", run_scratch=str(folder)
            ),
            owner=os.getpid(),
            lock=str(folder / scratch.LOCK),
        )
        file = folder / "runner.json"
        file.write_bytes(settings.canonical())
        return Schedule(
            run=run_id,
            plan=plan,
            store=self.store,
            launcher=Launcher(file, grants),
            builds=Builds(
                plan.parts,
                run=run_id,
                builder=BaseBuilder(self.store, folder, base_maker(base, folder), base, now),
                progress=progress,
            ),
            cap=cap,
            progress=progress,
        )

    def merge(self, run_id: str) -> None:
        """Finish a run whose submit is gone, or merge once more.

        What still runs of a killed submit gets a moment to end. A run that was never merged counts as
        cancelled.

        Raises: UsageError `unknown_run`; Conflict `run_active` while its submit still runs; PlatformError.
        """
        plan = find_plan(run_id, self.store)
        if bundle_merge.read_state(run_id, self.store) is None:
            if owner_lives(self.store, run_id):
                raise Conflict(
                    "run_active",
                    f"{run_id} is still driven by the process that submitted it",
                    "wait for it, or interrupt it with Ctrl-C",
                )
            scratch.wait_until_quiet(run_id, self._scratch, QUIET_SECONDS)
            if not any(self.store.list(layout.cancel_marks(run_id))):
                mark_cancelled(self.store, run_id, "its submit ended early")
        scratch.sweep(self._scratch)
        # What a killed merge leaves lies in the run's folder, where a sweep finds it.
        with scratch.run_scratch(run_id, self._scratch) as folder:
            bundle_merge.merge(run_id, self.store, plan=plan, engine=self.name, scratch=folder)

    def survey(self, run_id: str) -> Survey:
        """Everything that status, tasks and results show. Raises: UsageError `unknown_run`, PlatformError."""
        found = survey(run_id, self.store, engine=self.name)
        request = read_request(self.store, run_id)
        return replace(
            found, user=str(request.get("user", "")), submitted_at=str(request.get("submitted_at", ""))
        )

    def cancel(self, run_id: str) -> bool:
        """End the process that drives the run, then merge what succeeded. False when it was over already.

        Raises: UsageError `unknown_run`; Conflict `run_active` when the process does not end; PlatformError.
        """
        find_plan(run_id, self.store)
        if bundle_merge.read_state(run_id, self.store) is not None:
            return False
        mark_cancelled(self.store, run_id, "cancelled by its user")
        end_owner(self.store, run_id, CANCEL_SECONDS)
        self.merge(run_id)
        return True

    def status(self, run_id: str) -> RunInfo:
        """Raises: UsageError `unknown_run`, PlatformError."""
        return self.survey(run_id).run

    def list_runs(self, *, mine: bool = False, active: bool = False) -> list[RunInfo]:
        """Runs in the store, the newest first. Raises: PlatformError."""
        found = []
        for run_id in self._run_ids():
            info = self.status(run_id)
            if not (mine and info.user != user_name()) and not (active and info.phase.terminal):
                found.append(info)
        return found

    def newest(self) -> str | None:
        return next(iter(self._run_ids()), None)

    def _run_ids(self) -> list[str]:
        """Ids of the runs in the store, the newest first."""
        found = {
            name: read_request(self.store, name)
            for name in self.store.folders(layout.runs())
            if layout.is_run_id(name)
        }
        submitted = [
            (str(request.get("submitted_at", "")), name) for name, request in found.items() if request
        ]
        return [run_id for _, run_id in sorted(submitted, reverse=True)]

    def bundle_dir(self, run_id: str) -> Path:
        """Absolute folder of the run's bundle, whether or not it is there."""
        return self.store.path(layout.bundle(run_id).rstrip("/")).absolute()

    def bundle_ref(self, run_id: str) -> str:
        return str(self.bundle_dir(run_id))

    @contextmanager
    def bundle(self, run_id: str) -> Iterator[Path]:
        """The folder in the store itself. Raises: UsageError `unknown_run`, PlatformError."""
        find_plan(run_id, self.store)
        yield self.bundle_dir(run_id)

    def live_logs(self, run_id: str, source: LogSource, *, follow: bool) -> Iterator[LiveLog]:
        """None: trials log into their sandboxes, and the store has it when they end."""
        return iter(())


def _network_name(plan: RunPlan) -> str:
    if any(network_of(part) == "unfenced" for part in plan.parts):
        return "unfenced"
    return "none (narrowed)" if any(part.rules.narrowed for part in plan.parts) else "none"


def _causes(schedule: Schedule) -> Causes:
    if not schedule.refused:
        return Causes()
    return Causes(others=Cause("not_started", f"the canary stopped the run: {'; '.join(schedule.refused)}"))
