"""What we ask of a Kubernetes API server: one connection, and small modules on top, one subject each.

The only room that knows the `kubernetes` client. The argo engine, `install`, `doctor` and the pod commands
that follow workflows use it.
"""
