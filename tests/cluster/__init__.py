"""A whole Kubernetes with Argo Workflows on one machine, for the tests that need the real thing.

``python -m tests.cluster up`` starts it, ``down`` removes every trace of it. Programs come from the modules
pinned under ``tests/tools`` and from the distribution's packages; nothing is mocked.
"""
