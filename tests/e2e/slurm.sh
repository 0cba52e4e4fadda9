#!/usr/bin/env bash
# `faultline run --slurm` against a real Slurm on this machine, started and stopped here: the merged table is that of
# one run, and a second call runs nothing again. Needs root and Debian's slurm-wlm (77 = skipped without).
#   slurm.sh BUILD_DIR SOURCE_DIR
set -uo pipefail
build=$(readlink -f "${1:?usage: slurm.sh BUILD_DIR SOURCE_DIR}")
source=$(readlink -f "${2:?usage: slurm.sh BUILD_DIR SOURCE_DIR}")
faultline=$build/harness/faultline
for program in munged slurmctld slurmd sbatch sinfo; do
    command -v "$program" >/dev/null || { echo "slurm.sh: skipped, no $program (apt-get install slurm-wlm)"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo 'slurm.sh: skipped, needs root'; exit 77; }
work=$(mktemp -d)
chmod 755 "$work"
munge_pid=
stop() { # PIDFILE
    [ -s "$1" ] && kill "$(cat "$1")" 2>/dev/null && sleep 1
}
cleanup() {
    stop "$work/slurmd.pid"
    stop "$work/slurmctld.pid"
    [ -n "$munge_pid" ] && kill "$munge_pid" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
host=$(hostname -s)
cores=$(nproc)
mkdir -p "$work/state" "$work/spool"
# munged of its own, with its own key and socket.
head -c 1024 /dev/urandom >"$work/munge.key"
mkdir "$work/munge"
chown -R munge: "$work/munge" "$work/munge.key"
chmod 400 "$work/munge.key"
chmod 755 "$work/munge"
setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --key-file="$work/munge.key" \
    --socket="$work/munge/socket" --pid-file="$work/munge/pid" --log-file="$work/munge/log" \
    --seed-file="$work/munge/seed" >"$work/munged.out" 2>&1 &
munge_pid=$!
cat >"$work/slurm.conf" <<CONF
ClusterName=faultline
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
SlurmctldPort=$((16000 + $$ % 4000))
SlurmdPort=$((21000 + $$ % 4000))
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores RealMemory=2000 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
sed -i '/^CryptoType/d' "$work/slurm.conf"
export SLURM_CONF=$work/slurm.conf
slurmctld -f "$work/slurm.conf"
slurmd -f "$work/slurm.conf"
for _ in $(seq 60); do
    sinfo -h -o %T 2>/dev/null | grep -q idle && break
    sleep 1
done
sinfo -h -o %T 2>/dev/null | grep -q idle || { echo 'slurm.sh: Slurm does not come up'; tail -n 20 "$work"/*.log; exit 1; }

campaign=(-c "$source/corpus/campaigns/smoke.yaml" -F 'norm_*' -F 'adamw_mean.*' --calibration 4 --false-alarms 2)
. "$source/tests/e2e/expect.sh"
table() { "$faultline" report --out "$1" 2>/dev/null | grep -v -e '^time ' -e '^reports:'; }
rows() { /usr/bin/python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1] + "/results.sqlite").execute(sys.argv[2]).fetchone()[0])' "$1" "$2"; }

"$faultline" run "${campaign[@]}" --quiet --out "$work/whole" >/dev/null
expect 'one run' 0 $?
"$faultline" run "${campaign[@]}" --slurm 3 -n --out "$work/array" >"$work/out" 2>&1
expect 'a dry run' 0 $?
expect 'the script' 0 "$(sh -n "$work/array/slurm/array.sh"; echo $?)"
expect 'a dry run submits nothing' 0 "$(squeue -h 2>/dev/null | wc -l)"
"$faultline" run "${campaign[@]}" --slurm 3 --out "$work/array" >"$work/out" 2>&1
expect "the job array: $(tail -n 3 "$work/out")" 0 $?
expect 'tasks' 3 "$(find "$work/array/slurm" -name '[0-9]*.log' | wc -l)"
expect 'table of the array' "$(table "$work/whole")" "$(table "$work/array")"
expect 'lines of the table' 0 "$([ "$(table "$work/array" | wc -l)" -gt 10 ]; echo $?)"
last=$(rows "$work/array/shard-2" 'select max(id) from runs')
"$faultline" run "${campaign[@]}" --slurm 3 --out "$work/array" >"$work/out" 2>&1
expect 'the same command again' 0 $?
expect 'runs of the same command again' "$last" "$(rows "$work/array/shard-2" 'select max(id) from runs')"
# A task that leaves nothing: its shard is missing, and that is said.
"$faultline" run "${campaign[@]}" --slurm 3 --ref /nonexistent/ref --out "$work/broken" >"$work/out" 2>&1
expect 'a broken array' 6 $?
expect 'a broken array says which shard' 0 "$(grep -qE 'shard-[0-9]' "$work/out"; echo $?)"
echo "slurm.sh: $checked checks, $failed failed"
[ "$checked" -ge 12 ] && [ "$failed" -eq 0 ]
