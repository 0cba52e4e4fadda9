#!/usr/bin/python3
"""Text stage of the second stack: chat data -> rendered text, token ids, supervised marks.

Called by faultline-ref (or by hand); writes one JSON line per record, in file order. It follows
corpus/RECIPE.md with the real Jinja2 and a byte-level BPE written from its definition. It must
not know the engine: whatever the two agree on, they agree on because both read the same page.

Exit codes: 0 done, 1 bad data, template or command line, 74 input or output, 130 interrupted.
"""

import argparse
import errno
import json
import os
import sys

import regex
from jinja2 import StrictUndefined, TemplateError, nodes
from jinja2.exceptions import TemplateRuntimeError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

EXIT_BAD, EXIT_IO, EXIT_INTERRUPTED = 1, 74, 130

# \s of the regex module is the Unicode property White_Space, as RECIPE.md asks (a test checks it).
PIECES = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

NESTING_MAX = 64

# Marks are taken from the last two planes, which are private use throughout.
MARK_FIRST, MARK_LAST = 0xF0000, 0x10FFFD


class StageError(Exception):
    """Input that the rules of RECIPE.md reject; the text names what and why."""


def fnv1a(data):
    """FNV-1a, 64 bits, as 16 hexadecimal digits."""
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


# ---------------------------------------------------------------------------------------- data

def _unique_object(pairs):
    seen = {}
    for key, value in pairs:
        if key in seen:
            raise StageError(f"duplicate key {key!r}")
        seen[key] = value
    return seen


def _refuse_constant(text):
    raise StageError(f"{text} is not JSON")


def _check_tree(value):
    """Refuses lone surrogates anywhere and values nested deeper than RECIPE.md allows."""
    level, depth = [value], 1
    while level:
        inner = []
        for item in level:
            if isinstance(item, str):
                if any(0xD800 <= ord(c) <= 0xDFFF for c in item):
                    raise StageError("lone surrogate escape")
            elif isinstance(item, (dict, list)):
                if depth > NESTING_MAX:
                    raise StageError(f"nested deeper than {NESTING_MAX} levels")
                if isinstance(item, dict):
                    inner.extend(item.keys())
                inner.extend(item.values() if isinstance(item, dict) else item)
        level, depth = inner, depth + 1


def parse_json(data):
    """One strict JSON value (RFC 8259) from bytes: UTF-8, no repeated key, no lone surrogate."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise StageError(f"not UTF-8 at byte {e.start + 1} of the line") from None
    if text.startswith("\ufeff"):
        raise StageError("byte order mark")
    try:
        # Integers are read as floats: no number matters here, and long ones are legal JSON.
        value = json.loads(text, object_pairs_hook=_unique_object,
                           parse_constant=_refuse_constant, parse_int=float)
    except json.JSONDecodeError as e:
        raise StageError(f"not JSON: {e.msg} at character {e.pos + 1}") from None
    except RecursionError:
        raise StageError("nested too deeply") from None
    _check_tree(value)
    return value


def check_messages(record):
    """The messages of a record, reduced to role and content, or StageError."""
    if not isinstance(record, dict):
        raise StageError("the line is not an object")
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        raise StageError("\"messages\" is not a list of at least one message")
    result = []
    expected = ("system", "user")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise StageError(f"message {index} is not an object")
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "user", "assistant"):
            raise StageError(f"message {index} has no role of system, user, assistant")
        if not isinstance(content, str):
            raise StageError(f"message {index} has no string \"content\"")
        if role not in expected:
            raise StageError(f"message {index} is {role}, expected {' or '.join(expected)}")
        expected = ("user",) if role in ("system", "assistant") else ("assistant",)
        result.append({"role": role, "content": content})
    if result[-1]["role"] != "assistant":
        raise StageError("the last message is not the assistant's")
    return result


def read_lines(path):
    """(line number, bytes) of a data file; the final newline is optional."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            if not line:
                raise StageError(f"{path}:{number}: empty line")
            yield number, line


def read_records(paths):
    """Yields (place, id, messages) over the concatenated files."""
    total = 0
    for path in paths:
        for number, line in read_lines(path):
            total += 1
            place = f"{path}:{number}"
            try:
                record = parse_json(line)
                messages = check_messages(record)
                record_id = record.get("id", f"line:{total}")
                if not isinstance(record_id, str):
                    raise StageError("\"id\" is not a string")
                if "\0" in record_id:
                    raise StageError("\"id\" holds U+0000")
            except StageError as e:
                raise StageError(f"{place}: {e}") from None
            yield place, record_id, messages


# ----------------------------------------------------------------------------------- rendering

class GenerationTracker(Extension):
    """{% generation %}...{% endgeneration %}: brackets the block's output with two marks.

    Counting the characters rendered so far would go wrong inside macros, loops and captured
    blocks; marks travel with the text. Without marks in the context the block is transparent.
    """

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_bracket", [nodes.ContextReference()])
        return nodes.CallBlock(call, [], [], body).set_lineno(lineno)

    def _bracket(self, context, caller):
        marks = context.get("generation_marks")
        body = caller()
        return body if marks is None else marks[0] + body + marks[1]


def _raise_exception(message):
    raise TemplateRuntimeError(str(message))


def unused_marks(texts, count):
    """`count` private-use characters that occur in none of the texts."""
    used = set()
    for text in texts:
        used.update(c for c in text if ord(c) >= MARK_FIRST)
    marks = []
    for code in range(MARK_FIRST, MARK_LAST + 1):
        if chr(code) not in used and (code & 0xFFFF) < 0xFFFE:
            marks.append(chr(code))
            if len(marks) == count:
                return marks
    raise StageError("the text uses every private-use character")


def mark_content(content, mark):
    """Puts `mark` after every character up to the last that is not white space.

    So each character of content carries its origin through the template, and `| trim` still
    finds the same white space at both edges: the leading run stays bare, and a trailing run
    follows a mark, which is not white space.
    """
    lead = len(content) - len(content.lstrip())
    kept = len(content.rstrip())
    if kept <= lead:
        return content
    return content[:lead] + "".join(c + mark for c in content[lead:kept]) + content[kept:]


class Rendered:
    """Text, which of its characters came from content, and the assistant spans (characters)."""

    def __init__(self, text, from_content, spans):
        self.text, self.from_content, self.spans = text, from_content, spans


def unmark(marked, content_mark, begin, end):
    """Takes the marks out of a marked rendering."""
    text, from_content, spans, open_at = [], [], [], []
    for c in marked:
        if c == content_mark:
            if not text:
                raise StageError("the template cut message content")
            from_content[-1] = True
        elif c == begin:
            open_at.append(len(text))
        elif c == end:
            if not open_at:
                raise StageError("the template cut a generation block")
            spans.append((open_at.pop(), len(text)))
        else:
            text.append(c)
            from_content.append(False)
    if open_at:
        raise StageError("the template cut a generation block")
    return Rendered("".join(text), from_content, spans)


class Renderer:
    """A chat template in the environment that transformers gives it."""

    def __init__(self, source):
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
            extensions=[GenerationTracker, loopcontrols])
        environment.globals["raise_exception"] = _raise_exception
        self.source = source
        self.template = environment.from_string(source)

    def _render(self, messages, marks):
        # Every call gets its own copy of the messages: a template cannot pass notes to the next.
        try:
            return self.template.render(messages=[dict(m) for m in messages],
                                        add_generation_prompt=False, generation_marks=marks)
        except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as e:
            raise StageError(f"the template fails: {type(e).__name__}: {e}") from None

    def render(self, messages):
        """Renders once plain and once with marks; the two must agree but for the marks."""
        texts = [self.source] + [m["content"] for m in messages]
        content_mark, begin, end = unused_marks(texts, 3)
        marked_messages = [{"role": m["role"], "content": mark_content(m["content"], content_mark)}
                           for m in messages]
        plain = self._render(messages, None)
        result = unmark(self._render(marked_messages, (begin, end)), content_mark, begin, end)
        if result.text != plain:
            raise StageError("the template looks inside or edits content; its origin is lost")
        return result


# -------------------------------------------------------------------------------------- tokens

def byte_characters():
    """GPT-2's map from bytes to printable characters."""
    keep = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, spare = {b: chr(b) for b in keep}, 0x100
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(spare)
            spare += 1
    return table


def _expect(condition, cause):
    if not condition:
        raise StageError(cause)


def _is_id(number):
    return isinstance(number, float) and 0 <= number < 2**31 and number == int(number)


class Tokenizer:
    """Byte-level BPE with control tokens, from the text of a tokenizer.json."""

    def __init__(self, description):
        _expect(isinstance(description, dict), "the tokenizer is not an object")
        model = description.get("model")
        _expect(isinstance(model, dict) and model.get("type", "BPE") == "BPE", "model is not BPE")
        for key in ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                    "byte_fallback", "ignore_merges"):
            _expect(not model.get(key), f"model.{key} is set; RECIPE.md gives it no meaning")
        _expect(description.get("normalizer") is None, "a normalizer is set")
        self._check_pre_tokenizer(description.get("pre_tokenizer"))
        self.vocab = self._ids(model.get("vocab"))
        self.ranks = self._read_merges(model.get("merges"))
        self.control = self._read_control(description.get("added_tokens", []))
        self.byte_character = byte_characters()
        self.cache = {}
        # Longest first: the regular expression's first alternative is then the longest match.
        ordered = sorted(self.control, key=len, reverse=True)
        self.control_pattern = (
            regex.compile("|".join(regex.escape(t) for t in ordered)) if ordered else None)

    @staticmethod
    def _ids(vocab):
        _expect(isinstance(vocab, dict) and vocab, "model.vocab is not a table of tokens")
        ids = {}
        for token, number in vocab.items():
            _expect(_is_id(number), f"token {token!r} has no id")
            ids[token] = int(number)
        _expect(len(set(ids.values())) == len(ids), "two tokens of model.vocab share an id")
        return ids

    def _read_merges(self, merges):
        _expect(isinstance(merges, list), "model.merges is not a list")
        ranks = {}
        for rank, merge in enumerate(merges):
            pair = merge.split(" ") if isinstance(merge, str) else merge
            _expect(isinstance(pair, list) and len(pair) == 2
                    and all(isinstance(p, str) and p for p in pair), f"merge {rank} is not a pair")
            _expect(tuple(pair) not in ranks, f"merge {rank} is a repetition")
            for part in (*pair, pair[0] + pair[1]):
                _expect(part in self.vocab, f"merge {rank}: {part!r} is not in the vocabulary")
            ranks[tuple(pair)] = rank
        return ranks

    def _read_control(self, added):
        _expect(isinstance(added, list), "added_tokens is not a list")
        control = {}
        taken = {number: token for token, number in self.vocab.items()}
        for token in added:
            _expect(isinstance(token, dict), "an added token is not an object")
            text, number = token.get("content"), token.get("id")
            _expect(isinstance(text, str) and text, "an added token has no content")
            _expect(_is_id(number), f"added token {text!r} has no id")
            _expect(token.get("special") is True, f"added token {text!r} is not special")
            for key in ("lstrip", "rstrip", "single_word"):
                _expect(not token.get(key), f"added token {text!r}: {key} is set")
            _expect(text == "".join(text.split()), f"added token {text!r} has white space")
            _expect(text not in control, f"added token {text!r} is a repetition")
            _expect(taken.get(int(number), text) == text, f"id of {text!r} is taken")
            _expect(self.vocab.get(text, number) == number, f"added token {text!r} has two ids")
            taken[int(number)] = text
            control[text] = int(number)
        return control

    @staticmethod
    def _check_pre_tokenizer(pre):
        _expect(isinstance(pre, dict) and pre.get("type") == "ByteLevel",
                "pre_tokenizer is not ByteLevel")
        _expect(pre.get("add_prefix_space") is False, "pre_tokenizer adds a prefix space")
        _expect(pre.get("use_regex", True) is True, "pre_tokenizer does not split")

    def merge_piece(self, piece):
        """[(token id, its length in bytes)]: lowest rank first, leftmost among equals."""
        found = self.cache.get(piece)
        if found is not None:
            return found
        parts = [self.byte_character[b] for b in piece.encode("utf-8")]
        none = len(self.ranks)
        rank_of = [self.ranks.get(pair, none) for pair in zip(parts, parts[1:])]
        while rank_of:
            best = min(rank_of)
            if best == none:
                break
            at = rank_of.index(best)
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
            del rank_of[at]
            if at > 0:
                rank_of[at - 1] = self.ranks.get((parts[at - 1], parts[at]), none)
            if at < len(rank_of):
                rank_of[at] = self.ranks.get((parts[at], parts[at + 1]), none)
        for part in parts:
            _expect(part in self.vocab, f"byte character {part!r} is not in the vocabulary")
        found = [(self.vocab[p], len(p)) for p in parts]
        self.cache[piece] = found
        return found

    def _encode_ordinary(self, text, start, ids, starts):
        for match in PIECES.finditer(text):
            for token, size in self.merge_piece(match.group()):
                ids.append(token)
                starts.append(start)
                start += size
        return start

    def encode(self, text, shadow):
        """Ids and first bytes. `shadow` is the text with content made unable to match."""
        ids, starts, at, byte = [], [], 0, 0
        for match in self.control_pattern.finditer(shadow) if self.control_pattern else ():
            byte = self._encode_ordinary(text[at:match.start()], byte, ids, starts)
            ids.append(self.control[match.group()])
            starts.append(byte)
            byte += len(match.group().encode("utf-8"))
            at = match.end()
        self._encode_ordinary(text[at:], byte, ids, starts)
        return ids, starts


# --------------------------------------------------------------------------------------- stage

def byte_spans(text, spans):
    """Character spans as byte spans."""
    offset = [0]
    for c in text:
        offset.append(offset[-1] + len(c.encode("utf-8")))
    return [(offset[a], offset[b]) for a, b in spans]


def record_features(messages, control):
    """The features of RECIPE.md that depend on a record's messages alone."""
    contents = [m["content"] for m in messages]
    found = ["system" if messages[0]["role"] == "system" else "no_system"]
    if sum(m["role"] == "assistant" for m in messages) > 1:
        found.append("multi_turn")
    if any(c != c.strip() for c in contents):
        found.append("edge_space")
    if any(token in c for token in control for c in contents):
        found.append("control_text")
    if not all(c.isascii() for c in contents):
        found.append("non_ascii")
    return found


def encode_record(renderer, tokenizer, mask, record_id, messages):
    """The output line of a record as a dictionary."""
    rendered = renderer.render(messages)
    # A NUL cannot stand in a control token: names with it are refused by the caller.
    shadow = "".join("\0" if c else t for t, c in zip(rendered.text, rendered.from_content))
    ids, starts = tokenizer.encode(rendered.text, shadow)
    if mask == "all":
        supervised = [1] * len(ids)
    else:
        spans = byte_spans(rendered.text, rendered.spans)
        supervised = [int(any(a <= s < b for a, b in spans)) for s in starts]
    return {"id": record_id, "text": rendered.text, "hash": fnv1a(rendered.text.encode("utf-8")),
            "ids": ids, "starts": starts, "supervised": supervised,
            "features": record_features(messages, tokenizer.control)}


def load_tokenizer(path):
    with open(path, "rb") as file:
        data = file.read()
    try:
        tokenizer = Tokenizer(parse_json(data))
        _expect(not any("\0" in t for t in tokenizer.control), "a control token holds U+0000")
        return tokenizer
    except StageError as e:
        raise StageError(f"{path}: {e}") from None


def load_template(path):
    with open(path, "rb") as file:
        data = file.read()
    try:
        return Renderer(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise StageError(f"{path}: not UTF-8") from None
    except TemplateError as e:
        raise StageError(f"{path}:{getattr(e, 'lineno', 1)}: {e}") from None


def run(options):
    """Writes the stage file: complete under its name, or not at all."""
    renderer = load_template(options.template)
    tokenizer = load_tokenizer(options.tokenizer)
    if os.path.exists(options.out) and not os.path.isfile(options.out):
        raise OSError(errno.EINVAL, "not a regular file", options.out)
    temporary = f"{options.out}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as out:
            for place, record_id, messages in read_records(options.data):
                try:
                    line = encode_record(renderer, tokenizer, options.mask, record_id, messages)
                except StageError as e:
                    raise StageError(f"{place}: {e}") from None
                except TemplateError as e:
                    raise StageError(f"{place}: {options.template}: {e}") from None
                out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        os.replace(temporary, options.out)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


class Parser(argparse.ArgumentParser):
    """argparse with our exit code for a wrong command line."""

    def error(self, message):
        self.exit(EXIT_BAD, f"text_stage: {message}\n")


def main(arguments):
    parser = Parser(prog="text_stage", description=__doc__, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--data", required=True, nargs="+")
    parser.add_argument("--mask", required=True, choices=("assistant", "all"))
    parser.add_argument("--out", required=True)
    options = parser.parse_args(arguments)
    try:
        run(options)
    except StageError as e:
        print(f"text_stage: {e}", file=sys.stderr)
        return EXIT_BAD
    except OSError as e:
        print(f"text_stage: {e.filename or options.out}: {e.strerror}", file=sys.stderr)
        return EXIT_IO
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
