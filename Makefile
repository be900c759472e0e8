# Everything runs in .venv, which the first call makes; later calls find it done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := benchmarks/.venv
TESTS ?= tests src docs

.PHONY: demo test lint types bench docs clean

demo: $(VENV)/.demo
	$(BIN)/survscore demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto $(TESTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(BENCH_VENV)/.done
	$(BENCH_VENV)/bin/python benchmarks/scores.py
	$(BENCH_VENV)/bin/python benchmarks/training.py
	$(BENCH_VENV)/bin/python benchmarks/convergence.py --jobs 2
	$(BENCH_VENV)/bin/python benchmarks/command_line.py

$(BENCH_VENV)/.done: benchmarks/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet -r benchmarks/requirements.txt -e ".[models,report]"
	touch $@

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) $(BENCH_VENV) docs/_build docs/api/generated docs/gallery docs/atlas_page demo-output

# A stamp is made anew when what it installs may have changed.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[reproduce]"
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,docs]"
	touch $@
