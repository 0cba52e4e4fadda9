"""Production holds no trace of the fault sites: the kernels' and the engine's objects equal those of the same
sources with the sites stripped from the text, byte for byte.

    production.py BUILD

Takes each source of a production library from compile_commands.json, compiles it as it is and once more from a copy
in which FAULT(site, healthy) is (healthy), with the same command, and compares code and data.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

SITE = re.compile(r"(?<![A-Za-z0-9_])FAULT\(")
# Production objects by the output path CMake gives them; mutable twins and tests are others.
FOLDERS = ("engine/", "kernels/")


def end_of(text, start):
    """(first comma at depth 0, place of the closing parenthesis) of the arguments that begin at start."""
    depth, comma, quote, place = 0, None, "", start
    while True:
        char = text[place]
        if quote:
            if char == "\\":
                place += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                return comma, place
            depth -= 1
        elif char == "," and depth == 0 and comma is None:
            comma = place
        place += 1


def strip(text):
    """The source without its sites; lines stay where they are. Returns (text, sites)."""
    out, sites, at = [], 0, 0
    while match := SITE.search(text, at):
        comma, close = end_of(text, match.end())
        assert comma is not None, text[match.start() : match.start() + 80]
        gap = text[match.end() : comma + 1].count("\n")  # __LINE__ of what follows
        out += [text[at : match.start()], "(", "\n" * gap, text[comma + 1 : close], ")"]
        sites, at = sites + 1, close + 1
    out.append(text[at:])
    return "".join(out), sites


def jobs_of(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        words = shlex.split(entry["command"])
        source = os.path.abspath(os.path.join(entry["directory"], entry["file"]))
        output = words[words.index("-o") + 1]
        mutable = any(word.startswith("-DMUT_ENABLED") for word in words)
        if output.startswith(FOLDERS) and not mutable:
            yield entry["directory"], words, source


def compile_to(directory, words, source, output, old, new):
    """Compiles with the entry's command, but to another output, without debug information, names as in the tree."""
    command, skip = [], False
    for word in words:
        if skip or word in ("-o", "-MF", "-MT", "-MD") or word == "-c":
            skip = word in ("-o", "-MF", "-MT")
            continue
        command.append(word)
    place = next(i for i, word in enumerate(command) if os.path.abspath(os.path.join(directory, word)) == old)
    command[place] = source
    # Headers beside the source are found beside the original.
    command[1:1] = ["-iquote", os.path.dirname(old)]
    command += ["-w", "-g0", f"-fmacro-prefix-map={os.path.dirname(new)}={os.path.dirname(old)}", "-c", "-o", output]
    done = subprocess.run(command, cwd=directory, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{old}: does not compile without its sites:\n{done.stderr[:2000]}")


def contents(path):
    """Code, data and symbols of an object, without what names the compiler or the path."""
    bare = path + ".bare"
    subprocess.run(["objcopy", "--strip-debug", "--remove-section=.comment", "--remove-section=.note*", path, bare],
                   check=True)
    return subprocess.run(["objdump", "-s", "-t", "-r", bare], check=True, stdout=subprocess.PIPE).stdout.split(b"\n", 3)[3]


def compare(number, job, work):
    directory, words, source = job
    with open(source, encoding="utf-8") as file:
        stripped, sites = strip(file.read())
    if sites == 0:
        return source, 0, True
    results = []
    for name, text in (("with", None), ("without", stripped)):
        folder = os.path.join(work, str(number), name)
        os.makedirs(folder)
        copy = os.path.join(folder, os.path.basename(source))
        with open(source, encoding="utf-8") as file, open(copy, "w", encoding="utf-8") as out:
            out.write(file.read() if text is None else text)
        output = os.path.join(folder, "out.o")
        compile_to(directory, words, copy, output, source, copy)
        results.append(contents(output))
    return source, sites, results[0] == results[1]


def notices(job, work):
    """A comparison that cannot fail is none: one object more in the source must show."""
    directory, words, source = job
    objects = []
    for name, more in (("plain", ""), ("more", "\nint production_probe = 1;\n")):
        copy = os.path.join(work, name + ".c" + ("u" if source.endswith("u") else ""))
        with open(source, encoding="utf-8") as file, open(copy, "w", encoding="utf-8") as out:
            out.write(file.read() + more)
        compile_to(directory, words, copy, os.path.join(work, name + ".o"), source, copy)
        objects.append(contents(os.path.join(work, name + ".o")))
    assert objects[0] != objects[1], "the comparison sees nothing"


def main():
    build = os.path.realpath(sys.argv[1])
    jobs = list({(source, tuple(words)): (directory, words, source) for directory, words, source in jobs_of(build)}.values())
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda pair: compare(pair[0], pair[1], work), enumerate(jobs)))
        notices(jobs[0], work)
    held = [result for result in results if result[1] > 0]
    bad = [source for source, _, same in held if not same]
    for source in bad:
        print(f"{source}: code differs from that of the source without its sites")
    print(f"production: {len(held)} objects of {len({r[0] for r in held})} sources with {sum(r[1] for r in held)} sites "
          f"compared, {len(bad)} differ; {len(results) - len(held)} have no site")
    sys.exit(0 if held and not bad else 1)


main()
