#!/usr/bin/env bash
# The table fault x schedule: how often a stream or host fault spoils the numbers and how often the happens-before
# checker reports it, with exact 95 % intervals and the first step of each. random and pct run over SEEDS schedule
# seeds; fifo, lazy and aimed are deterministic, n = 1. A fault counts as a race when the checker reports it; then
# aimed must show wrong numbers, fifo none, and the checker must find it in both (a fault whose trigger is lazy does
# nothing in fifo, where nothing is ever pending).
#   race_table.sh BUILD RECIPE_FOLDER SEEDS [PATTERN [OUT.tsv]]
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: race_table.sh BUILD RECIPE_FOLDER SEEDS [PATTERN [OUT.tsv]]" >&2; exit 1; }
build=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 - "$build" "$(readlink -f "$2")" "$work" "$3" "${4:-*}" "${5:-}" <<'PY'
import concurrent.futures, fnmatch, hashlib, json, math, os, shutil, statistics, subprocess, sys

build, recipes, work, seeds, pattern, out = sys.argv[1:]
seeds = int(seeds)
RECIPE = f"{recipes}/pico.yaml"
ONCE, OFTEN = ("fifo", "lazy", "aimed"), ("random", "pct")
NOT_NUMBERS = ("ledger", "host", "races", "race_count", "events")


def run(job):
    """Per step: a hash of the numbers and the count of races. A run that dies has the steps it wrote."""
    fault, driver, schedule, seed = job
    name = f"{work}/{fault}-{schedule}-{seed}"
    command = [f"{build}/engine/faultline-train", "--recipe", RECIPE, "--weights", f"{work}/weights", "--seed", "1",
               "--threads", "1", "--level", "full", "--trace", name, "--fault", fault, "--driver", driver,
               "--schedule", schedule, "--schedule-seed", str(seed), "--checkpoint-dir", name + ".d", "--no-sync", "--quiet"]
    code = subprocess.run(command, stderr=subprocess.DEVNULL, timeout=300).returncode
    steps = []
    with open(name, encoding="utf-8") as file:
        for line in file:
            if line.startswith('{"type":"step"') and line.endswith("}\n"):
                step = json.loads(line)
                numbers = {key: value for key, value in step.items() if key not in NOT_NUMBERS}
                steps.append((hashlib.sha1(json.dumps(numbers, sort_keys=True).encode()).digest(), step["race_count"]))
    os.unlink(name)
    shutil.rmtree(name + ".d", ignore_errors=True)
    return code, steps


def first_steps(steps, healthy):
    """First step with wrong numbers and first step with a race, None when there is none."""
    wrong = next((i + 1 for i, (step, base) in enumerate(zip(steps, healthy)) if step[0] != base[0]), None)
    race = next((i + 1 for i, step in enumerate(steps) if step[1] > 0), None)
    return wrong, race


def tail(k, n, p, upper):
    """P(X >= k) or P(X <= k) of a binomial."""
    span = range(k, n + 1) if upper else range(k + 1)
    if p <= 0 or p >= 1:
        return float((0 if p <= 0 else n) in span)
    return sum(math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) +
                        (n - i) * math.log1p(-p)) for i in span)


def interval(k, n):
    """Clopper-Pearson, 95 %."""
    def solve(upper):
        low, high = 0.0, 1.0
        for _ in range(60):
            p = (low + high) / 2
            grows = tail(k, n, p, upper) > 0.025
            low, high = (low, p) if grows == upper else (p, high)
        return low
    return (0.0 if k == 0 else solve(True)), (1.0 if k == n else solve(False))


def rate(steps):
    """Share of the runs with a first step, interval and median of it."""
    hits = [step for step in steps if step is not None]
    low, high = interval(len(hits), len(steps))
    middle = f" at {statistics.median_low(hits)}" if hits else ""
    return f"{100 * len(hits) / len(steps):5.1f} % ({100 * low:.1f} to {100 * high:.1f}){middle}"


faults = json.loads(subprocess.run([f"{build}/harness/faultline", "list", "--json"], check=True,
                                   stdout=subprocess.PIPE).stdout)
faults = [f for f in faults if f["family"] in ("stream", "host") and fnmatch.fnmatch(f["id"], pattern)]
subprocess.run([f"{build}/corpus/faultline-init", "--recipe", RECIPE, "--seed", "1", "--out", f"{work}/weights"],
               check=True, stdout=subprocess.DEVNULL)
_, healthy = run(("none", "single", "fifo", 1))
assert len(healthy) >= 8 and all(step[1] == 0 for step in healthy)
plan = [(s, 1) for s in ONCE] + [(s, seed) for s in OFTEN for seed in range(1, seeds + 1)]
drivers = {f["id"]: "tasks" if "tasks" in f["trigger"].split() else "single" for f in faults}
head = ["fault", "is"] + [f"{s} {what}" for s in ONCE for what in ("wrong", "checker")] + \
    [f"{s} {what}, n = {seeds}" for s in OFTEN for what in ("wrong", "checker")]


def judge(fault, pool):
    """Problems of a fault, whether it is a race, and its row of the table."""
    steps, bad = {s: [] for s in ONCE + OFTEN}, []
    jobs = [(fault["id"], drivers[fault["id"]], *way) for way in plan]
    for (_, _, schedule, seed), (code, got) in zip(jobs, pool.map(run, jobs)):
        if code != 0:
            bad.append(f"{fault['id']} ends with {code} under {schedule} seed {seed}")
        steps[schedule].append(first_steps(got, healthy))
    late = "lazy" in fault["trigger"].split()
    certified = any(race is not None for runs in steps.values() for _, race in runs)
    claims = [(steps["aimed"][0][0] is not None, "aimed shows no wrong numbers"),
              (steps["fifo"][0][0] is None, "fifo shows wrong numbers"),
              (steps["aimed"][0][1] is not None, "the checker is silent under aimed"),
              (late or steps["fifo"][0][1] is not None, "the checker is silent under fifo")]
    bad += [f"{fault['id']}: {text}" for holds, text in claims if certified and not holds]
    row = [fault["id"], "race" if certified else "no race"]
    for schedule in ONCE:
        row += ["-" if step is None else str(step) for step in steps[schedule][0]]
    for schedule in OFTEN:
        row += [rate([wrong for wrong, _ in steps[schedule]]), rate([race for _, race in steps[schedule]])]
    return bad, certified, row


bad, races, rows = [], 0, [head]
print("\t".join(head), flush=True)
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for fault in faults:
        problems, certified, row = judge(fault, pool)
        print("\n".join(["\t".join(row)] + problems), flush=True)
        bad += problems
        races += certified
        rows.append(row)
if out:
    with open(out, "w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)
print(f"race table: {len(faults)} faults, {races} races certified, {len(faults) * len(plan)} runs, {len(bad)} problems")
sys.exit(0 if faults and races and not bad else 1)
PY
