# Every target makes .venv and installs what it needs; it reinstalls only when
# pyproject.toml or constraints.txt changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: help test slow check demo bench docs format clean

help:
	@echo "make test    the test suite        make slow    the long tests too"
	@echo "make check   lint, types, layers   make bench   speed, beside other packages"
	@echo "make demo    the fried experiment  make docs    what is generated in the documentation"

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

test: $(STAMP)
	$(BIN)/coverage run -m pytest -m "not slow"
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

demo:
	@echo "make demo: the experiment on fried is not in this version yet." >&2; exit 1

bench:
	@echo "make bench: the benchmarks are not in this version yet." >&2; exit 1

docs:
	@echo "make docs: generated documentation is not in this version yet." >&2; exit 1

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
