#!/usr/bin/python3
"""Benchmarks of whole programs, each against a named peer of the same run, printed as ratios.

    measure.py BUILD step|trace|start|checks|reference [RECIPE ...]
    measure.py BUILD mutants [CAMPAIGN ...]
    measure.py CALLGRIND_BUILD twin

What is compared runs within one round; a ratio is the median over the rounds, its range stands in brackets. So a
machine whose speed changes from minute to minute still gives a ratio; one that is busy makes the range wide.
`elapsed` is what a user waits for; `processor` is the processor time of one thread and survives a busy machine.
"""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = "/usr/bin/python3"
THREADS = os.cpu_count()
# Recipe: steps of a run, seconds for its rounds with all threads and with one. ROUNDS_MIN are run in any case.
STEP_PLAN = {"tiny": (16, 30, 12), "small": (4, 60, 10), "bench-124m": (4, 50, 10)}
ROUNDS_MIN, ROUNDS_MAX = 2, 9


class Bench:
    """A build and a folder for what the runs write."""

    def __init__(self, build, work):
        self.build, self.work = build, work
        self.train = os.path.join(build, "engine", "faultline-train-production")
        self.weights = {}
        self.policy = "active"  # of PyTorch's OpenMP threads

    def recipe(self, name):
        return os.path.join(TOP, "corpus", "recipes", name + ".yaml")

    def config(self, name):
        with open(self.recipe(name), encoding="utf-8") as file:
            return yaml.safe_load(file)

    def weights_of(self, name):
        if name not in self.weights:
            self.weights[name] = os.path.join(self.work, name + ".safetensors")
            init = os.path.join(self.build, "corpus", "faultline-init")
            run([init, "--recipe", self.recipe(name), "--seed", "1", "--out", self.weights[name]])
        return self.weights[name]

    def run_train(self, name, threads, *options, steps=None):
        command = [self.train, "--recipe", self.recipe(name), "--weights", self.weights_of(name), "--seed", "1",
                   "--threads", str(threads), *options]
        return run(command + (["--steps", str(steps)] if steps else []))

    def batches(self, name, steps):
        path = os.path.join(self.work, "batches.jsonl")
        self.run_train(name, THREADS, "--level", "hashes", "--contents", "--trace", path, steps=steps)
        return path


class Result:
    def __init__(self, out, elapsed, usage):
        self.out, self.elapsed, self.processor = out, elapsed, usage.ru_utime + usage.ru_stime
        self.peak_bytes = usage.ru_maxrss * 1024


def run(command, **environment):
    """Runs a program to its end; what it printed, what it took. One that fails ends the benchmark."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **environment})
    out = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"measure.py: {' '.join(command)}: wait status {status}")
    return Result(out, time.perf_counter() - begin, usage)


def later_steps(result):
    """Seconds of each step after the first: elapsed, processor. From the trainer's summary."""
    found = re.search(r"after the first step ([0-9.]+) s each, ([0-9.]+) s of processor time", result.out)
    return float(found[1]), float(found[2])


def losses_of(path):
    with open(path, encoding="utf-8") as file:
        return [r["loss"] for r in map(json.loads, file) if r["type"] == "step"]


def gflop(config):
    """Multiply-adds of a step, counted twice: products with weights and dense attention, forward and backward."""
    m, t = config["model"], config["train"]
    head = m["width"] // m["heads"]
    layer = 2 * m["width"] * m["width"] + 2 * m["kv_heads"] * head * m["width"] + 3 * m["width"] * m["ffn"]
    tokens = t["rows"] * t["grad_accum"] * m["context"]
    products = 6 * tokens * (m["layers"] * layer + m["vocab"] * m["width"])
    return (products + 12 * tokens * m["layers"] * m["context"] * m["width"]) * 1e-9


def peak_gflops(bench, threads):
    return float(run([os.path.join(bench.build, "tests", "peak_bench"), str(threads)]).out)


def torch_settings(threads, policy):
    """What PyTorch is at its best with here: OpenBLAS in its OpenMP flavour, whose threads are PyTorch's own, a core
    type that this OpenBLAS knows, and a malloc that keeps what is freed instead of giving it back to the system in
    every step, which made a step of small 1.4 times as long."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        core = "SkylakeX" if " avx512f " in file.read() else "Haswell"
    settings = {"OPENBLAS_CORETYPE": core, "OMP_NUM_THREADS": str(threads),
                "OMP_WAIT_POLICY": policy, "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
                "MALLOC_TOP_PAD_": str(1 << 28)}
    flavour = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
    if os.path.isdir(flavour):
        settings["LD_LIBRARY_PATH"] = flavour
    return settings


def best_policy(bench):
    """Spinning threads win on a quiet machine and lose on a busy one: the better of both counts."""
    batches = bench.batches("tiny", 4)
    spent = {}
    for policy in ("passive", "active"):
        bench.policy = policy
        spent[policy] = run_torch(bench, "tiny", batches, THREADS).seconds
    return min(spent, key=spent.get)


class Peer:
    """Seconds of a step of PyTorch. Its first two steps are slower: it allocates and compiles."""

    def __init__(self, result, threads):
        self.said = json.loads(result.out)
        later = self.said["elapsed" if threads > 1 else "processor"][2:]
        self.seconds, self.peak_bytes = sum(later) / len(later), result.peak_bytes


def run_torch(bench, name, batches, threads):
    peer = os.path.join(TOP, "tests", "bench", "torch_peer.py")
    return Peer(run([PYTHON, peer, bench.recipe(name), bench.weights_of(name), batches, str(threads)],
                    **torch_settings(threads, bench.policy)), threads)


def middle(values):
    return statistics.median(values)


def ranged(values, digits=2):
    """Median [smallest-largest]."""
    return f"{middle(values):.{digits}f} [{min(values):.{digits}f}-{max(values):.{digits}f}]"


def rounds_of(seconds):
    """Yields while there is time for another round like the ones before."""
    begin = time.perf_counter()
    for done in range(ROUNDS_MAX):
        spent = time.perf_counter() - begin
        if done >= ROUNDS_MIN and spent + spent / done > seconds:
            return
        yield done


def step_rounds(bench, name, threads, steps, seconds):
    """Rounds of PyTorch, the trainer, and the trainer with race checker and poison; the order turns."""
    batches = bench.batches(name, steps)
    which = 0 if threads > 1 else 1
    spent = {"torch": [], "plain": [], "checked": []}

    def ours(*options):
        return later_steps(bench.run_train(name, threads, "--level", "none", *options, steps=steps))[which]

    for done in rounds_of(seconds):
        for kind in sorted(spent, reverse=done % 2 == 0):
            if kind == "torch":
                torch = run_torch(bench, name, batches, threads)
            spent[kind].append(torch.seconds if kind == "torch" else
                               ours("--unchecked") if kind == "plain" else ours())
    gap = max(abs(a - b) / b for a, b in zip(losses_of(batches), torch.said["losses"]))
    return spent, torch, gap


def measure_step(bench, name):
    steps, seconds, seconds_alone = STEP_PLAN[name]
    work = gflop(bench.config(name))
    print(f"{name}, {work:.3g} GFLOP a step; tokens/s of the trainer over PyTorch:")
    for threads, label, limit in ((THREADS, f"{THREADS} threads, elapsed", seconds),
                                  (1, "1 thread, processor time", seconds_alone)):
        spent, torch, gap = step_rounds(bench, name, threads, steps, limit)
        peak = peak_gflops(bench, threads)
        ratio = [theirs / ours for theirs, ours in zip(spent["torch"], spent["plain"])]
        checked = [theirs / ours for theirs, ours in zip(spent["torch"], spent["checked"])]
        share, share_torch = (100 * work / min(spent[kind]) / peak for kind in ("plain", "torch"))
        print(f"  {label}: {ranged(ratio)} in {len(ratio)} rounds; with race checker and poison {ranged(checked)}; "
              f"of the FMA peak {share:.0f} %, PyTorch {share_torch:.0f} %", flush=True)
        if threads > 1:
            ours = ours_peak(bench, name)
            print(f"  peak memory: PyTorch {torch.peak_bytes >> 20} MiB, trainer {ours >> 20} MiB, ratio "
                  f"{torch.peak_bytes / ours:.2f}; largest relative difference of the losses of {steps} steps: "
                  f"{gap:.1e}", flush=True)


def ours_peak(bench, name):
    return bench.run_train(name, THREADS, "--level", "none", "--unchecked", "--quiet", steps=1).peak_bytes


def bench_step(bench, names):
    print("## Training step against PyTorch: same recipe, weights, batches and steps; fp32, steps after the first")
    load = os.getloadavg()[0]
    bench.policy = best_policy(bench)
    settings = " ".join(f"{k}={v}" for k, v in torch_settings(THREADS, bench.policy).items())
    torch = run([PYTHON, "-c", "import torch; print(torch.__version__)"]).out.strip()
    print(f"settings: {THREADS} threads; PyTorch {torch} with {settings}")
    print(f"load average before: {load:.1f}" + (", too high to trust elapsed times" if load > 1 else ""), flush=True)
    for name in names or STEP_PLAN:
        measure_step(bench, name)


def compare(bench, name, variants, rounds, steps, threads=1):
    """Processor time of a step over that of the first variant, in percent more: all variants run in each round."""
    base, *others = variants
    more = {label: [] for label in others}
    for _ in range(rounds):
        spent = {label: later_steps(bench.run_train(name, threads, *options, steps=steps))[1]
                 for label, options in variants.items()}
        for label in others:
            more[label].append(100 * (spent[label] / spent[base] - 1))
    return {label: ranged(values, 1) for label, values in more.items()}


def bench_trace(bench, names):
    trace = ["--trace", os.path.join(bench.work, "t.jsonl")]
    print("## Cost of the trace: processor time of a step over the same without a trace, 1 thread, unchecked")
    for name in names or ("nano", "tiny"):
        more = compare(bench, name, {level: ["--unchecked", "--level", level, *trace]
                                     for level in ("none", "hashes", "full")}, 7, 9 if name == "tiny" else 40)
        print(f"{name}: hashes {more['hashes']} %, full {more['full']} %", flush=True)


def bench_checks(bench, names):
    print("## Cost of race checker and poison: processor time of a step over the same unchecked, 1 thread")
    for name in names or ("nano", "tiny"):
        more = compare(bench, name, {"without": ["--level", "none", "--unchecked"],
                                     "races": ["--level", "none", "--no-poison"], "with": ["--level", "none"]},
                       7, 9 if name == "tiny" else 40)
        print(f"{name}: race checker {more['races']} %, with poison {more['with']} %", flush=True)


def bench_start(bench, names):
    """A campaign is made of such runs."""
    trace = ["--quiet", "--level", "full", "--trace", os.path.join(bench.work, "t.jsonl")]
    print("## A whole run, all steps, full trace, all checks, 1 thread (milliseconds of processor time, median of 15)")
    for name in names or ("pico",):
        whole, one, bare = [], [], []
        for _ in range(15):
            bare.append(bench.run_train(name, 1, "--quiet", "--level", "none").processor)
            whole.append(bench.run_train(name, 1, *trace).processor)
            one.append(bench.run_train(name, 1, *trace, steps=1).processor)
        print(f"{name}: {1e3 * middle(whole):.1f} (best {1e3 * min(whole):.1f}), of which {1e3 * middle(one):.1f} "
              f"(best {1e3 * min(one):.1f}) are spent by a run of one step; without a trace {1e3 * middle(bare):.1f} "
              f"(best {1e3 * min(bare):.1f})", flush=True)


def bench_reference(bench, names):
    print("## The reference: GFLOP/s over the FMA peak of doubles (half that of floats), 1 thread, processor time")
    program = os.path.join(bench.build, "oracles", "reference", "faultline-ref")
    for name in names or ("pico", "nano", "tiny"):
        config = bench.config(name)
        trace = os.path.join(bench.work, "r.jsonl")
        steps = {"pico": 16, "nano": 12, "tiny": 4}.get(name, 3)
        command = [program, "--recipe", bench.recipe(name), "--weights", bench.weights_of(name), "--seed", "1",
                   "--threads", "1", "--cache", bench.work, "--trace", trace, "--steps"]
        run(command + [str(steps)])  # the text stage fills its cache
        rates = []
        for _ in range(3):
            whole = run(command + [str(steps)]).processor
            one = run(command + ["1"]).processor
            rates.append(gflop(config) * (steps - 1) / (whole - one))
        print(f"{name}: {ranged(rates, 1)} GFLOP/s, {100 * middle(rates) / (peak_gflops(bench, 1) / 2):.0f} % of the "
              f"peak; a run of {steps} steps {1e3 * whole:.0f} ms, of 1 step {1e3 * one:.0f} ms", flush=True)


def campaign(bench, name, *options):
    """Summary of a campaign run from nothing, with the times that it measured itself."""
    out = os.path.join(bench.work, "campaign")
    shutil.rmtree(out, ignore_errors=True)
    run([os.path.join(bench.build, "harness", "faultline"), "run", "--campaign",
         os.path.join(TOP, "corpus", "campaigns", name + ".yaml"), "--out", out, "--quiet", *options])
    with open(os.path.join(out, "results.json"), encoding="utf-8") as file:
        return json.load(file)["summary"]


def bench_mutants(bench, names):
    """Runs to the horizon, and runs that stop at the first verdict, are each other's peer."""
    print(f"## Campaigns from nothing, {THREADS} cores: faults a minute of their stage (a fault at a dose with a seed, "
          "all its runs judged), and where all cores' time went")
    for name in names or ("smoke",):
        spent = {}
        for label, options in (("to the horizon", ()), ("to the first verdict", ("--first-verdict",))):
            spent[label] = s = campaign(bench, name, *options)
            by = s["seconds_by"]
            shares = ", ".join(f"{work} {100 * value / sum(by.values()):.1f} %" for work, value in by.items())
            stages = ", ".join(f"{stage} {value:.1f}" for stage, value in s["seconds_of_stage"].items())
            print(f"{name}, {label}: {s['faults_a_minute']:.0f} faults a minute, {s['fault_cases']:.0f} in all; {shares}; "
                  f"{s['seconds']:.1f} s: {stages}", flush=True)
        whole, first = spent.values()
        busy = [s["processor_seconds_of_stage"] for s in (whole, first)]
        print(f"{name}, first verdict over horizon: {first['faults_a_minute'] / whole['faults_a_minute']:.2f} times the "
              f"faults a minute, {100 * busy[1]['faults'] / busy[0]['faults']:.0f} % of their processor time; campaign "
              f"{whole['seconds'] / first['seconds']:.2f} times as fast, "
              f"{100 * sum(busy[1].values()) / sum(busy[0].values()):.0f} % of its processor time")


def instructions(bench, program, fault, steps):
    """Instructions of a whole run of pico, counted by callgrind."""
    trace = os.path.join(bench.work, f"{program}-{fault.replace('/', '-')}-{steps}.jsonl")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               os.path.join(bench.build, "engine", program), "--recipe", bench.recipe("pico"), "--weights",
               bench.weights_of("pico"), "--seed", "1", "--steps", str(steps), "--threads", "1", "--level", "hashes",
               "--trace", trace, "--fault", fault, "--quiet"]
    child = subprocess.run(command, stderr=subprocess.PIPE, check=True)
    return int(re.search(rb"Collected : ([0-9]+)", child.stderr)[1])


def kernel_files_with_sites():
    for file in sorted(glob.glob(os.path.join(TOP, "kernels", "*.cu"))):
        with open(file, encoding="utf-8") as text:
            if "FAULT(" in text.read():
                yield os.path.relpath(file, TOP)


def bench_twin(bench, _):
    """Files without sites in kernels cost nothing: the rest of the engine is compiled once, with its sites. Counts
    do not depend on load, so the runs share the processors."""
    print("## Unarmed cost: instructions of a step of pico over production's (callgrind, -march=x86-64-v3)")
    production, mutable, files = "faultline-train-production", "faultline-train", list(kernel_files_with_sites())
    wanted = [(program, "none", steps) for program in (production, mutable) for steps in (1, 2)]
    wanted += [(mutable, "none:" + file, 2) for file in files]
    bench.weights_of("pico")
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        one, two, unarmed_one, unarmed_two, *twins = pool.map(lambda run: instructions(bench, *run), wanted)
    step, unarmed = two - one, unarmed_two - unarmed_one
    print(f"mutable build, nothing armed: {100 * (unarmed / step - 1):+.3f} % (limit +1 %)", flush=True)
    for file, twin in zip(files, twins):
        print(f"twin of {file}: {100 * (twin - unarmed_two) / (2 * step):+.2f} % of a step", flush=True)


def main():
    benches = {"step": bench_step, "trace": bench_trace, "start": bench_start, "checks": bench_checks,
               "reference": bench_reference, "mutants": bench_mutants, "twin": bench_twin}
    if len(sys.argv) < 3 or sys.argv[2] not in benches:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        benches[sys.argv[2]](Bench(os.path.abspath(sys.argv[1]), work), sys.argv[3:])


if __name__ == "__main__":
    main()
