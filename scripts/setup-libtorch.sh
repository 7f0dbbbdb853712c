#!/bin/sh
# Usage: setup-libtorch.sh LIBTORCH VERSION PYTHON cpu|cuda
# Leaves libtorch VERSION at LIBTORCH, or reports missing parts. Downloads with pip into the folder above LIBTORCH.
set -eu
libtorch=$1 version=$2 python=$3 kind=$4
target=$(dirname "$libtorch")
# A libtorch from this script is complete only with its marker. The user's own libtorch has none.
marker="$target/.simic-engine-$kind"
case $target in
    */.libtorch) own=no ;;
    *) own=yes ;;
esac

fail() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

installed() {
    # The wheel keeps its version in version.py, libtorch archives in build-version.
    for file in "$libtorch/version.py" "$libtorch/build-version"; do
        if [ -f "$file" ]; then
            sed -n "s/^\(__version__ = '\)\{0,1\}\([0-9][0-9.]*[0-9]\).*/\2/p" "$file" | head -n 1
            return
        fi
    done
}

found=$(installed)
if [ "$found" = "$version" ] && [ -f "$libtorch/lib/libtorch_cpu.so" ]; then
    if [ -f "$marker" ]; then
        exit 0
    fi
    if [ "$kind" = cpu ] && { [ "$own" = yes ] || [ -f "$target/.simic-engine-cuda" ]; }; then
        exit 0
    fi
    if [ "$own" = no ] && [ ! -f "$target/.simic-engine-cpu" ]; then
        rm -rf "$target" # a download that was interrupted
    fi
elif [ -n "$found" ]; then
    case $own in
        no) rm -rf "$target" ;;
        *) fail "LIBTORCH=$libtorch is version $found, but $version is needed." \
            "Point LIBTORCH at version $version, or unset it to let the set-up download it." ;;
    esac
elif [ -e "$libtorch" ] && [ -n "$(ls -A "$libtorch" 2>/dev/null)" ]; then
    case $own in
        no) rm -rf "$target" ;; # a download that was interrupted
        *) fail "LIBTORCH=$libtorch doesn't hold libtorch $version." ;;
    esac
fi

command -v "$python" >/dev/null 2>&1 || fail "$python was not found." "Install it: sudo apt-get install python3 python3-pip"
"$python" -m pip --version >/dev/null 2>&1 || fail "$python has no pip." "Install it: sudo apt-get install python3-pip"

if [ "$kind" = cuda ]; then
    # CUDA 13 needs a driver of the 580 series or later. Without one, as in an image that is being built, only the machine that
    # runs it needs the driver.
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null) ||
        driver=$(cat /sys/module/nvidia/version 2>/dev/null) || driver=
    driver=$(echo "$driver" | head -n 1)
    case ${driver%%.*} in
        "" | *[!0-9]*) echo "setup: no NVIDIA driver was found; the machine that uses this libtorch needs driver 580 or later" >&2 ;;
        *) [ "${driver%%.*}" -ge 580 ] || fail "NVIDIA's driver here is $driver, but libtorch $version with CUDA 13 needs 580 or later." \
            "Update the driver, or use a CPU: make setup" ;;
    esac
fi

mkdir -p "$target" || fail "$target cannot be created."
needed_kib=2500000
[ "$kind" = cuda ] && needed_kib=9000000
free_kib=$(df -Pk "$target" | awk 'NR == 2 { print $4 }')
[ "$free_kib" -ge "$needed_kib" ] ||
    fail "$((free_kib / 1024)) MiB are free at $target, but libtorch needs $((needed_kib / 1024)) MiB while it is unpacked."

# Without the marker, the next call knows that a download was interrupted, and starts over.
rm -f "$target"/.simic-engine-*
size="540 MB"
[ "$kind" = cuda ] && size="3 GB"
echo "setup: downloading libtorch $version into $target (about $size, once)"
# The headers that CUDA graphs are compiled with; libtorch itself needs none of them.
headers=nvidia-cuda-crt==13.0.88
if [ "$kind" = cuda ]; then
    set -- "torch==$version" "$headers"
else
    set -- --no-deps "torch==$version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 "$headers"
fi
if ! PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --disable-pip-version-check --upgrade --target "$target" "$@"; then
    rm -rf "$target"
    fail "pip could not install libtorch $version (its message is above)." \
        "The set-up needs the network once; for a proxy or mirror, configure pip (pip config set global.index-url ...)."
fi
[ "$(installed)" = "$version" ] || fail "pip finished, but $libtorch doesn't hold libtorch $version."
touch "$marker"
echo "setup: libtorch $version is ready"
