"""`argo-harbor install` as people call it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Command
from tests.install.conftest import PLATFORM
from tests.support import api_server
from tests.support.whole_api import WholeApi

DOCUMENT = "install-document-1"
NAMESPACE = "/api/v1/namespaces/evals"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "platform.toml"
    path.write_text(PLATFORM)
    return path


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeApi]:
    with api_server.running(WholeApi()) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path, namespace="other")))
        yield server


def test_it_prints_yaml_without_any_cluster_and_without_secrets(
    argo_harbor: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGO_HARBOR_STORE_ACCESS_KEY", "open-sesame")
    monkeypatch.setenv("ARGO_HARBOR_STORE_SECRET_KEY", "never-shown")
    done = argo_harbor("install", "--platform", file)
    assert done.status == 0
    documents = list(yaml.safe_load_all(done.stdout))
    assert {each["kind"] for each in documents} >= {"Namespace", "Role", "ConfigMap"}
    assert "argo-harbor-store" in done.stdout.splitlines()[0]
    assert "sesame" not in done.stdout
    assert "never-shown" not in done.stdout
    as_json = argo_harbor("install", "--platform", file, "--json").json(DOCUMENT)
    assert as_json["text"] == done.stdout
    assert len(as_json["objects"]) == len(documents)


def test_it_writes_a_file(argo_harbor: Command, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "install.yaml"
    done = argo_harbor("install", "--platform", file, "-o", out)
    assert done.stdout == f"Wrote {out}\n"
    assert list(yaml.safe_load_all(out.read_text()))
    assert argo_harbor("install", "--platform", file, "-o", tmp_path, "--json").error["code"] == (
        "store_write_failed"
    )


def test_apply_then_diff_then_uninstall(
    argo_harbor: Command, file: Path, api: WholeApi, tmp_path: Path
) -> None:
    for name in ("access", "secret"):
        (tmp_path / name).write_text(f"{name}-value")
    keys = ("--store-access-key-file", tmp_path / "access", "--store-secret-key-file", tmp_path / "secret")
    dry = argo_harbor("install", "--platform", file, "--dry-run")
    assert dry.status == 0
    assert "create     Namespace/evals" in dry.stdout
    assert not api.objects
    assert argo_harbor("install", "--platform", file, "--diff").status == 1
    done = argo_harbor("install", "--platform", file, "--apply", *keys)
    assert done.status == 0
    assert "Secret/argo-harbor-store" in done.stdout
    assert "-value" not in done.stdout + done.stderr
    assert "Next: argo-harbor doctor --context double --namespace evals" in done.stdout
    same = argo_harbor("install", "--platform", file, "--diff", *keys)
    assert same.status == 0
    assert same.stdout == ""
    assert "nothing would change" in same.stderr
    file.write_text(PLATFORM + "# more\n")
    differs = argo_harbor("install", "--platform", file, "--diff", "--json", *keys)
    assert differs.status == 1
    (changed,) = [each for each in differs.json(DOCUMENT)["objects"] if each["change"] == "update"]
    assert "+    # more" in changed["diff"]
    gone = argo_harbor("install", "--uninstall", "--platform", file, "--yes")
    assert gone.status == 0
    assert "Namespace/evals" in gone.stdout
    assert not api.objects


def test_apply_as_a_document(argo_harbor: Command, file: Path, api: WholeApi) -> None:
    document = argo_harbor("install", "--platform", file, "--apply", "--json").json(DOCUMENT)
    assert (document["action"], document["context"], document["namespace"]) == ("apply", "double", "evals")
    assert {each["change"] for each in document["objects"]} == {"create"}


def test_removing_asks_and_does_nothing_without_an_answer(
    argo_harbor: Command, file: Path, api: WholeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    argo_harbor("install", "--platform", file, "--apply")
    before = dict(api.objects)
    refused = argo_harbor("install", "--uninstall", "--namespace", "evals")
    assert refused.status == 2
    assert "--yes" in refused.stderr
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", _says_no)
    assert argo_harbor("install", "--uninstall", "--namespace", "evals").status == 130
    assert api.objects == before


def _says_no(question: str, *, abort: bool, err: bool) -> bool:
    import typer

    assert "Delete" in question
    assert abort
    assert err
    raise typer.Abort


def test_a_namespace_with_workflows_stays_and_says_why(
    argo_harbor: Command, file: Path, api: WholeApi
) -> None:
    argo_harbor("install", "--platform", file, "--apply")
    api.hold("/apis/argoproj.io/v1alpha1/namespaces/evals/workflows/run-1")
    done = argo_harbor("install", "--uninstall", "--namespace", "evals", "--yes")
    assert "stays: it holds workflows/run-1" in done.stderr
    document = argo_harbor("install", "--uninstall", "--namespace", "evals", "--yes", "--json").json(DOCUMENT)
    assert document["kept_because"] == "it holds workflows/run-1"
    assert document["objects"] == []


def test_discover_begins_a_platform_file(argo_harbor: Command, api: WholeApi, tmp_path: Path) -> None:
    out = tmp_path / "found.toml"
    assert argo_harbor("install", "--discover", "--namespace", "evals", "-o", out).status == 0
    assert 'namespace = "evals"' in out.read_text()
    assert argo_harbor("install", "--discover", "--json").json(DOCUMENT)["namespace"] == "other"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--apply", "--diff"], "--apply and --diff exclude one another"),
        (["--apply", "-o", "x"], "-o does not go with --apply"),
        (["--namespace", "elsewhere"], "the platform file names the namespace evals"),
    ],
)
def test_flags_that_do_not_go_together(
    argo_harbor: Command, file: Path, arguments: list[str], message: str
) -> None:
    done = argo_harbor("install", "--platform", file, *arguments)
    assert done.status == 2
    assert message in done.stderr


def test_without_a_platform_file(argo_harbor: Command) -> None:
    done = argo_harbor("install")
    assert done.status == 5
    assert "--discover" in done.stderr


def test_undefined_groups_are_said(argo_harbor: Command, file: Path) -> None:
    file.write_text(PLATFORM.partition("[groups]")[0])
    done = argo_harbor("install", "--platform", file)
    assert done.status == 0
    assert "warning[group_undefined]: profile harbor-standard" in done.stderr
    warnings = argo_harbor("install", "--platform", file, "--json").json(DOCUMENT)["warnings"]
    assert warnings
