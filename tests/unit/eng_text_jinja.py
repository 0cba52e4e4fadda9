"""Renders conversations with the real Jinja2: TEMPLATE FILE.jsonl -> one JSON line each on stdout,
{"text": hex of UTF-8, "answers": [[start, end], ...]} in bytes. Used by eng_text_jinja_test."""
import json
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension

START, END = "\U0010fffd{", "\U0010fffd}"


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("mark")
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def mark(self, caller):
        return START + caller() + END


def main():
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation])
    with open(sys.argv[1], encoding="utf-8") as f:
        template = environment.from_string(f.read())
    with open(sys.argv[2], encoding="utf-8", newline="\n") as f:
        for line in f:
            marked = template.render(messages=json.loads(line)["messages"])
            text, answers = "", []
            for part in marked.split(START):
                if END in part:
                    inside, after = part.split(END)
                    start = len(text.encode())
                    answers.append([start, start + len(inside.encode())])
                    text += inside + after
                else:
                    text += part
            print(json.dumps({"text": text.encode().hex(), "answers": answers}))


main()
