# Every target sets up its own virtual environment first; nothing else is needed.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-oldest exactness lint format bench accuracy docs wheel clean

demo: $(VENV)/.ready
	$(BIN)/python examples/demo.py demo

test: $(VENV)/.ready
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -m slow

# The oldest versions of the dependencies that pyproject.toml allows, in an environment of their own.
OLDEST := build/oldest
test-oldest:
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(OLDEST)/constraints.txt \
		-e ".[data,plots,report,dask,arviz,anndata,excel]" "pytest<9" pytest-xdist hypothesis mypy
	$(OLDEST)/bin/python -m pytest -m "not slow" -n auto --dist worksteal

exactness: $(VENV)/.exactness  # an hour on two cores; goes on where it was stopped
	$(BIN)/python -m pytest tests/exactness -n auto --dist worksteal --verdicts build/exactness.jsonl; \
	found=$$?; $(BIN)/python -m tests.exactness.table build/exactness.jsonl \
	&& { test $$found -eq 5 || exit $$found; }  # 5: nothing was left to run

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.peers  # BAYESMF_DATA names the folder of the real matrices; ARGS=--quick tries it
	$(BIN)/python -m benchmarks.run $(ARGS)

accuracy: $(VENV)/.peers  # held-out entries beside every peer: hours, goes on where it was stopped
	$(BIN)/python -m benchmarks.run evidence $(ARGS)
	$(BIN)/python -m benchmarks.run evidence --readme

docs: $(VENV)/.ready  # the site in the folder `site`: no network, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open site/index.html"

wheel: $(VENV)/.ready
	$(BIN)/python -m build --wheel --sdist

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

$(VENV)/.exactness: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,exactness]"
	touch $@

# Where one peer cannot be installed, the benchmark goes on without it and says so.
$(VENV)/.peers: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	for peer in smurff myfm hpfrec; do \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check $$peer pandas || \
		echo "$$peer: could not be installed"; \
	done
	touch $@

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
