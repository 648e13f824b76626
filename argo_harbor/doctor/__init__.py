"""Looks whether a cluster can run suites, and says the cure where it cannot.

`run` starts all checks at once; `server`, `installed` and `places` ask from here, `network`, `containers` and
`argo` look through the eyes of pods, which run `probe`. Called by `argo-harbor doctor`.
"""
