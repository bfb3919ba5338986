# Every target makes .venv and installs what it needs; it reinstalls only when
# pyproject.toml or constraints.txt changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
BENCH := .venv-bench
BENCH_STAMP := $(BENCH)/installed

# One thread per process: the problems are small, and threads that wait for each other only slow them down.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: help test coverage slow check demo bench hostile docs format clean

help:
	@echo "make test    the test suite        make slow    the long tests"
	@echo "make check   lint, types, layers   make bench   speed, beside other packages"
	@echo "make coverage  the test suite, and which lines it reaches"
	@echo "make hostile  24,000 hostile problems for the solvers, each answer with a certificate"
	@echo "make demo    the fried experiment  make docs    what is generated in the documentation"

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

$(BENCH_STAMP): pyproject.toml constraints.txt benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt -e .
	touch $@

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow" -q

# Counting the lines makes the tests a third slower.
coverage: $(STAMP)
	$(BIN)/coverage run -m pytest -m "not slow" -q
	$(BIN)/coverage report

slow: $(STAMP)
	$(BIN)/python -m pytest -m slow --durations=10

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(STAMP)
	$(BIN)/ordinalq reproduce fried

bench: $(BENCH_STAMP)
	$(BENCH)/bin/python benchmarks/bench_methods.py --write

hostile: $(STAMP)
	$(BIN)/python benchmarks/hostile.py

docs: $(STAMP)
	$(BIN)/python docs/make_methods.py
	$(BIN)/python docs/make_picture.py

clean:
	rm -rf $(VENV) $(BENCH) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
