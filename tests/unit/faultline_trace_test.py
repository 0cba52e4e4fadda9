"""The trace writer of harness/examples/own_stack: hashes, sketches, lines, and the Trainer callback on a stand-in."""
import contextlib
import io
import json
import math
import os
import random
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../harness/examples/own_stack"))
import numpy as np  # noqa: E402

import faultline_trace as ft  # noqa: E402


def sign_byte(i):
    """By the definition in oracles/TRACE.md, in whole numbers."""
    h = i * 0x9E3779B1 % 2**32
    h = ((h ^ h >> 15) * 0x85EBCA77) % 2**32
    h = ((h ^ h >> 13) * 0xC2B2AE3D) % 2**32
    return h >> 24


def naive_sketch(values):
    terms = [[v if sign_byte(i) >> j & 1 else -v for i, v in enumerate(values)] for j in range(8)]
    return [math.sqrt(math.fsum(v * v for v in values)), *(math.fsum(t) for t in terms)]


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Sketch(unittest.TestCase):
    def test_signs_are_those_of_the_trace_format(self):
        self.assertEqual([sign_byte(i) for i in range(8)], [0, 10, 130, 211, 160, 100, 244, 192])
        for i, byte in ((0, 0), (5, 100), (4096, 54), (1000003, 151)):
            row = ft._signs(i // ft.BLOCK)[i % ft.BLOCK]
            self.assertEqual(sum(1 << j for j in range(8) if row[j] > 0), byte)

    def test_equals_the_definition_across_blocks(self):
        source = random.Random(7)
        for count in (0, 1, 9, ft.BLOCK, ft.BLOCK + 5):
            values = [source.uniform(-1, 1) for _ in range(count)]
            wanted, got = naive_sketch(values), ft.sketch(np.array(values).reshape(-1, 1))
            self.assertEqual(len(got), 10)
            # Both sum `count` products in double precision, in other orders.
            bound = (count + 1) * 2.0**-52 * max(1.0, math.fsum(abs(v) for v in values))
            for a, b in zip(got, wanted):
                self.assertLessEqual(abs(a - b), bound)
            self.assertEqual(got[9], 0)

    def test_single_precision_is_summed_in_double(self):
        values = np.full(3000, 0.1, np.float32)
        exact = float(values[0])  # the same double everywhere: 3000 additions of one rounding each
        self.assertLessEqual(abs(ft.sketch(values)[0] - math.sqrt(3000) * exact), 3000 * 2.0**-52)

    def test_what_json_has_no_number_for_is_text(self):
        self.assertEqual(ft._plain([math.inf, -math.inf, np.float32(0.5), np.int64(3)]), ["inf", "-inf", 0.5, 3])
        json.dumps(ft._plain({"n": np.int64(3)}))

    def test_counts_what_is_not_finite(self):
        got = ft.sketch(np.array([1.0, math.nan, math.inf, -math.inf], np.float32))
        self.assertEqual(got[9], 3)
        self.assertEqual(json.loads(json.dumps(ft._plain(got)))[0], "nan")


class Hashes(unittest.TestCase):
    def test_known_values(self):
        self.assertEqual(ft.fnv1a(b""), "cbf29ce484222325")
        self.assertEqual(ft.fnv1a(b"a"), "af63dc4c8601ec8c")
        self.assertEqual(ft.int_hash([[1, -100]]), ft.fnv1a(b"\x01\0\0\0\x9c\xff\xff\xff"))
        one, other = np.zeros(4, np.float32), np.zeros(4, np.float32)
        other[2] = -0.0
        self.assertRegex(ft.own_hash([one]), "^[0-9a-f]{16}$")
        self.assertNotEqual(ft.own_hash([one]), ft.own_hash([other]))


class Faults(unittest.TestCase):
    catalogue = [{"id": "a.b"}, {"id": "c"}]

    def setUp(self):
        os.environ.pop("FAULTLINE_FAULT", None)

    tearDown = setUp

    def test_first_step_is_kept(self):
        os.environ["FAULTLINE_FAULT"] = "a.b:0.5"
        faults = ft.Faults(self.catalogue)
        self.assertEqual((faults.dose, faults.reached), (0.5, -1))
        for faults.step in (3, 4):
            self.assertTrue(faults.armed("a.b"))
            self.assertFalse(faults.armed("c"))
        self.assertEqual(faults.reached, 3)

    def test_publishes_the_lines_that_ask(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "train.py")
            with open(source, "w", encoding="utf-8") as file:
                file.write('first\nx = 2 if faults.armed("a.b") else 1\n')
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                ft.Faults(self.catalogue, source).publish()
        self.assertEqual(json.loads(out.getvalue()), [{"id": "a.b", "line": 2}, {"id": "c"}])

    def test_unset_and_none_are_healthy_and_unknown_is_refused(self):
        for name in (None, "none"):
            if name:
                os.environ["FAULTLINE_FAULT"] = name
            faults = ft.Faults(self.catalogue)
            self.assertFalse(faults.armed("a.b"))
            self.assertEqual(faults.reached, -1)
        os.environ["FAULTLINE_FAULT"] = "z"
        self.assertRaises(SystemExit, ft.Faults, self.catalogue)


class Tensor(np.ndarray):
    """As much of a torch parameter as the callback touches: identity as a key, grad, requires_grad."""
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    requires_grad = True
    grad = None


class Model:
    """One matrix and a frozen one; gradients of a fixed pattern."""
    training = True

    def __init__(self):
        self.weight = np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32).view(Tensor)
        self.frozen = np.ones(2, np.float32).view(Tensor)
        self.frozen.requires_grad = False
        self.hooks = []

    def named_parameters(self):
        return [("weight", self.weight), ("frozen", self.frozen)]

    def register_forward_hook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def __call__(self, loss):
        for hook in self.hooks:
            hook(self, (), {"loss": loss})


class Callback(unittest.TestCase):
    """Events in the order of transformers.Trainer: micro-batches, clipping, optimizer, step end, log."""

    def run_trainer(self, path, recipe, log=True, most=1.0, faults=None):
        model, rate = Model(), 0.25
        optimizer = types.SimpleNamespace(param_groups=[{"lr": rate}], state={})
        args = types.SimpleNamespace(seed=5, max_grad_norm=most)
        state = types.SimpleNamespace(max_steps=2, global_step=0)
        given = {"model": model, "optimizer": optimizer, "train_dataloader": None}
        callback = ft.TraceCallback(path, recipe=recipe, faults=faults)
        self.assertIsNone(callback.on_init_end(args, state, None, **given))
        callback.on_train_begin(args, state, None, **given)
        raw = []
        for step in (1, 2):
            callback.on_step_begin(args, state, None, **given)
            self.assertEqual(faults.step if faults else step, step)
            model(step + 0.5)
            model.training = False  # an evaluation is not the step's
            model(99.0)
            model.training = True
            callback.on_substep_end(args, state, None, **given)
            model(step + 1.5)
            gradient = np.arange(6, dtype=np.float64).reshape(2, 3) * step
            norm = float(np.linalg.norm(gradient))
            raw.append(gradient)
            model.weight.grad = gradient * (min(1.0, most / (norm + 1e-6)) if most else 1.0)
            callback.on_pre_optimizer_step(args, state, None, **given)
            optimizer.state[model.weight] = {"exp_avg": gradient * 0.1, "exp_avg_sq": gradient**2 * 0.001}
            model.weight -= np.float32(0.125)
            optimizer.param_groups[0]["lr"] = rate / 2  # the scheduler, after the step
            state.global_step = step
            callback.on_step_end(args, state, None, **given)
            optimizer.param_groups[0]["lr"] = rate
            raw[-1] = (gradient, ft.own_hash([np.array(model.weight), *optimizer.state[model.weight].values()]))
            model.weight += np.float32(1)  # what happens between steps is not the step's
            if log:
                callback.on_log(args, state, None, logs={"loss": 1.2346, "grad_norm": norm}, **given)
        callback.on_log(args, state, None, logs={"train_runtime": 1.0}, **given)
        callback.on_step_begin(args, state, None, **given)  # one that is broken off
        callback.on_train_end(args, state, None, **given)
        self.assertEqual(model.hooks, [])
        return raw

    def test_a_run_is_a_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe, path = os.path.join(folder, "tiny.yaml"), os.path.join(folder, "t.jsonl")
            with open(recipe, "w", encoding="utf-8") as file:
                file.write("name: tiny\n")
            raw = self.run_trainer(path, recipe)
            header, *steps, end = lines_of(path)
            self.assertEqual(header["tensors"], ["weight"])
            self.assertEqual(header["recipe_hash"], ft.fnv1a(b"name: tiny\n"))
            self.assertEqual((header["recipe"], header["seed"], header["steps"]), ("tiny", 5, 2))
            self.assertEqual((end["status"], end["steps"], end["fault_reached"]), ("ok", 2, -1))
            self.assertEqual([step["step"] for step in steps], [1, 2])
            self.assertEqual([step["loss"] for step in steps], [2.0, 3.0])
            self.assertEqual([step["lr"] for step in steps], [0.25, 0.25])
            self.assertNotEqual(steps[0]["hash"], steps[1]["hash"])
            self.assertGreater(end["peak_host_bytes"], 1 << 23)  # an interpreter with numpy
            for step, (gradient, state) in zip(steps, raw):
                groups = step["sketch"]
                self.assertEqual(step["hash"], {"state": state})
                self.assertEqual(groups["moment1"]["weight"], ft.sketch(gradient * 0.1))
                self.assertEqual(groups["moment2"]["weight"], ft.sketch(gradient**2 * 0.001))
                self.assertEqual(set(groups), {"gradients", "parameters", "updates", "moment1", "moment2"})
                # Clipped and scaled back: a few roundings of numbers of this size.
                for a, b in zip(groups["gradients"]["weight"], ft.sketch(gradient)):
                    self.assertLessEqual(abs(a - b), 16 * 2.0**-52 * np.abs(gradient).sum())
                self.assertAlmostEqual(step["clip"], 1.0 / step["grad_norm"], places=6)
                # The update as the parameters show it, each rounded to single precision.
                for a, b in zip(groups["updates"]["weight"], ft.sketch(np.full(6, -0.125))):
                    self.assertLessEqual(abs(a - b), 6 * 2.0**-23)

    def test_clipping_is_what_the_norm_and_the_limit_say(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe, path = os.path.join(folder, "r"), os.path.join(folder, "t.jsonl")
            open(recipe, "w", encoding="utf-8").close()
            for most in (0, 1e3):  # no limit; one that is not reached
                self.run_trainer(path, recipe, most=most)
                self.assertEqual([step["clip"] for step in lines_of(path)[1:-1]], [1.0, 1.0])
            trace = ft.TraceCallback(path, recipe=recipe)
            trace._line = {"gradients": {"w": [4.0, 2.0, 3]}}
            trace.on_log(types.SimpleNamespace(max_grad_norm=0.5), None, None, logs={"grad_norm": 1.0})
            norm, projection, nonfinite = trace._line["gradients"]["w"]
            self.assertAlmostEqual(norm, 8.0, places=4)
            self.assertAlmostEqual(projection, 4.0, places=4)
            self.assertEqual(nonfinite, 3)

    def test_an_armed_fault_sees_the_step_under_way(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe, path = os.path.join(folder, "r"), os.path.join(folder, "t.jsonl")
            open(recipe, "w", encoding="utf-8").close()
            self.run_trainer(path, recipe, faults=types.SimpleNamespace(step=0, reached=2))
            self.assertEqual(lines_of(path)[-1]["fault_reached"], 2)

    def test_an_unknown_group_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe = os.path.join(folder, "r")
            open(recipe, "w", encoding="utf-8").close()
            trace = ft.TraceWriter(os.path.join(folder, "t"), stack="s", recipe=recipe, seed=1, steps=1)
            self.assertRaises(TypeError, trace.step, 1, loss=1.0, gradient={})
            trace.end()

    def test_without_logs_the_steps_are_there(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe, path = os.path.join(folder, "r"), os.path.join(folder, "t.jsonl")
            open(recipe, "w", encoding="utf-8").close()
            self.run_trainer(path, recipe, log=False)
            steps = lines_of(path)[1:-1]
            self.assertEqual([step["step"] for step in steps], [1, 2])
            self.assertTrue(all("grad_norm" not in step and "clip" not in step for step in steps))


if __name__ == "__main__":
    unittest.main()
