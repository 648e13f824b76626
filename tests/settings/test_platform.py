from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.errors import Finding, Refused
from argo_harbor.model.platform import BUILT_IN
from argo_harbor.settings.platform import find_platform, read_platform

EXAMPLE = Path(__file__).parents[2] / "examples" / "platform.toml"


def write(folder: Path, text: str) -> Path:
    path = folder / "platform.toml"
    path.write_text(text)
    return path


def refused(path: Path) -> tuple[Finding, ...]:
    with pytest.raises(Refused) as caught:
        read_platform(path)
    assert caught.value.code == "invalid_platform"
    assert caught.value.exit_status == 3
    return caught.value.items


def test_the_order_is_flag_variable_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flagged = write(tmp_path, 'namespace = "flag"')
    (tmp_path / "other").mkdir()
    named = write(tmp_path / "other", 'namespace = "variable"')
    env = {"ARGO_HARBOR_PLATFORM": str(named)}
    platform, origin = find_platform(flagged, env)
    assert (platform.namespace, origin) == ("flag", f"--platform {flagged}")
    platform, origin = find_platform(None, env)
    assert (platform.namespace, origin) == ("variable", f"ARGO_HARBOR_PLATFORM={named}")
    assert find_platform(None, {}) == (BUILT_IN, "built in")
    assert find_platform(None, {"ARGO_HARBOR_PLATFORM": ""})[0].built_in
    monkeypatch.setenv("ARGO_HARBOR_PLATFORM", str(named))
    assert find_platform()[0].namespace == "variable"


def test_the_example_is_valid_and_not_built_in() -> None:
    platform = read_platform(EXAMPLE)
    assert not platform.built_in
    assert platform.models["coder"].closed_book
    assert platform.store.bucket == "argo-harbor"


def test_every_mistake_at_once_with_file_and_dotted_key(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
namespce = "x"
registry = 5
[store]
buket = "b"
[workflow]
infra_retries = 99
[models.m]
base_url = "https://llm.example"
[groups]
python = "host"
""",
    )
    found = {finding.key: finding for finding in refused(path)}
    assert set(found) == {
        "namespce",
        "registry",
        "store.buket",
        "workflow.infra_retries",
        "models.m.model",
        "groups.python",
    }
    assert all(finding.file == str(path) for finding in found.values())
    assert found["namespce"].hint.startswith("did you mean namespace? known here: schema, namespace")
    assert found["store.buket"].hint.startswith("did you mean bucket?")
    assert found["models.m.model"].message == "is missing"
    assert found["workflow.infra_retries"].message.startswith("99: ")


def test_addresses_hosts_and_urls_are_checked(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
undeny = ["10.0.0.1/8", "FD00::/8"]
built_in = true
[store]
endpoint = "https://user:secret@minio.example"
[network]
pod_cidrs = ["10.244.0.0"]
api_server = ["10.0.0.1", "host:6443", "[fd00::1]:6443", "10.0.0.1:6443"]
resolvers = ["dns.example"]
[groups]
python = ["https://packages.example"]
public = ["x.example"]
[models.m]
base_url = "https:///v1"
model = "m"
hosts = ["*.*.example"]
""",
    )
    assert [finding.key for finding in refused(path)] == [
        "built_in",
        "undeny[0]",
        "undeny[1]",
        "network.pod_cidrs[0]",
        "network.api_server[0]",
        "network.api_server[1]",
        "network.resolvers[0]",
        "store.endpoint",
        "groups.python[0]",
        "groups.public",
        "models.m.base_url",
        "models.m.hosts[0]",
    ]


def test_a_url_that_cannot_be_parsed(tmp_path: Path) -> None:
    path = write(tmp_path, '[models.m]\nbase_url = "http://[::1"\nmodel = "m"')
    assert [finding.key for finding in refused(path)] == ["models.m.base_url"]


@pytest.mark.parametrize("text", ["a = ", "[x]\n[x]\n", "x = 1e5000\n= 3", f"x = {'1' * 5000}"])
def test_broken_toml(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refused, match="broken TOML") as caught:
        find_platform(write(tmp_path, text), {})
    assert caught.value.code == "invalid_platform"


def test_a_number_of_more_digits_than_python_writes(tmp_path: Path) -> None:
    path = write(tmp_path, f"[workflow]\nttl_seconds = 0x{'F' * 6000}")
    [finding] = refused(path)
    assert (finding.code, finding.file) == ("invalid_platform", str(path))
    assert "thousands of digits" in finding.message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read: No such file"):
        find_platform(tmp_path / "absent.toml", {})
    with pytest.raises(Refused, match="cannot be read: Is a directory"):
        find_platform(tmp_path, {})
    path = tmp_path / "latin.toml"
    path.write_bytes(b"\n# caf\xe9\n")
    with pytest.raises(Refused, match="line 2 is not UTF-8"):
        find_platform(path, {})
    path.write_bytes(b"#" * (5 << 20))
    with pytest.raises(Refused, match="more than"):
        find_platform(path, {})
