# Everything a contributor runs. Needs Python 3.11 or newer and make; all else goes into .venv.

PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)

BIN := .venv/bin
READY := .venv/.ready
USABLE := .venv/.usable
PYTHON_DIRS := $(wildcard src tests bench e2e fuzz docs examples)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The pins also hold for the build backend, which pip installs apart: older pips take the first, newer ones the second.
PINNED := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup test cover check fmt run demo docs bench e2e fuzz pins clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-6s  %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## create .venv; does nothing if it is up to date

$(READY): $(USABLE)
	@echo "installing what tests it, once: a minute or two" >&2
	$(PINNED) $(BIN)/python -m pip install -qq -e '.[dev]'
	@touch $@

# What it takes to use it, without the tools and clients that test it: a few seconds instead of a minute.
$(USABLE): pyproject.toml constraints.txt
	@echo "setting up .venv, once" >&2
	$(PYTHON) -m venv .venv
	$(PINNED) $(BIN)/python -m pip install -qq -e .
	@touch $@

# More at once than there are cores, because many tests wait; and neighbours together, because they share a gateway.
PYTEST := -m pytest -n 4 --dist worksteal

test: check ## all that has to pass: check, and every test
	$(BIN)/python $(PYTEST)

# Apart, for it takes twice as long.
cover: setup ## which lines the tests run, in every program that they start
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST) -m 'not cuts'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: setup ## style, types and direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(PYTHON_DIRS)
	$(BIN)/lint-imports --no-logo

fmt: setup ## format, and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

run: $(USABLE) ## the gateway with its demo model: no key, no network; Ctrl-C ends it
	$(BIN)/interlingua serve --demo $(SERVE)

demo: $(USABLE) ## a Kimi stream goes in on the left, standard frames come out on the right
	$(BIN)/python examples/demo.py

docs: setup ## write what in docs/reference is made from the code
	$(BIN)/python docs/generate.py

bench: setup ## measure the parser in every shape of dialect, and the gateway beside nginx
	$(BIN)/python -m bench.parser $(BENCH)
	$(BIN)/python -m bench.shapes $(BENCH)
	$(BIN)/python -m bench.gateway $(BENCH)

# Installs the clients into .e2e the first time: some minutes. `make e2e E2E='--only claude'` runs one of them.
e2e: setup ## real coding agents and SDKs, each with its own tools, through the gateway
	$(BIN)/python -m e2e $(E2E)

# A minute of chance each; with atheris in .venv (`pip install -e '.[fuzz]'`) led by coverage, up to the first failure.
FUZZ ?= -max_total_time=60
fuzz: setup ## hostile text for every dialect, bytes and chunks for every pair of wires, any request
	$(BIN)/python -m fuzz.dialects $(FUZZ)
	$(BIN)/python -m fuzz.sse $(FUZZ)
	$(BIN)/python -m fuzz.chunks $(FUZZ)
	$(BIN)/python -m fuzz.api $(FUZZ)

# The comment at the head of constraints.txt stays; the pins below it are made anew, from an environment of their own.
pins: ## refresh constraints.txt with the newest releases
	rm -rf .venv-pins && $(PYTHON) -m venv .venv-pins
	.venv-pins/bin/python -m pip install -qq -e '.[dev,fuzz,otel]' hatchling editables
	{ grep '^#' constraints.txt; .venv-pins/bin/python -m pip freeze --exclude-editable; } > .venv-pins/constraints.txt
	mv .venv-pins/constraints.txt constraints.txt
	rm -rf .venv-pins

clean: ## remove all that was made, .venv too
	rm -rf .venv .venv-pins .e2e .peers .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
