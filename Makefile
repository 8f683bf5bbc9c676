# Needs Python 3.11 or newer, make and git; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo docs test test-long test-mutations test-numpyro bench bench-mixing bench-scale clean

help:
	@echo "make demo       fit on real data and look at the result"
	@echo "make test       lint, types and tests (a few minutes)"
	@echo "make test-long  the statistical tests that take longer"
	@echo "make test-mutations  break each term on purpose and see its test fail (an hour)"
	@echo "make test-numpyro    NUTS against NumPyro's (installs JAX)"
	@echo "make docs       the documentation as web pages, in build/docs"
	@echo "make bench      the measurements quoted in the README"
	@echo "make bench-mixing    how soon ten chains agree, beside other samplers (25 minutes)"
	@echo "make bench-scale     seconds and memory up to a million rows (20 minutes)"
	@echo "make clean      remove the environment and everything made here"

# The stamps are older than pyproject.toml when the dependencies may have changed.
$(VENV)/.made:
	@$(PYTHON) -c "import sys; sys.exit('hamiltree needs Python 3.11 or newer, set PYTHON=...' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.user: pyproject.toml | $(VENV)/.made
	@echo "installing hamiltree into $(VENV) (a minute or two, once)"
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	@echo "installing hamiltree and the tools to test it into $(VENV) (a minute or two, once)"
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@ $(VENV)/.user

demo: $(VENV)/.user
	$(BIN)/hamiltree demo

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src
	# With SCIPY_ARRAY_API two of scikit-learn's checks run that are skipped without it.
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n auto --dist loadfile -m "not long"

test-long: $(VENV)/.dev
	$(BIN)/python -m pytest -m long

test-mutations: $(VENV)/.dev
	$(BIN)/python -m tests.mutations

test-numpyro: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable ".[dev,numpyro]"
	$(BIN)/python -m pytest -m numpyro

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs
	@echo "open build/docs/index.html"

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

bench-mixing: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench]"
	$(BIN)/python -m benchmarks mixing cgm20

bench-scale: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench]"
	$(BIN)/python -m benchmarks scale

clean:
	rm -rf $(VENV) build dist demo-output bench-output paper-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
