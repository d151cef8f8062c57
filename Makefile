# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo demo-cluster test check test-compiled test-plain readme pages soak bench bench-deep bench-maxmargin bench-distributed bench-runtime bench-kafka bench-scale bench-telemetry bench-guard kafka shots format clean

help:  ## show what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: Python 3.11 or newer is needed: try make PYTHON=python3.12"; exit 3; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip

# The stamps remember which extras are installed; a changed pyproject.toml installs again.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV), once"
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[plot]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) with the tools of the tests, once"
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## a synthetic news stream, learned while it streams by
	@$(BIN)/stream-hc demo

demo-cluster: $(VENV)/.demo  ## trainers and predictors on a broker of their own: two are killed, nothing is lost
	@$(BIN)/python -m deploy.cluster_demo

check: $(VENV)/.dev  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: test-compiled test-plain  ## all tests, with and without compiled kernels

test-compiled: $(VENV)/.dev
	$(BIN)/python -m tests.warm
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not soak and not once'

# Numba hides its functions from coverage: without it every line of a kernel counts.
test-plain: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not soak and not compiled' --cov --cov-report=term

soak: $(VENV)/.dev  ## what takes minutes: large models against a direct solve
	$(BIN)/python -m pytest -m soak

readme: $(VENV)/.dev  ## renew the table and the pictures of the README
	$(BIN)/python docs/renew.py

pages: $(VENV)/.dev  ## renew the pages about second order, calibration, paths, max-margin and the runtime (an hour)
	$(BIN)/python docs/second_order.py
	$(BIN)/python docs/label_budget.py
	$(BIN)/python docs/calibration.py
	$(BIN)/python docs/paths.py
	$(BIN)/python docs/maxmargin.py
	$(BIN)/python docs/runtime.py
	$(BIN)/python -m bench.hrls_budget

# The peers live apart: nothing of ours should come to need them. fastText is compiled: a C++ compiler is needed.
$(BENCH_VENV)/.bench: pyproject.toml
	@echo "setting up $(BENCH_VENV) with the peers, once"
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

bench: $(BENCH_VENV)/.bench  ## speed and accuracy beside the peers, written to docs/benchmarks.md
	$(BENCH_VENV)/bin/python -m bench

bench-deep: $(BENCH_VENV)/.bench  ## large taxonomies beside the peers, written to docs/large-taxonomies.md
	$(BENCH_VENV)/bin/python -m bench.deep

bench-maxmargin: $(BENCH_VENV)/.bench  ## H-M³ beside liblinear, written to docs/max-margin-speed.md
	$(BENCH_VENV)/bin/python -m bench.maxmargin

bench-distributed: $(VENV)/.dev  ## H-M³ fitted by two processes beside one, written to docs/distributed-refit.md
	$(BIN)/python -m bench.distributed

bench-runtime: $(VENV)/.dev  ## where the time of the runtime goes, written to docs/runtime-speed.md
	$(BIN)/python -m bench.runtime

bench-kafka: $(VENV)/.dev  ## the Kafka daemon beside a bare loop, written to docs/kafka-speed.md
	$(BIN)/python -m bench.kafka

bench-scale: $(VENV)/.dev  ## predictors, trainers of shards and published models, written to docs/scale-speed.md
	$(BIN)/python -m bench.scale

kafka: $(VENV)/.demo  ## Apache Kafka on 127.0.0.1:9092 until Ctrl-C
	@$(BIN)/python deploy/kafka/broker.py run

bench-telemetry: $(VENV)/.dev  ## what it costs to watch: fails if that is more than a fiftieth
	$(BIN)/python -m bench.telemetry

shots: $(VENV)/.dev  ## the pictures of the live page, in docs/ (needs chromium and chromium-driver)
	STREAM_HC_SHOTS=docs $(BIN)/python -m pytest tests/browser -k pictures

bench-guard: $(VENV)/.dev  ## fails where we have become half as fast, compared with others in the same run
	$(BIN)/python -m bench.guard

format: $(VENV)/.dev  ## bring the code into its format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove the environment and everything made
	rm -rf $(VENV) $(BENCH_VENV) demo-output bench/results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
