# Needs Python 3.11 or newer, make and git; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --editable .

.PHONY: help demo docs test test-long test-mutations test-numpyro coverage lint hooks review dist-check \
	bench bench-calibration bench-comparison bench-mixing bench-optimal bench-scale bench-wild clean

help:
	@echo "make demo       fit on real data and look at the result"
	@echo "make test       lint, types and tests (a few minutes)"
	@echo "make test-long  the statistical tests that take longer"
	@echo "make test-mutations  break each term on purpose and see its test fail (an hour)"
	@echo "make test-numpyro    NUTS against NumPyro's (installs JAX)"
	@echo "make docs       the documentation as web pages, in build/docs; runs the tutorials (2 minutes)"
	@echo "make coverage   the tests again, and which lines they reach, in build/coverage"
	@echo "make lint       every check of .pre-commit-config.yaml, on all files"
	@echo "make hooks      the same before each commit"
	@echo "make review     scientific-python's list of habits (repo-review)"
	@echo "make dist-check build wheel and source distribution, install each, run the demo (5 minutes)"
	@echo "make bench      measurements with their goals"
	@echo "make bench-mixing    how soon ten chains agree, beside other samplers (25 minutes)"
	@echo "make bench-calibration  coverage and log scores on 20 data sets, beside other models (an hour)"
	@echo "make bench-wild      how well four chains agree after a minute, on 15 data sets (45 minutes)"
	@echo "make bench-optimal   the best tree beside MAPTree, pystreed and CART (20 minutes; needs the data)"
	@echo "make bench-comparison   six tables beside CART, forest, boosting, EBM, BART (10 minutes)"
	@echo "make bench-scale     seconds and memory up to a million rows (20 minutes)"
	@echo "make clean      remove the environment and everything made here"

# The stamps are older than pyproject.toml when the dependencies may have changed.
$(VENV)/.made:
	@$(PYTHON) -c "import sys; sys.exit('hamiltree needs Python 3.11 or newer, set PYTHON=...' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.user: pyproject.toml | $(VENV)/.made
	@echo "installing hamiltree into $(VENV) (a minute or two, once)"
	$(INSTALL)
	@touch $@

# Dependency groups need pip 25.1, and Python may come with an older one.
$(VENV)/.pip: | $(VENV)/.made
	@$(BIN)/python -m pip install --help | grep -e --group > /dev/null || \
		$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.pip
	@echo "installing hamiltree and the tools to test it into $(VENV) (a minute or two, once)"
	$(INSTALL) --group dev
	@touch $@ $(VENV)/.user

demo: $(VENV)/.user
	$(BIN)/hamiltree demo

# All kernels are compiled before the tests' processes start, which would each compile them.
# With SCIPY_ARRAY_API two of scikit-learn's checks run that are skipped without it.
PYTEST := $(BIN)/python -m hamiltree compile && \
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n auto --dist loadfile -m "not long"

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src
	$(PYTEST)

test-long: $(VENV)/.dev
	$(BIN)/python -m pytest -m long

test-mutations: $(VENV)/.dev
	$(BIN)/python -m tests.mutants

test-numpyro: $(VENV)/.dev
	$(INSTALL) --group dev --group numpyro
	$(BIN)/python -m pytest -m numpyro

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -E -W --keep-going -q docs build/docs
	@echo "open build/docs/index.html"

coverage: $(VENV)/.dev
	$(PYTEST) --cov --cov-report=term --cov-report=html

lint: $(VENV)/.dev
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pre-commit run --all-files

hooks: $(VENV)/.dev
	$(BIN)/pre-commit install

review: $(VENV)/.dev
	$(INSTALL) --group dev --group review
	$(BIN)/repo-review .

dist-check: $(VENV)/.dev
	$(INSTALL) --group dev --group dist
	$(BIN)/python -m tests.support.dist_check

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

bench-mixing: $(VENV)/.dev
	$(INSTALL) --group dev --group bench
	$(BIN)/python -m benchmarks mixing cgm20

bench-calibration:
	$(PYTHON) -m venv $(VENV)-calibration
	$(VENV)-calibration/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-calibration/bin/python -m pip install --quiet --editable . --group calibration
	$(VENV)-calibration/bin/python -m benchmarks calibration

bench-wild: $(VENV)/.dev
	$(INSTALL) --group dev --group bench
	$(BIN)/python -m benchmarks wild

bench-optimal: $(VENV)/.dev
	$(INSTALL) --group dev --group optimal
	$(BIN)/python -m benchmarks optimal

bench-comparison:
	$(PYTHON) -m venv $(VENV)-calibration
	$(VENV)-calibration/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-calibration/bin/python -m pip install --quiet --editable . --group calibration
	$(VENV)-calibration/bin/python -m benchmarks comparison

bench-scale: $(VENV)/.dev
	$(INSTALL) --group dev --group bench
	$(BIN)/python -m benchmarks scale

clean:
	rm -rf $(VENV) $(VENV)-calibration .nox build dist demo-output bench-output paper-output
	rm -rf .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .rumdl_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
