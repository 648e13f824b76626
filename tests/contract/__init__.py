"""Do the stand-ins for OpenSandbox's execd and egress behave as the published programs do, and as the trial
pod needs?

The same tests run against the published programs when `ARGO_HARBOR_EXECD` and `ARGO_HARBOR_EGRESS` name them.
Tests that take `own_execd` or `own_egress` are about what only the stand-ins promise.
"""
