"""How long big suites take to publish, and how much memory. Prints figures; only the memory is bounded.

`ARGO_HARBOR_BENCH_TASKS` sets the size of the largest suite, 10,000 tasks by default.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.s3server import S3Server
from tests.support.suites import make_suite

pytestmark = pytest.mark.bench

MANY = int(os.environ.get("ARGO_HARBOR_BENCH_TASKS", "10000"))
SOME = 1000
MOST_MIB = 600
"""Generous; a task takes some 15 KiB besides."""
LARGE_MIB = 50
PACKED_MIB = 17
"""Enough for an upload in parts; the rest is zeros, since packing noise is slow."""
MOST_MIB_OF_LARGE = 350
"""Less than the files have together: it must not grow with their bytes."""

_PUBLISH = """
import json, resource, sys, time
from argo_harbor.sources.publish import publish_taskset
from argo_harbor.sources.read import load_taskset
from argo_harbor.store.credentials import Credentials
from argo_harbor.store.s3 import S3Store

def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

suite, endpoint, bucket, access, secret = sys.argv[1:]
store = S3Store(endpoint, bucket, root="bench-publish", credentials=Credentials(access, secret))
began = time.perf_counter()
taskset = load_taskset(suite)
read, read_rss = time.perf_counter(), rss()
first = publish_taskset(taskset, store)
published = time.perf_counter()
again = publish_taskset(taskset, store)
print(json.dumps({
    "read": read - began, "read_mib": read_rss, "publish": published - read,
    "again": time.perf_counter() - published, "peak_mib": rss(), "added": [first.added, again.added],
}))
"""


def test_publish_a_suite_of_10000_tasks(
    s3_server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = make_suite(tmp_path / "suite", tasks=MANY)
    server = (s3_server.endpoint, s3_server.bucket, s3_server.access_key, s3_server.secret_key)
    done = subprocess.run(
        [sys.executable, "-c", _PUBLISH, str(suite), *server], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["added"] == [MANY, 0]
    assert figures["peak_mib"] < MOST_MIB
    with capsys.disabled():
        print(
            f"\n{MANY} tasks: read {figures['read']:.1f} s, {figures['read_mib']:.0f} MiB; "
            f"published to S3 {figures['publish']:.1f} s, peak {figures['peak_mib']:.0f} MiB; "
            f"again, unchanged {figures['again']:.1f} s"
        )


def test_publish_large_tasks_in_bounded_memory(
    s3_server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = make_suite(tmp_path / "suite", tasks=8)
    for folder in suite.iterdir():
        (folder / "environment" / "data.bin").write_bytes(
            os.urandom(PACKED_MIB << 20) + bytes((LARGE_MIB - PACKED_MIB) << 20)
        )
    server = (s3_server.endpoint, s3_server.bucket, s3_server.access_key, s3_server.secret_key)
    done = subprocess.run(
        [sys.executable, "-c", _PUBLISH, str(suite), *server], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["peak_mib"] < MOST_MIB
    with capsys.disabled():
        print(
            f"\n8 tasks of {LARGE_MIB} MiB: published to S3 {figures['publish']:.1f} s, "
            f"peak {figures['peak_mib']:.0f} MiB"
        )


@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_the_program_publishes_1000_tasks_again(
    kind: str, s3_server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The goal is ten seconds for a suite that has not changed."""
    suite = make_suite(tmp_path / "suite", tasks=SOME)
    program = Program(tmp_path / "store", tmp_path)
    command: tuple[object, ...] = ("tasksets", "create", "--harbor-dir", suite, "--engine", "local")
    environment = {}
    if kind == "s3":
        platform = tmp_path / "platform.toml"
        platform.write_text(
            f'[store]\nendpoint = "{s3_server.endpoint}"\nbucket = "{s3_server.bucket}"\nprefix = "bench"\n'
        )
        # The command that needs no cluster for its store; it reads, plans, compiles and publishes.
        command = ("compile", "--harbor-dir", suite, "--agent", "nop", "--sandbox-profile", "closed")
        command += ("--publish", "--platform", platform)
        environment = {
            "ARGO_HARBOR_STORE_ACCESS_KEY": s3_server.access_key,
            "ARGO_HARBOR_STORE_SECRET_KEY": s3_server.secret_key,
        }
    times = []
    for _ in range(2):
        began = time.perf_counter()
        done = program(*command, env=environment)
        times.append(time.perf_counter() - began)
        assert done.status == 0, done.stderr
    if kind == "directory":
        assert done.stdout.count("Unchanged") == SOME + 1
    with capsys.disabled():
        print(f"\n{command[0]} of {SOME} tasks, {kind}: {times[0]:.1f} s, again {times[1]:.1f} s")
