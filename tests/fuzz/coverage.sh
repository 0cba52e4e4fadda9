#!/usr/bin/env bash
# Lines of its module that each target runs: from the seeds, and what its fuzzer finds within SECONDS. Prints a table; exit code 1
# when a module stays below 85 %. Needs the presets coverage (replays) and, unless SECONDS is 0, fuzz.
#   coverage.sh TOP SECONDS [TARGET...]
set -euo pipefail
top=$(readlink -f "${1:?usage: coverage.sh TOP SECONDS [TARGET...]}") seconds=${2:?usage: coverage.sh TOP SECONDS [TARGET...]}
shift 2
replays=$top/build/coverage/tests
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

# target and the sources it is there for
modules="
dataset engine/data/data_files.c
json engine/data/json_record.c engine/text/json_reader.c
unpack engine/data/unpack.c
tokenizer engine/text/tokenizer_json.c engine/text/tokenizer_json_members.c engine/text/tokenizer_json_settings.c engine/text/tokenizer.c engine/text/vocab.c
ranks engine/text/tokenizer_ranks.c
split engine/text/text_split.c
normal engine/text/text_normal.c
bpe engine/text/bpe.c
encode engine/text/text_encode.c engine/text/text_control.c
layout engine/text/layout.c
template_parse engine/text/jinja
template_render engine/text/template.c
rows engine/data/labels.c engine/data/packing.c
loader engine/data/loader engine/data/documents.c engine/data/order.c
recipe engine/train/recipe oracles/reference/ref_recipe.c
weights engine/model/model_files.c oracles/reference/ref_weights.c
trace oracles/checks/orc_trace oracles/checks/orc_step_read.c oracles/checks/orc_file.c
bounds oracles/checks/orc_bounds
campaign harness/har_campaign.c harness/har_yaml.c
"
low=0
printf '%-16s %6s %8s %7s  %s\n' target lines covered share module
while read -r target files; do
    [ -n "$target" ] || continue
    [ $# -eq 0 ] || [[ " $* " == *" $target "* ]] || continue
    mkdir -p "$work/$target"
    if [ "$seconds" -gt 0 ]; then
        words=()
        [ -f "$top/tests/fuzz/$target.dict" ] && words=(-dict="$top/tests/fuzz/$target.dict")
        "$top/build/fuzz/tests/fuzz_$target" -max_total_time="$seconds" -verbosity=0 "${words[@]}" \
            "$work/$target" "$top/corpus/seeds/$target" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    fi
    folders=("$top/corpus/seeds/$target")
    [ -z "$(ls -A "$work/$target")" ] || folders+=("$work/$target")
    LLVM_PROFILE_FILE=$work/$target.raw "$replays/fuzz_replay_$target" "${folders[@]}" >"$work/log" 2>&1 ||
        { tail -5 "$work/log" >&2; exit 1; }
    llvm-profdata merge -o "$work/$target.data" "$work/$target.raw"
    llvm-cov export -summary-only -instr-profile="$work/$target.data" "$replays/fuzz_replay_$target" >"$work/$target.json"
    # shellcheck disable=SC2086
    python3 - "$work/$target.json" "$target" "$top" $files <<'PYTHON' || low=1
import json, os.path, sys
_, path, target, top, *prefixes = sys.argv
lines = covered = 0
for file in json.load(open(path))["data"][0]["files"]:
    name = os.path.relpath(os.path.normpath(file["filename"]), top)
    if any(name.startswith(prefix) and name.endswith(".c") for prefix in prefixes):
        lines += file["summary"]["lines"]["count"]
        covered += file["summary"]["lines"]["covered"]
if lines == 0:
    sys.exit(f"{target}: none of {prefixes} is in the program")
print(f"{target:16} {lines:6} {covered:8} {100 * covered / lines:6.1f}%  {' '.join(prefixes)}")
sys.exit(covered / lines < 0.85)
PYTHON
done <<<"$modules"
exit "$low"
