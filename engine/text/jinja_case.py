#!/usr/bin/python3
"""Writes the tables of jinja_case.c from Python's own Unicode data: jinja_case.py > tables.
Run it when the Python of the reference text stage gets a newer Unicode version."""
import unicodedata

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def longer(name, method):
    print(f"static const struct expansion {name}[] = {{")
    row = ""
    for c in ALL:
        text = getattr(chr(c), method)()
        if len(text) > 1:
            points = ", ".join(f"0x{ord(x):X}" for x in text)
            item = f"{{0x{c:X}, {{{points}}}}},"
            if len(row) + len(item) > 92:
                print("    " + row.rstrip())
                row = ""
            row += item + " "
    print("    " + row.rstrip() + "\n};")


def ranges(name, chosen):
    pairs = []
    for c in chosen:
        if pairs and pairs[-1][1] == c - 1:
            pairs[-1][1] = c
        else:
            pairs.append([c, c])
    print(f"static const unsigned {name}[][2] = {{")
    row = ""
    for a, b in pairs:
        item = f"{{0x{a:X}, 0x{b:X}}},"
        if len(row) + len(item) > 92:
            print("    " + row.rstrip())
            row = ""
        row += item + " "
    print("    " + row.rstrip() + "\n};")


longer("upper", "upper")
longer("lower", "lower")
longer("title", "title")
decimal = {c for c in ALL if unicodedata.category(chr(c)) == "Nd"}
digit = {c for c in ALL if chr(c).isdigit()} - decimal
ranges("digits", sorted(digit))
ranges("numerics", sorted({c for c in ALL if chr(c).isnumeric()} - digit - decimal))
