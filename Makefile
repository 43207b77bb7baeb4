# Headgate: `make demo` shows it at work, `make test` checks it. Both set up what they need in .venv first.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV    := .venv
BIN     := $(VENV)/bin
CODE    := broker protocol matching ops headgate
SCRIPTS := docker/quotes.py
FORMAT  := $(CODE) $(SCRIPTS) $(wildcard pyspark_headgate.py) tests
INPUTS  := pyproject.toml constraints.txt
PIP     := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt

# pytest stops after this, with its closing line, well before the 90 minutes that CI gives are cut short from outside.
SESSION_SECONDS := 4500

# Two processes share the tests (ARGS="-n 0": one). The second half of the list starts real brokers, the first seldom does.
WORKERS := -n 2 --dist worksteal

.PHONY: help demo test test-all bench chaos log-kills durable-kills spark-campaign papers seeds ablations flows lint fmt setup clean distclean

help: ## say what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.base ## run three brokers and live subscribers, kill a broker, prove what came
	$(BIN)/headgate demo $(ARGS)

test: $(VENV)/.dev ## lint, types and the fast tests (ARGS="-k name" narrows)
	@$(call CHECK,)

test-all: $(VENV)/.all ## the same, with the slow tests: Spark and many processes
	@$(call CHECK,-m "not rare" --session-timeout=$(SESSION_SECONDS))

bench: $(VENV)/.dev ## say what can be measured (ARGS=compare: beside the peers found installed)
	$(BIN)/headgate bench $(ARGS)

chaos: $(VENV)/.dev ## kill and stop real brokers under traffic, check every promise (ARGS="--seconds 180 --seed 1")
	$(BIN)/python -m headgate.ops.bench.chaos.chaos $(ARGS)

log-kills: $(VENV)/.dev ## kill brokers N times (N=50) while stored events are published, then count the log
	$(BIN)/python -m headgate.ops.bench.log.kills --kills $(or $(N),50) $(ARGS)

durable-kills: $(VENV)/.dev ## kill brokers and clients N times (N=20) under durable subscriptions, then count what came
	$(BIN)/python -m headgate.ops.bench.durable.kills --kills $(or $(N),20) $(ARGS)

spark-campaign: $(VENV)/.all ## run Spark jobs again and again under kills: exact or refused (ARGS="--rows 500000 --runs 10")
	$(BIN)/python -m headgate.ops.bench.spark.campaign $(ARGS)

papers: $(VENV)/.dev ## print the papers' figures beside ours
	$(BIN)/python -m headgate.ops.bench.papers $(ARGS)

seeds: $(VENV)/.dev ## simulate N seeds (N=1000) of the broker, the ring, a cluster, its logs and durable subscriptions
	$(BIN)/python -m headgate.broker.simulator --campaign $(or $(N),200)
	$(BIN)/python -m headgate.broker.simulator ring --campaign $(or $(N),200)
	$(BIN)/python -m headgate.broker.simulator --nodes 3 --campaign $(or $(N),200) --faults all
	$(BIN)/python -m headgate.broker.simulator --nodes 5 --campaign $(or $(N),200) --faults all
	for nodes in 3 5; do $(BIN)/python -m headgate.broker.simulator --delta --nodes $$nodes --campaign $(or $(N),200) --faults all || exit 1; done
	for routing in kbsp kbpp flood; do $(BIN)/python -m headgate.broker.simulator --structure $$routing --nodes 5 --campaign $(or $(N),200) --faults all || exit 1; done
	$(BIN)/python -m headgate.broker.simulator --turns --campaign $(or $(N),200)
	$(BIN)/python -m headgate.broker.simulator --turns --nodes 3 --campaign $(or $(N),200)
	$(BIN)/python -m headgate.broker.simulator --structure kbsp --amend --nodes 5 --campaign $(or $(N),200) --faults all
	for nodes in 3 5; do $(BIN)/python -m headgate.broker.simulator --amend --nodes $$nodes --campaign $(or $(N),200) --faults all || exit 1; done
	for nodes in 1 2 3 5; do $(BIN)/python -m headgate.broker.simulator --log --nodes $$nodes --campaign $(or $(N),200) || exit 1; done
	for nodes in 1 2 3 5; do $(BIN)/python -m headgate.broker.simulator --durable --nodes $$nodes --campaign $(or $(N),200) || exit 1; done

ablations: $(VENV)/.dev ## find for each safeguard of a cluster a seed that fails without it, the rare ones too
	$(BIN)/python -m pytest -m "slow or rare" tests/broker/simulator/test_cluster_ablations.py $(ARGS)

flows: $(VENV)/.dev ## count what each flow passes: files, calls, calls back, messages (ARGS="--files SUBSCRIBE")
	$(BIN)/python -m tests.support.tracer $(ARGS)

lint: $(VENV)/.dev ## ruff and mypy --strict, changing nothing
	$(BIN)/ruff check $(FORMAT)
	$(BIN)/ruff format --check $(FORMAT)
	$(BIN)/mypy --strict --package headgate --module pyspark_headgate
	$(BIN)/mypy --strict $(SCRIPTS)

fmt: $(VENV)/.dev ## let ruff format and fix what it can
	$(BIN)/ruff check --fix $(FORMAT)
	$(BIN)/ruff format $(FORMAT)

setup: $(VENV)/.all ## install everything into .venv

clean: ## remove caches and builds
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find broker protocol matching ops tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## remove the environment as well
	rm -rf $(VENV)

# Lint and tests both run, whichever fails; the tests come last, so that their closing line ends the output.
define CHECK
lint=0; tests=0; \
$(MAKE) --no-print-directory lint || lint=$$?; \
$(BIN)/python -m pytest $(WORKERS) $(1) $(ARGS) || tests=$$?; \
if [ $$lint -ne 0 ]; then echo "make: lint failed as well: see above, or run 'make lint'" >&2; fi; \
exit $$((lint + tests))
endef

# A stamp per set of extras; a larger set also stamps the smaller ones it contains.
$(VENV)/.base: $(INPUTS) | $(BIN)/python
	$(INSTALL) --editable '.[broker]'
	@touch $@

$(VENV)/.dev: $(INPUTS) | $(BIN)/python
	$(INSTALL) --editable '.[dev]'
	@touch $(VENV)/.base $@

$(VENV)/.all: $(INPUTS) | $(BIN)/python
	$(INSTALL) --editable '.[dev,spark,xml]'
	@touch $(VENV)/.base $(VENV)/.dev $@

# PYTHON=... chooses the interpreter; otherwise the first of these that is new enough.
$(BIN)/python:
	@for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "making $(VENV) with $$candidate"; \
	    if $$candidate -m venv $(VENV) && $(BIN)/python -m pip --version >/dev/null; then exit 0; fi; \
	    rm -rf $(VENV); \
	    echo "make: $$candidate could not make a virtual environment: on Debian and Ubuntu, install python3-venv" >&2; \
	    exit 1; \
	  fi; \
	done; \
	echo "make: Headgate needs Python 3.11 or newer, and none of '$(or $(PYTHON),python3 python3.13 python3.12 python3.11)' is: install one, or name it with PYTHON=/path/to/python3" >&2; \
	exit 1
