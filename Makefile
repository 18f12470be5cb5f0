# Everything runs inside .venv, which `make install` builds from pyproject.toml.

export PIP_DISABLE_PIP_VERSION_CHECK = 1

# Interpreters to try, in order; the first that is new enough builds .venv.
PYTHON ?= python3.11 python3
PYTEST_ARGS ?=
# What `make reproduce` is to do.
ARGS ?= --list
BENCH_ARGS ?=
# What `make campaign` plays, where its results go, and on how many processes.
GAMES ?= 50000
SEED ?= 1
OUT ?= campaign
PROCESSES ?= 2

BIN := .venv/bin
CORES = $(shell $(BIN)/python -c 'import os; print(os.cpu_count())')
STAMP := .venv/.installed
# Not part of the source distribution of spgls, which can be installed without.
REPRODUCTION := $(wildcard reproduction/pyproject.toml)
PEERS := .venv/.peers
OLDEST := .venv-oldest

.DEFAULT_GOAL := help
.PHONY: help install demo test test-long test-no-numba test-oldest coverage lint typecheck docs \
    browser figures reproduce agreement campaign bench bench-full bench-against bench-figures clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## create .venv with the package, its extras and the developers' tools
	@echo "Ready: $(BIN)/python"

$(STAMP): pyproject.toml $(REPRODUCTION)
	@found=; \
	for candidate in $(PYTHON); do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        found=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "spgls needs Python 3.11 or newer; tried: $(PYTHON)." >&2; \
	    echo "Install one, or name it: make install PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    echo "Creating .venv with $$($$found --version)"; \
	    $$found -m venv --clear .venv; \
	fi
	@# Dependency groups need pip 25.1; the pip that comes with Python 3.11 is older.
	@$(BIN)/python -m pip install -qq --upgrade 'pip>=25.1'
	@echo "Installing spgls and its tools (a few minutes the first time)"
	@$(BIN)/python -m pip install -qq --editable '.[all]' \
	    $(if $(REPRODUCTION),--editable ./reproduction) \
	    --group test --group lint --group docs --group bench
	@touch $@

demo: $(STAMP) ## see what spgls does
	@$(BIN)/python -m spgls demo

# One BLAS thread per worker, so that the workers do not fight over the cores.
RUN_TESTS = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    $(1)/python -m pytest -q -n $${SPGLS_TEST_WORKERS:-2}

test: $(STAMP) ## run the tests, less the long ones (SPGLS_TEST_WORKERS=2, PYTEST_ARGS=...)
	@$(call RUN_TESTS,$(BIN)) -m 'not long' $(PYTEST_ARGS)

test-long: $(STAMP) ## run the tests that build, install or take more than ten seconds each
	@$(call RUN_TESTS,$(BIN)) -m long $(PYTEST_ARGS)

# Modules that need numba are skipped where doctests are collected.
test-no-numba: $(STAMP) ## run the tests where numba cannot be imported
	@SPGLS_TEST_WITHOUT_NUMBA=1 \
	    $(call RUN_TESTS,$(BIN)) -m 'not long' --doctest-ignore-import-errors $(PYTEST_ARGS)

# Lines of processes that tests start are counted too.
coverage: $(STAMP) ## run the tests and list lines that none of them reached
	@$(call RUN_TESTS,$(BIN)) -m 'not long' --cov --cov-report=term-missing:skip-covered \
	    --cov-fail-under=95 $(PYTEST_ARGS)

test-oldest: $(OLDEST)/.installed ## run the tests with the lowest versions that pyproject.toml declares
	@$(call RUN_TESTS,$(OLDEST)/bin) -m 'not long' $(PYTEST_ARGS)

$(OLDEST)/.installed: pyproject.toml tests/oldest.py | $(STAMP)
	@$(BIN)/python -m venv --clear $(OLDEST)
	@$(BIN)/python tests/oldest.py > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip install -qq --upgrade 'pip>=25.1'
	@echo "Installing the lowest versions into $(OLDEST)"
	@$(OLDEST)/bin/python -m pip install -qq --constraint $(OLDEST)/constraints.txt \
	    --editable '.[all]' --group test
	@touch $@

# Where there is no Chromium, and none to be had, tests of pages are skipped and say so.
browser: $(STAMP) ## install what the tests of pages in a browser need
	@$(BIN)/python -m pip install -qq --group browser
	@command -v chromium chromium-browser google-chrome >/dev/null \
	    || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	        && apt-get update -qq && apt-get install -qq -y chromium >/dev/null; } \
	    || { echo "No Chromium: install one to test pages in a browser."; exit 1; }

lint: $(STAMP) ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

typecheck: $(STAMP) ## check types
	@$(BIN)/mypy

# Pages of names that no longer exist would linger, so what is generated is made anew.
docs: $(STAMP) ## build the documentation into docs/_build/html, and check its links
	@rm -rf docs/generated docs/gallery docs/_build
	@OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@$(BIN)/python docs/check_links.py docs/_build/html
	@echo "Built: docs/_build/html/index.html"

figures: $(STAMP) ## draw the figures of the documentation (SPGLS_DATA names the data folder)
	@$(BIN)/python docs/figures.py

reproduce: $(STAMP) ## run the experiments of the paper (ARGS="wine --scale quick"; ARGS=--list shows them)
	@$(BIN)/python -m reproduction $(ARGS)

agreement: $(STAMP) ## write docs/agreement.md: every solver on every problem of the catalogue
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/agreement.py

# Ends and goes on where it was: what is in OUT, or in kept counts of the same sources, is not played
# again.
campaign: $(STAMP) ## play random games and check every answer (GAMES=50000, SEED=1, OUT=campaign, PROCESSES=2)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.campaign run \
	    --games $(GAMES) --seed $(SEED) --out $(OUT) --processes $(PROCESSES)

# A selection goes to a folder of its own: what is committed comes from a full run.
bench: $(PEERS) ## run a selection of the benchmarks, about five minutes
	@$(BIN)/python benchmarks/latency.py --quick --out benchmarks/quick
	@$(BIN)/python benchmarks/run.py --quick --out benchmarks/quick
	@$(BIN)/python benchmarks/engine.py --quick --threads $(CORES) --out benchmarks/quick
	@$(BIN)/python benchmarks/paths.py --quick --only tall --out benchmarks/quick

bench-full: $(PEERS) ## run all benchmarks, about half an hour
	@for name in run iterative conic population latency engine growth paths auto; do \
	    $(BIN)/python benchmarks/$$name.py || exit 1; \
	done
	@$(MAKE) bench-figures

bench-against: $(STAMP) ## measure this code against BEFORE=REV on a quiet machine, about 15 minutes
	$(if $(BEFORE),,$(error Say which git revision, or folder, came before: make bench-against BEFORE=REV))
	@$(BIN)/python benchmarks/against.py --before $(BEFORE) $(BENCH_ARGS)

bench-figures: $(STAMP) ## draw the figures of the benchmark pages from committed results
	@$(BIN)/python benchmarks/figures.py

$(PEERS): $(STAMP)
	@echo "Installing the software to compare with"
	@$(BIN)/python -m pip install -qq --group peers
	@touch $@

clean: ## remove .venv, .venv-oldest and everything built
	@rm -rf .venv $(OLDEST) build dist reproduction/dist docs/_build docs/generated docs/gallery .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
	@find src tests benchmarks docs reproduction -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
