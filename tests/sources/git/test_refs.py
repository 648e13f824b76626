"""What a name stands for among the refs of a server."""

from __future__ import annotations

import pytest

from argo_harbor.errors import UsageError
from argo_harbor.sources.git.address import parse_address
from argo_harbor.sources.git.refs import default_branch, look_up, parse_refs, possible_refs, whole_commit

pytestmark = pytest.mark.remote

LISTED = b"""\
1111111111111111111111111111111111111111\tHEAD
1111111111111111111111111111111111111111\trefs/heads/main
2222222222222222222222222222222222222222\trefs/heads/feature
3333333333333333333333333333333333333333\trefs/heads/feature/x
4444444444444444444444444444444444444444\trefs/heads/both
5555555555555555555555555555555555555555\trefs/tags/both
6666666666666666666666666666666666666666\trefs/tags/v1
7777777777777777777777777777777777777777\trefs/tags/v1^{}
7788888888888888888888888888888888888888\trefs/pull/12/head
a warning that is no ref
"""
REPOSITORY = "https://host.example/org/repo"


@pytest.mark.parametrize(
    ("text", "begins", "ref", "folder"),
    [
        ("@main", "1111", "main", "tasks"),
        ("@HEAD", "1111", "HEAD", "tasks"),
        ("@refs/heads/both", "4444", "refs/heads/both", "tasks"),
        ("@both", "5555", "both", "tasks"),
        ("@v1", "7777", "v1", "tasks"),
        ("@77777", "7777", "77777", "tasks"),
        ("/tree/feature", "2222", "feature", "tasks"),
        ("/tree/feature/x", "3333", "feature/x", "tasks"),
        ("/tree/feature/x/a/b", "3333", "feature/x", "a/b"),
        ("/tree/feature/y/a", "2222", "feature", "y/a"),
        ("/tree/pull/12/head/a", "7788", "pull/12/head", "a"),
        ("/tree/2222222/a", "2222", "2222222", "a"),
    ],
)
def test_names(text: str, begins: str, ref: str, folder: str) -> None:
    found = look_up(parse_address(REPOSITORY + text), parse_refs(LISTED))
    assert (found.object[:4], found.ref, found.folder) == (begins, ref, folder)


@pytest.mark.parametrize("length", [40, 64])
def test_whole_commits_need_no_list(length: int) -> None:
    commit = "a" * length
    for text, folder in (
        (f"@{commit}", "tasks"),
        (f"/tree/{commit}/a/b", "a/b"),
        (f"/tree/{commit}", "tasks"),
    ):
        found = whole_commit(parse_address(REPOSITORY + text))
        assert found is not None
        assert (found.object, found.folder) == (commit, folder)
    assert whole_commit(parse_address(f"{REPOSITORY}@{'a' * 39}")) is None
    assert whole_commit(parse_address(f"{REPOSITORY}@{'A' * 40}")) is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("@fature", "did you mean feature"),
        ("/tree/feture/x/y", "feature/x"),
        ("@zzzzz", "5 branches and tags"),
        ("@abcdef", "full id"),
        ("@6666666", "full id"),
        ("/tree/abcdef/a", "full id"),
    ],
)
def test_unknown_names(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        look_up(parse_address(REPOSITORY + text), parse_refs(LISTED))
    assert caught.value.code == "unknown_source_ref"
    assert hint in caught.value.hint


def test_a_repository_without_refs() -> None:
    with pytest.raises(UsageError) as caught:
        look_up(parse_address(f"{REPOSITORY}@main"), {})
    assert "URL@REF" in caught.value.hint


def test_refs_that_are_asked_for_by_name_are_bounded() -> None:
    assert possible_refs(parse_address(f"{REPOSITORY}@a/b")) == ["a/b"]
    assert possible_refs(parse_address(f"{REPOSITORY}/tree/a/b/c")) == ["a", "a/b", "a/b/c"]
    assert len(possible_refs(parse_address(f"{REPOSITORY}/tree/{'a/' * 100}"))) == 20


def test_the_default_branch() -> None:
    assert default_branch(b"ref: refs/heads/a/trunk\tHEAD\n1111\tHEAD\n") == "a/trunk"
    assert default_branch(b"1111\tHEAD\n") == ""
    assert default_branch(b"ref: refs/heads/\xff\x1b\tHEAD\n") == "\ufffd\\x1b"
