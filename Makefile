# Two commands: `make demo` and `make test`. Both create .venv and install what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt
OUT := build/demo

LAWS := $(basename $(notdir $(wildcard validation/experiments/laws/*.toml)))
LAWS_OUT := docs/laws

.PHONY: demo test lint laws check-laws check-speed check-sweep clean

demo: $(VENV)/.validation
	$(BIN)/python -m validation.run validation/experiments/demo.toml --store $(OUT)/sweep.zarr
	$(BIN)/python -m validation.compare $(OUT)/sweep.zarr --out $(OUT)
	$(BIN)/python -m meanfield.predict --runs $(OUT)/runs.csv --horizon 800
	@echo "The report is $(OUT)/report.html: open it in a browser."

# Hours, and no third command: `make demo` and `make test` do not need these.
laws: $(VENV)/.validation
	set -e; for name in $(LAWS); do \
	  $(BIN)/python -m validation.run validation/experiments/laws/$$name.toml --store build/laws/$$name.zarr; done
	$(BIN)/python -m validation.compare $(LAWS:%=build/laws/%.zarr) --out $(LAWS_OUT)
	$(BIN)/python -m validation.laws $(LAWS_OUT) --page docs/laws.md

check-laws: $(VENV)/.validation
	$(BIN)/python -m validation.rerun validation/experiments/laws/sort.toml --measures $(LAWS_OUT)/sort/measures.nc

# About five minutes; numbalsoda and jitcode need gfortran, cmake and a C++ compiler.
check-speed:
	$(PYTHON) -m venv build/bench-venv
	build/bench-venv/bin/python -m pip install --quiet --constraint constraints.txt --editable . \
	  --requirement benchmarks/requirements.txt
	build/bench-venv/bin/python -m benchmarks.engine

check-sweep: $(VENV)/.dev
	$(BIN)/python -m tests.support.big_sweep

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.validation: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV), about a minute ..."
	$(PIP) --editable '.[validation]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV), about a minute ..."
	$(PIP) --editable '.[validation,dev]'
	touch $@ $(VENV)/.validation

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
