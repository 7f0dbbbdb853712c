#!/bin/sh
# The kernels under the address and undefined-behaviour sanitizers: every level that this processor has, over drawn shapes.
# Takes a few minutes to compile; needs g++ or clang++ with its sanitizers, no libtorch.
#
#     scripts/sanitize/sanitize-kernels.sh [SHAPES_OF_EACH_KERNEL]
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=c++17 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
for level in avx512:-march=x86-64-v4 avx2:-march=x86-64-v3 plain:-march=x86-64; do
    # shellcheck disable=SC2086 # flags are words
    ${CXX:-c++} $flags "${level#*:}" -c "../../crates/torch/src/kernels/arithmetic/${level%%:*}.cpp" -o "$out/${level%%:*}.o" &
done
# shellcheck disable=SC2086
${CXX:-c++} $flags -c kernels.cpp -o "$out/main.o"
wait
# shellcheck disable=SC2086
${CXX:-c++} $flags "$out"/*.o -o "$out/kernels"
"$out/kernels" "${1:-200}"
