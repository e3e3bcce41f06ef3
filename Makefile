# Two commands do everything for a newcomer: `make run` and `make test`. Each target does its own set-up.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete

.PHONY: help run test check unit guest-test fuzz suite two-guests try smoke errors mixed matrix setup lab guest bench bench-memory docs clean

help:
	@echo "make run           bring the card up in process, move data over it, close it (the main job)"
	@echo "make test          all that CI runs: check, unit tests, guest tests"
	@echo "make check         the static half: lint, types, import contracts, generated documents"
	@echo "make unit          tests that need no guest"
	@echo "make guest-test    tests that boot a guest with the unmodified Linux driver"
	@echo "make fuzz          long runs of the random streams and hostile queues (about ten minutes)"
	@echo "make suite         rdma-core's own tests in a guest, module by module (up to 25 minutes)"
	@echo "make smoke         perftest, pingpongs and diagnostics in a guest, all transports (some minutes)"
	@echo "make errors        each wrong use of the card from user space in a guest, against docs/conformance.md"
	@echo "make mixed         4 processes, 64 queue pairs, 60 s, all data compared, the server's memory measured"
	@echo "make matrix        faults, resets, reload and removal of the card under the unmodified driver (some minutes)"
	@echo "make two-guests    the usual programs between two guests on one fabric"
	@echo "make try           docs/testing-your-driver.md, tried in an empty folder and a fresh environment"
	@echo "make guest         a shell in a guest with the card"
	@echo "make bench         speed, against targets        make bench-memory   memory, against targets"
	@echo "make docs          write the generated documents anew"
	@echo "make setup         everything above needs: host packages, $(VENV), guest lab"

$(STAMP): pyproject.toml tools/prerequisites.sh
	@tools/prerequisites.sh
	@echo "Setting up $(VENV), once: this takes a minute or two ..." >&2
	@python3 -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --editable '.[dev]'
	@touch $@

run: $(STAMP)
	@$(BIN)/softhca run

setup: $(STAMP) lab

lab: $(STAMP)
	@$(BIN)/softhca guest build

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/documents.py --check

unit: $(STAMP)
	$(BIN)/pytest -m "not guest"

guest-test: $(if $(SOFTHCA_NO_GUEST),$(STAMP),lab)
	$(BIN)/pytest -m guest

test: check unit guest-test

fuzz: $(STAMP)
	SOFTHCA_FUZZ=40 $(BIN)/pytest --timeout 3600 tests/hca/test_model.py tests/hca/test_wqe_fuzz.py

suite: lab
	$(BIN)/python tools/rdma_core_suite.py

smoke: lab
	$(BIN)/python tools/guest_smoke.py

errors: lab
	$(BIN)/python tools/guest_errors.py

mixed: lab
	$(BIN)/python tools/guest_mixed.py

matrix: lab
	$(BIN)/python tools/guest_matrix.py

two-guests: lab
	$(BIN)/python tools/two_guests.py

try: $(STAMP)
	$(BIN)/python tools/try_testing.py

guest: lab
	@$(BIN)/softhca guest

bench: lab
	@$(BIN)/python -m benchmarks

bench-memory: $(STAMP)
	@$(BIN)/python -m benchmarks.memory

docs: $(STAMP)
	$(BIN)/python tools/documents.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .hypothesis
