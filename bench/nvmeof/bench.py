#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One drive from another machine: the kernel's NVMe over Fabrics, Device Lending, and our driver (paper 7.4.3).

usage: bench.py BUILD MACHINE [--count N] [--rounds N] [--out DIR] [--console]

MACHINE is none-6.1 or none-6.12. Two QEMU machines, joined by a virtual Ethernet and by a virtual NTB; A has QEMU's drive, B reads
4 KiB N times and 3 N times, one after the other, in each way, and the difference is told for each read. What the
machines count is exact. Times are those of the emulator, where each access to the other machine by the NTB is a message
to a process: they say nothing about hardware, and are told for that alone.
"""
import argparse
import csv
import os
import shutil
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests", "vm"), os.path.join(HERE, "..", "paper")]
import chart  # noqa: E402
import cluster  # noqa: E402
import kernel as kernels  # noqa: E402
import lend  # noqa: E402
import pair  # noqa: E402
from cluster import DRIVE, PLACE  # noqa: E402

MODULES = r"/(drivers/nvme/.*|drivers/infiniband/(core|sw/rxe)/.*|drivers/block/.*|lib/.*|fs/configfs/.*|net/(rds|ipv4|ipv6|rdma)/.*|crypto/.*)\.ko(\.xz)?$"
FABRIC = ("crc32_generic", "nvme-core", "nvmet", "nvmet-tcp", "nvmet-rdma", "nvme-tcp", "nvme-rdma", "rdma_rxe")
COUNTERS = ("device interrupts", "thread switches", "clock ticks with work", "packets")
WAYS = {"local": "nvme.ko, A's own drive", "tcp": "NVMe-oF, TCP", "rdma": "NVMe-oF, RDMA by software",
        "lending": "Device Lending, nvme.ko", "poll": "smartio-nvme, polling", "interrupt": "smartio-nvme, interrupts"}


class Reader:
    """Counts what both machines do for reads of one of them."""

    def __init__(self, p, count):
        self.p, self.count, self.rows = p, count, []

    def counters(self):
        return [list(map(int, said.split())) for said in self.p.both("counters")]

    def once(self, m, command, count):
        before = self.counters()
        took = float(m.run(f"s=$(cut -d' ' -f1 /proc/uptime); {command(count)} >/tmp/read.out 2>&1 || fail \"$(cat /tmp/read.out)\"; e=$(cut -d' ' -f1 /proc/uptime); "
                           "awk -v s=$s -v e=$e 'BEGIN { print e - s }'").split()[-1])
        after = self.counters()
        return [took, *(a - b for x, y in zip(after, before) for a, b in zip(x, y))]

    def read(self, way, m, command):
        """A short and a long run: what begins and ends a run is in both."""
        short, long = self.once(m, command, self.count), self.once(m, command, 3 * self.count)
        each = [(b - a) / (2 * self.count) for a, b in zip(short, long)]
        self.rows.append((way, each))
        self.p.step(f"{WAYS[way]}: {each[0] * 1000:.2f} ms a read by the emulator's clock")


def client(*words):
    return lambda count: f"smartio-nvme bench {DRIVE} --read --random --warmup 0 --count {count} {' '.join(words)}"


def blocks(count):
    return f"read_blocks {count}"


def of_fabric(p, r):
    p.a.run("until_ok has_disk")
    r.read("local", p.a, blocks)
    for transport in ("tcp", "rdma"):
        p.a.run(f"serve {transport}")
        p.b.run(f"join {transport}")
        r.read(transport, p.b, blocks)
        p.b.run("leave")
        p.a.run("serve_no_more")


def of_ours(p, r):
    p.a.run(f"smartio device add {PLACE}; until_ok has_device {DRIVE}")
    p.b.run(f"until_ok has_device {DRIVE}; smartio borrow {DRIVE} --all-memory; until_ok has_disk")
    r.read("lending", p.b, blocks)
    p.b.run(f"smartio return {DRIVE}")
    p.a.run(f"start_manager {DRIVE}")
    r.read("poll", p.b, client())
    r.read("interrupt", p.b, client("--interrupt"))
    p.a.run(f"stop_manager; smartio device remove {PLACE}")


def table(rows):
    """The median of all rounds, for each way."""
    out = []
    for way, name in WAYS.items():
        mine = [each for w, each in rows if w == way]
        if mine:
            out.append([name, *(statistics.median(column) for column in zip(*mine))])
    return out


def show(rows, rounds, count):
    head = ["way", "ms (emulator)", *(f"A: {c}" for c in COUNTERS), *(f"B: {c}" for c in COUNTERS)]
    cells = [head, *([r[0], f"{r[1] * 1000:.2f}", *(f"{v:.2f}" for v in r[2:])] for r in rows)]
    width = [max(len(r[i]) for r in cells) for i in range(len(head))]
    print(f"\nFor each read of 4 KiB (counted; times: the emulator's); medians of {rounds} rounds of {2 * count} reads")
    for r in cells:
        print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, width))))
    return head


def write(rows, head, out):
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/nvmeof.csv", "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([head, *rows])
    if chart.there():
        short = {name: way for way, name in WAYS.items()}
        series = {c: [(short[r[0]], r[2 + i]) for r in rows] for i, c in enumerate(COUNTERS)}
        chart.draw({"kind": "bars", "title": "Work of the machine that has the drive, for each read", "label": "counted",
                    "x": "", "y": "of each", "series": series}, f"{out}/nvmeof")
    print(f"{out}/nvmeof.csv")


class Compare(lend.Lend):
    name = "nvmeof"
    doc = __doc__

    def __init__(self, options):
        self.o = options
        self.checks = (self.start, self.compare)

    def start(self, p):
        cluster.start(p)
        p.both(f"load smartio_lend; {self.load(*FABRIC)}; add_rdma")
        p.both(self.load("nvme"))

    def compare(self, p):
        r = Reader(p, self.o.count)
        for _ in range(self.o.rounds):
            of_fabric(p, r)
            of_ours(p, r)
        rows = table(r.rows)
        write(rows, show(rows, self.o.rounds, self.o.count), self.o.out)

    def fill(self, image, kernel, build):
        kernels.add_modules(kernel, MODULES)
        super().fill(image, kernel, build)
        for path in kernel.modules(*FABRIC):
            image.add_file("/modules/" + os.path.basename(path), path)
        rdma = shutil.which("rdma") or shutil.which("rdma", path="/usr/sbin:/sbin")
        if not rdma:
            raise pair.cache.Unavailable("rdma is not installed: apt-get install iproute2")
        image.add_program(rdma)
        with open(os.path.join(HERE, "..", "..", "tests", "vm", "lend-lib.sh"), "rb") as f:
            image.add_data("/lend-lib.sh", f.read())
        with open(os.path.join(HERE, "guest.sh"), "rb") as f:
            image.add_data("/test-lib.sh", f.read())


def main():
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--out", default="results")
    o, rest = p.parse_known_args()
    sys.argv[1:] = rest
    return pair.main(Compare(o))


if __name__ == "__main__":
    sys.exit(main())
