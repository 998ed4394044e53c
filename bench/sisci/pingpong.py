#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""8 bytes to and fro through mapped segments of two hosts, and by the same loop through bare shared memory.

Times of our software on one machine: nothing of PCIe is in them.

usage: pingpong.py BUILD [--rounds N] [--trips N] [--csv FILE]
"""
import argparse
import csv
import math
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "system"))
from cluster import Cluster  # noqa: E402

TOPOLOGY = """\
cluster: pingpong
switches: [sw0]
hosts:
  one: {ram: 16M}
  two: {ram: 16M}
"""


def median_interval(values):
    """The median, and the interval that holds it with 95 %: from order statistics alone."""
    values, n = sorted(values), len(values)
    half = 1.96 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - half)), min(n - 1, math.ceil(n / 2 + half) - 1)
    return statistics.median(values), values[low], values[high]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--trips", type=int, default=20000)
    parser.add_argument("--csv")
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise SystemExit("two processors are needed: both sides would take turns on one")
    with Cluster(args.build, TOPOLOGY) as c:
        out = c.run("one", os.path.join(args.build, "bench", "sisci", "bench-sisci-pingpong"),
                    os.path.join(c.state, "node.4"), "4", os.path.join(c.state, "node.8"), "8",
                    str(cpus[0]), str(cpus[1]), str(args.rounds + 1), str(args.trips),
                    timeout=600)
    rows = [line.split() for line in out.splitlines()]
    if args.csv:
        with open(args.csv, "w", encoding="ascii", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(("row", "who", "ns"))
            writer.writerows(rows)
    took = {who: [float(ns) for _, w, ns in rows if w == who] for who in ("sisci", "memfd")}
    median, low, high = median_interval([a / b for a, b in zip(took["sisci"], took["memfd"])])
    print("measured: times of our software, not of PCIe; ns per round trip of two pinned processes, "
          f"median of\n{args.rounds} rounds of {args.trips} on cache lines drawn at random")
    print(f"  mapped segments: {statistics.median(took['sisci']):.1f}, bare memfd: "
          f"{statistics.median(took['memfd']):.1f}")
    print(f"  ratio of the rounds: median {median:.4f}, 95 % interval {low:.4f} to {high:.4f}, "
          f"wanted to hold 1.00: {'it does' if low <= 1 <= high else 'it does not'}")


if __name__ == "__main__":
    main()
