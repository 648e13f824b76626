from __future__ import annotations

import pytest

from argo_harbor.errors import UsageError
from argo_harbor.sources.hub.ref import HubRef, parse_ref

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "name", "ref", "digest"),
    [
        ("acme/mini", "acme/mini", "latest", ""),
        ("Acme-1/mini_2.0", "Acme-1/mini_2.0", "latest", ""),
        ("acme/mini@stable", "acme/mini", "stable", ""),
        ("acme/mini@v1.2-rc", "acme/mini", "v1.2-rc", ""),
        ("acme/mini@12", "acme/mini", "12", ""),
        (f"acme/mini@sha256:{DIGEST}", "acme/mini", f"sha256:{DIGEST}", DIGEST),
    ],
)
def test_a_dataset_and_one_of_its_versions(text: str, name: str, ref: str, digest: str) -> None:
    parsed = parse_ref(text)
    assert (parsed.name, parsed.ref, parsed.digest) == (name, ref, digest)
    assert parse_ref(str(parsed)) == parsed == HubRef(name, ref)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mini",
        "acme/",
        "/mini",
        "acme/mini/more",
        "acme/../mini",
        "acme/mi..ni",
        "../mini",
        ".acme/mini",
        "acme/mini ",
        "acme/mini\n",
        "acme/mini@",
        "acme/mini@a@b",
        "acme/mini@-x",
        "acme/mini@v1\n",
        "acme/mini@1234567890",
        "acme/mini@٣",
        "acme/mini@sha256:",
        f"acme/mini@sha256:{DIGEST[:12]}",
        f"acme/mini@sha256:{DIGEST}0",
        f"acme/mini@sha256:{DIGEST.upper()}",
        f"acme/mini@{'x' * 201}",
        f"acme/{'x' * 200}",
        "https://hub.example/acme/mini",
        "acme/mini\x1b[2J",
    ],
)
def test_anything_else_is_refused_with_the_form_it_should_have(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_ref(text)
    assert caught.value.code == "unknown_flag_value"
    assert caught.value.message.isprintable()
    assert any(form in caught.value.hint for form in ("ORG/NAME", "64"))
