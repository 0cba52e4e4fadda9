#!/usr/bin/env bash
# Checks the CUDA back end on a machine with a GPU and writes one text report; under five minutes.
#   bash tests/gpu/check.sh [--dry] [--build DIR] [--report FILE]
#   bash tests/gpu/check.sh --bundle DIR --build BUILD
# --build DIR   programs built before (default: builds build/gpu; `./fl setup` installs what that needs)
# --dry         no GPU: the stand-in library takes the device's place; shows that this script works
# --bundle DIR  only copies programs, their libraries and the corpus, for a GPU machine without packages or network;
#               there: bash DIR/tests/gpu/check.sh --build DIR/build. Build with -DFL_MARCH=x86-64-v3 for it.
# exit: 0 all checks passed, 1 some failed or did not run, 77 no GPU here (the report says so)
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build="" report="" dry=no bundle=""
while [ $# -gt 0 ]; do
    case $1 in
    --dry) dry=yes ;;
    --build) build=$(readlink -f "${2:?--build DIR}"); shift ;;
    --report) report=${2:?--report FILE}; shift ;;
    --bundle) bundle=${2:?--bundle DIR}; shift ;;
    *) echo "check.sh: unknown option '$1' (the head of this file says which there are)" >&2; exit 1 ;;
    esac
    shift
done
if [ -n "$bundle" ]; then
    set -e
    mkdir -p "$bundle"/build/{engine,corpus,tests} "$bundle/lib" "$bundle/tests"
    cp "$build"/engine/{faultline-train,libfaultline-cuda.so} "$bundle/build/engine"
    cp "$build/corpus/faultline-init" "$bundle/build/corpus"
    cp "$build"/tests/{gpu_kernels,libgpu_stand_in.so} "$bundle/build/tests"
    # the C library belongs to the machine, CUDA to its toolkit
    ldd "$bundle"/build/*/* | awk '$3 ~ /^\// { print $3 }' | sort -u |
        grep -vE '/(libc|libm|libdl|libpthread|librt|libcudart|libcublas|libcublasLt)\.so' | xargs -I{} cp {} "$bundle/lib"
    cp -r "$top/corpus" "$top/mutants" "$bundle"
    cp -r "$top/tests/gpu" "$bundle/tests"
    echo "bundle: $(du -sh "$bundle" | cut -f1) in $bundle"
    exit 0
fi
[ -d "$top/lib" ] && export LD_LIBRARY_PATH=$top/lib:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
report=${report:-$top/results/gpu/REPORT.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$(dirname "$report")"
failed=0 passed=0 begun=$SECONDS
say() { echo "$*" | tee -a "$report"; }
verdict() { # name, 0 or not, what was seen
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); say "| $1 | passed | $3 |"; else
        failed=$((failed + 1)); say "| $1 | **failed** | $3 |"
    fi
}

skip() {
    : >"$report"
    say "# CUDA back end: not run"
    say "$(date -u +%Y-%m-%d): $1"
    exit 77
}
if [ $dry = no ]; then
    command -v nvidia-smi >/dev/null || skip "no nvidia-smi: no GPU driver on this machine"
    nvidia-smi -L 2>/dev/null | grep -q GPU || skip "nvidia-smi lists no GPU"
fi
if [ -z "$build" ]; then
    build=$top/build/gpu
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
    if ! { cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFL_CUDA_ARCH="${arch:-90}" &&
        cmake --build "$build" --target faultline-train faultline-train-production faultline-init \
            faultline-cuda-libraries gpu_kernels gpu_stand_in; } >"$work/build.log" 2>&1; then
        tail -n 30 "$work/build.log"
        echo "check.sh: the build failed"
        exit 1
    fi
fi
if [ $dry = yes ]; then
    library=$build/tests/libgpu_stand_in.so
else
    library=$build/engine/libfaultline-cuda.so
fi
train=$build/engine/faultline-train
recipes=$top/corpus/recipes
export FAULTLINE_CUDA_LIBRARY=$library

: >"$report"
say "# CUDA back end"
say ""
[ $dry = yes ] && say "**Dry run: threads of the host stand in for a device. This says nothing about a GPU.**" && say ""
say "- date: $(date -u +%Y-%m-%dT%H:%MZ)"
say "- commit: $(git -C "$top" rev-parse --short HEAD 2>/dev/null || echo unknown)"
if [ $dry = no ]; then
    say "- device: $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)"
fi
"$build/tests/gpu_kernels" >"$work/kernels" 2>&1
kernels_rc=$?
say "- opened: $(sed -n 's/^device: //p' "$work/kernels" | head -n 1)"
say ""
say "| check | outcome | seen |"
say "|---|---|---|"

# 1. Every kernel's bits against the host, and the products.
compared=$(grep -c "differ from the host$" "$work/kernels")
verdict "kernels" $((kernels_rc != 0 || compared != 2)) \
    "$(grep -vE '^(device|note)' "$work/kernels" | tr '\n' ';' | sed 's/;$//; s/;/; /g')"
grep '^note' "$work/kernels"

# run NAME RECIPE option...: a run of the trainer; exit code in $work/NAME.rc, trace in $work/NAME.jsonl
run() {
    local name=$1 recipe=$2
    shift 2
    [ -f "$work/$recipe.w" ] || "$build/corpus/faultline-init" --recipe "$recipes/$recipe.yaml" --seed 1 \
        --out "$work/$recipe.w" >/dev/null
    timeout 100 "$train" --recipe "$recipes/$recipe.yaml" --weights "$work/$recipe.w" --seed 1 \
        --trace "$work/$name.jsonl" "$@" >"$work/$name.log" 2>&1
    echo $? >"$work/$name.rc"
}
rc() { cat "$work/$1.rc"; }
# facts NAME OTHER: how two traces compare, as "steps S, same bits B, loss L, races R"
facts() {
    /usr/bin/env python3 - "$work/$1.jsonl" "$work/$2.jsonl" <<'PY'
import json, sys
def steps(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["type"] == "step"]
a, b = steps(sys.argv[1]), steps(sys.argv[2])
pairs = list(zip(a, b))
same = sum(x["hash"]["state"] == y["hash"]["state"] for x, y in pairs)
def apart(x, y): # losses that are no numbers stand as words in a trace
    difference = abs(float(x) - float(y)) / abs(float(y))
    return difference if difference == difference else float("inf")
loss = max((apart(x["loss"], y["loss"]) for x, y in pairs), default=float("nan"))
first = next((x["step"] for x, y in pairs if x["hash"]["state"] != y["hash"]["state"]), 0)
races = a[-1]["race_count"] if a else -1
print(f"{len(pairs)} {same} {loss:.2g} {races} {first} {len(b)}")
PY
}

# 2. Whole training, device against host. With exact products the bits are the host's.
recipe=tiny steps=12 seeds="1 2 3"
[ $dry = yes ] && recipe=pico seeds=1
run host $recipe --steps $steps
run exact $recipe --steps $steps --device cuda --exact-products
run blas $recipe --steps $steps --device cuda
run blas2 $recipe --steps $steps --device cuda
read -r n same loss races _ want <<<"$(facts exact host)"
verdict "$recipe, exact products" $((n == 0 || n != want || same != n || races != 0)) \
    "$same of $n steps with the host's bits, races $races"
read -r n same loss races _ want <<<"$(facts blas host)"
verdict "$recipe, library products" $((n == 0 || n != want || races != 0)) \
    "$n steps, largest relative difference of the loss from the host $loss, races $races; $(sed -n 's/.*; after/after/p' "$work/blas.log"), host: $(sed -n 's/.*; after/after/p' "$work/host.log")"
read -r n same loss races _ want <<<"$(facts blas blas2)"
verdict "$recipe, library products twice" $((n == 0 || n != want || same != n)) "$same of $n steps with equal bits"

# 3. Healthy under every schedule: no alarm, the same bits.
run calm pico --device cuda --exact-products
for schedule in lazy pct; do
    for seed in $seeds; do
        run "healthy" pico --device cuda --exact-products --schedule $schedule --schedule-seed $seed --driver tasks
        read -r n same loss races _ want <<<"$(facts healthy calm)"
        verdict "healthy, $schedule, seed $seed" $((n == 0 || n != want || same != n || races != 0)) \
            "$same of $n steps with the same bits, races $races"
    done
done

# 4. Stream faults, streams kept busy by the seed: the checker finds each; wrong numbers are counted.
for fault in input_refill_wait input_copied_wait input_consumed_wait stats_wait readback_wait readback_sync; do
    grep -rqE "FAULTS_${fault}\(M\)" "$top/mutants" || continue
    name=$(sed -nE "s/^ *M\($fault, ([a-z_0-9]+),.*/\1/p" "$top"/mutants/*.def | head -n 1)
    found=0 wrong=0 runs=0
    for schedule in lazy pct; do
        for seed in $seeds; do
            run fault pico --device cuda --exact-products --fault "$fault.$name" --schedule $schedule --schedule-seed $seed
            read -r n same loss races first want <<<"$(facts fault calm)"
            runs=$((runs + 1))
            [ "$races" -gt 0 ] && found=$((found + 1))
            [ "$same" -lt "$n" ] && wrong=$((wrong + 1))
        done
    done
    verdict "$fault.$name" $((found != runs)) "race reported in $found of $runs runs, other bits in $wrong of $runs"
done

# 5. Allocator: a tight budget, an out-of-memory that is answered, a kernel fault, and its reach record.
run tight pico-tight --device cuda --exact-products
run tight_host pico-tight
read -r n same loss races _ want <<<"$(facts tight tight_host)"
verdict "tight budget" $((n == 0 || n != want || same != n)) "$same of $n steps with the host's bits"
run oom pico-oom --device cuda --exact-products
verdict "answered out of memory" $(($(rc oom) != 0)) "exit $(rc oom), events: $(grep -c '"kind":"retry"' "$work/oom.jsonl") retry"
run blind pico-tight --device cuda --exact-products --fault dev_malloc_ladder.absent
spurious=$(grep -c '"spurious":true' "$work/blind.jsonl")
verdict "dev_malloc_ladder.absent" $((spurious == 0)) "$spurious spurious out-of-memory events, exit $(rc blind)"
run armed pico --device cuda --exact-products --fault norm_rstd.eps_outside
run armed_host pico --fault norm_rstd.eps_outside
read -r n same loss races _ want <<<"$(facts armed armed_host)"
reached=$(sed -n 's/.*"fault_reached":\(-*[0-9]*\).*/\1/p' "$work/armed.jsonl")
verdict "norm_rstd.eps_outside" $((n == 0 || same != n || ${reached:--1} < 0)) \
    "$same of $n steps with the bits of the same fault on the host, reached in step ${reached:-none}"

# 6. compute-sanitizer on the smallest recipe.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ $dry = no ] && [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do
        timeout 100 "$sanitizer" --tool $tool --error-exitcode 9 "$build/tests/gpu_kernels" >"$work/$tool.log" 2>&1
        verdict "compute-sanitizer $tool, kernels" $? "$(grep 'SUMMARY' "$work/$tool.log" | tail -n 1)"
    done
    run nano_host nano --steps 1
    timeout 100 "$sanitizer" --tool memcheck --error-exitcode 9 "$train" --recipe "$recipes/nano.yaml" --seed 1 \
        --weights "$work/nano.w" --steps 1 --device cuda --quiet >"$work/sanitizer.log" 2>&1
    verdict "compute-sanitizer memcheck, nano" $? "$(grep 'SUMMARY' "$work/sanitizer.log" | tail -n 1)"
else
    say "| compute-sanitizer | not run | $([ $dry = yes ] && echo 'dry run' || echo 'no compute-sanitizer found') |"
fi

say ""
say "$passed checks passed, $failed failed, $((SECONDS - begun)) s."
[ "$failed" -eq 0 ] && [ "$passed" -gt 10 ]
