#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""SIO_IO_HOOKS changes nothing but the accessors of smartio/io.h: every source that the simulator
builds a second time is preprocessed with and without it, and all that does not come from io.h is
compared.

usage: io_switch.py COMPILE_COMMANDS DIRECTORY-OF-ARCHIVE...
"""
import json
import re
import shlex
import subprocess
import sys

SWITCH = "-DSIO_IO_HOOKS"
ACCESSOR = re.compile(r"\bsio_(read|write|copy)(8|16|32|64|_to|_from|_across)\(|_barrier\(")
MARKER = re.compile(r'^# (\d+) "([^"]*)"')


def preprocessed(args, directory):
    """Lines that the compiler sees, as (file, text), without those of io.h."""
    drop, out, keep = {"-c", "-MD"}, [], iter(args)
    for a in keep:
        if a in ("-o", "-MQ", "-MF"):
            next(keep)
        elif a not in drop:
            out.append(a)
    if "ccache" in out[0]:
        out = out[1:]
    text = subprocess.run(out + ["-E"], cwd=directory, capture_output=True, text=True, check=True).stdout
    lines, name = [], "?"
    for line in text.splitlines():
        marker = MARKER.match(line)
        if marker:
            name = marker.group(2)
        elif line.strip() and not name.endswith("smartio/io.h"):
            lines.append((name, line))
    return lines


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        commands = json.load(f)
    compared = with_io = 0
    for archive in sys.argv[2:]:
        entries = [c for c in commands if f"/{archive}.p/" in c["output"]]
        if not entries:
            sys.exit(f"{archive}: no command builds it")
        for c in entries:
            args = shlex.split(c["command"])
            if SWITCH not in args:
                sys.exit(f"{c['file']}: is built without {SWITCH}")
            hooks = preprocessed(args, c["directory"])
            plain = preprocessed([a for a in args if a != SWITCH], c["directory"])
            for a, b in zip(hooks, plain):
                if a != b:
                    sys.exit(f"{SWITCH} changes {a[0]}:\n{a[1]}\n{b[1]}")
            if len(hooks) != len(plain):
                sys.exit(f"{SWITCH} changes how much {c['file']} is")
            compared += 1
            with_io += any(ACCESSOR.search(line) for _, line in plain)
    # A comparison that finds nothing to compare is none.
    if with_io < 20:
        sys.exit(f"{with_io} of {compared} sources use an accessor: are these the right ones?")
    print(f"{compared} sources, {with_io} with accessors: the same but for io.h")


main()
