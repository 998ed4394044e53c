#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""DMA queues beside memcpy on one core, for one queue and for two, and the core that the caller used.

Times of our software on one machine: the engine is a thread of the machine room, and nothing of PCIe
is in them. A queue has one transfer at a time: with one, the engine waits for the program between two
transfers; with two it does not.

usage: dma.py BUILD [--rounds N] [--transfers N] [--bytes N] [--cpu N]
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "system"))
from cluster import Cluster  # noqa: E402

TOPOLOGY = """\
cluster: dma
switches: [sw0]
hosts:
  a: {ram: 256M}
  b: {ram: 256M}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--transfers", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--cpu", type=int, default=0)
    args = parser.parse_args()
    program = os.path.join(args.build, "bench", "sisci", "bench-sisci-dma")
    print(f"{'queues':>6} {'transfer us':>12} {'memcpy us':>10}  memcpy/transfer  caller's core")
    with Cluster(args.build, TOPOLOGY) as c:
        server = c.start("b", program, "serve", str(args.bytes), stdin=subprocess.PIPE)
        if server.stdout.readline() != "ready\n":
            raise SystemExit(server.communicate()[1])
        for queues in (1, 2):
            out = c.run("a", program, "measure", "8", str(args.cpu), str(args.rounds),
                        str(args.transfers), str(args.bytes), str(queues), timeout=600)
            transfer, core, used = (float(f) for f in out.split())
            print(f"{queues:>6} {transfer / 1000:>12.1f} {core / 1000:>10.1f}  "
                  f"{core / transfer:>15.2f}  {used / 10:>12.1f}%")
        server.communicate("\n")


if __name__ == "__main__":
    main()
