# `make help` lists the targets.
#
# Needs cargo and a Python from 3.11 to 3.14; everything else comes from crates.io and PyPI.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
VENV := .venv
TESTS := .venv-test
OLDEST := .venv-oldest
NEXT_VENV := .venv-next
DOCS := .venv-docs
PY := $(VENV)/bin/python
TEST_PY := $(TESTS)/bin/python
PIP := -m pip --disable-pip-version-check --quiet
SAY := .ci/say

RUST := $(shell git ls-files '*.rs' '*.toml' '*.cu' '*.cuh' Cargo.lock 2>/dev/null)
PACKAGE := $(shell git ls-files 'python/*' pyproject.toml README.md 2>/dev/null)

# Debian's reference LAPACK, where it is installed: the LAPACK backend is then tested with it.
REFERENCE := $(wildcard /usr/lib/*/lapack/liblapack.a)
SWEEP := full
OPENBLAS := $(wildcard /usr/lib/*/libopenblas.so)
# The kernels are for this machine's registers alone, which takes a third of the time to compile: SIMD=all
# is for those of every processor, as test-full builds them, and as `pip wheel .` does.
SIMD ?= native
export LAPAX_SIMD = $(SIMD)
AVX512 := $(shell grep -m 1 -o -w avx512f /proc/cpuinfo 2>/dev/null)
# Not --all-features: those that choose a LAPACK exclude each other, and want it to be there.
FEATURES := cuda xla-ffi/fake lapax-cpu/testing $(if $(AVX512),avx512) $(if $(REFERENCE),lapack)

.PHONY: help build wheels demo test test-rust test-python test-borders test-full test-gpu bench-gpu gpu-evening test-emulator test-mutants test-images test-deviceless accuracy accuracy-reference accuracy-openblas bench check lint lint-workflows format abi docs site figures publish-crates clean model miri fuzz memcheck test-next test-versions test-plugins
.DELETE_ON_ERROR:

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 20

build: $(VENV)/.lapax ## the wheel for this machine, in .venv

$(VENV)/.python $(TESTS)/.python:
	@python=$$(.ci/find_python) && echo "using $$python" && $$python -m venv $(@D)
	$(@D)/bin/python $(PIP) install --upgrade pip
	touch $@

# Installs what pyproject.toml lists for builds, and under the given extras.
NEEDS = $(1) -c 'import sys, tomllib; it = tomllib.load(open("pyproject.toml", "rb")); extras = it["project"]["optional-dependencies"]; \
    print(*it["build-system"]["requires"], *(need for extra in sys.argv[1:] for need in extras[extra]), sep="\n")' $(2) \
    | $(SAY) "a minute" "installing tools" $(1) $(PIP) install --requirement /dev/stdin

# nvcc comes from PyPI, with what a build needs.
NVCC = $$($(1) -c 'import glob, sys; print(*[f for p in sys.path for f in glob.glob(p + "/nvidia/*/bin/nvcc")][:1])')

$(VENV)/.maturin: pyproject.toml $(VENV)/.python
	@$(call NEEDS,$(PY))
	touch $@

# The wheel, once for every environment: it is tagged py3-none-<platform>. It is for this machine, without
# what its processor cannot run; `pip wheel .` makes the one for all.
dist/.wheel: $(RUST) $(PACKAGE) $(VENV)/.maturin
	rm -rf dist && mkdir -p dist
	@LAPAX_NVCC=$(call NVCC,$(PY)) $(SAY) "8 minutes" "compiling the wheel" \
	    $(VENV)/bin/maturin build --release --locked --compatibility linux --auditwheel skip --interpreter $(PY) --out dist \
	    --no-default-features --features "cuda $(if $(AVX512),avx512)"
	touch $@

# The newest JAX that lapax supports and this Python can install.
$(VENV)/.lapax: dist/.wheel
	@$(SAY) "a minute" "installing JAX and the wheel" $(PY) $(PIP) install "$$(ls dist/lapax-*.whl)[demo]"
	$(PY) $(PIP) install --force-reinstall --no-deps dist/lapax-*.whl
	touch $@

# What tests and lints need, but lapax.
$(TESTS)/.tools: pyproject.toml $(TESTS)/.python
	@$(call NEEDS,$(TEST_PY),test)
	touch $@

# The library that is tested, in Python as in Rust: compiled once, with what only tests need. Its CUDA
# kernels are for one GPU: images for all, as wheels have them, take a minute and are run by no test.
CUDA = LAPAX_NVCC=$(call NVCC,$(TEST_PY)) LAPAX_CUDA_ARCHS=90
LAPACK = LAPAX_LAPACK=$(if $(REFERENCE),reference)
out/wheel/.wheel: $(RUST) $(PACKAGE) $(TESTS)/.tools
	@test -n "$(REFERENCE)" || echo "LAPACK backend not tested: apt-get install liblapack-dev libblas-dev"
	rm -rf out/wheel && mkdir -p out/wheel
	@$(LAPACK) $(CUDA) $(SAY) "14 minutes" "compiling the library for tests" \
	    $(TESTS)/bin/maturin build --profile dev --locked --compatibility linux --auditwheel skip --interpreter $(TEST_PY) --out out/wheel \
	    --no-default-features --features "$(FEATURES)"
	touch $@

# The newest JAX that lapax was checked on and this Python can install (0.11 and later ask for Python
# 3.12); a later one is test-next's.
NEWEST = $$(sed -n 's/^NEWEST_JAX = "\(.*\)"/\1/p' python/lapax/_supported.py)
$(TESTS)/.lapax: out/wheel/.wheel
	$(TEST_PY) $(PIP) install "$$(ls out/wheel/lapax-*.whl)[test]" "jax<=$(NEWEST)" "jaxlib<=$(NEWEST)"
	$(TEST_PY) $(PIP) install --force-reinstall --no-deps out/wheel/lapax-*.whl
	touch $@

# The oldest JAX that lapax claims.
$(OLDEST)/.lapax: out/wheel/.wheel $(TESTS)/.lapax
	test -x $(OLDEST)/bin/python || $$(.ci/find_python) -m venv $(OLDEST)
	oldest=$$($(TEST_PY) -c 'from lapax._supported import OLDEST_JAX; print(OLDEST_JAX)') && \
	    $(SAY) "a minute" "installing JAX $$oldest" $(OLDEST)/bin/python $(PIP) install \
	    "jax==$$oldest" "jaxlib==$$oldest" flatbuffers folx mpmath pytest pytest-xdist quax out/wheel/lapax-*.whl
	$(OLDEST)/bin/python $(PIP) install --force-reinstall --no-deps out/wheel/lapax-*.whl
	touch $@

wheels: ## those of Linux, macOS and Windows, on Linux, in dist/, and for C in out/c/; an hour and more on two cores
	.ci/wheel --cross $(TARGETS)

demo: build ## two real jobs, on stock JAX and on lapax
	@$(SAY) "a minute" "two real jobs" $(PY) examples/demo.py

bench: build ## every target beside jaxlib's; ARGS='--quick --only jax,f64' for some
	$(PY) -m lapax bench $(ARGS)

test: test-rust test-python ## the tests in Rust, and in Python on the newest and the oldest JAX

# What the programs outside Python run on: a PJRT plugin of PyPI's, and programs exported for it. The
# stamp holds the plugin's path, or nothing where there is none for this machine.
out/hosts/.plugin: tests/hosts/programs.py $(TESTS)/.lapax
	@mkdir -p out/hosts
	@if $(TEST_PY) $(PIP) install "$$(ls out/wheel/lapax-*.whl)[hosts]" \
	    && plugin=$$($(TEST_PY) -c 'import xla_plugins.xla_cpu_pjrt as it; print(it.__path__[0])'); then \
	    $(TEST_PY) tests/hosts/programs.py out/hosts "$$plugin/xla_cpu_pjrt.so" \
	        && echo "$$plugin/xla_cpu_pjrt.so" > $@; \
	else echo "hosts outside Python not tested: no xla-cpu-pjrt for this machine" && : > $@; fi

# jaxlib brings the header, PyPI's libclang the parser, for the test that the ABI is current.
test-rust: $(TESTS)/.lapax out/hosts/.plugin out/plugins/cuda13/.plugin ## the tests in Rust; one by one: cargo test --test NAME
	@XLA_FFI_INCLUDE=$$($(TEST_PY) -c 'import jax; print(jax.ffi.include_dir())') \
	LIBCLANG_PATH=$$($(TEST_PY) -c 'import clang, pathlib; print(pathlib.Path(clang.__path__[0], "native"))') \
	LAPAX_PJRT_PLUGIN=$$(cat out/hosts/.plugin) LAPAX_HOST_PROGRAMS=$(CURDIR)/out/hosts \
	LAPAX_CUDA_PLUGINS=$$(cat out/plugins/cuda13/.plugin) $(LAPACK) $(CUDA) \
	$(SAY) "10 minutes" "the tests in Rust" cargo test --workspace --no-default-features --features "$(FEATURES)" -- --quiet

# On two cores test_fused and test_install take 90 s with one worker, 65 s with two.
WORKERS := -n auto --maxprocesses 4
# What kernels compute, the benchmark and the build of an example are the same on any JAX: test-full runs all.
ANY_JAX := bench borders check custom_target gpu_evening hosts memory numerics phases scipy small_values spectral threads
NEWEST_ALONE = $(if $(ON_OLDEST),,$(foreach test,$(ANY_JAX),--ignore tests/jax/test_$(test).py))
test-python: $(TESTS)/.lapax $(OLDEST)/.lapax out/hosts/.plugin ## the tests in Python; one by one: .venv-test/bin/python -m pytest tests/jax/FILE
	@LAPAX_PJRT_PLUGIN=$$(cat out/hosts/.plugin) $(SAY) "7 minutes" "the tests on the newest JAX" \
	    $(TEST_PY) -m pytest $(WORKERS) tests/jax
	@$(SAY) "6 minutes" "the tests on the oldest JAX" $(OLDEST)/bin/python -m pytest $(WORKERS) tests/jax $(NEWEST_ALONE)

# A JAX that lapax was not checked on, where there is one: `make test-next NEXT='--pre --extra-index-url …'` for nightlies.
NEXT = --pre
test-next: $(TESTS)/.lapax ## the tests in Python on the newest JAX there is, pre-releases included
	test -x $(NEXT_VENV)/bin/python || $$(.ci/find_python) -m venv $(NEXT_VENV)
	$(NEXT_VENV)/bin/python $(PIP) install --upgrade $(NEXT) jax jaxlib
	$(NEXT_VENV)/bin/python $(PIP) install flatbuffers folx mpmath pytest pytest-xdist quax
	$(NEXT_VENV)/bin/python $(PIP) install --force-reinstall --no-deps out/wheel/lapax-*.whl
	@$(SAY) "7 minutes" "the tests on the next JAX" $(NEXT_VENV)/bin/python -m pytest $(WORKERS) tests/jax

# Besides: the accuracy of every family on every backend, with all kinds, conditions, shapes and
# batches, beside reference LAPACK's where it is installed.
test-full: export LAPAX_SIMD = all
test-full: export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS = true
test-full: export ON_OLDEST = all
test-full: export LAPAX_XLA = optimised
test-full: test test-borders test-mesh test-emulator test-mutants test-images test-deviceless accuracy-reference test-next test-versions test-plugins

# Every border between kernels for every scalar.
test-borders: $(TESTS)/.lapax
	LAPAX_BORDERS=full $(TEST_PY) -m pytest $(WORKERS) -rP tests/jax/test_borders.py

# Every mesh with every scalar, size and sharding.
test-mesh: $(TESTS)/.lapax
	LAPAX_MESH=full $(TEST_PY) -m pytest $(WORKERS) tests/jax/mesh

# The kernels on the emulator under AddressSanitizer and ThreadSanitizer, and whether these see all branches.
test-emulator: $(VENV)/.python
	cuda/fake/sanitized address
	cuda/fake/sanitized thread
	$(PY) cuda/fake/covered.py

# The tests on the emulator notice kernels that are wrong; half a minute for each of the mutants.
test-mutants: $(TESTS)/.tools
	$(LAPACK) $(CUDA) \
	CARGO_TEST='--workspace --no-default-features --features "$(FEATURES)"' $(TEST_PY) cuda/fake/mutants.py

# Kernels that hold matrices in registers hold them there on every GPU of a wheel, as a compiler may unroll for one
# and not for another; with LAPAX_BLESS=1 it writes the file of what each kernel takes on three of them.
test-images: $(TESTS)/.tools
	$(LAPACK) LAPAX_NVCC=$(call NVCC,$(TEST_PY)) \
	    cargo test --workspace --no-default-features --features "$(FEATURES)" --test images -- --nocapture

# XLA for an H200 that is not there takes the targets and compiles programs of them.
test-deviceless: $(VENV)-cuda/.lapax
	PATH="$$(dirname $(call NVCC,$(TEST_PY))):$$PATH" $(VENV)-cuda/bin/python tests/gpu/deviceless.py

# JAX's plugin for CUDA, without NVIDIA's libraries.
$(VENV)-cuda/.lapax: dist/.wheel $(TESTS)/.lapax
	$$(.ci/find_python) -m venv $(VENV)-cuda
	jax=$$($(TEST_PY) -c 'import jax; print(jax.__version__)') && $(VENV)-cuda/bin/python $(PIP) install \
	    "jax==$$jax" "jaxlib==$$jax" "jax-cuda13-plugin==$$jax" "jax-cuda13-pjrt==$$jax" dist/lapax-*.whl
	touch $@

# On a machine with an NVIDIA GPU, with jax[cuda13] in the environment; about ten minutes each.
test-gpu: build ## whether the CUDA targets are right on this machine's GPU
	$(PY) tests/gpu/correct.py

bench-gpu: build ## lapax beside jaxlib on this machine's GPU
	$(PY) tests/gpu/bench.py

# ARGS='--out FOLDER' for another folder; docs/gpu-results.md says what a machine without network needs.
gpu-evening: build ## correctness, times and choices of this machine's GPU, in eight minutes
	$(PY) tests/gpu/evening.py $(ARGS)

# JAX's CUDA plugins take handlers without a GPU: of API 0.5 among all tests, of API 0.1 here. The stamp
# holds the plugin's path, or nothing where there is none for this machine.
out/plugins/cuda13/.plugin: PLUGIN := jax-cuda13-pjrt==0.12.0.1
out/plugins/cuda12/.plugin: PLUGIN := jax-cuda12-pjrt==0.7.1
out/plugins/%/.plugin: | $(TESTS)/.python
	@mkdir -p $(@D)
	@if $(TEST_PY) $(PIP) install --no-deps --target $(@D) $(PLUGIN); then \
	    find $(CURDIR)/$(@D) -name xla_cuda_plugin.so > $@; \
	else echo "not tested: $(PLUGIN) cannot be installed" && : > $@; fi

test-plugins: $(VENV)/.lapax out/plugins/cuda12/.plugin
	LAPAX_CUDA_PLUGINS=$$(cat out/plugins/cuda12/.plugin) $(LAPACK) $(CUDA) \
	    cargo test --workspace --no-default-features --features "$(FEATURES)" --test hosts cuda_plugins

# One binary in the hosts of all versions of the FFI's API, 0.1 to 0.5 with the tests above.
VERSIONS := 0.5.3 0.7.2 0.8.1 0.9.1 0.11.2
test-versions: $(VENV)/.lapax
	cargo build --release -p custom-target
	@library=$$($(PY) -c 'from lapax._library import path; print(path())'); \
	for version in $(VERSIONS); do \
	    venv=out/versions/$$version; \
	    test -x $$venv/bin/python || $(PY) -m venv $$venv; \
	    if $$venv/bin/python $(PIP) install jax==$$version jaxlib==$$version; then \
	        $$venv/bin/python tests/versions/run.py $$library target/release/libcustom_target.so || exit 1; \
	    else echo "not tested: jaxlib $$version cannot be installed"; fi; \
	done

accuracy-reference:
	@test -n "$(REFERENCE)" || echo "no reference LAPACK to compare with: apt-get install liblapack-dev libblas-dev"
	LAPAX_ACCURACY=$(SWEEP) $(LAPACK) $(CUDA) \
	    cargo test --no-default-features --features "$(FEATURES)" --test accuracy -- --nocapture

# The same with OpenBLAS in the reference's place; it is not asserted about, only shown.
accuracy-openblas:
	@test -n "$(OPENBLAS)" || echo "no column for OpenBLAS: apt-get install libopenblas-dev"
	$(if $(OPENBLAS),LAPAX_ACCURACY=$(SWEEP) LAPAX_LAPACK=-lopenblas CARGO_TARGET_DIR=target/openblas \
	    cargo test --features lapack --test accuracy -- --nocapture)

# The binding under four checkers: every interleaving of the pool's chunks; Miri's rules of Rust's
# memory; frames of any content under AddressSanitizer, for FUZZ_SECONDS; valgrind.
FUZZ_SECONDS := 3600
NIGHTLY := $(shell cargo +nightly --version 2>/dev/null)
FRAMES := -p xla-ffi --features fake --test features --test binding
FUZZ_FLAGS := -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1
HOST = $(shell rustc -vV | sed -n 's/^host: //p')

model:
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
	    cargo test --release -p xla-ffi --lib chunks

miri:
ifeq ($(NIGHTLY),)
	@echo "not run under Miri: rustup toolchain install nightly --component miri,rust-src"
else
	CARGO_TARGET_DIR=target/miri MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-isolation" \
	    cargo +nightly miri test -p xla-ffi --features fake --test features
endif

fuzz:
ifeq ($(NIGHTLY),)
	@echo "not fuzzed: rustup toolchain install nightly"
else
	cd ffi/fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo +nightly build --release --target $(HOST)
	mkdir -p out/corpus
	ffi/fuzz/target/$(HOST)/release/frames -max_total_time=$(FUZZ_SECONDS) -max_len=2048 out/corpus
endif

# Without the tests that valgrind's processor fails: it never flushes denormals.
memcheck:
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind -q --error-exitcode=9 \
	    --errors-for-leak-kinds=definite" cargo test $(FRAMES) -- --test-threads=1 \
	    --skip float_mode --skip guarded --skip panicking_child --skip panics_print_nothing

# The table in docs/accuracy.md, from a sweep (full, or SWEEP=fast) with each LAPACK installed.
accuracy: accuracy-reference accuracy-openblas
	$(PY) tests/accuracy_table.py out/accuracy/$(SWEEP) > docs/accuracy.md

check: lint ## format, lints, types, and who imports whom in cpu/

lint: $(TESTS)/.tools
	cargo fmt --all --check
	$(TEST_PY) cpu/rooms.py
	@$(LAPACK) $(CUDA) $(SAY) "3 minutes" clippy cargo clippy --workspace --all-targets --quiet \
	    --features "xla-ffi/fake lapax-cpu/testing lapack" -- -D warnings
	$(TESTS)/bin/ruff format --check .
	$(TESTS)/bin/ruff check .
	$(TESTS)/bin/mypy
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff

SCHEMA = @$(TESTS)/bin/check-jsonschema --quiet --builtin-schema

# Not in `lint`: where its program cannot be fetched, finding that out takes a minute.
lint-workflows: $(TESTS)/.actionlint ## actionlint on .github/workflows
	@$$(cat $<)

# PyPI's actionlint fetches its program from GitHub while it is installed. The stamp holds the command, or
# one that says so where it cannot be fetched.
$(TESTS)/.actionlint: $(TESTS)/.tools
	@if ($(call NEEDS,$(TEST_PY),workflows)) 2>/dev/null; then echo "$(TESTS)/bin/actionlint" > $@; \
	else echo "echo workflows only checked by their schema: actionlint cannot be installed" > $@; fi

format: $(TESTS)/.tools ## the format that check wants
	cargo fmt --all
	$(TESTS)/bin/ruff format .
	$(TESTS)/bin/ruff check --fix .

# Regenerates ffi/src/sys/c_api.rs from the installed jaxlib's header.
abi: $(TESTS)/.tools
	XLA_FFI_BLESS=1 $(MAKE) test-rust

# xla-ffi's documentation is for others than us, and strict.
docs: site ## the crates' documentation, in target/doc, and the site
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --package xla-ffi --all-features
	LAPAX_CUDA=off cargo doc --no-deps --package lapax --package lapax-core --package lapax-cpu --package lapax-cuda

$(DOCS)/.lapax: dist/.wheel
	test -x $(DOCS)/bin/python || $$(.ci/find_python) -m venv $(DOCS)
	@$(SAY) "a minute" "installing what builds the site" $(DOCS)/bin/python $(PIP) install "$$(ls dist/lapax-*.whl)[docs]"
	$(DOCS)/bin/python $(PIP) install --force-reinstall --no-deps dist/lapax-*.whl
	touch $@

# Runs the tutorials and every example, warnings are errors, and every link of what was built leads somewhere.
site: $(DOCS)/.lapax ## the site of docs/, in out/site
	@PATH="$(CURDIR)/$(DOCS)/bin:$$PATH" NO_MKDOCS_2_WARNING=1 $(SAY) "3 minutes" "building the site" $(DOCS)/bin/mkdocs build --quiet
	$(DOCS)/bin/python docs/site/built.py out/site

# The charts of the performance pages and the README's numbers, from these pages' tables.
figures: $(DOCS)/.lapax
	$(DOCS)/bin/python docs/site/figures.py

# Every crate that is not `publish = false`, in the order of what needs what; with DRY_RUN=1 each is packed
# and built from what was packed, and stays here. Who may publish: CARGO_REGISTRY_TOKEN.
publish-crates:
	LAPAX_CUDA=off cargo publish --locked --workspace $(if $(DRY_RUN),--dry-run)

clean: ## all that make made
	rm -rf target dist out $(VENV) $(TESTS) $(OLDEST) $(NEXT_VENV) $(DOCS)
