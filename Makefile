# make build | demo | test | test-full | bench | lint | format | abi | clean
#
# Needs cargo and a Python from 3.11 to 3.14; everything else comes from crates.io and PyPI.

SHELL := /bin/bash
VENV := .venv
OLDEST := .venv-oldest
PY := $(VENV)/bin/python
PIP := -m pip --disable-pip-version-check --quiet

RUST := $(shell git ls-files '*.rs' '*.toml' Cargo.lock 2>/dev/null)
PACKAGE := $(shell git ls-files 'python/*' pyproject.toml README.md 2>/dev/null)

.PHONY: build demo test test-rust test-python test-full bench lint format abi clean
.DELETE_ON_ERROR:

build: $(VENV)/.lapax

# The wheel, once for every environment: it is tagged py3-none-<platform>.
dist/.wheel: $(RUST) $(PACKAGE) | $(VENV)/.python
	@echo "building the lapax wheel (the first build takes a few minutes)"
	rm -rf dist && mkdir -p dist
	$(PY) $(PIP) wheel . --no-deps --wheel-dir dist
	touch $@

$(VENV)/.python:
	@python=$$(.ci/find_python) && echo "using $$python" && $$python -m venv $(VENV)
	$(PY) $(PIP) install --upgrade pip
	touch $@

# The newest JAX that lapax supports and this Python can install.
$(VENV)/.lapax: dist/.wheel
	$(PY) $(PIP) install "$$(ls dist/lapax-*.whl)[demo]"
	$(PY) $(PIP) install --force-reinstall --no-deps dist/lapax-*.whl
	touch $@

$(VENV)/.tools: $(VENV)/.lapax
	$(PY) $(PIP) install "$$(ls dist/lapax-*.whl)[test]"
	touch $@

# The oldest JAX that lapax claims.
$(OLDEST)/.lapax: dist/.wheel $(VENV)/.lapax
	test -x $(OLDEST)/bin/python || $$(.ci/find_python) -m venv $(OLDEST)
	oldest=$$($(PY) -c 'from lapax._supported import OLDEST_JAX; print(OLDEST_JAX)') && \
	    $(OLDEST)/bin/python $(PIP) install "jax==$$oldest" "jaxlib==$$oldest" flatbuffers pytest \
	    dist/lapax-*.whl
	$(OLDEST)/bin/python $(PIP) install --force-reinstall --no-deps dist/lapax-*.whl
	touch $@

demo: build
	$(PY) examples/demo.py

bench: build
	$(PY) -m lapax bench $(ARGS)

test: test-rust test-python

# jaxlib brings the header, PyPI's libclang the parser, for the test that the ABI is current.
test-rust: $(VENV)/.tools
	XLA_FFI_INCLUDE=$$($(PY) -c 'import jax; print(jax.ffi.include_dir())') \
	LIBCLANG_PATH=$$($(PY) -c 'import clang, pathlib; print(pathlib.Path(clang.__path__[0], "native"))') \
	    cargo test --workspace --all-features --quiet

test-python: $(VENV)/.tools $(OLDEST)/.lapax
	$(PY) -m pytest tests/jax
	$(OLDEST)/bin/python -m pytest tests/jax

# Where sweeps too long for `make test` belong; so far none is.
test-full: test

lint: $(VENV)/.tools
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

format: $(VENV)/.tools
	cargo fmt --all
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# Regenerates ffi/src/sys/c_api.rs from the installed jaxlib's header.
abi: $(VENV)/.tools
	XLA_FFI_BLESS=1 $(MAKE) test-rust

clean:
	rm -rf target dist out $(VENV) $(OLDEST)
