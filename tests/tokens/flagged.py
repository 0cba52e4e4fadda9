#!/usr/bin/python3
"""A tokenizer.json with added tokens that take white space or must stand alone: flagged.py IN OUT

Prints the tokens' texts, one a line. Called by tokens.sh; no vocabulary of npm has such tokens.
"""

import json
import sys

TOKENS = {"<left>": ("lstrip",), "<right>": ("rstrip",), "<both>": ("lstrip", "rstrip"), "alone": ("single_word",),
          "<all>": ("lstrip", "rstrip", "single_word"), "lone word": ("single_word", "lstrip"), "<lef": (),
          "rundown": ("single_word", "rstrip")}

source, target = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    tokenizer = json.load(file)
number = 1 + max(token["id"] for token in tokenizer["added_tokens"])
for at, (text, flags) in enumerate(TOKENS.items()):
    tokenizer["added_tokens"].append({
        "id": number + at, "content": text, "normalized": False, "special": at % 2 == 0,
        **{flag: flag in flags for flag in ("lstrip", "rstrip", "single_word")}})
with open(target, "w", encoding="utf-8") as file:
    json.dump(tokenizer, file, ensure_ascii=False)
print("\n".join(TOKENS))
