"""Generated task suites of any size, for tests and benches of reading, planning and compiling.

The tasks look like public ones (six files, a Dockerfile, a verifier) but need only bash, so that a suite can
also be run. The same arguments always give the same bytes.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple


class Shape(NamedTuple):
    """What decides the shape of a trial pod."""

    cpus: float
    memory_mb: int
    storage_mb: int
    agent_timeout: int


def make_suite(
    folder: Path,
    *,
    tasks: int,
    shared_images: bool | int = False,
    shapes: int = 4,
    prebuilt: bool = False,
    separate_every: int = 0,
    steps_every: int = 0,
    network_mode: str = "public",
    org: str = "acme",
    seed: int = 0,
) -> Path:
    """Write a suite of `tasks` tasks into `folder` (made if absent) and return it.

    `shared_images`: False gives each task a Dockerfile of its own, True one to all, a number that many. With
    `prebuilt` the tasks name that many ready images instead. `shapes` is the number of distinct combinations
    of resources and agent timeout. Every n-th task has a separate verifier (`separate_every`) or two steps
    (`steps_every`); 0 means none. Tasks are named `<org>/<folder>`; an empty `org` leaves `[task]` out.
    """
    images = tasks if shared_images is False else int(shared_images)
    variety = make_shapes(shapes)
    dice = random.Random(seed)
    for number in range(tasks):
        root = folder / f"task-{number:04d}"
        separate = bool(separate_every) and number % separate_every == separate_every - 1
        steps = bool(steps_every) and number % steps_every == steps_every - 1
        image = number % images
        _write(
            root,
            _toml(
                name=f"{org}/{root.name}" if org else "",
                shape=variety[number % shapes],
                image=f"registry.example/{org or 'tasks'}/image-{image:04d}:1" if prebuilt else "",
                network_mode=network_mode,
                separate=separate,
                steps=steps,
                word=dice.choice(_WORDS),
            ),
            _files(image=image, number=number, prebuilt=prebuilt, steps=steps),
        )
    return folder


def make_shapes(count: int) -> list[Shape]:
    """`count` distinct combinations that every shipped profile allows."""
    return [
        Shape(
            cpus=1 + number % 4,
            memory_mb=1024 * (1 + number // 4 % 8),
            storage_mb=10240 + 64 * (number // 32),
            agent_timeout=600 + 60 * (number % 4),
        )
        for number in range(count)
    ]


_WORDS = ("files", "git", "sorting", "parsing", "networking", "builds", "databases", "games")


def _toml(
    *, name: str, shape: Shape, image: str, network_mode: str, separate: bool, steps: bool, word: str
) -> str:
    lines = ['schema_version = "1.4"']
    if separate:
        lines.append('artifacts = ["/app/answer.txt"]')
    if name:
        lines += ["[task]", f'name = "{name}"', f'description = "About {word}"', f'keywords = ["{word}"]']
    lines += [
        "[metadata]",
        f'author_name = "Acme"\ndifficulty = "medium"\ncategory = "{word}"\ntags = ["{word}", "bash"]',
        "[verifier]",
        "timeout_sec = 300.0",
    ]
    if separate:
        lines.append('environment_mode = "separate"')
    lines += [
        "[agent]",
        f"timeout_sec = {shape.agent_timeout}.0",
        "[environment]",
        "build_timeout_sec = 600.0",
        f'network_mode = "{network_mode}"',
        f"cpus = {shape.cpus}",
        f"memory_mb = {shape.memory_mb}",
        f"storage_mb = {shape.storage_mb}",
    ]
    if image:
        lines.append(f'docker_image = "{image}"')
    if steps:
        lines += ["[[steps]]", 'name = "first"', "[[steps]]", 'name = "second"', "min_reward = 0.5"]
    return "\n".join(lines) + "\n"


def _files(*, image: int, number: int, prebuilt: bool, steps: bool) -> dict[str, str]:
    instruction = f"Write the number {number} to /app/answer.txt.\n"
    test = f"""#!/bin/bash
if [ "$(cat /app/answer.txt)" = "{number}" ]; then echo 1 > /logs/verifier/reward.txt
else echo 0 > /logs/verifier/reward.txt; fi
"""
    solve = f"#!/bin/bash\necho {number} > /app/answer.txt\n"
    files = {"README.md": f"# Task {number}\n", "tests/test.sh": test}
    if not prebuilt:
        files["environment/Dockerfile"] = (
            f"FROM ubuntu:24.04\nWORKDIR /app\nCOPY seed.txt /app/seed.txt\nENV IMAGE={image}\n"
        )
        files["environment/seed.txt"] = f"{image}\n" * 50
    if not steps:
        return files | {"instruction.md": instruction, "solution/solve.sh": solve}
    for name in ("first", "second"):
        files[f"steps/{name}/instruction.md"] = instruction
        files[f"steps/{name}/solution/solve.sh"] = solve
    return files


def _write(root: Path, toml: str, files: dict[str, str]) -> None:
    for parent in {str(Path(name).parent) for name in files}:
        (root / parent).mkdir(parents=True, exist_ok=True)
    (root / "task.toml").write_text(toml)
    for name, text in files.items():
        path = root / name
        path.write_text(text)
        if name.endswith(".sh"):
            path.chmod(0o755)
