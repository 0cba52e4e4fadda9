#!/usr/bin/python3
"""Other kinds of tokenizer files with the tokens of ours.

    derive.py composed clinical-2k.json OUT.json      composes text (NFC), splits as Qwen2 does, digit by digit, and
                                                      <|im_end|> takes the white space behind it
    derive.py ranks clinical-2k.json OUT.tiktoken     a file of ranks, and OUT.tiktoken.special with the control tokens

A merged token's rank is its id: ours are numbered in the order of their merges.
"""
import base64
import json
import sys

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")


def composed(tokenizer):
    tokenizer["normalizer"] = {"type": "NFC"}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]}
    for token in tokenizer["added_tokens"]:
        token["rstrip"] = token["content"] == "<|im_end|>"
    return tokenizer


def byte_of_character():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + i): byte for i, byte in enumerate(others)}}


def rank_lines(tokenizer):
    bytes_of = byte_of_character()
    vocab = {bytes(bytes_of[c] for c in text): number for text, number in tokenizer["model"]["vocab"].items()}
    special = {token["content"].encode(): token["id"] for token in tokenizer["added_tokens"]}
    return ["".join(f"{base64.b64encode(text).decode()} {number}\n"
                    for text, number in sorted(table.items(), key=lambda item: item[1])) for table in (vocab, special)]


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def main(kind, source, out):
    with open(source, encoding="utf-8") as file:
        tokenizer = json.load(file)
    if kind == "composed":
        write(out, json.dumps(composed(tokenizer), ensure_ascii=False, indent=0, separators=(",", ":")) + "\n")
    else:
        for path, text in zip((out, out + ".special"), rank_lines(tokenizer)):
            write(path, text)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("composed", "ranks"):
        sys.exit("usage: derive.py composed|ranks TOKENIZER.json OUT")
    main(*sys.argv[1:])
