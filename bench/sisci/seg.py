#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Connect, map, unmap and disconnect where few and where many segments are exported, in turns.

Two clusters of three hosts run side by side; two hosts export, the third connects. Times of our
software on one machine: nothing of PCIe is in them.

usage: seg.py BUILD [--rounds N] [--times N] [--many N] [--csv FILE]
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "system"))
from cluster import Cluster  # noqa: E402

TOPOLOGY = """\
cluster: seg
switches: [sw0]
hosts:
  a: {ram: 256M}
  b: {ram: 256M}
  c: {ram: 256M}
"""
FEW = 10
PER_PROGRAM = 2500 # a program may hold 4096 objects


class Side:
    """A cluster whose hosts a and b export @segments, half each, and a program on c."""

    def __init__(self, build, segments):
        self.cluster = Cluster(build, TOPOLOGY)
        self.program = os.path.join(build, "bench", "sisci", "bench-sisci-seg")
        self.half = segments // 2

    def __enter__(self):
        self.cluster.__enter__()
        try:
            for host in "ab":
                for first in range(0, self.half, PER_PROGRAM):
                    self.start(host, "export", first, min(PER_PROGRAM, self.half - first), [])
            self.child = self.start("c", "connect", 0, self.half, ["4", "8"])
        except BaseException:
            self.cluster.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()

    def start(self, host, what, first, count, more):
        child = self.cluster.start(host, self.program, what, str(first), str(count), *more,
                                   stdin=subprocess.PIPE)
        if what == "export" and child.stdout.readline() != "ready\n":
            raise SystemExit(f"{host}: {child.communicate()[1]}")
        return child

    def measure(self, times):
        self.child.stdin.write(f"{times}\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(self.child.communicate()[1])
        return float(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--many", type=int, default=10000)
    parser.add_argument("--csv")
    args = parser.parse_args()
    with Side(args.build, FEW) as few, Side(args.build, args.many) as many:
        took = {FEW: [], args.many: []}
        for r in range(args.rounds + 1):
            for n, side in [(FEW, few), (args.many, many)][::-1 if r % 2 else 1]:
                ns = side.measure(args.times)
                if r > 0: # the first round warms up
                    took[n].append(ns)
    if args.csv:
        with open(args.csv, "w", encoding="ascii", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(("row", "who", "ns"))
            writer.writerows(("seg", n, ns) for n in took for ns in took[n])
    ratios = sorted(b / a for a, b in zip(took[FEW], took[args.many]))
    n = len(ratios)
    print("measured: times of our software, not of PCIe; us to connect, map, unmap and disconnect, "
          f"median of\n{args.rounds} rounds of {args.times}; ratio: median of the rounds', and their "
          "middle half")
    print(f"  {FEW} segments exported: {statistics.median(took[FEW]) / 1000:.1f}, {args.many}: "
          f"{statistics.median(took[args.many]) / 1000:.1f}, ratio {statistics.median(ratios):.3f} "
          f"({ratios[n // 4]:.3f} to {ratios[3 * n // 4]:.3f}), wanted at most 1.5")


if __name__ == "__main__":
    main()
