#!/usr/bin/env bash
# Tries a build on a machine with a GPU that cannot compile, and prints a table: see docs/guide/src/gpus.md.
#
#     scripts/gpu-check.sh collect FOLDER               on the machine that builds: fills FOLDER, about 10 MiB
#     FOLDER/gpu-check.sh run [--torch DIR] [ARGUMENT…]  on the machine with the GPU: runs the checks; rows and table go to --out
#
# The GPU machine needs bash, gzip and a Python whose torch package is version 2.11.0 with CUDA, or such a package's folder
# in --torch. Arguments are those of `cargo bench --bench device_check`: --device cuda:0, --out FOLDER, --limit-s 480, --quick.
set -euo pipefail

TORCH_VERSION=2.11.0
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
    printf 'gpu-check: %s\n' "$@" >&2
    exit 2
}

collect() {
    local into=$1 program
    [ ! -e "$into" ] || fail "$into exists; name a new folder, so nothing old is copied."
    program=$(cd "$folder/.." && cargo bench --locked --bench device_check --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*device_check[^"]*\)".*/\1/p')
    [ -n "$program" ] || fail "the program was not built."
    mkdir -p "$into"
    strip -o "$into/device_check" "$program"
    gzip "$into/device_check"
    cp "$folder/gpu-check.sh" "$folder/../benches/device_check/eager.py" "$into/"
    echo "copy $into ($(du -sh "$into" | cut -f1)) to the machine with the GPU, then run its gpu-check.sh there: gpu-check.sh run"
}

# Sets LD_LIBRARY_PATH to libtorch and to NVIDIA's libraries next to it.
find_libtorch() {
    local torch=$1 found
    if [ -z "$torch" ]; then
        torch=$(python3 -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("torch").origin))' 2>/dev/null) ||
            fail "python3 has no torch package; give its folder by --torch."
    fi
    found=$(sed -n "s/^__version__ = '\([0-9.]*[0-9]\).*/\1/p" "$torch/version.py" 2>/dev/null || true)
    [ "$found" = "$TORCH_VERSION" ] || fail "$torch is torch ${found:-of unknown version}, but $TORCH_VERSION is needed."
    local libraries=$torch/lib library
    for library in "$torch"/../nvidia/*/lib "$torch"/../nvidia/*/*/lib; do
        if [ -d "$library" ]; then libraries=$libraries:$library; fi
    done
    export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

run() {
    local torch='' arguments=(--device cuda:0)
    while [ $# -gt 0 ]; do
        if [ "$1" = --torch ]; then
            [ $# -ge 2 ] || fail "--torch needs a value."
            torch=$2 && shift 2
        else
            arguments+=("$1") && shift
        fi
    done
    [ -f "$folder/device_check.gz" ] || fail "$folder doesn't hold the program; fill it with: gpu-check.sh collect FOLDER"
    find_libtorch "$torch"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    gzip -dc "$folder/device_check.gz" >"$scratch/device_check"
    cp "$folder/eager.py" "$scratch/"
    chmod +x "$scratch/device_check"
    "$scratch/device_check" "${arguments[@]}"
}

case ${1:-} in
    collect)
        [ $# = 2 ] || fail "usage: gpu-check.sh collect FOLDER"
        collect "$2"
        ;;
    run) shift && run "$@" ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
