"""Writes the trace that Faultline compares (oracles/TRACE.md). One file to copy; needs numpy only.

    faults = Faults(CATALOGUE, __file__)            # answers --faults --json, knows what is armed
    trace = TraceWriter(path, stack="mine", recipe="tiny.yaml", seed=1, steps=100, tensors=names)
    for step in range(1, 101):
        faults.step = step
        scale = 1.0 if faults.armed("loss_mean.summed") else 1.0 / rows
        ...
        trace.step(step, loss=loss, lr=lr, gradients={"w": g}, parameters={"w": w}, state=[w])
    trace.end(fault_reached=faults.reached)

With a Hugging Face Trainer: Trainer(..., callbacks=[TraceCallback(path, recipe="tiny.yaml")]).
"""
import functools
import hashlib
import json
import math
import os
import resource
import time

import numpy as np

GROUPS = ("activations", "gradients", "updates", "parameters", "moment1", "moment2")
BLOCK = 1 << 16  # elements of a sketch at a time: bounds its memory


def fnv1a(data):
    """FNV-1a 64 of bytes, as 16 hexadecimal digits: texts in UTF-8, and recipes."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def int_hash(values):
    """Hash of an array of integers (ids, labels, positions, segments), row-major."""
    return fnv1a(np.ascontiguousarray(values, dtype="<i4").tobytes())


def own_hash(arrays):
    """Hash of all bytes of some arrays, for comparison between runs of this stack only."""
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(np.ascontiguousarray(_numpy(array)).tobytes())
    return digest.hexdigest()


@functools.lru_cache(maxsize=64)
def _signs(block):
    """(elements, 8) of +1 and -1: the signs of elements block * BLOCK and on."""
    i = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.uint64).astype(np.uint32)
    h = i * np.uint32(0x9E3779B1)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x85EBCA77)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE3D)
    bits = np.unpackbits((h >> np.uint32(24)).astype(np.uint8)[:, None], axis=1, bitorder="little")
    return 2.0 * bits - 1.0


def _numpy(tensor):
    """A numpy array of a torch tensor, or of anything numpy understands."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) in ("torch.bfloat16", "torch.float16"):
            tensor = tensor.float()
        tensor = tensor.numpy()
    return np.asarray(tensor)


def sketch(tensor):
    """[norm, eight projections, count of elements that are not finite] of a tensor, row-major."""
    x = _numpy(tensor).reshape(-1)
    squares, projections, nonfinite = 0.0, np.zeros(8), 0
    with np.errstate(invalid="ignore", over="ignore"):
        for block, start in enumerate(range(0, x.size, BLOCK)):
            part = x[start:start + BLOCK].astype(np.float64)
            squares += float(part @ part)
            projections += part @ _signs(block)[:part.size]
            nonfinite += part.size - int(np.count_nonzero(np.isfinite(part)))
    return [math.sqrt(squares), *projections.tolist(), nonfinite]


def _plain(value):
    """JSON has no numbers that are not finite: they are texts."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(value, np.integer) else value


class Faults:
    """The seeded faults of a trainer and the one that FAULTLINE_FAULT arms."""

    def __init__(self, catalogue, source=None):
        """source: the file that asks armed("..."), whose lines publish() adds to the catalogue."""
        self.catalogue, self._source = catalogue, source
        self.name = os.environ.get("FAULTLINE_FAULT") or "none"
        self._id, _, dose = self.name.partition(":")
        self.dose = float(dose) if dose else None
        self.step = 0  # the step under way, 0 = set-up
        self.reached = -1  # first step in which the armed fault's place ran
        known = {fault["id"] for fault in catalogue}
        if self.name != "none" and self._id not in known:
            raise SystemExit(f"FAULTLINE_FAULT: unknown fault '{self.name}'")

    def armed(self, fault):
        """Whether this fault is armed; to be asked wherever its place runs, armed or not."""
        if fault != self._id:
            return False
        if self.reached < 0:
            self.reached = self.step
        return True

    def publish(self):
        """What the trainer prints for --faults --json."""
        lines = []
        if self._source is not None:
            with open(self._source, encoding="utf-8") as file:
                lines = file.read().splitlines()
        places = {fault["id"]: number for number, line in enumerate(lines, 1) for fault in self.catalogue
                  if f'armed("{fault["id"]}")' in line}
        print(json.dumps([{**fault, **({"line": places[fault["id"]]} if fault["id"] in places else {})}
                          for fault in self.catalogue], indent=1))


class TraceWriter:
    """One trace. `recipe` is the path of the recipe file; `fault` by default what is armed."""

    def __init__(self, path, *, stack, recipe, seed, steps, tensors=(), taps=(), backend="host",
                 precision="fp32", build="python", fault=None, first_step=1):
        with open(recipe, "rb") as file:
            recipe_hash = fnv1a(file.read())
        self._file = open(path, "w", encoding="utf-8", newline="\n")
        self._start = time.monotonic()
        self._steps = 0
        self._write({
            "type": "header", "trace_version": 1, "stack": stack,
            "recipe": os.path.splitext(os.path.basename(recipe))[0], "seed": seed, "recipe_hash": recipe_hash,
            "backend": backend, "precision": precision, "build": build,
            "fault": fault or os.environ.get("FAULTLINE_FAULT") or "none",
            "schedule": None, "schedule_seed": None, "threads": None, "driver": None,
            "level": "full", "first_step": first_step, "steps": steps,
            "tensors": list(tensors), "taps": list(taps)})

    def _write(self, line):
        self._file.write(json.dumps(_plain(line), separators=(",", ":"), allow_nan=False) + "\n")
        self._file.flush()  # a killed process leaves at most one cut line

    def step(self, number, *, loss, lr=None, grad_norm=None, clip=None, supervised=None, records=None,
             ids=None, labels=None, positions=None, segments=None, state=None, events=(), **groups):
        """One optimizer step.

        ids, labels, positions, segments: a list of integer arrays, one per micro-batch. state: arrays
        whose bytes are hashed, to tell runs of this stack apart. groups: activations, gradients,
        updates, parameters, moment1, moment2, each a dict from name to a tensor or to its sketch().
        """
        line = {"type": "step", "step": number, "records": records, "supervised": supervised,
                "loss": loss, "lr": lr, "grad_norm": grad_norm, "clip": clip, "events": list(events)}
        for key, batch in (("ids", ids), ("labels", labels), ("positions", positions), ("segments", segments)):
            line[key] = None if batch is None else [int_hash(array) for array in batch]
        unknown = set(groups) - set(GROUPS)
        if unknown:
            raise TypeError(f"no such group of tensors: {', '.join(sorted(unknown))}")
        line["sketch"] = {group: {name: x if isinstance(x, list) else sketch(x) for name, x in tensors.items()}
                          for group, tensors in groups.items()}
        if state is not None:
            line["hash"] = {"state": own_hash(state)}
        self._write({key: value for key, value in line.items() if value is not None})
        self._steps += 1

    def end(self, *, fault_reached=-1, features=(), status="ok"):
        """The last line. fault_reached: first step in which the armed fault's place ran, -1 = never."""
        self._write({"type": "end", "steps": self._steps, "status": status, "features": list(features),
                     "seconds": time.monotonic() - self._start,
                     "peak_host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                     "fault_reached": fault_reached})
        self._file.close()


class TraceCallback:
    """The shape of transformers.TrainerCallback: Trainer(..., callbacks=[TraceCallback(...)]).

    Traces gradients (before clipping), parameters, AdamW's moments and updates by name, learning
    rate and loss. Trainer rounds the loss it logs, so the loss is taken from the model's own outputs:
    the mean over the micro-batches of a step, or what `join` makes of them. grad_norm and clip need
    logging_steps=1, gradients a version with on_pre_optimizer_step. Updates cost a copy of all
    parameters; updates=False leaves them out.
    """

    def __init__(self, path, *, recipe, stack="transformers", precision="fp32", backend="torch",
                 faults=None, updates=True, join=np.mean):
        self._given = {"stack": stack, "recipe": recipe, "precision": precision, "backend": backend}
        self._path, self._faults, self._updates, self._join = path, faults, updates, join
        self._trace = self._line = self._before = self._hook = None
        self._gradients, self._losses = None, []

    def __getattr__(self, name):
        if name.startswith("on_"):  # the other events of a Trainer
            return lambda *arguments, **named: None
        raise AttributeError(name)

    def on_train_begin(self, args, state, control, model=None, **named):
        self._trace = TraceWriter(self._path, seed=args.seed, steps=state.max_steps,
                                  tensors=[name for name, _ in self._parameters(model)], **self._given)
        if hasattr(model, "register_forward_hook"):
            self._hook = model.register_forward_hook(self._forward)

    def on_step_begin(self, args, state, control, model=None, optimizer=None, **named):
        self._flush()
        if self._faults is not None:
            self._faults.step = state.global_step + 1
        self._lr = optimizer.param_groups[0]["lr"]
        self._gradients, self._losses = None, []
        if self._updates:
            self._before = {name: _numpy(p).astype(np.float64) for name, p in self._parameters(model)}

    def on_pre_optimizer_step(self, args, state, control, model=None, **named):
        self._gradients = {name: sketch(p.grad) for name, p in self._parameters(model) if p.grad is not None}

    def on_step_end(self, args, state, control, model=None, optimizer=None, **named):
        parameters = dict(self._parameters(model))
        self._line = {"number": state.global_step, "lr": self._lr, "clip": None, "grad_norm": None,
                      "loss": float(self._join(self._losses)) if self._losses else None,
                      "parameters": {name: sketch(p) for name, p in parameters.items()},
                      "state": list(parameters.values())}
        for group, key in (("moment1", "exp_avg"), ("moment2", "exp_avg_sq")):
            found = {name: optimizer.state[p][key] for name, p in parameters.items()
                     if p in optimizer.state and key in optimizer.state[p]}
            if found:
                self._line[group] = {name: sketch(m) for name, m in found.items()}
                self._line["state"] += found.values()
        self._line["state"] = [np.array(_numpy(x)) for x in self._line["state"]]
        if self._gradients is not None:
            self._line["gradients"] = self._gradients
        if self._before is not None:
            self._line["updates"] = {name: sketch(_numpy(p).astype(np.float64) - self._before[name])
                                     for name, p in parameters.items()}

    def on_log(self, args, state, control, logs=None, **named):
        if self._line is None or "grad_norm" not in (logs or {}):
            return
        norm, most = float(logs["grad_norm"]), args.max_grad_norm
        clip = min(1.0, most / (norm + 1e-6)) if most else 1.0  # torch.nn.utils.clip_grad_norm_
        self._line["grad_norm"], self._line["clip"] = norm, clip
        if "gradients" in self._line:  # sketches are linear: before clipping
            self._line["gradients"] = {name: [*(x / clip for x in s[:-1]), s[-1]]
                                       for name, s in self._line["gradients"].items()}

    def on_train_end(self, args, state, control, **named):
        self._flush()
        if self._hook is not None:
            self._hook.remove()
        self._trace.end(fault_reached=self._faults.reached if self._faults is not None else -1)

    @staticmethod
    def _parameters(model):
        return [(name, p) for name, p in model.named_parameters() if p.requires_grad]

    def _forward(self, model, inputs, outputs):
        loss = outputs.get("loss") if isinstance(outputs, dict) else getattr(outputs, "loss", None)
        if loss is not None and model.training:
            self._losses.append(float(loss))

    def _flush(self):
        if self._line is not None:
            self._trace.step(**self._line)
            self._line = None
