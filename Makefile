# Two commands: `make demo` and `make test`. Both create .venv and install what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt
OUT := build/demo

.PHONY: demo test lint clean

demo: $(VENV)/.validation
	$(BIN)/python -m validation.run validation/experiments/demo.toml --store $(OUT)/sweep.zarr
	$(BIN)/python -m validation.compare $(OUT)/sweep.zarr --out $(OUT)
	$(BIN)/python -m meanfield.predict --runs $(OUT)/runs.csv --horizon 800
	@echo "The report is $(OUT)/report.html: open it in a browser."

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
