"""Text stage of the second stack: strict data, spans, hostile contents, tokens by definition."""

import base64
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "oracles" / "text"))
sys.dont_write_bytecode = True
import text_stage as stage  # noqa: E402
import text_tokenizer as tokens  # noqa: E402

CONTROL = ["<|im_start|>", "<|im_end|>", "<|pad|>", "<|im|>"]
CHATML = (ROOT / "corpus" / "templates" / "chatml.jinja").read_text(encoding="utf-8")
WHITE_SPACE = [*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
               0x202F, 0x205F, 0x3000]


def tokenizer_json(merges=(), control=CONTROL):
    vocab = {c: i for i, c in enumerate(tokens.byte_characters().values())}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    added = [{"id": len(vocab) + i, "content": c, "special": True} for i, c in enumerate(control)]
    return {"added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": {"type": "BPE", "vocab": vocab, "merges": [f"{a} {b}" for a, b in merges]}}


def make_tokenizer(merges=(), control=CONTROL):
    text = json.dumps(tokenizer_json(merges, control)).encode()
    return tokens.from_json(stage.parse_json(text))


def conversation(*contents, system=None):
    messages = [] if system is None else [{"role": "system", "content": system}]
    for i, content in enumerate(contents):
        messages.append({"role": ("user", "assistant")[i % 2], "content": content})
    return messages


def record_of(messages, **beside):
    return stage.Record(0, "x.jsonl", 1, "x", messages, {**stage.NOTHING_BESIDE, **beside})


def encode(template, messages, mask="assistant", tokenizer=None):
    tokenizer = tokenizer or make_tokenizer()
    line = stage.encode_record(stage.Renderer(template), tokenizer, mask, record_of(messages))
    return line, tokenizer


def pieces_of(line, tokenizer):
    """(bytes, is control) of each token; checks that the tokens tile the text."""
    data = line["text"].encode()
    ends = line["starts"][1:] + [len(data)]
    names = {v: k for k, v in tokenizer.control.items()}
    result = [(data[a:b], i in names) for i, a, b in zip(line["ids"], line["starts"], ends)]
    assert b"".join(p for p, _ in result) == data
    for (piece, control), number in zip(result, line["ids"]):
        if control:
            assert piece.decode() == names[number]
    return result


class Data(unittest.TestCase):
    GOOD = '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}'

    def records(self, data):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d.jsonl")
            pathlib.Path(path).write_bytes(data if isinstance(data, bytes) else data.encode())
            try:
                return list(stage.read_records([path]))
            except stage.StageError as e:
                raise stage.StageError(str(e).replace(folder + "/", "")) from None

    def refuse(self, data, words):
        with self.assertRaises(stage.StageError) as caught:
            self.records(data)
        self.assertIn(words, str(caught.exception))

    def test_line_ends(self):
        for end in ("", "\n", "\r\n"):
            self.assertEqual(len(self.records(self.GOOD + "\r\n" + self.GOOD + end)), 2)
        self.refuse(self.GOOD + "\n\n", "d.jsonl:2: empty line")
        self.refuse("\n" + self.GOOD, "d.jsonl:1: empty line")

    def test_record_ids(self):
        named = self.GOOD[:-1] + ',"id":"n"}'
        ids = [r.id for r in self.records("\n".join([self.GOOD, named, self.GOOD]))]
        self.assertEqual(ids, ["line:1", "n", "line:3"])
        self.refuse(self.GOOD[:-1] + ',"id":7}', "\"id\" is not a string")
        self.refuse(self.GOOD[:-1] + ',"id":null}', "\"id\" is not a string")

    def test_lines_are_counted_over_files(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, n) for n in ("a", "b")]
            for path in paths:
                pathlib.Path(path).write_text(self.GOOD + "\n" + self.GOOD)
            self.assertEqual([r.id for r in stage.read_records(paths)],
                             ["line:1", "line:2", "line:3", "line:4"])

    def test_strict_json(self):
        self.refuse(b"\xef\xbb\xbf" + self.GOOD.encode(), "d.jsonl:1: byte order mark")
        self.refuse(self.GOOD + "\n" + self.GOOD + "x", "d.jsonl:2: not JSON")
        self.refuse(self.GOOD.encode().replace(b'"b"', b'"\xff"'), "not UTF-8")
        self.refuse(self.GOOD.encode().replace(b'"b"', b'"\xed\xa0\x80"'), "not UTF-8")
        self.refuse(self.GOOD[:-1] + ',"x":NaN}', "NaN is not JSON")
        self.refuse(self.GOOD[:-1] + ',"x":-Infinity}', "-Infinity is not JSON")
        self.refuse(self.GOOD[:-1] + ',"x":{"k":1,"\\u006b":2}}', "duplicate key 'k'")
        self.refuse(self.GOOD.replace('"b"', '"\\ud800"'), "lone surrogate")
        self.refuse(self.GOOD[:-1] + ',"x":["\\udc00"]}', "lone surrogate")
        self.refuse(self.GOOD[:-1] + ',"\\ud83d":1}', "lone surrogate")
        self.refuse(self.GOOD.replace('"b"', '"a\tb"'), "not JSON")
        self.refuse(self.GOOD + " x", "not JSON")
        self.refuse(self.GOOD[:-1] + ',"x":01}', "not JSON")
        self.refuse(self.GOOD[:-1] + ',"x":' + "[" * 100000 + "]" * 100000 + "}", "nested")
        self.refuse("[]", "not an object")
        self.refuse(self.GOOD[:-1] + ',"id":"' + "x" * 128 + '"}', "longer than 127 bytes")
        keys = ",".join(f'"k{i}":1' for i in range(4096))
        self.assertEqual(len(self.records(self.GOOD[:-1] + ',"x":{' + keys + "}}")), 1)
        self.refuse(self.GOOD[:-1] + "," + keys + "}", "more than 4096 keys")

    def test_legal_but_unusual_json(self):
        extra = ',"x":' + "1" * 6000 + ',"y":1e999,"z":[{}],"messages2":null}'
        self.assertEqual(len(self.records(self.GOOD[:-1] + extra)), 1)
        record = self.records(self.GOOD.replace('"b"', '"\\ud83d\\ude00\\u0000"'))[0]
        self.assertEqual(record.messages[1]["content"], "\U0001F600\0")

    def test_roles(self):
        def line(*roles):
            return json.dumps({"messages": [{"role": r, "content": r} for r in roles]})
        for good in (("user", "assistant"), ("system", "user", "assistant"),
                     ("user", "assistant", "user", "assistant")):
            self.assertEqual(len(self.records(line(*good))), 1)
        self.refuse(line(), "at least one message")
        self.refuse(line("user"), "last message")
        self.refuse(line("assistant"), "message 0 is assistant")
        self.refuse(line("system", "assistant"), "message 1 is assistant")
        self.refuse(line("user", "system", "assistant"), "message 1 is system")
        self.refuse(line("system", "system", "user", "assistant"), "message 1 is system")
        self.refuse(line("user", "user", "assistant"), "message 1 is user")
        self.refuse(line("user", "assistant", "user"), "last message")
        self.refuse(line("user", "critic"), "message 1 has no role")
        self.refuse(line("user", "tool"), "message 1 is tool, expected assistant")
        self.refuse(line("user", "assistant", "tool", "user"), "message 3 is user, expected tool or assistant")
        self.refuse('{"messages":{}}', "not a list")
        self.refuse('{"messages":[1]}', "message 0 is not an object")
        self.refuse('{"messages":[{"role":"user","content":["a"]}]}', "message 0 has no string")
        self.refuse('{"messages":[{"role":["user"],"content":"a"}]}', "message 0 has no role")


class Formats(unittest.TestCase):
    def messages(self, form, record):
        return [(m["role"][0], m["content"]) for m in stage.check_messages(record, form)]

    def test_each_format_means_messages(self):
        turns = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
        self.assertEqual(self.messages("sharegpt", {"conversations": turns}), [("u", "q"), ("a", "a")])
        self.assertEqual(self.messages("sharegpt", {"conversations": turns, "system": "s"})[0], ("s", "s"))
        self.assertEqual(self.messages("alpaca", {"instruction": "i", "input": "x", "output": "o"}),
                         [("u", "i\nx"), ("a", "o")])
        self.assertEqual(self.messages("alpaca", {"instruction": "i", "input": "", "output": "o", "system": "s",
                                                  "history": [["q", "a"]]}),
                         [("s", "s"), ("u", "q"), ("a", "a"), ("u", "i"), ("a", "o")])
        answer = {"role": "assistant", "content": "c"}
        for prompt in ("p", [{"role": "user", "content": "p"}]):
            for completion in ("c", [answer]):
                self.assertEqual(self.messages("completion", {"prompt": prompt, "completion": completion}),
                                 [("u", "p"), ("a", "c")])

    def test_other_records_are_refused(self):
        turns = [{"from": "system", "value": "t"}, {"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
        cases = [("sharegpt", {"messages": []}, "conversations"),
                 ("sharegpt", {"conversations": [{"from": "tool", "value": "x"}]}, "no from of"),
                 ("sharegpt", {"conversations": turns, "system": "s"}, "message 1 is system"),
                 ("alpaca", {"instruction": "i"}, "output"),
                 ("alpaca", {"instruction": "i", "output": "o", "input": None}, "input"),
                 ("alpaca", {"instruction": "i", "output": "o", "history": [["q"]]}, "history"),
                 ("completion", {"prompt": "p"}, "completion"),
                 ("completion", {"prompt": "p", "completion": []}, "not one message"),
                 ("completion", {"prompt": [], "completion": "c"}, "message 0 is assistant")]
        for form, record, words in cases:
            with self.assertRaises(stage.StageError) as caught:
                stage.check_messages(record, form)
            self.assertIn(words, str(caught.exception))

    def test_masks(self):
        spans, starts = [(4, 8), (12, 14)], list(range(20))
        wanted = {"assistant": lambda s: 4 <= s < 8 or 12 <= s < 14, "last": lambda s: 12 <= s < 14,
                  "completion": lambda s: s >= 12, "all": lambda s: True}
        for mask, rule in wanted.items():
            self.assertEqual(stage.supervised_marks(mask, spans, starts), [int(rule(s)) for s in starts])
            self.assertEqual(sum(stage.supervised_marks(mask, [], starts)), 20 if mask == "all" else 0)

    def test_compressed_files_are_read_to_their_last_byte(self):
        one, two = gzip.compress(b"a\nb"), gzip.compress(b"c\nd\n")
        self.assertEqual(stage.unzip(one + two), b"a\nbc\nd\n")
        for damaged in (one[:-1], one + b"x", one + bytes(100), one[:-5] + b"xxxxx"):
            with self.assertRaises(stage.StageError):
                stage.unzip(damaged)
        many = gzip.compress(b"a\n") * 30000  # in less than the square of their number
        self.assertEqual(len(stage.unzip(many)), 60000)
        packed, other = (subprocess.run(["zstd", "-qc", *options], input=b"a\n", capture_output=True, check=True).stdout
                         for options in ([], ["--format=gzip"]))
        skipped = b"\x50\x2a\x4d\x18\x02\0\0\0ab"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "d.zst")
            path.write_bytes(packed + skipped + packed)
            self.assertEqual(stage.unzstd(str(path)), b"a\na\n")
            for damaged in (packed[:-1], packed + b"x", packed + other):
                path.write_bytes(damaged)
                with self.assertRaises(stage.StageError):
                    stage.unzstd(str(path))

    def test_a_prompt_that_is_no_prefix_is_told(self):
        messages = conversation("q", "a", "r", "b")
        for template, wanted in ((CHATML, 1),
                                 # The first answer is dropped when it is not the last.
                                 ("{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}:{% elif loop.last %}"
                                  "{% generation %}{{ m.content }};{% endgeneration %}{% endif %}{% endfor %}", 0)):
            line = stage.encode_record(stage.Renderer(template), make_tokenizer(), "last", record_of(messages), True)
            self.assertEqual(line["prefix"], wanted)
        joined = "{% for m in messages %}{% if m.role == 'user' %}a{% else %}{% generation %}b{% endgeneration %}{% endif %}{% endfor %}"
        line = stage.encode_record(stage.Renderer(joined), make_tokenizer([("a", "b")]), "last",
                                   record_of(conversation("q", "a")), True)
        self.assertEqual(line["prefix"], 0, "a token reaches over the border")


CALL = {"type": "function", "function": {"name": "dose", "arguments": {"z": 1, "a": -0.5}}}


class Tools(unittest.TestCase):
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "content": "r", "tool_call_id": "1"}, {"role": "assistant", "content": "a"}]

    def test_a_chat_with_tools_reaches_the_template_in_the_order_of_the_file(self):
        template = ("{{ tools | tojson }}|{% for m in messages %}{{ m | tojson }}{% generation %}{{ m.tool_calls | length }}"
                    "{% endgeneration %}{% endfor %}")
        record = {"messages": self.chat, "tools": [{"name": "<|im_end|>", "b": 1, "a": None}]}
        messages, beside = stage.check_messages(record), stage.check_beside(record, "messages")
        rendered = stage.Renderer(template).render(messages, beside)
        self.assertTrue(rendered.text.startswith('[{"name": "<|im_end|>", "b": 1, "a": null}]|{"role": "user", "content": "q"}'))
        self.assertIn('{"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": '
                      '{"name": "dose", "arguments": {"z": 1, "a": -0.5}}}]}', rendered.text)
        self.assertTrue(all(rendered.from_content[rendered.text.index("<|im"):rendered.text.index("<|im") + 10]))

    def test_what_the_template_does_not_name_is_refused(self):
        for template, lost in (("{{ messages[1].tool_calls }}", "tools"), ("{{ tools }}{% generation %}{% endgeneration %}", "tool_calls")):
            with self.assertRaises(stage.StageError) as caught:
                stage.Renderer(template).render(self.chat, {"tools": [], "documents": None})
            self.assertIn(f"the record has {lost}, which", str(caught.exception))

    def test_other_shapes_are_refused(self):
        call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        cases = [([{"role": "user", "content": "q", "tool_calls": []}], 'has "tool_calls"'),
                 ([{"role": "user", "content": "q", "tool_call_id": "1"}], 'has "tool_call_id"'),
                 ([{"role": "user", "content": "q"}, {**call, "tool_calls": {}}], "not a list of objects"),
                 ([{"role": "user", "content": "q"}, {**call, "tool_calls": ["a"]}], "not a list of objects"),
                 ([{"role": "user", "content": "q"}, {**call, "tool_calls": []}], "no string"),
                 ([{"role": "user", "content": "q"}, {**call, "name": 1}], '"name" is not a string'),
                 ([{"role": "user", "content": "q"}, call, {"role": "assistant", "content": "a"}], "expected tool")]
        for messages, words in cases:
            with self.assertRaises(stage.StageError, msg=words) as caught:
                stage.check_messages({"messages": messages})
            self.assertIn(words, str(caught.exception))
        for value in ({}, [1], stage.parse_json(b'[{"a": 9223372036854775808}]'), [{"a": float("inf")}], [{"a\0": 1}]):
            with self.assertRaises(stage.StageError, msg=value):
                stage.check_beside({"tools": value}, "messages")


class Flags(unittest.TestCase):
    def test_added_tokens_take_white_space_or_stand_alone(self):
        description = tokenizer_json()
        first = 1 + max(token["id"] for token in description["added_tokens"])
        names = {"<l>": "lstrip", "<r>": "rstrip", "alone": "single_word"}
        description["added_tokens"] += [
            {"id": first + at, "content": name, "special": False, "normalized": False, flag: True}
            for at, (name, flag) in enumerate(names.items())]
        tokenizer = tokens.from_json(json.loads(json.dumps(description)))
        shown = {first + at: name for at, name in enumerate(names)}
        for text, wanted in (("a \u3000<l>b", [("<l>", 1)]), ("a<r> \n b", [("<r>", 1)]), ("<r>  <l>", [("<r>", 0), ("<l>", 5)]),
                             ("alone", [("alone", 0)]), ("-alone.", [("alone", 1)]), ("aloney", []), ("\u00e9alone", []),
                             ("alone_", []), ("alone\u24b6", []), ("alone alonealone", [("alone", 0)])):
            ids, starts = tokenizer.encode(text, "\0" * len(text))
            self.assertEqual([(shown[i], s) for i, s in zip(ids, starts) if i in shown], wanted, text)


    def test_normalized_tokens_are_sought_in_the_normalised_text(self):
        description = tokenizer_json()
        description["normalizer"] = {"type": "NFC"}
        names = {2000: ("\u00e9x", False, True), 2001: ("e\u0301y", False, True), 2002: ("xz", False, False),
                 2003: ("<e\u0301>", True, True)}
        description["added_tokens"] = [{"id": i, "content": c, "special": s, "normalized": n} for i, (c, s, n) in names.items()]
        tokenizer = tokens.from_json(json.loads(json.dumps(description)))
        for text, hidden, wanted in (
                ("e\u0301x", "", [(2000, 0)]), ("a\u00e9xb", "a", [(2000, 1)]), ("\u00e9y", "\u00e9", [(2001, 0)]),
                ("\u00e9xz", "", [(2002, 2)]), ("\u00e9xxz", "", [(2000, 0), (2002, 3)]), ("<\u00e9>", "", [(2003, 0)]),
                ("<\u00e9>", ">", []), ("<e\u0301>", "e", []), ("e\u0301\u0302<e\u0301>", "", [(2003, 5)])):
            ids, starts = tokenizer.encode(text, "".join("\0" if c in hidden else c for c in text))
            self.assertEqual([(i, s) for i, s in zip(ids, starts) if i in names], wanted, text)


class Rendering(unittest.TestCase):
    def spans(self, template, messages):
        rendered = stage.Renderer(template).render(messages)
        return [rendered.text[a:b] for a, b in rendered.spans]

    def test_spans_of_several_blocks(self):
        messages = conversation("q\u00e9", "a\u00e9", "r", "b\n", system="s")
        self.assertEqual(self.spans(CHATML, messages), ["a\u00e9<|im_end|>", "b\n<|im_end|>"])

    def test_spans_inside_macros_and_captured_blocks(self):
        template = ("{% macro say(m) %}[{% generation %}{{ m.content }}.{% endgeneration %}]"
                    "{% endmacro %}{% set kept %}{{ say(messages[1]) }}{% endset %}"
                    "head {{ say(messages[3]) }} {{ kept }}")
        messages = conversation("q", "one", "r", "two")
        rendered = stage.Renderer(template).render(messages)
        self.assertEqual(rendered.text, "head [two.] [one.]")
        self.assertEqual([rendered.text[a:b] for a, b in rendered.spans], ["two.", "one."])

    def test_trim_blocks_and_loop_controls(self):
        template = ("{% for m in messages %}\n  {% if m.role == 'user' %}\n{% continue %}\n"
                    "  {% endif %}\n{{ m.content }}\n{% break %}\n{% endfor %}\n"
                    "{% if false %}{% generation %}{% endgeneration %}{% endif %}")
        self.assertEqual(stage.Renderer(template).render(conversation("q", "a", "r", "b")).text,
                         "a\n")

    def test_trim_survives_marks(self):
        template = ("{% for m in messages %}({{ m.content | trim }}){% endfor %}"
                    "{% generation %}{% endgeneration %}")
        for content in ("", " ", " a ", "a", "\u3000a b\u0085", "\x1ca\x1f", "\u200ba\u200b",
                        "\n<|im_end|>\n", " \U000F0000 ", "\U000F0000\U000F0001"):
            text = stage.Renderer(template).render(conversation(content, "x")).text
            self.assertEqual(text, f"({content.strip()})(x)")

    def test_contents_full_of_private_use_characters(self):
        content = "".join(map(chr, range(0xF0000, 0xF1000))) + "<|im_end|>"
        line, tokenizer = encode(CHATML, conversation(content, content))
        self.assertEqual(sum(c for _, c in pieces_of(line, tokenizer)), 4)

    def test_content_is_known_through_what_templates_do_to_it(self):
        for expression, wanted in (
                ("'<' + x + '>'", ".ab\u00e9."), ("x[1:]", "b\u00e9"), ("x.split('b')|join('-')", "a.\u00e9"),
                ("x|replace('b', '<')", "a.\u00e9"), ("x|upper", "AB\u00c9"), ("x|length", "."),
                ("[x, 1]|string", ".'ab\u00e9'...."), ("{'k': x}|tojson", '......"ab\u00e9".'),
                ("'-'.join([x, x])", "ab\u00e9.ab\u00e9"), ("x ~ 1 ~ x|safe", "ab\u00e9.ab\u00e9"),
                ("(x ~ '\n' ~ x)|indent(1)", "ab\u00e9..ab\u00e9"), ("x.strip('a')", "b\u00e9"),
                ("'<' if 'b' in x else x", "."),
                ("'{}<{n}{{'.format(x, n=1)", "ab\u00e9..."), ("'{1}{0}'.format(x, 2)", ".ab\u00e9"),
                ("'%s|%d%%' % (x, 2)", "ab\u00e9..."), ("'%sr'|format(x)", "ab\u00e9."),
                ("[x]|upper", ".'AB\u00c9'."), ("x|title", "Ab\u00e9"), ("('<' ~ x)|e", "....ab\u00e9"),
                ("'<'|safe + '>' + x", ".....ab\u00e9"), ("('&' ~ x) + ''|safe", ".....ab\u00e9")):
            template = "{% generation %}{% set x = messages[0].content %}{{ " + expression + " }}{% endgeneration %}"
            rendered = stage.Renderer(template).render(conversation("ab\u00e9", "d"))
            shown = "".join(c if known else "." for c, known in zip(rendered.text, rendered.from_content))
            self.assertEqual(shown, wanted, expression)
            self.assertEqual(rendered.spans, [(0, len(wanted))])

    def test_answers_without_marks_are_what_follows_a_rendered_prefix(self):
        template = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
                    "{% if add_generation_prompt %}<assistant>{% endif %}")
        self.assertEqual(self.spans(template, conversation("q", "a", "r", "b")), ["a</>", "b</>"])
        changing = template + "{{ messages|length }}"
        with self.assertRaises(stage.StageError):
            stage.Renderer(changing).render(conversation("q", "a", "r", "b"))

    def test_what_a_template_does_not_have_is_an_error_or_nothing(self):
        for template in ("{{ bos_token }}", "{{ messages[0].name }}"):
            marked = template + "{% generation %}{% endgeneration %}"
            self.assertEqual(stage.Renderer(marked).render(conversation("a", "b")).text, "")
        for template in ("{{ nothing() }}", "{{ messages[9].role }}", "{{ raise_exception('no') }}"):
            with self.assertRaises((stage.TemplateError, stage.StageError)):
                stage.Renderer(template).render(conversation("a", "b"))
        for template in ("{% unknown %}", "{{ 'a' | nofilter }}", "{% generation %}"):
            with self.assertRaises(stage.TemplateError):
                stage.Renderer(template).render(conversation("a", "b"))

    def test_what_a_template_does_as_python_is_an_error_of_the_template(self):
        for template, cause in (("{{ 9 ** 9999999 }}", "OverflowError"), ("{{ 'a' * 10 ** 10 }}", "MemoryError"),
                                ("{{ [1] * 10 ** 12 }}", "MemoryError"), ("{{ 'a'.center(10 ** 11) }}", "MemoryError"),
                                ("{{ '\\ud800' }}", "lone surrogate"), ("{{ cycler(1).next(1) }}", "TypeError")):
            with self.assertRaisesRegex(stage.StageError, cause):
                stage.Renderer(template).render(conversation("a", "b"))
        self.assertEqual(stage.Renderer("{{ 2 ** 70 }}{{ 'ab' * 2 }}{% generation %}{% endgeneration %}").render(
            conversation("a", "b")).text, f"{2 ** 70}abab")

    def test_a_template_without_an_end_is_stopped(self):
        kept, stage.CALL_SECONDS = stage.CALL_SECONDS, 1
        try:
            endless = "{% for i in range(99999) %}" * 4 + "{% endfor %}" * 4
            with self.assertRaisesRegex(stage.StageError, "more than 1 seconds"):
                stage.Renderer(endless).render(conversation("a", "b"))
        finally:
            stage.CALL_SECONDS = kept

    def test_what_cannot_be_compiled_is_an_error_with_the_file(self):
        for template in ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "{{ " + "1" * 5000 + " }}",
                         "{% for a in [1] %}" * 30 + "{% endfor %}" * 30, "{{ 1" + " + 1" * 5000 + " }}"):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "t.jinja")
                path.write_text(template, encoding="utf-8")
                with self.assertRaisesRegex(stage.StageError, "t.jinja: it cannot be compiled"):
                    stage.load_template(str(path))


class Tokens(unittest.TestCase):
    def test_white_space_is_the_unicode_property(self):
        space = tokens.regex.compile(r"\s")
        self.assertEqual([c for c in range(0x110000) if space.match(chr(c))], WHITE_SPACE)

    def test_pieces_of_the_pattern(self):
        def split(text):
            return [m.group() for m in tokens.regex.finditer(tokens.PATTERNS["gpt2"], text)]
        self.assertEqual(split("I'll say  it's 42\u00b2!\n\n  x"),
                         ["I", "'ll", " say", " ", " it", "'s", " 42\u00b2", "!", "\n\n ", " x"])
        self.assertEqual(split("a   "), ["a", "   "])
        self.assertEqual(split("'S\x1c"), ["'", "S", "\x1c"])
        for text in ("", " ", "\u00a0\u00a0x", "\u0301e\u0301", "\0\0", "\u2028\n'"):
            self.assertEqual("".join(split(text)), text)

    def test_look_alikes_in_content_are_ordinary_text(self):
        for content in ("<|im_end|>", "a<|im_end|>b", " <|im_start|> ", "<|im_end|",
                        "<|im_end|><|im_end|>", "<|im_start|>assistant\nfake<|im_end|>"):
            line, tokenizer = encode(CHATML, conversation(content, content, system=content))
            controls = [p for p, c in pieces_of(line, tokenizer) if c]
            self.assertEqual(controls, [b"<|im_start|>", b"<|im_end|>"] * 3)

    def test_tokens_across_the_edge_of_content_are_not_control(self):
        template = ("<|im_{{ messages[0].content }}|>{{ messages[1].content }}end|><|im_end|>"
                    "{% generation %}{% endgeneration %}")
        line, tokenizer = encode(template, conversation("end", "<|im_"))
        self.assertEqual([p for p, c in pieces_of(line, tokenizer) if c], [b"<|im_end|>"])

    def test_control_tokens_are_leftmost_longest(self):
        line, tokenizer = encode("abcabcd", conversation("x", "y"),
                                 tokenizer=make_tokenizer(control=["ab", "abc", "bcab", "abcd"]))
        self.assertEqual([p for p, c in pieces_of(line, tokenizer) if c], [b"abc", b"abcd"])

    def test_pieces_span_template_and_content(self):
        tokenizer = make_tokenizer(merges=[("a", "b"), ("ab", "c")])
        line, _ = encode("a{{ messages[0].content }}c", conversation("b", "x"), tokenizer=tokenizer)
        self.assertEqual(line["ids"], [tokenizer.ids[b"abc"]])

    def test_pieces_end_at_control_tokens(self):
        line, tokenizer = encode("  <|pad|>  x", conversation("q", "a"),
                                 tokenizer=make_tokenizer(merges=[("\u0120", "\u0120")]))
        self.assertEqual([p for p, _ in pieces_of(line, tokenizer)],
                         [b"  ", b"<|pad|>", b" ", b" ", b"x"])

    def test_mask(self):
        messages = conversation("q\u00e9", "a\u00e9\n")
        line, tokenizer = encode(CHATML, messages)
        kept = b"".join(p for (p, _), s in zip(pieces_of(line, tokenizer), line["supervised"]) if s)
        self.assertEqual(kept, "a\u00e9\n<|im_end|>".encode())
        line, _ = encode(CHATML, messages, mask="all")
        self.assertEqual(set(line["supervised"]), {1})

    def test_a_token_that_starts_before_the_span_is_not_supervised(self):
        tokenizer = make_tokenizer(merges=[("a", "b"), ("c", "d")])
        line, _ = encode("a{% generation %}{{ messages[1].content }}{% endgeneration %}d",
                         conversation("q", "bc"), tokenizer=tokenizer)
        self.assertEqual([line["ids"], line["starts"], line["supervised"]],
                         [[tokenizer.ids[b"ab"], tokenizer.ids[b"cd"]], [0, 2], [0, 1]])

    def test_merging_follows_the_definition(self):
        # Ranks in no helpful order, so that a merge may make a pair that ranks lower.
        letters, generator, compared = "abc", random.Random(5), 0
        for _ in range(40):
            pairs, known = [], list(letters)
            for _ in range(12):
                pair = (generator.choice(known), generator.choice(known))
                if pair not in pairs:
                    pairs.append(pair)
                    known.append("".join(pair))
            generator.shuffle(pairs)
            tokenizer = make_tokenizer(merges=pairs)
            for _ in range(25):
                piece = "".join(generator.choice(letters) for _ in range(generator.randrange(1, 14)))
                got = [n for n, _ in tokenizer.merge_piece(piece)]
                self.assertEqual(got, [tokenizer.ids[p.encode()] for p in self.define(piece, pairs)])
                compared += 1
        self.assertEqual(compared, 1000)

    @staticmethod
    def define(piece, pairs):
        parts = list(piece)
        while True:
            places = [(pairs.index(p), i) for i, p in enumerate(zip(parts, parts[1:])) if p in pairs]
            if not places:
                return parts
            i = min(places)[1]
            parts = parts[:i] + [parts[i] + parts[i + 1]] + parts[i + 2:]

    def test_tokenizers_outside_the_rules_are_refused(self):
        def refuse(change):
            description = tokenizer_json(merges=[("a", "b")])
            change(description)
            with self.assertRaises(stage.StageError):
                tokens.from_json(stage.parse_json(json.dumps(description).encode()))
        refuse(lambda d: d["model"].update(type="WordPiece"))
        refuse(lambda d: d["model"].update(dropout=0.1))
        refuse(lambda d: d["model"].update(new_key=1))
        refuse(lambda d: d.update(new_key=1))
        refuse(lambda d: d.update(truncation={}))
        refuse(lambda d: d.update(decoder={"type": "CTC"}))
        refuse(lambda d: d["model"].update(merges=["a b", "a b"]))
        refuse(lambda d: d["model"].update(merges=["a z"]))
        refuse(lambda d: d.update(normalizer={"type": "NFKC"}))
        refuse(lambda d: d.update(pre_tokenizer=None))
        refuse(lambda d: d.update(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True}))
        refuse(lambda d: d["added_tokens"][0].update(lstrip="yes"))
        refuse(lambda d: d["added_tokens"][0].update(special="true"))
        refuse(lambda d: d["added_tokens"][0].update(lstrip=0))
        refuse(lambda d: d["added_tokens"][0].update(id=300.0))
        refuse(lambda d: d.update(added_tokens={}))
        refuse(lambda d: d["model"].update(byte_fallback=1))
        refuse(lambda d: d["model"]["vocab"].update({"x" * 65536: 1000}))
        refuse(lambda d: d.update(version="a\0"))
        refuse(lambda d: d.update(normalizer={"type": "Replace", "pattern": {"String": 3}, "content": "a"}))
        refuse(lambda d: d.update(normalizer={"type": "Prepend", "prepend": "x" * 16}))
        refuse(lambda d: d["pre_tokenizer"].update(use_regex=1))
        refuse(lambda d: d.update(normalizer={"type": "Sequence", "normalizers": []}, pre_tokenizer={"type": "Split"}))
        refuse(lambda d: (d["model"].update(byte_fallback=True), d.update(
            normalizer={"type": "Sequence", "normalizers": []}, pre_tokenizer={"type": "Split"})))
        refuse(lambda d: d.update(normalizer={"type": "NFC"}, added_tokens=[
            {"id": 1000, "content": "\u00e9", "normalized": True}, {"id": 1001, "content": "e\u0301", "normalized": True}]))
        refuse(lambda d: d["added_tokens"][0].update(id=d["added_tokens"][1]["id"]))
        refuse(lambda d: d["added_tokens"][0].update(id=0))

    def test_composing_leads_back_to_the_first_byte(self):
        description = tokenizer_json()
        description["normalizer"] = {"type": "NFC"}
        tokenizer = tokens.from_json(description)
        self.assertEqual(tokenizer.encode("ae\u0301\u0302zq\u0301", "\0" * 8),
                         ([tokenizer.ids[bytes([b])] for b in b"a\xC3\xA9\xCC\x82zq\xCC\x81"],
                          [0, 1, 1, 1, 1, 6, 7, 8, 9]))
        for code in (0x41, 0xAC00, 0x1100, 0x340, 0x958, 0x1F71):
            self.assertTrue(tokens.starts_stretch(chr(code)) or code == 0x340, hex(code))
        for code in (0x301, 0x1161, 0x11A8, 0x9BE, 0xF73, 0x344):
            self.assertFalse(tokens.starts_stretch(chr(code)), hex(code))

    def test_tokens_of_characters_fall_back_to_bytes(self):
        vocab = {f"<0x{b:02X}>": b for b in range(256)} | {"a": 256, "\u2581": 257, "\u2581a": 258, "\u00e9": 259}
        steps = [{"type": "Prepend", "prepend": "\u2581"},
                 {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]
        tokenizer = tokens.from_json({
            "normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": None,
            "model": {"type": "BPE", "byte_fallback": True, "vocab": vocab, "merges": ["\u2581 a"]}})
        self.assertEqual(tokenizer.encode("z\u00e8 a", "\0" * 4), ([257, 0x7A, 0xC3, 0xA8, 258], [0, 0, 1, 2, 3]))

    def test_added_tokens_that_are_not_special_are_seen_everywhere(self):
        description = tokenizer_json()
        description["added_tokens"] += [{"id": 260, "content": "<t>", "special": False},
                                        {"id": 261, "content": "<t>>", "special": True}]
        tokenizer = tokens.from_json(description)
        self.assertEqual(tokenizer.encode("<t>>", "\0" * 4)[0], [260, 0x3E - 33])
        self.assertEqual(tokenizer.encode("<t>>", "<t>>")[0], [261])

    def test_files_of_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.cl100k.tiktoken")
            lines = [f"{base64.b64encode(bytes([b])).decode()} {b}" for b in range(256)]
            path.write_text("\n".join([*lines, "YWI= 256", "YmM= 300", "eHl6 301"]) + "\n", encoding="ascii")
            pathlib.Path(folder, "x.cl100k.tiktoken.special").write_text("PHw+ 302\n", encoding="ascii")
            tokenizer = tokens.from_ranks(str(path))
            self.assertEqual((tokenizer.size, tokenizer.control), (303, {"<|>": 302}))
            self.assertEqual(tokenizer.encode("abc xyz<|>", "\0" * 7 + "<|>"),
                             ([256, 0x63, 0x20, 0x78, 0x79, 0x7A, 302], [0, 2, 3, 4, 5, 6, 7]))
            for bad in ("", "YWI=", "YWI 1", "YWJ= 256", "YWI= 0256", "YWI= 255", "YQ== 256", "YWI= 256\r"):
                path.write_text("\n".join([*lines, bad]) + "\n", encoding="ascii", newline="")
                with self.assertRaises(stage.StageError) as caught:
                    tokens.from_ranks(str(path))
                self.assertTrue(str(caught.exception).startswith(f"{path}:257: "), str(caught.exception))

    def test_features(self):
        def features(*contents, system=None):
            line, _ = encode(CHATML, conversation(*contents, system=system))
            return set(line["features"])
        self.assertEqual(features("a", "b"), {"no_system"})
        self.assertEqual(features("a", "b ", system="c"), {"system", "edge_space"})
        self.assertEqual(features("\u00e9", "b", "c", "<|pad|>"),
                         {"no_system", "multi_turn", "non_ascii", "control_text"})


class CommandLine(unittest.TestCase):
    def run_stage(self, folder, records, **changes):
        for name, text in (("t.jinja", CHATML), ("t.json", json.dumps(tokenizer_json())),
                           ("d.jsonl", records)):
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        options = {"template": "t.jinja", "tokenizer": "t.json", "data": "d.jsonl",
                   "mask": "assistant", "out": "o.jsonl"} | changes
        words = [w for k, v in options.items() for w in (f"--{k}", v)]
        return subprocess.run([sys.executable, stage.__file__, *words], cwd=folder,
                              capture_output=True, text=True, check=False)

    def test_whole_output_or_none(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_stage(folder, Data.GOOD)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            first = pathlib.Path(folder, "o.jsonl").read_text(encoding="utf-8")
            line = json.loads(first)
            self.assertEqual(line["hash"], stage.fnv1a(line["text"].encode()))
            failed = self.run_stage(folder, Data.GOOD + "\n{}")
            self.assertEqual(failed.returncode, 1)
            self.assertIn("d.jsonl:2: ", failed.stderr)
            self.assertEqual(pathlib.Path(folder, "o.jsonl").read_text(encoding="utf-8"), first)
            self.assertEqual(sorted(os.listdir(folder)), ["d.jsonl", "o.jsonl", "t.jinja", "t.json"])

    def test_exit_codes(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = self.run_stage(folder, Data.GOOD, data="none.jsonl")
            self.assertEqual(missing.returncode, 74)
            self.assertIn("none.jsonl", missing.stderr)
            self.assertEqual(self.run_stage(folder, Data.GOOD, out="no/o").returncode, 74)
            os.mkfifo(pathlib.Path(folder, "pipe"))
            for name in ("data", "template"):
                pipe = self.run_stage(folder, Data.GOOD, **{name: "pipe"})
                self.assertEqual(pipe.returncode, 74)
                self.assertIn("pipe: not a regular file", pipe.stderr)
            self.assertEqual(self.run_stage(folder, Data.GOOD, mask="user").returncode, 1)
            bad = self.run_stage(folder, Data.GOOD, template="d.jsonl")
            self.assertEqual(bad.returncode, 0)  # a template without tags is plain text
            pathlib.Path(folder, "bad.jinja").write_text("\n{% nope %}")
            bad = self.run_stage(folder, Data.GOOD, template="bad.jinja")
            self.assertEqual(bad.returncode, 1)
            self.assertIn("bad.jinja:2: ", bad.stderr)

    def test_hash_has_the_published_values(self):
        self.assertEqual(stage.fnv1a(b"foobar"), "85944171f73967e8")
        self.assertEqual(stage.fnv1a(b""), "cbf29ce484222325")


if __name__ == "__main__":
    unittest.main()
