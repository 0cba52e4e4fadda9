"""The second trainer: the same rule (softmax.json) in double precision, written on its own, nothing shared.

    second_softmax.py --recipe softmax.json --seed 1 --steps 12 --trace t.jsonl
"""
import json
import math
import sys


def bits(i):
    """The byte whose bits are the signs of element i in a sketch (oracles/TRACE.md)."""
    h = i * 0x9E3779B1 % 2**32
    h = (h ^ h >> 15) * 0x85EBCA77 % 2**32
    h = (h ^ h >> 13) * 0xC2B2AE3D % 2**32
    return h >> 24


def sketch(rows):
    flat = [v for row in rows for v in row]
    projections = [sum(v if bits(i) >> j & 1 else -v for i, v in enumerate(flat)) for j in range(8)]
    return [math.sqrt(sum(v * v for v in flat)), *projections, 0]


def hash_of(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return f"{h:016x}"


def visits(seed, count):
    """Examples in the order of the epochs, for ever, with the epoch."""
    epoch = 0
    while True:
        places, x = list(range(count)), seed * 1000 + epoch
        for last in reversed(range(1, count)):
            x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
            chosen = (x >> 33) % (last + 1)
            places[last], places[chosen] = places[chosen], places[last]
        yield from ((i, epoch) for i in places)
        epoch += 1


def main():
    given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    seed, steps = int(given["--seed"]), int(given["--steps"])
    with open(given["--recipe"], "rb") as file:
        text = file.read()
    r = json.loads(text)
    c, f = r["classes"], r["features"]
    w = [[0.1 * math.sin(seed + k * f + j) for j in range(f)] + [0.0] for k in range(c)]  # bias last
    m = [[0.0] * (f + 1) for _ in range(c)]
    source = visits(seed, r["examples"])
    out = open(given["--trace"], "w", encoding="utf-8")
    write = lambda line: print(json.dumps(line), file=out, flush=True)
    write({"type": "header", "trace_version": 1, "stack": "second_softmax", "recipe": "softmax", "seed": seed,
           "recipe_hash": hash_of(text), "backend": "reference", "precision": "fp64", "fault": "none",
           "level": "full", "first_step": 1, "steps": steps, "tensors": ["w", "b"], "taps": ["logits"]})
    for step in range(1, steps + 1):
        batch = [next(source) for _ in range(r["batch"])]
        g, logits, labels, loss = [[0.0] * (f + 1) for _ in range(c)], [], [], 0.0
        for i, _ in batch:
            x = [math.sin(1 + i * f + j) for j in range(f)] + [1.0]
            label = max(range(c), key=lambda k: x[k])
            z = [sum(a * b for a, b in zip(row, x)) for row in w]
            total = sum(math.exp(v) for v in z)
            loss += (math.log(total) - z[label]) / len(batch)
            for k in range(c):
                error = math.exp(z[k]) / total - (k == label)
                for j in range(f + 1):
                    g[k][j] += error * x[j] / len(batch)
            logits.append(z)
            labels.append(label)
        m = [[r["momentum"] * a + b for a, b in zip(mr, gr)] for mr, gr in zip(m, g)]
        u = [[-r["lr"] * (mr[j] + (r["decay"] * wr[j] if j < f else 0.0)) for j in range(f + 1)] for mr, wr in zip(m, w)]
        w = [[a + b for a, b in zip(wr, ur)] for wr, ur in zip(w, u)]
        parts = lambda t: {"w": sketch([row[:f] for row in t]), "b": sketch([[row[f]] for row in t])}
        write({"type": "step", "step": step, "records": [{"id": str(i), "epoch": e} for i, e in batch],
               "labels": [hash_of(b"".join(v.to_bytes(4, "little") for v in labels))], "supervised": len(batch),
               "loss": loss, "lr": r["lr"], "grad_norm": math.sqrt(sum(v * v for row in g for v in row)), "clip": 1.0,
               "sketch": {"activations": {"logits": sketch(logits)}, "gradients": parts(g), "updates": parts(u),
                          "parameters": parts(w), "moment1": parts(m)}})
    write({"type": "end", "steps": steps, "status": "ok", "features": []})


if __name__ == "__main__":
    main()
