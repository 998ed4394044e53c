#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An idle cluster costs nothing: ten virtual hours in which nobody does anything have exactly the
events of one virtual second.

usage: idle.py SMARTIO-SIM
"""
import re
import subprocess
import sys


def events(seconds):
    out = subprocess.run([sys.argv[1], "7", "--faults", "none", "--workload", "none", "--seconds", str(seconds)],
                         check=True, capture_output=True, text=True).stdout
    found = re.search(r" (\d+) events, ([\d.]+) s virtual, ([\d.]+) s of a core", out)
    if float(found.group(2)) < seconds:
        sys.exit(f"{seconds} s were asked for: {out}")
    print(f"{seconds} s: {found.group(1)} events, {found.group(3)} s of a core")
    return found.group(1)


if events(1) != events(36000):
    sys.exit("time alone makes events")
