"""Compares the trainer's Jinja engine with Jinja2: jinja_gallery.py PEER CORPUS

Templates of the gallery x conversations x generation prompt on and off, and snippets x a few
conversations: both give the same bytes and the same answers, or both fail. The environment is the
one transformers sets up. Prints the counts; exit code 1 when anything differs."""
import datetime
import json
import os
import subprocess
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

CLOCK = datetime.datetime(2026, 1, 1, 1, 1, 1)  # as in jinja_peer.c
START, END = "\U000ffff0", "\U000ffff1"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


class Generation(Extension):
    """Brackets the block's output when the context asks for it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("mark", [nodes.ContextReference()])
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def mark(self, context, caller):
        return START + caller() + END if context.get("mark_answers") else caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = CLOCK.strftime
    return env


def all_variables(path):
    """[(name, variables)] of every conversation, without and with a generation prompt."""
    result = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            chat = json.loads(line)
            name = chat.pop("name")
            for prompt in (False, True):
                result.append((f"{name}{' + prompt' if prompt else ''}",
                               {"tools": None, "documents": None, **TOKENS, **chat,
                                "add_generation_prompt": prompt}))
    return result


class Peer:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def render(self, source, variables):
        job = json.dumps({"source": source, "variables": variables}).encode() + b"\n"
        self.process.stdin.write(job)
        self.process.stdin.flush()
        answers = []
        while len(answers) < len(variables):
            answers.append(json.loads(self.process.stdout.readline()))
            if "parse" in answers[-1]:
                return answers * len(variables)
        return answers


def expected(template, variables):
    """Text of Jinja2 and its answers in bytes, or the exception."""
    try:
        text = template.render(**variables)
        marked = template.render(**variables, mark_answers=True)
    except Exception as e:  # whatever a template can raise
        return None, None, e
    answers, plain, starts = [], 0, []
    for c in marked:
        if c == START:
            starts.append(plain)
        elif c == END:
            answers.append([starts.pop(), plain])
        else:
            plain += len(c.encode())
    return text, answers if marked.count(START) else [], None


class Count:
    def __init__(self):
        self.same = self.both_fail = self.answers = self.different = 0

    def add(self, what, name, template, variables, got):
        text, answers, error = expected(template, variables)
        if text is None and got.get("text") is None:
            self.both_fail += 1
        elif text == got.get("text") and sorted(answers) == sorted(got["answers"]):
            self.same += 1
            self.answers += len(answers)
        else:
            self.different += 1
            print(f"{what}: {name}:\n  Jinja2: {text!r} {answers} {error!r}\n  engine: {got}")


def compare(peer, env, what, source, variables, count):
    got = peer.render(source, [v for _, v in variables])
    try:
        template = env.from_string(source)
    except (jinja2.TemplateError, SyntaxError):
        if "parse" in got[0]:
            count.both_fail += 1
        else:
            count.different += 1
            print(f"{what}: only the engine parses it")
        return
    for (name, values), answer in zip(variables, got):
        count.add(what, name, template, values, answer)


def main():
    peer, corpus = Peer(sys.argv[1]), os.path.join(sys.argv[2], "templates")
    env = environment()
    variables = all_variables(os.path.join(corpus, "conversations.jsonl"))
    count = Count()
    names = sorted(n for n in os.listdir(corpus) if n.endswith(".jinja"))
    for name in names:
        with open(os.path.join(corpus, name), encoding="utf-8", newline="") as file:
            compare(peer, env, name, file.read(), variables, count)
    print(f"gallery: {len(names)} templates, {len(variables)} inputs: {count.same} the same "
          f"({count.answers} answers), {count.both_fail} both fail, {count.different} differ")
    ok = count.different == 0 and count.same > 2000 and count.answers > 100
    with open(os.path.join(corpus, "snippets.txt"), encoding="utf-8", newline="") as file:
        snippets = file.read().removesuffix("\n").split("\n%%\n")
    count = Count()
    few = [v for v in variables if v[0] in ("one turn", "tool call and answer", "no messages")]
    for number, source in enumerate(snippets, 1):
        compare(peer, env, f"snippet {number} {source!r}", source, few, count)
    print(f"snippets: {len(snippets)}, {len(few)} inputs: {count.same} the same, "
          f"{count.both_fail} both fail, {count.different} differ")
    ok = ok and count.different == 0 and count.same > 300 and len(few) == 3
    sys.exit(0 if ok else 1)


main()
