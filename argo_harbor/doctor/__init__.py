"""Looks whether a cluster can run suites, and says the cure where it cannot. Called by `argo-harbor doctor`."""
