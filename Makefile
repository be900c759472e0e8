# Everything runs in .venv, which the first call makes; later calls find it done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := benchmarks/.venv
TESTS ?= tests src docs
# What is installed is compiled when it is first imported, which most of it never is. What came of it is kept, whatever the
# environment says: or every process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := -m pip install --quiet --no-compile
PIP_WITH_GROUPS := "pip>=25.1"  # the first to know dependency groups

# What is tested beside the core.
EXTRAS := reproduce,atlas,dask,spark

.PHONY: demo test test-all lint types bench bench-engine conformance docs links dist wheel-check lowest clean

demo: $(VENV)/.demo
	$(BIN)/survscore demo

# The quick suite, and all tests. A file is run by one process: what it sets up (a cluster, trained nets, machine code) is
# set up once.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile $(TESTS)

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile -m "" --hypothesis-profile=thorough $(TESTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml

types: $(VENV)/.dev
	$(BIN)/mypy

# Where it writes its numbers; RESULTS=docs/benchmarks puts them on the pages.
RESULTS ?= build/benchmarks
bench: $(BENCH_VENV)/.done
	$(BENCH_VENV)/bin/python benchmarks/scores.py --json $(RESULTS)/scores.json
	$(BENCH_VENV)/bin/python benchmarks/training.py --json $(RESULTS)/training.json
	$(BENCH_VENV)/bin/python benchmarks/convergence.py --jobs 2 --json $(RESULTS)/convergence.json
	$(BENCH_VENV)/bin/python benchmarks/command_line.py --json $(RESULTS)/command_line.json

# This version beside 0.2, whose sources are in the history.
bench-engine: $(VENV)/.dev
	rm -rf build/0.2
	mkdir -p build/0.2
	git archive e8810ec src | tar -x -C build/0.2
	$(BIN)/python benchmarks/engine.py --old build/0.2/src --json $(RESULTS)/engine.json

# Which conventions other packages follow, into docs/conformance.json. Those of R are asked where there is an Rscript
# (Debian: apt-get install r-cran-riskregression r-cran-pec r-cran-ipred r-cran-survival r-cran-jsonlite).
conformance: $(BENCH_VENV)/.done
	$(BENCH_VENV)/bin/python benchmarks/conformance.py

$(BENCH_VENV)/.done: benchmarks/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python $(INSTALL) -r benchmarks/requirements.txt -e ".[models,report]"
	touch $@

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	SURVSCORE_PAGES=docs/_build/html $(BIN)/python -m pytest tests/test_pages.py

links: $(VENV)/.docs
	$(BIN)/sphinx-build -b linkcheck docs docs/_build/links

# The sdist, and the wheel made from it.
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

# The wheel in an environment that has nothing else: first a plain install, then with an extra. EXTRA=reproduce, which
# needs torch, runs the demo as well.
EXTRA ?= report
WHEEL_VENV := build/wheel-check
wheel-check: dist
	rm -rf build/wheel-check build/played build/played-with-extra
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python $(INSTALL) -c constraints.txt dist/*.whl
	cd build && wheel-check/bin/python ../tools/try_installed.py played
	$(WHEEL_VENV)/bin/python $(INSTALL) -c constraints.txt "$$(echo dist/*.whl)[$(EXTRA)]"
	cd build && wheel-check/bin/python ../tools/try_installed.py played-with-extra

# The lowest versions that users may have, with as much of the tests as tells whether they work.
LOWEST_VENV := build/lowest
LOWEST_TESTS ?= tests/test_scores.py tests/test_weighting.py tests/test_outcomes.py tests/test_comparison.py tests/test_curves.py \
	tests/test_results.py tests/test_scorers.py tests/test_cli.py tests/test_cli_files.py tests/io tests/models tests/reports \
	tests/datasets
lowest:
	rm -rf $(LOWEST_VENV)
	$(PYTHON) -m venv $(LOWEST_VENV)
	$(PYTHON) tools/lowest.py reproduce > build/lowest.txt
	$(LOWEST_VENV)/bin/python $(INSTALL) $(PIP_WITH_GROUPS)
	$(LOWEST_VENV)/bin/python $(INSTALL) -c build/lowest.txt --group test -e ".[$(EXTRAS)]"
	$(LOWEST_VENV)/bin/python -m pytest -n auto --dist loadfile -W default::DeprecationWarning -W default::PendingDeprecationWarning $(LOWEST_TESTS)

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(BENCH_VENV)-* build dist docs/_build docs/api/generated docs/gallery docs/atlas_page demo-output

# A stamp is made anew when what it installs may have changed.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python $(INSTALL) -c constraints.txt -e ".[reproduce]"
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python $(INSTALL) $(PIP_WITH_GROUPS)
	$(BIN)/python $(INSTALL) -c constraints.txt --group dev -e ".[$(EXTRAS)]"
	touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python $(INSTALL) -c constraints.txt --group dev --group docs -e ".[$(EXTRAS)]"
	touch $@
