#!/usr/bin/env bash
# One fuzzer from its seeds for some seconds; nothing may be found. A finding is kept in the current folder.
#   run.sh .../fuzz_NAME SECONDS
set -euo pipefail
fuzzer=${1:?usage: run.sh FUZZER SECONDS} seconds=${2:?usage: run.sh FUZZER SECONDS}
name=${fuzzer##*/fuzz_}
here=$(dirname "$(readlink -f "$0")")
found=$(mktemp -d) && trap 'rm -rf "$found"' EXIT
words=()
[ -f "$here/$name.dict" ] && words=(-dict="$here/$name.dict")
"$fuzzer" -max_total_time="$seconds" -timeout=20 -print_final_stats=1 -artifact_prefix="found_${name}_" "${words[@]}" \
    "$found" "$here/../../corpus/seeds/$name" 2>&1 | grep -v '^#.*\(NEW\|REDUCE\|pulse\|RELOAD\)' | tail -n 60
