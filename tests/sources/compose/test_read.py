"""Compose files: what becomes a container, and what is refused, with file and key."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from argo_harbor.model.services import Compose, HealthProbe, ServiceMount, ServiceValue
from argo_harbor.model.taskset import Task
from argo_harbor.sources import load_taskset
from tests.sources.conftest import WriteTask

FILE = "environment/docker-compose.yaml"


@pytest.fixture
def read(write_task: WriteTask) -> Any:
    """A function from the text of a compose file to the task that has it."""

    def load(text: str, *, toml: str = "", without: tuple[str, ...] = (), **files: str) -> Task:
        written = {path.replace("__", "/"): content for path, content in files.items()}
        root = write_task(toml=toml, files={FILE: dedent(text), **written}, without=without)
        return load_taskset(root).tasks[0]

    return load


def compose_of(task: Task) -> Compose:
    assert task.compose is not None
    return task.compose


def found(task: Task) -> list[tuple[str, str]]:
    """Key and message of each finding."""
    findings = compose_of(task).findings
    assert all(finding.file == FILE and finding.hint for finding in findings)
    return [(finding.key, finding.message) for finding in findings]


def refused(task: Task) -> list[str]:
    return [key for key, _ in found(task)]


def test_a_service_is_read_with_all_that_maps(read: Any) -> None:
    task = read(
        """\
        services:
          main:
            depends_on: {api: {condition: service_healthy}}
            environment: {API: "http://api:8000", TOKEN: "${TOKEN}"}
            working_dir: /srv
            volumes: ["data:/data"]
          api:
            build:
              context: ./api
              target: final
              args: {FLAVOUR: plain}
            entrypoint: ["/bin/server", "--port"]
            command: "8000 --name 'a b'"
            environment:
              - MODE=test
              - EMPTY=
              - KEY=${KEY:-none}
              - PASSED
            working_dir: /app
            user: "1000:1001"
            expose: ["8000"]
            ports: ["8080:9000/tcp", {target: 9001, published: 1}]
            healthcheck:
              test: ["CMD", "curl", "-f", "http://localhost:8000"]
              interval: 2s
              timeout: 1500ms
              retries: 20
              start_period: 1m
            volumes: ["data:/data:ro", {type: tmpfs, target: /scratch, tmpfs: {size: 64m}}]
            shm_size: 256m
            deploy: {resources: {limits: {cpus: "0.5", memory: 768M}}}
            restart: unless-stopped
        volumes:
          data: {}
        x-note: anything
        """,
        environment__api__Dockerfile="FROM base:1 AS final\n",
    )
    compose = compose_of(task)
    assert compose.findings == ()
    assert compose.environment == (
        ServiceValue("API", "http://api:8000"),
        ServiceValue("TOKEN", None, "TOKEN"),
    )
    assert compose.working_dir == "/srv"
    assert compose.mounts == (ServiceMount(path="/data", volume="data"),)
    [api] = compose.services
    assert (api.image.kind, api.image.context, api.image.target) == (
        "dockerfile",
        "environment/api",
        "final",
    )
    assert api.image.own_arguments == (("FLAVOUR", "plain"),)
    assert api.image.bases == ("base:1",)
    assert api.entrypoint == ("/bin/server", "--port")
    assert api.command == ("8000", "--name", "a b")
    assert api.environment == (
        ServiceValue("EMPTY", ""),
        ServiceValue("KEY", "none", "KEY"),
        ServiceValue("MODE", "test"),
        ServiceValue("PASSED", None, "PASSED", optional=True),
    )
    assert (api.working_dir, api.user, api.group) == ("/app", 1000, 1001)
    assert api.ports == (8000, 9000, 9001)
    assert api.probe == HealthProbe(
        command=("curl", "-f", "http://localhost:8000"), period_seconds=2, timeout_seconds=2, failures=100
    )
    assert (api.cpus, api.memory_mb) == (0.5, 768)
    assert api.mounts == (
        ServiceMount(path="/data", volume="data", read_only=True),
        ServiceMount(path="/dev/shm", size_mb=256),
        ServiceMount(path="/scratch", size_mb=64),
    )


def test_the_image_of_main_is_the_task_s_own(read: Any) -> None:
    text = """\
        services:
          main:
            image: ${MAIN_IMAGE_NAME}
            build: {context: "${CONTEXT_DIR}"}
            command: sleep infinity
            deploy: {resources: {limits: {cpus: "${CPUS}", memory: "${MEMORY}"}}}
            volumes: ["${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}"]
        """
    task = read(text, toml="[environment]\ncpus = 2\nmemory_mb = 4096\n")
    assert found(task) == []
    assert (task.agent_image.kind, task.agent_image.context) == ("dockerfile", "environment")


def test_main_may_be_built_elsewhere(read: Any) -> None:
    built = read("services: {main: {build: ./box}}", environment__box__Dockerfile="FROM a\nWORKDIR /box\n")
    assert (built.agent_image.context, built.agent_image.workdir) == ("environment/box", "/box")


def test_main_may_be_an_image(read: Any) -> None:
    image = read("services: {main: {image: 'debian:12'}}", without=("environment/Dockerfile",))
    assert (image.agent_image.kind, image.agent_image.reference) == ("prebuilt", "debian:12")


def test_another_service_may_run_the_image_of_main(read: Any) -> None:
    task = read("services: {helper: {image: '${MAIN_IMAGE_NAME}', command: serve}}")
    [helper] = compose_of(task).services
    assert helper.image is task.agent_image


def test_services_start_behind_those_that_they_wait_for(read: Any) -> None:
    task = read(
        """\
        services:
          web: {image: a, depends_on: [seed]}
          seed: {image: b, depends_on: {db: {condition: service_healthy}}}
          db: {image: c, healthcheck: {test: pg_isready}}
          main: {depends_on: {seed: {condition: service_completed_successfully}}}
        """
    )
    assert found(task) == []
    services = compose_of(task).services
    assert [(each.name, each.once) for each in services] == [("db", False), ("seed", True), ("web", False)]
    assert services[0].probe is not None
    assert services[0].probe.command == ("/bin/sh", "-c", "pg_isready")


def test_variables_of_the_task_fill_the_file(read: Any) -> None:
    task = read(
        """\
        services:
          db:
            image: postgres:${TAG:-17}
            command: ["--name", "$NAME", "$$HOME"]
            environment: {MODE: "${MODE}", LONG: "x-${MODE}-${OTHER:-y}", KEY: "${KEY}"}
        """,
        toml='[environment.env]\nNAME = "n"\nMODE = "fast"\nKEY = "${SECRET_KEY}"\n',
    )
    assert found(task) == []
    [db] = compose_of(task).services
    assert db.image.reference == "postgres:17"
    assert db.command == ("--name", "n", "$HOME")
    assert db.environment == (
        ServiceValue("KEY", None, "SECRET_KEY"),
        ServiceValue("LONG", "x-fast-y"),
        ServiceValue("MODE", "fast"),
    )


UNMAPPED = {
    "privileged": "privileged: true",
    "cap_add": "cap_add: [NET_ADMIN]",
    "devices": "devices: [/dev/kvm]",
    "network_mode": "network_mode: host",
    "pid": "pid: host",
    "ipc": "ipc: host",
    "secrets": "secrets: [token]",
    "configs": "configs: [file]",
    "extends": "extends: {service: other}",
    "profiles": "profiles: [debug]",
    "gpus": "gpus: all",
    "env_file": "env_file: .env",
    "extra_hosts": "extra_hosts: ['a:10.0.0.1']",
    "links": "links: [other]",
    "security_opt": "security_opt: ['seccomp:unconfined']",
    "ulimits": "ulimits: {nofile: 10}",
    "scale": "scale: 2",
    "privilegde": "privilegde: true",
    "deploy.replicas": "deploy: {replicas: 2}",
    "deploy.resources.reservations.devices": "deploy: {resources: {reservations: {devices: []}}}",
    "user": "user: postgres",
    "platform": "platform: linux/arm64",
    "volumes[0]": "volumes: ['./data:/data']",
    "working_dir": "working_dir: app",
    "command": 'command: "unclosed \'quote"',
    "entrypoint": "entrypoint: []",
    "ports[0]": "ports: ['8000-8010:8000-8010']",
    "expose": "expose: 8000",
    "mem_limit": "mem_limit: much",
    "cpus": "cpus: 0",
    "tmpfs[0]": "tmpfs: [/opt/opensandbox/x]",
    "environment": "environment: ['A B=1']",
    "environment.A": "environment: {A: [1]}",
    "environment.NUL": 'environment: {NUL: "a\\0b"}',
    "healthcheck.test": "healthcheck: {test: [ls]}",
    "healthcheck.interval": "healthcheck: {test: ls, interval: 5}",
    "build": "build: ./nowhere",
    "build.context": "build: ../outside",
    "build.dockerfile_inline": "build: {dockerfile_inline: FROM a}",
    "build.args.A": "build: {context: ., args: [A]}",
    "build.target": "build: {context: ., target: [a]}",
    "depends_on.main": "depends_on: [main]",
    "depends_on.ghost": "depends_on: [ghost]",
    "depends_on.other.condition": "depends_on: {other: {condition: often}}",
    "ports": "ports: ['44772']",
}


@pytest.mark.parametrize("key", UNMAPPED)
def test_what_does_not_map_is_refused_by_key(read: Any, key: str) -> None:
    image = "" if UNMAPPED[key].startswith("build") else "image: a, "
    task = read(f"services: {{other: {{image: b}}, db: {{{image}{UNMAPPED[key]}}}}}")
    assert refused(task) == [f"services.db.{key}"]


OF_THE_FILE = {
    "secrets": "secrets: {a: {file: x}}",
    "volumes.d.driver": "volumes: {d: {driver: nfs}}",
    "networks.n.driver": "networks: {n: {driver: macvlan}}",
    "unknown": "unknown: 1",
}


@pytest.mark.parametrize("key", OF_THE_FILE)
def test_what_does_not_map_of_the_file_is_refused(read: Any, key: str) -> None:
    assert refused(read(f"services: {{}}\n{OF_THE_FILE[key]}\n")) == [key]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("services: {main: {command: serve}}", "services.main.command"),
        ("services: {main: {healthcheck: {test: ls}}}", "services.main.healthcheck"),
        ("services: {main: {user: '1000'}}", "services.main.user"),
        ("services: {main: {mem_limit: 1g}}", "services.main.deploy.resources"),
        ("services: {db: {}}", "services.db"),
        ("services: {'d b': {image: a}}", "services.d b"),
        ("services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}", "services"),
        ("services: {a: {image: x, ports: ['80']}, b: {image: x, expose: [80]}}", "services.b.ports"),
        ("services: {a: {image: x}, main: {depends_on: {a: {condition: service_healthy}}}}",
         "services.a.healthcheck"),
        ("services: {a: {image: x, networks: [one]}, main: {}}\nnetworks: {one: {}}", "networks"),
        ("services: {a: {image: 'x:${TAG}'}}", "services.a.image"),
        ("services: {a: {image: x, command: 'echo $'}}", "services.a.command"),
        ("services: {a: {image: x, environment: {U: 'p://${PASSWORD}@db'}}}", "services.a.environment.U"),
        ("services: {a: {image: x, volumes: ['ghost:/g']}}", "services.a.volumes[0]"),
        ("services: []", "services"),
        ("services: {a: {image: x, networks: {default: {aliases: [b]}}}}", "services.a.networks.default"),
        ("services: {a: {image: x, networks: 1}}", "services.a.networks"),
        ("services: {a: {image: x, volumes: ['v:/v', {source: w, target: /v}]}}\nvolumes: {v: , w: }",
         "services.a.volumes[1]"),
        ("services: {a: {image: x, volumes: [{type: bind, source: ./a, target: /v}]}}",
         "services.a.volumes[0]"),
        ("services: {a: {image: x, environment: {A: '${'}}}", "services.a.environment.A"),
        ("services: {a: {image: x, depends_on: {b: {condition: service_healthy}}},"
         " b: {image: x, healthcheck: {test: ls}}, main: {depends_on: {b:"
         " {condition: service_completed_successfully}}}}", "services.b"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(read: Any, text: str, key: str) -> None:
    assert refused(read(text)) == [key]


def test_everything_is_said_at_once(read: Any) -> None:
    task = read(
        """\
        services:
          a: {image: x, privileged: true, user: root}
          b: {image: x, pid: host}
        secrets: {}
        """
    )
    assert refused(task) == ["secrets", "services.a.privileged", "services.a.user", "services.b.pid"]


def test_more_services_than_a_pod_takes_are_refused(read: Any) -> None:
    many = ", ".join(f"s{number}: {{image: x}}" for number in range(17))
    assert refused(read(f"services: {{{many}}}")) == ["services"]


def test_a_network_of_all_is_the_pod_s(read: Any) -> None:
    task = read(
        """\
        services:
          main: {networks: [app]}
          db: {image: x, networks: {app: {}}}
        networks: {app: {driver: bridge}}
        """
    )
    assert found(task) == []


def test_main_without_an_image_is_refused(read: Any) -> None:
    assert refused(read("services: {main: {}}", without=("environment/Dockerfile",))) == ["services.main"]


def test_the_image_of_task_toml_is_that_of_main(read: Any) -> None:
    toml = '[environment]\ndocker_image = "a:1"\n'
    task = read(
        "services: {main: {build: ./gone, image: b}, c: {image: '${PREBUILT_IMAGE_NAME}'}}", toml=toml
    )
    assert found(task) == []
    assert (task.agent_image.kind, task.agent_image.reference) == ("prebuilt", "a:1")
    assert compose_of(task).services[0].image.reference == "a:1"


def test_mounts_may_be_written_out(read: Any) -> None:
    task = read(
        """\
        services:
          main:
            volumes:
              - {type: bind, source: "${HOST_AGENT_LOGS_PATH}", target: "${ENV_AGENT_LOGS_PATH}"}
              - {type: volume, source: data, target: /data/, read_only: true}
              - {type: tmpfs, target: /scratch}
        volumes: {data: {driver: local}}
        """
    )
    assert found(task) == []
    assert compose_of(task).mounts == (
        ServiceMount(path="/data", volume="data", read_only=True),
        ServiceMount(path="/scratch"),
    )


def test_a_passed_on_variable_takes_the_task_s_value(read: Any) -> None:
    text = "services: {a: {image: x, environment: [MODE, KEY]}}"
    task = read(text, toml='[environment.env]\nMODE = "fast"\nKEY = "${TOKEN:-none}"\n')
    assert compose_of(task).services[0].environment == (
        ServiceValue("KEY", "none", "TOKEN", optional=True),
        ServiceValue("MODE", "fast"),
    )


def test_a_service_without_an_entrypoint_runs_its_command(read: Any) -> None:
    one, two = "{image: x, entrypoint: '', command: run it}", "{image: x, healthcheck: {disable: true}}"
    task = read(f"services: {{a: {one}, b: {two}}}")
    first, second = compose_of(task).services
    assert (first.entrypoint, first.command) == (("run", "it"), None)
    assert second.probe is None


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n"
    for below, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("services: {a: {}, a: {}}", "stands twice"),
        ("services: &s {a: *s}", "part of"),
        (BOMB, "too many values"),
        ("[" * 60 + "]" * 60, "nested"),
        ("services: [", "is no YAML"),
        ("services: !!python/object:os.system {}", "is no YAML"),
        ("- a", "is no mapping"),
        ("? [a]\n: b", "key must be text"),
        ("1: b", "key must be text"),
        ("a: 1\n---\nb: 2", "is no YAML"),
        ("x-a: " + "y" * (1 << 20), "more than"),
    ],
)
def test_broken_yaml_is_one_finding(read: Any, text: str, said: str) -> None:
    [(key, message)] = found(read(text))
    assert key == ""
    assert said in message


def test_an_empty_file_asks_for_nothing(read: Any) -> None:
    assert compose_of(read("")) == Compose()


def test_aliases_and_merges_are_written_out(read: Any) -> None:
    task = read(
        """\
        x-common: &common {image: base, working_dir: /w}
        services:
          a: {<<: *common, command: one}
          b: {<<: *common, working_dir: /v}
        """
    )
    services = compose_of(task).services
    assert [(each.image.reference, each.working_dir) for each in services] == [("base", "/w"), ("base", "/v")]


def test_variables_of_an_extension_count_where_they_are_used(read: Any) -> None:
    task = read(
        """\
        x-env: &env {KEY: "${KEY}", URL: "$unfinished{"}
        x-tag: &tag "app:${TAG:-1}"
        services:
          a: {image: *tag, environment: {KEY: "${KEY}"}}
        """
    )
    assert found(task) == []
    [service] = compose_of(task).services
    assert service.image.reference == "app:1"
    assert service.environment == (ServiceValue("KEY", None, "KEY"),)


def test_texts_stay_what_they_look_like(read: Any) -> None:
    values = "{A: no, B: 1_0, C: 0o7, D: 1e3, E: true, F: 1.5}"
    task = read(f"services: {{a: {{image: x, ports: [22:23], environment: {values}}}}}")
    [service] = compose_of(task).services
    assert service.ports == (23,)
    assert {value.name: value.text for value in service.environment} == {
        "A": "no",
        "B": "1_0",
        "C": "0o7",
        "D": "1e3",
        "E": "true",
        "F": "1.5",
    }
