"""Containers beside the sandbox, on the cluster: they are there, are told everything literally, hold nothing
that they must not, and one that does not start fails its own task only."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from argo_harbor.workflow.confinement import DROPPED_CAPABILITIES
from tests.cluster import addresses
from tests.e2e.cluster.remote import Remote
from tests.e2e.cluster.suites import ready_task
from tests.e2e.cluster.test_faults import causes
from tests.engines.suite import REWARD
from tests.support.program import EXAMPLES

pytestmark = pytest.mark.cluster

TRICKY = (
    "{{workflow.name}} {{=1+1}} {{inputs.parameters.image}} $(HOME) $HOME $$ ${X} \"q\" 'a' "
    "\\n \\u0041\n\té😀 <&>%"
)
"""What Argo, YAML, JSON, a shell and a node would each like to change."""
GRANTED = "{{workflow.uid}} $(PATH) end"
FROM_SHELL = "of the shell {{workflow.name}}"

_CGI = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n"
_TELL = {
    "tricky": 'printf %s "$TRICKY"',
    "granted": 'printf %s "$GRANTED"',
    # Secrets do not stand in what a trial leaves behind, so this one is not answered as it is.
    "shell": 'printf %s "$FROM_SHELL" | sha256sum',
    "argument": "cat /tmp/argument",
    "probe": "cat /tmp/probed",
    "user": "id -u",
    "capabilities": "grep -E '^Cap(Bnd|Eff):' /proc/1/status",
    "mounts": "cat /proc/mounts",
    "environment": "env",
    "names": "cat /etc/hosts",
    "token": "ls /var/run/secrets /run/argo-harbor /etc/argo-harbor /opt/opensandbox 2>&1",
    "egress": "wget -q -O - http://127.0.0.1:18080/policy 2>&1",
    "store": f"wget -q -O - {addresses.STORE}/argo-harbor 2>&1",
    "registry": f"timeout 4 nc {addresses.REGISTRY.replace(':', ' ')} < /dev/null 2>&1 && echo open",
    "outside": "timeout 4 nc 192.0.2.7 80 < /dev/null 2>&1 && echo open",
}
"""What the service answers, by path: a script each."""

_SERVE = """\
#!/bin/sh
trap 'exit 0' TERM
printf %s "$1" > /tmp/argument
httpd -f -p 8000 -h /www &
wait
"""

_SOLVE = f"""\
mkdir -p /app/told
for name in {" ".join(_TELL)}; do
    exec 3<> /dev/tcp/web/8000
    printf 'GET /cgi-bin/%s HTTP/1.0\\r\\n\\r\\n' "$name" >&3
    sed '1,/^\\r*$/d' <&3 > "/app/told/$name"
done
printf %s "$OF_MAIN" > /app/told/main
"""
_TEST = f"""\
cp -r /app/told /logs/verifier/
exec 3<> /dev/tcp/web/8000
printf 'GET /cgi-bin/user HTTP/1.0\\r\\n\\r\\n' >&3
sed '1,/^\\r*$/d' <&3 | grep -qx 1000 && echo 1 > {REWARD}
"""


def telling(suite: Path) -> None:
    """A task whose service answers what it was told and what it can see."""
    folder = ready_task(suite, "telling", solve=_SOLVE, test=_TEST)
    web = folder / "environment" / "web"
    for name, text in _TELL.items():
        put(web / "www" / "cgi-bin" / name, f"{_CGI}{text}\n")
    put(web / "serve", _SERVE)
    put(web / "Dockerfile", 'FROM busybox\nCOPY www/ /www/\nCOPY serve /bin/serve\nENTRYPOINT ["serve"]\n')
    written = TRICKY.replace("$", "$$")
    compose(
        folder,
        {
            "main": {
                "depends_on": {"web": {"condition": "service_healthy"}},
                "environment": {"OF_MAIN": written},
            },
            "web": {
                "build": "./web",
                "command": [written],
                "user": "1000:1000",
                # The image has a folder of that name which only root may write to.
                "tmpfs": "/tmp",
                "environment": {
                    "TRICKY": written,
                    "GRANTED": "${GRANTED}",
                    "FROM_SHELL": "${FROM_SHELL:-none}",
                },
                "healthcheck": {
                    "test": ["CMD", "sh", "-c", 'printf %s "$$1" > /tmp/probed', "probe", written],
                    "interval": "1s",
                },
                "cpus": 0.1,
                "mem_limit": "64m",
            },
        },
    )


def failing(suite: Path, name: str, service: dict[str, Any]) -> None:
    """A task that waits for a service which fails."""
    folder = ready_task(suite, name)
    condition = "service_healthy" if "healthcheck" in service else "service_completed_successfully"
    small = {"image": "busybox", "cpus": 0.05, "mem_limit": "32m"}
    compose(folder, {"main": {"depends_on": {"db": {"condition": condition}}}, "db": {**small, **service}})


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def compose(folder: Path, services: dict[str, Any]) -> None:
    (folder / "environment" / "docker-compose.yaml").write_text(
        yaml.safe_dump({"services": services}, allow_unicode=True)
    )


@dataclass(frozen=True)
class Ran:
    remote: Remote
    run_id: str
    folder: Path
    pod: dict[str, Any]
    """The pod of the task that tells, while it ran."""

    def told(self, name: str) -> str:
        """What the service of the task that tells answered."""
        (path,) = (self.folder / "records").rglob(f"told/{name}")
        return path.read_bytes().decode()


@pytest.fixture(scope="module")
def ran(remote: Remote, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("compose")
    suite = folder / "suite"
    for example in ("ask-a-server", "shared-folder"):
        shutil.copytree(EXAMPLES / "compose" / example, suite / example)
    telling(suite)
    unwell = {
        "command": ["sh", "-c", "echo I shall never be well; exec sleep 1000"],
        "healthcheck": {"test": ["CMD", "false"], "interval": "1s", "retries": 1},
    }
    failing(suite, "unwell", unwell)
    failing(suite, "broken-job", {"command": ["sh", "-c", "echo no seeds left; exit 3"]})
    spec = folder / "spec.json"
    env = {"GRANTED": f"lit:{GRANTED}", "FROM_SHELL": "host:FROM_SHELL"}
    target = {"kind": "harbor", "source": {"name": "oracle"}, "env": env}
    spec.write_text(json.dumps({"spec": {"target": target}, "execution": {}}))
    flags = ("--spec-file", spec, "--json")
    done = remote("runs", "submit", "--harbor-dir", suite, *flags, env={"FROM_SHELL": FROM_SHELL})
    assert done.status == 0, done.stdout
    run_id = done.json("run-document-1")["run"]["id"]
    pod = remote.until(lambda: with_service_of(remote, run_id), what="the pod with services", seconds=300)
    remote.ended(run_id)
    assert remote.records(run_id, folder / "records", "telling")
    return Ran(remote, run_id, folder, pod)


def with_service_of(remote: Remote, run_id: str) -> dict[str, Any] | None:
    """The trial pod with the service `web`."""
    for pod in remote.pods(run_id):
        if any(each["name"] == "service-web" for each in pod["spec"].get("initContainers", ())):
            return pod
    return None


def test_the_examples_come_to_what_they_say(ran: Ran) -> None:
    for task in ("ask-a-server", "shared-folder"):
        trial = ran.remote.trial(ran.run_id, task)
        assert (trial["outcome"], trial["rewards"]) == ("scored", {"reward": 1.0}), trial


def test_agent_and_verifier_reach_a_service_by_its_name(ran: Ran) -> None:
    trial = ran.remote.trial(ran.run_id, "telling")
    assert (trial["outcome"], trial["rewards"]) == ("scored", {"reward": 1.0}), trial


@pytest.mark.parametrize("place", ["tricky", "argument", "probe", "main"])
def test_text_of_a_task_arrives_as_it_is(ran: Ran, place: str) -> None:
    assert ran.told(place) == TRICKY


def test_what_the_run_grants_arrives_as_it_is(ran: Ran) -> None:
    assert ran.told("granted") == GRANTED
    assert ran.told("shell").split()[0] == hashlib.sha256(FROM_SHELL.encode()).hexdigest()
    assert FROM_SHELL not in json.dumps(ran.pod)


def test_a_service_runs_as_its_user_without_what_a_sandbox_lacks(ran: Ran) -> None:
    assert ran.told("user").strip() == "1000"
    bounds = int(ran.told("capabilities").split("CapBnd:")[1].split()[0], 16)
    numbers = {"NET_ADMIN": 12, "NET_RAW": 13, "SYS_MODULE": 16, "SYS_PTRACE": 19, "SYS_ADMIN": 21}
    numbers |= {"SYS_TIME": 25, "MKNOD": 27, "AUDIT_WRITE": 29}
    assert set(numbers) == set(DROPPED_CAPABILITIES)
    assert [name for name, number in numbers.items() if bounds >> number & 1] == []


def test_a_service_holds_no_credentials_and_no_folder_of_ours(ran: Ran) -> None:
    mounts, environment, listed = (ran.told(each) for each in ("mounts", "environment", "token"))
    for ours in ("/run/argo-harbor", "/etc/argo-harbor", "/opt/opensandbox", "serviceaccount"):
        assert ours not in mounts
        assert f"{ours}:\n" not in listed
    assert "ARGO_HARBOR" not in environment
    assert "EXECD" not in environment


def test_a_service_is_behind_the_same_fence(ran: Ran) -> None:
    assert "401" in ran.told("egress")
    assert "403" in ran.told("store")
    assert "open" not in ran.told("registry")
    assert "open" not in ran.told("outside")


def test_services_start_between_the_fence_and_the_sandbox(ran: Ran) -> None:
    order = [each["name"] for each in ran.pod["spec"]["initContainers"]]
    assert order == ["init", "execd-installer", "egress", "service-web", "sandbox"]


def test_a_service_that_does_not_start_fails_its_own_task_with_the_reason(ran: Ran, tmp_path: Path) -> None:
    named = causes(ran.remote, ran.run_id, tmp_path)
    assert set(named) == {"unwell", "broken-job"}
    assert {code for code, _ in named.values()} == {"service_failed"}
    assert named["unwell"][1].startswith("service db did not become healthy within ")
    assert named["unwell"][1].endswith("; its last words: I shall never be well")
    assert named["broken-job"][1] == (
        "service db was to do its work and ended with exit code 3; its last words: no seeds left"
    )
    status = ran.remote("runs", "status", ran.run_id, "--json").json("run-document-1")["run"]
    assert (status["phase"], status["result_state"]) == ("completed", "ready")
