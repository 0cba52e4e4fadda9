#!/usr/bin/python3
"""Texts for comparing tokenizers, as a 32-bit size and bytes each.

    texts.py fuzz COUNT SEED [WORD...] OUT      with these words among the others: strings made to be hard: pieces of words, digits, blanks, short forms, marks,
                                      look-alikes of control tokens, characters of every category
    texts.py messages FILE OUT        contents of all messages of a JSON Lines file (plain or gzip)
Called by tokens.sh; must not know tokenizers.
"""

import gzip
import json
import random
import struct
import sys
import unicodedata

# Characters that the Unicode versions of all the tokenizers agree on: those Python knows (version 14).
KNOWN = [chr(c) for c in range(0x110000)
         if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c)) not in ("Cn", "Co")]
BY_CATEGORY = {}
for character in KNOWN:
    BY_CATEGORY.setdefault(unicodedata.category(character), []).append(character)
CATEGORIES = sorted(BY_CATEGORY)
BLANKS = ["\t", "\n", "\x0b", "\x0c", "\r", " ", "\x85", "\xa0", "\u1680", "\u2002", "\u2028", "\u2029", "\u202f",
          "\u205f", "\u3000", "\u180e", "\ufeff", "\u200b", "\r\n", "  ", "\n\n", "\x1c", "\x00"]
WORDS = ["the", "The", "THE", " patient", "'s", "'S", "'\u017f", "'ll", "'LL", "'Ve", "'re", "'m", "'d", "'t", "'",
         "don't", "I'M", "123", "1", "12345678", "3.14", "\u00bd", "\u0661\u0662", "mg/dL", "//", "/\n", "e\u0301",
         "\u00e9", "\u1112\u1161\u11ab", "\ud55c", "\u4f60\u597d", "\u05e9\u05dc\u05d5\u05dd", "\u00df", "\u01c5",
         "\u02b0", "A\u02b0B", "aB", "Ab", "ABc", "\u0301", "<|endoftext|>", "<|im_end|>", "</s>", "<s>", "[INST]",
         "<tool_call>", "\u2581", "_", "...", "!?", "\U0001f600", "\U0001f469\u200d\U0001f52c", "\u0130", "\u212b",
         "\u0958", "\u0344", "\u0f73", "a" * 40, " " * 20, "\ufb01", "\u00b2", "http://a.b/c?d=e", "{\"k\": [1]}"]


def part(draw, words):
    if words and draw.random() < 0.3:
        return draw.choice(words)
    kind = draw.random()
    if kind < 0.35:
        return draw.choice(WORDS)
    if kind < 0.5:
        return draw.choice(BLANKS)
    if kind < 0.6:
        return "".join(draw.choice(BLANKS) for _ in range(draw.randint(1, 5)))
    if kind < 0.7:
        return "".join(chr(draw.randint(0x20, 0x7E)) for _ in range(draw.randint(1, 12)))
    if kind < 0.8:
        return "".join(draw.choice("abcdefghijklmnopqrstuvwxyzABCD") for _ in range(draw.randint(1, 15)))
    if kind < 0.85:
        return "".join(draw.choice("0123456789") for _ in range(draw.randint(1, 10)))
    if kind < 0.9:
        return draw.choice(KNOWN)
    return "".join(draw.choice(BY_CATEGORY[draw.choice(CATEGORIES)]) for _ in range(draw.randint(1, 4)))


def fuzz(count, seed, words):
    draw = random.Random(seed)
    for _ in range(count):
        yield "".join(part(draw, words) for _ in range(draw.randint(1, 12)))


def messages(path):
    opened = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
    with opened as file:
        for line in file:
            for message in json.loads(line)["messages"]:
                yield message["content"]


def main(arguments):
    texts = fuzz(int(arguments[1]), int(arguments[2]), arguments[3:-1]) if arguments[0] == "fuzz" else messages(arguments[1])
    count = total = 0
    with open(arguments[-1], "wb") as out:
        for text in texts:
            data = text.encode("utf-8")
            out.write(struct.pack("<I", len(data)) + data)
            count += 1
            total += len(data)
    print(f"{arguments[-1]}: {count} texts, {total} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
