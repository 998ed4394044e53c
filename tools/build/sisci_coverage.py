#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make docs/sisci-coverage.md from tests/api/functions.txt and the tests.

usage: sisci_coverage.py [--check] [SOURCE]     --check: only say whether it is up to date
"""
import glob
import os
import re
import sys

ROOMS = ("api", "clients")
SHOWN = 4  # tests of a function that the table names
HEAD = """\
# The SISCI API: what is there, and what tests it

Made by tools/build/sisci_coverage.py from tests/api/functions.txt and the tests; `make check` compares. What
cannot be here is in [sisci-limits.md](sisci-limits.md); what each function does is told in its header,
`include/sisci_api.h`.

Source: *known*, or *chosen* where no public source tells the whole prototype. Flags: SCI_FLAG_...; a test
that calls the function names each of them (functions_test.py), as of the errors, SCI_ERR_..., beyond the
general ones (include/sisci_api.h). Tests: of tests/api, and tests/clients.

"""


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


def sections(source):
    """[(title, [fields of a row])] of functions.txt."""
    found = []
    for line in read(source, "tests", "api", "functions.txt").splitlines():
        if line.startswith("# ") and "|" not in line:
            found.append((line[2:], []))
        elif line and not line.startswith("#"):
            found[-1][1].append([f.strip() for f in line.split("|")])
    return [s for s in found if s[1]]


def calls(text, name):
    """Called, or passed to a macro that calls it, or looked up without its prefix."""
    short = re.escape(name[3:])
    return re.search(rf"\b{name}\b", text) or ("find_all(" in text and
                                               re.search(rf"\bFIND\({short}\)", text))


def unnamed_flags(source):
    """(function, flag) of what is there, without a test that calls the function and names the flag."""
    programs = tests(source)
    return [(r[0], flag) for _, rows in sections(source) for r in rows if r[5] == "done"
            for flag in r[2].split() if flag != "-" and not any(
                calls(text, r[0]) and re.search(rf"\bSCI_FLAG_{flag}\b", text)
                for text in programs.values())]


def unnamed_errors(source):
    """(function, error) of what is there, without a test that calls the function and names the error."""
    programs = tests(source)
    return [(r[0], error) for _, rows in sections(source) for r in rows if r[5] == "done"
            for error in r[3].split() if error != "-" and error[0] != "~" and not any(
                calls(text, r[0]) and re.search(rf"\bSCI_ERR_{error}\b", text)
                for text in programs.values())]


def row(fields, programs):
    """A line of the table."""
    name, _, flags, errors, known, state = fields
    errors = " ".join(e for e in errors.split() if e[0] != "~") or "-"
    by = [p for p, text in programs.items() if calls(text, name)]
    where = ", ".join(p[4:] if p.startswith("api/") else p for p in by[:SHOWN])
    if len(by) > SHOWN:
        where += ", and more"
    return f"| {name} | {flags} | {errors} | {known} | {where if state == 'done' else 'not there yet'} |"


def table(source):
    programs = tests(source)
    text = HEAD
    for title, rows in sections(source):
        text += f"## {title}\n\n| function | flags | errors | source | tests |\n|---|---|---|---|---|\n"
        text += "".join(row(r, programs) + "\n" for r in rows) + "\n"
    done = [r for _, rows in sections(source) for r in rows if r[5] == "done"]
    every = sum(len(rows) for _, rows in sections(source))
    return text + f"{len(done)} of {every} functions are there.\n"


def main():
    args = sys.argv[1:]
    check = "--check" in args
    args = [a for a in args if a != "--check"]
    here = os.path.dirname(os.path.abspath(__file__))
    source = args[0] if args else os.path.join(here, "..", "..")
    path, wanted = os.path.join(source, "docs", "sisci-coverage.md"), table(source)
    if not check:
        with open(path, "w", encoding="utf-8") as f:
            f.write(wanted)
    elif not os.path.exists(path) or read(path) != wanted:
        raise SystemExit("docs/sisci-coverage.md is not what the tests are now: "
                         "run tools/build/sisci_coverage.py")


if __name__ == "__main__":
    main()
