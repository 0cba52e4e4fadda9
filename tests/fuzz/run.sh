#!/usr/bin/env bash
# One fuzzer from its seeds for some seconds of processor time; nothing may be found. A finding is kept in the current folder.
# The last line says executions, seconds of processor time and findings.
#   run.sh .../fuzz_NAME SECONDS
set -euo pipefail
fuzzer=${1:?usage: run.sh FUZZER SECONDS} seconds=${2:?usage: run.sh FUZZER SECONDS}
name=${fuzzer##*/fuzz_}
here=$(dirname "$(readlink -f "$0")")
found=$(mktemp -d) log=$(mktemp) spent=$(mktemp) && trap 'rm -rf "$found" "$log" "$spent"' EXIT
words=()
[ -f "$here/$name.dict" ] && words=(-dict="$here/$name.dict")

# A machine with other work gives less than a second a second: as many runs of the fuzzer as it takes, upon one corpus.
TIMEFORMAT='%U %S'
executions=0 used=0
while [ "$used" -lt "$seconds" ]; do
    left=$((seconds - used)) code=0
    { time "$fuzzer" -max_total_time=$((left < 120 ? left : 120)) -timeout=60 -print_final_stats=1 \
        -artifact_prefix="found_${name}_" "${words[@]}" "$found" "$here/../../corpus/seeds/$name" >"$log" 2>&1; } 2>"$spent" || code=$?
    executions=$((executions + $(awk '/^stat::number_of_executed_units:/ { n = $2 } END { print n + 0 }' "$log")))
    used=$((used + $(awk '{ print int($1 + $2 + 0.5) }' "$spent")))
    if [ "$code" != 0 ]; then
        grep -v '^#.*\(NEW\|REDUCE\|pulse\|RELOAD\)' "$log" | tail -n 60
        echo "$name: $executions executions, $used s of processor time, 1 finding"
        exit 1
    fi
done
echo "$name: $executions executions, $used s of processor time, 0 findings"
