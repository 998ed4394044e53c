#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""DMA throughput and ping-pong of emulated accelerators, in the forms of the paper's figures.

The experiments are those of sections 7.1.2 to 7.1.5 of the SmartIO paper (TOCS 38, 2021): an accelerator
and memory of the host that drives it, the accelerator being that host's own or borrowed; and two
accelerators, both the driver's own, both of one lender, or of different lenders. The accelerators are
models in one process: a row shows what our software does, nothing of PCIe or of any product, and a path
that is longer is not slower. What can be compared is one path with another, and with a processor's memcpy
and with two threads of one program that stand beside them. Nothing passes or fails here.
"""
import argparse
import contextlib
import csv
import os
import platform
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "base"))
from cluster_base import Cluster  # noqa: E402

LABEL = "measured on a model"
TOPOLOGY = """\
cluster: accelerators
switches: [sw0]
hosts:
  driver: {ram: 512M, devices: {own0: {type: accelerator, size: 256M}, own1: {type: accelerator, size: 256M}}}
  lender: {devices: {lent0: {type: accelerator, size: 256M}, lent1: {type: accelerator, size: 256M}}}
  other: {devices: {lent2: {type: accelerator, size: 256M}}}
"""
# Experiment, the paper's section, path, what the worker is told.
DMA = [("host memory", "7.1.2", "own", ["dma", "own0"]), ("host memory", "7.1.2", "borrowed", ["dma", "lent0"]),
       ("peer to peer", "7.1.4", "own", ["peer", "own0", "own1"]),
       ("peer to peer", "7.1.4", "one lender", ["peer", "lent0", "lent1"]),
       ("peer to peer", "7.1.5", "two lenders", ["peer", "lent0", "lent2"]),
       ("memcpy", "", "one process", ["memcpy"])]
PING = [("ping-pong", "7.1.4", "own", ["ping-pong", "own0", "own1"]),
        ("ping-pong", "7.1.4", "one lender", ["ping-pong", "lent0", "lent1"]),
        ("ping-pong", "7.1.5", "two lenders", ["ping-pong", "lent0", "lent2"]),
        ("two threads", "", "one process", ["threads"])]
DMA_COLUMNS = ["direction", "bytes", "transfers", "median_MBps", "min_MBps", "max_MBps", "of_memcpy"]
PING_COLUMNS = ["direction", "rounds", "min_ns", "p1_ns", "p25_ns", "p50_ns", "p75_ns", "p99_ns", "p999_ns", "max_ns"]
COMMON = ["start", "experiment", "paper", "path", "label"]
# Most bytes, transfers of each size, round trips, starts; the first three of full are the paper's.
FULL = (128 << 20, 1000, 100000, 1)
QUICK = (1 << 20, 15, 20000, 25)
SMOKE = (1 << 20, 20, 2000, 1)


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", required=True, metavar="DIR", help="the build folder")
    length = p.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="half a minute, up to 1 MiB")
    length.add_argument("--smoke", action="store_true", help="see in seconds that it works; the numbers mean little")
    p.add_argument("--csv", metavar="FILE", help="all rows")
    p.add_argument("--most", type=int, metavar="BYTES", help="largest transfer, a power of 2 from 4096 to 134217728")
    p.add_argument("--transfers", type=int, metavar="N", help="of each size")
    p.add_argument("--rounds", type=int, metavar="N", help="round trips, up to 1000000")
    p.add_argument("--starts", type=int, metavar="N", help="of cluster and programs: each finds other places in memory")
    o = p.parse_args()
    usual = SMOKE if o.smoke else QUICK if o.quick else FULL
    o.most, o.transfers, o.rounds, o.starts = (given or n for given, n in zip((o.most, o.transfers, o.rounds, o.starts), usual))
    if not 4096 <= o.most <= FULL[0] or o.most & (o.most - 1):
        p.error(f"--most {o.most}: a power of 2 from 4096 to {FULL[0]} is right")
    if o.transfers < 1 or o.starts < 1 or not 1 <= o.rounds <= 1000000:
        p.error("--transfers and --starts 1 at least, --rounds 1 to 1000000 are right")
    return o


@contextlib.contextmanager
def apart(room):
    """The machine room has one processor, and what is started meanwhile another, if there are two."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) > 1:
        for task in os.listdir(f"/proc/{room}/task"):
            os.sched_setaffinity(int(task), allowed[-1:])
        os.sched_setaffinity(0, allowed[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def measure(c, o, start, table, columns, *numbers):
    """One dictionary for each line that a worker writes."""
    worker = os.path.join(o.build, "bench", "accel", "bench-accel-worker")
    rows = []
    for experiment, section, path, args in table:
        text = c.run("driver", worker, *args, *map(str, numbers), timeout=3600)
        for values in csv.reader(text.splitlines()):
            rows.append({"start": start, "experiment": experiment, "paper": section, "path": path, "label": LABEL,
                         **dict(zip(columns, values, strict=True))})
    return rows


def median_of(rows, column):
    return statistics.median(float(r[column]) for r in rows)


def show_dma(rows):
    print(f"\nDMA throughput, median, MB/s ({LABEL})\n")
    paths = list(dict.fromkeys((r["experiment"], r["path"], r["direction"]) for r in rows))
    sizes = list(dict.fromkeys(int(r["bytes"]) for r in rows))
    print(f"{'':34}" + "".join(f"{n >> 10:>9}K" for n in sizes))
    for key in paths:
        mine = [r for r in rows if (r["experiment"], r["path"], r["direction"]) == key]
        print(f"{', '.join(key):34}" + "".join(
            f"{median_of([r for r in mine if int(r['bytes']) == n], 'median_MBps'):>10.0f}" for n in sizes))


def show_ping(rows):
    print(f"\nRound trips of 4 bytes, ns ({LABEL})\n")
    print(f"{'':34}" + "".join(f"{c.removesuffix('_ns'):>9}" for c in PING_COLUMNS[2:]))
    for key in dict.fromkeys((r["experiment"], r["path"]) for r in rows):
        mine = [r for r in rows if (r["experiment"], r["path"]) == key]
        print(f"{', '.join(key):34}" + "".join(f"{median_of(mine, c):>9.0f}" for c in PING_COLUMNS[2:]))


def main():
    o = parse()
    dma, ping = [], []
    for start in range(1, o.starts + 1):
        with Cluster(o.build, TOPOLOGY) as c:
            with apart(c.pid_of_room()):
                dma += measure(c, o, start, DMA, DMA_COLUMNS, o.most, o.transfers)
            ping += measure(c, o, start, PING, PING_COLUMNS, o.rounds)
    print(f"{platform.node()}: {os.cpu_count()} processors, Linux {platform.release()}")
    show_dma(dma)
    show_ping(ping)
    print("\nModels in one process: nothing here is a figure of PCIe, and no path is slower for being longer.")
    if o.csv:
        with open(o.csv, "w", encoding="ascii", newline="") as f:
            w = csv.DictWriter(f, COMMON + DMA_COLUMNS + PING_COLUMNS[1:], restval="")
            w.writeheader()
            w.writerows(dma + ping)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as e:
        sys.exit(f"bench.py: {e}")
