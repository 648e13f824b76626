"""The environment in which Harbor runs, and what must not be left behind of it."""

from __future__ import annotations

import os
import subprocess
import sys

from argo_harbor.model.plan import Grant, Grants
from argo_harbor.runner.grants import GrantedValues, harbor_environment, secrets


def test_the_child_has_path_home_lang_and_the_grants() -> None:
    environment = harbor_environment("/scratch/home", {"MODEL_KEY": "abc"}, {"JUDGE": "x"})
    assert set(environment) == {
        *("PATH", "HOME", "LANG", "MODEL_KEY", "JUDGE"),
        *("HARBOR_TELEMETRY", "LITELLM_LOCAL_MODEL_COST_MAP"),
    }
    assert environment["HOME"] == "/scratch/home"


def test_a_grant_wins_over_what_is_always_there() -> None:
    assert harbor_environment("/scratch/home", {"HOME": "/granted"})["HOME"] == "/granted"


def test_the_environment_of_a_process_is_replaced_whole() -> None:
    code = (
        "import os; from argo_harbor.runner.grants import replace_environment;"
        "replace_environment({'ONLY': 'this'}); print(dict(os.environ))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PLANTED": "secret"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "{'ONLY': 'this'}"


def test_granted_values_do_not_show_when_printed() -> None:
    assert repr(GrantedValues({"KEY": "value-of-it"})) == "GrantedValues(['KEY'])"


def test_values_of_the_shell_are_secrets_and_literals_are_not() -> None:
    grants = Grants(
        target=(
            Grant(name="KEY", kind="host", value="KEY"),
            Grant(name="PLAIN", kind="lit", value="plain-text"),
            Grant(name="FLAG", kind="host", value="FLAG"),
        ),
        verifier=(Grant(name="LONG", kind="host", value="LONG"),),
    )
    values = {"KEY": "abcdef", "PLAIN": "plain-text", "FLAG": "1", "LONG": "abcdefgh"}
    assert secrets(grants, values) == ("abcdefgh", "abcdef")


def test_the_models_credential_is_a_secret_too() -> None:
    assert secrets(Grants(), {}, "sk-123456", "", "short") == ("sk-123456",)
