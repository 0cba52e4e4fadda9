#!/usr/bin/env bash
# Shards and their merge, what narrows a plan, reproduction, and the gate in each of its exit codes, on pico.
#   gate.sh BUILD_DIR SOURCE_DIR
set -uo pipefail
build=$(readlink -f "${1:?usage: gate.sh BUILD_DIR SOURCE_DIR}")
source=$(readlink -f "${2:?usage: gate.sh BUILD_DIR SOURCE_DIR}")
faultline=$build/harness/faultline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
campaign=$source/corpus/campaigns/smoke.yaml
small=(-c "$campaign" -F 'norm_*' -F 'adamw_mean.*' -F 'model_attention_scale.*' --false-alarms 2 --calibration 8 --quiet)
. "$source/tests/e2e/expect.sh"
code() { # expected-code words command...: the words stand in what it prints
    local expected=$1 words=$2
    shift 2
    "$@" >stdout.txt 2>stderr.txt
    expect "exit code of ${*:2}" "$expected" $?
    [ -z "$words" ] && return
    checked=$((checked + 1))
    cat stdout.txt stderr.txt | grep -qF -- "$words" || {
        echo "FAILED: '$words' not said by ${*:2}: $(cat stdout.txt stderr.txt | tail -n 5)"
        failed=$((failed + 1))
    }
}
sql() { # DIR STATEMENT...: changes a stored campaign, or prints one value
    /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1] + "/results.sqlite")
for statement in sys.argv[2:]:
    row = db.execute(statement).fetchone()
    if row: print(row[0])
db.commit()' "$@"
}
table() { "$faultline" report --out "$1" | grep -v -e '^time ' -e '^reports:'; }

# ---- shards ----
code 0 '' "$faultline" run "${small[@]}" --out whole
for k in 1 2 3; do
    code 0 '' "$faultline" run "${small[@]}" --shard "$k/3" --out "part$k"
done
expect 'entries of the shards' "$(sql whole 'select count(*) from entry')" \
    $(($(sql part1 'select count(*) from entry') + $(sql part2 'select count(*) from entry') + $(sql part3 'select count(*) from entry')))
code 6 'shard 2/3 is missing' "$faultline" merge --out merged part1 part3
code 6 'are both shard 1/3' "$faultline" merge --out merged part1 part2 part1
code 6 'holds no shard' "$faultline" merge --out merged part1 part2 whole
expect 'a refused merge leaves nothing' 1 "$(test -e merged/results.sqlite; echo $?)"
code 0 '' "$faultline" merge --out merged part3 part1 part2
expect 'table of the merged shards' "$(table whole)" "$(table merged)"
expect 'lines of the table' 0 "$([ "$(table merged | wc -l)" -gt 12 ]; echo $?)"
code 0 '' "$faultline" merge --out merged part1 part2 part3
code 6 'holds other results' "$faultline" merge --out whole part1 part2 part3
code 6 'holds shard 1/3' "$faultline" run "${small[@]}" --shard 2/3 --out part1
code 1 'K from 1 to N' "$faultline" run "${small[@]}" --shard 0/3 --out other
code 1 'the plan has' "$faultline" run "${small[@]}" --shard 1/900 --out other
cp -r part2 foreign
sql foreign "update meta set value = '0000000000000000' where key = 'plan_hash'"
code 6 'different plans' "$faultline" merge --out merged2 part1 foreign part3
cp -r part2 bounds
sql bounds "update bounds set json = json || ' '"
code 6 'bounds of recipe' "$faultline" merge --out merged2 part1 bounds part3
cp -r part2 fewer
sql fewer 'delete from entry where position = (select min(position) from entry)'
code 6 'entries of the plan' "$faultline" merge --out merged2 part1 fewer part3
cp -r part2 unfinished
sql unfinished "delete from meta where key = 'finished'" "delete from cases where kind = 'fault'"
code 3 'no verdict' "$faultline" merge --out merged3 part1 unfinished part3
code 3 'did not come to its end' "$faultline" gate --out merged3
code 3 'only shard 2/3' "$faultline" gate --out part2

# ---- every result prints the command that makes it again ----
again() { # ENTRY: runs its command and compares outcome and verdicts
    local line query="select group_concat(check_name || step || applicable || fired) from verdicts join cases on key = case_key
        where kind = 'fault' and entry = '$1'"
    line=$(sql whole "select reproduce from cases where kind = 'fault' and entry = '$1'")
    rm -rf repro
    sh -c "$build/harness/$line" >stdout.txt 2>stderr.txt
    expect "verdicts of $1 made again" "$(sql whole "$query")" "$(sql repro "$query")"
}
again norm_rstd.eps_outside
again model_attention_scale.scaled:0.0001

# ---- what narrows a plan ----
cp whole/results.json baseline.json
code 0 '' "$faultline" run "${small[@]}" --baseline baseline.json --iterate --out iterated
expect 'what is left to iterate' "$(sql whole "select count(distinct entry) from cases where kind = 'fault' and outcome <> 'detected'")" \
    "$(sql iterated 'select count(*) from entry')"
code 1 'needs --baseline' "$faultline" run "${small[@]}" --iterate --out other
code 1 'nonsense' "$faultline" run "${small[@]}" --dose nonsense --out other
code 0 'model_attention_scale.scaled:0.5' "$faultline" run -c "$campaign" -F 'model_attention_scale.*' --dose largest,0.5 -n --out other
if git -C "$source" rev-parse -q --verify HEAD >/dev/null 2>&1; then
    code 1 'git in' "$faultline" run "${small[@]}" --changed-since no-such-revision -n --out other
    copy=$work/copy # a tree of its own, so that nothing of this one is touched
    mkdir -p "$copy/build" && (cd "$source" && git ls-files -z | xargs -0 cp -p --parents -t "$copy") &&
        cp -r "$build/harness" "$build/engine" "$build/oracles" "$build/corpus" "$copy/build/" 2>/dev/null
    (cd "$copy" && git init -q && git add -A . && git -c user.name=t -c user.email=t@t commit -qm t) >/dev/null 2>&1
    ours=("$copy/build/harness/faultline" run -c "$copy/corpus/campaigns/smoke.yaml" --calibration 3 --false-alarms 0 --quiet)
    code 0 '0 entries' "${ours[@]}" --changed-since HEAD -n --out plan0
    code 0 '' "${ours[@]}" --changed-since HEAD --out plan1
    code 0 'no fault to run' "$copy/build/harness/faultline" gate --out plan1 --fail-under 90
    echo '/* changed */' >>"$copy/kernels/norm.cu"
    code 0 'norm_rstd.eps_outside' "${ours[@]}" --changed-since HEAD -n --out plan2
    expect 'faults of other files' 0 "$(grep -c adamw_ stdout.txt)"
    echo '/* changed */' >>"$copy/mutants/optimizer.def"
    code 0 'adamw_mean.uncorrected' "${ours[@]}" --changed-since HEAD -n --out plan3
fi

# ---- the gate: 0 2 3 4 5 6 1 74 ----
missed=$(sql whole "select count(distinct entry) from cases where kind = 'fault' and outcome <> 'detected'")
expect 'a miss to work with' 0 "$([ "$missed" -ge 1 ]; echo $?)"
code 0 'gate passed' "$faultline" gate --out whole
code 2 'is below 100 %' "$faultline" gate --out whole --fail-under 100
code 2 'median steps' "$faultline" gate --out whole --max-median-steps 0
code 0 'gate passed' "$faultline" gate --out whole --baseline baseline.json --fail-under 10
sed 's/"outcome": "missed"/"outcome": "detected"/' baseline.json >better.json
code 2 'better.json has it detected' "$faultline" gate --out whole --baseline better.json --fail-under 10
sed 's/"campaign": "smoke"/"campaign": "other"/' baseline.json >other.json
code 6 'is of campaign other' "$faultline" gate --out whole --baseline other.json
code 6 'is no results.json' "$faultline" gate --out whole --baseline <(echo '{}')
code 1 'none.json' "$faultline" gate --out whole --baseline none.json
printf 'known:\n  - fault: model_attention_scale.*\n    reason: below single precision\n    expires: 2030-06-30\n' >known.yaml
code 0 'known until 2030-06-30: below single precision' env FAULTLINE_TODAY=2030-06-30 "$faultline" gate --out whole --known known.yaml
code 2 'it was known until 2030-06-30' env FAULTLINE_TODAY=2030-07-01 "$faultline" gate --out whole --known known.yaml
echo 'known: []' >nothing.yaml
code 2 'no known miss' "$faultline" gate --out whole --known nothing.yaml
echo 'known: [{fault: x, reason: y}]' >bad.yaml
code 1 'expires' "$faultline" gate --out whole --known bad.yaml
code 1 'auto, github or none' "$faultline" gate --out whole --annotations loud
code 74 'no/such/file' "$faultline" gate --out whole --summary no/such/file
code 0 '::error file=engine/model/model_forward.c,line=' "$faultline" gate --out whole --annotations github --summary summary.md
grep -q 'Gate: passed' summary.md
expect 'the summary' 0 $?
code 0 '::error' env GITHUB_ACTIONS=true "$faultline" gate --out whole
code 0 '' "$faultline" gate --out whole
expect 'annotations elsewhere' 0 "$(grep -c '^::' stdout.txt)"
state() { # NAME STATEMENT: a copy of the campaign with one fact changed
    rm -rf "$1" && cp -r whole "$1" && sql "$1" "${@:2}"
}
state alarm "update cases set outcome = 'alarm' where key = (select key from cases where kind = 'alarm' limit 1)"
code 4 'false alarms: 1' "$faultline" gate --out alarm
code 0 '' "$faultline" gate --out alarm --max-false-alarms 1
state lost "update cases set outcome = 'no_verdict' where key = (select key from cases where kind = 'fault' limit 1)"
code 3 'without verdict: 1' "$faultline" gate --out lost
code 0 '' "$faultline" gate --out lost --max-no-verdict 1
state control "update meta set value = 'failed: the planted fault is not detected' where key = 'controls'"
code 5 'controls: failed' "$faultline" gate --out control
state early "delete from meta where key in ('controls', 'finished')"
code 3 'controls: not finished' "$faultline" gate --out early
state stopped "delete from meta where key = 'finished'"
code 3 'did not come to its end' "$faultline" gate --out stopped
code 1 'results.sqlite' "$faultline" gate --out nowhere
code 2 '"exit_code": 2' "$faultline" gate --out whole --fail-under 100 --json
"$faultline" gate --out whole >/dev/full 2>stderr.txt
expect 'exit code of a gate that cannot print' 74 $?

echo "gate.sh: $checked checks, $failed failed"
[ "$checked" -gt 90 ] && [ "$failed" -eq 0 ]
