#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tables of the API's functions in docs/sisci-coverage.md: fill their last column, the tests.

usage: sisci_coverage.py [--check] [SOURCE]     --check: only say whether it is up to date
"""
import glob
import os
import re
import sys

ROOMS = ("api", "clients")
SHOWN = 4  # tests of a function that the table names
ROW = re.compile(r"\| `(.*?\b(\w+)\(.*\))` \| (.*?) \| (.*?) \| (.*?) \|.*\|")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def tests(source):
    """Test programs: name -> their text without comments."""
    found = {}
    for room in ROOMS:
        for path in sorted(glob.glob(os.path.join(source, "tests", room, "*.c*"))):
            name = re.sub(r"(_test)?\.(c|cpp)$", "", os.path.basename(path))
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", read(path), flags=re.S)
            found[f"{room}/{name}"] = text
    return found


def functions(path):
    """[(name, prototype, flags, errors, source)] of the tables."""
    found = []
    for number, line in enumerate(read(path).splitlines(), 1):
        m = ROW.fullmatch(line)
        if m:
            found.append((m[2], m[1], m[3].replace("-", "").split(), m[4].replace("-", "").split(), m[5]))
        elif line.startswith("| `"):
            raise SystemExit(f"{path}:{number}: not | `prototype` | flags | errors | source | tests |")
    return found


def table_of(source):
    return os.path.join(source, "docs", "sisci-coverage.md")


def calls(text, name):
    """Called, or passed to a macro that calls it, or looked up without its prefix."""
    short = re.escape(name[3:])
    return re.search(rf"\b{name}\b", text) or ("find_all(" in text and
                                               re.search(rf"\bFIND\({short}\)", text))


def unnamed(source, prefix, which):
    """(function, word of column @which) without a test that calls the function and names the word."""
    programs = tests(source)
    return [(row[0], word) for row in functions(table_of(source)) for word in row[which]
            if word[0] != "~" and not any(calls(text, row[0]) and re.search(rf"\b{prefix}{word}\b", text)
                                          for text in programs.values())]


def unnamed_flags(source):
    return unnamed(source, "SCI_FLAG_", 2)


def unnamed_errors(source):
    return unnamed(source, "SCI_ERR_", 3)


def filled(source):
    """The document with its last column."""
    programs, lines = tests(source), []
    for line in read(table_of(source)).splitlines():
        m = ROW.fullmatch(line)
        if m:
            by = [p for p, text in programs.items() if calls(text, m[2])]
            where = ", ".join(p[4:] if p.startswith("api/") else p for p in by[:SHOWN])
            more = ", and more" if len(by) > SHOWN else ""
            line = f"| `{m[1]}` | {m[3]} | {m[4]} | {m[5]} | {where}{more} |"
        lines.append(line + "\n")
    return "".join(lines)


def main():
    args = sys.argv[1:]
    check = "--check" in args
    args = [a for a in args if a != "--check"]
    here = os.path.dirname(os.path.abspath(__file__))
    source = args[0] if args else os.path.join(here, "..", "..")
    wanted = filled(source)
    if not check:
        with open(table_of(source), "w", encoding="utf-8") as f:
            f.write(wanted)
    elif read(table_of(source)) != wanted:
        raise SystemExit("docs/sisci-coverage.md is not what the tests are now: "
                         "run tools/build/sisci_coverage.py")


if __name__ == "__main__":
    main()
