# Every target makes .venv and installs what it needs; it reinstalls only when
# pyproject.toml or constraints.txt changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
BENCH := .venv-bench
BENCH_STAMP := $(BENCH)/installed
SITE := .venv-site
SITE_STAMP := $(SITE)/installed
LOWEST := .venv-lowest
RELEASE := .venv-release

# One thread per process: the problems are small, and threads that wait for each other only slow them down.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

# Random data of the tests; another number gives other data of the same kind.
export ORDINALQ_TEST_SEED ?= 876
SEEDS ?= 1 2 3 4 5 6 7 8 9 10
# Two processes; a file of tests stays in one, so that what its tests share is made once.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile

CLUSTER := .venv-cluster
CLUSTER_STAMP := $(CLUSTER)/installed
QUAPY := .venv-quapy
QUAPY_STAMP := $(QUAPY)/installed

.PHONY: help test browser-test screenshots cluster-test quapy-test seeds coverage slow check demo bench hostile docs site lowest release notebooks rehearse format clean

help:
	@echo "make test    the test suite        make slow    the long tests"
	@echo "make check   lint, types, layers   make bench   speed, beside other packages"
	@echo "make seeds   tests on random data, at ten seeds"
	@echo "make cluster-test  tests on clusters of Dask and Spark; installs pyspark and, if it can, Java"
	@echo "make quapy-test  methods of QuaPy in ordinalq, and the other way round; installs QuaPy"
	@echo "make coverage  the test suite, and which lines it reaches"
	@echo "make browser-test  the page of \`ordinalq app\` in a real Chromium"
	@echo "make hostile  24,000 hostile problems for the solvers, each answer with a certificate"
	@echo "make demo    the fried experiment  make docs    what is generated in the documentation"
	@echo "make site    the documentation as a site, docs/_build/html/index.html"
	@echo "make lowest  the test suite with the oldest versions that pyproject.toml allows"
	@echo "make notebooks  the notebooks of the site, run with the wheel of \`make release\`"
	@echo "make rehearse  all targets and validation benchmarks from a fresh clone, into docs/validation/rehearsal.md"
	@echo "make release  sdist and wheel in dist/, checked and tried in a fresh environment, without and with extras"

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

$(BENCH_STAMP): pyproject.toml constraints.txt benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt -e ".[all]"
	touch $@

$(SITE_STAMP): pyproject.toml constraints.txt
	test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[site]"
	touch $@

test: $(STAMP)
	$(PYTEST) -m "not slow"

$(CLUSTER_STAMP): pyproject.toml constraints.txt
	test -x $(CLUSTER)/bin/python || $(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,spark]"
	touch $@

# Spark needs a Java runtime; where there is none and none can be installed, that is an error.
cluster-test: $(CLUSTER_STAMP)
	command -v java > /dev/null || (apt-get update -qq && apt-get install -y -qq default-jre-headless) || \
	    (echo "make cluster-test: Spark needs a Java runtime, such as default-jre-headless: install it" >&2; exit 1)
	$(CLUSTER)/bin/python -m pytest -q -m "not slow" tests/test_dask.py tests/test_spark.py

$(QUAPY_STAMP): pyproject.toml constraints.txt
	test -x $(QUAPY)/bin/python || $(PYTHON) -m venv $(QUAPY)
	$(QUAPY)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" "quapy==0.2.3"
	touch $@

# QuaPy adds 4 MB to the packages of the tests.
quapy-test: $(QUAPY_STAMP)
	$(QUAPY)/bin/python -m pytest -q tests/test_quapy.py

seeds: $(STAMP)
	for seed in $(SEEDS); do \
	    ORDINALQ_TEST_SEED=$$seed $(PYTEST) -m "seeded and not slow" || exit 1; \
	done

# Counting the lines makes the tests a third slower.
coverage: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n 2 --dist loadfile -m "not slow"
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

slow: $(STAMP)
	$(BIN)/python -m pytest -m slow --durations=10

# The web app in Chromium, which is installed if the system allows it.
browser-test: $(STAMP)
	command -v chromedriver > /dev/null || { apt-get update -qq && apt-get install -y -qq chromium chromium-driver; }
	$(BIN)/python -m pytest -q -m browser tests/test_browser.py

# The screenshots of docs/app.md, by the same tests.
screenshots: $(STAMP)
	ORDINALQ_SCREENSHOTS=docs $(BIN)/python -m pytest -q -m browser tests/test_browser.py -k "built_in or phone"

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
	$(BIN)/python docs/make_tables.py
	$(BIN)/python docs/make_figures.py

# Warnings are errors; pages of names and examples are generated again.
site: $(SITE_STAMP)
	rm -rf docs/api docs/gallery docs/notebooks docs/_build
	$(SITE)/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

lowest:
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) .ci/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/constraints.txt -e ".[dev]"
	$(LOWEST)/bin/python -m pytest -q -n 2 --dist loadfile -m "not slow"

release:
	rm -rf $(RELEASE) dist
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check build twine
	$(RELEASE)/bin/python -m build --outdir dist .
	$(RELEASE)/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear $(RELEASE)
	cp .ci/smoke.py .ci/smoke_core.py $(RELEASE)/
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd $(RELEASE) && bin/python smoke_core.py
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo dist/*.whl)[all]"
	cd $(RELEASE) && bin/python smoke.py

# The notebooks of the site, run with the wheel in a fresh environment; after `make site` and `make release`.
notebooks:
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo dist/*.whl)[all]" nbconvert ipykernel
	$(RELEASE)/bin/jupyter nbconvert --to notebook --execute --output-dir $(RELEASE)/notebooks docs/notebooks/*.ipynb

# Everything above and the validation benchmarks from a fresh clone; takes hours, and continues where it stopped.
rehearse: $(STAMP)
	$(BIN)/python .ci/rehearse.py

clean:
	rm -rf $(VENV) $(BENCH) $(SITE) $(LOWEST) $(RELEASE) $(CLUSTER) $(QUAPY) dist docs/_build docs/api docs/gallery docs/notebooks docs/sg_execution_times.rst .mypy_cache .pytest_cache .ruff_cache .coverage
