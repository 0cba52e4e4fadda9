#!/usr/bin/env bash
# A small campaign, then its mutation.json, missed.sarif and report.html judged by schemas and a browser.
#   web.sh BUILD_DIR SOURCE_DIR OUT [RESULTS_FOLDER]
set -euo pipefail
build=${1:?usage: web.sh BUILD_DIR SOURCE_DIR OUT [RESULTS_FOLDER]}
source=$(readlink -f "${2:?}")
out=${3:?}
here=$source/tests/web
mkdir -p "$out"
cp "$here"/package.json "$here"/package-lock.json "$out"/
(cd "$out" && npm ci --no-audit --no-fund >npm.log 2>&1) || { cat "$out/npm.log"; exit 1; }
results=${4:-$out/results}
campaign=(run -c "$source/corpus/campaigns/smoke.yaml" -F 'adamw_*' -F 'layout_*' -F 'input_*' -F 'model_attention_scale.*'
    -F 'dev_malloc_size.*' --false-alarms 3)
if [ $# -lt 4 ]; then
    rm -rf "$results" "$results-lockstep"
    "$build/harness/faultline" "${campaign[@]}" --out "$results" >"$out/run.log"
    "$build/harness/faultline" "${campaign[@]}" --mode lockstep --out "$results-lockstep" >"$out/run-lockstep.log"
    node "$here/page_test.mjs" "$results-lockstep" "$out/screenshots-lockstep" "$out"
fi
node "$here/schema_test.mjs" "$results" "$out"
node "$here/page_test.mjs" "$results" "$out/screenshots" "$out"
