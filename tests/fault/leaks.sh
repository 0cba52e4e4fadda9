#!/usr/bin/env bash
# Leaks over a thousand steps. The check `memory` reports one byte of host memory a step, by component, and one block of
# device memory in a thousand frees, by the ledger, long before the device is full and the run refused; it is silent about
# the healthy trainer with either driver.
#   leaks.sh BUILD RECIPE STEPS
set -euo pipefail
build=$(readlink -f "${1:?usage: leaks.sh BUILD RECIPE STEPS}")
recipe=$(readlink -f "$2")
steps=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -e "s/^  steps: .*/  steps: $steps/" -e "s#\.\./#$(dirname "$(dirname "$recipe")")/#g" "$recipe" >"$work/recipe.yaml"
"$build/corpus/faultline-init" --recipe "$work/recipe.yaml" --seed 1 --out "$work/weights" >/dev/null
bad=0
run() { # name driver schedule fault what `memory` must say, "" = nothing [code of the end]
    local code=0
    "$build/engine/faultline-train" --recipe "$work/recipe.yaml" --weights "$work/weights" --seed 1 --threads 1 \
        --level hashes --driver "$2" --schedule "$3" --fault "$4" --trace "$work/$1" --quiet 2>"$work/said" || code=$?
    local said done
    done=$(grep -c '^{"type":"step"' "$work/$1")
    [ "$code" = "${6:-0}" ] || { echo "$4 under $2 ends with $code: $(cat "$work/said")"; bad=1; }
    [ "$code" = 8 ] || [ "$done" = "$steps" ] || { echo "$4 under $2: $done steps"; bad=1; }
    said=$("$build/tests/check_run" "$work/$1" | cut -f2- | grep '^memory' || true)
    echo "$4, $2, $3, $done steps: ${said:-silent}"
    if [ -z "$5" ]; then [ -z "$said" ] || bad=1; else [[ $said == *"$5"* ]] || bad=1; fi
}
run healthy single fifo none ""
run tasks tasks fifo none ""
run random single random none ""
run host single fifo loader_step_end.leaked:1 "host memory of 'data' grew"
run hosttasks tasks random loader_step_end.leaked:1 "host memory of 'data' grew"
run device single fifo dev_free_return.leaked:1 "bytes live at the end of the step" 8
echo "leaks: $([ $bad = 0 ] && echo "as expected" || echo "problems") over $steps steps"
exit $bad
