#!/usr/bin/env bash
# Runs that stop at the first verdict against whole ones: the same campaign both ways, from nothing, must have the
# same outcome, first check, and steps of reaching, infection and detection, case by case. Prints the speed-up.
#   fast.sh BUILD_DIR SOURCE_DIR [FAULT_PATTERN...]     default: the whole catalogue that pico has triggers for
set -euo pipefail
build=$(readlink -f "${1:?usage: fast.sh BUILD_DIR SOURCE_DIR [FAULT_PATTERN...]}")
source=$(readlink -f "${2:?usage: fast.sh BUILD_DIR SOURCE_DIR [FAULT_PATTERN...]}")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
campaign=(-c "$source/corpus/campaigns/smoke.yaml" --quiet)
for pattern in "$@"; do campaign+=(-F "$pattern"); done

for way in whole fast; do
    options=()
    [ "$way" = fast ] && options=(--first-verdict)
    "$build/harness/faultline" run "${campaign[@]}" "${options[@]}" --out "$work/$way" >"$work/$way.txt" ||
        { cat "$work/$way.txt"; exit 1; }
done
# A campaign that names its checks stops as well, once each of them has fired.
few=("${campaign[@]}" -F 'adamw_mean.*' -F 'norm_rstd.eps_outside' --checks activations,gradients,updates --calibration 8)
"$build/harness/faultline" run "${few[@]}" --out "$work/few" >/dev/null

/usr/bin/python3 - "$work" <<'PY'
import json
import sqlite3
import sys

work = sys.argv[1]


def query(way, sql):
    return sqlite3.connect(f"file:{work}/{way}/results.sqlite?mode=ro", uri=True).execute(sql).fetchall()


def cases(way):
    return {row[0]: row[1:] for row in query(
        way, "select key, outcome, first_check, reached, infected, detected from cases where kind = 'fault'")}


whole, fast = cases("whole"), cases("fast")
assert whole and whole.keys() == fast.keys(), (len(whole), len(fast))
names = ("outcome", "first check", "reached", "infected", "detected")
wrong = [f"{key}: {name} {a} whole, {b} fast" for key in whole
         for name, a, b in zip(names, whole[key], fast[key]) if a != b]
runs = {way: query(way, "select count(*) from runs join cases on key = case_key where kind = 'fault'")[0][0]
        for way in ("whole", "fast")}
short = query("fast", "select count(*) from runs where case_key like 'fault/%' and role = 'subject' and "
              "command like '% --steps 2 %'")[0][0]
summary = {way: json.load(open(f"{work}/{way}/results.json"))["summary"] for way in ("whole", "fast")}
stages = {way: summary[way]["processor_seconds_of_stage"] for way in summary}
stage = {way: stages[way]["faults"] for way in summary}
busy = {way: sum(stages[way].values()) for way in summary}
print(f"{len(whole)} cases, {sum(row[0] == 'detected' for row in whole.values())} detected; runs {runs['whole']} whole, "
      f"{runs['fast']} fast; {short} cases settled by a look of two steps")
print(f"processor time: faults {stage['whole']:.1f} s whole, {stage['fast']:.1f} s fast, speed-up "
      f"{stage['whole'] / stage['fast']:.2f}; campaigns {busy['whole']:.1f} s and {busy['fast']:.1f} s, "
      f"{busy['whole'] / busy['fast']:.2f}; elapsed: campaigns {summary['whole']['seconds']:.1f} s and "
      f"{summary['fast']['seconds']:.1f} s")
for line in wrong:
    print("DIFFERS", line)
assert not wrong, f"{len(wrong)} differences"
assert short > 0 and runs["fast"] < runs["whole"], "nothing stopped"
assert summary["fast"]["detected_alone"] is None
few = query("few", "select count(*) from runs where case_key like 'fault/norm_rstd.eps_outside/%'")[0][0]
assert few == 1, f"a run whose checks have all fired went on: {few} runs"
unfired = query("few", "select count(*) from verdicts where check_name in ('activations', 'gradients', 'updates') "
                "and fired = 0 and case_key like 'fault/adamw_mean.%'")[0][0]
kept = query("few", "select count(*) from runs where case_key like 'fault/adamw_mean.%' and role = 'repeat'")[0][0]
assert unfired > 0 and kept > 0, f"runs with a check that has not fired must go on: {unfired}, {kept}"
PY
