#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How fast the simulator is, on one core: the figures of docs/simulation.md, which says what they are of.

usage: figures.py SMARTIO-SIM      of a release build, on a machine that does nothing else
"""
import re
import subprocess
import sys

SEEDS = range(201, 211)
ROWS = {  # name: arguments, virtual seconds
    "4 hosts, drives' clients": (["--hosts", "4", "--workload", "manager,nvme"], 5),
    "60 hosts, drives' clients": (["--hosts", "60", "--workload", "manager,nvme"], 1),
    "4 hosts, mixed": (["--hosts", "4"], 10),
}


def run(seed, args, seconds):
    out = subprocess.run([sys.argv[1], str(seed), "--faults", "none", "--seconds", str(seconds), *args],
                         check=True, capture_output=True, text=True).stdout
    found = re.search(r" (\d+) events, ([\d.]+) s virtual, ([\d.]+) s of a core", out)
    return [float(v) for v in found.groups()]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, (args, seconds) in ROWS.items():
        events, virtual, core = (sum(v) for v in zip(*(run(seed, args, seconds) for seed in SEEDS)))
        print(f"{name}: {events:.0f} events, {core:.1f} s of a core: {events / core:.0f} events and "
              f"{virtual / core:.0f} virtual seconds a second")
    events, virtual, core = run(7, ["--workload", "none"], 36000)
    print(f"ten idle hours: {events:.0f} events, {core * 1000:.0f} ms of a core")


main()
