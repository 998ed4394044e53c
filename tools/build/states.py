#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws a table of states as it stands in the code.

usage: states.py FILE_life.c [OUT.svg]: the graph for graphviz, or the picture that dot makes of it
"""
import re
import subprocess
import sys


def read(path):
    """The transitions of the table: (state, event, next), without what leads nowhere."""
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    table = text[text.index("table["):]
    table = table[table.index("{"):table.index("};")]
    names = re.findall(r"[A-Z]\w+", table)
    prefix = re.match(r"[A-Z]+_[A-Z]+_", names[0]).group(0)
    for state, row in re.findall(r"\[(\w+)\] =\s*\{(.*?)\}", table, flags=re.S):
        for event, after in re.findall(r"\[(\w+)\] = (\w+)", row):
            if after != "NONE":
                yield tuple(n.removeprefix(prefix) for n in (state, event, after))


def graph(path):
    lines = ["digraph {", "  rankdir=LR; node [shape=box, style=rounded]"]
    edges = {}
    for state, event, after in read(path):
        edges.setdefault((state, after), []).append(event)
    for (state, after), events in edges.items():
        lines.append('  %s -> %s [label="%s"]' % (state, after, "\\n".join(events)))
    return "\n".join(lines + ["}", ""])


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 2:
        print(graph(sys.argv[1]), end="")
        return
    subprocess.run(["dot", "-Tsvg", "-o", sys.argv[2]], input=graph(sys.argv[1]), text=True, check=True)


main()
