"""Every form of `--harbor-git`, and what it never repeats."""

from __future__ import annotations

from pathlib import Path

import pytest

from argo_harbor.errors import UsageError
from argo_harbor.sources.git.address import parse_address

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "url", "ref", "trail"),
    [
        ("https://github.com/org/repo@v1.0", "https://github.com/org/repo", "v1.0", ""),
        ("https://github.com/org/repo.git@main", "https://github.com/org/repo.git", "main", ""),
        ("https://github.com/org/repo/@main", "https://github.com/org/repo", "main", ""),
        ("HTTPS://host.example:8443/org/repo@main", "https://host.example:8443/org/repo", "main", ""),
        ("http://[::1]:8080/repo@main", "http://[::1]:8080/repo", "main", ""),
        (
            "https://host.example/org/repo@@scope/pkg@1.0",
            "https://host.example/org/repo",
            "@scope/pkg@1.0",
            "",
        ),
        ("https://host.example/@org/repo@main", "https://host.example/@org/repo", "main", ""),
        ("https://host.example/@org/repo", "https://host.example/@org/repo", "", ""),
        ("https://host.example/org/repo", "https://host.example/org/repo", "", ""),
        ("https://host.example/org/repo@", "https://host.example/org/repo", "", ""),
        ("https://host.example/org/repo/tree/", "https://host.example/org/repo", "", ""),
        ("https://host.example/org/repo/tree/a/b/c", "https://host.example/org/repo", "", "a/b/c"),
        ("https://host.example/org/repo/-/tree/a/b/", "https://host.example/org/repo", "", "a/b"),
        ("https://host.example/org/repo/tree/a/@scope/b", "https://host.example/org/repo", "", "a/@scope/b"),
        ("https://host.example/tree/repo@main", "https://host.example/tree/repo", "main", ""),
        ("ssh://git@host.example:22/org/repo@main", "ssh://git@host.example:22/org/repo", "main", ""),
        ("git@host.example:org/repo@main", "git@host.example:org/repo", "main", ""),
        ("git@host.example:repo@main", "git@host.example:repo", "main", ""),
        ("host:repo@main", "host:repo", "main", ""),
        ("host:/srv/repo.git/tree/main/a", "host:/srv/repo.git", "", "main/a"),
        ("git@[::1]:org/repo@main", "git@[::1]:org/repo", "main", ""),
        ("git://host.example/org/repo@main", "git://host.example/org/repo", "main", ""),
    ],
)
def test_addresses_of_servers(text: str, url: str, ref: str, trail: str) -> None:
    found = parse_address(text)
    assert (found.url, found.ref, "/".join(found.trail), found.local) == (url, ref, trail, False)
    for folder in ("tasks", "a/b c"):
        again = parse_address(found.pinned(COMMIT, folder))
        assert (again.url, again.shown) == (found.url, found.shown)
        assert again.ref or "/".join(again.trail) == f"{COMMIT}/{folder}"


@pytest.mark.parametrize(
    ("text", "dataset", "repository"),
    [
        ("https://host.example/org/Repo.git@a", "org/Repo", "Repo"),
        ("https://host.example/group/sub/repo@a", "sub/repo", "repo"),
        ("git@host.example:repo@a", "repo", "repo"),
        ("https://host.example/org/..@a", "org", "org"),
        ("https://host.example/...git@a", "tasks", "tasks"),
    ],
)
def test_names(text: str, dataset: str, repository: str) -> None:
    found = parse_address(text)
    assert (found.dataset, found.repository) == (dataset, repository)


def test_paths_end_where_a_repository_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("plain", "me@work/tree/x", "tree/y@z"):
        (tmp_path / name / ".git").mkdir(parents=True)
    for name in ("bare.git", "bare.git/.git"):
        (tmp_path / name / "objects").mkdir(parents=True)
        (tmp_path / name / "HEAD").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for text, path, ref, trail, name in (
        ("plain@main", "plain", "main", "", "plain"),
        ("./plain/@main", "plain", "main", "", "plain"),
        ("~/plain/tree/a/b", "plain", "", "a/b", "plain"),
        ("bare.git/.git@main", "bare.git/.git", "main", "", "bare"),
        ("me@work/tree/x@a@b", "me@work/tree/x", "a@b", "", "x"),
        ("tree/y@z/tree/a/tree/b", "tree/y@z", "", "a/tree/b", "y@z"),
        ("bare@main", "bare", "main", "", "bare"),
        ("bare.git", "bare.git", "", "", "bare"),
        (f"file://{tmp_path}/bare.git@main", "bare.git", "main", "", "bare"),
    ):
        found = parse_address(text)
        assert found.url.removeprefix("file://") == str(tmp_path / path), text
        assert (found.ref, "/".join(found.trail), found.repository) == (ref, trail, name)
        assert found.local
    monkeypatch.chdir(tmp_path / "plain")
    assert parse_address(".@main").repository == "plain"
    with pytest.raises(UsageError) as caught:
        parse_address("org/repo@main")
    assert "https://github.com/org/repo@main" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no repository"),
        ("--upload-pack=touch x", "no repository"),
        ("https://host.example/a\nb@main", "no repository"),
        ("ext::sh -c touch@main", "'ext'"),
        ("ftp://host.example/a/b@main", "'ftp'"),
        ("https://host.example@main", "names no repository"),
        ("https://host.example/@main", "names no repository"),
        ("https://-oProxyCommand=x/a@main", "no proper host"),
        ("ssh://-oProxyCommand=x/a@main", "no proper host"),
        ("-oProxyCommand=x:a@main", "no repository"),
        ("git@:a@main", "no proper host"),
        ("git@host.example:@main", "without a repository"),
        ("https:/host.example/a/b@main", "begins with https://"),
        ("https://host.example/a/b?token=x@main", "query"),
        ("file://host.example/a@main", "path of this machine"),
        ("file:///nowhere/at/all@main", "no Git repository"),
        ("/nowhere/at/all@main", "no Git repository"),
        ("https://host.example/a/b@HEAD~1", "no name of a ref"),
        ("https://host.example/a/b@-x", "no name of a ref"),
        ("https://host.example/a/b@a..b", "no name of a ref"),
    ],
)
def test_what_names_nothing(text: str, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert caught.value.code == "unknown_flag_value"
    assert word in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "https://ada:hunter2@host.example/a/b@main",
        "https://ada:hun@ter2@host.example/a/b@main",
        "https://ada:hunter2/x@host.example/a/b@main",
        "http://:hunter2@host.example/a/b",
        "ssh://ada:hunter2@host.example/a/b@main",
        "ftp://ada:hunter2@host.example/a/b@main",
        "ada:hunter2@host.example/a/b@main",
        "ada:hunter2@host.example:a/b@main",
        "https:/ada:hunter2@host.example/a/b@main",
        "//ada:hunter2@host.example/a/b@main",
    ],
)
def test_passwords_are_refused_and_never_repeated(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert caught.value.code == "unknown_flag_value"
    assert "hunter2" not in str(caught.value.as_json())
    assert "ter2" not in str(caught.value.as_json())


def test_a_user_name_of_http_is_not_shown() -> None:
    found = parse_address("https://ghp_token@host.example/a/b@main")
    assert found.url == "https://ghp_token@host.example/a/b"
    assert "ghp_token" not in found.shown + found.pinned(COMMIT, "tasks")
    assert parse_address("ssh://git@host.example/a/b@main").shown == "ssh://git@host.example/a/b"
