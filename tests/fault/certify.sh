#!/usr/bin/env bash
# Every row of the catalogue says the truth about the trainer: where its trigger holds, the armed site runs and the
# run differs from the healthy one (KILL; at the usual and at the smallest dose) or does not (EQUIVALENT). No
# armed run hangs, crashes or asserts; only allocator faults may end in a refusal. No verdict of an oracle is asked.
#   certify.sh BUILD RECIPE_FOLDER [PATTERN]
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: certify.sh BUILD RECIPE_FOLDER [PATTERN]" >&2; exit 1; }
build=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 - "$build" "$(readlink -f "$2")" "$work" "${3:-*}" <<'PY'
import collections, concurrent.futures, fnmatch, glob, hashlib, json, os, re, subprocess, sys

build, recipes, work, pattern = sys.argv[1:]
WAYS = {"lazy", "pct", "tasks", "resumed", "lanes"}  # words of a trigger that say how to run, not what
ALIVE, REFUSED = 0, 8
HANG_S = 60


def run(recipe, ways, fault, name):
    """Exit code, steps and end of a run."""
    trace, checkpoints = f"{work}/{name}.jsonl", f"{work}/{name}.checkpoints"
    trainer = "faultline-train-lanes" if "lanes" in ways else "faultline-train"
    command = [f"{build}/engine/{trainer}", "--recipe", f"{recipes}/{recipe}.yaml", "--seed", "1", "--threads",
               "1", "--level", "full", "--trace", trace, "--fault", fault, "--quiet",
               "--schedule", "lazy" if "lazy" in ways else "pct" if "pct" in ways else "fifo",
               "--driver", "tasks" if "tasks" in ways else "single"]
    if "resumed" in ways:
        command += ["--resume", f"{work}/{recipe}.start/step-8"]
    else:
        command += ["--weights", f"{work}/{recipe}.weights", "--checkpoint-dir", checkpoints, "--no-sync"]
    try:
        code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=HANG_S).returncode
    except subprocess.TimeoutExpired:
        code = "hangs"
    lines = []
    if os.path.exists(trace):
        with open(trace, encoding="utf-8") as file:
            for line in file:
                if line.endswith("}\n"):
                    lines.append(json.loads(line))
        os.unlink(trace)
    subprocess.run(["rm", "-rf", checkpoints], check=True)
    ends = [line for line in lines if line["type"] == "end"]
    return code, [line for line in lines if line["type"] == "step"], ends[0] if ends else {}


def facts(step):
    """What a step says, without what differs from run to run of one program."""
    kept = {key: value for key, value in step.items() if key not in ("hash", "ledger", "host", "events")}
    ledger = {key: value for key, value in step["ledger"].items() if key != "host"}
    events = [{key: value for key, value in event.items() if key != "path"} for event in step["events"]]
    return json.dumps([kept, step["hash"], ledger, events], sort_keys=True)


def host_grew(steps, healthy):
    """Some component ends with more host memory than in the healthy run, by the least that can be allocated in each step."""
    least = 8 * len(steps)
    return bool(steps) and len(steps) == len(healthy) and any(
        bytes_ - healthy[-1]["host"][component] >= least for component, bytes_ in (steps[-1]["host"] or {}).items())


def prepare(recipe):
    weights = f"{work}/{recipe}.weights"
    subprocess.run([f"{build}/corpus/faultline-init", "--recipe", f"{recipes}/{recipe}.yaml", "--seed", "1", "--out",
                    weights], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([f"{build}/engine/faultline-train", "--recipe", f"{recipes}/{recipe}.yaml", "--seed", "1", "--weights",
                    weights, "--checkpoint-dir", f"{work}/{recipe}.start", "--no-sync", "--quiet"], check=True)


class Healthy:
    """Healthy runs, each made once, on demand."""

    def __init__(self):
        self.runs = {}

    def get(self, recipe, ways):
        if (recipe, ways) not in self.runs:
            self.runs[recipe, ways] = run(recipe, ways, "none", "healthy-" + "-".join((recipe, *sorted(ways))))
            code, steps, end = self.runs[recipe, ways]
            assert code == ALIVE and len(steps) >= 8 and steps[-1]["race_count"] == 0, (recipe, ways, code)
            if "tight" in end["features"]:
                assert steps[-1]["ledger"]["reclaims"] > 0 and steps[-1]["ledger"]["ooms"] == 0, recipe
        return self.runs[recipe, ways]


def judge(number, fault, spec, recipe, ways, healthy):
    """(problem or None, shows, digest of the run)"""
    code, steps, end = run(recipe, ways, spec, f"fault-{number}")
    allowed = (ALIVE, REFUSED) if fault["family"] == "allocator" else (ALIVE,)
    if code not in allowed:
        return f"ends with {code} on {recipe}", False, None
    if end.get("fault_reached", -1) < 0:
        return f"is not reached on {recipe}", False, None
    differs = [facts(step) for step in steps] != [facts(step) for step in healthy[1]]
    races = any(step["race_count"] > 0 for step in steps)
    leaks = fault["class"] == "memory" and host_grew(steps, healthy[1])
    digest = hashlib.sha1("".join(facts(step) for step in steps).encode()).hexdigest()
    return None, differs or races or leaks, (recipe, ways, digest) if differs else None


def certify(number, fault, spec, places, healthy):
    """Tries the recipes with the trigger in turn. Returns (problem or None, digest)."""
    trigger = set(fault["trigger"].split())
    ways = frozenset(trigger & WAYS)
    fitting = [name for name in places if trigger - WAYS <= set(healthy[name, frozenset()][2]["features"])]
    if not fitting:
        return f"has no recipe with {fault['trigger']}", None
    quiet = fault["expectation"] != "KILL"
    for recipe in fitting:
        problem, shows, digest = judge(number, fault, spec, recipe, ways, healthy[recipe, ways])
        if problem:
            return problem, None
        if shows and quiet and fault["expectation"] == "EQUIVALENT":
            return f"is said to be equivalent, but differs on {recipe}", None
        if shows:
            return None, digest
    return (None if quiet else f"changes nothing on {' '.join(fitting)}"), None


names = [os.path.basename(path)[:-5] for path in glob.glob(recipes + "/pico*.yaml")]
places = sorted((name for name in names if name != "pico-long"), key=lambda name: (name != "pico", name))
faults = json.loads(subprocess.run([f"{build}/harness/faultline", "list", "--json"], check=True, stdout=subprocess.PIPE).stdout)
jobs = []
for fault in faults:
    if fnmatch.fnmatch(fault["id"], pattern):
        dose = fault.get("dose")
        doses = [f":{dose['usual']:g}", f":{dose['smallest']:g}"] if dose else [""]
        jobs += [(fault, fault["id"] + text) for text in doses]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    list(pool.map(prepare, places))
    store = Healthy()
    wanted = {(place, frozenset(set(fault["trigger"].split()) & WAYS)) for place in places for fault, _ in jobs}
    wanted |= {(place, frozenset()) for place in places}
    list(pool.map(lambda pair: store.get(*pair), sorted(wanted, key=lambda pair: (pair[0], sorted(pair[1])))))
    results = list(pool.map(lambda job: certify(job[0], *job[1], places, store.runs), enumerate(jobs)))
bad, twins = 0, collections.defaultdict(list)
for (fault, spec), (problem, digest) in zip(jobs, results):
    if problem:
        bad += 1
        print(f"{spec} {problem}")
    if digest:
        twins[digest].append(spec)
for same in twins.values():
    if len({re.sub(":.*", "", spec) for spec in same}) > 1:
        bad += 1
        print("one effect: " + " ".join(same))
print(f"certify: {len(jobs)} rows and doses on {len(places)} recipes, {bad} problems")
sys.exit(0 if bad == 0 and jobs else 1)
PY
