#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which folders of the simulator include headers of which: an oracle knows no workload, a workload no oracle, and
what runs a seed knows neither.

usage: rooms.py DIRECTORY
"""
import pathlib
import re
import sys

BELOW = ["heap", "fabric", "base", "edge"]
MAY = {
    "heap": ["heap"],
    "fabric": ["heap", "fabric"],
    "base": ["heap", "fabric", "base"],  # what they ask of the edges is a table (struct sim_edge)
    "edge": BELOW,
    "run": BELOW + ["run"],
    "model": BELOW + ["run", "model"],
    "work": BELOW + ["run", "model", "work"],
    "fault": BELOW + ["run", "model", "fault"],
    "oracle": BELOW + ["run", "model", "oracle"],
    "api": BELOW + ["run", "oracle", "api"],  # of oracles the one for what ports hold
}


def main():
    top = pathlib.Path(sys.argv[1])
    bad = sources = 0
    for folder, may in MAY.items():
        for path in sorted((top / folder).glob("*.[ch]")):
            sources += 1
            for other in re.findall(r'^\s*#\s*include "(\w+)/', path.read_text(), re.M):
                if other in MAY and other not in may:
                    print(f"{path}: {folder} includes a header of {other}; it may include those of {', '.join(may)}")
                    bad += 1
    if sources < 100:
        sys.exit(f"{top} has only {sources} sources")
    return bad > 0


sys.exit(main())
