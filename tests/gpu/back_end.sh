#!/usr/bin/env bash
# The CUDA back end where no device is: what --device cuda says, that nothing else breaks, and a run that fails
# half-way. With a device it only checks that the libraries load.   back_end.sh BUILD RECIPES
set -uo pipefail
[ $# -ge 2 ] || { echo "usage: back_end.sh BUILD RECIPES" >&2; exit 1; }
build=$(readlink -f "$1")
recipe=$(readlink -f "$2")/pico.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0 bad=0
check() { # what, 0 or not
    checked=$((checked + 1))
    [ "$2" -eq 0 ] || { bad=$((bad + 1)); echo "$1: wrong"; cat "$work/log"; }
}
"$build/corpus/faultline-init" --recipe "$recipe" --seed 1 --out "$work/w" >/dev/null
train() { # program option...
    local program=$build/engine/$1
    shift
    timeout 100 "$program" --recipe "$recipe" --weights "$work/w" --seed 1 --quiet "$@" >"$work/log" 2>&1
}
says() { grep -qE "$1" "$work/log"; echo $?; }

for program in faultline-train faultline-train-production; do
    library=$build/engine/libfaultline-cuda.so
    [ $program = faultline-train ] || library=$build/engine/libfaultline-cuda-production.so
    train $program --device cuda --trace "$work/refused.jsonl"
    code=$?
    if [ $code -eq 0 ]; then
        echo "$program: a device is here: tests/gpu/check.sh says more"
    elif [ -f "$library" ]; then
        check "$program without a driver: exit $code" $((code != 1))
        check "$program without a driver: the message names call and error" \
            "$(says 'device cannot be opened: .*cuda[A-Za-z]+: cudaError[A-Za-z]+: ')"
    else
        echo "skipped: no nvcc, so no $(basename "$library")"
        check "$program without a library: exit $code" $((code != 1))
        check "$program without a library: message" "$(says "$(basename "$library"): not beside this program")"
    fi
    ldd "$build/engine/$program" >"$work/log"
    check "$program needs no CUDA to start" $((1 - $(says 'libcu(dart|blas)')))
done
[ -f "$build/engine/libfaultline-cuda-production.so" ] && {
    nm -D --defined-only "$build/engine/libfaultline-cuda-production.so" >"$work/log"
    check "production's library has no twin" $((1 - $(says '_launch_twin|mut_')))
    nm -D --defined-only "$build/engine/libfaultline-cuda.so" >"$work/log"
    check "the mutable library has twins" "$(says 'k_xent_launch_twin')"
}
train faultline-train
code=$?
check "the host device still trains: exit $code" $code
train faultline-train --device gpu
code=$?
check "an unknown device: exit $code" $((code != 1))
train faultline-train --exact-products
code=$?
check "exact products without cuda: exit $code" $((code != 1))

export FAULTLINE_CUDA_LIBRARY=$work/none.so
train faultline-train --device cuda
code=$?
check "a library that is not there: exit $code" $((code != 1))
check "a library that is not there: message" "$(says 'none.so')"
export FAULTLINE_CUDA_LIBRARY=$build/tests/libgpu_stand_in.so FAULTLINE_STAND_IN_FAIL=200
for schedule in fifo lazy; do
    train faultline-train --device cuda --schedule $schedule --trace "$work/broken.jsonl"
    code=$?
    check "a device that breaks, $schedule: exit $code" $((code != 70))
    check "a device that breaks, $schedule: message" "$(says 'driver error: .*standInErrorIllegalAddress')"
    grep '"type":"end"' "$work/broken.jsonl" >"$work/log"
    check "a device that breaks, $schedule: the trace says so" "$(says 'standInErrorIllegalAddress')"
done
echo "back end: $checked checks, $bad wrong"
[ "$bad" -eq 0 ] && [ "$checked" -ge 14 ]
