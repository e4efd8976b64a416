# Everything runs in .venv, which the first command makes; nothing else is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := .cache/tools/bin
HASHES ?= yes
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help compare test test-all test-cuda test-libraries lint format bench docs wheel release lock sbom clean

help:
	@echo "make compare   compare the paper's scheduler with its rivals on a small synthetic workload"
	@echo "make test      run the tests, but for the long ones: minutes"
	@echo "make test-all  run the long tests, too"
	@echo "make test-cuda compile the kernels of all environments for GPUs, with NVIDIA's compiler"
	@echo "make test-libraries  play every id in TorchRL, skrl, Tianshou, Minari, RLlib and stable-baselines3"
	@echo "make lint      ruff and mypy"
	@echo "make bench     measure the speed of environments and policies"
	@echo "make docs      build the documentation into .cache/site"
	@echo "make wheel     build a wheel into dist, with compiled kernels for x86-64-v3"
	@echo "make release   build all files of a release into dist, check them, try them with every Python found"
	@echo "make lock      write requirements-eval.txt anew: what make compare installs, with hashes"
	@echo "make sbom      write docs/sbom.json anew: what that is made of, with licences"

compare: $(VENV)/.eval
	$(BIN)/schedgym compare schedgym/QueueDelay-v0 --preset small $(ARGS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long" $(ARGS)

# NVIDIA's compiler is some 200 MB to download, and needs no GPU
test-cuda: $(VENV)/.dev
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[cuda]"
	NUMBA_BOUNDSCHECK=0 $(BIN)/python -m pytest tests/core/test_cuda_ptx.py $(ARGS)

# other libraries, of which each may need other versions than this package: in an environment of their own
test-libraries:
	$(PYTHON) -m venv .cache/libraries
	.cache/libraries/bin/pip install --quiet --constraint constraints.txt --editable ".[eval,agents]" \
	  torchrl skrl tianshou "minari[create]"
	@# RLlib pins an older gymnasium
	$(PYTHON) -m venv .cache/rllib
	.cache/rllib/bin/pip install --quiet --editable ".[rllib]" "$$(grep ^torch== constraints.txt)"
	.cache/libraries/bin/python -m benchmarks libraries --json docs/libraries.json $(ARGS)

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
	$(BIN)/python -m benchmarks speed $(ARGS)

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

# the wheel with kernels, the source archive, the wheel without; then the notes, .cache/RELEASE.md
release: VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' schedgym/_version.py)
release: wheel | $(TOOLS)/twine $(TOOLS)/check-jsonschema $(TOOLS)/pyproject-build
	$(TOOLS)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(TOOLS)/pyproject-build --outdir dist .
	$(TOOLS)/twine check --strict dist/*
	for version in 3.11 3.12 3.13 3.14; do \
	  if python$$version -c "" 2>/dev/null; then python$$version .ci/release.py dist && tried=yes || exit 1; \
	  else echo "not tried: Python $$version, which is not on the PATH"; fi; \
	done; test "$$tried"
	awk '/^## /{on = index($$0, "## [$(VERSION)] - ")} on' CHANGELOG.md > .cache/RELEASE.md
	grep -q . .cache/RELEASE.md

# what make compare installs, in the versions of constraints.txt, with the hashes of all files of the index
lock: | $(TOOLS)/uv
	echo setuptools | $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --custom-compile-command "make lock" --extra eval --constraint constraints.txt \
	  --output-file requirements-eval.txt pyproject.toml -

sbom: | $(TOOLS)/cyclonedx-py $(VENV)/bin/pip
	$(PYTHON) -m venv --clear --without-pip .cache/sbom
	$(BIN)/pip --python .cache/sbom/bin/python install --quiet --require-hashes --requirement requirements-eval.txt
	$(TOOLS)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
	  --output-file docs/sbom.json .cache/sbom/bin/python

$(TOOLS)/%:
	$(PYTHON) -m venv .cache/tools
	$(TOOLS)/pip install --quiet --constraint constraints.txt build check-jsonschema cyclonedx-bom twine uv

# HASHES=no: for an index that serves other builds of these versions
$(VENV)/.eval: pyproject.toml setup.py constraints.txt requirements-eval.txt | $(VENV)/bin/pip
ifeq ($(HASHES),no)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[eval]"
else
	$(BIN)/pip install --quiet --require-hashes --requirement requirements-eval.txt || { echo \
	  "if your index serves other builds of these versions: make $(MAKECMDGOALS) HASHES=no (docs/supply.md)" >&2; exit 1; }
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
endif
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
