"""A trainer of one's own, in single precision: softmax regression with three seeded faults.

    train_softmax.py --faults --json
    FAULTLINE_FAULT=loss_mean.summed train_softmax.py --recipe softmax.json --seed 1 --steps 12 --trace t.jsonl
"""
import argparse
import json

import numpy as np

from faultline_trace import Faults, TraceWriter

CATALOGUE = [
    {"id": "loss_mean.summed", "family": "loss", "class": "gradient", "file": "train_softmax.py",
     "healthy": "error / rows", "faulty": "error", "why": "the gradient is summed over the batch, not its mean"},
    {"id": "decay_bias.decayed", "family": "optimizer", "class": "update", "file": "train_softmax.py",
     "healthy": "0", "faulty": "decay * b", "why": "biases decay as well"},
    {"id": "order_epoch.never_mixed", "family": "data", "class": "order", "file": "train_softmax.py",
     "healthy": "epoch", "faulty": "0", "why": "every epoch visits the examples in the order of the first"},
]


def examples(recipe):
    count, features = recipe["examples"], recipe["features"]
    x = np.sin(1.0 + np.arange(count * features, dtype=np.float64).reshape(count, features))
    return x.astype(np.float32), x[:, :recipe["classes"]].argmax(axis=1)


def order_of(epoch, seed, count):
    """Places of the examples in one epoch (rule in softmax.json)."""
    order, state = list(range(count)), seed * 1000 + epoch
    for place in range(count - 1, 0, -1):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        other = (state >> 33) % (place + 1)
        order[place], order[other] = order[other], order[place]
    return order


def read(recipe, seed, step, faults):
    """Indices of the examples of a step and their epochs."""
    count, batch = recipe["examples"], recipe["batch"]
    rows = []
    for place in range((step - 1) * batch, step * batch):
        epoch = place // count
        shuffled = epoch if epoch == 0 or not faults.armed("order_epoch.never_mixed") else 0
        rows.append((order_of(shuffled, seed, count)[place % count], epoch))
    return rows


def train(recipe, arguments, faults):
    x, classes = examples(recipe)
    c, f, rate = recipe["classes"], recipe["features"], np.float32(recipe["lr"])
    w = (0.1 * np.sin(arguments.seed + np.arange(c * f, dtype=np.float64))).astype(np.float32).reshape(c, f)
    b, mw, mb = np.zeros(c, np.float32), np.zeros((c, f), np.float32), np.zeros(c, np.float32)
    momentum, decay = np.float32(recipe["momentum"]), np.float32(recipe["decay"])
    trace = TraceWriter(arguments.trace, stack="train_softmax", recipe=arguments.recipe, seed=arguments.seed,
                        steps=arguments.steps, tensors=["w", "b"], taps=["logits"])
    for step in range(1, arguments.steps + 1):
        faults.step = step
        rows = read(recipe, arguments.seed, step, faults)
        index = [i for i, _ in rows]
        logits = x[index] @ w.T + b
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        loss = -np.log(p[np.arange(len(index)), classes[index]]).mean()
        error = p.copy()
        error[np.arange(len(index)), classes[index]] -= 1
        if not faults.armed("loss_mean.summed"):
            error /= np.float32(len(index))
        gw, gb = error.T @ x[index], error.sum(axis=0)
        mw, mb = momentum * mw + gw, momentum * mb + gb
        shrunk = decay * b if faults.armed("decay_bias.decayed") else np.float32(0)
        uw, ub = -rate * (mw + decay * w), -rate * (mb + shrunk)
        w, b = w + uw, b + ub
        trace.step(step, loss=loss, lr=rate, clip=1.0, supervised=len(index),
                   grad_norm=np.sqrt((gw * gw).sum() + (gb * gb).sum()),
                   records=[{"id": str(i), "epoch": epoch} for i, epoch in rows], labels=[classes[index]],
                   activations={"logits": logits}, gradients={"w": gw, "b": gb}, updates={"w": uw, "b": ub},
                   parameters={"w": w, "b": b}, moment1={"w": mw, "b": mb}, state=[w, b, mw, mb])
    trace.end(fault_reached=faults.reached)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--recipe")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--trace")
    arguments = parser.parse_args()
    faults = Faults(CATALOGUE, __file__)
    if arguments.faults:
        faults.publish()
        return
    with open(arguments.recipe, encoding="utf-8") as file:
        train(json.load(file), arguments, faults)


if __name__ == "__main__":
    main()
