#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Interrupts and data interrupts against what the system itself offers, in turns.

Times of our software on one machine: nothing of PCIe is in them.

usage: int.py BUILD [--rounds N] [--trips N] [--csv FILE]
"""
import argparse
import csv
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "system"))
from cluster import Cluster  # noqa: E402

TOPOLOGY = """\
cluster: int
switches: [sw0]
hosts:
  one: {ram: 16M}
  two: {ram: 16M}
"""
ROWS = [("trigger", "SCITriggerInterrupt -> SCIWaitForInterrupt", "eventfd", 1.2),
        ("message", "data interrupt, 64 B", "datagram", 1.0)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--trips", type=int, default=2000)
    parser.add_argument("--csv")
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise SystemExit("two processors are needed: both sides would take turns on one")
    with Cluster(args.build, TOPOLOGY) as c:
        out = c.run("one", os.path.join(args.build, "bench", "sisci", "bench-sisci-int"),
                    os.path.join(c.state, "node.4"), "4", os.path.join(c.state, "node.8"), "8",
                    str(cpus[0]), str(cpus[1]), str(args.rounds + 1), str(args.trips),
                    timeout=600)
    rows = [line.split() for line in out.splitlines()]
    if args.csv:
        with open(args.csv, "w", encoding="ascii", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(("row", "who", "ns"))
            writer.writerows(rows)
    took = {}
    for row, who, ns in rows:
        took.setdefault((row, who), []).append(float(ns))
    print("measured: times of our software, not of PCIe; us per round trip of two pinned processes,"
          f"\nmedian of {args.rounds} rounds of {args.trips}; ratio: median of the rounds', and "
          "their middle half")
    print(f"  a cache line to and fro: {statistics.median(took['line', 'line']) / 1000:.2f}")
    for row, what, against, limit in ROWS:
        ours, theirs = took[row, "sisci"], took[row, against]
        ratios = sorted(a / b for a, b in zip(ours, theirs))
        n = len(ratios)
        print(f"  {what}: {statistics.median(ours) / 1000:.2f}, {against}: "
              f"{statistics.median(theirs) / 1000:.2f}, ratio {statistics.median(ratios):.3f} "
              f"({ratios[n // 4]:.3f} to {ratios[3 * n // 4]:.3f}), wanted at most {limit}")


if __name__ == "__main__":
    main()
