# Short names for what one does often; the build itself is CMake's.
# Set-up comes before building, whatever -j says; the build runs its own jobs.
.NOTPARALLEL:
.PHONY: help setup configure build build-all demo test fast-test asan format format-check layers check \
  faults clean

JOBS ?= $(shell nproc)
BUILD := build/release
# What runs under the sanitizers: programs that are quick there and handle raw memory or threads.
ASAN_TARGETS ?= rondo_base_test rondo_tensor_test rondo_device_test rondo_memory_test rondo_model_test \
  rondo_golden_test rondo_train_test
# `ctest -R` for fast-test, and faults to seed (default: all).
T ?= .
F ?=

empty :=
space := $(empty) $(empty)

help:
	@echo 'make demo          from nothing to a trained model: set-up, build, a real book, its held-out loss'
	@echo 'make test          set-up, build everything, run every test'
	@echo
	@echo 'make setup         install the Debian packages that are missing'
	@echo 'make build         the program alone: $(BUILD)/rondo'
	@echo 'make fast-test     build everything, run the tests that match T=REGEX, no set-up'
	@echo 'make asan          some tests under the address and undefined-behaviour sanitizers'
	@echo 'make format        format the source; format-check only looks'
	@echo 'make check         the layer check and the format check'
	@echo 'make faults        seed known faults, F="NAME..." or all: each must turn a test red'
	@echo 'make clean         remove build/; runs/ stays'
	@echo
	@echo 'JOBS=N sets how many jobs run at once [$(JOBS)].'

setup:
	@tools/setup

# Quiet unless it fails: a reader wants the build, not what was found where.
configure:
	@mkdir -p build
	@cmake --preset release > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

build: configure
	@cmake --build $(BUILD) --parallel $(JOBS) --target rondo

build-all: configure
	@cmake --build $(BUILD) --parallel $(JOBS)

demo:
	@tools/demo

test: setup build-all
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure --no-tests=error \
	  --no-label-summary --output-junit tests.xml

fast-test: build-all
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure --no-tests=error \
	  --no-label-summary -R '$(T)'

# Every test carries the name of its program as a label.
asan:
	@cmake --preset asan
	@cmake --build build/asan --parallel $(JOBS) --target $(ASAN_TARGETS)
	@ctest --test-dir build/asan --parallel $(JOBS) --output-on-failure --no-tests=error \
	  --no-label-summary -L '^($(subst $(space),|,$(strip $(ASAN_TARGETS))))$$'

format:
	@tools/format

format-check:
	@tools/format --check

layers:
	@tools/check_layers

check: layers format-check

faults:
	@tools/seeded_faults --jobs $(JOBS) $(F)

clean:
	rm -rf build
