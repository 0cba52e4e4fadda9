#!/usr/bin/env bash
# kill -9 and a full disk at random moments of a campaign: what was stored stays, nothing of it runs again, and the
# final table is that of a run that nobody disturbed.
#   moments.sh BUILD_DIR SOURCE_DIR MOMENTS [SEED]
set -uo pipefail
build=$(readlink -f "${1:?usage: moments.sh BUILD_DIR SOURCE_DIR MOMENTS [SEED]}")
source=$(readlink -f "${2:?usage: moments.sh BUILD_DIR SOURCE_DIR MOMENTS [SEED]}")
moments=${3:?usage: moments.sh BUILD_DIR SOURCE_DIR MOMENTS [SEED]}
RANDOM=${4:-1}
faultline=$build/harness/faultline
work=$(mktemp -d)
mounted=
cleanup() {
    [ -n "$mounted" ] && umount "$mounted"
    rm -rf "$work"
}
trap cleanup EXIT
# Every stage, every kind of case, and few of each: the moments are what counts.
campaign=(-c "$source/corpus/campaigns/smoke.yaml" -F norm_rstd.eps_outside -F input_copied_wait.omitted
    -F 'model_attention_scale.*' --calibration 3 --false-alarms 1 --quiet)
. "$source/tests/e2e/expect.sh"
table() { "$faultline" report --out "$1" 2>/dev/null | grep -v -e '^time ' -e '^reports:'; }
# Stored runs as "id case role", one a line; the database must be sound. Reads a copy: looking must not repair.
stored() { # FOLDER FILE
    /usr/bin/python3 - "$1" <<'PY' >"$2"
import os, shutil, sqlite3, sys, tempfile
with tempfile.TemporaryDirectory() as copy:
    for name in ("results.sqlite", "results.sqlite-wal"):
        if os.path.exists(f"{sys.argv[1]}/{name}"):
            shutil.copy(f"{sys.argv[1]}/{name}", copy)
    if os.path.exists(f"{copy}/results.sqlite"):
        db = sqlite3.connect(f"{copy}/results.sqlite")
        assert db.execute("pragma integrity_check").fetchone()[0] == "ok"
        if db.execute("select count(*) from sqlite_master where name = 'runs'").fetchone()[0]:
            for row in db.execute("select id, case_key, role from runs order by id"):
                print(*row)
PY
    expect "a sound database in $1" 0 $?
}
# Everything in BEFORE stands in AFTER as well: nothing lost, nothing run again.
kept() { # WHAT BEFORE AFTER
    expect "$1: stored runs that are gone or ran again" 0 "$(grep -vxFf "$3" "$2" | wc -l)"
}

started=$(date +%s%N)
"$faultline" run "${campaign[@]}" --out "$work/whole" >/dev/null 2>"$work/stderr" || { cat "$work/stderr"; exit 1; }
whole_ms=$((($(date +%s%N) - started) / 1000000))
table "$work/whole" >"$work/table"
kinds=$(query "$work/whole" 'select group_concat(kind) from (select distinct kind from cases order by kind)')
expect 'kinds of cases' alarm,artifact,fault,identity,planted "$kinds"
[ "$(wc -l <"$work/table")" -gt 10 ] || { echo "no table to compare with"; exit 1; }

# ---- kill -9 ----
kills=0
campaigns=0
total=0
out=$work/killed0
: >"$work/before"
while [ "$kills" -lt "$moments" ]; do
    "$faultline" run "${campaign[@]}" --out "$out" >/dev/null 2>&1 &
    victim=$!
    # A moment of the whole run, at times of the start alone, where folders and tables are made.
    wait_ms=$((RANDOM * 32768 + RANDOM))
    wait_ms=$((wait_ms % (RANDOM % 3 == 0 ? whole_ms / 8 + 1 : whole_ms)))
    sleep "$((wait_ms / 1000)).$(printf %03d $((wait_ms % 1000)))"
    kill -9 "$victim" 2>/dev/null && kills=$((kills + 1))
    wait "$victim" 2>/dev/null
    stored "$out" "$work/after"
    kept "kill $kills" "$work/before" "$work/after"
    cp "$work/after" "$work/before"
    total=$(wc -l <"$work/after")
    if [ $((RANDOM % 4)) -eq 0 ] || [ "$kills" -eq "$moments" ]; then
        "$faultline" run "${campaign[@]}" --out "$out" >/dev/null 2>"$work/stderr"
        expect "exit code after $kills kills" 0 $?
        stored "$out" "$work/after"
        kept "the end after kill $kills" "$work/before" "$work/after"
        expect "table after kill $kills" "$(cat "$work/table")" "$(table "$out")"
        campaigns=$((campaigns + 1))
        out=$work/killed$campaigns
        : >"$work/before"
    fi
done
echo "moments.sh: $kills kills in $campaigns campaigns of $whole_ms ms, last with $total stored runs"

# ---- a full disk ----
full=0
mkdir "$work/disk"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k tmpfs "$work/disk" 2>/dev/null; then
    mounted=$work/disk
    need_kb=$(du -sk "$work/whole" | cut -f1)
    size_kb=64
    : >"$work/before"
    while [ "$full" -lt "$moments" ]; do
        "$faultline" run "${campaign[@]}" --out "$work/disk/out" >/dev/null 2>"$work/stderr"
        code=$?
        if [ "$code" -eq 0 ]; then
            expect "table after $full full disks" "$(cat "$work/table")" "$(table "$work/disk/out")"
            rm -rf "$work/disk/out"
            mount -o remount,size=64k "$work/disk"
            size_kb=64
            : >"$work/before"
            continue
        fi
        full=$((full + 1))
        expect "exit code on a full disk of $size_kb kB" 74 "$code"
        stored "$work/disk/out" "$work/after"
        kept "full disk of $size_kb kB" "$work/before" "$work/after"
        cp "$work/after" "$work/before"
        size_kb=$((size_kb + 1 + RANDOM % (need_kb / 6 + 1)))
        mount -o remount,size=${size_kb}k "$work/disk"
    done
    mount -o remount,size=$((need_kb * 4 + 65536))k "$work/disk"
    "$faultline" run "${campaign[@]}" --out "$work/disk/out" >/dev/null 2>"$work/stderr"
    expect 'exit code once there is room' 0 $?
    stored "$work/disk/out" "$work/after"
    kept 'the end after full disks' "$work/before" "$work/after"
    expect 'table after full disks' "$(cat "$work/table")" "$(table "$work/disk/out")"
    echo "moments.sh: $full full disks"
else
    echo "moments.sh: no tmpfs may be mounted here; full disks are not tested"
fi
echo "moments.sh: $checked checks, $failed failed"
[ "$checked" -gt "$((2 * moments))" ] && [ "$failed" -eq 0 ]
