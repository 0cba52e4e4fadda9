"""The data rules of corpus/RECIPE.md, by definition and slowly: what a recipe's run contains.

For corpus_test.py. Shares nothing with the engine or the oracles.
"""
import base64
import gzip
import datetime
import json
import math
import os
import re
import subprocess
import unicodedata

import jinja2
import jinja2.ext
import regex
import yaml

ROLES = ("system", "user", "assistant", "tool")
END_OF_TURN = {"chatml": "<|im_end|>", "llama2": "</s>", "llama3": "<|eot_id|>", "gemma": "<end_of_turn>",
               "plain": "<|endoftext|>"}
# Lone surrogates cannot occur in a content, so they can mark what the template did.
CONTENT, CONTENT_END, SPAN, SPAN_END = "\ud800", "\ud801", "\ud802", "\ud803"
GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+"
        r"|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
MASK64 = (1 << 64) - 1


def _pairs(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def _constant(text):
    raise ValueError(f"{text} is not JSON")


def as_messages(record, form):
    """The messages that a record of one of the formats means."""
    def chat(*texts, system=""):
        turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
        return ([{"role": "system", "content": system}] if system else []) + turns

    if form == "messages":
        return record.get("messages")
    if form == "sharegpt":
        names = {"human": "user", "gpt": "assistant"}
        turns = [{"role": names.get(turn["from"], turn["from"]), "content": turn["value"]}
                 for turn in record["conversations"]]
        return chat(system=record.get("system", "")) + turns
    if form == "alpaca":
        question = "\n".join(filter(None, (record["instruction"], record.get("input", ""))))
        past = [text for pair in record.get("history", []) for text in pair]
        return chat(*past, question, record["output"], system=record.get("system", ""))
    prompt, completion = record["prompt"], record["completion"]
    return ((chat(prompt) if isinstance(prompt, str) else prompt) +
            ([{"role": "assistant", "content": completion}] if isinstance(completion, str) else completion))


def parse_line(raw, form="messages"):
    """The record of one line (bytes without its line feed); ValueError says what is wrong."""
    text = (raw[:-1] if raw.endswith(b"\r") else raw).decode("utf-8")
    if text == "":
        raise ValueError("empty line")
    if text.startswith("\ufeff"):
        raise ValueError("byte order mark")
    record = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    if not isinstance(record, dict) or not isinstance(record.get("id", ""), str):
        raise ValueError("not an object with a textual id")
    messages = record["messages"] = as_messages(record, form)
    if not isinstance(messages, list) or not messages:
        raise ValueError("no messages")
    for message in messages:
        if message["role"] not in ROLES or not (isinstance(message["content"], str) or message.get("tool_calls")):
            raise ValueError("bad message")
        (message["content"] or "").encode("utf-8")  # fails on a lone surrogate
    # One letter a message: c is an assistant's that calls tools.
    turns = "".join("c" if message.get("tool_calls") else message["role"][0] for message in messages)
    if not re.fullmatch("s?(u([ac]t+)*a)*u([ac]t+)*[ac]", turns):
        raise ValueError("roles out of order")
    return record


def read_content(path):
    """The bytes of a file, unpacked, and the features of its packing."""
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data), {"compressed"} | ({"members"} if data.count(b"\x1f\x8b\x08") > 1 else set())
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout, {"compressed"}
    return data, set()


def read_records(paths, form="messages"):
    """The records of the files, each with its id."""
    records = []
    for path in paths:
        data, _ = read_content(path)
        for raw in data[:-1 if data.endswith(b"\n") else None].split(b"\n"):
            record = parse_line(raw, form)
            record.setdefault("id", f"line:{len(records) + 1}")
            record["path"] = path
            records.append(record)
    return records


CLOCK = datetime.datetime(2024, 1, 1)  # what strftime_now sees, by RECIPE.md


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

    def _mark(self, caller):
        return SPAN + caller() + SPAN_END


def template(folder, name):
    def mark(value):
        # What a call block gives is passed on as it is: it holds marks already.
        return value if SPAN in value else CONTENT + value + CONTENT_END

    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation], finalize=mark,
        undefined=jinja2.StrictUndefined, loader=jinja2.FileSystemLoader(folder))
    environment.globals["strftime_now"] = CLOCK.strftime
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    if name == "tool_turns":  # reads keys that are not there
        environment.undefined = jinja2.Undefined
    return environment.get_template(name + ".jinja")


def render(source, messages, beside=None):
    """The characters of the rendered text: list of (character, from content, in an assistant span)."""
    content = span = False
    out = []
    for character in source.render(messages=messages, add_generation_prompt=False, **(beside or {})):
        if character in (CONTENT, CONTENT_END):
            content = character == CONTENT
        elif character in (SPAN, SPAN_END):
            span = character == SPAN
        else:
            out.append((character, content, span))
    return by_prefix(source, messages, out) if source.name == "dated_turns.jinja" else out


def by_prefix(source, messages, out):
    """The same with the spans of a template without marks: what follows a rendered prefix."""
    def size(count, prompt):
        text = source.render(messages=messages[:count], add_generation_prompt=prompt)
        return len(text.replace(CONTENT, "").replace(CONTENT_END, ""))

    spans = [(size(i, True), size(i + 1, False))
             for i, message in enumerate(messages) if message["role"] == "assistant"]
    return [(c, content, any(a <= at < b for a, b in spans)) for at, (c, content, _) in enumerate(out)]


def beside(record):
    """What a record gives templates besides messages."""
    return {key: record.get(key) for key in ("tools", "documents")}


class Tokenizer:
    def __init__(self, path):
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = [byte for byte in range(256) if byte not in printable]
        self.letters = {byte: chr(byte) for byte in printable}
        self.letters.update({byte: chr(256 + index) for index, byte in enumerate(others)})
        self.cache = {}
        if path.endswith(".cl100k.tiktoken"):
            self._read_ranks(path)
        else:
            self._read_json(path)
        self.size = len(self.vocab) + len(self.control)

    def _read_json(self, path):
        with open(path, encoding="utf-8") as file:
            tokenizer = json.load(file)
        self.control = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
        self.takes_space = {token["content"] for token in tokenizer["added_tokens"] if token["rstrip"]}
        self.vocab = tokenizer["model"]["vocab"]
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(tokenizer["model"]["merges"])}
        self.composes = tokenizer["normalizer"] is not None
        split = tokenizer["pre_tokenizer"].get("pretokenizers")
        self.pattern = split[0]["pattern"]["Regex"] if split else GPT2

    def _read_ranks(self, path):
        tables = []
        for name in (path, path + ".special"):
            with open(name, encoding="ascii") as file:
                tables.append({base64.b64decode(line.split(" ")[0]): int(line.split(" ")[1]) for line in file})
        self.control = {text.decode(): number for text, number in tables[1].items()}
        self.vocab = {"".join(self.letters[byte] for byte in text): number for text, number in tables[0].items()}
        self.ranks = {(text[:at], text[at:]): number for text, number in self.vocab.items() for at in range(1, len(text))
                      if text[:at] in self.vocab and text[at:] in self.vocab}
        self.composes, self.pattern, self.takes_space = False, CL100K, set()

    def piece(self, text):
        """The token texts of a piece."""
        if text not in self.cache:
            parts = [self.letters[byte] for byte in text.encode("utf-8")]
            while len(parts) > 1:
                rank, at = min((self.ranks.get(pair, math.inf), at) for at, pair in enumerate(zip(parts, parts[1:])))
                if rank == math.inf:
                    break
                parts[at:at + 2] = [parts[at] + parts[at + 1]]
            self.cache[text] = parts
        return self.cache[text]

    def encode(self, rendered):
        """Tokens of a rendered text: list of (id, supervised). Notes whether one begins before an answer and ends in it."""
        self.joined = False
        out = []
        text = "".join(character for character, _, _ in rendered)
        start = at = 0
        while at <= len(rendered):
            found = max((token for token in self.control if text.startswith(token, at) and
                         not any(content for _, content, _ in rendered[at:at + len(token)])),
                        key=len, default=None) if at < len(rendered) and text[at] == "<" else None
            if found or at == len(rendered):
                out += self._encode_plain(rendered[start:at], text[start:at])
            if found:
                out.append((self.control[found], rendered[at][2]))
                start = at + len(found)
                while found in self.takes_space and text[start:start + 1].isspace():
                    start += 1
            at = start if found else at + 1
        return out

    def _encode_plain(self, rendered, text):
        if self.composes:
            # Good enough for our texts: marks follow what they compose with.
            rendered = [(character, _, span) for stretch, _, span in stretches(rendered)
                        for character in unicodedata.normalize("NFC", stretch)]
            text = "".join(character for character, _, _ in rendered)
        spans = [span for character, _, span in rendered for _ in character.encode("utf-8")]
        out = []
        at = 0
        for piece in regex.findall(self.pattern, text):
            for part in self.piece(piece):
                out.append((self.vocab[part], spans[at]))
                self.joined |= not spans[at] and any(spans[at:at + len(part)])
                at += len(part)
        assert at == len(spans)
        return out


def stretches(rendered):
    """Characters with the combining marks behind them, and what the first of each is."""
    out = []
    for character, content, span in rendered:
        if out and unicodedata.combining(character):
            out[-1] = (out[-1][0] + character, *out[-1][1:])
        else:
            out.append((character, content, span))
    return out


def scramble(z):
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK64
    return z ^ z >> 31


def cipher(seed, epoch, count):
    state = seed * 0x9E3779B97F4A7C15 + epoch * 0xD1B54A32D192ED03
    keys = [scramble((state + r * 0x9E3779B97F4A7C15) & MASK64) for r in range(1, 7)]
    bits = next(b for b in range(1, 32) if 4 ** b >= count)

    def once(x):
        left, right = divmod(x, 2 ** bits)
        for key in keys:
            left, right = right, left ^ scramble((right + key) & MASK64) % 2 ** bits
        return left * 2 ** bits + right

    order = []
    for n in range(count):
        x = once(n)
        while x >= count:
            x = once(x)
        order.append(x)
    return order


def permutation(seed, epoch, count):
    state = (seed * 0x9E3779B97F4A7C15 + epoch * 0xD1B54A32D192ED03) & MASK64
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) & MASK64
        j = scramble(state) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


class Run:
    """The rows of a recipe's training run and the features known before any arithmetic."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.recipe = yaml.safe_load(file)
        folder = os.path.dirname(path)
        text = self.recipe["text"]
        self.tokenizer = Tokenizer(os.path.join(folder, text["tokenizer"]))
        self.template = template(os.path.join(folder, "..", "templates"), text["template"])
        data = self.recipe["data"]
        paths = [os.path.join(folder, name) for name in data["train"]]
        self.format = data.get("format", "messages")
        self.features = set().union(*(read_content(name)[1] for name in paths))
        weights = dict(zip(paths, data.get("weights", [1] * len(paths))))
        self.records = []
        for name in paths:
            self.records += [r for r in read_records(paths, self.format) if r["path"] == name] * weights[name]
        self.supervised = []  # per row
        self.documents = []   # per row
        self._fill()
        self._name_settings()
        self.features |= {"weighted"} if max(weights.values()) > 1 else set()

    def _marked(self, rendered):
        """(id, supervised) of the tokens of a rendering, by the recipe's mask."""
        mask = self.recipe["text"]["mask"]
        if mask in ("last", "completion"):
            spans = [at for at, (_, _, span) in enumerate(rendered) if span]
            end = spans[-1] + 1 if spans else 0
            start = end
            while start > 0 and rendered[start - 1][2]:
                start -= 1
            rendered = [(c, content, start <= at < (end if mask == "last" else len(rendered)) and start < end)
                        for at, (c, content, _) in enumerate(rendered)]
        tokens = self.tokenizer.encode(rendered)
        return [(token, True) for token, _ in tokens] if mask == "all" else tokens

    def _prefix_holds(self, record, rendered, tokens):
        messages = record["messages"]
        for end in range(1, len(messages)):
            if messages[end - 1]["role"] == "assistant":
                part = render(self.template, messages[:end], beside(record))
                if [c for c, _, _ in part] != [c for c, _, _ in rendered[:len(part)]]:
                    return False
        spans = [at for at, (_, _, span) in enumerate(rendered) if span]
        start = spans[-1]
        while start > 0 and rendered[start - 1][2]:
            start -= 1
        prompt = [token for token, _ in self.tokenizer.encode(rendered[:start])]
        return prompt == [token for token, _ in tokens[:len(prompt)]]

    def _document(self, record):
        """The tokens of a record as placed, or None if it is skipped."""
        context, data = self.recipe["model"]["context"], self.recipe["data"]
        rendered = render(self.template, record["messages"], beside(record))
        tokens = whole = self._marked(rendered)
        rule = data["truncate"]
        cut = len(tokens) > context and data["packing"] != "wrapped"
        if cut:
            tokens = {"drop": [], "keep_start": tokens[:context], "keep_end": tokens[-context:]}[rule]
        learns = any(supervised for _, supervised in tokens[1:])
        if cut and rule == "drop" or not learns:
            self.features.add("skipped")
            return None
        if data.get("on_prefix", "ignore") != "ignore" and not self._prefix_holds(record, rendered, whole):
            self.features |= {"skipped", "prefix_broken"}
            return None
        self.features |= {"truncated"} if cut else set()
        return tokens

    def _stream(self):
        order = {"permutation": permutation, "cipher": cipher}[self.recipe["data"].get("order", "permutation")]
        for epoch in range(1000):
            for index in order(self.recipe["train"]["seed"], epoch, len(self.records)):
                tokens = self._document(self.records[index])
                if tokens is not None:
                    yield epoch, self.records[index], tokens

    def _fill(self):
        train = self.recipe["train"]
        rows = train["grad_accum"] * train["rows"]
        packing = self.recipe["data"]["packing"]
        stream = self._stream()
        held = [] if packing == "wrapped" else [next(stream)]
        for _ in range(train["steps"]):
            step = [[] for _ in range(rows)]  # rows of (document, first token, end)
            if packing == "first_fit":
                self._fill_first(step, stream, held)
            for row in step if packing != "first_fit" else ():
                if packing == "wrapped":
                    self._fill_wrapped(row, stream, held)
                else:
                    self._fill_next(row, stream, held, packing)
            for row in step:
                self._name_row(row)

    def _room(self, row):
        return self.recipe["model"]["context"] - sum(end - first for _, first, end in row)

    def _fill_next(self, row, stream, held, packing):
        while len(held[0][2]) <= self._room(row) and (packing or not row):
            row.append((held[0], 0, len(held[0][2])))
            held[0] = next(stream)

    def _fill_first(self, step, stream, held):
        while True:
            fitting = [at for at, row in enumerate(step) if len(held[0][2]) <= self._room(row)]
            if not fitting:
                return
            at = fitting[0]
            self.features |= {"refit"} if any(step[at + 1:]) else set()
            step[at].append((held[0], 0, len(held[0][2])))
            held[0] = next(stream)

    def _fill_wrapped(self, row, stream, held):
        while self._room(row) > 0:
            document, first = held.pop() if held else (next(stream), 0)
            end = min(len(document[2]), first + self._room(row))
            self.features |= {"split"} if first > 0 else set()
            row.append((document, first, end))
            if end < len(document[2]):
                held.append((document, end))

    def _name_row(self, row):
        context = self.recipe["model"]["context"]
        for (epoch, record, _), first, end in row:
            self._name_record(epoch, record)
            self.features |= {"late_positions"} if end - first > context // 2 else set()
        self.features |= {"packed"} if len(row) > 1 else set()
        self.features |= {"padded"} if self._room(row) > 0 else set()
        self.supervised.append(sum(flag for document, first, end in row for _, flag in document[2][first + 1:end + 1]))
        self.documents.append(len(row))

    def _name_record(self, epoch, record):
        messages = record["messages"]
        contents = [message["content"] for message in messages if message["content"] is not None]
        roles = [message["role"] for message in messages]
        system = messages[0]["role"] == "system"
        self.tokenizer.encode(render(self.template, messages, beside(record)))
        self.features.add("system" if system else "no_system")
        named = {
            "two_epochs": epoch > 0,
            "multi_turn": roles.count("assistant") > 1,
            "tools": record.get("tools") is not None,
            "reasoning": any(message["role"] == "assistant" and "</think>" in (message["content"] or "")
                             for message in messages[:-1]),
            "edge_space": any(content != content.strip() for content in contents),
            "control_text": any(token in content for content in contents for token in self.tokenizer.control),
            "non_ascii": any(not content.isascii() for content in contents),
            "decomposed": any(content != unicodedata.normalize("NFC", content) for content in contents),
            "joined": self.tokenizer.joined,
            "alpaca_input": self.format == "alpaca" and record.get("input", "") != "",
            "composes": self.tokenizer.composes,
            "short_numbers": self.tokenizer.pattern != GPT2,
            "takes_space": self.tokenizer.takes_space != set(),
        }
        self.features |= {name for name, present in named.items() if present}

    def _name_settings(self):
        model, train, device = self.recipe["model"], self.recipe["train"], self.recipe["device"]
        rows = train["rows"]
        counts = [sum(self.supervised[at:at + rows]) for at in range(0, len(self.supervised), rows)]
        steps = [counts[at:at + train["grad_accum"]] for at in range(0, len(counts), train["grad_accum"])]
        control, pad = self.tokenizer.control, self.recipe["data"]["pad"]
        named = {
            "accum": train["grad_accum"] > 1,
            "accum_unequal": any(len(set(step)) > 1 for step in steps),
            "tied": model["tied"], "untied": not model["tied"],
            "gqa": 1 < model["kv_heads"] < model["heads"],
            "eval": train["eval_every"] > 0 and train["steps"] >= train["eval_every"],
            "checkpoint": train["checkpoint_every"] > 0 and train["steps"] >= train["checkpoint_every"],
            "weight_decay": train["weight_decay"] > 0,
            "warmup": train["warmup"] > 0,
            "decay": train["steps"] > train["warmup"],
            "pad_is_eos": control[pad] == control.get(END_OF_TURN.get(self.recipe["text"]["template"])),
            "dated": self.recipe["text"]["template"] == "dated_turns",
            "by_prefix": self.recipe["text"]["template"] == "dated_turns",
            "bos": self.recipe["text"]["template"] in ("llama3", "gemma"),
            "layers2": model["layers"] > 1,
            "square": True,  # heads * head_dim = width by the rules of the recipe
            "oom_at": device["oom_at"] > 0,
            "masked_last": self.recipe["text"]["mask"] == "last",
            "masked_completion": self.recipe["text"]["mask"] == "completion",
            "cipher": self.recipe["data"].get("order") == "cipher",
            "sharegpt": self.format == "sharegpt", "alpaca": self.format == "alpaca",
            "prompts": self.format == "completion",
        }
        self.features |= {name for name, present in named.items() if present}
