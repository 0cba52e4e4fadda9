#!/usr/bin/env bash
# The harness end to end on pico: campaign, resume after kill -9 and Ctrl-C, reports, gate, bad input.
#   harness.sh BUILD_DIR SOURCE_DIR
set -uo pipefail
build=${1:?usage: harness.sh BUILD_DIR SOURCE_DIR}
source=$(readlink -f "${2:?usage: harness.sh BUILD_DIR SOURCE_DIR}")
faultline=$build/harness/faultline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
campaign=$source/corpus/campaigns/smoke.yaml
small=(-c "$campaign" -F 'norm_*' -F 'adamw_mean.*' -F 'input_copied_wait.*' --false-alarms 2)
. "$source/tests/e2e/expect.sh"
# The table without its last lines, which hold the time.
table() { "$faultline" report --out "$1" | grep -v -e '^time ' -e '^reports:'; }

# A campaign, and the same command again.
code 0 '' "$faultline" run "${small[@]}" --out "$work/whole"
expect 'faults without verdict' 0 "$(field "$work/whole" summary.no_verdict)"
expect 'false alarms' 0 "$(field "$work/whole" summary.false_alarms)"
expect 'healthy runs' 2 "$(field "$work/whole" summary.healthy_runs)"
expect 'more faults detected than missed' 1 \
    "$(($(field "$work/whole" summary.detected) > $(field "$work/whole" summary.missed)))"
runs=$(query "$work/whole" 'select count(*) from runs')
last=$(query "$work/whole" 'select max(id) from runs')
code 0 '' "$faultline" run "${small[@]}" --out "$work/whole"
expect 'runs after the same command' "$runs" "$(query "$work/whole" 'select count(*) from runs')"
expect 'newest run after the same command' "$last" "$(query "$work/whole" 'select max(id) from runs')"
code 0 '' "$faultline" replay input_copied_wait.omitted/pico/1 --out "$work/whole"
expect 'lines of a replay that name both sides' 2 "$(grep -c '^  \(first\|second\) .*engine/.*\.c:[0-9]' <(grep -A3 '^pair 1 ' "$work/stdout"))"
expect 'both sides in the timeline' '1 2' "$(grep -o '^[12]' "$work/stdout" | uniq | tr '\n' ' ' | sed 's/ $//')"
code 0 '' "$faultline" replay input_copied_wait.omitted/pico/1 --out "$work/whole" --schedule aimed
expect 'order of an aimed replay' 1 "$(grep -c '^pair 1 .*the second ran first' "$work/stdout")"
code 1 'no run' "$faultline" replay input_copied_wait.omitted/pico/77 --out "$work/whole"
code 1 "is not a run of Faultline's trainer.*faultline-ref" "$faultline" replay --out "$work/whole" \
    "$(query "$work/whole" "select min(id) from runs where role = 'reference'")"
code 1 'names no run' "$faultline" replay "x' OR 'x" --out "$work/whole"
code 1 'no stored results' "$faultline" replay 1 --out "$work/nowhere"
code 1 'pairs' "$faultline" replay input_copied_wait.omitted/pico/1 --out "$work/whole" --pair 999
code 1 'cannot be run again' "$faultline" replay input_copied_wait.omitted/pico/1 --out "$work/whole" --schedule never
code 6 'another plan' "$faultline" run "${small[@]}" --out "$work/whole" --repeats 2

# kill -9 in the middle of the faults, then the same command: nothing stored runs again, same table.
mkdir "$work/killed"
"$faultline" run "${small[@]}" --out "$work/killed" >/dev/null 2>&1 &
victim=$!
for _ in $(seq 600); do
    [ "$(query "$work/killed" "select count(*) >= 3 from cases where kind = 'fault'" 2>/dev/null)" = 1 ] && break
    sleep 0.1
done
kill -9 "$victim"
wait "$victim" 2>/dev/null
stored=$(query "$work/killed" 'select max(id) from runs')
count=$(query "$work/killed" 'select count(*) from runs')
code 0 '' "$faultline" run "${small[@]}" --out "$work/killed"
expect 'stored runs that ran again' "$count" \
    "$(query "$work/killed" "select count(*) from runs where id <= $stored")"
expect 'table after kill -9' "$(table "$work/whole")" "$(table "$work/killed")"

# Interrupted: exit 130, then it goes on.
"$faultline" run "${small[@]}" --out "$work/stopped" >/dev/null 2>&1 &
victim=$!
sleep 2
kill -TERM "$victim"
wait "$victim"
expect 'exit code when interrupted' 130 $?
code 0 '' "$faultline" run "${small[@]}" --out "$work/stopped"
expect 'table after an interruption' "$(table "$work/whole")" "$(table "$work/stopped")"

# A closed terminal interrupts as well.
"$faultline" run "${small[@]}" --out "$work/hangup" >/dev/null 2>&1 &
victim=$!
sleep 1
kill -HUP "$victim"
wait "$victim"
expect 'exit code after SIGHUP' 130 $?
code 3 '' "$faultline" gate --out "$work/hangup"

# Folders that were removed come back.
cp -a "$work/whole" "$work/bare"
rm -rf "$work/bare/cache" "$work/bare/runs" "$work/bare/logs"
code 0 '' "$faultline" run "${small[@]}" --out "$work/bare"
expect 'runs after the folders were removed' "$runs" "$(query "$work/bare" 'select count(*) from runs')"
expect 'table after the folders were removed' "$(table "$work/whole")" "$(table "$work/bare")"

# Programs that end well and say too little: nothing of it may pass for a result.
cut() { # NAME CONDITION PROGRAM SIZE: a wrapper that cuts the trace to SIZE bytes when CONDITION holds
    cat >"$work/$1" <<EOF
#!/bin/bash
"$3" "\$@" || exit
arguments="\$*"
while [ "\$1" != --trace ]; do shift; done
case \$arguments in $2) truncate -s "<$4" "\$2" ;; esac
EOF
    chmod +x "$work/$1"
}
one=(-c "$campaign" -F adamw_mean.uncorrected --calibration 3 --false-alarms 0)
cut header '*adamw_mean.uncorrected*' "$build/engine/faultline-train" 3000
code 3 '1 faults' "$faultline" run "${one[@]}" --train "$work/header" --out "$work/header.out"
cut half '*' "$build/oracles/reference/faultline-ref" 50000
code 5 'reference.jsonl.zst: a healthy run left no complete trace' \
    "$faultline" run "${one[@]}" --ref "$work/half" --out "$work/half.out"
printf '#!/bin/sh\nexit 0\n' >"$work/silent"
chmod +x "$work/silent"
code 5 'ended well but left no file' "$faultline" run "${one[@]}" --ref "$work/silent" --out "$work/silent.out"
code 1 'names no check' "$faultline" run "${one[@]}" --checks , --out "$work/bad"

# Reports and gate from the database alone.
cp "$work/whole/results.json" "$work/before.json"
rm "$work/whole/results.json" "$work/whole/junit.xml"
code 0 '' "$faultline" report --out "$work/whole" --json
cmp -s "$work/before.json" "$work/whole/results.json"
expect 'results.json made again' 0 $?
xmllint --noout "$work/whole/junit.xml"
expect 'junit.xml is XML' 0 $?
expect 'cells of the null distribution, losses, blamed stages are stored' 1 \
    "$(query "$work/whole" 'select (select count(*) from null_cell) > 1000 and (select count(*) from curve) > 20
       and (select count(*) from blame) > 10')"
expect 'mutants in mutation.json' "$(query "$work/whole" 'select count(*) from entry')" \
    "$("$faultline" report --out "$work/whole" --format stryker | grep -c '"mutatorName"')"
expect 'version of missed.sarif' 1 "$("$faultline" report --out "$work/whole" --format sarif | grep -c '"version": "2.1.0"')"
expect 'fewer checks detect all' 1 "$(($(field "$work/whole" statistics.sets.entries) > 0))"
code 0 '' "$faultline" report --out "$work/whole" --format csv
code 1 'format' "$faultline" report --out "$work/whole" --format pdf
code 1 'results.sqlite' "$faultline" report --out "$work/none"
code 0 '' "$faultline" gate --out "$work/whole" --fail-under 50
code 2 '' "$faultline" gate --out "$work/whole" --fail-under-family loss=1
code 2 '' "$faultline" gate --out "$work/whole" --max-median-steps 0
code 0 '' "$faultline" explain norm_rstd.eps_outside --out "$work/whole"
grep -q 'detected by' "$work/stdout"
expect 'history of a fault' 0 $?

# Bad input.
code 1 'no_such' "$faultline" run -c "$campaign" -F no_such.fault --out "$work/bad"
printf 'name: x\nrecipes: [%s]\nrepeets: 1\n' "$source/corpus/recipes/pico.yaml" >"$work/key.yaml"
code 1 ':3: unknown key' "$faultline" run -c "$work/key.yaml" --out "$work/bad"
sed 's/vocab: 2048/vocab: 2047/' "$source/corpus/recipes/pico.yaml" |
    sed "s#\.\./#$source/corpus/#g" >"$work/vocab.yaml"
printf 'name: x\nrecipes: [vocab.yaml]\n' >"$work/vocab_campaign.yaml"
code 1 'vocab' "$faultline" run -c "$work/vocab_campaign.yaml" --out "$work/bad"
code 1 'reading' env FAULTLINE_REF=/nonexistent/reading "$faultline" run -c "$campaign" --out "$work/bad"

# A full disk: 74, and what was stored before is intact.
if mkdir "$work/disk" && mount -t tmpfs -o size=4m none "$work/disk" 2>/dev/null; then
    code 74 '' "$faultline" run "${small[@]}" --out "$work/disk/out"
    umount "$work/disk"
else
    echo "harness.sh: no tmpfs may be mounted here; the full disk is not tested"
fi

echo "harness.sh: $checked checks, $failed failed"
[ "$checked" -gt 45 ] && [ "$failed" -eq 0 ]
