"""The data rules of corpus/RECIPE.md, by definition and slowly: what a recipe's run contains.

For corpus_test.py. Shares nothing with the engine or the oracles.
"""
import json
import os
import unicodedata

import jinja2
import jinja2.ext
import regex
import yaml

ROLES = ("system", "user", "assistant")
END_OF_TURN = {"chatml": "<|im_end|>", "llama2": "</s>", "llama3": "<|eot_id|>", "gemma": "<end_of_turn>",
               "plain": "<|endoftext|>"}
# Lone surrogates cannot occur in a content, so they can mark what the template did.
CONTENT, CONTENT_END, SPAN, SPAN_END = "\ud800", "\ud801", "\ud802", "\ud803"
PIECE = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+"
    r"|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+")
MASK64 = (1 << 64) - 1


def _pairs(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def _constant(text):
    raise ValueError(f"{text} is not JSON")


def parse_line(raw):
    """The record of one line (bytes without its line feed); ValueError says what is wrong."""
    text = (raw[:-1] if raw.endswith(b"\r") else raw).decode("utf-8")
    if text == "":
        raise ValueError("empty line")
    if text.startswith("\ufeff"):
        raise ValueError("byte order mark")
    record = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    if not isinstance(record, dict) or not isinstance(record.get("id", ""), str):
        raise ValueError("not an object with a textual id")
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("no messages")
    for message in messages:
        if message["role"] not in ROLES or not isinstance(message["content"], str):
            raise ValueError("bad message")
        message["content"].encode("utf-8")  # fails on a lone surrogate
    roles = [message["role"] for message in messages]
    turns = roles[1:] if roles[0] == "system" else roles
    if not turns or turns != ["user", "assistant"] * (len(turns) // 2):
        raise ValueError("roles out of order")
    return record


def read_records(paths):
    """The records of the files, each with its id."""
    records = []
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        for raw in data[:-1 if data.endswith(b"\n") else None].split(b"\n"):
            record = parse_line(raw)
            record.setdefault("id", f"line:{len(records) + 1}")
            records.append(record)
    return records


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
    return environment.get_template(name + ".jinja")


def render(source, messages):
    """The characters of the rendered text: list of (character, from content, in an assistant span)."""
    content = span = False
    out = []
    for character in source.render(messages=messages):
        if character in (CONTENT, CONTENT_END):
            content = character == CONTENT
        elif character in (SPAN, SPAN_END):
            span = character == SPAN
        else:
            out.append((character, content, span))
    return out


class Tokenizer:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            tokenizer = json.load(file)
        self.control = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
        self.vocab = tokenizer["model"]["vocab"]
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(tokenizer["model"]["merges"])}
        self.size = len(self.vocab) + len(self.control)
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = [byte for byte in range(256) if byte not in printable]
        self.letters = {byte: chr(byte) for byte in printable}
        self.letters.update({byte: chr(256 + index) for index, byte in enumerate(others)})
        self.cache = {}

    def piece(self, text):
        """The token texts of a piece."""
        if text not in self.cache:
            parts = [self.letters[byte] for byte in text.encode("utf-8")]
            while len(parts) > 1:
                rank, at = min((self.ranks.get(pair, len(self.ranks)), at)
                               for at, pair in enumerate(zip(parts, parts[1:])))
                if rank == len(self.ranks):
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
            at += len(found) if found else 1
        return out

    def _encode_plain(self, rendered, text):
        spans = [span for character, _, span in rendered for _ in character.encode("utf-8")]
        out = []
        at = 0
        for piece in PIECE.findall(text):
            for part in self.piece(piece):
                out.append((self.vocab[part], spans[at]))
                self.joined |= not spans[at] and any(spans[at:at + len(part)])
                at += len(part)
        assert at == len(spans)
        return out


def permutation(seed, epoch, count):
    state = (seed * 0x9E3779B97F4A7C15 + epoch * 0xD1B54A32D192ED03) & MASK64
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) & MASK64
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK64
        j = (z ^ z >> 31) % (i + 1)
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
        self.records = read_records([os.path.join(folder, name) for name in self.recipe["data"]["train"]])
        self.features = set()
        self.supervised = []  # per row
        self.documents = []   # per row
        self._fill()
        self._name_settings()

    def _document(self, record):
        """The tokens of a record as placed, or None if it is skipped."""
        context = self.recipe["model"]["context"]
        tokens = self.tokenizer.encode(render(self.template, record["messages"]))
        if self.recipe["text"]["mask"] == "all":
            tokens = [(token, True) for token, _ in tokens]
        rule = self.recipe["data"]["truncate"]
        if len(tokens) > context:
            if rule == "drop":
                self.features.add("skipped")
                return None
            self.features.add("truncated")
            tokens = tokens[:context] if rule == "keep_start" else tokens[-context:]
        if not any(supervised for _, supervised in tokens[1:]):
            self.features.add("skipped")
            return None
        if len(tokens) > context // 2:
            self.features.add("late_positions")
        return tokens

    def _stream(self):
        for epoch in range(1000):
            for index in permutation(self.recipe["train"]["seed"], epoch, len(self.records)):
                tokens = self._document(self.records[index])
                if tokens is not None:
                    yield epoch, self.records[index], tokens

    def _fill(self):
        train, context = self.recipe["train"], self.recipe["model"]["context"]
        stream = self._stream()
        epoch, record, tokens = next(stream)
        for _ in range(train["steps"] * train["grad_accum"] * train["rows"]):
            used = supervised = documents = 0
            while used + len(tokens) <= context and (documents == 0 or self.recipe["data"]["packing"]):
                self._name_record(epoch, record)
                used += len(tokens)
                supervised += sum(flag for _, flag in tokens[1:])
                documents += 1
                epoch, record, tokens = next(stream)
            self.features |= {"packed"} if documents > 1 else set()
            self.features |= {"padded"} if used < context else set()
            self.supervised.append(supervised)
            self.documents.append(documents)

    def _name_record(self, epoch, record):
        messages = record["messages"]
        contents = [message["content"] for message in messages]
        system = messages[0]["role"] == "system"
        self.tokenizer.encode(render(self.template, messages))
        self.features.add("system" if system else "no_system")
        named = {
            "two_epochs": epoch > 0,
            "multi_turn": len(messages) - system > 2,
            "edge_space": any(content != content.strip() for content in contents),
            "control_text": any(token in content for content in contents for token in self.tokenizer.control),
            "non_ascii": any(not content.isascii() for content in contents),
            "decomposed": any(content != unicodedata.normalize("NFC", content) for content in contents),
            "joined": self.tokenizer.joined,
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
            "pad_is_eos": control[pad] == control[END_OF_TURN[self.recipe["text"]["template"]]],
            "layers2": model["layers"] > 1,
            "square": True,  # heads * head_dim = width by the rules of the recipe
            "oom_at": device["oom_at"] > 0,
        }
        self.features |= {name for name, present in named.items() if present}
