"""The engine that runs plans as Argo Workflows. Everything that it tells about runs comes from the store and
the Workflow; both may lack a run: a Workflow is deleted in the end, and a fresh run has stored nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from argo_harbor.bundle import merge as bundle_merge
from argo_harbor.bundle.collect import Seen
from argo_harbor.bundle.images import ImageState, image_states, judged
from argo_harbor.bundle.plans import find_plan, read_head, unknown_run
from argo_harbor.bundle.results import Survey, bundle_ref, survey
from argo_harbor.bundle.settle import wait_for_tries
from argo_harbor.cluster.causes import read_causes
from argo_harbor.cluster.client import Cluster
from argo_harbor.cluster.errors import ClusterError
from argo_harbor.cluster.identity import user_name
from argo_harbor.cluster.pods import list_pods
from argo_harbor.cluster.workflows import Workflow, find_workflow, list_runs, stop_workflow
from argo_harbor.engines import argo_secrets, events
from argo_harbor.engines.argo_checks import all_images, check_argo, look_up, user_registries
from argo_harbor.engines.argo_dry_run import look
from argo_harbor.engines.argo_errors import asking
from argo_harbor.engines.argo_live import LiveRun
from argo_harbor.engines.argo_submit import Order, submit_order, user_label
from argo_harbor.engines.base import LiveLog, LogSource, Look, SubmitOptions
from argo_harbor.engines.build_images import ImageLine, lines_of, refuse_unbuilt
from argo_harbor.engines.build_images_argo import ArgoBuilding, start_builds
from argo_harbor.engines.download import download_bundle
from argo_harbor.engines.grants import host_values
from argo_harbor.engines.marks import mark_cancelled
from argo_harbor.engines.request import read_request
from argo_harbor.errors import Conflict, PlatformError, UsageError
from argo_harbor.model.build_plan import BuildPlan
from argo_harbor.model.documents import RunInfo
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.run_state import RunState
from argo_harbor.model.states import ResultState, RunPhase
from argo_harbor.model.taskset import Taskset, Warned
from argo_harbor.settings.site import Site
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.store.opening import open_store
from argo_harbor.workflow import names


def end_of_workflow(workflow: Workflow | None) -> RunPhase | None:
    """The phase of a run that no merge has told of, from its workflow; None while that goes on.

    A workflow that is gone, or was terminated, is what a merge will call cancelled: nobody drives it.
    """
    if workflow is None or workflow.shutdown == "Terminate":
        return RunPhase.CANCELLED
    if not workflow.over:
        return None
    if workflow.shutdown:
        return RunPhase.CANCELLED
    return RunPhase.EXPIRED if "deadline" in workflow.message else RunPhase.FAILED


def seconds_of(timestamp: str, default: float) -> float:
    """An RFC 3339 time in seconds since the epoch."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return default


class ArgoEngine:
    """See `Engine`."""

    name: Literal["argo"] = "argo"

    def __init__(
        self,
        cluster: Cluster,
        site: Site,
        *,
        environ: Mapping[str, str] | None = None,
        store: Store | None = None,
    ) -> None:
        """`store` is by default the platform's, with credentials of `environ` or of the cluster's Secret."""
        self.cluster = cluster
        self.site = site
        self._environ = os.environ if environ is None else environ
        self._given = store
        self._seen: Seen = {}
        self._there: dict[str, dict[str, bool | None]] = {}

    @cached_property
    def store(self) -> Store:
        """Raises: PlatformError, UsageError where the platform's store cannot be opened."""
        if self._given is not None:
            return self._given
        platform = self.site.platform
        with asking(self.cluster, "read the store's credentials"):
            found = argo_secrets.store_credentials(self.cluster, platform.store.secret)
        try:
            return open_store(
                platform, credentials=found, namespace=self.cluster.namespace, environment=self._environ
            )
        except PlatformError as error:
            if found is not None:
                raise
            hint = f"{error.hint}, or ask for the right to read the Secret {platform.store.secret}"
            raise PlatformError(error.code, error.message, hint) from error

    @property
    def place(self) -> str:
        context = f"context {self.cluster.context}, " if self.cluster.context else ""
        return f"{context}namespace {self.cluster.namespace}"

    @cached_property
    def user(self) -> str:
        """Who the API server takes us for; empty where it does not say."""
        with asking(self.cluster, "ask who this is"):
            return user_name(self.cluster)

    def check(self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions) -> list[Warned]:
        """Raises: Refused with all findings, PlatformError for a plan of another namespace."""
        planned = plan.head.platform.namespace
        if planned != self.cluster.namespace:
            raise PlatformError(
                "platform_not_configured",
                f"the plan is for the namespace {planned}, and this is {self.cluster.namespace}",
                "plan with the settings of the cluster that shall run it",
            )
        host_values(plan.head.grants, options.environ)
        warnings = check_argo(plan, options)
        if options.build_first:
            refuse_unbuilt(plan, self._image_states(self._images_there(plan)), options.build_first)
        return warnings

    def _images_there(self, plan: RunPlan) -> dict[str, bool | None]:
        """What the registry says of the plan's images, asked once: a check and the submit after it must not
        see two answers."""
        if plan.digest not in self._there:
            self._there[plan.digest] = look_up(all_images(plan), plan.head.platform, self._environ)
        return self._there[plan.digest]

    def _image_states(self, there: Mapping[str, bool | None]) -> dict[str, ImageState]:
        """By image key; `there` is what the registry says."""
        stored = image_states(self.store, list(there))
        return {key: judged(stored[key], found) for key, found in there.items()}

    def look_at_images(self, plan: BuildPlan) -> list[ImageLine]:
        there = look_up((planned.image for planned in plan.images), plan.platform, self._environ)
        return lines_of(plan, self._image_states(there))

    def _present(self, plan: RunPlan) -> frozenset[str]:
        """Images that need no build. The next request asks anew."""
        there = self._images_there(plan)
        del self._there[plan.digest]
        return frozenset(key for key, found in there.items() if found)

    def build_images(
        self,
        plan: BuildPlan,
        taskset: Taskset,
        *,
        base: Literal["auto", "image", "preview"] = "auto",
        progress: events.Progress = events.silent,
    ) -> ArgoBuilding:
        """Raises: Refused, UsageError for a base of the local engine, PlatformError."""
        if base == "preview":
            raise UsageError(
                "bad_usage", "--base preview is for the local engine", "leave it out, or add --engine local"
            )
        ready = {line.planned.image.key for line in self.look_at_images(plan) if line.word == "ready"}
        return start_builds(plan, self.cluster, self.store, user=self.user, ready=ready)

    def dry_run(self, plan: RunPlan, taskset: Taskset, *, options: SubmitOptions) -> list[Look]:
        """Raises: Refused, PlatformError."""
        return look(
            self.order(plan, taskset, options),
            self.cluster,
            user_registries(plan.head.platform, self._environ),
        )

    def submit(
        self,
        plan: RunPlan,
        taskset: Taskset,
        *,
        options: SubmitOptions | None = None,
        progress: events.Progress = events.silent,
    ) -> str:
        """Create the run's Workflow and return its id once the cluster has accepted it.

        Raises: Refused, Conflict `idempotency_conflict`, PlatformError.
        """
        options = options or SubmitOptions()
        self.check(plan, taskset, options=options)
        return submit_order(self.order(plan, taskset, options), self.cluster, self.store, progress)

    def order(self, plan: RunPlan, taskset: Taskset, options: SubmitOptions) -> Order:
        """The request that a submit sends, and a dry run looks at. Raises: Refused, PlatformError."""
        return Order(
            plan=plan,
            taskset=taskset,
            user=self.user,
            key=options.idempotency_key,
            host=host_values(plan.head.grants, options.environ),
            present=self._present(plan),
            request=options.request,
        )

    def survey(self, run_id: str) -> Survey:
        """Raises: UsageError `unknown_run`, PlatformError."""
        workflow = self._find(run_id)
        plan = self._plan_of(run_id, workflow)
        logins = self.site.platform.secrets.image_pull
        found = survey(
            run_id,
            self.store,
            engine=self.name,
            plan=plan,
            ended=self._ended(run_id, plan, workflow, now=time.time()),
            observed=LiveRun(self.cluster, workflow, logins=logins).observe(),
            seen=self._seen,
        )
        request = read_request(self.store, run_id)
        return replace(
            found,
            user=workflow.user if workflow else str(request.get("user", "")),
            submitted_at=workflow.created if workflow else str(request.get("submitted_at", "")),
        )

    def _find(self, run_id: str) -> Workflow | None:
        if not layout.is_run_id(run_id):
            raise unknown_run(run_id, self.store)
        with asking(self.cluster, f"look for {run_id}"):
            return find_workflow(self.cluster, run_id)

    def _plan_of(self, run_id: str, workflow: Workflow | None) -> str:
        """The plan's digest: a run that has just been submitted has it in its annotations only."""
        if workflow is not None and workflow.plan:
            return workflow.plan
        state = bundle_merge.read_state(run_id, self.store)
        if state is not None:
            return state.plan
        try:
            return find_plan(run_id, self.store)
        except UsageError as error:
            if workflow is None:
                raise self._unknown(run_id) from error
            raise UsageError(
                "unknown_run",
                f"{run_id} is a workflow in {self.cluster.namespace}, and no run of argo-harbor",
                "argo-harbor runs list shows the runs",
            ) from error

    def _unknown(self, run_id: str) -> UsageError:
        return UsageError(
            "unknown_run",
            f"no run {run_id} in {self.place}",
            "argo-harbor runs list shows the runs; --engine local looks on this machine",
        )

    def _ended(self, run_id: str, plan: str, workflow: Workflow | None, *, now: float) -> RunState | None:
        """How a run ended that no merge has told of; None while it goes on."""
        phase = end_of_workflow(workflow)
        if phase is not None:
            return RunState(run=run_id, plan=plan, phase=phase, result_state=ResultState.FAILED)
        if workflow is not None and self._queue_expired(run_id, plan, workflow, now):
            return RunState(run=run_id, plan=plan, phase=RunPhase.EXPIRED, result_state=ResultState.NONE)
        return None

    def _queue_expired(self, run_id: str, plan: str, workflow: Workflow, now: float) -> bool:
        """Whether nothing has started in the time that the plan gives a run to wait in."""
        age = now - seconds_of(workflow.created, now)
        if age < read_head(plan, self.store).limits.queue_timeout_seconds:
            return False
        return not any(self.store.list(layout.trials(run_id)))

    def merge(self, run_id: str) -> None:
        """Merge a run whose workflow is over, was terminated or is gone, or merge once more.

        Raises: UsageError `unknown_run`; Conflict `run_active` while its workflow goes on; PlatformError.
        """
        workflow = self._find(run_id)
        plan = self._plan_of(run_id, workflow)
        ended = end_of_workflow(workflow)
        if ended is None:
            raise Conflict(
                "run_active",
                f"{run_id} goes on in {self.place}, and merges by itself at its end",
                f"argo-harbor runs status {run_id} --watch follows it, and runs cancel {run_id} ends it",
            )
        if ended is RunPhase.CANCELLED and bundle_merge.read_state(run_id, self.store) is None:
            mark_cancelled(self.store, run_id, "its workflow ended early", user=self.user)
        wait_for_tries(run_id, self.store, alive=lambda: self._alive(run_id), say=lambda text: None)
        with asking(self.cluster, f"look why trials of {run_id} are missing"):
            causes = read_causes(self.cluster, run_id, read_head(plan, self.store))
        bundle_merge.merge(run_id, self.store, plan=plan, engine=self.name, causes=causes)

    def _alive(self, run_id: str) -> frozenset[str]:
        with asking(self.cluster, f"look for pods of {run_id}"):
            pods = list_pods(self.cluster, run_id)
        return frozenset(
            pod.uid.replace("-", "")[:8] for pod in pods if pod.phase not in ("Succeeded", "Failed")
        )

    def cancel(self, run_id: str) -> bool:
        """Ask the run's workflow to stop: running trials end and are recorded, then it merges.

        Raises: UsageError `unknown_run`, PlatformError.
        """
        workflow = self._find(run_id)
        self._plan_of(run_id, workflow)
        if workflow is None or workflow.over:
            return False
        mark_cancelled(self.store, run_id, "cancelled by its user", user=self.user)
        with asking(self.cluster, f"stop {run_id}"):
            stop_workflow(self.cluster, run_id)
        return True

    def list_runs(self, *, mine: bool = False, active: bool = False) -> list[RunInfo]:
        """Runs of the cluster, and those of the store whose Workflow is gone. Raises: PlatformError."""
        label = user_label(self.user) if mine else ""
        with asking(self.cluster, "list runs"):
            found = {
                workflow.name: workflow
                for workflow in list_runs(self.cluster, user_label=label, active=active)
            }
        listed = [self._listed(name, workflow) for name, workflow in found.items()]
        if not active:
            with asking(self.cluster, "list runs"):
                known = found.keys() | ({each.name for each in list_runs(self.cluster)} if mine else set())
            gone = [self._gone(name) for name in self._stored_runs() if name not in known]
            listed += [run for run in gone if run is not None and (not mine or run.user == self.user)]
        if active:
            listed = [run for run in listed if not run.phase.terminal]
        return sorted(listed, key=lambda run: run.submitted_at, reverse=True)

    def newest(self) -> str | None:
        """The caller's own: others submit to a cluster too."""
        with asking(self.cluster, "list runs"):
            mine = list(list_runs(self.cluster, user_label=user_label(self.user)))
        if mine:
            return max(mine, key=lambda workflow: workflow.created).name
        return next((run.id for run in self.list_runs(mine=True)), None)

    def _stored_runs(self) -> list[str]:
        """Ids of runs that have left anything in the store."""
        return [name for name in self.store.folders(layout.runs()) if layout.is_run_id(name)]

    def _listed(self, run_id: str, workflow: Workflow) -> RunInfo:
        state = bundle_merge.read_state(run_id, self.store)
        ended = end_of_workflow(workflow)
        phase = state.phase if state else ended
        if phase is None:
            began = any(self.store.folders(layout.trials(run_id)))
            phase = RunPhase.RUNNING if began else RunPhase.ACCEPTED
        return RunInfo(
            id=run_id,
            phase=phase,
            result_state=state.result_state
            if state
            else ResultState.FAILED
            if ended
            else ResultState.PENDING,
            taskset_ref=workflow.annotations.get(names.TASKSET_ANNOTATION, ""),
            plan_digest=workflow.plan,
            engine=self.name,
            profile=workflow.annotations.get(names.PROFILE_ANNOTATION, ""),
            base="image",
            bundle_dir=bundle_ref(run_id, self.store),
            user=workflow.user,
            submitted_at=workflow.created,
        )

    def _gone(self, run_id: str) -> RunInfo | None:
        """A run whose Workflow is gone, None for one that cannot be read."""
        request = read_request(self.store, run_id)
        state = bundle_merge.read_state(run_id, self.store)
        try:
            digest = state.plan if state is not None else find_plan(run_id, self.store)
            head = read_head(digest, self.store)
        except (UsageError, PlatformError):
            return None
        return RunInfo(
            id=run_id,
            phase=state.phase if state else RunPhase.CANCELLED,
            result_state=state.result_state if state else ResultState.FAILED,
            taskset_ref=head.taskset.ref,
            plan_digest=digest,
            engine=self.name,
            profile=head.profile.name,
            base="image",
            bundle_dir=bundle_ref(run_id, self.store),
            user=str(request.get("user", "")),
            submitted_at=str(request.get("submitted_at", "")),
        )

    def bundle_ref(self, run_id: str) -> str:
        return f"{self.store.name}/{layout.bundle(run_id).rstrip('/')}"

    @contextmanager
    def bundle(self, run_id: str) -> Iterator[Path]:
        """Raises: UsageError `unknown_run` while there is no whole bundle, PlatformError."""
        with TemporaryDirectory(prefix="argo-harbor-") as folder:
            yield download_bundle(run_id, self.store, Path(folder), checked=False).path

    def live_logs(self, run_id: str, source: LogSource, *, follow: bool) -> Iterator[LiveLog]:
        """Logs of the run's pods, as long as the cluster keeps those."""
        workflow = self._find(run_id)
        if workflow is None:
            return
        try:
            yield from LiveRun(self.cluster, workflow).logs(source, follow=follow)
        except ClusterError as error:
            raise PlatformError(
                "platform_unreachable", f"the logs of {run_id} cannot be read: {error.message}"
            ) from error
