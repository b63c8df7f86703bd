# Two commands do everything, set-up included: `make crawl` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
MADE   := $(VENV)/.made
STAMP  := $(VENV)/.installed
DEV_STAMP   := $(VENV)/.installed-dev
BENCH_STAMP := $(VENV)/.installed-bench
AUDIT_STAMP := $(VENV)/audit/.installed
REPLAY_STAMP := $(VENV)/replay/.installed
LOWEST_STAMP := $(VENV)/lowest/.installed

# Tests start hundreds of processes: without compiled files each would compile all that it imports.
test test-fast: export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help crawl test test-fast test-lowest lint check format torture mutants reliability bench profile simulate \
        docs reference lock sbom audit clean

# Tests of pure code: no server, no process, no disk to speak of.
FAST := tests/politeness tests/simulation tests/exports tests/crawler/web tests/crawler/page \
        tests/crawler/robots tests/crawler/frontier tests/crawler/shard tests/cli/test_config.py

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(MADE):
	@command -v $(PYTHON) >/dev/null || { echo "mannerly needs Python 3.11 or newer: set PYTHON=/path/to/python3"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "mannerly needs Python 3.11 or newer: set PYTHON=/path/to/python3"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What runs may be any version within the ranges of pyproject.toml.
$(STAMP): pyproject.toml | $(MADE)
	$(PIP) --editable .
	@touch $@

# What is tested, and what tests it, comes from the lock file alone: each file is checked by its hash.
$(DEV_STAMP): pyproject.toml locks/dev.txt | $(MADE)
	$(PIP) --require-hashes --requirement locks/dev.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(STAMP) $@

crawl: $(STAMP)  ## crawl URL=https://example.org, or without it the built-in demonstration web
ifdef URL
	$(BIN)/mannerly crawl $(URL) $(ARGS)
else
	$(BIN)/mannerly demo $(ARGS)
endif

# Half of the time of tests is waiting: six processes keep two cores busy. A test of real processes, marked
# `processes`, may fail for lack of CPU time beside others. Exit code 8 says that nothing else has failed: then
# these run once more, alone, and must pass. Any other failure is final.
test: $(DEV_STAMP) $(REPLAY_STAMP)  ## run every test, real servers included
	@$(BIN)/python -m pytest --numprocesses 6 --dist loadfile --no-loadscope-reorder --repeatable || { \
	  code=$$?; [ $$code -eq 8 ] || exit $$code; \
	  $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -m 'processes and not long'; }

test-fast: $(DEV_STAMP)  ## run the tests of pure code, within half a minute
	$(BIN)/python -m pytest --quiet $(FAST)

# The lower ends of the ranges in pyproject.toml, in an environment of their own; uv finds them.
$(LOWEST_STAMP): pyproject.toml | $(MADE)
	$(BIN)/python -m venv $(VENV)/lowest
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)/lowest/bin/uv pip install --quiet --python $(VENV)/lowest/bin/python --resolution lowest-direct \
	  --editable '.[archive,metrics,parquet,redis,serve]'
	$(VENV)/lowest/bin/uv pip install --quiet --python $(VENV)/lowest/bin/python --group test-lowest
	@touch $@

test-lowest: $(LOWEST_STAMP)  ## run the tests of pure code with the lowest version of every dependency
	$(VENV)/lowest/bin/python -m pytest --quiet $(FAST)

lint: $(DEV_STAMP)  ## check format, lint rules, types and import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test  ## what CI runs: lint, then every test

format: $(DEV_STAMP)  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

torture: $(DEV_STAMP)  ## crawl a hostile web while processes are killed and stopped (ARGS="--seed 7 --minutes 30"); then the long cases
	$(BIN)/python -m torture $(ARGS)
	$(BIN)/python -m pytest --quiet --numprocesses 3 --dist loadfile --no-loadscope-reorder -m long

mutants: $(DEV_STAMP)  ## break each promise on purpose, and show that a test notices (ARGS="--only NAME")
	$(BIN)/python -m mutants $(ARGS)

reliability: $(DEV_STAMP)  ## run every case of the hostile web, and write docs/explanation/reliability.md with its figure
	$(BIN)/python -m tests.hostile $(ARGS)

$(BENCH_STAMP): $(DEV_STAMP)
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --group bench
	@touch $@

bench: $(BENCH_STAMP)  ## race Scrapy and Crawlee, and every other measurement (see bench/README.md)
	$(BIN)/python -m bench $(ARGS)

profile: $(BENCH_STAMP)  ## where a page's microseconds go, stage by stage
	$(BIN)/python -m bench profile $(ARGS)

simulate: $(STAMP)  ## watch the learned strategy find a hidden limit (SERVER=bucket:5:10)
	$(BIN)/mannerly simulate --server $(or $(SERVER),bucket:5:10) $(ARGS)

docs: $(DEV_STAMP)  ## build the documents as a site, .cache/docs/index.html; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -c docs -d .cache/doctrees . .cache/docs
	@echo "built: .cache/docs/index.html"

reference: $(STAMP)  ## regenerate the pages of docs/reference/ that come from the code
	$(BIN)/python -m docs.generate

lock: $(MADE)  ## write locks/*.txt anew from pyproject.toml (needs uv; ARGS=--upgrade takes newer versions)
	$(BIN)/python -m supply lock $(ARGS)

sbom: $(MADE)  ## write the bill of materials, mannerly.cdx.json, from the lock files
	$(BIN)/python -m supply bom --output mannerly.cdx.json

$(AUDIT_STAMP): locks/audit.txt | $(MADE)
	$(BIN)/python -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement locks/audit.txt
	@touch $@

# pywb replays archives in the tests. It pins packages that clash with ours.
$(REPLAY_STAMP): locks/replay.txt | $(MADE)
	$(BIN)/python -m venv $(VENV)/replay
	$(VENV)/replay/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement locks/replay.txt
	@touch $@

audit: $(AUDIT_STAMP)  ## ask the advisory service about every package of the lock files (needs network)
	$(VENV)/audit/bin/python -m supply audit

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
