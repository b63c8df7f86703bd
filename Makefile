# Two commands do everything, set-up included: `make crawl` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
STAMP  := $(VENV)/.installed
DEV_STAMP   := $(VENV)/.installed-dev
BENCH_STAMP := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
.PHONY: help crawl test test-fast lint check format bench profile simulate reference clean

# Tests of pure code: no server, no process, no disk to speak of.
FAST := tests/politeness tests/simulation tests/exports tests/crawler/web tests/crawler/page \
        tests/crawler/robots tests/crawler/frontier tests/crawler/shard tests/cli/test_config.py

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "mannerly needs Python 3.11 or newer: set PYTHON=/path/to/python3"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "mannerly needs Python 3.11 or newer: set PYTHON=/path/to/python3"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --editable .
	@touch $@

$(DEV_STAMP): $(STAMP)
	$(PIP) --group dev
	@touch $@

crawl: $(STAMP)  ## crawl URL=https://example.org, or without it the built-in demonstration web
ifdef URL
	$(BIN)/mannerly crawl $(URL) $(ARGS)
else
	$(BIN)/mannerly demo $(ARGS)
endif

# Most tests of crawls wait for delays: three processes take a third of the time.
test: $(DEV_STAMP)  ## run every test, real servers included
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile

test-fast: $(DEV_STAMP)  ## run the tests of pure code, within half a minute
	$(BIN)/python -m pytest --quiet $(FAST)

lint: $(DEV_STAMP)  ## check format, lint rules, types and import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test  ## what CI runs: lint, then every test

format: $(DEV_STAMP)  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(BENCH_STAMP): $(DEV_STAMP)
	$(PIP) --group bench
	@touch $@

bench: $(BENCH_STAMP)  ## race Scrapy and Crawlee, and every other measurement (see bench/README.md)
	$(BIN)/python -m bench $(ARGS)

profile: $(BENCH_STAMP)  ## where a page's microseconds go, stage by stage
	$(BIN)/python -m bench profile $(ARGS)

simulate: $(STAMP)  ## watch the learned strategy find a hidden limit (SERVER=bucket:5:10)
	$(BIN)/mannerly simulate --server $(or $(SERVER),bucket:5:10) $(ARGS)

reference: $(STAMP)  ## regenerate docs/settings.md and docs/options.md from the code
	$(BIN)/python -m docs.generate

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
