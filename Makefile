# Every target sets up what it needs. `make help` lists them.
SHELL := bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
# The one torch version that the extension is built and tested against.
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check -q
CPP_SOURCES := $(shell find src -path '*/csrc/*' \( -name '*.cpp' -o -name '*.h' \) 2>/dev/null)
CPP_ALL := $(shell find src tests -name '*.cpp' -o -name '*.h' 2>/dev/null)
# Correctness tests need no second thread; timing belongs to `make bench`.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q
# Test processes side by side; auto is one per core.
JOBS ?= auto

DEPENDENCIES := $(VENV)/.dependencies
BUILT := $(VENV)/.built

$(DEPENDENCIES): pyproject.toml Makefile examples/demo/requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# torch by itself first: nothing below may replace it.
	$(PIP) install '$(TORCH)' 'numpy>=1.26'
	$(PIP) install '$(TORCH)' 'setuptools>=77' wheel ninja ml_dtypes \
	  'pytest>=8' pytest-xdist 'hypothesis>=6.100' 'expecttest>=0.3' 'scipy>=1.11' \
	  'ruff==0.14.*' 'mypy==1.19.*' 'clang-format==20.*' -r examples/demo/requirements.txt
	touch $@

$(BUILT): $(DEPENDENCIES) setup.py $(CPP_SOURCES)
	PATH="$(abspath $(BIN)):$$PATH" $(PIP) install -e . --no-build-isolation --no-deps
	touch $@

.PHONY: help setup build demo test test-all test-native smoke check format lint types policy \
	bench accuracy docs clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(BUILT) ## virtual environment, dependencies, editable install (only when inputs changed)

build: setup ## the same as setup

demo: setup ## the main job on real input: speech, text, training
	$(BIN)/python -m examples.demo

test: setup ## Python and native tests that take seconds
	$(PYTEST) -n $(JOBS) -m 'not slow'
	$(MAKE) test-native

test-all: setup ## every test, the slow ones too
	$(PYTEST) -n $(JOBS)
	$(MAKE) test-native

test-native: setup ## C++: the runtime without torch, plain and under ASan and TSan; the host kernels
	bash tests/native/run.sh
	bash tests/native_kernels/run.sh

smoke: setup ## a few tests through all layers
	$(PYTEST) -m smoke

check: format lint types policy smoke ## what must hold before a commit

format: $(DEPENDENCIES) ## formatting is as the tools want it (FIX=1 rewrites)
ifdef FIX
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP_ALL)
else
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(CPP_ALL)
endif

lint: $(DEPENDENCIES) ## ruff's rules (FIX=1 repairs what it can)
	$(BIN)/ruff check $(if $(FIX),--fix)

types: $(DEPENDENCIES) ## mypy --strict over src
	$(BIN)/mypy

policy: setup ## layering, sizes, names, where facts and settings live
	$(PYTEST) tests/policy

bench: setup ## benchmarks of this host, reports in benchmarks/reports
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done

accuracy: $(DEPENDENCIES) ## docs/accuracy.md: published measurements against the model
	PYTHONPATH=src $(BIN)/python -m neuron_chip.accuracy

docs: setup ## pages that are derived from code
	$(BIN)/python docs/generate.py

clean: ## build outputs (the virtual environment stays)
	rm -rf build src/*.egg-info .ruff_cache .mypy_cache .pytest_cache
	rm -f $(BUILT) src/torch_neuronx/_C*.so src/nki/_replay*.so
