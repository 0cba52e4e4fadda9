#!/usr/bin/env bash
# Lockstep: references that follow the runs they judge, against references that go their own way.
#   lockstep.sh BUILD_DIR SOURCE_DIR        a handful of faults on pico
#   lockstep.sh BUILD_DIR SOURCE_DIR demo   the campaign of ./fl demo in both modes, one seed
set -uo pipefail
build=${1:?usage: lockstep.sh BUILD_DIR SOURCE_DIR [demo]}
source=$(readlink -f "${2:?usage: lockstep.sh BUILD_DIR SOURCE_DIR [demo]}")
faultline=$build/harness/faultline
train=$build/engine/faultline-train
ref=$build/oracles/reference/faultline-ref
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/e2e/expect.sh"
# Step at which a check fires on a fault, or None.
step() { /usr/bin/python3 -c 'import json, sys
faults = json.load(open(sys.argv[1] + "/results.json"))["faults"]
print(next(f for f in faults if f["id"] == sys.argv[2])["checks"].get(sys.argv[3]))' "$@"; }
finish() {
    echo "$checked checked, $failed failed"
    [ "$checked" -gt 0 ] && [ "$failed" = 0 ]
    exit
}

if [ "${3:-}" = demo ]; then
    campaign=(-c "$source/corpus/campaigns/demo.yaml" --repeats 1)
    for mode in free lockstep; do
        code 0 '' "$faultline" run "${campaign[@]}" --mode "$mode" --out "$work/$mode"
        expect "no verdict in mode $mode" 0 "$(field "$work/$mode" summary.no_verdict)"
        tail -n 12 "$work/stdout"
    done
    code 0 '' "$faultline" report --out "$work/lockstep" --against "$work/free"
    cat "$work/stdout"
    expect 'entries compared' 1 "$(grep -c '^entries that count in both: [1-9]' "$work/stdout")"
    finish
fi

campaign=$source/corpus/campaigns/smoke.yaml
small=(-c "$campaign" -F adamw_mean.uncorrected -F sched_lr.scaled -F order_draw.not_shuffled
    -F input_copied_wait.omitted --false-alarms 3)

# Both modes on the same faults.
for mode in free lockstep; do
    code 0 '' "$faultline" run "${small[@]}" --mode "$mode" --out "$work/$mode"
    expect 'mode in the results' "$mode" "$(field "$work/$mode" mode)"
    expect "false alarms in mode $mode" 0 "$(field "$work/$mode" summary.false_alarms)"
    expect "healthy runs in mode $mode" 3 "$(field "$work/$mode" summary.healthy_runs)"
    expect "faults without verdict in mode $mode" 0 "$(field "$work/$mode" summary.no_verdict)"
done
cases=$(query "$work/lockstep" "select count(*) from cases where kind in ('fault', 'planted', 'alarm')")
expect 'cases' 1 "$((cases > 6))"
expect 'a reference for each case' "$cases" "$(query "$work/lockstep" \
    "select count(*) from runs join cases on case_key = key where role = 'reference' and kind != 'artifact' and ending = 'done'")"
expect 'a reference for each calibration run' 1 "$(query "$work/lockstep" \
    "select count(*) >= 16 and count(*) = (select count(*) from runs where role = 'followed') from runs join cases on case_key = key where role = 'reference' and kind = 'artifact'")"
expect 'states left behind' 0 "$(find "$work" -name '*.states' | wc -l)"
runs=$(query "$work/lockstep" 'select count(*) from runs')
code 0 '' "$faultline" run "${small[@]}" --mode lockstep --out "$work/lockstep"
expect 'runs after the same command' "$runs" "$(query "$work/lockstep" 'select count(*) from runs')"

# An optimizer fault shows in the one update; the loss, whose weights are the same again, says nothing.
expect 'updates see the optimizer fault' 1 "$(step "$work/lockstep" adamw_mean.uncorrected updates)"
expect 'training loss in lockstep' None "$(step "$work/lockstep" adamw_mean.uncorrected loss_only)"
expect 'training loss on its own way' 1 "$(($(step "$work/free" adamw_mean.uncorrected loss_only) > 1))"
# Another order stays visible, since the reference keeps its place; numbers are those of the batch adopted.
expect 'order fault by order' "$(step "$work/free" order_draw.not_shuffled order)" "$(step "$work/lockstep" order_draw.not_shuffled order)"
expect 'order fault is seen' 1 "$(($(step "$work/lockstep" order_draw.not_shuffled order) >= 1))"
for check in activations loss gradients updates state; do
    expect "order fault by $check" None "$(step "$work/lockstep" order_draw.not_shuffled "$check")"
done

# Side by side.
code 0 '' "$faultline" report --out "$work/lockstep" --against "$work/free"
expect 'both modes named' 1 "$(grep -c '^detected by lockstep [0-9]*, by free [0-9]*' "$work/stdout")"
expect 'costs named' 1 "$(grep -c '^time of child processes, lockstep over free: [0-9.]*$' "$work/stdout")"
code 1 'no stored results' "$faultline" report --out "$work/lockstep" --against "$work/nowhere"
code 1 'text only' "$faultline" report --out "$work/lockstep" --against "$work/free" --json
code 1 "mode 'both'" "$faultline" run "${small[@]}" --mode both --out "$work/bad"
code 6 'another plan' "$faultline" run "${small[@]}" --mode free --out "$work/lockstep"
code 0 '' "$faultline" replay input_copied_wait.omitted/pico/1 --out "$work/lockstep"

# A reference that fails where it follows a mutant gives no verdict.
cat >"$work/lost" <<END
#!/bin/bash
case "\$*" in *--follow*/fault-adamw_mean*) exit 70 ;; esac
exec "$ref" "\$@"
END
chmod +x "$work/lost"
code 3 '1 faults' "$faultline" run -c "$campaign" -F adamw_mean.uncorrected --checks updates --calibration 3 \
    --false-alarms 0 --mode lockstep --ref "$work/lost" --out "$work/lost.out"

# Beside the run, through a FIFO: the same trace as after it.
recipe=$source/corpus/recipes/pico.yaml
"$build/corpus/faultline-init" --recipe "$recipe" --seed 1 --out "$work/w.safetensors"
follow=("$ref" --recipe "$recipe" --weights "$work/w.safetensors" --seed 1 --level full --cache "$work")
run=("$train" --recipe "$recipe" --weights "$work/w.safetensors" --seed 1 --quiet)
mkfifo "$work/fifo"
"${run[@]}" --states "$work/fifo" &
code 0 '' "${follow[@]}" --follow "$work/fifo" --trace "$work/beside.jsonl"
wait $!
expect 'trainer beside its reference' 0 $?
code 0 '' "${run[@]}" --states "$work/file"
code 0 '' "${follow[@]}" --follow "$work/file" --trace "$work/after.jsonl"
cmp -s <(head -n -1 "$work/beside.jsonl") <(head -n -1 "$work/after.jsonl")
expect 'trace beside and after' 0 $?
expect 'steps of that trace' 16 "$(grep -c '"type":"step"' "$work/after.jsonl")"
finish
