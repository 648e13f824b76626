"""What git's messages mean for the user. They are English here, because `program` asks for that."""

from __future__ import annotations

import re

from argo_harbor.errors import HarborError, PlatformError
from argo_harbor.sources.git.address import GitAddress
from argo_harbor.sources.member import printable

_LONGEST = 300
_USER = re.compile(r"://[^/\s@]*@")
_SPOKEN = re.compile(r"(?:fatal|error|ERROR|remote|ssh): *(.*)")


class GitFailed(Exception):
    """A git command ended with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"git ended with {status}")
        self.status = status
        self.text = text

    def says(self, *phrases: str) -> bool:
        lowered = self.text.lower()
        return any(phrase in lowered for phrase in phrases)

    @property
    def reason(self) -> str:
        """Its last word, without users and passwords of URLs."""
        lines = [line.strip() for line in re.split(r"[\r\n]+", self.text) if line.strip()]
        spoken = [found[1] for line in lines if (found := _SPOKEN.match(line)) and found[1]]
        last = (spoken or lines or [f"it ended with status {self.status}"])[-1]
        return printable(_USER.sub("://", last))[:_LONGEST]


def explain(failed: GitFailed, address: GitAddress) -> HarborError:
    """The error of ours for a server, or a repository of this machine, that did not give what was asked."""
    shown = address.shown
    if failed.says("cannot run "):
        return PlatformError(
            "source_unreachable",
            f"git cannot start what it needs for {shown}: {failed.reason}",
            "install that program",
        )
    if failed.says("dubious ownership"):
        return PlatformError(
            "source_unreachable",
            f"git does not read {shown}, which belongs to another user",
            f"when you trust it: git config --global --add safe.directory {address.url}",
        )
    if failed.says("promisor remote", "lazy fetching disabled", "not our ref"):
        return PlatformError(
            "source_unreachable",
            f"{shown} lacks files of that commit",
            "it may be a partial clone: name the repository that it was cloned from",
        )
    if failed.says(*_NOT_LET_IN):
        return PlatformError(
            "source_unreachable",
            f"{shown} does not let us in, or does not exist: {failed.reason}",
            f"sign in with a credential helper or an ssh key until this asks nothing: git ls-remote {shown}",
        )
    if failed.says("host key verification failed"):
        return PlatformError(
            "source_unreachable",
            f"the host key of {shown} is not known",
            f"connect once and check the key: git ls-remote {shown}",
        )
    if failed.says(*_NO_REPOSITORY):
        return PlatformError(
            "source_unreachable", f"there is no repository at {shown}: {failed.reason}", "check the address"
        )
    return PlatformError(
        "source_unreachable",
        f"git cannot read {shown}: {failed.reason}",
        "try again, or clone it yourself and use --harbor-dir",
    )


_NOT_LET_IN = (
    "could not read username",
    "could not read password",
    "authentication failed",
    "terminal prompts disabled",
    "permission denied",
    "returned error: 401",
    "returned error: 403",
    "access denied",
)
_NO_REPOSITORY = (
    "does not appear to be a git repository",
    "repository not found",
    "returned error: 404",
    "not found",
    "no such file or directory",
    "not exported",
)
