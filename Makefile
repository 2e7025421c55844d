# Two commands: `make demo` and `make test`. Each builds .venv once and is quick the second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.PHONY: demo test test-all docs lint types contract benchmark clean

demo: $(STAMP)
	$(BIN)/frhsic demo

# One torch thread per worker: batches are small, and two workers already fill two cores.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q

test-all: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m ''

# The site, in docs/_build/html; a warning is an error.
docs: $(STAMP)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

contract: $(STAMP)
	$(BIN)/lint-imports

benchmark: $(STAMP)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[benchmark]'

$(STAMP): pyproject.toml paper/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "frhsic needs Python 3.11 or newer; set PYTHON=... to one")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]' -e paper
	@touch $@

clean:
	rm -rf $(VENV)
