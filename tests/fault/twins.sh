#!/usr/bin/env bash
# Each file's mutable twin with nothing armed writes production's step records, byte for byte.
#   twins.sh BUILD RECIPE
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: twins.sh BUILD RECIPE" >&2; exit 1; }
build=$(readlink -f "$1")
recipe=$(readlink -f "$2")
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/corpus/faultline-init" --recipe "$recipe" --seed 1 --out "$work/w.safetensors"
steps_of() { # program fault out
    "$1" --recipe "$recipe" --weights "$work/w.safetensors" --seed 1 --threads 1 --level full \
        --trace "$work/trace" --fault "$2" --quiet
    # host bytes are what the allocator library holds: not a matter of the program alone
    grep '^{"type":"step"' "$work/trace" | sed 's/"host":[0-9]*,//' >"$3"
}
steps_of "$build/engine/faultline-train-production" none "$work/production"
[ "$(wc -l <"$work/production")" -ge 8 ] || { echo "production wrote too few steps"; exit 1; }
files=0 bad=0
mapfile -t sources < <(cd "$top" && grep -lE '(^|[^A-Z_a-z])FAULT\(' kernels/*.cu engine/*/*.c)
for file in none all "${sources[@]}"; do
    spec=none:$file
    [ "$file" = none ] && spec=none
    steps_of "$build/engine/faultline-train" "$spec" "$work/twin"
    files=$((files + 1))
    cmp -s "$work/production" "$work/twin" || { echo "$spec differs from production"; bad=$((bad + 1)); }
done
echo "twins: $files builds of $(wc -l <"$work/production") steps compared, $bad differ"
[ "$bad" -eq 0 ] && [ "$files" -gt 10 ]
