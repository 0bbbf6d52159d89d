# Any target works in a fresh clone: each one first sets up .venv where that is missing or out of date.
#
#   make try     compile an example request and show why it came out as it did
#   make test    everything that CI runs: check, then all tests; those on PostgreSQL only where it is installed
#   make fast    the fast tests only
#   make check   lint, format, types, import directions
#   make style   fix what ruff can fix
#   make bench   the benches
#   make clean   remove all that these targets made

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Nothing from the shell may lead python or pip out of .venv.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV
export PYTHONNOUSERSITE := 1

.PHONY: try test check fast bench style clean
.DEFAULT_GOAL := try

try: $(READY)
	@mkdir -p build
	@$(BIN)/loadmaster compile examples/requests/getting-started.json > build/getting-started.json
	@$(BIN)/loadmaster explain build/getting-started.json

test: check
	$(BIN)/pytest -n 2 -rs

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy tests
	$(BIN)/lint-imports

fast: $(READY)
	$(BIN)/pytest -n 2 -m "not slow"

bench: $(READY)
	$(BIN)/python -P -m loadmaster.evaluation.bench

style: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A .venv whose interpreter is gone is made anew; any other is only brought up to date.
$(READY): pyproject.toml constraints.txt
	@echo "Setting up .venv (the first time this takes a minute or two) ..." >&2
	@$(BIN)/python -c "" 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@
