#!/usr/bin/env python3
"""Appends unused control tokens <|reserved_N|> to a tokenizer.json until it has a given size.

    pad_vocab.py --size 49152 IN.json OUT.json

For models whose vocabulary is larger than our tokenizer; the reserved tokens never occur in a text.
"""
import argparse
import json
import sys


def pad(tokenizer, size):
    added = tokenizer["added_tokens"]
    used = set(tokenizer["model"]["vocab"].values()) | {token["id"] for token in added}
    if used != set(range(len(used))):
        raise ValueError("ids are not 0..n-1")
    if size < len(used):
        raise ValueError(f"it has {len(used)} tokens already")
    for number in range(size - len(used)):
        added.append({"id": len(used) + number, "content": f"<|reserved_{number}|>", "single_word": False,
                      "lstrip": False, "rstrip": False, "normalized": False, "special": True})


def main():
    parser = argparse.ArgumentParser(description="append reserved tokens to a tokenizer.json")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("source")
    parser.add_argument("target")
    options = parser.parse_args()
    try:
        with open(options.source, encoding="utf-8") as file:
            tokenizer = json.load(file)
        pad(tokenizer, options.size)
    except OSError as error:
        sys.exit(f"{options.source}: {error.strerror}")
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{options.source}: {error}")
    with open(options.target, "w", encoding="utf-8", newline="\n") as file:
        json.dump(tokenizer, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
