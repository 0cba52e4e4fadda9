#!/usr/bin/python3
"""Text stage of the second stack: chat data -> rendered text, token ids, supervised marks.

Called by faultline-ref (or by hand); writes one JSON line per record, in file order. It follows
corpus/RECIPE.md with the real Jinja2 and, in text_tokenizer.py, tokenizers by definition. It must
not know the engine: whatever the two agree on, they agree on because both read the same page.

Exit codes: 0 done, 1 bad data, template or command line, 74 input or output, 130 interrupted.
"""

import argparse
import contextlib
import datetime
import errno
import functools
import io
import json
import math
import os
import re
import resource
import signal
import string
import subprocess
import sys
import zlib

from jinja2 import TemplateError, filters, nodes, runtime
from jinja2.exceptions import TemplateRuntimeError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from text_tokenizer import StageError, expect, from_json, from_ranks, read_file

EXIT_BAD, EXIT_IO, EXIT_INTERRUPTED = 1, 74, 130

NESTING_MAX, KEYS_MAX, ID_BYTES_MAX, LINE_BYTES_MAX = 64, 4096, 127, 1 << 26
TEMPLATE_BYTES_MAX = 16 << 20

# What one call of a template may take: seconds of this process, bytes beyond those it has, bits of a product.
CALL_SECONDS, CALL_BYTES, PRODUCT_BITS_MAX = 20, 1 << 30, 4096

# What strftime_now sees: 2024-01-01 00:00:00.
CLOCK = datetime.datetime(2024, 1, 1)


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


def _small_object(pairs):
    expect(len(pairs) <= KEYS_MAX, f"more than {KEYS_MAX} keys in an object")
    return _unique_object(pairs)


def _refuse_constant(text):
    raise StageError(f"{text} is not JSON")


def _integer(text):
    """A whole number; of one with more than 64 bits only that it is too large, see `objects`."""
    value = int(text) if len(text) < 25 else math.inf
    return value if -2**63 <= value < 2**63 else math.inf


def _check_tree(value, with_nul):
    """Refuses lone surrogates anywhere, U+0000 unless with_nul, and values nested deeper than RECIPE.md allows."""
    level, depth = [value], 1
    while level:
        inner = []
        for item in level:
            if isinstance(item, str):
                if any(0xD800 <= ord(c) <= 0xDFFF for c in item):
                    raise StageError("lone surrogate escape")
                expect(with_nul or "\0" not in item, "a text holds U+0000")
            elif isinstance(item, (dict, list)):
                if depth > NESTING_MAX:
                    raise StageError(f"nested deeper than {NESTING_MAX} levels")
                if isinstance(item, dict):
                    inner.extend(item.keys())
                inner.extend(item.values() if isinstance(item, dict) else item)
        level, depth = inner, depth + 1


def parse_json(data, is_record=False):
    """One strict JSON value (RFC 8259) from bytes: UTF-8, no repeated key, no lone surrogate."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise StageError(f"not UTF-8 at byte {e.start + 1} of the line") from None
    if text.startswith("\ufeff"):
        raise StageError("byte order mark")
    try:
        value = json.loads(text, object_pairs_hook=_small_object if is_record else _unique_object,
                           parse_constant=_refuse_constant, parse_int=_integer)
    except json.JSONDecodeError as e:
        raise StageError(f"not JSON: {e.msg} at character {e.pos + 1}") from None
    except RecursionError:
        raise StageError("nested too deeply") from None
    _check_tree(value, with_nul=is_record)
    return value


def message_list(items, name, role_key, roles, content_key):
    """A list of messages under other names, as (role, content)."""
    if not isinstance(items, list):
        raise StageError(f"\"{name}\" is not a list of messages")
    result = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise StageError(f"message {index} is not an object")
        role, content = item.get(role_key), item.get(content_key)
        if not isinstance(role, str) or role not in roles:
            raise StageError(f"message {index} has no {role_key} of {', '.join(roles)}")
        if not isinstance(content, str):
            raise StageError(f"message {index} has no string \"{content_key}\"")
        result.append({"role": roles[role], "content": content})
    return result


def _check_values(name, value):
    """Refuses what cannot be the same for every template engine: numbers beyond 64 bits, odd keys."""
    if isinstance(value, float) and not math.isfinite(value):
        raise StageError(f"\"{name}\" holds a number that is too large")
    if isinstance(value, dict) and any("\0" in key for key in value):
        raise StageError(f"\"{name}\" holds a key with U+0000")
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_values(name, inner)


def objects(owner, name):
    """The list of objects under that name; None where there is none."""
    value = owner.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise StageError(f"\"{name}\" is not a list of objects")
    _check_values(name, value)
    return value


ROLES = ("system", "user", "assistant", "tool")

# What only some messages have, in the order in which templates see it, and whose it may be.
EXTRAS = {"reasoning_content": ("assistant",), "tool_calls": ("assistant",), "tool_call_id": ("tool",),
          "name": ROLES}


def full_messages(items, name):
    """A list of messages with all they may have, as templates see them."""
    if not isinstance(items, list):
        raise StageError(f"\"{name}\" is not a list of messages")
    result = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise StageError(f"message {index} is not an object")
        if item.get("role") not in ROLES:
            raise StageError(f"message {index} has no role of {', '.join(ROLES)}")
        message = {"role": item["role"], "content": item.get("content")}
        for key, owners in EXTRAS.items():
            value = objects(item, key) if key == "tool_calls" else item.get(key)
            if value is None:
                continue
            if key != "tool_calls" and not isinstance(value, str):
                raise StageError(f"message {index}: \"{key}\" is not a string")
            if item["role"] not in owners:
                raise StageError(f"message {index} is {item['role']} and has \"{key}\"")
            message[key] = value
        none = message["content"] is None and message.get("tool_calls")
        if not isinstance(message["content"], str) and not none:
            raise StageError(f"message {index} has no string \"content\"")
        result.append(message)
    return result


def optional_text(record, key):
    text = record.get(key, "")
    if not isinstance(text, str):
        raise StageError(f"\"{key}\" is not a string")
    return text


def needed_text(record, key):
    if key not in record:
        raise StageError(f"no key \"{key}\"")
    return optional_text(record, key)


def chat(*turns):
    return [{"role": role, "content": content} for role, content in turns]


def from_messages(record):
    return full_messages(record.get("messages"), "messages")


def from_sharegpt(record):
    roles = {"system": "system", "human": "user", "user": "user", "gpt": "assistant",
             "assistant": "assistant"}
    turns = message_list(record.get("conversations"), "conversations", "from", roles, "value")
    system = optional_text(record, "system")
    return chat(("system", system)) + turns if system else turns


def from_alpaca(record):
    result = []
    if system := optional_text(record, "system"):
        result.append(("system", system))
    history = record.get("history", [])
    if not isinstance(history, list):
        raise StageError("\"history\" is not a list")
    for pair in history:
        if not (isinstance(pair, list) and len(pair) == 2
                and all(isinstance(text, str) for text in pair)):
            raise StageError("an element of \"history\" is not a pair of strings")
        result += zip(("user", "assistant"), pair)
    question, extra = needed_text(record, "instruction"), optional_text(record, "input")
    result.append(("user", f"{question}\n{extra}" if extra else question))
    result.append(("assistant", needed_text(record, "output")))
    return chat(*result)


def from_completion(record):
    result = []
    for key, role in (("prompt", "user"), ("completion", "assistant")):
        if key not in record:
            raise StageError(f"no key \"{key}\"")
        value = record[key]
        if isinstance(value, str):
            result += chat((role, value))
        else:
            found = full_messages(value, key)
            if key == "completion" and [message["role"] for message in found] != ["assistant"]:
                raise StageError("\"completion\" is not one message of the assistant")
            result += found
    return result


FORMATS = {"messages": from_messages, "sharegpt": from_sharegpt, "alpaca": from_alpaca,
           "completion": from_completion}


def next_roles(message):
    """Who may speak behind a message."""
    if message["role"] == "assistant":
        return ("tool",) if message.get("tool_calls") else ("user", "tool")
    return {"system": ("user",), "user": ("assistant",), "tool": ("tool", "assistant")}[message["role"]]


def check_messages(record, form="messages"):
    """The messages of a record as templates see them, or StageError."""
    if not isinstance(record, dict):
        raise StageError("the line is not an object")
    messages = FORMATS[form](record)
    if not messages:
        raise StageError("there is not at least one message")
    expected = ("system", "user")
    for index, message in enumerate(messages):
        if message["role"] not in expected:
            raise StageError(
                f"message {index} is {message['role']}, expected {' or '.join(expected)}")
        expected = next_roles(message)
    if messages[-1]["role"] != "assistant":
        raise StageError("the last message is not the assistant's")
    return messages


def check_beside(record, form):
    """What a record gives templates besides messages."""
    with_lists = form in ("messages", "completion")
    return {key: objects(record, key) if with_lists else None for key in ("tools", "documents")}


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
UNZIP_BYTES = 1 << 14


def unzip(data):
    """The content of all members of a gzip file."""
    parts, at = [], 0
    while at < len(data):
        expect(data.startswith(GZIP, at), "something behind a gzip member")
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        # In small pieces: what is left of one behind a member is a copy.
        while not member.eof:
            piece = data[at:at + UNZIP_BYTES]
            expect(piece, "the gzip file is cut off")
            try:
                parts.append(member.decompress(piece))
            except zlib.error as e:
                raise StageError(f"gzip: {e}") from None
            at += len(piece) - len(member.unused_data)
    return b"".join(parts)


def unzstd(path):
    """The content of all frames of a zstd file, by the program zstd."""
    def run(options):
        done = subprocess.run(["zstd", options, "--", path], capture_output=True, check=False)
        said = [*done.stderr.decode("utf-8", "replace").splitlines(), f"exit code {done.returncode}"]
        expect(done.returncode == 0, f"zstd: {said[0].strip()}")
        return done.stdout

    content = run("-dcq")
    run("-lq")  # unpacking goes on into other formats behind a frame, listing does not
    return content


def read_content(path):
    data = read_file(path)
    try:
        return unzip(data) if data.startswith(GZIP) else unzstd(path) if data.startswith(
            ZSTD) else data
    except StageError as e:
        raise StageError(f"{path}: {e}") from None


def read_lines(path):
    """(line number, bytes) of a data file; the final newline is optional."""
    for number, line in enumerate(io.BytesIO(read_content(path)), 1):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if not line:
            raise StageError(f"{path}:{number}: empty line")
        yield number, line


class Record:
    """A line of the data: where it stands, its id, its messages, and what stands beside them."""

    def __init__(self, file, path, number, record_id, messages, beside):
        self.file, self.path, self.number = file, path, number
        self.id, self.messages, self.beside = record_id, messages, beside

    @property
    def place(self):
        return f"{self.path}:{self.number}"


def read_records(paths, form="messages"):
    """Yields every Record of the concatenated files."""
    total = 0
    for file, path in enumerate(paths):
        for number, line in read_lines(path):
            total += 1
            try:
                expect(len(line) <= LINE_BYTES_MAX, f"a line longer than {LINE_BYTES_MAX} bytes")
                record = parse_json(line, is_record=True)
                messages = check_messages(record, form)
                beside = check_beside(record, form)
                record_id = record.get("id", f"line:{total}")
                if not isinstance(record_id, str):
                    raise StageError("\"id\" is not a string")
                expect("\0" not in record_id, "\"id\" holds U+0000")
                expect(len(record_id.encode()) <= ID_BYTES_MAX, f"\"id\" is longer than {ID_BYTES_MAX} bytes")
            except StageError as e:
                raise StageError(f"{path}:{number}: {e}") from None
            yield Record(file, path, number, record_id, messages, beside)


# ----------------------------------------------------------------------------------- rendering

class Traced(str):
    """A text that knows, of each character, whether content wrote it (CONTENT), whether it lies
    in an answer (ANSWER), and whether an answer begins with it (FIRST): one byte each in tags.

    What a template does to texts happens to the tags too; results of methods that are not spelled
    out here are plain, and Renderer.render notices when that matters."""

    CONTENT, ANSWER, FIRST = 1, 2, 4
    __slots__ = ("tags",)

    @staticmethod
    def of(text, tags=None):
        if tags is None and isinstance(text, Traced):
            return text
        traced = Traced(text)
        traced.tags = bytes(len(text)) if tags is None else tags
        return traced

    @staticmethod
    def concat(parts):
        parts = [Traced.of(p) for p in parts]
        return Traced.of("".join(map(str.__str__, parts)), b"".join(p.tags for p in parts))

    def marked(self, tag):
        return Traced.of(self, bytes(t | tag for t in self.tags))

    def __str__(self):
        return self

    def __add__(self, other):
        return Traced.concat((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other):
        return Traced.concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, count):
        return Traced.of(str.__mul__(self, count), self.tags * max(0, count))

    __rmul__ = __mul__

    def __getitem__(self, key):
        part = self.tags[key] if isinstance(key, slice) else bytes((self.tags[key],))
        return Traced.of(str.__getitem__(self, key), part)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __reduce__(self):
        raise TypeError("a traced text stays in its process")

    def _strip(self, chars, left, right):
        kept = str.lstrip(self, chars) if left else str.__str__(self)
        start = len(self) - len(kept)
        kept = str.rstrip(kept, chars) if right else kept
        return self[start:start + len(kept)]

    def strip(self, chars=None):
        return self._strip(chars, True, True)

    def lstrip(self, chars=None):
        return self._strip(chars, True, False)

    def rstrip(self, chars=None):
        return self._strip(chars, False, True)

    def _located(self, parts):
        """Pieces that str found in this order, as parts of this text."""
        result, at = [], 0
        for part in parts:
            at = str.find(self, part, at)
            result.append(self[at:at + len(part)])
            at += len(part)
        return result

    def split(self, sep=None, maxsplit=-1):
        if sep is None:
            return self._located(str.split(self, None, maxsplit))
        result, at = [], 0
        for part in str.split(self, sep, maxsplit):
            result.append(self[at:at + len(part)])
            at += len(part) + len(sep)
        return result

    def rsplit(self, sep=None, maxsplit=-1):
        if sep is None:
            return self._located(str.rsplit(self, None, maxsplit))
        result, at = [], 0
        for part in str.rsplit(self, sep, maxsplit):
            result.append(self[at:at + len(part)])
            at += len(part) + len(sep)
        return result

    def splitlines(self, keepends=False):
        return self._located(str.splitlines(self, keepends))

    def _parts(self, sizes):
        result, at = [], 0
        for size in sizes:
            result.append(self[at:at + size])
            at += size
        return tuple(result)

    def partition(self, sep):
        return self._parts(map(len, str.partition(self, sep)))

    def rpartition(self, sep):
        return self._parts(map(len, str.rpartition(self, sep)))

    def removeprefix(self, prefix):
        return self[len(prefix):] if str.startswith(self, prefix) else self

    def removesuffix(self, suffix):
        return self[:len(self) - len(suffix)] if suffix and str.endswith(self, suffix) else self

    def replace(self, old, new, count=-1):
        if not old:
            return str.replace(self, old, new, count)
        pieces = self.split(old, count)
        joined = [pieces[0]]
        for piece in pieces[1:]:
            joined += [new, piece]
        return Traced.concat(joined)

    def join(self, items):
        joined = []
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise TypeError("join takes texts")
            joined += [self, item] if index else [item]
        return Traced.concat(joined)

    def _cased(self, text):
        if len(text) == len(self):
            return Traced.of(text, self.tags)
        sizes = [len(str.upper(c)) if str.upper(c) in text else 1 for c in str.__str__(self)]
        tags = b"".join(bytes((t,)) * n for t, n in zip(self.tags, sizes))
        return Traced.of(text, tags if len(tags) == len(text) else bytes(len(text)))

    def upper(self):
        return self._cased(str.upper(self))

    def lower(self):
        return self._cased(str.lower(self))

    def capitalize(self):
        return self._cased(str.capitalize(self))

    def title(self):
        return self._cased(str.title(self))


class TracedSafe(Traced):
    """A text that `safe` or `escape` made: what is added to it is escaped, as markupsafe does."""

    ESCAPES = {"&": "&amp;", ">": "&gt;", "<": "&lt;", "'": "&#39;", '"': "&#34;"}
    __slots__ = ()

    @staticmethod
    def escaped(text):
        if hasattr(text, "__html__"):
            return Traced.of(text)
        return Traced.concat(Traced.of(TracedSafe.ESCAPES[c], c.tags * len(TracedSafe.ESCAPES[c]))
                             if c in TracedSafe.ESCAPES else c for c in Traced.of(text))

    @staticmethod
    def made(text):
        safe = TracedSafe(text)
        safe.tags = Traced.of(text).tags
        return safe

    def __str__(self):
        return Traced.of(str.__str__(self), self.tags)

    def __html__(self):
        return self

    def __add__(self, other):
        if not isinstance(other, str):
            return NotImplemented
        return TracedSafe.made(Traced.concat((self, TracedSafe.escaped(other))))

    def __radd__(self, other):
        if not isinstance(other, str):
            return NotImplemented
        return TracedSafe.made(Traced.concat((TracedSafe.escaped(other), self)))


def _quoted(value, write):
    """What `write` makes of a text; of one with content, all of it is content."""
    text = write(str.__str__(value) if isinstance(value, str) else value)
    if isinstance(value, Traced) and any(value.tags):
        return Traced.of(text).marked(Traced.CONTENT)
    return text


def _traced_repr(value):
    """repr() of lists, tuples and dicts; str() of anything else."""
    if isinstance(value, (list, tuple)):
        inner = [_traced_item(v) for v in value]
        joined = Traced.of(", ").join(inner)
        if isinstance(value, list):
            return Traced.concat(("[", joined, "]"))
        return Traced.concat(("(", joined, "," if len(inner) == 1 else "", ")"))
    if isinstance(value, dict):
        pairs = [Traced.concat((_traced_item(k), ": ", _traced_item(v))) for k, v in value.items()]
        return Traced.of("{") + Traced.of(", ").join(pairs) + "}"
    return str(value)


def _traced_item(value):
    return _traced_repr(value) if isinstance(value, (list, tuple, dict)) else _quoted(value, repr)


def _text(value):
    return _traced_repr(value) if isinstance(value, (list, tuple, dict)) else str(value)


def _traced_format(text, *args, **kwargs):
    """str.format with fields like {}, {0} and {name}; the trainer refuses others too."""
    parts, at, taken = [], 0, 0
    for literal, field, spec, conversion in string.Formatter().parse(str.__str__(text)):
        for c in literal:
            parts.append(text[at])
            at += 2 if c in "{}" else 1
        if field is None:
            continue
        if spec or conversion or (field and taken and field.isdigit()):
            raise ValueError(f"a format with {{{field}}} like this is not supported")
        at += len(field) + 2
        if field.isdigit():
            taken = None
        parts.append(_text(args[taken] if not field else
                           args[int(field)] if field.isdigit() else kwargs[field]))
        taken = taken if field else taken + 1
    return Traced.concat(parts)


def _traced_percent(text, values):
    """The operator %: a text for each %s keeps its tags."""
    values = list(values) if isinstance(values, tuple) else [values]
    parts, at = [], 0
    for found in re.finditer(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[a-zA-Z])", str.__str__(text)):
        parts.append(text[at:found.start()])
        at = found.end()
        if found.group() == "%%":
            parts.append("%")
        elif found.group() == "%s":
            parts.append(_text(values.pop(0)))
        else:
            parts.append(found.group() % (values.pop(0),))
    return Traced.concat((*parts, text[at:]))


def _tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """transformers' tojson: json.dumps without escapes for HTML."""
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def _traced_tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """The same with texts of content still known: they are written as numbered place holders."""
    texts = []

    def hold(value):
        if isinstance(value, dict):
            items = sorted(value.items(), key=lambda item: item[0]) if sort_keys else value.items()
            return {hold(k) if isinstance(k, str) else k: hold(v) for k, v in items}
        if isinstance(value, (list, tuple)):
            return [hold(v) for v in value]
        if isinstance(value, Traced) and any(value.tags):
            texts.append(_quoted(value, lambda t: json.dumps(t, ensure_ascii=ensure_ascii)))
            return f"\0{len(texts) - 1}\0"
        return value

    text = json.dumps(hold(x), ensure_ascii=ensure_ascii, indent=indent, separators=separators)
    parts = text.split('"\\u0000')
    joined = [parts[0]]
    for part in parts[1:]:
        number, rest = part.split('\\u0000"', 1)
        joined += [texts[int(number)], rest]
    return Traced.concat(joined)


@contextlib.contextmanager
def _bounded(doing):
    """Whatever fails in a template's own code, without an end of time or memory too, is a fault of the template."""
    def late(*_):
        raise TimeoutError(f"more than {CALL_SECONDS} seconds")

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = [used + CALL_BYTES, *(limit for limit in before if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_AS, (min(most), before[1]))
    handler = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, CALL_SECONDS)
    try:
        yield
    except (StageError, TemplateError):
        raise
    except Exception as e:  # it runs as Python, so it can raise anything
        cause = " ".join(str(e).splitlines()) or "no more is known"
        raise StageError(f"{doing}: {type(e).__name__}: {cause}") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _raise_exception(message):
    raise TemplateRuntimeError(str(message))


class GenerationTracker(Extension):
    """{% generation %}...{% endgeneration %}: tags the block's output as an answer.

    Counting the characters rendered so far would go wrong inside macros, loops and captured
    blocks; tags travel with the text. Plain rendering passes the block through.
    """

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(lineno)

    def _inside(self, caller):
        body = caller()
        if not isinstance(self.environment, TracingEnvironment) or not body:
            return body
        marked = Traced.of(body).marked(Traced.ANSWER)
        return marked[:1].marked(Traced.FIRST) + marked[1:]


class PlainEnvironment(ImmutableSandboxedEnvironment):
    """What transformers sets up, with the clock of RECIPE.md."""

    intercepted_binops = frozenset(("*", "**"))

    def __init__(self, **options):
        super().__init__(trim_blocks=True, lstrip_blocks=True,
                         extensions=[GenerationTracker, loopcontrols], **options)
        self.filters["tojson"] = _tojson
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = CLOCK.strftime

    def call_binop(self, context, operator, left, right):
        """Refuses numbers so large that making them cannot be interrupted."""
        if isinstance(left, int) and isinstance(right, int):
            times = right if operator == "**" else 1
            if left.bit_length() * max(times, 1) + right.bit_length() > PRODUCT_BITS_MAX:
                raise OverflowError("a number beyond all use")
        return super().call_binop(context, operator, left, right)


class TracingEnvironment(PlainEnvironment):
    """The same for texts that know where they come from."""

    concat = staticmethod(Traced.concat)
    intercepted_binops = PlainEnvironment.intercepted_binops | {"%"}

    def __init__(self):
        super().__init__(finalize=_text)
        inherited = self.filters
        self.filters = {
            **inherited, "tojson": _traced_tojson,
            **{name: self._cased(inherited[name])
               for name in ("upper", "lower", "capitalize", "title")},
            "trim": lambda v, chars=None: Traced.of(_text(v)).strip(chars),
            "format": lambda v, *a, **k: self.call_binop(None, "%", _text(v), k or a),
            "escape": self._escape, "e": self._escape,
            "safe": lambda v: TracedSafe.made(_text(v)), "string": lambda v: _text(v),
            "replace": lambda s, old, new, count=-1: Traced.of(_text(s)).replace(
                str(old), str(new), -1 if count is None else count),
            "indent": self._indent, "join": self._join(inherited["join"])}

    @staticmethod
    def _cased(original):
        return lambda v: Traced.of(_text(v))._cased(original(str.__str__(_text(v))))

    @staticmethod
    def _escape(v):
        return TracedSafe.made(TracedSafe.escaped(v if isinstance(v, str) else _text(v)))

    def call_binop(self, context, operator, left, right):
        if operator == "%" and isinstance(left, str):
            return _traced_percent(Traced.of(left), right)
        return super().call_binop(context, operator, left, right)

    @staticmethod
    def _indent(s, width=4, first=False, blank=False):
        pad = width if isinstance(width, str) else " " * width
        lines = Traced.of(s + "\n").splitlines()
        kept = [pad + line if (line or blank) and (first or i) else line
                for i, line in enumerate(lines)]
        return Traced.of("\n").join(kept)

    def _join(self, original):
        def join(value, d="", attribute=None):
            if attribute is not None:
                getter = filters.make_attrgetter(self, attribute)
                value = [getter(v) for v in value]
            return Traced.of(_text(d)).join(_text(v) for v in value)
        return join

    def getattr(self, obj, attribute):
        if attribute == "format" and isinstance(obj, str):
            return functools.partial(_traced_format, Traced.of(obj))
        return super().getattr(Traced.of(obj) if type(obj) is str else obj, attribute)


def _traced_str_join(seq):
    return Traced.concat(_text(v) for v in seq)


def _as_content(value):
    """The same with every text in it content. Names that a template asks for stay what they are."""
    if isinstance(value, dict):
        return {Traced.of(k).marked(Traced.CONTENT): _as_content(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_as_content(v) for v in value]
    return Traced.of(value).marked(Traced.CONTENT) if isinstance(value, str) else value


class Rendered:
    """Text, which of its characters came from content, and the assistant spans (characters)."""

    def __init__(self, text, from_content, spans):
        self.text, self.from_content, self.spans = text, from_content, spans


NOTHING_BESIDE = {"tools": None, "documents": None}


class Renderer:
    """A chat template in the environment that transformers gives it."""

    def __init__(self, source, variables=None):
        self.source, self.variables = source, variables or {}
        self.has_generation = False
        self.plain = PlainEnvironment().from_string(source)
        self.has_generation = any(
            isinstance(n, nodes.ExtensionAttribute)
            for n in PlainEnvironment().parse(source).find_all(nodes.ExtensionAttribute))
        kept, runtime.str_join = runtime.str_join, _traced_str_join
        try:
            self.traced = TracingEnvironment().from_string(source)
        finally:
            runtime.str_join = kept

    def _require_words(self, messages, beside):
        """What a chat has must be a word of the template's text: else it would be lost."""
        has = {key for key, value in beside.items() if value is not None}
        has |= {key for m in messages for key in ("tool_calls", "reasoning_content") if key in m}
        has |= {"tool" for m in messages if m["role"] == "tool"}
        if lost := sorted(word for word in has if word not in self.source):
            raise StageError(f"the record has {', '.join(lost)}, which the template does not name")

    def _call(self, template, messages, beside, prompt):
        # Every call gets its own copy of the messages: a template cannot pass notes to the next.
        with _bounded("the template fails"):
            return template.render(
                messages=[dict(m) for m in messages], **beside,
                add_generation_prompt=prompt, **self.variables)

    def _answers(self, messages, beside, text):
        """Answers of a template without generation blocks, by the prefix rule of RECIPE.md."""
        spans, last = [], 0
        for i, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            ends = []
            for count, prompt in ((i, True), (i + 1, False)):
                part = self._call(self.plain, messages[:count], beside, prompt)
                if not text.startswith(part):
                    raise StageError(
                        "the template has no generation block, and what it writes for the first "
                        f"{count} messages does not begin what it writes for all")
                ends.append(len(part))
            if ends[0] < last or ends[1] < ends[0]:
                raise StageError(f"the answer of message {i + 1} has no place")
            spans.append(tuple(ends))
            last = ends[1]
        return spans

    def render(self, messages, beside=NOTHING_BESIDE):
        """Renders once plain and once traced; the two must agree."""
        self._require_words(messages, beside)
        plain = self._call(self.plain, messages, beside, False)
        traced = self._call(self.traced, [
            {key: value if key == "role" else _as_content(value) for key, value in m.items()}
            for m in messages], {k: _as_content(v) for k, v in beside.items()}, False)
        if traced != plain:
            raise StageError("the origin of a text is lost in the template")
        expect(not any("\ud800" <= c <= "\udfff" for c in plain), "the template writes a lone surrogate")
        tags = Traced.of(traced).tags
        if not self.has_generation:
            return Rendered(plain, [t & 1 for t in tags], self._answers(messages, beside, plain))
        spans = []
        for i, tag in enumerate(tags):
            begins = tag & Traced.ANSWER and not (i and tags[i - 1] & Traced.ANSWER)
            if begins or tag & Traced.FIRST:
                spans.append([i, i])
            if tag & Traced.ANSWER:
                spans[-1][1] = i + 1
        return Rendered(plain, [t & 1 for t in tags], [tuple(s) for s in spans])


# --------------------------------------------------------------------------------------- stage

def byte_spans(text, spans):
    """Character spans as byte spans."""
    offset = [0]
    for c in text:
        offset.append(offset[-1] + len(c.encode("utf-8")))
    return [(offset[a], offset[b]) for a, b in spans]


def record_features(messages, beside, control):
    """The features of RECIPE.md that depend on a record alone."""
    contents = [m["content"] for m in messages if m["content"] is not None]
    found = ["system" if messages[0]["role"] == "system" else "no_system"]
    if sum(m["role"] == "assistant" for m in messages) > 1:
        found.append("multi_turn")
    if beside["tools"] is not None:
        found.append("tools")
    if any(m["role"] == "assistant" and "</think>" in (m["content"] or "") for m in messages[:-1]):
        found.append("reasoning")
    if any(c != c.strip() for c in contents):
        found.append("edge_space")
    if any(token in c for token in control for c in contents):
        found.append("control_text")
    if not all(c.isascii() for c in contents):
        found.append("non_ascii")
    return found


def supervised_marks(mask, spans, starts):
    """Which tokens are learned, by the first byte of each."""
    if mask == "all":
        return [1] * len(starts)
    if mask in ("last", "completion"):
        spans = sorted(spans)[-1:]
    if mask == "completion":
        return [int(any(s >= a for a, _ in spans)) for s in starts]
    return [int(any(a <= s < b for a, b in spans)) for s in starts]


def prompt_is_prefix(renderer, tokenizer, record, rendered, shadow, ids):
    """Whether earlier turns alone render to a beginning of all, and so do the prompt's tokens."""
    for end, message in enumerate(record.messages[:-1], 1):
        if message["role"] != "assistant":
            continue
        try:
            part = renderer.render(record.messages[:end], record.beside).text
        except (StageError, TemplateError):
            return False
        if not rendered.text.startswith(part):
            return False
    if not rendered.spans:
        return True
    border = max(start for start, _ in rendered.spans)
    prompt, _ = tokenizer.encode(rendered.text[:border], shadow[:border])
    return ids[:len(prompt)] == prompt


def encode_record(renderer, tokenizer, mask, record, prefix=False):
    """The output line of a record as a dictionary."""
    rendered = renderer.render(record.messages, record.beside)
    # A NUL cannot stand in a control token: names with it are refused by the caller.
    shadow = "".join("\0" if c else t for t, c in zip(rendered.text, rendered.from_content))
    ids, starts = tokenizer.encode(rendered.text, shadow)
    spans = byte_spans(rendered.text, rendered.spans)
    line = {"id": record.id, "text": rendered.text, "hash": fnv1a(rendered.text.encode("utf-8")),
            "ids": ids, "starts": starts, "supervised": supervised_marks(mask, spans, starts),
            "features": record_features(record.messages, record.beside, tokenizer.control)}
    if prefix:
        line["prefix"] = int(prompt_is_prefix(renderer, tokenizer, record, rendered, shadow, ids))
    return line


def load_tokenizer(path):
    if path.endswith(".tiktoken"):
        return from_ranks(path)
    data = read_file(path)
    try:
        return from_json(parse_json(data))
    except StageError as e:
        raise StageError(f"{path}: {e}") from None


SPECIAL_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token",
                  "mask_token")


class Config:
    """A tokenizer_config.json: its special tokens and its chat templates."""

    def __init__(self, path):
        self.path = path
        self.data = read_file(path)
        try:
            self.value = parse_json(self.data)
        except StageError as e:
            raise StageError(f"{path}: {e}") from None
        if not isinstance(self.value, dict):
            raise StageError(f"{path}: not an object")

    def refuse(self, key, cause):
        line = self.data[:self.data.find(f'"{key}"'.encode())].count(b"\n") + 1
        raise StageError(f"{self.path}:{line}: {key} {cause}")

    def text(self, key, value, cause):
        if not isinstance(value, str):
            self.refuse(key, cause)
        return value

    def tokens(self):
        """What a template sees of the special tokens: those that are there, by name."""
        found = {}
        for name in SPECIAL_TOKENS:
            token = self.value.get(name)
            if token is not None:
                found[name] = self.token(name, token)
        more = self.value.get("additional_special_tokens")
        if more is not None and not isinstance(more, list):
            self.refuse("additional_special_tokens", "is no list")
        if more:
            found["additional_special_tokens"] = [self.token("additional_special_tokens", token)
                                                  for token in more]
        return found

    def token(self, name, token):
        """The text of one special token."""
        return self.text(name, token.get("content") if isinstance(token, dict) else token,
                         "is no text")

    def template(self, name):
        """The source called `name`, or the only or default one when that is None."""
        key = "chat_template"
        given = self.value.get(key)
        if isinstance(given, str) and name is None:
            return given
        if isinstance(given, list):
            wrong = "holds something that is no template with a name"
            for item in given:
                if not isinstance(item, dict):
                    self.refuse(key, wrong)
                for part in ("name", "template"):
                    self.text(key, item.get(part), wrong)
            sources = {item["name"]: item["template"] for item in given}
            if (wanted := "default" if name is None else name) in sources:
                return sources[wanted]
        elif key in self.value and not isinstance(given, str):
            self.refuse(key, "is neither a text nor a list of templates")
        raise StageError(f"{self.path}: no {key} called {'default' if name is None else name}")


def read_template(name):
    """The file, source and variables of PATH.jinja, PATH.json or PATH.json#NAME."""
    path, mark, variant = name.rpartition("#")
    if not (mark and path.endswith(".json") and "/" not in variant):
        path, variant = name, None
    if path.endswith(".json"):
        config = Config(path)
        return f"{path}: chat_template", config.template(variant), config.tokens()
    data = read_file(path)
    expect(len(data) <= TEMPLATE_BYTES_MAX, f"{path}: more than {TEMPLATE_BYTES_MAX} bytes")
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError:
        raise StageError(f"{path}: not UTF-8") from None
    beside = os.path.join(os.path.dirname(path), "tokenizer_config.json")
    return path, source, Config(beside).tokens() if os.path.exists(beside) else {}


def load_template(name):
    place, source, variables = read_template(name)
    try:
        with _bounded(f"{place}: it cannot be compiled"):
            return Renderer(source, variables)
    except TemplateError as e:
        raise StageError(f"{place}:{getattr(e, 'lineno', 1)}: {e}") from None


def run(options):
    """Writes the stage file: complete under its name, or not at all."""
    renderer = load_template(options.template)
    tokenizer = load_tokenizer(options.tokenizer)
    if os.path.exists(options.out) and not os.path.isfile(options.out):
        raise OSError(errno.EINVAL, "not a regular file", options.out)
    temporary = f"{options.out}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as out:
            for record in read_records(options.data, options.format):
                try:
                    line = encode_record(renderer, tokenizer, options.mask, record, options.prefix)
                except StageError as e:
                    raise StageError(f"{record.place}: {e}") from None
                except TemplateError as e:
                    raise StageError(f"{record.place}: {options.template}: {e}") from None
                line |= {"file": record.file, "line": record.number}
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
    parser.add_argument("--format", default="messages", choices=tuple(FORMATS))
    parser.add_argument("--mask", required=True, choices=("assistant", "last", "completion", "all"))
    parser.add_argument("--prefix", action="store_true", help="tell whether prompts are prefixes")
    parser.add_argument("--out", required=True)
    options = parser.parse_args(arguments)
    try:
        run(options)
    except StageError as e:
        print("text_stage:", " ".join(str(e).splitlines()), file=sys.stderr)
        return EXIT_BAD
    except OSError as e:
        print(f"text_stage: {e.filename or options.out}: {e.strerror}", file=sys.stderr)
        return EXIT_IO
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
