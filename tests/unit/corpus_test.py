"""The corpus keeps its own rules: data, templates, tokenizer, recipes, initial weights.

    corpus_test.py CORPUS_FOLDER FAULTLINE_INIT [unittest arguments]
"""
import glob
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import corpus_model

CORPUS = INIT = None
# Settled by the run itself, not by recipe and data.
RUN_TIME = {"clipped", "tight", "lazy", "pct", "tasks", "resumed"}
SMALLEST = {"clinical.jsonl": 300, "clinical_eval.jsonl": 40, "hostile.jsonl": 60, "short.jsonl": 140,
            "tiny_epochs.jsonl": 12, "reasoning.jsonl": 12}
# Of pico's weights for seed 1: the same on every compiler and machine.
WEIGHTS_SHA256 = "2794cd97085f068d778bbebdfbbbf492615cb6b9b8f3d780e2e5776a04335c10"


def path(*parts):
    return os.path.join(CORPUS, *parts)


def records(name):
    return corpus_model.read_records([path("data", name)])


class Data(unittest.TestCase):
    def test_every_line_obeys_the_rules_and_ids_are_unique(self):
        for name, smallest in SMALLEST.items():
            found = records(name)
            self.assertGreaterEqual(len(found), smallest, name)
            self.assertEqual(len({record["id"] for record in found}), len(found), name)
        self.assertEqual(sorted(SMALLEST), sorted(os.path.basename(p) for p in glob.glob(path("data", "*.jsonl"))))

    def test_no_conversation_occurs_twice(self):
        seen = {}
        for name in ("clinical.jsonl", "clinical_eval.jsonl"):
            for record in records(name):
                for message in record["messages"]:
                    if message["role"] == "assistant":
                        key = message["content"]
                        self.assertNotIn(key, seen, (record["id"], seen.get(key)))
                        seen[key] = record["id"]
        self.assertGreater(len(seen), 340)

    def test_clinical_answers_are_mostly_a_paragraph_long(self):
        words = [len(message["content"].split()) for record in records("clinical.jsonl")
                 for message in record["messages"] if message["role"] == "assistant"]
        paragraphs = sum(40 <= count <= 110 for count in words)
        self.assertGreaterEqual(paragraphs, 300)
        self.assertLessEqual(max(words), 130)

    def test_hostile_texts_hold_what_they_promise(self):
        contents = [m["content"] for r in records("hostile.jsonl") for m in r["messages"]]
        everything = "\n".join(contents)
        for text in ("\u0301", "\r\n", "\u3000", "\u00a0", "\u180e", "\ufeff", "\u0085", "\U000f0000", "\U0010fffd",
                     "\0", "\u200d", "\U0001f1e9\U0001f1ea", "\u05de", "[INST]", "<<SYS>>", "System:", "```", '"', "\\"):
            self.assertIn(text, everything, ascii(text))
        tokenizer = corpus_model.Tokenizer(path("tokenizers", "clinical-2k.json"))
        for token in tokenizer.control:
            self.assertIn(token, everything)
        self.assertIn("", contents)
        self.assertGreaterEqual(max(map(len, contents)), 10000)
        self.assertGreaterEqual(max(len(word) for text in contents for word in text.split()), 1500)

    def test_the_rules_reject_bad_lines(self):
        good = b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}'
        self.assertEqual(corpus_model.parse_line(good + b"\r")["messages"][1]["content"], "b")
        bad = [b"", b"\xef\xbb\xbf" + good, good.replace(b'"b"', b'"\\ud800"'), good.replace(b"b", b"\xff"),
               good.replace(b"user", b"system"), good[:-1] + b',"id":3}', good[:-1] + b',"x":NaN}',
               good[:-1] + b',"messages":[]}', good.replace(b"assistant", b"user"), b"[]", b'{"messages":[]}']
        for line in bad:
            with self.assertRaises(ValueError, msg=line):
                corpus_model.parse_line(line)


class Templates(unittest.TestCase):
    def check(self, name, trim):
        source = corpus_model.template(path("templates"), name)
        count = 0
        for file in SMALLEST:
            for record in records(file):
                rendered = corpus_model.render(source, record["messages"])
                text = "".join(c for c, _, _ in rendered)
                spans = "".join(c if span else "\udfff" for c, _, span in rendered).split("\udfff")
                answers = [m["content"] for m in record["messages"] if m["role"] == "assistant"]
                end = " " * (name == "llama2") + corpus_model.END_OF_TURN[name]
                wanted = [(a.strip() if trim else a) + end for a in answers]
                self.assertEqual([span for span in spans if span], wanted, (name, record["id"]))
                for message in record["messages"]:
                    self.assertIn(message["content"].strip(), text)
                count += 1
        self.assertGreater(count, 400)

    def test_chatml(self):
        self.check("chatml", False)

    def test_llama2(self):
        self.check("llama2", True)

    def test_llama3(self):
        self.check("llama3", True)

    def test_gemma(self):
        self.check("gemma", True)

    def test_plain(self):
        self.check("plain", False)

    def test_layouts(self):
        messages = [{"role": r, "content": c} for r, c in
                    (("system", " S "), ("user", " q "), ("assistant", " a "), ("user", "r"), ("assistant", "b"))]
        wanted = {
            "chatml": "<|im_start|>system\n S <|im_end|>\n<|im_start|>user\n q <|im_end|>\n<|im_start|>assistant\n a "
                      "<|im_end|>\n<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n",
            "llama2": "<s>[INST] <<SYS>>\n S \n<</SYS>>\n\nq [/INST] a </s><s>[INST] r [/INST] b </s>",
            "llama3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
                      "<|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|>"
                      "<|start_header_id|>assistant<|end_header_id|>\n\na<|eot_id|>"
                      "<|start_header_id|>user<|end_header_id|>\n\nr<|eot_id|>"
                      "<|start_header_id|>assistant<|end_header_id|>\n\nb<|eot_id|>",
            "gemma": "<bos><start_of_turn>user\nS\n\nq<end_of_turn>\n<start_of_turn>model\na<end_of_turn>\n"
                     "<start_of_turn>user\nr<end_of_turn>\n<start_of_turn>model\nb<end_of_turn>\n",
            "plain": "System:  S \nUser:  q \nAssistant:  a <|endoftext|>\nUser: r\nAssistant: b<|endoftext|>\n",
        }
        for name, text in wanted.items():
            source = corpus_model.template(path("templates"), name)
            self.assertEqual("".join(c for c, _, _ in corpus_model.render(source, messages)), text)


class TokenizerFile(unittest.TestCase):
    file = "clinical-2k.json"

    def test_training_again_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "t.json")
            subprocess.run([sys.executable, path("tokenizers", "train_bpe.py"), "--size", "2048", "--out", out,
                            path("data", "clinical.jsonl"), path("data", "short.jsonl")],
                           check=True, stderr=subprocess.DEVNULL)
            with open(out, "rb") as again, open(path("tokenizers", self.file), "rb") as committed:
                self.assertEqual(again.read(), committed.read())

    def test_deriving_again_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind, name in (("composed", "clinical-composed.json"), ("ranks", "clinical.cl100k.tiktoken")):
                subprocess.run([sys.executable, path("tokenizers", "derive.py"), kind, path("tokenizers", self.file),
                                os.path.join(folder, name)], check=True)
            made = sorted(os.listdir(folder))
            self.assertEqual(len(made), 3)
            for name in made:
                with open(os.path.join(folder, name), "rb") as again, open(path("tokenizers", name), "rb") as committed:
                    self.assertEqual(again.read(), committed.read(), name)

    def test_shape(self):
        with open(path("tokenizers", self.file), encoding="utf-8") as file:
            tokenizer = json.load(file)
        vocab, added = tokenizer["model"]["vocab"], tokenizer["added_tokens"]
        ids = sorted([*vocab.values(), *(token["id"] for token in added)])
        self.assertEqual(ids, list(range(2048)))
        self.assertTrue(all(token["special"] for token in added))
        for pair in tokenizer["model"]["merges"]:
            self.assertIn(pair.replace(" ", "", 1), vocab)

    def test_padding_reaches_the_size(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "t.json")
            tool, source = path("tokenizers", "pad_vocab.py"), path("tokenizers", self.file)
            subprocess.run([sys.executable, tool, "--size", "49152", source, out], check=True)
            self.assertEqual(corpus_model.Tokenizer(out).size, 49152)
            small = subprocess.run([sys.executable, tool, "--size", "7", source, out], capture_output=True, text=True)
            self.assertEqual(small.returncode, 1)
            self.assertIn(f"{source}: it has 2048 tokens already", small.stderr)


class Recipes(unittest.TestCase):
    def test_each_recipe_contains_the_features_that_it_claims(self):
        checked = 0
        for recipe in sorted(glob.glob(path("recipes", "*.yaml"))):
            with open(recipe, encoding="utf-8") as file:
                text = file.read()
            claim = re.search(r"^# Features: (.*)$", text, re.M)
            if "/made/" in text:  # needs a tokenizer that is made on demand
                continue
            self.assertIsNotNone(claim, recipe)
            run = corpus_model.Run(recipe)
            self.assertEqual(run.recipe["name"], os.path.basename(recipe)[:-len(".yaml")])
            self.assertEqual(run.tokenizer.size, run.recipe["model"]["vocab"], recipe)
            self.assertEqual(set(claim[1].split()) - RUN_TIME, run.features, recipe)
            rows = run.recipe["train"]["rows"] * run.recipe["train"]["grad_accum"]
            if run.recipe["data"]["packing"] == "wrapped":  # a row may be a prompt from end to end
                run.supervised = [sum(run.supervised[at:at + rows]) for at in range(0, len(run.supervised), rows)]
            self.assertGreater(min(run.supervised), 0, recipe)
            checked += 1
        self.assertGreaterEqual(checked, 16)


class Weights(unittest.TestCase):
    def make(self, folder, recipe, seed="1"):
        out = os.path.join(folder, "w.safetensors")
        subprocess.run([INIT, "--recipe", path("recipes", recipe), "--seed", seed, "--out", out], check=True)
        with open(out, "rb") as file:
            return file.read()

    def test_bytes_are_the_same_everywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            data = self.make(folder, "pico.yaml")
            self.assertNotEqual(data, self.make(folder, "pico.yaml", "2"))
        self.assertEqual(hashlib.sha256(data).hexdigest(), WEIGHTS_SHA256)

    def test_header_covers_the_data_without_gaps(self):
        for recipe in ("pico.yaml", "pico-tied.yaml", "nano.yaml"):
            with tempfile.TemporaryDirectory() as folder:
                data = self.make(folder, recipe)
            length = struct.unpack("<Q", data[:8])[0]
            header = json.loads(data[8:8 + length])
            header.pop("__metadata__")
            at = 0
            for name, tensor in header.items():
                elements = 1
                for size in tensor["shape"]:
                    elements *= size
                self.assertEqual(tensor["data_offsets"], [at, at + 4 * elements], name)
                at += 4 * elements
            self.assertEqual(at, len(data) - 8 - length)
            self.assertEqual("lm_head.weight" in header, "tied" not in recipe)

    def test_failures_exit_as_documented(self):
        pico = path("recipes", "pico.yaml")
        cases = [(["--recipe", pico], 1), (["--recipe", pico, "--seed", "x", "--out", "w"], 1),
                 (["--recipe", "missing.yaml", "--seed", "1", "--out", "w"], 74),
                 (["--recipe", pico, "--seed", "1", "--out", "/nonexistent/w"], 74)]
        for words, code in cases:
            result = subprocess.run([INIT, *words], capture_output=True, text=True)
            self.assertEqual(result.returncode, code, words)
            self.assertTrue(result.stderr.startswith("faultline-init: "), words)


if __name__ == "__main__":
    CORPUS, INIT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
