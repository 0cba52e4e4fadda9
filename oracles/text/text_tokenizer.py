"""Tokenizers by definition: what a tokenizer.json or a file of ranks means, written to be read.

Called by text_stage.py, and by hand with texts (see main). It follows corpus/RECIPE.md, "Tokens", and the
documents of the two file formats. It must not know conversations, templates or the engine.
"""

import base64
import binascii
import errno
import json
import os
import re
import stat
import struct
import sys
import unicodedata

import regex

IDS_MAX = 1 << 22
TOKEN_BYTES_MAX = 512  # of a file of ranks
TEXT_BYTES_MAX, HALF_BYTES_MAX, STEP_BYTES_MAX = 65535, 1024, 15  # of a tokenizer.json: tokens, halves of merges, normalizers

# \s of the regex module is the Unicode property White_Space, as RECIPE.md asks (a test checks it).
_FORMS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE, _BLANKS = r"[^\r\n\p{L}\p{N}]?", r"|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": _FORMS + "|" + _BEFORE + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _BLANKS,
    "qwen2": _FORMS + "|" + _BEFORE + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + _BLANKS,
    "o200k": _BEFORE + _UPPER + "*" + _LOWER + "+" + _FORMS + "?|" + _BEFORE + _UPPER + "+" + _LOWER + "*" + _FORMS
             + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _BLANKS,
}

# Files of ranks that are known by name; any other is called NAME.PATTERN.tiktoken.
ENCODINGS = {
    "r50k_base": ("gpt2", {"<|endoftext|>": 50256}),
    "p50k_base": ("gpt2", {"<|endoftext|>": 50256}),
    "cl100k_base": ("cl100k", {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259,
                               "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}),
    "o200k_base": ("o200k", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
}
RANK_PATTERNS = {"gpt2": "gpt2", "cl100k": "cl100k", "llama3": "cl100k", "qwen2": "qwen2", "o200k": "o200k"}


class StageError(Exception):
    """Input that the rules of RECIPE.md reject; the text names what and why."""


def expect(condition, cause):
    if not condition:
        raise StageError(cause)


def read_file(path):
    """The bytes of a regular file; of nothing else, which may have no end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    with open(path, "rb") as file:
        return file.read()


def byte_characters():
    """GPT-2's map from bytes to printable characters."""
    keep = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, spare = {b: chr(b) for b in keep}, 0x100
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(spare)
            spare += 1
    return table


# ------------------------------------------------------------------------------- normalisation

_seconds = None


def _composes_with_what_is_before(character):
    """Whether some canonical composition has this character second."""
    global _seconds
    if _seconds is None:
        _seconds = {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
        for code in range(0x30000):
            parts = unicodedata.decomposition(chr(code)).split()
            if len(parts) == 2 and parts[0][0] != "<" and unicodedata.normalize("NFC", chr(code)) == chr(code):
                _seconds.add(chr(int(parts[1], 16)))
    return character in _seconds


def starts_stretch(character):
    first = unicodedata.normalize("NFD", character)[0]
    return unicodedata.combining(first) == 0 and not _composes_with_what_is_before(first)


def compose(text, origins):
    """NFC stretch by stretch; a stretch that changes has its first character's origin throughout."""
    if text.isascii():
        return text, origins
    out, out_origins, at = [], [], 0
    while at < len(text):
        end = at + 1
        while end < len(text) and not starts_stretch(text[end]):
            end += 1
        made = unicodedata.normalize("NFC", text[at:end])
        out.append(made)
        out_origins.extend(origins[at:end] if made == text[at:end] else [(origins[at][0], False)] * len(made))
        at = end
    return "".join(out), out_origins


def prepend(text, origins, what):
    return (what + text, [(origins[0][0], False)] * len(what) + origins) if text else (text, origins)


def replace(text, origins, old, new):
    out, out_origins, at = [], [], 0
    while at < len(text):
        if text.startswith(old, at):
            out.append(new)
            out_origins.extend([(origins[at][0], False)] * len(new))
            at += len(old)
        else:
            out.append(text[at])
            out_origins.append(origins[at])
            at += 1
    return "".join(out), out_origins


# ------------------------------------------------------------------------------------- merging

def merge(parts, rank_of):
    """Joins the pair of lowest rank, leftmost among equals, until no pair has a rank."""
    parts = list(parts)
    ranks = [rank_of(pair) for pair in zip(parts, parts[1:])]
    while True:
        known = [rank for rank in ranks if rank is not None]
        if not known:
            return parts
        at = ranks.index(min(known))
        parts[at:at + 2] = [parts[at] + parts[at + 1]]
        del ranks[at]
        if at > 0:
            ranks[at - 1] = rank_of((parts[at - 1], parts[at]))
        if at < len(ranks):
            ranks[at] = rank_of((parts[at], parts[at + 1]))


def _any_of(texts):
    """The longest of some texts wherever one stands: the first alternative that matches is the longest."""
    return regex.compile("|".join(map(regex.escape, sorted(texts, key=len, reverse=True)))) if texts else None


# What white space and word characters are to the regular expressions of Hugging Face tokenizers.
WHITE_SPACE = "".join(c for c in map(chr, range(0x3001)) if regex.match(r"\p{White_Space}", c))
WORD = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]")


def touches_word(text, start, stop):
    return bool(start and WORD.match(text[start - 1]) or WORD.match(text[stop:stop + 1]))


class Tokenizer:
    """Added tokens, normalisation, splitting, merging. Made by from_json or from_ranks."""

    def __init__(self):
        self.control = {}   # special tokens: seen where the template wrote them
        self.added = {}     # other added tokens: seen everywhere
        self.flags = {}     # of both: which of lstrip, rstrip, single_word, normalized
        self.steps = []     # functions (text, origins) -> (text, origins)
        self.composes = False
        self.pieces = None  # compiled pattern; None: the whole text is one piece
        self.ids = {}       # token -> id; tokens are bytes
        self.ranks = {}     # (left, right) -> rank; for files of ranks, the bytes of both -> rank
        self.by_bytes = False
        self.characters = False
        self.whole = False
        self.size = 0
        self.cache = {}

    def _finish(self, known_ids):
        self.size = max(known_ids) + 1
        expect(not any("\0" in t for t in (*self.control, *self.added)), "an added token holds U+0000")
        # What is sought in the text as it is, and what in the normalised text: {its form there: (id, flags)}.
        self.passes = []
        for normalized in (False, True):
            control, added = (
                {self._form(t, normalized): (number, self.flags.get(t, ())) for t, number in tokens.items()
                 if ("normalized" in self.flags.get(t, ())) == normalized}
                for tokens in (self.control, self.added))
            self.passes.append((control, added, _any_of(control), _any_of(added)))
        forms = [form for control, added, _, _ in self.passes for form in (control, added)]
        expect(sum(map(len, forms)) == len(self.control) + len(self.added), "two added tokens have one normalised form")
        return self

    def _form(self, token, normalized):
        return self._normalise(token)[0] if normalized else token

    def _normalise(self, text):
        """The normalised text, and for each of its characters (byte of `text` it comes from, is it unchanged)."""
        origins, at = [], 0
        for character in text:
            origins.append((at, True))
            at += len(character.encode())
        for step in self.steps:
            text, origins = step(text, origins)
        return text, origins

    def _rank(self, pair):
        return self.ranks.get(pair[0] + pair[1] if self.by_bytes else pair)

    def _first_parts(self, piece):
        if not self.characters:
            return [bytes([b]) for b in piece.encode()]
        parts = []
        for character in piece:
            data = character.encode()
            parts += [data] if data in self.ids else [b"<0x%02X>" % b for b in data]
        return parts

    def merge_piece(self, piece):
        """[(token id, how many bytes of the piece it stands for)]"""
        found = self.cache.get(piece)
        if found is None:
            data = piece.encode()
            if self.whole and data in self.ids:
                parts = [data]
            else:
                parts = merge(self._first_parts(piece), self._rank)
            byte = re.compile(rb"<0x[0-9A-F]{2}>")
            found = [(self.ids[p], 1 if self.characters and byte.fullmatch(p) else len(p)) for p in parts]
            self.cache[piece] = found
        return found

    def _cut(self, text, shadow, which):
        """[(None or token id, start, stop)]: the added tokens of one pass, and what lies between them.

        `shadow` is the text with content made unable to match.
        """
        control_ids, added_ids, control_pattern, added_pattern = self.passes[which]
        control = control_pattern.search(shadow) if control_pattern else None
        added = added_pattern.search(text) if added_pattern else None
        parts, at = [], 0
        while control or added:
            match = min((m for m in (control, added) if m), key=lambda m: (m.start(), -m.end()))
            start, stop = match.span()
            number, flags = (control_ids if match is control else added_ids)[match.group()]
            if not ("single_word" in flags and touches_word(text, start, stop)):
                if "lstrip" in flags:
                    start = at + len(text[at:start].rstrip(WHITE_SPACE))
                if "rstrip" in flags:
                    stop = len(text) - len(text[stop:].lstrip(WHITE_SPACE))
                parts += [(None, at, start), (number, start, stop)]
                at = stop
            if control and control.start() < stop:
                control = control_pattern.search(shadow, stop)
            if added and added.start() < stop:
                added = added_pattern.search(text, stop)
        return [*parts, (None, at, len(text))]

    def _encode_normalised(self, text, places, shadow, ids, starts):
        """Tokens of text as the normaliser left it; `places` has the first byte that each of its bytes comes from."""
        byte = 0
        for number, start, stop in self._cut(text, shadow, 1):
            part = text[start:stop]
            if number is not None:
                ids.append(number)
                starts.append(places[byte])
            else:
                at = byte
                for piece in [m.group() for m in self.pieces.finditer(part)] if self.pieces else [part] if part else []:
                    for token, size in self.merge_piece(piece):
                        ids.append(token)
                        starts.append(places[at])
                        at += size
            byte += len(part.encode())

    def encode(self, text, shadow):
        """Ids and first bytes. `shadow` is the text with content made unable to match."""
        ids, starts, byte = [], [], 0
        for number, start, stop in self._cut(text, shadow, 0):
            part = text[start:stop]
            size = len(part.encode())
            if number is not None:
                ids.append(number)
                starts.append(byte)
            elif part:
                made, origins = self._normalise(part)
                hidden = [text[i] != shadow[i:i + 1] for i in range(start, stop) for _ in text[i].encode()]
                late_shadow = "".join("\0" if hidden[origin] else c for c, (origin, _) in zip(made, origins))
                # Within an unchanged character each byte comes from its own one.
                places = [byte + origin + (i if own else 0)
                          for c, (origin, own) in zip(made, origins) for i in range(len(c.encode()))]
                self._encode_normalised(made, places, late_shadow, ids, starts)
            byte += size
        return ids, starts


# ------------------------------------------------------------------------------ tokenizer.json

def is_id(number):
    return type(number) is int and 0 <= number < IDS_MAX


def _only_keys(value, where, keys):
    for key in value:
        expect(key in keys, f"{where}{key} is not supported")


def _flag(owner, where, key, absent=False):
    value = owner.get(key)
    expect(value is None or isinstance(value, bool), f"{where}{key} is neither true nor false")
    return absent if value is None else value


def _is_short(text):
    return isinstance(text, str) and len(text.encode()) <= STEP_BYTES_MAX


def _kind(value):
    return value.get("type") if isinstance(value, dict) else None


def _json_ids(vocab, mapped):
    """{bytes: id} of the tokens that are made of bytes, and all ids by their text."""
    expect(isinstance(vocab, dict) and vocab, "model.vocab is not a table of tokens")
    byte_of = {c: b for b, c in byte_characters().items()}
    ids = {}
    for token, number in vocab.items():
        expect(is_id(number), f"model.vocab: token {token!r} has no id")
        expect(0 < len(token.encode()) <= TEXT_BYTES_MAX, f"model.vocab: token {number} is empty or too long")
        if not mapped:
            ids[token.encode()] = number
        elif all(c in byte_of for c in token):
            ids[bytes(byte_of[c] for c in token)] = number
    expect(len(set(vocab.values())) == len(vocab), "two tokens of model.vocab share an id")
    return ids


def _json_merges(merges, ids, mapped):
    expect(isinstance(merges, list), "model.merges is not a list")
    byte_of = {c: b for b, c in byte_characters().items()}
    ranks = {}
    for rank, item in enumerate(merges):
        pair = item.split(" ") if isinstance(item, str) else item
        expect(isinstance(pair, list) and len(pair) == 2 and all(
            isinstance(p, str) and 0 < len(p.encode()) <= HALF_BYTES_MAX for p in pair),
               f"model.merges: entry {rank} is not a pair")
        expect(not mapped or all(c in byte_of for p in pair for c in p),
               f"model.merges: entry {rank} is not made of bytes")
        left, right = (bytes(byte_of[c] for c in p) if mapped else p.encode() for p in pair)
        for part in (left, right, left + right):
            expect(part in ids, f"model.merges: entry {rank}: {part!r} is not in model.vocab")
        expect((left, right) not in ranks, f"model.merges: entry {rank} is a repetition")
        ranks[left, right] = rank
    return ranks


def _json_steps(normalizer, tokenizer):
    kind = _kind(normalizer)
    if kind == "Sequence":
        expect(isinstance(normalizer.get("normalizers"), list), "normalizer.normalizers is not a list")
        for step in normalizer["normalizers"]:
            expect(_kind(step) != "Sequence", "normalizer: a Sequence within a Sequence is not supported")
            _json_steps(step, tokenizer)
    elif kind == "NFC":
        tokenizer.composes = True
        tokenizer.steps.append(compose)
    elif kind == "Prepend" and _is_short(normalizer.get("prepend")):
        what = normalizer["prepend"]
        tokenizer.steps.append(lambda text, origins: prepend(text, origins, what))
    elif kind == "Replace" and isinstance(normalizer.get("pattern"), dict) \
            and list(normalizer["pattern"]) == ["String"] and normalizer["pattern"]["String"] \
            and _is_short(normalizer["pattern"]["String"]) and _is_short(normalizer.get("content")):
        old, new = normalizer["pattern"]["String"], normalizer["content"]
        tokenizer.steps.append(lambda text, origins: replace(text, origins, old, new))
    else:
        raise StageError(f"this normalizer of type {kind!r} is not supported")
    expect(len(tokenizer.steps) <= 4, "more than 4 normalizers")


def _json_pieces(pre, normalizer, characters):
    """The compiled split pattern, or None."""
    if characters:
        last = normalizer
        if _kind(last) == "Sequence":
            last = (last["normalizers"] or [None])[-1]
        idle = _kind(pre) == "Split" and _kind(last) == "Replace" and pre.get("pattern") == last.get("pattern") \
            and last["pattern"]["String"] not in last["content"]
        expect(pre is None or idle, "this pre_tokenizer with byte_fallback is not supported")
        return None
    pattern, wants_regex = PATTERNS["gpt2"], True
    if _kind(pre) == "Sequence":
        steps = pre.get("pretokenizers")
        expect(isinstance(steps, list) and len(steps) == 2 and _kind(steps[0]) == "Split",
               "pre_tokenizer: a Sequence must be Split and ByteLevel")
        split, pre = steps
        found = split.get("pattern")
        found = found["Regex"] if isinstance(found, dict) and list(found) == ["Regex"] else None
        expect(split.get("behavior") == ("Removed" if _flag(split, "pre_tokenizer.", "invert") else "Isolated"),
               "pre_tokenizer: Split must be Isolated, or inverted Removed")
        expect(found in PATTERNS.values(), f"pre_tokenizer: the pattern {found!r} is not supported")
        pattern, wants_regex = found, False
    expect(_kind(pre) == "ByteLevel", "pre_tokenizer is not ByteLevel")
    expect(not _flag(pre, "pre_tokenizer.", "add_prefix_space"), "pre_tokenizer.add_prefix_space is not supported")
    expect(_flag(pre, "pre_tokenizer.", "use_regex", True) is wants_regex,
           "pre_tokenizer.use_regex is not as it must be")
    return regex.compile(pattern)


def _json_added(added, vocab, tokenizer):
    expect(isinstance(added, list), "added_tokens is not a list")
    taken = {number: token for token, number in vocab.items()}
    for token in added:
        expect(isinstance(token, dict), "an added token is not an object")
        text, number = token.get("content"), token.get("id")
        expect(isinstance(text, str) and text, "an added token has no content")
        expect(is_id(number), f"added token {text!r} has no id")
        expect(len(text.encode()) <= TEXT_BYTES_MAX, "an added token is too long")
        flags = {key for key in ("lstrip", "rstrip", "single_word", "special", "normalized")
                 if _flag(token, f"added token {text!r}: ", key)}
        expect(text not in tokenizer.control and text not in tokenizer.added, f"added token {text!r} is a repetition")
        expect(taken.get(number, text) == text, f"the id of added token {text!r} is taken")
        expect(vocab.get(text, number) == number, f"added token {text!r} has two ids")
        taken[number] = text
        (tokenizer.control if "special" in flags else tokenizer.added)[text] = number
        tokenizer.flags[text] = flags - {"special"}
    return taken


def from_json(description):
    """A tokenizer from the value of a tokenizer.json."""
    expect(isinstance(description, dict), "the tokenizer is not an object")
    _only_keys(description, "", ("version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                                 "post_processor", "decoder", "model"))
    model = description.get("model")
    expect(isinstance(model, dict) and model.get("type", "BPE") == "BPE", "model is not BPE")
    _only_keys(model, "model.", ("type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                 "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"))
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        expect(not model.get(key), f"model.{key} is not supported")
    for key in ("truncation", "padding"):
        expect(description.get(key) is None, f"{key} is not supported")
    for key, kinds in (("post_processor", ("ByteLevel", "TemplateProcessing", "Sequence", "BertProcessing",
                                           "RobertaProcessing")),
                       ("decoder", ("ByteLevel", "Sequence", "Replace", "ByteFallback"))):
        value = description.get(key)
        expect(value is None or _kind(value) in kinds, f"{key} of type {_kind(value)!r} is not supported")
    t = Tokenizer()
    t.characters, t.whole = (_flag(model, "model.", key) for key in ("byte_fallback", "ignore_merges"))
    if description.get("normalizer") is not None:
        _json_steps(description["normalizer"], t)
    t.pieces = _json_pieces(description.get("pre_tokenizer"), description.get("normalizer"), t.characters)
    t.ids = _json_ids(model.get("vocab"), not t.characters)
    for byte in range(256):
        expect((b"<0x%02X>" % byte if t.characters else bytes([byte])) in t.ids,
               f"model.vocab has no token for byte 0x{byte:02x}")
    t.ranks = _json_merges(model.get("merges"), t.ids, not t.characters)
    added = description.get("added_tokens")
    taken = _json_added([] if added is None else added, model["vocab"], t)
    return t._finish(taken)


# ------------------------------------------------------------------------------- files of ranks

def read_rank_lines(path, data):
    """{bytes: rank} of the lines of a file."""
    ranks, taken = {}, set()
    lines = data.split(b"\n")
    if lines and lines[-1] == b"":
        lines.pop()
    expect(lines, f"{path}: no tokens")
    for number, line in enumerate(lines, 1):
        place = f"{path}:{number}"
        token, blank, rank = line.partition(b" ")
        expect(blank, f"{place}: expected a token in base64, a blank and its rank")
        try:
            text = base64.b64decode(token, validate=True)
        except (binascii.Error, ValueError):
            raise StageError(f"{place}: {token!r} is no base64") from None
        expect(text and base64.b64encode(text) == token, f"{place}: {token!r} is no base64")
        expect(len(text) <= TOKEN_BYTES_MAX, f"{place}: a token of more than {TOKEN_BYTES_MAX} bytes")
        expect(re.fullmatch(rb"0|[1-9][0-9]{0,6}", rank) and int(rank) < IDS_MAX, f"{place}: {rank!r} is no rank")
        expect(text not in ranks, f"{place}: token {text!r} stands twice")
        expect(int(rank) not in taken, f"{place}: rank {int(rank)} stands twice")
        ranks[text] = int(rank)
        taken.add(int(rank))
    return ranks


def from_ranks(path):
    """A tokenizer from a file of ranks, and the control tokens beside it."""
    name = os.path.basename(path).removesuffix(".tiktoken")
    stem, dot, word = name.rpartition(".")
    pattern, control = ENCODINGS.get(name, (RANK_PATTERNS.get(word) if dot and stem else None, {}))
    expect(pattern is not None, f"{path}: the name gives no split pattern")
    t = Tokenizer()
    t.by_bytes = t.whole = True
    t.pieces = regex.compile(PATTERNS[pattern])
    t.ranks = t.ids = read_rank_lines(path, read_file(path))
    for byte in range(256):
        expect(bytes([byte]) in t.ids, f"{path}: no token for byte 0x{byte:02x}")
    t.control = dict(control)
    if os.path.exists(f"{path}.special"):
        special = read_rank_lines(f"{path}.special", read_file(f"{path}.special"))
        for text, number in special.items():
            try:
                decoded = text.decode()
            except UnicodeDecodeError:
                raise StageError(f"{path}.special: {text!r} is not UTF-8") from None
            expect(decoded not in t.control, f"{path}.special: {decoded!r} stands twice")
            t.control[decoded] = number
    numbers = [*t.ids.values(), *t.control.values()]
    expect(len(set(numbers)) == len(numbers), f"{path}: a control token has the rank of another token")
    return t._finish(numbers)


def main(arguments):
    """text_tokenizer.py TOKENIZER [seen] [starts] < texts > ids

    A text is a 32-bit size and bytes; ids are a 32-bit count and numbers, each with its first byte if asked for.
    """
    if not arguments or arguments[0].startswith("-"):
        sys.exit("usage: text_tokenizer.py TOKENIZER [seen] [starts] < texts > ids")
    if arguments[0].endswith(".tiktoken"):
        tokenizer = from_ranks(arguments[0])
    else:
        with open(arguments[0], encoding="utf-8") as file:
            tokenizer = from_json(json.load(file))
    data, at = sys.stdin.buffer.read(), 0
    while at < len(data):
        size, = struct.unpack_from("<I", data, at)
        text = data[at + 4:at + 4 + size].decode()
        at += 4 + size
        ids, starts = tokenizer.encode(text, text if "seen" in arguments[1:] else "\0" * len(text))
        if "starts" in arguments[1:]:
            ids = [number for pair in zip(ids, starts) for number in pair]
        sys.stdout.buffer.write(struct.pack(f"<I{len(ids)}i", len(ids), *ids))


if __name__ == "__main__":
    main(sys.argv[1:])
