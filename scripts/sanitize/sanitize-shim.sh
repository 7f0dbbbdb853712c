#!/bin/sh
# The shim under the address and undefined-behaviour sanitizers: the tests of crates/torch, in a build of their own
# under target/sanitize. Compiles for ten minutes or more; needs g++ with its sanitizers, and `make setup` before it.
#
#     scripts/sanitize/sanitize-shim.sh [PART_OF_TEST_NAMES...]
set -eu
cd "$(dirname "$0")/../.."
host=$(rustc -vV | sed -n 's/^host: //p')
# Not `vptr`: it asks for run-time types that libtorch does not export.
flags="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all"
export CXX=g++ CXXFLAGS="$flags" CARGO_TARGET_DIR=target/sanitize
# Memory that libtorch keeps until the process ends isn't a leak of the shim, and a test asks for more memory than there is.
export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}" UBSAN_OPTIONS=print_stacktrace=1
# Named, since rustc links without the compiler's own libraries; with a target, so that build scripts go without them; and
# loaded first, as the address sanitizer has to be.
exec cargo test --locked --package simic-torch --target "$host" --lib \
    --config "target.$host.rustflags=['-Clink-arg=-lasan', '-Clink-arg=-lubsan']" \
    --config "target.$host.runner=['env', 'LD_PRELOAD=$(g++ -print-file-name=libasan.so)']" \
    -- "$@"
