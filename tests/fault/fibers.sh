#!/usr/bin/env bash
# A second race detector, from real accesses: the trainer is built with ThreadSanitizer, each stream a fiber of its own
# (engine/device/dev_fibers_tsan.c). Declared spans and our own vector clocks play no part in it. The healthy trainer gives
# no report under any schedule and driver; a stream or host fault gives at least one under fifo or lazy when the
# happens-before checker calls it a race, and none when it does not.
#   fibers.sh SOURCE BUILD RECIPE_FOLDER [PATTERN]      SOURCE: the tree; BUILD: where `faultline list` is
set -euo pipefail
source=$(readlink -f "${1:?usage: fibers.sh SOURCE BUILD RECIPE_FOLDER [PATTERN]}")
build=$(readlink -f "$2")
recipes=$(readlink -f "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"
{ cmake --preset tsan && cmake --build build/tsan --target faultline-train faultline-init; } >"$work/log" 2>&1 ||
    { cat "$work/log"; echo "fibers: the trainer does not build with ThreadSanitizer"; exit 1; }
/usr/bin/python3 - "$source/build/tsan" "$build" "$recipes" "$work" "${4:-*}" <<'PY'
import concurrent.futures, fnmatch, itertools, json, os, re, subprocess, sys

tsan, build, recipes, work, pattern = sys.argv[1:]
REPORTED = 66  # exit code of a run with reports
numbers = itertools.count()


def run(recipe, fault, schedule, driver="single", seed=1, steps=0):
    """Reports of ThreadSanitizer, the places of the first, races by the checker, and an unexpected end, if any."""
    name = f"{work}/{next(numbers)}"
    command = [f"{tsan}/engine/faultline-train", "--recipe", f"{recipes}/{recipe}.yaml", "--weights",
               f"{work}/{recipe}.weights", "--seed", "1", "--threads", "1", "--level", "full", "--trace", name, "--fault",
               fault, "--schedule", schedule, "--schedule-seed", str(seed), "--driver", driver, "--quiet",
               "--checkpoint-dir", name + ".d", "--no-sync"] + (["--steps", str(steps)] if steps else [])
    options = f"exitcode={REPORTED} halt_on_error=0 history_size=4"
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=600,
                          env=dict(os.environ, TSAN_OPTIONS=options))
    with open(name, encoding="utf-8") as file:
        steps = [json.loads(line) for line in file if line.startswith('{"type":"step"') and line.endswith("}\n")]
    subprocess.run(["rm", "-rf", name, name + ".d"], check=True)
    reports = done.stderr.count("WARNING: ThreadSanitizer: data race")
    places = re.findall(r"^  (?:Previous )?(read|write) of size \d+ at \S+ by (?:thread \w+ '(\w+)'|(main) thread|thread \w+).*:\n"
                        r"    #0 (\S+)", done.stderr, re.M | re.I)[:2]
    places = [f"{mode.lower()} by {stream or main or 'a task'} in {function}" for mode, stream, main, function in places]
    end = done.returncode if done.returncode not in (0, REPORTED) or (done.returncode == REPORTED) != (reports > 0) else None
    return reports, places, steps[-1]["race_count"] if steps else 0, len(steps), end


def prepare(recipe):
    subprocess.run([f"{tsan}/corpus/faultline-init", "--recipe", f"{recipes}/{recipe}.yaml", "--seed", "1", "--out",
                    f"{work}/{recipe}.weights"], check=True, stdout=subprocess.DEVNULL)


bad = []
for recipe in ("pico", "nano"):
    prepare(recipe)
healthy = [("pico", "none", schedule, driver, seed) for schedule in ("fifo", "lazy", "random", "pct")
           for driver in ("single", "tasks") for seed in (1, 2)]
healthy += [("nano", "none", schedule, "single", 1, 6) for schedule in ("fifo", "lazy")]
faults = json.loads(subprocess.run([f"{build}/harness/faultline", "list", "--json"], check=True,
                                   stdout=subprocess.PIPE).stdout)
faults = [f for f in faults if f["family"] in ("stream", "host") and fnmatch.fnmatch(f["id"], pattern)]
jobs = [("pico", f["id"], schedule, "tasks" if "tasks" in f["trigger"].split() else "single")
        for f in faults for schedule in ("fifo", "lazy")]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = dict(zip(healthy + jobs, pool.map(lambda job: run(*job), healthy + jobs)))
for job, (reports, places, races, steps, end) in results.items():
    if end is not None or steps < 6:
        bad.append(f"{job} ends with {end} after {steps} steps")
    if job[1] == "none" and (reports or races):
        bad.append(f"{job}: {reports} reports, {places}; {races} by the checker")
print("fault\tchecker, fifo\tchecker, lazy\treports, fifo\treports, lazy\tone of them")
certified = seen = 0
for fault in faults:
    fifo, lazy = (results[job] for job in jobs if job[1] == fault["id"])
    race = fifo[2] + lazy[2] > 0
    reported = fifo[0] + lazy[0] > 0
    certified += race
    seen += race and reported
    if race != reported:
        bad.append(f"{fault['id']}: the checker finds {fifo[2]} and {lazy[2]} races, ThreadSanitizer {fifo[0]} and {lazy[0]}")
    print("\t".join([fault["id"], str(fifo[2]), str(lazy[2]), str(fifo[0]), str(lazy[0]), "; ".join(fifo[1] or lazy[1])]))
print("\n".join(bad))
print(f"fibers: {len(healthy)} healthy runs; {len(faults)} faults, {certified} races by the checker, {seen} of them seen by "
      f"ThreadSanitizer; {len(bad)} problems")
sys.exit(1 if bad or not certified else 0)
PY
