#!/usr/bin/env bash
# The healthy trainer: no alarm of the race checker and the same bits over SEEDS schedule seeds of each schedule, each
# run drawing host threads, driver and compiler from a covering array of all pairs. fifo and aimed do not depend on the
# seed: they run once for each row of the array.
#   healthy_runs.sh RECIPE SEEDS BUILD [BUILD_OF_ANOTHER_COMPILER...]
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: healthy_runs.sh RECIPE SEEDS BUILD..." >&2; exit 1; }
recipe=$(readlink -f "$1")
seeds=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 - "$recipe" "$seeds" "$work" "$@" <<'PY'
import collections, concurrent.futures, itertools, json, os, subprocess, sys

recipe, seeds, work, *builds = sys.argv[1:]
seeds = int(seeds)
missing = [b for b in builds if not os.path.exists(f"{b}/engine/faultline-train")]
builds = [b for b in builds if b not in missing]
for build in missing:
    print(f"healthy runs: {build} has no trainer and is left out")
FACTORS = {"threads": ["1", "2", "3"], "driver": ["single", "tasks"], "build": builds}


def covering_array(factors):
    """Rows in which each pair of values of two factors occurs: greedy, from all combinations."""
    names = list(factors)
    def pairs(row):
        return {(a, row[a], b, row[b]) for a, b in itertools.combinations(names, 2)}
    every = [dict(zip(names, values)) for values in itertools.product(*factors.values())]
    left = set().union(*map(pairs, every))
    rows = []
    while left:
        best = max(every, key=lambda row: len(pairs(row) & left))
        rows.append(best)
        left -= pairs(best)
    return rows


def run(job):
    index, schedule, seed, row = job
    name = f"{work}/{index}"
    subprocess.run([f"{row['build']}/engine/faultline-train", "--recipe", recipe, "--weights", f"{work}/weights", "--seed",
                    "1", "--level", "hashes", "--trace", name, "--schedule", schedule, "--schedule-seed", str(seed),
                    "--threads", row["threads"], "--driver", row["driver"], "--quiet"], check=True, timeout=300)
    steps, races = [], 0
    with open(name, encoding="utf-8") as file:
        for line in map(json.loads, file):
            if line["type"] == "step":
                kept = {key: value for key, value in line.items() if key not in ("ledger", "host", "events", "races")}
                steps.append(json.dumps(kept, sort_keys=True))
                races = line["race_count"]
    os.unlink(name)
    return steps, races


subprocess.run([f"{builds[0]}/corpus/faultline-init", "--recipe", recipe, "--seed", "1", "--out", f"{work}/weights"],
               check=True, stdout=subprocess.DEVNULL)
rows = covering_array(FACTORS)
jobs = [("fifo", 1, row) for row in rows] + [("aimed", 1, row) for row in rows]
jobs += [(schedule, seed, rows[seed % len(rows)]) for schedule in ("lazy", "random", "pct", "threads")
         for seed in range(seeds)]
jobs = [(i, *job) for i, job in enumerate(jobs)]
base, _ = run(("base", "fifo", 1, {"threads": "1", "driver": "single", "build": builds[0]}))
assert len(base) >= 8
counts = collections.Counter()
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for (_, schedule, seed, row), (steps, races) in zip(jobs, pool.map(run, jobs)):
        counts[schedule] += 1
        if races or steps != base:
            counts["bad"] += 1
            print(f"{schedule} seed {seed} {row}: {races} alarms, {'same' if steps == base else 'other'} bits")
print(f"healthy runs: {len(base)} steps compared in " +
      ", ".join(f"{counts[s]} {s}" for s in ("fifo", "lazy", "random", "pct", "aimed", "threads")) +
      f"; {len(rows)} rows over {len(builds)} builds; {counts['bad']} with alarms or other bits")
sys.exit(1 if counts["bad"] or not counts["pct"] else 0)
PY
