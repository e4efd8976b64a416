# Everything runs in .venv, which the first command makes; nothing else is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help compare test test-all lint format bench docs wheel clean

help:
	@echo "make compare   compare the paper's scheduler with its rivals on a small synthetic workload"
	@echo "make test      run the tests, but for the long ones: minutes"
	@echo "make test-all  run all tests"
	@echo "make lint      ruff and mypy"
	@echo "make bench     measure the speed of environments and policies"
	@echo "make docs      build the documentation into .cache/site"
	@echo "make wheel     build a wheel into dist, with compiled kernels for x86-64-v3"

compare: $(VENV)/.eval
	$(BIN)/schedgym compare schedgym/QueueDelay-v0 --preset small $(ARGS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long" $(ARGS)

test-all: export SCHEDGYM_FUZZ ?= 2000
test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# a type checker cannot follow the mapping of the three top-level folders: give it the installed layout
	rm -rf .cache/typed && mkdir -p .cache/typed
	cp -r schedgym .cache/typed/ && cp -r baselines agents .cache/typed/schedgym/
	MYPYPATH=.cache/typed $(BIN)/mypy --config-file pyproject.toml -p schedgym

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.eval
	$(BIN)/schedgym bench $(ARGS)

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open .cache/site/index.html"

# numba takes the processor's level from the environment; see schedgym/core/kernel_cache.py
wheel: export SCHEDGYM_SHIP_KERNELS := 1
wheel: export NUMBA_CPU_NAME := x86-64-v3
wheel: export NUMBA_CPU_FEATURES :=
wheel: $(VENV)/.eval
	rm -rf build dist schedgym/kernels
	$(BIN)/schedgym warmup
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .
	rm -rf build schedgym/kernels

$(VENV)/.eval: pyproject.toml setup.py constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[eval]"
	@touch $@

$(VENV)/.dev: pyproject.toml setup.py constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@ $(VENV)/.eval

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "schedgym needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) .cache build dist schedgym/kernels *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@# compiled kernels, too
	find schedgym baselines agents tests docs -type d -name __pycache__ -prune -exec rm -rf {} +
