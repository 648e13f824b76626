"""What a cluster needs before runs can start there: accounts, rights, settings.

`manifests` says which objects these are; `changes` compares them with a cluster and applies them; `removal`
takes them away again; `discovery` asks a cluster for what a platform file must say about it. Called by
`argo-harbor install` and, to see whether it is all there, by `doctor`.

The objects are built in Python and not from templates: no value is ever spliced into YAML text, and what is
printed, compared and applied is one and the same object.
"""
