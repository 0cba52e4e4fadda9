#!/usr/bin/env bash
# Tracing must not hide races: over the same schedule seeds a stream fault spoils the final weights as
# often with a full trace as with none, within the exact test of two proportions.
#   race_levels.sh BUILD RECIPE SEEDS FAULT...
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: race_levels.sh BUILD RECIPE SEEDS FAULT..." >&2; exit 1; }
build=$(readlink -f "$1")
recipe=$(readlink -f "$2")
seeds=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/corpus/faultline-init" --recipe "$recipe" --seed 1 --out "$work/w.safetensors"
weights() { # level fault schedule_seed
    "$build/engine/faultline-train" --recipe "$recipe" --weights "$work/w.safetensors" --seed 1 --threads 1 \
        --level "$1" --trace "$work/trace" --fault "$2" --schedule pct --schedule-seed "$3" --save "$work/out" --quiet
    sha256sum <"$work/out/model.safetensors"
}
healthy=$(weights none none 1)
for fault in "$@"; do
    for level in none full; do
        for seed in $(seq "$seeds"); do
            [ "$(weights "$level" "$fault" "$seed")" = "$healthy" ] && echo 0 || echo 1
        done >"$work/$level"
    done
    echo "$fault $(awk '{s+=$1} END {print s}' "$work/none") $(awk '{s+=$1} END {print s}' "$work/full")"
done >"$work/table"
/usr/bin/python3 - "$work/table" "$seeds" <<'PY'
import math, sys
n = int(sys.argv[2])
bad = shown = 0
for line in open(sys.argv[1]):
    fault, none, full = line.split()
    none, full = int(none), int(full)
    # Fisher's exact test: probability of a split at least this uneven when the level does not matter.
    total = none + full
    ways = [math.comb(n, k) * math.comb(n, total - k) if 0 <= total - k <= n else 0 for k in range(n + 1)]
    p = sum(w for w in ways if w <= ways[none]) / sum(ways)
    print(f"{fault}: wrong weights in {none} of {n} schedules untraced, {full} of {n} at full level, p = {p:.3f}")
    bad += p < 0.001
    shown += total > 0
print(f"race levels: {shown} faults showed wrong numbers, {bad} differ between levels")
sys.exit(0 if shown and not bad else 1)
PY
