"""How a registry says no, in the kinds that callers tell apart."""

from __future__ import annotations


class RegistryError(Exception):
    """An answer that helps nobody: neither an image nor a plain no."""


class Unauthorized(RegistryError):
    """The credentials, or their absence, do not allow it: a repeat meets the same."""


class Unreachable(RegistryError):
    """No answer, or one that a repeat could better: connection faults, 429, 5xx."""
