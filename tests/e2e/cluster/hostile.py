"""Suites whose tasks attack: their solutions run a program that tries what no sandbox may do.

The image is pulled as it is, so no build stands before them; the program comes with the environment's files.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.cluster.outside import PORT, SERVERS, name_of
from tests.support import gotools
from tests.support.gotools import GoTool

_SOURCE = Path(__file__).parent / "attacker"
ATTACKER = GoTool(
    name="attacker", folder="attacker", module="argo-harbor.test/attacker", package="", source=_SOURCE
)

WAITING = "/tmp/waiting"
TARGETS = "/tmp/targets.json"
FINDINGS = "/app/findings.json"
GO_ON = "/tmp/go-on"
KNOCKS = "knocks.jsonl"
"""The log of the program that knocks all the time, among the verifier's files."""

_TASK = """\
schema_version = "1.4"
[task]
name = "hostile/{name}"
description = "Hostile: {name}"
[agent]
timeout_sec = 600.0
{agent}
[verifier]
timeout_sec = 60.0
{verifier}
[environment]
docker_image = "debian:bookworm-slim"
workdir = "/app"
cpus = 0.2
memory_mb = {memory}
storage_mb = 256
{environment}
"""

_ATTACK = f"""\
#!/bin/bash
set -eu
touch {WAITING}
until [ -e {TARGETS} ]; do sleep 0.1; done
/app/attacker try {TARGETS} > {FINDINGS}.part
mv {FINDINGS}.part {FINDINGS}
until [ -e {GO_ON} ]; do sleep 0.1; done
"""
_WAIT = f"#!/bin/bash\nset -eu\ntouch {WAITING}\nuntil [ -e {GO_ON} ]; do sleep 0.1; done\n"
_ZERO = "#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n"
_ONE = "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n"

# With a dot at the end, so that one lookup is one lookup and no search domain is tried.
_KNOCKED = " ".join(f"{server}={name_of(server)}.:{PORT}" for server in SERVERS)
_SHOW = f"cp /app/{KNOCKS} /logs/verifier/{KNOCKS}\n"
_HEALTHCHECK = """\
[environment.healthcheck]
command = "bash /app/healthcheck.sh"
interval_sec = 0.2
timeout_sec = 30.0
retries = 3
"""

_STEPS = '[[steps]]\nname = "first"\n[[steps]]\nname = "second"\n'
BETWEEN_STEPS = 3
"""Seconds that the second step's own setup takes."""

# Writes once, as late as it can: after the reward was read and its file removed.
_FORGE = """\
#!/bin/bash
nohup setsid bash -c '
    until [ -e /logs/verifier/reward.txt ]; do sleep 0.02; done
    while [ -e /logs/verifier/reward.txt ]; do sleep 0.02; done
    mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt
' < /dev/null > /dev/null 2>&1 &
"""
# Many processes, each smaller than execd: what the kernel ends for lack of memory is then the largest of all,
# the container's first process, and the container with it.
_EAT = """\
#!/bin/bash
for number in {1..400}; do
    bash -c 'x=$(head -c 1000000 /dev/zero | tr "\\0" x); sleep 600; :' &
done
wait
"""


def hostile_suite(folder: Path, *, say: gotools.Say) -> Path:
    """Write the suite of all attacks into `folder` and return it.

    Raises: ToolUnavailable, ToolBuildFailed.
    """
    attacker = gotools.build(ATTACKER, say=say)
    phases = {
        "agent": _allow("agent"),
        "verifier": _allow("verifier"),
        "environment": _allow("setup", "metadata") + _HEALTHCHECK,
    }
    linger = "#!/bin/bash\nsleep 3\n"
    _write(folder, "in-the-open", {"solution/solve.sh": _ATTACK, "tests/test.sh": _ONE}, attacker=attacker)
    _write(
        folder,
        "shut-in",
        {"solution/solve.sh": _ATTACK, "tests/test.sh": _ONE},
        attacker=attacker,
        tables={"environment": 'network_mode = "no-network"\n'},
    )
    _write(
        folder,
        "phase-by-phase",
        {
            "environment/healthcheck.sh": _knocking("phase-by-phase", 2),
            "solution/solve.sh": linger,
            "tests/test.sh": f"#!/bin/bash\nsleep 3\n{_SHOW}echo 1 > /logs/verifier/reward.txt\n",
        },
        attacker=attacker,
        tables=phases,
    )
    _step_by_step(folder, attacker)
    _write(folder, "forged-late", {"solution/solve.sh": _FORGE, "tests/test.sh": _ZERO}, attacker=None)
    _write(
        folder, "out-of-memory", {"solution/solve.sh": _EAT, "tests/test.sh": _ONE}, attacker=None, memory=32
    )
    return folder


def waiting_suite(folder: Path) -> Path:
    """Write a suite of one task that waits until it is told to go on."""
    _write(folder, "bystander", {"solution/solve.sh": _WAIT, "tests/test.sh": _ONE}, attacker=None)
    return folder


def _step_by_step(folder: Path, attacker: Path) -> None:
    """Two steps, each open to the agent's server while its agent works; between them the second step's own
    setup takes a while."""
    files = {"environment/healthcheck.sh": _knocking("step-by-step", 1)}
    for step in ("first", "second"):
        files[f"steps/{step}/solution/solve.sh"] = "#!/bin/bash\nsleep 3\n"
        files[f"steps/{step}/instruction.md"] = "Wait.\n"
        files[f"steps/{step}/tests/test.sh"] = f"#!/bin/bash\n{_SHOW}echo 1 > /logs/verifier/reward.txt\n"
    files["steps/second/workdir/setup.sh"] = f"#!/bin/bash\nsleep {BETWEEN_STEPS}\n"
    tables = {
        "agent": _allow("agent"),
        "verifier": 'network_mode = "no-network"\n',
        "environment": _allow("setup") + _HEALTHCHECK + _STEPS,
    }
    _write(folder, "step-by-step", files, attacker=attacker, tables=tables)


def _knocking(task: str, seconds: int) -> str:
    """A healthcheck that leaves a program knocking behind, and gives it some time before the agent starts."""
    stay = f"/app/attacker stay /app/{KNOCKS} {task} {_KNOCKED}"
    return f"""\
#!/bin/bash
[ -e /app/{KNOCKS} ] && exit 0
nohup setsid {stay} < /dev/null > /dev/null 2>&1 &
sleep {seconds}
"""


def _allow(*servers: str) -> str:
    hosts = ", ".join(f'"{name_of(server)}"' for server in servers)
    return f'network_mode = "allowlist"\nallowed_hosts = [{hosts}]\n'


def _write(
    folder: Path,
    name: str,
    files: Mapping[str, str],
    *,
    attacker: Path | None,
    memory: int = 128,
    tables: Mapping[str, str] | None = None,
) -> None:
    root = folder / name
    parts = {"agent": "", "verifier": "", "environment": "", **(tables or {})}
    texts = {"task.toml": _TASK.format(name=name, memory=memory, **parts), **files}
    if not any(path.startswith("steps/") for path in files):
        texts["instruction.md"] = "Wait.\n"
    for path, text in texts.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        if target.suffix == ".sh":
            target.chmod(0o755)
    (root / "environment").mkdir(exist_ok=True)
    if attacker is not None:
        shutil.copy(attacker, root / "environment" / "attacker")
