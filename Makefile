# `make run` and `make test` do everything on a fresh machine, installs included. Neither needs root.
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: help run test unit package lint e2e contract cluster-up cluster-down cluster-status cluster-images cluster cluster-again check coverage bench goldens schemas clean

help:
	@echo "make run       run the hello-world suite on this machine and print its scores"
	@echo "make test      unit + package + lint"
	@echo "make e2e       Harbor on generated input, real sandboxes, a real S3 server, the real command line"
	@echo "make contract  hold the stand-ins for OpenSandbox against its own client, as root"
	@echo "make cluster-up, cluster-status, cluster-images, cluster-down   a real Kubernetes with Argo on this machine, as root"
	@echo "make cluster, cluster-again   the tests that need it; whether it comes, goes and comes again"
	@echo "make check     ruff, mypy, import-linter"
	@echo "make coverage  unit + e2e with coverage, at least 90 %"
	@echo "make bench     print figures of speed and memory"
	@echo "make goldens   rewrite the golden workflows"
	@echo "make schemas   rewrite the published JSON Schemas"

$(VENV)/bin/python:
	python=$$(.ci/find-python) && "$$python" -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[run]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(VENV)/.run $@

run: $(VENV)/.run
	$(BIN)/argo-harbor runs submit --harbor-dir examples/hello-world --agent oracle --engine local

test: unit package lint

unit: $(VENV)/.dev
	$(PYTEST) -q -n 2 -m "not (remote or conformance or sandbox or services or e2e or package or lint or contract or cluster or cluster_down or bench)" $(ARGS)

package: $(VENV)/.dev
	$(PYTEST) -q -m package $(ARGS)

# Without a recent Go the argo program cannot be built: said, and a failure only in CI.
lint: $(VENV)/.dev
	@$(BIN)/python -m tests.support.argo build; status=$$?; \
	if [ $$status -eq 3 ] && [ "$$CI" != true ]; then echo "lint skipped: see the reason above"; exit 0; fi; \
	[ $$status -eq 0 ] && $(PYTEST) -q -m lint $(ARGS)

e2e: $(VENV)/.dev
	$(PYTEST) -q -m "remote or conformance or sandbox or services or e2e" $(ARGS)

# A whole Kubernetes with Argo on this machine, for the tests; needs root and, the first time, Go and minutes.
cluster-up cluster-down cluster-status cluster-images: $(VENV)/.dev
	@$(BIN)/python -m tests.cluster $(@:cluster-%=%) $(ARGS)

contract: $(VENV)/.dev
	$(PYTEST) -q -m contract $(ARGS)

# Ending the cluster fails when anything of it is left; cluster-again compares the machine before and after besides.
cluster: $(VENV)/.dev
	$(PYTEST) -q -m cluster $(ARGS)

cluster-again: $(VENV)/.dev
	$(PYTEST) -q -m cluster_down $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(VENV)/.dev
	$(BIN)/python -m tests.support.coverage -q -m "not (package or lint or contract or cluster or cluster_down or bench)" $(ARGS)

bench: $(VENV)/.dev
	$(PYTEST) -q -s -m bench $(ARGS)

goldens: $(VENV)/.dev
	$(PYTEST) -q tests/workflow --update-goldens

schemas: $(VENV)/.dev
	$(BIN)/python -m argo_harbor.schemas

clean:
	rm -rf $(VENV) .cache .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache dist
