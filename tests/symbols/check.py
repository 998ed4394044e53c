#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An archive may leave undefined only what its list allows: so it reaches the world only through
its operations table.

usage: check.py ARCHIVE PURE LIST

The lists have a symbol or a pattern (fnmatch) a line; # begins a comment. PURE is what every archive
may use: memory and strings. A line of LIST that no object needs any more is an error too, so that
it stays short.
"""
import fnmatch
import re
import subprocess
import sys


def symbols(archive):
    """Undefined symbols of each object, without those that the archive itself defines."""
    defined, undefined, member = set(), {}, archive
    out = subprocess.run(["nm", "-g", archive], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        if line.endswith(":"):
            member = line[:-1]
            continue
        match = re.match(r"^[0-9a-f ]*\s([A-Za-z?])\s(\S+)$", line)
        if not match:
            continue
        kind, name = match.groups()
        if kind in "Uwv":
            undefined.setdefault(name, set()).add(member)
        else:
            defined.add(name)
    return {n: m for n, m in undefined.items() if n not in defined}


def read_list(path):
    with open(path, encoding="ascii") as f:
        return [w for w in (line.split("#")[0].strip() for line in f) if w]


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check.py ARCHIVE PURE LIST")
    archive, common, path = sys.argv[1:]
    pure, allowed = read_list(common), read_list(path)
    wrong, used = [], set()
    need = symbols(archive)
    if not need:
        sys.exit(f"{archive}: no symbols at all: is this the archive?")
    for name, members in sorted(need.items()):
        match = [a for a in allowed if fnmatch.fnmatchcase(name, a)]
        used.update(match)
        if not match and not any(fnmatch.fnmatchcase(name, a) for a in pure):
            wrong.append(f"{', '.join(sorted(members))} reaches past its table: {name}")
    wrong += [f"{path}: nothing needs {a} any more" for a in allowed if a not in used]
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
