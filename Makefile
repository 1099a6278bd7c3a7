# Commands for contributors. They need Python 3.11 or newer and make; everything else is installed into .venv.

PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)

BIN := .venv/bin
READY := .venv/.ready
USABLE := .venv/.usable
PYTHON_DIRS := $(wildcard src tests bench e2e engines fuzz docs examples deploy)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The pins also apply to the build backend, which pip installs separately: older versions of pip read the first
# variable, newer ones the second.
PINNED := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup test test-full test-pythons cover check fmt run demo docs site bench soak e2e engines fuzz pins sbom clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s  %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## create .venv, unless it is up to date

$(READY): $(USABLE)
	@echo "installing the development packages, once: a minute or two" >&2
	$(PINNED) $(BIN)/python -m pip install -qq -e '.[dev]'
	@touch $@

# Runtime packages only, without test tools and clients: a few seconds instead of a minute.
$(USABLE): pyproject.toml constraints.txt
	@echo "creating .venv, once" >&2
	$(PYTHON) -m venv .venv
	$(PINNED) $(BIN)/python -m pip install -qq -e .
	@touch $@

# Tests start hundreds of processes. Without compiled modules on disk, each start takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

# More processes than cores, because many tests wait. Neighbouring tests run together, because they share a gateway.
PYTEST := -m pytest -n 4 --dist worksteal

test: check ## run all checks, and all tests but the long ones: under five minutes
	$(BIN)/python $(PYTEST) -m 'not slow'

# Every cut of every row, and samples and property tests with all their examples. Together with `make test`, that is every test.
test-full: setup ## run the long tests that make test leaves out
	HYPOTHESIS_PROFILE=full $(BIN)/python $(PYTEST) -m 'slow or hypothesis or sampled'

# Each version has an environment of its own. `make test-pythons PYTHONS='--only 3.13 -- tests/cli'` runs a part.
test-pythons: ## run the tests with each installed Python, 3.11 to 3.14
	$(PYTHON) tests/pythons.py $(PYTHONS)

# Separate from test, because coverage takes twice as long.
cover: setup ## measure line coverage, also in processes that tests start
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST) -m 'not slow'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: setup ## check style, types, import direction, and the pins for known vulnerabilities
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(PYTHON_DIRS)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python deploy/audit.py

fmt: setup ## format the code and apply automatic fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

run: $(USABLE) ## start the gateway with its demo model: no key, no network; Ctrl-C ends it
	$(BIN)/interlingua serve --demo $(SERVE)

demo: $(USABLE) ## translate a recorded Kimi stream and show input and output side by side
	$(BIN)/python examples/demo.py

docs: setup ## generate docs/reference and the completion scripts from the code
	$(BIN)/python -m docs.generate

# With --quiet, mkdocs would not count warnings, and --strict would not fail.
site: setup ## build the documentation as a site; open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "build/site/index.html" >&2

bench: setup ## measure the parser in every shape, and the gateway compared with nginx
	$(BIN)/python -m bench.parser $(BENCH)
	$(BIN)/python -m bench.shapes $(BENCH)
	$(BIN)/python -m bench.gateway $(BENCH)

# 15 minutes. `make soak SOAK='--minutes 2'` is shorter.
soak: setup ## run good and hostile clients and upstreams for minutes; check replies, memory and waits
	$(BIN)/python -m bench.soak $(SOAK)

# The first run installs the clients into .e2e: some minutes. `make e2e E2E='--only claude'` runs one client.
e2e: setup ## run real coding agents and SDKs, with their own tools, through the gateway
	$(BIN)/python -m e2e $(E2E)

# Some minutes, and some gigabytes on disk. The tests that need an engine are skipped without it.
engines: setup ## install xgrammar, transformers, llguidance and llama.cpp into .engines
	$(BIN)/python -m engines install

# One minute of random input each. With atheris in .venv (`pip install -e '.[fuzz]'`) the input is guided by coverage,
# and the first failure ends the run.
FUZZ ?= -max_total_time=60
fuzz: setup ## fuzz every dialect, every pair of wires and every path of the gateway, also for cost
	$(BIN)/python -m fuzz.dialects $(FUZZ)
	$(BIN)/python -m fuzz.sse $(FUZZ)
	$(BIN)/python -m fuzz.chunks $(FUZZ)
	$(BIN)/python -m fuzz.cost $(FUZZ)
	$(BIN)/python -m fuzz.api $(FUZZ)

# Keeps the comment at the top of constraints.txt and regenerates the pins from a new environment.
pins: ## update constraints.txt, requirements.txt and the list of components to the newest releases
	rm -rf .venv-pins && $(PYTHON) -m venv .venv-pins
	.venv-pins/bin/python -m pip install -qq -e '.[dev,fuzz,otel]' hatchling editables
	{ grep '^#' constraints.txt; .venv-pins/bin/python -m pip freeze --exclude-editable; } > .venv-pins/constraints.txt
	mv .venv-pins/constraints.txt constraints.txt
	.venv-pins/bin/python deploy/pins.py
	.venv-pins/bin/python deploy/sbom.py
	rm -rf .venv-pins

sbom: setup ## write the list of components, deploy/sbom.json
	$(BIN)/python deploy/sbom.py

clean: ## remove all generated files, including .venv
	rm -rf .venv .venv-* .e2e .engines .peers .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
