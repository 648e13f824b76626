"""Reading granted variables from the submitting shell."""

from __future__ import annotations

import json

import pytest

from argo_harbor.engines.grants import resolve
from argo_harbor.errors import Refused
from argo_harbor.model.plan import Grant, Grants


def test_values_come_from_the_shell_or_the_spec() -> None:
    grants = Grants(
        target=(
            Grant(name="KEY", kind="host", value="MY_KEY"),
            Grant(name="MODE", kind="lit", value="fast"),
        ),
        verifier=(Grant(name="JUDGE", kind="host", value="JUDGE"),),
    )
    granted = resolve(grants, {"MY_KEY": "secret", "JUDGE": "", "OTHER": "unasked"})
    assert json.loads(granted.as_input()) == {
        "target": {"KEY": "secret", "MODE": "fast"},
        "verifier": {"JUDGE": ""},
    }
    assert "secret" not in repr(granted)


def test_everything_that_cannot_be_read_is_said_at_once() -> None:
    grants = Grants(
        target=(
            Grant(name="A", kind="host", value="ABSENT"),
            Grant(name="B", kind="secret", value="name/key"),
        ),
        verifier=(Grant(name="C", kind="runtime", value="POD"),),
    )
    with pytest.raises(Refused) as caught:
        resolve(grants, {})
    assert [(item.code, item.key) for item in caught.value.items] == [
        ("env_not_granted", "spec.target.env.A"),
        ("local_env_unsupported", "spec.target.env.B"),
        ("local_env_unsupported", "spec.verifier.env.C"),
    ]
