"""What stops the cluster from coming up, in words for the person at the terminal."""

from __future__ import annotations


class ClusterError(Exception):
    """The cluster, or a part of it, cannot do what was asked; the message says why and what helps."""


class MachineUnfit(ClusterError):
    """This machine cannot hold the cluster at all: tests that need one are skipped or fail, as they say."""
