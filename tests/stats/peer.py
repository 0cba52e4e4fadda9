#!/usr/bin/python3
"""Compares the harness's statistics with R (survival, glm) and scipy on random data sets.

peer.py HAR_STAT_PEER PEER_R [SETS_A_KIND]: every number that both sides print must agree to 1e-9."""
import collections
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import scipy.optimize
import scipy.stats

TOLERANCE = 1e-9  # the contract's: relative, absolute below 1


def group(rng, scale):
    """Times on a coarse grid, so that ties and ties with censoring occur."""
    n = rng.randint(1, 40)
    horizon = rng.randint(2, 30)
    rows = []
    for _ in range(n):
        t = 1 + int(rng.expovariate(1.0 / scale))
        rows += [min(t, horizon), 1 if t <= horizon and rng.random() < 0.9 else 0]
    return [n] + rows


def survival(rng):
    g = group(rng, rng.choice([1, 4, 15]))
    horizon = max(min(g[1::2]), max(g[1::2]) - rng.choice([0, 0, 0.5, 3]))  # R wants no less
    if not any(g[2::2]):
        g[2] = 1
    return [rng.choice([0.9, 0.95, 0.99]), horizon] + g


def log_rank(rng):
    while True:
        a, b = group(rng, 4), group(rng, rng.choice([4, 10]))
        if sum(a[2::2]) and sum(b[2::2]) and a[0] > 2 and b[0] > 2:
            return a + b


def dose(rng):
    """Doses whose responses overlap, so that a maximum exists."""
    while True:
        n = rng.randint(3, 8)
        centre, slope = rng.uniform(-2, 2), rng.uniform(1, 4)
        rows = []
        for i in range(n):
            x = centre + 3.0 * (i / (n - 1) - 0.5)
            tried = rng.randint(2, 12)
            hit = sum(rng.random() < 1 / (1 + numpy.exp(-slope * (x - centre))) for _ in range(tried))
            rows.append((10.0**x, hit, tried))
        hits = [x for x, hit, _ in rows if hit]
        misses = [x for x, hit, tried in rows if hit < tried]
        if hits and misses and min(hits) < max(misses) and min(misses) < max(hits):
            return [0.95, n] + [value for row in rows for value in row]


def proportion(rng):
    n = rng.choice([1, 5, 20, 170, 3000])
    return [rng.randint(0, n), n, rng.choice([0.9, 0.95, 0.999])]


def normal(rng):
    return [rng.choice([rng.random(), 10.0**-rng.randint(3, 12)]), rng.uniform(-6, 6)]


def sign(rng):
    return [rng.randint(0, 60), rng.randint(0, 60)]


def cover(rng):
    n = rng.randint(1, 40)
    masks = [sum(1 << i for i in rng.sample(range(18), rng.randint(0, 4))) for _ in range(n)]
    return [rng.randint(0, sum(m != 0 for m in masks)), n] + masks


def smallest_cover(masks, need):
    """Fewest checks that meet `need` masks, as an integer program for scipy's HiGHS."""
    sets, n = 18, len(masks)
    hits = numpy.array([[m >> i & 1 for i in range(sets)] for m in masks])
    # x_i: check taken; y_j <= sum of x that see mask j: mask met.
    cost = numpy.concatenate([numpy.ones(sets), numpy.zeros(n)])
    met = scipy.optimize.LinearConstraint(numpy.hstack([hits, -numpy.eye(n)]), 0, numpy.inf)
    total = scipy.optimize.LinearConstraint(numpy.concatenate([numpy.zeros(sets), numpy.ones(n)]), need, numpy.inf)
    result = scipy.optimize.milp(cost, constraints=[met, total], integrality=numpy.ones(sets + n),
                                 bounds=scipy.optimize.Bounds(0, 1))
    return round(result.fun)


def from_scipy(kind, v):
    if kind == "proportion":
        k, n, confidence = int(v[0]), int(v[1]), v[2]
        interval = scipy.stats.binomtest(k, n).proportion_ci(confidence, method="exact")
        return {"low": interval.low, "high": interval.high}
    if kind == "normal":
        return {"quantile": scipy.stats.norm.ppf(v[0]), "tails": 2 * scipy.stats.norm.sf(abs(v[1])),
                "chi": scipy.stats.chi2.sf(abs(v[1]), 1)}
    if kind == "sign":
        n = int(v[0] + v[1])
        return {"p": scipy.stats.binomtest(int(v[0]), n).pvalue if n else 1.0}
    if kind == "cover":
        masks = [int(m) for m in v[2:]]
        coverable = sum(m != 0 for m in masks)
        return {"all": smallest_cover(masks, coverable), "all_met": coverable,
                "reach": smallest_cover(masks, int(v[0]))}
    return {}


def parse(text):
    results = collections.defaultdict(dict)
    for line in text.splitlines():
        number, name, value = line.split()
        results[int(number)][name] = float(value)
    return results


def main():
    peer, script = sys.argv[1], sys.argv[2]
    per_kind = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    rng = random.Random(20260801)
    makers = [survival, log_rank, dose, proportion, normal, sign, cover]
    sets = [(maker.__name__, maker(rng)) for maker in makers for _ in range(per_kind)]
    text = "".join(f"{kind} {' '.join(repr(float(x)) if isinstance(x, float) else str(x) for x in v)}\n"
                   for kind, v in sets)
    ours = parse(subprocess.run([peer], input=text, capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "sets.txt"
        path.write_text(text)
        theirs = parse(subprocess.run(["Rscript", script, str(path)], stdout=subprocess.PIPE, text=True,
                                      check=True).stdout)
    compared, worst, failed = collections.Counter(), collections.defaultdict(float), 0
    for number, (kind, v) in enumerate(sets):
        wanted = dict(theirs.get(number, {})) or from_scipy(kind, v)
        missing = set(wanted) - set(ours[number])
        if missing or not wanted:
            failed += 1
            print(f"FAILED: set {number} ({kind}): not printed: {sorted(missing)}")
        for name, value in wanted.items():
            mine = ours[number].get(name, float("nan"))
            error = abs(mine - value) / max(1.0, abs(value))
            if kind == "normal" and name != "quantile":  # tails far below 1: relative
                error = abs(mine - value) / abs(value)
            compared[kind] += 1
            worst[kind] = max(worst[kind], error)
            if not error <= TOLERANCE:
                failed += 1
                print(f"FAILED: set {number} ({kind}) {name}: ours {mine!r}, peer {value!r}")
    for kind, count in compared.items():
        side = "scipy" if from_scipy(kind, next(v for k, v in sets if k == kind)) else "R"
        print(f"{kind}: {count} numbers of {per_kind} sets against {side}, largest deviation {worst[kind]:.1e}")
    print(f"{sum(compared.values()) - failed} passed, {failed} failed")
    return 1 if failed or len(compared) < len(makers) or min(compared.values()) < per_kind else 0


sys.exit(main())
