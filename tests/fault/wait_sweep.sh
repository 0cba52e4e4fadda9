#!/usr/bin/env bash
# Each call of the trainer that orders operations (dev_record, dev_wait, dev_sync_*), by source line, is left out in
# turn; the happens-before checker must report every one. A call that it does not miss is redundant and has to go.
# Ways to run reach the calls outside the steps: checkpoints, resuming, out of memory, weights moved or saved.
#   wait_sweep.sh BUILD RECIPE_FOLDER [CALLS]     only the first CALLS of each way (0 = all)
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: wait_sweep.sh BUILD RECIPE_FOLDER [CALLS]" >&2; exit 1; }
build=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 - "$build" "$(readlink -f "$2")" "$work" "${3:-0}" <<'PY'
import concurrent.futures, os, subprocess, sys

build, recipes, work, calls = sys.argv[1:]
calls = int(calls)
TRAIN = f"{build}/engine/faultline-train"


def weights(recipe):
    path = f"{work}/{recipe}.weights"
    subprocess.run([f"{build}/corpus/faultline-init", "--recipe", f"{recipes}/{recipe}.yaml", "--seed", "1", "--out", path],
                   check=True, stdout=subprocess.DEVNULL)
    return path


def run(way, omitted):
    """Lines of the list, and races found."""
    folder = f"{work}/{way}-{omitted}"
    os.makedirs(folder)
    words = [word.replace("FOLDER", folder) for word in WAYS[way]]
    done = subprocess.run([TRAIN, *words, "--seed", "1", "--threads", "1", "--quiet", "--omit-wait", str(omitted)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    subprocess.run(["rm", "-rf", folder], check=True)
    lines = [line.split("\t") for line in done.stdout.decode().splitlines() if "\t" in line]
    races = [int(line[1]) for line in lines if line[0] == "races"]
    if not races:
        return [], f"ends with {done.returncode}: {done.stderr.decode().strip()}"
    return [line for line in lines if line[0] != "races"], races[0]


pico, oom = f"{recipes}/pico.yaml", f"{recipes}/pico-oom.yaml"
start = weights("pico")
traced = ["--level", "full", "--trace", "FOLDER/trace"]
subprocess.run([TRAIN, "--recipe", pico, "--weights", start, "--seed", "1", "--checkpoint-dir", f"{work}/start", "--no-sync", "--quiet"],
               check=True)
WAYS = {
    "checkpoints": ["--recipe", pico, "--weights", start, "--checkpoint-dir", "FOLDER/c", "--no-sync", *traced],
    "resumed": ["--recipe", pico, "--resume", f"{work}/start/step-8", *traced],
    "saved": ["--recipe", pico, "--weights", start, "--save", "FOLDER/s", "--perturb-ulp", *traced],
    "evaluated": ["--recipe", pico, "--evaluate", start],
}
if os.path.exists(oom):
    WAYS["out of memory"] = ["--recipe", oom, "--weights", weights("pico-oom"), *traced]
jobs, bad, missed = [], 0, {}
for way in WAYS:
    lines, races = run(way, 0)
    if races != 0 or not lines:
        bad += 1
        print(f"{way}: a complete run has {races} races and {len(lines)} ordering calls")
    jobs += [(way, int(line[1])) for line in lines if calls == 0 or int(line[1]) <= calls]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for (way, number), (lines, races) in zip(jobs, pool.map(lambda job: run(*job), jobs)):
        omitted = [line for line in lines if line[0] == "omitted"]
        if len(omitted) != 1:
            bad += 1
            print(f"{way}, call {number}: {races}")
            continue
        call = f"{omitted[0][2]} at {omitted[0][3]}"
        missed.setdefault(call, []).append((way, races))
for call, runs in sorted(missed.items()):
    found = [f"{races} in '{way}'" for way, races in runs if races > 0]
    print(f"{call}: {', '.join(found) if found else 'NOT MISSED'}")
    bad += not found
print(f"wait sweep: {len(missed)} calls left out in {len(jobs)} runs over {len(WAYS)} ways, {bad} not missed")
sys.exit(0 if missed and bad == 0 else 1)
PY
