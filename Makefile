# Quintet's workshop. `make help` lists everything; `make run` and `make test` set up a fresh clone by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
LOCK   := requirements/dev.lock
CORES  := $(shell nproc 2>/dev/null || echo 2)
# Of tests one more than there are cores: half of a test's time goes by waiting. Faults have bars of time to keep.
WORKERS       ?= $(shell expr $(CORES) + 1)
FAULT_WORKERS ?= $(CORES)

.DEFAULT_GOAL := help
.PHONY: help packages setup run test check fmt bench faults-pr faults docs lock clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(STAMP): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Quintet needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo "Preparing $(VENV): a minute or so, once." >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@# Byte code is made here, since some environments forbid Python to write it and would compile at every start.
	$(BIN)/python -m compileall -q src/quintet
	@touch $(STAMP)

packages: ## install the system packages that tests and users want, where that is possible
	@.ci/packages

setup: $(STAMP) ## prepare .venv with .venv/bin/quintet

run: $(STAMP) ## start the server on its embedded defaults
	$(BIN)/quintet serve

test: $(STAMP) ## the whole test suite (ten minutes at most)
	@# Byte code of what tests start; without it each of their processes would compile what has changed since the set-up.
	$(BIN)/python -m compileall -q src/quintet tests/fakes tests/faults
	QUINTET_FAULTS=test $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests

check: $(STAMP) ## formatter, linter, types, import rules
	$(BIN)/ruff format --check --quiet src tests bench
	$(BIN)/ruff check --quiet src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

fmt: $(STAMP) ## format and fix what can be fixed
	$(BIN)/ruff format --quiet src tests bench
	$(BIN)/ruff check --quiet --fix src tests bench

bench: $(STAMP) ## the figures of docs/performance.md, measured now
	$(BIN)/python -m compileall -q src/quintet bench
	$(BIN)/python -m bench

faults-pr: $(STAMP) ## fault suites at the figures of a change (twenty minutes at most)
	QUINTET_FAULTS=pr $(BIN)/python -m pytest -n $(FAULT_WORKERS) --dist worksteal tests/faults

faults: $(STAMP) ## fault suites at the figures of a release (hours)
	QUINTET_FAULTS=long $(BIN)/python -m pytest -n $(FAULT_WORKERS) --dist worksteal --timeout 0 tests/faults

docs: $(STAMP) ## write the generated parts of docs/ anew
	$(BIN)/python -m quintet.cli.docs docs
	$(BIN)/python -m tests.requirement_index
	$(BIN)/python -m quintet.cli.manual > data/share/man/man1/quintet.1
	$(BIN)/python -m tests.dependencies

lock: $(STAMP) ## resolve and pin the dependencies anew, with hashes
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade pyproject.toml -o requirements/run.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade pyproject.toml requirements/dev.in -o requirements/dev.lock

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
