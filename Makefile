# `make run` and `make test` set up everything that is missing; see README.md.

LIBTORCH_VERSION := 2.11.0
# To use an installed libtorch of the right version, name it in the environment: make LIBTORCH=/opt/libtorch run
export LIBTORCH ?= $(CURDIR)/.libtorch/torch
PYTHON ?= python3
CARGO ?= cargo

.PHONY: run test build bench setup setup-cuda clean

run: setup
	$(CARGO) run --release --locked -- run scenarios/quickstart.ron

test: setup
	$(CARGO) test --locked --workspace

build: setup
	$(CARGO) build --release --locked

bench: setup
	$(CARGO) bench --locked

# libtorch for CPU, kept between runs and downloaded only when the wanted version is missing.
setup:
	@sh scripts/setup-libtorch.sh "$(LIBTORCH)" "$(LIBTORCH_VERSION)" "$(PYTHON)" cpu

# The same with NVIDIA's libraries (about 3 GB more).
setup-cuda:
	@sh scripts/setup-libtorch.sh "$(LIBTORCH)" "$(LIBTORCH_VERSION)" "$(PYTHON)" cuda

clean:
	$(CARGO) clean
