"""Finds and reads the platform file: a flag, else `ARGO_HARBOR_PLATFORM`, else the built-in platform.

Where a cluster says what its platform is, `settings.site` puts that in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.platform import BUILT_IN, Platform
from argo_harbor.settings.addresses import wrong_addresses, wrong_hosts, wrong_ranges, wrong_url
from argo_harbor.settings.strict import parse_model, parse_toml, read_text

VARIABLE = "ARGO_HARBOR_PLATFORM"
CODE = "invalid_platform"
BUILT_IN_ORIGIN = "built in"


class PlatformFile(NamedTuple):
    """Which file is used, and who named it."""

    path: Path
    origin: str
    """`--platform FILE` or `ARGO_HARBOR_PLATFORM=FILE`."""


def platform_file(path: Path | None = None, env: Mapping[str, str] | None = None) -> PlatformFile | None:
    """The platform file in force, None for the built-in platform. `env` defaults to the process's."""
    if path is not None:
        return PlatformFile(path, f"--platform {path}")
    named = (os.environ if env is None else env).get(VARIABLE, "")
    return PlatformFile(Path(named), f"{VARIABLE}={named}") if named else None


def find_platform(path: Path | None = None, env: Mapping[str, str] | None = None) -> tuple[Platform, str]:
    """The platform in force and where it comes from.

    Raises:
        Refused: `invalid_platform`, with one finding for each mistake in the file.
    """
    chosen = platform_file(path, env)
    if chosen is None:
        return BUILT_IN, BUILT_IN_ORIGIN
    return read_platform(chosen.path), chosen.origin


def read_platform(path: Path) -> Platform:
    """Read and check one platform file. Raises Refused `invalid_platform`."""
    return parse_platform(read_text(path, CODE), str(path))


def parse_platform(text: str, file: str) -> Platform:
    """Check the text of a platform file; `file` says where it stands. Raises Refused `invalid_platform`."""
    platform = parse_model(Platform, parse_toml(text, CODE, file), code=CODE, file=file)
    findings = [
        Finding(CODE, message, f"correct {key}", file=file, key=key) for key, message in _wrong(platform)
    ]
    if findings:
        raise Refused.of(findings, what="file")
    return platform


def _wrong(platform: Platform) -> Iterator[tuple[str, str]]:
    network = platform.network
    if "built_in" in platform.model_fields_set:
        yield "built_in", "is no known key"
    yield from wrong_ranges("undeny", platform.undeny)
    yield from wrong_ranges("network.pod_cidrs", network.pod_cidrs)
    yield from wrong_ranges("network.service_cidrs", network.service_cidrs)
    yield from wrong_ranges("network.node_cidrs", network.node_cidrs)
    yield from wrong_addresses("network.api_server", network.api_server, port=True)
    yield from wrong_addresses("network.resolvers", network.resolvers, port=False)
    if platform.store.kind == "s3" and platform.store.endpoint:
        yield from wrong_url("store.endpoint", platform.store.endpoint)
    for name, hosts in platform.groups.items():
        if name == "public":
            yield "groups.public", "is taken: @public stands for any public host"
        yield from wrong_hosts(f"groups.{name}", hosts, groups=False)
    for name, model in platform.models.items():
        yield from wrong_url(f"models.{name}.base_url", model.base_url)
        yield from wrong_hosts(f"models.{name}.hosts", model.hosts, groups=False)
