"""What we ask of image registries ourselves: whether an image is there, and who may ask.

Pulling and pushing is the container runtime's and BuildKit's. Build pods ask before they build, `runs submit`
before it plans a build, `doctor` whether the credentials work.
"""
