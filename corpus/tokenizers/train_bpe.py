#!/usr/bin/env python3
"""Trains a byte-level BPE tokenizer and writes it as a Hugging Face tokenizer.json.

    train_bpe.py --size 2048 --out clinical-2k.json FILE.jsonl ...

Deterministic. Training text: role and content of every message of the files, in order. It is cut by the GPT-2
pattern with \\s = the Unicode property White_Space; each piece becomes its UTF-8 bytes. Then, until the
size is reached, the most frequent adjacent pair is merged; among equally frequent pairs the one with the
lowest (left id, right id). It is an error if no pair occurs as often as --min-count before that.

Ids: 0..255 the bytes in the order of GPT-2's alphabet (printable ones first), then one per merge, then
the control tokens.
"""
import argparse
import collections
import json
import sys

import regex

CONTROL = (
    "<|pad|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|end_of_text|>",
    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<s>", "</s>", "<bos>", "<eos>",
    "<start_of_turn>", "<end_of_turn>",
)
PIECE = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+"
    r"|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+")


def byte_alphabet():
    """The 256 characters that stand for bytes, in the order of their ids: list of (byte, character)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [(byte, chr(byte)) for byte in printable] + [
        (byte, chr(256 + index)) for index, byte in enumerate(others)]


def read_pieces(paths):
    """How often each piece occurs in the contents of the files."""
    counts = collections.Counter()
    for path in paths:
        with open(path, encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                try:
                    messages = json.loads(line)["messages"]
                    for message in messages:
                        counts[message["role"]] += 1
                        counts.update(PIECE.findall(message["content"]))
                except (ValueError, KeyError, TypeError) as error:
                    raise SystemExit(f"{path}:{number}: not a conversation: {error}")
    return counts


class Trainer:
    """Words (distinct pieces as id lists) with the pair counts kept up to date after each merge."""

    def __init__(self, piece_counts, id_of_byte):
        self.words = []
        self.weights = []
        self.pairs = collections.Counter()
        self.places = collections.defaultdict(set)
        for piece, weight in piece_counts.items():
            self.words.append([id_of_byte[byte] for byte in piece.encode("utf-8")])
            self.weights.append(weight)
            self._count(len(self.words) - 1, +1)

    def _count(self, index, sign):
        word = self.words[index]
        for pair in zip(word, word[1:]):
            self.pairs[pair] += sign * self.weights[index]
            self.places[pair].add(index)

    def best(self):
        """The most frequent pair, the lowest one among equals, and its count."""
        pair = min(self.pairs, key=lambda pair: (-self.pairs[pair], pair))
        return pair, self.pairs[pair]

    def merge(self, pair, new_id):
        for index in sorted(self.places.pop(pair)):
            self._count(index, -1)
            self.words[index] = replace(self.words[index], pair, new_id)
            self._count(index, +1)
        del self.pairs[pair]


def replace(word, pair, new_id):
    """The word with every occurrence of the pair, from the left, made one id."""
    out = []
    at = 0
    while at < len(word):
        if tuple(word[at:at + 2]) == pair:
            out.append(new_id)
            at += 2
        else:
            out.append(word[at])
            at += 1
    return out


def train(piece_counts, merges_wanted, min_count):
    """The vocabulary (list of token texts by id) and the merges (pairs of texts)."""
    alphabet = byte_alphabet()
    vocab = [character for _, character in alphabet]
    trainer = Trainer(piece_counts, {byte: index for index, (byte, _) in enumerate(alphabet)})
    merges = []
    while len(merges) < merges_wanted:
        pair, count = trainer.best()
        if count < min_count:
            raise SystemExit(f"the text is too small: only {len(merges)} of {merges_wanted} merges")
        merges.append((vocab[pair[0]], vocab[pair[1]]))
        trainer.merge(pair, len(vocab))
        vocab.append(vocab[pair[0]] + vocab[pair[1]])
    if len(set(vocab)) != len(vocab):
        raise SystemExit("two merges gave the same token")
    return vocab, merges


def tokenizer_json(vocab, merges):
    added = [{"id": len(vocab) + index, "content": text, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True}
             for index, text in enumerate(CONTROL)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": False, "vocab": {text: index for index, text in enumerate(vocab)},
                  "merges": [f"{left} {right}" for left, right in merges]},
    }


def main():
    parser = argparse.ArgumentParser(description="train a byte-level BPE tokenizer")
    parser.add_argument("--size", type=int, required=True, help="tokens in all, control tokens included")
    parser.add_argument("--min-count", type=int, default=2)
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    merges_wanted = options.size - 256 - len(CONTROL)
    if merges_wanted < 0:
        parser.error(f"--size must be at least {256 + len(CONTROL)}")
    vocab, merges = train(read_pieces(options.files), merges_wanted, options.min_count)
    with open(options.out, "w", encoding="utf-8", newline="\n") as out:
        json.dump(tokenizer_json(vocab, merges), out, ensure_ascii=False, indent=1)
        out.write("\n")
    print(f"{options.out}: {len(vocab) + len(CONTROL)} tokens, {len(merges)} merges", file=sys.stderr)


if __name__ == "__main__":
    main()
