from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from argo_harbor.engines.place import Place
from argo_harbor.engines.where import choose, local_store, settings_of, store_root
from argo_harbor.errors import PlatformError, Refused, UsageError
from argo_harbor.sources import load_taskset
from argo_harbor.store.folder import replacing
from tests.engines.argo_bench import install
from tests.support.api_server import ApiServer, Trouble


def test_the_flag_comes_before_the_variable_and_that_before_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    named = {"ARGO_HARBOR_STORE": "/named", "XDG_DATA_HOME": "/data"}
    assert store_root(Path("~/mine"), named) == (tmp_path / "mine", "--store")
    assert store_root(None, named) == (Path("/named"), "ARGO_HARBOR_STORE")
    assert store_root(None, {"XDG_DATA_HOME": "/data"}) == (Path("/data/argo-harbor"), "XDG_DATA_HOME")
    own = tmp_path / ".local/share/argo-harbor"
    assert store_root(None, {}) == (own, "default")
    assert local_store(None, {}).root == own / "local"


def test_a_relative_data_folder_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store_root(None, {"XDG_DATA_HOME": "data"}) == store_root(None, {})


def test_a_home_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "~nobody-at-all")
    for flag, environment in (
        (Path("~nobody-at-all/store"), {}),
        (None, {"ARGO_HARBOR_STORE": "~nobody-at-all/store"}),
        (None, {}),
    ):
        with pytest.raises(PlatformError, match="no place for the local store") as caught:
            store_root(flag, environment)
        assert "--store" in caught.value.hint


def test_a_current_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(PlatformError):
        store_root(Path("store"), {})
    with pytest.raises(PlatformError), replacing(Path("out")):
        pytest.fail("there is no folder to fill")
    with pytest.raises(Refused) as caught:
        load_taskset("suite")
    assert caught.value.code == "source_unreadable"


def test_without_a_kubeconfig_it_is_this_machine(tmp_path: Path) -> None:
    chosen = choose(Place(), {"ARGO_HARBOR_STORE": str(tmp_path)})
    assert (chosen.engine.name, chosen.engine.store.name) == ("local", str(tmp_path / "local"))
    assert (chosen.because, chosen.site.origin, chosen.cluster) == ("", "built in", None)


def test_a_context_with_a_platform_is_the_cluster(api: ApiServer) -> None:
    install(api)
    chosen = choose(Place(), {})
    assert chosen.engine.name == "argo"
    assert chosen.engine.place == "context double, namespace argo-harbor"
    assert chosen.site.origin.startswith("ConfigMap argo-harbor-platform")
    assert chosen.site.profile().name == "harbor-standard"


def test_a_context_without_a_platform_is_this_machine_and_says_so(api: ApiServer) -> None:
    chosen = choose(Place(), {})
    assert chosen.engine.name == "local"
    assert chosen.because == "no platform in namespace argo-harbor of context double"


def test_a_context_that_does_not_answer_is_never_a_silent_change(
    tmp_path: Path, api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.hanging = True
    monkeypatch.setattr("argo_harbor.cluster.connect.CONNECT_SECONDS", 0.1)
    with pytest.raises(PlatformError) as hangs:
        choose(Place(), {})
    api.url = "http://127.0.0.1:9"
    monkeypatch.setenv("KUBECONFIG", str(api.write_kubeconfig(tmp_path / "nobody")))
    with pytest.raises(PlatformError) as refuses:
        choose(Place(), {})
    for error in (hangs.value, refuses.value):
        assert (error.code, error.exit_status) == ("platform_unreachable", 5)
        assert "--engine local" in error.hint
    assert choose(Place(engine="local"), {}).engine.name == "local"


def test_a_context_that_does_not_take_the_credentials(api: ApiServer) -> None:
    api.troubles = [Trouble("GET", "/version", 401, "Unauthorized", "who are you?")]
    with pytest.raises(PlatformError, match="does not take the credentials"):
        choose(Place(), {})


def test_argo_with_nothing_configured_points_to_install(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for where in (None, str(tmp_path / "none")):
        if where:
            monkeypatch.setenv("KUBECONFIG", where)
        with pytest.raises(PlatformError) as error:
            choose(Place(engine="argo"), {})
        assert error.value.code == "platform_not_configured"
        assert "argo-harbor install" in error.value.hint


def test_the_platform_is_a_flag_then_a_variable_then_the_cluster(api: ApiServer, tmp_path: Path) -> None:
    install(api)
    file = tmp_path / "platform.toml"
    file.write_text('namespace = "argo-harbor"\nregistry = "r.example/mine"\n')
    for place, env in (
        (Place(platform=file), {}),
        (Place(), {"ARGO_HARBOR_PLATFORM": str(file)}),
    ):
        chosen = choose(place, env)
        assert (chosen.engine.name, chosen.site.platform.registry) == ("argo", "r.example/mine")
        assert chosen.site.profile("closed").name == "closed"


def test_namespace_and_context_flags(api: ApiServer, tmp_path: Path) -> None:
    install(api)
    for path in list(api.objects):
        api.put(path.replace("/namespaces/argo-harbor/", "/namespaces/other/"), dict(api.objects[path]))
    chosen = choose(Place(namespace="other"), {})
    assert chosen.engine.place == "context double, namespace other"
    assert chosen.site.platform.namespace == "other"
    with pytest.raises(PlatformError, match="no context 'x'"):
        choose(Place(context="x"), {})


@pytest.mark.parametrize(
    "place",
    [
        Place(engine="local", namespace="x"),
        Place(engine="argo", store=Path("x")),
        Place(store=Path("x"), context="x"),
    ],
)
def test_flags_that_exclude_one_another(place: Place) -> None:
    with pytest.raises(UsageError) as error:
        choose(place, {})
    assert error.value.code == "bad_usage"


def test_naming_a_local_store_means_this_machine(api: ApiServer, tmp_path: Path) -> None:
    install(api)
    chosen = choose(Place(store=tmp_path), {})
    assert (chosen.engine.name, api.asked) == ("local", [])


def test_settings_say_what_chose_them(api: ApiServer) -> None:
    install(api)
    for place, key, expected in (
        (Place(), "engine", ("argo", "current kube context has a platform")),
        (Place(engine="argo"), "engine", ("argo", "--engine")),
        (Place(namespace="argo-harbor"), "namespace", ("argo-harbor", "--namespace")),
        (Place(engine="local"), "engine", ("local", "--engine")),
    ):
        found = {
            setting.key: (setting.value, setting.source) for setting in settings_of(place, choose(place, {}))
        }
        assert found[key] == expected
