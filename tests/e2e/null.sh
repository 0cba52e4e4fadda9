#!/usr/bin/env bash
# Healthy runs of two builds of the trainer: who makes which, and that neither is spared.
#   null.sh BUILD_DIR SOURCE_DIR [SECOND_TRAINER]     default: a copy of the first
set -uo pipefail
build=${1:?usage: null.sh BUILD_DIR SOURCE_DIR [SECOND_TRAINER]}
source=$(readlink -f "${2:?usage: null.sh BUILD_DIR SOURCE_DIR [SECOND_TRAINER]}")
faultline=$build/harness/faultline
train=$build/engine/faultline-train
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/e2e/expect.sh"
small=(-c "$source/corpus/campaigns/smoke.yaml" --calibration 4 --false-alarms 6 --quiet)
second=${3:-$work/second}
[ -n "${3:-}" ] || cp "$train" "$second"
by_second() { # FOLDER CONDITION
    query "$1" "select count(distinct case_key) from runs join cases on key = case_key where command like '$second %' and $2"
}

for mode in free lockstep; do
    out=$work/$mode
    code 0 '' "$faultline" null "${small[@]}" --also-train "$second" --mode "$mode" --out "$out"
    role=$([ $mode = free ] && echo healthy || echo followed)
    expect "calibration runs by the second build, $mode" 2 "$(by_second "$out" "kind = 'artifact' and role = '$role' and seed between 1000001 and 1999999")"
    expect "false-alarm runs by the second build, $mode" 3 "$(by_second "$out" "kind = 'alarm' and role = 'subject'")"
    expect "companions of the same build, $mode" 3 "$(by_second "$out" "kind = 'alarm' and role = 'repeat'")"
    expect "the other false-alarm runs, $mode" 3 "$(query "$out" "select count(*) from runs where role = 'subject' and case_key like 'alarm/%' and command like '$(readlink -f "$train") %'")"
    expect "schedules and drivers of the second build's runs, $mode" 3 "$(query "$out" "select count(distinct substr(command, instr(command, '--schedule '))) from runs where role = 'subject' and case_key like 'alarm/%' and command like '$second %'")"
    grep -q "of these by the second build .*: false alarms: 0 of 3 healthy runs" "$work/stdout"
    expect "the second build's alarms are told, $mode" 0 $?
done

# A second build that is not healthy: in false-alarm runs, then also in calibration.
broken() { # PATTERN of seeds
    cat >"$work/broken" <<EOF
#!/bin/bash
for word; do
    [ "\$before" = --seed ] && seed=\$word
    [ "\$before" = --fault ] && case \$seed in $1) word=norm_rstd.eps_outside ;; esac
    words+=("\$word")
    before=\$word
done
exec "$train" "\${words[@]}"
EOF
    chmod +x "$work/broken"
}
broken '2??????'
code 4 '3 of 6 healthy runs raised an alarm' "$faultline" null "${small[@]}" --also-train "$work/broken" --out "$work/broken.out"
grep -q 'of these by the second build .*: false alarms: 3 of 3 healthy runs' "$work/stdout"
expect 'whose alarms they are' 0 $?
code 6 'another plan' "$faultline" null "${small[@]}" --out "$work/broken.out"
code 1 'no such program (from --also-train)' "$faultline" null "${small[@]}" --also-train "$work/none" --out "$work/bad"
printf 'name: x\nrecipes: [%s]\nalso_train: none\n' "$source/corpus/recipes/pico.yaml" >"$work/key.yaml"
code 1 'none: no such program (from .*key.yaml)' "$faultline" null -c "$work/key.yaml" --out "$work/bad"

echo "null.sh: $checked checks, $failed failed"
[ "$checked" -gt 20 ] && [ "$failed" -eq 0 ]
