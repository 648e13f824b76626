"""Writes what the runner's image installs, as three files of requirements; the Dockerfile calls it.

`python requirements.py PYPROJECT AGENTS FOLDER`, where AGENTS is `any` or `oracle`. The files carry a fixed
time, so that a change elsewhere in pyproject.toml leaves the layers that are made from them as they are.
"""

import os
import sys
import tomllib
from pathlib import Path


def requirements(pyproject: Path, agents: str) -> dict[str, list[str]]:
    """Lines by file: `build` makes the wheel, `run` is installed with dependencies, `harbor` without.

    Raises: KeyError for another word than `any` or `oracle`.
    """
    settings = tomllib.loads(pyproject.read_text())
    project = settings["project"]
    harbor = project["optional-dependencies"]["pod"]
    needs = {"any": harbor, "oracle": settings["dependency-groups"]["oracle"]}[agents]
    return {
        "build": settings["build-system"]["requires"],
        "run": [*project["dependencies"], *needs],
        "harbor": harbor,
    }


def main() -> None:
    pyproject, agents, folder = sys.argv[1:]
    Path(folder).mkdir()
    for name, lines in requirements(Path(pyproject), agents).items():
        file = Path(folder, f"{name}.txt")
        file.write_text("".join(f"{line}\n" for line in lines))
        os.utime(file, (0, 0))


if __name__ == "__main__":
    main()
