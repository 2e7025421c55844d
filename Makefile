# Two commands: `make demo` and `make test`. The first builds .venv without torch, the second adds torch and the tools to
# it; both are quick the second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
TOOLS  := $(VENV)/.tools
TRITON := $(VENV)/triton
LOWEST := $(VENV)/lowest

# Python keeps compiled modules: processes that tests start need not compile the library again.
export PYTHONDONTWRITEBYTECODE :=
# Threads that wait for work leave the cores to the other worker.
export OMP_WAIT_POLICY := passive

.PHONY: demo test test-all lowest kernels coverage verified docs lint types contract benchmark clean

demo: $(STAMP)
	$(BIN)/frhsic demo

# One torch thread per worker: batches are small, and two workers already fill two cores.
test: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q

test-all: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m ''

# The tests with the oldest versions that pyproject.toml allows. What these deprecate or warn about is not this library's:
# LightGBM before 4.7 warns of names of columns that it made up itself.
OLDEST := OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q -W ignore::DeprecationWarning -W ignore::FutureWarning \
	-W 'ignore:X does not have valid feature names:UserWarning'

lowest: $(LOWEST)/.ready
	$(OLDEST) -n 2 --dist worksteal
	TRITON_INTERPRET=1 $(OLDEST) tests/test_hsic_gpu.py

# The kernels for a GPU, run by Triton's interpreter on the CPU. Triton (285 MB, Linux) is only on the path here.
INTERPRETED := OMP_NUM_THREADS=1 TRITON_INTERPRET=1 PYTHONPATH=$(CURDIR)/$(TRITON) \
	$(BIN)/python -m pytest -q tests/test_hsic_gpu.py

kernels: $(TRITON)/.ready
	$(INTERPRETED)

# The same packages, each file compared with its hash before it is installed (torch apart).
verified: $(TOOLS)
	$(BIN)/python -m pip install -q --require-hashes --no-deps --force-reinstall -r hashes.txt

# The site, in docs/_build/html; a warning is an error.
docs: $(TOOLS)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# Lines and branches that the tests and the interpreted kernels reach.
coverage: $(TOOLS) $(TRITON)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q --cov --cov-report= tests src/frhsic
	$(INTERPRETED) --cov --cov-append --cov-report=term

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TOOLS)
	$(BIN)/mypy

contract: $(TOOLS)
	$(BIN)/lint-imports

benchmark: $(TOOLS)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[benchmark]'

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "frhsic needs Python 3.11 or newer; set PYTHON=... to one")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	@touch $@

$(TOOLS): paper/pyproject.toml $(STAMP)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]' -e paper
	@touch $@

# 6 GB, since that torch comes with the libraries of a GPU, and with Triton.
$(LOWEST)/.ready: pyproject.toml tests/trust/lowest.py | $(TOOLS)
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tests/trust/lowest.py >$(LOWEST)/pins.txt
	$(LOWEST)/bin/python -m pip install -q -c $(LOWEST)/pins.txt -e '.[test]' -e paper
	@touch $@

$(TRITON)/.ready: kernels.txt | $(TOOLS)
	@rm -rf $(TRITON)
	@$(BIN)/python -m pip install -q --require-hashes --no-deps --target $(TRITON) -r kernels.txt 2>$(TRITON).log || \
		{ echo "Triton cannot be installed here: $$(tail -n 1 $(TRITON).log)" >&2; exit 1; }
	@touch $@

clean:
	rm -rf $(VENV)
