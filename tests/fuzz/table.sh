#!/usr/bin/env bash
# The fuzzers' detection table: every fault of text and data, 10 repeats of at most 200,000 executions or 30 s. Fails where healthy
# targets alarm, and where a fault that some target judges is noticed by none in any repeat.
#   table.sh BUILD
set -euo pipefail
build=$(readlink -f "${1:?usage: table.sh BUILD}")
said=$(mktemp) && trap 'rm -f "$said"' EXIT
"$build/harness/faultline" fuzz --all --fuzzers "$build/tests" --out "$build/tests/table" --quiet | tee "$said"
grep -q '^faults with a target that judges them [1-9].*never 0$' "$said"
