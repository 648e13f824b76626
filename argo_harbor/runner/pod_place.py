"""A trial pod as the place of a try: its mounted files, its environment and the store say everything."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from argo_harbor.errors import EXIT_FAILED, PlatformError
from argo_harbor.model.base import canonical_json
from argo_harbor.model.plan import Grant, PlanHead, TaskPlan
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.runner import PodSandboxSettings
from argo_harbor.runner import showcase
from argo_harbor.runner.admission import admission
from argo_harbor.runner.announce import PodLog
from argo_harbor.runner.clock import now, stamp
from argo_harbor.runner.exits import EXIT_AGAIN
from argo_harbor.runner.grants import GrantedValues
from argo_harbor.runner.infrastructure import pod_denied, pod_hosts, resolve
from argo_harbor.runner.outcome import Stop
from argo_harbor.runner.place import Admission, Granted
from argo_harbor.runner.pod import Pod, claim_run
from argo_harbor.store import layout
from argo_harbor.store.base import Store
from argo_harbor.workflow import names
from argo_harbor.workflow.sandbox import EGRESS_PORT, EXECD_PORT, REFUSALS_PORT

MARGIN_SECONDS = 20.0
"""Before the pod's own deadline, to write a record that says what was too slow."""
MODEL_KEY_FILE = "api_key"


class PodPlace:
    """See `Place`."""

    grace = 60.0

    def __init__(
        self,
        pod: Pod,
        began: float,
        *,
        environ: Mapping[str, str] | None = None,
        scratch: Path = Path(names.WORK_PATH),
        model: Path = Path(names.MODEL_PATH),
        egress: Path = Path(names.EGRESS_TOKEN_PATH),
    ) -> None:
        """`began` is the Unix time at which the runner started; the paths are where a pod mounts them."""
        self.scratch = scratch
        self.node = pod.node
        self.workflow_uid = pod.workflow_uid
        self._pod = pod
        self.began_at = stamp(datetime.fromtimestamp(began, UTC))
        self._began = began
        self._environ = os.environ if environ is None else environ
        self._model = model
        self._egress = egress
        self._log = PodLog(began)
        self._marking: tuple[Store, str] | None = None

    @cached_property
    def _aside(self) -> ThreadPoolExecutor:
        """For marks in the store that nothing waits for."""
        return ThreadPoolExecutor(1)

    def claim(self, store: Store, run: str) -> None:
        claim_run(store, run, self.workflow_uid)

    def admit(self, store: Store, run: str, head: PlanHead, started: str) -> Admission:
        self._marking = (store, started.removesuffix(layout.STARTED) + layout.PHASE)
        return admission(store, run, head.limits, started)

    def sandbox(self, head: PlanHead, part: TaskPlan) -> PodSandboxSettings:
        try:
            hosts = pod_hosts(head.platform, self._pod.platform, self._environ)
        except ValueError as error:
            raise PlatformError(
                "platform_not_configured", f"the platform names no host: {error}", "correct the platform file"
            ) from error
        return PodSandboxSettings(
            execd_port=EXECD_PORT,
            execd_token=self._environ.get(names.EXECD_TOKEN_ENV, ""),
            egress_port=EGRESS_PORT,
            egress_token_file=str(self._egress / "token"),
            refusals_port=REFUSALS_PORT,
            denied=pod_denied(head),
            hosts=hosts,
            addresses=resolve(hosts),
        )

    def grants(self, head: PlanHead) -> Granted:
        key = self._model / MODEL_KEY_FILE
        return Granted(
            self._values(head.grants.target),
            self._values(head.grants.verifier),
            key.read_text().strip() if key.is_file() else "",
        )

    def _values(self, grants: Iterable[Grant]) -> GrantedValues:
        """Literal values stand in the plan; what the platform sets has its own name, all else our prefix.

        A variable that another half of the trial has is not there, and not needed.
        """
        values = GrantedValues()
        for grant in grants:
            found: str | None = grant.value
            if grant.kind == "runtime":
                found = self._environ.get(grant.value)
            elif grant.kind != "lit":
                found = self._environ.get(names.GRANT_ENV_PREFIX + grant.name)
            if found is not None:
                values[grant.name] = found
        return values

    def outer_seconds(self, planned: float) -> float:
        return max(planned - (time.time() - self._began) - MARGIN_SECONDS, 1.0)

    def announce(self, phase: str) -> None:
        self._log.say(f"{phase} begins")
        if self._marking is not None:
            store, key = self._marking
            self._aside.submit(store.put, key, canonical_json({"phase": phase, "at": now()}))

    def leave(self, record: TrialRecord, work: Path, secrets: tuple[str, ...]) -> None:
        for line in showcase.lines(record):
            self._log.say(line)
        showcase.show(record, work, self.scratch / Path(names.ARTIFACT_PATH).name, secrets)
        self._aside.shutdown(wait=False, cancel_futures=True)

    def stopped_status(self, stop: Stop, *, before: bool) -> int:
        # A run that is over must not start a further try; a pod that was taken away may have one.
        return EXIT_FAILED if before or stop == "expired" else EXIT_AGAIN
