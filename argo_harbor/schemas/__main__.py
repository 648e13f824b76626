"""Rewrite the published schemas after a change of a model."""

from argo_harbor.schemas import write_all

print(*write_all(), sep="\n")
