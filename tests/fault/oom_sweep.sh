#!/usr/bin/env bash
# Device memory lowered step by step from what the recipe plans to below what it can do with. The healthy trainer either
# trains with the same bits or stops with exit code 8 and one sentence that names the allocation, under each schedule,
# and the check `memory` has nothing to say in either case. A fault of the allocator family that is refused where the
# healthy trainer finds room at once is seen by `memory`, and each one whose first effect is on memory is seen at some
# budget. The rows of UNSEEN are the exceptions: they waste memory or time, and no refusal of theirs is wrong by the ledger.
# Prints for each fault at how many budgets `memory` sees it, the largest one with the step, and at how many it costs the run.
# Budgets lie closer where memory is tight.
#   oom_sweep.sh BUILD RECIPE_FOLDER BUDGETS [PATTERN]
set -euo pipefail
build=$(readlink -f "${1:?usage: oom_sweep.sh BUILD RECIPE_FOLDER BUDGETS [PATTERN]}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 - "$build" "$(readlink -f "$2")" "$work" "$3" "${4:-*}" <<'PY'
import concurrent.futures, fnmatch, itertools, json, os, re, subprocess, sys

build, recipes, work, budgets, pattern = sys.argv[1:]
budgets = int(budgets)
GRANULE = 256
SCHEDULES = ("fifo", "lazy", "random", "pct")
UNSEEN = {"dev_malloc_size.coarse", "dev_launch_status.sticky_oom"}
TRAINED, REFUSED = 0, 8
NAMED = re.compile(r"faultline-train: device memory budget exhausted: (allocation|pinned buffer) '[^']+' of \d+ bytes.*\n")
numbers = itertools.count()


def run(recipe, fault, schedule, budget):
    """How it ended, the sentence, per step the numbers, where `memory` fired, and refusals."""
    name = f"{work}/{next(numbers)}"
    command = [f"{build}/engine/faultline-train", "--recipe", f"{recipes}/{recipe}.yaml", "--weights", f"{work}/weights",
               "--seed", "1", "--threads", "1", "--level", "full", "--trace", name, "--fault", fault, "--schedule",
               schedule, "--budget", str(budget), "--quiet"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=300)
    steps, ooms = [], 0
    if os.path.exists(name):
        with open(name, encoding="utf-8") as file:
            for line in map(json.loads, file):
                if line["type"] == "step":
                    kept = {k: v for k, v in line.items() if k not in ("ledger", "host", "events", "races", "race_count")}
                    kept["hash"].pop("ledger")
                    ooms = line["ledger"]["ooms"]
                    steps.append(json.dumps(kept, sort_keys=True))
        found = subprocess.run([f"{build}/tests/check_run", name], check=True, stdout=subprocess.PIPE, text=True).stdout
        os.unlink(name)
    else:
        found = ""
    fired = [line.split("\t") for line in found.splitlines()]
    memory = [(int(line[2]), line[3]) for line in fired if line[1] == "memory"]
    return done.returncode, done.stderr, steps, memory[0] if memory else None, ooms


def smallest(recipe, enough):
    """The smallest budget with which the healthy trainer trains under fifo, to a granule, from one that is enough."""
    low, high = 0, enough // GRANULE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if run(recipe, "none", "fifo", middle * GRANULE)[0] == TRAINED else (middle, high)
    return high * GRANULE


class Place:
    """A recipe: its plan, the smallest budget, those tried, and the healthy runs."""

    def __init__(self, recipe, pool):
        plan = subprocess.run([f"{build}/engine/faultline-train", "--recipe", f"{recipes}/{recipe}.yaml", "--weights",
                               f"{work}/weights", "--plan"], check=True, stdout=subprocess.PIPE).stdout
        self.recipe, self.plan = recipe, json.loads(plan)["budget_bytes"]
        self.least = smallest(recipe, self.plan)
        span = self.plan - self.least
        above = [self.least + int(span * (i / (budgets - 1)) ** 2) for i in range(budgets - 1, -1, -1)]
        below = [self.least - GRANULE] + [self.least * i // 8 for i in range(7, 0, -1)] + [GRANULE]
        self.budgets = [b // GRANULE * GRANULE for b in above + below]
        _, _, self.base, _, self.ooms = run(recipe, "none", "fifo", self.plan)
        assert len(self.base) >= 8
        ways = [(s, b) for s in SCHEDULES for b in self.budgets]
        self.healthy = dict(zip(ways, pool.map(lambda way: run(recipe, "none", *way), ways)))


def judge_healthy(place):
    """Problems, and how often it trained and was refused."""
    bad, trained, refused = [], 0, 0
    for (schedule, budget), (code, text, steps, memory, _) in place.healthy.items():
        where = f"{place.recipe} {schedule} budget {budget}"
        trained += code == TRAINED
        refused += code == REFUSED
        if code not in (TRAINED, REFUSED):
            bad.append(f"{where}: ends with {code}: {text.strip()}")
        if steps != place.base[:len(steps)] or (code == TRAINED and len(steps) != len(place.base)):
            bad.append(f"{where}: other bits")
        if code == REFUSED and not NAMED.fullmatch(text):
            bad.append(f"{where}: refused with {text!r}")
        if memory:
            bad.append(f"{where}: false alarm at step {memory[0]}: {memory[1]}")
    return bad, trained, refused


def judge_fault(fault, place, pool):
    """Problems and a row of the table, over the budgets at which the healthy trainer trains and is never refused, but
    for what the recipe refuses on purpose."""
    schedule = "lazy" if "lazy" in fault["trigger"].split() else "fifo"
    healthy = {b: place.healthy[schedule, b] for b in place.budgets}
    tried = [b for b in place.budgets if healthy[b][0] == TRAINED and healthy[b][4] == place.ooms]
    results = list(pool.map(lambda b: run(place.recipe, fault["id"], schedule, b), tried))
    seen = [(b, r[3]) for b, r in zip(tried, results) if r[3]]
    lost = [(b, r) for b, r in zip(tried, results) if r[0] != TRAINED]
    wrong = sum(r[0] == TRAINED and r[2] != place.base for r in results)
    bad = [f"{fault['id']} budget {b}: refused where the healthy trainer trains, and memory is silent"
           for b, r in lost if not r[3] and fault["id"] not in UNSEEN]
    if fault["class"] == "memory" and bool(seen) == (fault["id"] in UNSEEN):
        bad.append(f"{fault['id']}: {'seen after all' if seen else 'not seen'} by memory")
    bad += [f"{fault['id']} budget {b}: ends with {r[0]}" for b, r in lost if r[0] != REFUSED]
    first = f"{max(seen)[0]} ({max(seen)[0] / place.plan:.3f}), step {max(seen)[1][0]}" if seen else "-"
    costs = f"{max(lost)[0]} ({max(lost)[0] / place.plan:.3f})" if lost else "-"
    return bad, [fault["id"], place.recipe, schedule, str(len(tried)), str(len(seen)), first, str(len(lost)), costs, str(wrong)]


faults = json.loads(subprocess.run([f"{build}/harness/faultline", "list", "--json"], check=True,
                                   stdout=subprocess.PIPE).stdout)
faults = [f for f in faults if f["family"] == "allocator" and f["expectation"] == "KILL" and
          fnmatch.fnmatch(f["id"], pattern)]
subprocess.run([f"{build}/corpus/faultline-init", "--recipe", f"{recipes}/pico.yaml", "--seed", "1", "--out",
                f"{work}/weights"], check=True, stdout=subprocess.DEVNULL)
bad, rows = [], []
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    places = {name: Place(name, pool) for name in ("pico", "pico-oom")}
    for place in places.values():
        problems, trained, refused = judge_healthy(place)
        bad += problems + ([] if trained and refused else [f"{place.recipe}: nothing trained, or nothing refused"])
        print(f"{place.recipe}: plan {place.plan} bytes, least {place.least} ({place.least / place.plan:.3f}); healthy runs "
              f"{len(place.healthy)}: {trained} trained with the same bits, {refused} refused by name, {len(problems)} neither")
    for fault in faults:
        place = places["pico-oom" if "oom_at" in fault["trigger"].split() else "pico"]
        problems, row = judge_fault(fault, place, pool)
        bad += problems
        rows.append(row)
head = ["fault", "recipe", "schedule", "budgets", "seen", "largest budget seen", "lost", "largest budget lost", "wrong numbers"]
for row in [head] + rows:
    print("\t".join(row))
print("\n".join(bad))
print(f"oom sweep: {len(faults)} faults, {sum(row[4] != '0' for row in rows)} seen by memory, {len(bad)} problems")
sys.exit(1 if bad or not faults else 0)
PY
