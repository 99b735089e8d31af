# SPDX-License-Identifier: Apache-2.0
# One word for each thing people do. Every target sets up what it needs and nothing outside this folder, but for Debian's packages.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BUILD ?= build/dev
PRESET ?= dev
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check

SOURCES = git ls-files --cached --others --exclude-standard

.PHONY: help demo test build lint tidy format bench clean

help:
	@echo 'make demo    build, run the first rule of the README, check it against torch, time both'
	@echo 'make test    build, then every test that can run here; TESTS="unit lit" runs some'
	@echo 'make build   build into $(BUILD), importable from $(VENV)'
	@echo 'make lint    what is checked without building;  make format mends it; make tidy looks deeper'
	@echo 'make bench   every benchmark that can run here (BENCH=--list says which, BENCH=--quick runs short ones)'
	@echo 'make clean   removes build/ and $(VENV)'

demo: build
	@$(BIN)/python -m elsewise demo

test: build
	@ELSEWISE_BUILD_DIR=$(BUILD) $(BIN)/python tests/run.py $(TESTS)

# The demo and the benchmarks need no tests, which take as long to build as the rest.
ONLY := $(if $(filter-out demo bench,$(or $(MAKECMDGOALS),help)),,--target _elsewise elsewise_package ewc)

# The package is importable through one .pth line: the build puts its libraries beside links to the package's files.
build: $(VENV)/ready
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) -B $(BUILD) -DPython_EXECUTABLE=$(BIN)/python
	@cmake --build $(BUILD) $(ONLY)
ifeq ($(BUILD),build/dev) # a sanitizer's build cannot be imported without its run-time library
	@echo $(CURDIR)/$(BUILD)/python > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/elsewise.pth"
	@printf '#!%s\nfrom elsewise._ewc import main\nmain()\n' $(BIN)/python > $(BIN)/ewc.new && chmod +x $(BIN)/ewc.new && mv $(BIN)/ewc.new $(BIN)/ewc
	@ln -sf $(BUILD)/compile_commands.json compile_commands.json
endif

$(VENV)/ready: requirements-build.txt requirements-test.txt tools/debian.sh
	@tools/debian.sh $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'installing requirements-test.txt into $(VENV): minutes the first time, torch above all'
	@$(BIN)/python -m pip --disable-pip-version-check install --progress-bar off -r requirements-test.txt
	@touch $@

lint: $(VENV)/ready
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(SOURCES) '*.cpp' '*.h' | xargs -r $(BIN)/clang-format --dry-run --Werror
	@echo 'lint: clean'

# Takes minutes, so it is not part of lint.
tidy: build
	@$(PIP) install clang-tidy==23.1.4
	@$(SOURCES) 'compiler/*.cpp' 'runtime/*.cpp' 'bindings/*.cpp' | xargs -r -P2 -n4 $(BIN)/clang-tidy --quiet -p $(BUILD)

format: $(VENV)/ready
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet
	@$(SOURCES) '*.cpp' '*.h' | xargs -r $(BIN)/clang-format -i

# matplotlib draws; what a benchmark needs beside it and is not there is named, and that benchmark is left out.
bench: build
	@$(PIP) install matplotlib==3.11.2 || echo 'no pictures: matplotlib could not be installed'
	@$(BIN)/python benchmarks/everything.py $(BENCH)

clean:
	rm -rf build $(VENV) compile_commands.json
