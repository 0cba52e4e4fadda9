#!/usr/bin/env bash
# Benchmarks: everything is measured in this run against a named peer, and printed as a ratio.
#   run.sh BUILD [gemm|step|trace|twin|all]
set -euo pipefail
build=$(readlink -f "${1:?usage: run.sh BUILD [gemm|step|trace|twin|all]}")
what=${2:-all}
top=$(cd "$(dirname "$0")/../.." && pwd)
threads=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
train=$build/engine/faultline-train-production
init=$build/corpus/faultline-init

# PyTorch and OpenBLAS at their best settings here; printed, because they decide the ratio.
export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX} OMP_NUM_THREADS=$threads
settings() { echo "settings: $threads threads, OPENBLAS_CORETYPE=$OPENBLAS_CORETYPE OMP_NUM_THREADS=$OMP_NUM_THREADS"; }

json() { /usr/bin/python3 -c "import json,sys; d=json.loads(sys.stdin.read()); print($1)"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

bench_gemm() {
    echo "## GEMM, GFLOP/s (best of interleaved rounds)"
    settings
    "$build/tests/gemm_bench" 1 0.3
    "$build/tests/gemm_bench" "$threads" 0.3
    echo "FMA peak: $("$build/tests/peak_bench" 1) GFLOP/s on 1 thread, $("$build/tests/peak_bench" "$threads") on $threads"
}

# Seconds of one trainer run over its steps, from the trace's own end record.
train_seconds() { # recipe steps level fault program
    "$5" --recipe "$1" --weights "$work/w.safetensors" --seed 1 --steps "$2" --threads "$threads" \
        --level "$3" --trace "$work/t.jsonl" --fault "$4" --quiet >/dev/null
    tail -n 1 "$work/t.jsonl" | json 'd["seconds"]'
}

bench_step() {
    local recipe name steps round engine=() peer=() tokens
    echo "## Training step against PyTorch: same recipe, weights, batches, steps"
    settings
    for name in tiny:40 small:6 bench-124m:3; do
        recipe=$top/corpus/recipes/${name%%:*}.yaml steps=${name##*:}
        [ -f "$recipe" ] || { echo "${name%%:*}: no such recipe, left out"; continue; }
        "$init" --recipe "$recipe" --seed 1 --out "$work/w.safetensors"
        "$train" --recipe "$recipe" --weights "$work/w.safetensors" --seed 1 --steps "$steps" \
            --level hashes --contents --trace "$work/batches.jsonl" --threads "$threads" --quiet
        engine=() peer=()
        for round in 1 2 3; do
            "$train" --recipe "$recipe" --weights "$work/w.safetensors" --seed 1 --steps "$steps" \
                --level hashes --threads "$threads" --trace "$work/e.jsonl" --quiet
            engine+=("$(tail -n 1 "$work/e.jsonl" | json "d['seconds']/d['steps']")")
            /usr/bin/python3 "$top/tests/bench/torch_peer.py" "$recipe" "$work/w.safetensors" \
                "$work/batches.jsonl" "$threads" >"$work/torch.json"
            peer+=("$(json 'sorted(d["seconds"])[len(d["seconds"])//2]' <"$work/torch.json")")
        done
        /usr/bin/python3 - "$work" "$recipe" "$steps" "${engine[*]}" "${peer[*]}" <<'PY'
import json, sys, yaml
work, recipe, steps, engine, peer = sys.argv[1:]
r = yaml.safe_load(open(recipe))
tokens = r["train"]["rows"] * r["model"]["context"] * r["train"]["grad_accum"]
e, p = (sorted(map(float, x.split()))[len(x.split()) // 2] for x in (engine, peer))
lines = [json.loads(x) for x in open(work + "/e.jsonl")]
torch = json.load(open(work + "/torch.json"))
losses = [x["loss"] for x in lines if x["type"] == "step"]
gap = max(abs(a - b) / b for a, b in zip(losses, torch["losses"]))
print(f"{r['name']}: trainer {e * 1e3:.1f} ms a step ({tokens / e:.0f} tokens/s), PyTorch {torch['torch']} {p * 1e3:.1f} ms "
      f"({tokens / p:.0f} tokens/s), ratio {p / e:.2f}; peak memory {lines[-1]['peak_host_bytes'] / 1e6:.0f} MB against "
      f"{torch['peak_bytes'] / 1e6:.0f} MB; largest relative loss difference over {len(losses)} steps {gap:.1e}")
PY
    done
}

bench_trace() {
    echo "## Cost of the trace, recipe tiny (seconds of the same steps; interleaved, medians of 5)"
    "$init" --recipe "$top/corpus/recipes/tiny.yaml" --seed 1 --out "$work/w.safetensors"
    local level round
    for round in 1 2 3 4 5; do
        for level in none hashes full; do
            /usr/bin/env time -f %e -o "$work/time" "$train" --recipe "$top/corpus/recipes/tiny.yaml" \
                --weights "$work/w.safetensors" --seed 1 --steps 40 --threads "$threads" \
                --level "$level" --trace "$work/t.jsonl" --quiet
            cat "$work/time" >>"$work/$level"
        done
    done
    local none hashes full
    none=$(median <"$work/none") hashes=$(median <"$work/hashes") full=$(median <"$work/full")
    awk -v n="$none" -v h="$hashes" -v f="$full" 'BEGIN {
        printf "none %.3f s, hashes %.3f s (%+.1f %%), full %.3f s (%+.1f %%)\n", n, h, 100 * (h / n - 1), f, 100 * (f / n - 1) }'
}

# Instructions of a run: mutable build with nothing armed against production, and each file's twin.
instructions() { # program fault
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$1" --recipe "$top/corpus/recipes/nano.yaml" \
        --weights "$work/w.safetensors" --seed 1 --steps 4 --threads 1 --level hashes --trace "$work/t.jsonl" \
        --fault "$2" --quiet 2>&1 | awk '/Collected/ { print $4 }'
}

bench_twin() {
    echo "## Unarmed cost in instructions (callgrind, -march=x86-64-v3, recipe nano, 4 steps)"
    (cd "$top" && cmake --preset callgrind >/dev/null && cmake --build build/callgrind --target \
        faultline-train faultline-train-production faultline-init >/dev/null)
    local bin=$top/build/callgrind/engine production mutable file
    "$init" --recipe "$top/corpus/recipes/nano.yaml" --seed 1 --out "$work/w.safetensors"
    production=$(instructions "$bin/faultline-train-production" none)
    mutable=$(instructions "$bin/faultline-train" none)
    awk -v p="$production" -v m="$mutable" 'BEGIN {
        printf "production %d, mutable unarmed %d: %+.3f %%\n", p, m, 100 * (m / p - 1) }'
    for file in $("$build/harness/faultline" list --json | json '" ".join(sorted({f["file"] for f in d["faults"] if f["file"].endswith(".cu")}))'); do
        mutable=$(instructions "$bin/faultline-train" "none:$file")
        awk -v f="$file" -v p="$production" -v m="$mutable" 'BEGIN { printf "twin of %-28s %+.2f %%\n", f, 100 * (m / p - 1) }'
    done
}

case $what in
all) bench_gemm; bench_step; bench_trace; bench_twin ;;
gemm | step | trace | twin) "bench_$what" ;;
*) echo "run.sh: unknown benchmark '$what'" >&2; exit 1 ;;
esac
