"""A trial pod on this machine: its network, egress, a sandbox with execd in it, a store, and the runner.

The network is the contract tests' pod with the world around it. Sandbox and runner each see this machine's
files through an overlay of their own, so that they may write anywhere. Needs root.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from argo_harbor.engines.publish import publish
from argo_harbor.model.plan import RunPlan
from argo_harbor.model.platform import Platform, StoreSettings
from argo_harbor.model.profile import Profile
from argo_harbor.model.record import TrialRecord
from argo_harbor.model.spec import RunSpec
from argo_harbor.planning.plan import plan
from argo_harbor.runner.refusals import secret_path
from argo_harbor.sources.read import load_taskset
from argo_harbor.store import layout
from argo_harbor.store.credentials import Credentials
from argo_harbor.store.s3 import S3Store
from argo_harbor.workflow import names
from argo_harbor.workflow.sandbox import REFUSALS_PORT
from tests.contract import outside
from tests.contract.daemons import EGRESS_TOKEN, EXECD_TOKEN, Egress, Program, ping
from tests.contract.namespaces import Namespace, connect, namespaces
from tests.support import gotools, standins
from tests.support.s3server import VERSITYGW

OUTSIDE = "10.77.0.1"
STORE_HOST, STORE_PORT = "store.storage.svc.cluster.local", 9000
BUCKET, ACCESS, SECRET = "harbor", "test-access", "test-secret-key"
NAMESPACE = "argo-harbor"
UID, WORKFLOW_UID = "0a1b2c3d-0000-4000-8000-000000000000", "f00dcafe-0000-4000-8000-000000000000"
BASELINE = [{"action": "allow", "target": target} for target in (OUTSIDE, STORE_HOST)]
RECORDS = {
    "ok.example": [outside.ALLOWED],
    "other.example": [outside.OTHER],
    # A resolver that the published egress believes in knows this name.
    "zone.example": [outside.OTHER],
    STORE_HOST: [OUTSIDE],
}
START_SECONDS = 20.0
CLOSED = Profile(name="closed")

_NOBODY = ("setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", "--bounding-set=-all")
_OWN_PROCESSES = ("unshare", "--pid", "--fork", "--kill-child")
_OWN_ROOT = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$1"
mkdir "$1"/upper "$1"/work "$1"/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1"/root
cp -a "$2"/. "$1"/root/
mount -t proc proc "$1"/root/proc
mount --rbind /dev "$1"/root/dev
mount --rbind /sys "$1"/root/sys
root=$1/root
for each in $3; do chmod a+rx "$root$each"; done
shift 3
exec chroot "$root" "$@"
"""


@dataclass
class Pod:
    """A pod whose main container is started by `run`, as often as a test likes."""

    folder: Path
    pod: Namespace
    world: Namespace
    egress: Egress
    sandbox: subprocess.Popen[str]
    uid: str = UID
    token: str = EGRESS_TOKEN
    """Which the runner has for egress."""
    run: str = field(default_factory=lambda: f"run-{secrets.token_hex(8)}")
    digest: str = ""

    @property
    def platform(self) -> Platform:
        return Platform(
            namespace=NAMESPACE,
            undeny=("203.0.113.0/24",),
            store=StoreSettings(endpoint=f"http://{STORE_HOST}:{STORE_PORT}", bucket=BUCKET),
        )

    @contextmanager
    def store(self) -> Iterator[S3Store]:
        """The pod's store, as seen from outside the pod."""
        with self.world.entered():
            yield S3Store(
                f"http://{OUTSIDE}:{STORE_PORT}",
                BUCKET,
                root=NAMESPACE,
                credentials=Credentials(ACCESS, SECRET),
            )

    def plan(self, suite: Path, profile: Profile = CLOSED, spec: RunSpec | None = None) -> RunPlan:
        """Plan and publish a suite."""
        taskset = load_taskset(suite)
        made = plan(taskset, spec or RunSpec.for_agent("oracle"), platform=self.platform, profile=profile)
        with self.store() as store:
            publish(made, taskset, store)
        self.digest = made.digest
        return made

    def start(
        self,
        mode: str = "trial",
        *,
        task: int = 0,
        try_: int = 0,
        uid: str = UID,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start the runner as Argo starts the main container."""
        files = self.folder / f"main-{secrets.token_hex(4)}"
        _write(files / names.PLATFORM_PATH[1:] / "platform.toml", _toml(self.platform))
        _write(files / names.STORE_PATH[1:] / "access_key", ACCESS)
        _write(files / names.STORE_PATH[1:] / "secret_key", SECRET)
        _write(files / names.EGRESS_TOKEN_PATH[1:] / "token", self.token)
        _write(files / "etc/resolv.conf", f"nameserver {outside.RESOLVER}\n")
        (files / names.WORK_PATH[1:]).mkdir(parents=True)
        (files / names.WORK_PATH[1:]).chmod(0o777)
        arguments = [mode, "--plan", self.digest, "--run", self.run, "--task", str(task)]
        arguments += ["--attempt", "0", "--try", str(try_)]
        return self.pod.start(
            [*_own_root(files), *_NOBODY, sys.executable, "-m", "argo_harbor.runner", *arguments],
            env={
                names.POD_UID_ENV: uid,
                names.NODE_ENV: "node-1",
                names.NAMESPACE_ENV: NAMESPACE,
                names.WORKFLOW_UID_ENV: WORKFLOW_UID,
                names.EXECD_TOKEN_ENV: EXECD_TOKEN,
                "KUBERNETES_SERVICE_HOST": OUTSIDE,
                "HOME": names.WORK_PATH,
                "TMPDIR": names.WORK_PATH,
                "PYTHONPATH": str(gotools.REPOSITORY),
                **(env or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
        )

    def record(self, *, task: int = 0, try_: int = 0, uid: str = UID) -> TrialRecord:
        with self.store() as store:
            return TrialRecord.from_json(
                store.get(layout.try_folder(self.run, task, 0, try_, uid) + layout.TRIAL)
            )


@contextmanager
def trial_pod(folder: Path, programs: standins.Standins) -> Iterator[Pod]:
    """A pod whose sandbox is ready."""
    with namespaces("pod", "world") as (pod, world), ExitStack() as stack:
        connect(pod, world, also=outside.ADDRESSES)
        _start_world(world, folder, stack)
        egress = Egress(
            Program(programs.egress, ours=True),
            pod,
            {
                "POLICY_FILE": str(folder / "policy.json"),
                "RULES": json.dumps({"defaultAction": "deny", "egress": BASELINE}),
                "DENY_WEBHOOK": f"http://127.0.0.1:{REFUSALS_PORT}{secret_path(EGRESS_TOKEN)}",
            },
            folder / "egress.log",
        )
        stack.callback(_end, egress.process)
        with pod.entered():
            egress.wait()
        made = Pod(folder, pod, world, egress, start_sandbox(pod, folder / "sandbox", programs))
        stack.callback(lambda: _end(made.sandbox))
        yield made


def start_sandbox(pod: Namespace, folder: Path, programs: standins.Standins) -> subprocess.Popen[str]:
    """Start the sandbox's container and wait until its execd answers."""
    tools = folder / "files/opt/opensandbox"
    (tools / "scratch").mkdir(parents=True, exist_ok=True)
    (tools / "scratch").chmod(0o1777)
    (tools / "execd").write_bytes(programs.execd.read_bytes())
    (tools / "execd").chmod(0o755)
    log = (folder / "log").open("a")
    process = pod.start(
        [*_OWN_PROCESSES, *_own_root(folder / "files"), "/opt/opensandbox/execd", "--init"],
        env={
            "EXECD_API_GRACE_SHUTDOWN": "0s",
            "EXECD_ACCESS_TOKEN": EXECD_TOKEN,
            "TMPDIR": "/opt/opensandbox/scratch",
        },
        stdout=log,
        stderr=log,
        cwd="/",
    )
    log.close()
    deadline = time.monotonic() + START_SECONDS
    with pod.entered():
        while not _answers():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "execd does not answer"
            time.sleep(0.02)
    return process


def _answers() -> bool:
    try:
        return ping().status == 200
    except OSError:
        return False


def _own_root(files: Path) -> list[str]:
    space = files.parent / f"{files.name}-space"
    space.mkdir(exist_ok=True)
    # The runner is nobody in particular, and Python may lie in somebody's home.
    opened = " ".join(str(folder) for folder in Path(sys.base_prefix).parents)
    return ["unshare", "--mount", "sh", "-c", _OWN_ROOT, "own-root", str(space), str(files), opened]


def _start_world(world: Namespace, folder: Path, stack: ExitStack) -> None:
    log = folder / "asked"
    log.touch()
    hosts = world.start(
        [sys.executable, "-m", "tests.contract.outside", json.dumps(RECORDS), str(log), *outside.ADDRESSES],
        stdout=subprocess.PIPE,
        cwd=gotools.REPOSITORY,
    )
    stack.callback(_end, hosts)
    assert hosts.stdout is not None
    assert hosts.stdout.readline() == "ready\n"
    data = folder / "s3"
    (data / BUCKET).mkdir(parents=True)
    server = world.start(
        [gotools.build(VERSITYGW, say=print), "--quiet", "--port", f"{OUTSIDE}:{STORE_PORT}", "posix", data],
        env={"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET},
        stdout=(folder / "s3.log").open("w"),
        stderr=subprocess.STDOUT,
    )
    stack.callback(_end, server)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _toml(platform: Platform) -> str:
    store = platform.store
    return (
        f'schema = "platform-1"\nnamespace = "{platform.namespace}"\nundeny = {list(platform.undeny)!r}\n'
        f'[store]\nendpoint = "{store.endpoint}"\nbucket = "{store.bucket}"\n'
    ).replace("'", '"')


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.chmod(path, 0o644)
