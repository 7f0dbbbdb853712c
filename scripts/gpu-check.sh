#!/usr/bin/env bash
# Tries a build on a machine with a GPU, where nothing can be compiled, and prints a table to be pasted.
#
#     scripts/gpu-check.sh collect FOLDER               on the machine that builds: makes FOLDER of what is to be carried
#     FOLDER/gpu-check.sh run [--device cuda:0] [--torch DIR] [--dry-run]
#                                                       on the machine with the GPU: plays what FOLDER holds
#
# The GPU machine needs bash, and a Python whose torch package is version 2.11.0 with CUDA, or such a package's folder in
# --torch. `--device cpu` tries the script itself, `--dry-run` prints what would be run.
set -euo pipefail

TORCH_VERSION=2.11.0
# Seconds after which a check counts as failed.
LIMIT_S=${GPU_CHECK_LIMIT_S:-300}

fail() {
    printf 'gpu-check: %s\n' "$@" >&2
    exit 2
}

# built ARGUMENTS…: has cargo build, and prints the paths of the programs, one a line.
built() {
    local root
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
    (cd "$root" && cargo "$@" --release --locked --message-format=json) |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | sort -u
}

collect() {
    local folder=$1 engine tests test
    [ ! -e "$folder" ] || fail "$folder is there already; name a folder that is not, so that nothing old is carried over."
    engine=$(built build --bin simic-engine)
    # Tests of the command line start the binary where it was built; those of the engine take none with them.
    tests=$(built test --workspace --lib --test engine --no-run | grep -v '/simic-engine$')
    mkdir -p "$folder/tests"
    cp "$engine" "$folder/simic-engine"
    while read -r test; do cp "$test" "$folder/tests/"; done <<<"$tests"
    cp "${BASH_SOURCE[0]}" "$folder/gpu-check.sh"
    echo "carry $folder ($(du -sh "$folder" | cut -f1)) over, then run $(basename "$folder")/gpu-check.sh run"
}

# Sets LD_LIBRARY_PATH to libtorch and to NVIDIA's libraries beside it.
find_libtorch() {
    local torch=$1 found
    if [ -z "$torch" ]; then
        torch=$(python3 -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("torch").origin))' 2>/dev/null) ||
            fail "python3 has no torch package; name the folder of one by --torch."
    fi
    found=$(sed -n "s/^__version__ = '\([0-9.]*[0-9]\).*/\1/p" "$torch/version.py" 2>/dev/null || true)
    [ "$found" = "$TORCH_VERSION" ] || fail "$torch is torch ${found:-of unknown version}, but $TORCH_VERSION is needed."
    case $device in
        cuda*) [ -f "$torch/lib/libtorch_cuda.so" ] || fail "$torch has no CUDA part (libtorch_cuda.so)." ;;
    esac
    local libraries=$torch/lib library
    for library in "$torch"/../nvidia/*/lib "$torch"/../nvidia/*/*/lib; do
        if [ -d "$library" ]; then libraries=$libraries:$library; fi
    done
    export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

row() {
    printf '| %-44s | %-6s | %12s | %10s | %7s |\n' "$@"
}

# check NAME COMMAND…: leaves its output in $scratch/log, its seconds in $seconds.
check() {
    local name=$1 began
    shift
    if [ "$dry_run" = yes ]; then
        printf '%s: %s\n' "$name" "$*"
        return 1
    fi
    began=$(date +%s.%N)
    if timeout "$LIMIT_S" "$@" >"$scratch/log" 2>&1; then
        verdict=ok
    else
        verdict=FAILED
        failed=$((failed + 1))
        { printf -- '--- %s\n' "$name" && tail -n 15 "$scratch/log"; } >>"$scratch/failures"
    fi
    seconds=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
}

# The last value of a number in the last round of the run that was just played.
told() {
    { grep -h '"type":"round_finished"' "$scratch"/runs/*/events.jsonl 2>/dev/null || true; } |
        tail -n 1 | sed -n "s/.*\"$1\":\([-0-9.]*\).*/\1/p" | awk '{ printf "%.2f", $1 }'
}

# play NAME ARGUMENTS…: a run, and what it told.
play() {
    local name=$1
    shift
    rm -rf "$scratch/runs"
    check "$name" "$folder/simic-engine" run "$@" --out "$scratch/runs" --progress none || return 0
    row "$name" "$verdict" "$(told env_steps_per_s)" "$(told accuracy_mean)" "$seconds"
}

# What every env reached in every round, for runs that must agree.
reached() {
    { grep -h '"type":"round_finished"' "$scratch"/runs/*/events.jsonl 2>/dev/null || true; } |
        sed 's/.*"accuracy_env":\(\[[^]]*\]\).*/\1/'
}

scenario() {
    cat >"$scratch/$1.ron"
}

scenarios() {
    scenario digits <<'RON'
(name: "digits", task: preset("digits_baseline"), run: (rounds: 1, n_envs: 8, max_steps: 10), policy: (controller: "wait"))
RON
    scenario cifar <<'RON'
(
    name: "cifar",
    task: preset("synth_baseline", (
        batch_size: 512, val_batch_size: 512, data: synth_images((train: 8192, val: 2048, test: 512)),
    )),
    run: (rounds: 1, n_envs: 4, max_steps: 8),
    policy: (controller: "wait"),
)
RON
    scenario grown <<'RON'
(
    name: "grown",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 2, n_envs: 8, max_steps: 30),
    policy: (controller: "heuristic"),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true)),
)
RON
    scenario learnt <<'RON'
(
    name: "learnt", preset: "digits",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 3, n_envs: 8, max_steps: 20),
    policy: (controller: "actor_critic"),
)
RON
}

run() {
    local torch='' amp envs first name second test
    device=cuda:0 dry_run=no failed=0
    while [ $# -gt 0 ]; do
        case $1 in
            --dry-run) dry_run=yes && shift && continue ;;
            --device | --torch) [ $# -ge 2 ] || fail "$1 needs a value." ;;
            *) fail "unknown argument $1" ;;
        esac
        if [ "$1" = --device ]; then device=$2; else torch=$2; fi
        shift 2
    done
    folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    [ -x "$folder/simic-engine" ] || fail "$folder holds no simic-engine; fill it by: gpu-check.sh collect FOLDER"
    find_libtorch "$torch"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    : >"$scratch/failures"
    scenarios

    if [ "$dry_run" = no ]; then
        echo "device: $device; $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no nvidia-smi')"
        echo "engine: $("$folder/simic-engine" --version), torch $TORCH_VERSION"
        echo
        row check result env-steps/s accuracy s
        row --- --- ---: ---: ---:
    fi
    # Texts that tests compare with files of the repository, which is not here, have nothing to do with a device.
    export INSTA_FORCE_PASS=1 INSTA_UPDATE=no
    for test in "$folder"/tests/*; do
        name="tests: $(basename "$test" | sed 's/-[0-9a-f]*$//')"
        check "$name" "$test" || continue
        row "$name" "$verdict" '' '' "$seconds"
    done
    for envs in 2 8 64; do
        play "8x8 digits, $envs envs" "$scratch/digits.ron" --device "$device" --envs "$envs"
    done
    play '8x8 digits, 8 envs, on the CPU' "$scratch/digits.ron" --device cpu
    for amp in off auto bf16 fp16; do
        play "32x32 images, batch 512, amp $amp" "$scratch/cifar.ron" --device "$device" --amp "$amp"
    done
    play '32x32 images, batch 512, on the CPU' "$scratch/cifar.ron" --device cpu
    play 'seeds under rules' "$scratch/grown.ron" --device "$device"
    play 'seeds under rules, amp fp16' "$scratch/grown.ron" --device "$device" --amp fp16
    for amp in off bf16 fp16; do
        play "a policy that learns, learner.amp $amp" "$scratch/learnt.ron" --device "$device" --set "learner.amp=$amp"
    done
    play 'deterministic' "$scratch/grown.ron" --device "$device" --set run.deterministic=true
    first=$(reached)
    play 'deterministic, again' "$scratch/grown.ron" --device "$device" --set run.deterministic=true
    second=$(reached)
    if [ "$dry_run" = no ]; then
        if [ -n "$first" ] && [ "$first" = "$second" ]; then
            row 'both reached the same in every env' ok '' '' ''
        else
            row 'both reached the same in every env' FAILED '' '' ''
            failed=$((failed + 1))
        fi
        cat "$scratch/failures"
    fi
    [ "$failed" = 0 ]
}

case ${1:-} in
    collect)
        [ $# = 2 ] || fail "usage: gpu-check.sh collect FOLDER"
        collect "$2"
        ;;
    run) shift && run "$@" ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
