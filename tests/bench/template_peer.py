"""Renders a second of the trainer's Jinja engine and of Jinja2 in turn: template_peer.py
BENCH CORPUS [TEMPLATE...]. The same chats, the same templates, one core; three rounds, the best of each."""
import json
import os
import subprocess
import sys
import time

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS, ROUNDS = 0.7, 3


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("inside"), [], [], body).set_lineno(line)

    def inside(self, caller):
        return caller()


def jinja2_rate(template, chats):
    start, done = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < SECONDS:
        for _ in range(16):
            template.render(messages=chats[done % len(chats)], tools=None, documents=None,
                            add_generation_prompt=False, bos_token="<s>", eos_token="</s>")
            done += 1
    return done / passed


def main():
    bench, corpus = sys.argv[1:3]
    folder = os.path.join(corpus, "templates")
    data = os.path.join(corpus, "data", "clinical.jsonl")
    names = sys.argv[3:] or [os.path.join(folder, n + ".jinja") for n in (
        "chatml", "llama3", "gemma", "tools_xml_chatml", "thinking_chatml", "dated_headers",
        "content_parts", "fullwidth_roles", "channels")]
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, loopcontrols])
    env.filters["tojson"] = lambda x, **k: json.dumps(x, ensure_ascii=False, **k)
    env.globals["strftime_now"] = lambda f: time.strftime(f, time.gmtime(0))
    env.globals["raise_exception"] = lambda m: 1 // 0
    with open(data, encoding="utf-8") as file:
        chats = [json.loads(line)["messages"] for line in file]
    print(f"jinja2 {jinja2.__version__}, {len(chats)} chats; renders a second, one core")
    product, ratios = 1.0, 0
    for name in names:
        with open(name, encoding="utf-8", newline="") as file:
            template = env.from_string(file.read())
        ours = theirs = 0.0
        for _ in range(ROUNDS):
            out = subprocess.run([bench, name, data, str(SECONDS)], check=True,
                                 capture_output=True, text=True).stdout.split()
            ours, theirs = max(ours, float(out[0])), max(theirs, jinja2_rate(template, chats))
        product, ratios = product * ours / theirs, ratios + 1
        print(f"  {os.path.basename(name):26} engine {ours:10.0f}  jinja2 {theirs:8.0f}  "
              f"ratio {ours / theirs:5.1f}  ({out[1]} bytes each)")
    print(f"geometric mean of the ratios: {product ** (1 / ratios):.1f}")


main()
