#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""SCIMemCpy to a remote segment beside the best of memcpy, a string move and streaming stores.

Times of our software on one machine: a store to a remote segment is one to memory here, and nothing
of PCIe is in them.

usage: copy.py BUILD [--rounds N] [--turn BYTES] [--most BYTES] [--cpu N]
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "system"))
from cluster import Cluster  # noqa: E402

TOPOLOGY = """\
cluster: copy
switches: [sw0]
hosts:
  a: {ram: 256M}
  b: {ram: 256M}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--turn", type=int, default=16 << 20)
    parser.add_argument("--most", type=int, default=64 << 20)
    parser.add_argument("--cpu", type=int, default=0)
    args = parser.parse_args()
    program = os.path.join(args.build, "bench", "sisci", "bench-sisci-copy")
    with Cluster(args.build, TOPOLOGY) as c:
        server = c.start("b", program, "serve", str(args.most), stdin=subprocess.PIPE)
        if server.stdout.readline() != "ready\n":
            raise SystemExit(server.communicate()[1])
        out = c.run("a", program, "measure", "8", str(args.cpu), str(args.rounds), str(args.turn),
                    str(args.most), timeout=600)
        server.communicate("\n")
    print(f"{'bytes':>9} {'SCIMemCpy ns':>13} {'memcpy':>10} {'string':>10} {'stream':>10}  best/ours")
    for line in out.splitlines():
        size, ours, *others = line.split()
        best = min(float(o) for o in others)
        print(f"{size:>9} {ours:>13} {others[0]:>10} {others[1]:>10} {others[2]:>10}  "
              f"{best / float(ours):.2f}")


if __name__ == "__main__":
    main()
