"""`python -m argo_harbor` is `argo-harbor`."""

from argo_harbor.cli.main import main

if __name__ == "__main__":
    main()
