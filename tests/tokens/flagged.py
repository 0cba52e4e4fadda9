#!/usr/bin/python3
"""A tokenizer.json with added tokens that take white space, must stand alone or are sought in the normalised text:
flagged.py IN OUT

Prints the tokens' texts, one a line. Called by tokens.sh; no vocabulary of npm has such tokens.
"""

import json
import sys
import unicodedata

TOKENS = {"<left>": ("lstrip",), "<right>": ("rstrip",), "<both>": ("lstrip", "rstrip"), "alone": ("single_word",),
          "<all>": ("lstrip", "rstrip", "single_word"), "lone word": ("single_word", "lstrip"), "<lef": (),
          "rundown": ("single_word", "rstrip"), "[late]": ("normalized",), "<late \u00e9>": ("normalized", "rstrip"),
          "e\u0301n": ("normalized",), "\u00e9t\u00e9": ("normalized", "single_word"), "\u212bx": ("normalized", "lstrip"), "\u212by": (),
          "[lat": (), "te]": ("normalized", "single_word"), "\ud55c": ("normalized",)}

source, target = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    tokenizer = json.load(file)
number = 1 + max(token["id"] for token in tokenizer["added_tokens"])
for at, (text, flags) in enumerate(TOKENS.items()):
    tokenizer["added_tokens"].append({
        "id": number + at, "content": text, "special": at % 2 == 0,
        **{flag: flag in flags for flag in ("lstrip", "rstrip", "single_word", "normalized")}})
with open(target, "w", encoding="utf-8") as file:
    json.dump(tokenizer, file, ensure_ascii=False)
print("\n".join(TOKENS))
print("\n".join(unicodedata.normalize("NFD", text) for text in TOKENS if not text.isascii()))
