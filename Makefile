# Everything a person or CI runs. `make help` lists it. A fresh clone needs Python 3.11 or newer and, for the tests, either a
# JDK (17 or newer) with Maven, or Docker with Compose, or EVSCHED_TEST_KAFKA=host:port.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-kubernetes lint format types arch bench recordings fuzz twins simulate rolling brokers audit release lock vendor page-large pictures clean distclean

# The first interpreter on the path that is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready
# Workers for the tests that may run side by side; the others run after them, one at a time.
WORKERS ?= 2
# Further arguments for pytest, e.g. make test ARGS="-x -k ordering".
ARGS ?=
# Where it is set, each of the suite's hundreds of processes compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest
PACKAGES := events evsched projections replays
CODE := $(PACKAGES) tests $(wildcard benchmarks scripts)

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv from the lock file (done by the other targets when needed)

# The locked versions with their hashes, then the project itself, without letting it pull anything in.
$(READY): requirements-dev.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "evsched needs Python 3.11 or newer; none is on the PATH (or set PYTHON=/path/to/python)" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making .venv with $(PYTHON)"; $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## Tell the story on the embedded log, in under a minute
	$(BIN)/evsched demo

# Three runs: the tests that may share the machine, those in a browser, then those that want the machine for themselves. All
# of them always run; any of them fails the target.
test: $(READY) ## Run all tests, with a real Apache Kafka (ARGS="-k name" for some)
	@failed=0; \
	$(PYTEST) -n $(WORKERS) -m "not serial and not browser and not fuzz and not brokers and not kubernetes" $(ARGS) || { s=$$?; test $$s -eq 5 && test -n "$(ARGS)" || failed=1; }; \
	$(PYTEST) -n $(WORKERS) -m "browser" $(ARGS) || { s=$$?; test $$s -eq 5 && test -n "$(ARGS)" || failed=1; }; \
	$(PYTEST) -p no:xdist -m "serial and not fuzz and not brokers and not kubernetes" $(ARGS) || { s=$$?; test $$s -eq 5 && test -n "$(ARGS)" || failed=1; }; \
	exit $$failed

# The control plane is built once, in about seven minutes of one CPU, and kept outside the tree (tests/kubernetes/binaries.py).
test-kubernetes: $(READY) ## Try the agent on a real Kubernetes API server with KWOK (or on EVSCHED_TEST_KUBECONFIG)
	$(PYTEST) -p no:xdist -m kubernetes tests/kubernetes $(ARGS)

lint: $(READY) ## Check style, layout and the banned names of the pure rooms (ruff)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

format: $(READY) ## Lay code out and mend what ruff can mend by itself
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

types: $(READY) ## Check types (mypy, strict)
	$(BIN)/mypy

arch: $(READY) ## Check the layers (import-linter)
	$(BIN)/lint-imports --no-cache

bench: $(READY) ## Measure, each figure beside the limit it is held against
	$(BIN)/python -m benchmarks $(ARGS)

recordings: $(READY) ## Record the scenarios anew, as logs of this version (replays/recordings)
	$(BIN)/python -m replays.recordings

fuzz: $(READY) ## Search long: 20,000 examples a property, and the tests marked fuzz
	HYPOTHESIS_PROFILE=fuzz $(PYTEST) -n $(WORKERS) --timeout 0 -m "fuzz or hypothesis" $(ARGS)

# Steps of hostile histories, and the number of the first: make twins STEPS=1000000 SEED=7
STEPS ?= 1000000
SEED ?= 0
twins: $(READY) ## Compare engines that decide, follow, are restored and replayed, step by step (STEPS=1000000)
	$(BIN)/python -m tests.core.twins $(STEPS) $(SEED)

# Stories of the whole system, and the number of the first: make simulate SEEDS=1000 SEED=7
SEEDS ?= 1000
simulate: $(READY) ## Run the whole system from seeds, with faults, and check what came of it (SEEDS=1000)
	$(BIN)/python -m tests.simulation $(SEEDS) $(SEED)

rolling: $(READY) ## Rehearse an upgrade: 79caf5e and this tree take over from each other on one Kafka log
	$(BIN)/python -m scripts.rolling_upgrade $(ARGS)

brokers: $(READY) ## Try three real brokers: killed, standing still, away, restarted under load
	$(PYTEST) -p no:xdist -s tests/service/test_three_brokers.py $(ARGS)

# Of every pinned package, those of the tools too. A package of which nothing can be learned fails it.
AUDITOR := build/auditor/bin
$(AUDITOR)/pip-audit:
	$(PYTHON) -m venv build/auditor
	$(AUDITOR)/pip install -q --disable-pip-version-check 'pip-audit>=2.9' 'cyclonedx-bom>=7'

audit: $(READY) $(AUDITOR)/pip-audit ## Look for known vulnerabilities, and for licences that do not fit
	$(BIN)/python -m scripts.licences
	$(BIN)/python -m scripts.vulnerabilities $(AUDITOR)/pip-audit

release: $(READY) $(AUDITOR)/pip-audit ## Build the wheel, the same bytes everywhere, and the list of what it needs (SBOM) in dist/
	rm -rf dist
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation --no-index -w dist .
	$(AUDITOR)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON \
		-o dist/evsched.cdx.json requirements.lock 2>/dev/null
	cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

# Resolves for every Python from 3.11 on and every platform at once, so one file serves all. UPGRADE=1 takes newer versions.
LOCKER := build/locker/bin/uv
COMPILE := $(LOCKER) pip compile --universal --python-version 3.11 --generate-hashes --annotation-style line \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --quiet $(if $(UPGRADE),--upgrade)

$(LOCKER):
	$(PYTHON) -m venv build/locker
	build/locker/bin/pip install -q --disable-pip-version-check 'uv>=0.6'

lock: $(LOCKER) ## Pin all dependencies with hashes: requirements.lock and requirements-dev.lock
	$(COMPILE) --extra web --extra kubernetes pyproject.toml -o requirements.lock
	$(COMPILE) --extra web --extra kubernetes --extra parquet --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

vendor: $(READY) ## Fetch the JavaScript of the page anew from npm, with hashes and licences
	$(BIN)/python -m scripts.vendor

# The log of a million events is made once and kept in build/large.
page-large: $(READY) ## Measure what the page takes in a browser over a log of a million events
	$(BIN)/python -m benchmarks page

pictures: $(READY) ## Take the pictures of the page anew, over the log of the demo (docs/pictures)
	$(BIN)/python -m scripts.pictures

clean: ## Remove what runs leave behind, .venv too; the fetched Kafka stays
	rm -rf .venv build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache *.egg-info
	find $(PACKAGES) tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## The fetched Kafka as well
	rm -rf .kafka
