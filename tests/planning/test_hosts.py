from __future__ import annotations

import pytest

from argo_harbor.planning.hosts import HostSet, UndefinedGroupError, covers, denied_by, expand


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("example.com", "example.com"),
        ("*.example.com", "a.example.com"),
        ("*.example.com", "a.b.example.com"),
        ("*.example.com", "*.example.com"),
        ("*.example.com", "*.a.example.com"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.0.0.0/8", "10.1.0.0/16"),
        ("fd00::/8", "fd12::1"),
    ],
)
def test_covers(wide: str, narrow: str) -> None:
    assert covers(wide, narrow)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("*.example.com", "example.com"),
        ("*.example.com", "badexample.com"),
        ("*.example.com", "*.com"),
        ("a.example.com", "*.example.com"),
        ("*.2.3", "1.1.2.3"),
        ("10.1.0.0/16", "10.0.0.0/8"),
        ("0.0.0.0/0", "::1"),
        ("::/0", "10.0.0.1"),
        ("10.0.0.0/8", "example.com"),
    ],
)
def test_does_not_cover(wide: str, narrow: str) -> None:
    assert not covers(wide, narrow)


def test_what_one_set_has_beyond_another() -> None:
    some = HostSet(frozenset({"a.example", "b.example"}))
    public = HostSet(public=True)
    assert some.less(HostSet(frozenset({"*.example"}))) == ()
    assert some.less(HostSet(frozenset({"b.example"}))) == ("a.example",)
    assert some.less(public) == ()
    assert public.less(some) == ("@public",)
    assert public.less(public) == ()
    assert (some | public).covers("anything.example")


def test_expand() -> None:
    groups = {"python": ("Packages.Example", "*.files.example")}
    assert expand("@public", groups) == HostSet(public=True)
    assert expand("@python", groups).entries == {"packages.example", "*.files.example"}
    assert expand("Host.Example.", groups).entries == {"host.example"}
    with pytest.raises(UndefinedGroupError, match="no group 'debian'") as caught:
        expand("@debian", groups)
    assert caught.value.group == "debian"
    with pytest.raises(ValueError, match="not a URL"):
        expand("https://host.example", groups)


def test_denied_by() -> None:
    denied = ("10.0.0.0/8", "fe80::/10")
    assert denied_by("10.9.8.7", denied) == "10.0.0.0/8"
    assert denied_by("fe80::1", denied) == "fe80::/10"
    assert denied_by("9.0.0.0/8", denied) == ""
    assert denied_by("0.0.0.0/0", denied) == ""
    assert denied_by("host.example", denied) == ""
