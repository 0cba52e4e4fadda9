#!/usr/bin/env bash
# Linker facts: each library defines only symbols of its own prefix, production holds no fault, and
# judge and judged share no symbol.   symbols.sh BUILD_DIR
set -uo pipefail
build=${1:?usage: symbols.sh BUILD_DIR}
found=0
compared=0
bad() { printf '%s\n' "$*"; found=$((found + 1)); }
defined() { nm --defined-only "$1" 2>/dev/null | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | sort -u; }

own() { # archive pattern
    [ -f "$1" ] || { bad "$1: is missing"; return; }
    local names
    names=$(defined "$1")
    compared=$((compared + $(wc -l <<<"$names")))
    while read -r name; do
        [[ -z $name || $name =~ $2 ]] || bad "$1: defines $name, not matching $2"
    done <<<"$names"
}
own "$build/mutants/libmut_registry.a" '^mut_'
own "$build/kernels/libk_production.a" '^k_'
own "$build/kernels/libk_mutable.a" '^k_'
own "$build/engine/libeng_production.a" '^(eng|dev)_'
own "$build/engine/libeng_mutable.a" '^(eng|dev)_'
own "$build/oracles/checks/liborc_checks.a" '^orc_'

production=$build/engine/faultline-train-production
# grep reads to the end: a pipe closed early would fail nm, and with it the pipeline.
mentions() { nm "$1" | grep ' mut_' >/dev/null; }
if mentions "$production"; then bad "$production: has a mut_ symbol"; fi
mentions "$build/engine/faultline-train" || bad "faultline-train: has no mut_ symbol"
for judge in "$build/harness/faultline" "$build/oracles/reference/faultline-ref"; do
    [ -f "$judge" ] || { bad "$judge: is missing"; continue; }
    compared=$((compared + 1))
    if nm "$judge" | grep -E ' [A-Za-z] (eng|dev|k)_' >/dev/null; then
        bad "$judge: links code under test"
    fi
done
echo "symbols: $compared names checked, $found violations"
[ "$found" -eq 0 ] && [ "$compared" -gt 100 ]
