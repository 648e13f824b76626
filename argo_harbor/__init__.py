"""Run Harbor task suites on Argo Workflows, or on one machine."""

__version__ = "0.1.0"
