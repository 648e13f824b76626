"""Where tasksets come from: reading, digests, archives and selection. Never imports Harbor."""

from argo_harbor.sources.read import load_taskset

__all__ = ["load_taskset"]
