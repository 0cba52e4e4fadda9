#!/usr/bin/env bash
# A trainer, a second trainer and an oracle of one's own (harness/examples/own_stack): outcomes, shards, the command
# that reproduces a result, and commands that break the protocol in every way.
#   own_stack.sh BUILD_DIR SOURCE_DIR
set -uo pipefail
build=$(readlink -f "${1:?usage: own_stack.sh BUILD_DIR SOURCE_DIR}")
source=$(readlink -f "${2:?usage: own_stack.sh BUILD_DIR SOURCE_DIR}")
faultline=$build/harness/faultline
example=$source/harness/examples/own_stack
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=/usr/bin:$PATH PYTHONDONTWRITEBYTECODE=1
. "$source/tests/e2e/expect.sh"
code() { # expected-code words-in-output command...
    local expected=$1 words=$2
    shift 2
    "$@" >"$work/output" 2>&1
    expect "exit code of ${*:2}" "$expected" $?
    if ! grep -q -- "$words" "$work/output"; then
        echo "FAILED: '$words' not said by ${*:2}: $(tail -5 "$work/output")"
        failed=$((failed + 1))
    fi
    checked=$((checked + 1))
}
query() { python3 -c 'import sqlite3, sys
print(sqlite3.connect(f"file:{sys.argv[1]}/results.sqlite?mode=ro", uri=True).execute(sys.argv[2]).fetchone()[0])' "$work/$1" "$2"; }
field() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1] + "/" + sys.argv[2]))
for key in sys.argv[3].split(sys.argv[4] if len(sys.argv) > 4 else "/"): value = value[int(key)] if isinstance(value, list) else value[key]
print(value)' "$work/$1" "${@:2}"; }
fault() { python3 -c 'import json, sys
f, = [f for f in json.load(open(sys.argv[1] + "/results.json"))["faults"] if f["id"] == sys.argv[2]]
print(f["outcome"], f["first_check"], f["reached_step"], f["detected_step"])' "$work/$1" "$2"; }
table() { "$faultline" report --out "$work/$1" | grep -v -e '^time ' -e '^reports:' -e ' s a case:'; }

# The campaign as it is shipped.
campaign=$example/own_stack.yaml
code 0 'external oracle: fires on the planted fault, false alarms 0 of 3 healthy runs, no verdict in 0 of 7 cases$' \
    "$faultline" run -c "$campaign" --keep-traces -o "$work/whole"
expect 'a summed gradient' 'detected gradients 1 1' "$(fault whole loss_mean.summed)"
expect 'a decayed bias' 'detected updates 1 2' "$(fault whole decay_bias.decayed)"
expect 'an order that stays' 'detected order 6 6' "$(fault whole order_epoch.never_mixed)"
expect 'the oracle alone' 2 "$(field whole results.json summary/detected_alone/external)"
place() { field whole mutation.json "files@$example/train_softmax.py@$1" @; }
expect 'place of a fault' 1 "$(sed -n "$(place mutants@0@location@start@line)p" "$example/train_softmax.py" |
    grep -c 'armed("order_epoch.never_mixed")')"
expect 'language' python "$(place language)"
code 0 'train_softmax.py:[0-9]*: error / rows' "$faultline" explain loss_mean.summed -o "$work/whole"
code 1 'unknown fault' "$faultline" explain loss_mean.summed -o "$work/nowhere"
runs=$(query whole 'select count(*) from runs')
code 0 '' "$faultline" run -c "$campaign" -o "$work/whole"
expect 'runs after the same command' "$runs" "$(query whole 'select count(*) from runs')"
code 6 'another plan' "$faultline" run -c "$campaign" --external true -o "$work/whole"
code 1 "is not a run of Faultline's trainer.*it was /usr/bin/env FAULTLINE_FAULT=loss_mean.summed .*train_softmax.py" \
    "$faultline" replay loss_mean.summed/softmax/1 -o "$work/whole"

# From here on the trainers copy the traces of that campaign, so that a run costs next to nothing.
mkdir "$work/copies"
cp "$work/whole"/cache/*/*.jsonl "$work/copies"
for id in loss_mean.summed decay_bias.decayed order_epoch.never_mixed; do
    cp "$work/whole/runs/fault-$id-softmax-1/subject.jsonl" "$work/copies/1-$id.jsonl"
done
python3 "$example/train_softmax.py" --faults --json >"$work/copies/faults.json"
cat >"$work/copies/trainer" <<'END'
#!/bin/sh
copies=$(dirname "$0")
[ "$1" = --faults ] && exec cat "$copies/faults.json"
while [ $# -gt 1 ]; do
    case $1 in --seed) seed=$2 ;; --trace) trace=$2 ;; esac
    shift
done
case $FAULTLINE_FAULT in none) kind=${KIND:-healthy-fifo-single} ;; *) kind=$FAULTLINE_FAULT ;; esac
exec cp "$copies/$seed-$kind.jsonl" "$trace"
END
printf '#!/bin/sh\nKIND=reference exec "$(dirname "$0")/trainer" "$@"\n' >"$work/copies/second"
chmod +x "$work/copies/trainer" "$work/copies/second"
sed -e 's/^trainer:.*/trainer: trainer/' -e 's/^reference:.*/reference: second/' -e "s#loss_oracle#$example/&#" \
    -e "s#\[softmax#[$example/softmax#" "$campaign" >"$work/copies/all.yaml"
for k in 1 2 3; do
    code 0 '' "$faultline" run -c "$work/copies/all.yaml" --shard $k/3 -o "$work/part$k"
done
code 0 '' "$faultline" merge -o "$work/merged" "$work"/part[123]
expect 'three shards merged' "$(table whole)" "$(table merged)"

# How good the oracle is alone: it misses what moves the loss by less than its band.
code 0 'detected 2 of 3' "$faultline" run -c "$work/copies/all.yaml" --checks external,curve -o "$work/alone"
expect 'the oracle on a summed gradient' 'detected external 1 2' "$(fault alone loss_mean.summed)"
expect 'the oracle on an order that stays' 'detected external 6 6' "$(fault alone order_epoch.never_mixed)"
expect 'the oracle on a decayed bias' 'missed None 1 None' "$(fault alone decay_bias.decayed)"
code 2 'rate' "$faultline" gate -o "$work/alone" --fail-under 90
command=$(python3 -c 'import json, sys
print([f["reproduce"] for f in json.load(open(sys.argv[1]))["faults"] if f["outcome"] == "missed"][0])' "$work/alone/results.json")
(cd "$work" && PATH=$build/harness:$PATH sh -c "$command" >/dev/null)
expect 'a result made again' 'missed None 1 None' "$(fault repro decay_bias.decayed)"

# Oracles that break the protocol: nothing is credited to them, the other checks go on.
few=(--calibration 3 --false-alarms 1 --checks loss,external -F loss_mean.summed)
sed -e '/^external:/d' "$work/copies/all.yaml" >"$work/copies/few.yaml"
sed -e '$aexternal_timeout: 2' "$work/copies/few.yaml" >"$work/copies/short.yaml"
oracle() { # name words shell-command [campaign]
    printf '#!/bin/sh\n%s\n' "$3" >"$work/$1.sh"
    chmod +x "$work/$1.sh"
    code 3 'does not fire on the planted fault.*no verdict in 3 of 3 cases: not calibrated' \
        "$faultline" run -c "$work/copies/${4:-few}.yaml" "${few[@]}" --external "$work/$1.sh" -o "$work/$1"
    expect "$1: nothing is credited to it" 0 "$(query "$1" "select sum(fired) from verdicts where check_name = 'external'")"
    expect "$1: the fault is still detected" 'detected loss 1 2' "$(fault "$1" loss_mean.summed)"
    expect "$1: the reason" 3 "$(query "$1" "select count(*) from verdicts where check_name = 'external' and detail like '%$2%'")"
    expect "$1: the healthy run" no_verdict "$(query "$1" "select outcome from cases where kind = 'alarm'")"
}
oracle garbage 'no JSON' "echo '{\"step\": 2, \"mess'; exit 2"
oracle speechless 'without a line' 'exit 2'
oracle endless 'past its time' 'sleep 600' short
oracle killed 'code 137' 'exit 137'
oracle suicidal 'signal 9' 'kill -9 $$'
oracle talkative 'code 1,' 'head -c 9000000 /dev/zero | tr "\0" x; exit 1'
expect 'what a talkative oracle may leave' 3 "$(find "$work/talkative/logs" -name '*.answer' -size +1000k -size -1100k | wc -l)"
cat >"$work/nervous.sh" <<'END'
#!/bin/sh
head -c 9000000 /dev/zero | tr '\0' x
echo
echo '{"step": 1, "message": "always"}'
exit 2
END
chmod +x "$work/nervous.sh"
code 4 'false alarms 1 of 1 healthy runs.*: not calibrated' \
    "$faultline" run -c "$work/copies/few.yaml" "${few[@]}" --external "$work/nervous.sh" -o "$work/nervous"
code 5 'is not detected but no_verdict' "$faultline" run -c "$work/copies/few.yaml" "${few[@]}" --checks external \
    --external "$work/killed.sh" -o "$work/sole"
code 1 'no-such-oracle: no such program' "$faultline" run -c "$campaign" --external no-such-oracle -o "$work/none"
sed 's/^external:.*/external: no-such-oracle/' "$campaign" >"$work/none.yaml"
code 1 'none.yaml: external: no-such-oracle: no such program' "$faultline" run -c "$work/none.yaml" -o "$work/none"

# Trainers that do.
trainer() { # name code words shell-text: a trainer that answers --faults --json, or trains, by this text
    printf '#!/bin/sh\nreal() { exec %s "$@"; }\n%s\n' "$work/copies/trainer" "$4" >"$work/$1.sh"
    chmod +x "$work/$1.sh"
    sed -e "s#^trainer:.*#trainer: $work/$1.sh#" "$work/copies/short.yaml" >"$work/copies/$1.yaml"
    code "$2" "$3" "$faultline" run -c "$work/copies/$1.yaml" --calibration 3 --false-alarms 0 --checks loss \
        -F loss_mean.summed -o "$work/$1"
}
trainer works 0 'detected 1 of 1' 'real "$@"'
trainer babbles 1 'trainer --faults --json: line 1: no JSON' 'echo hello'
trainer silent 1 'no JSON' 'exit 0'
trainer refuses 1 'trainer --faults --json rejected its input: no such option' 'echo no such option >&2; exit 1'
trainer hangs 1 'ran past its time' 'sleep 600'
trainer floods 1 'no JSON' 'head -c 9000000 /dev/zero | tr "\0" "["'
trainer odd 1 'fault 1 (a): family is one of template.*not mine' \
    'echo "[{\"id\": \"a\", \"family\": \"mine\", \"class\": \"loss\", \"why\": \"w\"}]"'
trainer other 1 'selects nothing' 'case $1 in --faults) ;; *) real "$@" ;; esac
     echo "[{\"id\": \"a\", \"family\": \"data\", \"class\": \"loss\", \"why\": \"w\"}]"'
trainer dies 1 'unarmed healthy run rejected its input: no device' \
    'case $1 in --faults) real "$@" ;; esac; echo no device >&2; exit 1'
trainer traceless 5 'ended well but left no file' 'case $1 in --faults) real "$@" ;; esac'
trainer scribbles 5 'not one JSON object' \
    'case $1 in --faults) real "$@" ;; esac; while [ "$1" != --trace ]; do shift; done; echo hello >"$2"'
trainer mute 5 'planted fault loss_mean.summed is not detected but no_verdict' \
    'case $1 in --faults) real "$@" ;; esac; "'"$work"'/copies/trainer" "$@"
     while [ "$1" != --trace ]; do shift; done; sed -i "s/,.fault_reached.:[-0-9]*//" "$2"'
code 1 'no-such-trainer: no such program' "$faultline" run -o "$work/none" \
    -c <(sed "s/^trainer:.*/trainer: no-such-trainer/" "$campaign")

# Without a second trainer: the checks that need none.
sed -e 's/^reference:.*/reference: none/' "$work/copies/few.yaml" >"$work/copies/one.yaml"
code 0 'entries 1' "$faultline" run -c "$work/copies/one.yaml" --calibration 3 --false-alarms 1 -F loss_mean.summed \
    -o "$work/one"
expect 'checks without a second trainer' 'curve,invariants,memory,repeat' "$(query one \
    'select group_concat(check_name) from (select distinct check_name from verdicts where applicable order by 1)')"

# The built-in reference judges a trainer of one's own on a recipe of Faultline: here the engine plays that part.
cat >"$work/engine.sh" <<END
#!/bin/sh
[ "\$1" = --faults ] && exec "$faultline" list --json -F adamw_mean.uncorrected
exec "$build/engine/faultline-train" --level full --quiet "\$@"
END
chmod +x "$work/engine.sh"
cat >"$work/engine.yaml" <<END
name: engine
trainer: $work/engine.sh
reference: faultline-ref
external: python3 $example/loss_oracle.py
recipes: [$source/corpus/recipes/pico.yaml]
planted: adamw_mean.uncorrected
calibration: 3
false_alarms: 1
END
code 0 'detected 1 of 1' "$faultline" run -c "$work/engine.yaml" -o "$work/engine"
expect 'the engine in that part' 'detected updates 1 1' "$(fault engine adamw_mean.uncorrected)"

echo "own stack: $checked comparisons, $failed failed"
[ "$checked" -gt 90 ] && [ "$failed" -eq 0 ]
