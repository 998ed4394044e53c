#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A stock driver on a borrowed drive and on the machine's own: instructions of a read, and of our DMA operations (paper 7.1.1).

usage: bench.py BUILD MACHINE [--count N] [--rounds N] [--out DIR] [--console]

MACHINE is none-6.1, none-6.12, intel-6.1 or intel-6.12. Two QEMU machines of one kind, joined by a virtual NTB; A has
QEMU's drive. In each round nvme.ko and fio read N blocks of 4 KiB from it on A, then on B, which has borrowed it; A's
driver is loaded again in between. QEMU counts the instructions that a machine executes, by a plugin (insns.c): from one
read to the next, of the kernel and of fio, and in each call of a DMA operation, with all that it calls. These are exact;
the clock's interrupts make some reads longer, therefore medians. Times are the emulator's, where each access to the other
machine is a message to a process: they say nothing about hardware. With --count 0 nothing is read or counted: only the time
is told until the disk is there, which the plugin would make longer.
"""
import argparse
import csv
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests", "vm")]
import cluster  # noqa: E402
import counts as counting  # noqa: E402
import lend  # noqa: E402
import pair  # noqa: E402
from cluster import DRIVE, PLACE  # noqa: E402
from counts import DISK, OPERATIONS, SLOW_US, TABLES, Counter  # noqa: E402

class Compare(lend.Lend):
    name = "lending"
    doc = __doc__
    parameters = counting.PARAMETERS
    memory = 496  # with fio and its libraries, and less than the window

    def __init__(self, options):
        self.o = options
        self.checks = (self.start, self.compare)
        self.rows = []

    def prepare(self, build, folder):
        self.build = build
        super().prepare(build, folder)

    def qemu(self, host, folder):
        words = [w.replace("drive=disk0", "drive=slow0") for w in super().qemu(host, folder)]
        if host == self.drive_host:
            words += ["-object", f"throttle-group,id=slow,x-iops-read={1000000 // SLOW_US}", "-blockdev",
                      "throttle,node-name=slow0,throttle-group=slow,file=disk0"]
        return (*words, *(counting.qemu(self.build, folder, host) if self.o.count else ()))

    def start(self, p):
        p.windowed = p.iommu != "none" and self.has_iommu("b")
        cluster.start(p)
        p.b.run(f"load smartio_lend; {self.load('nvme')}")

    def compare(self, p):
        for _ in range(self.o.rounds):
            self.round(p)
        self.show()

    def round(self, p):
        row = {}
        p.a.run(f"{self.load('nvme')}; until_ok test -b {DISK}")
        row["bind"] = int(p.a.run(f"bind_again {PLACE}").split()[-1]) / 1e6
        if self.o.count:
            self.read(p, p.a, "local", row)
        p.a.run(f"rmmod nvme; smartio device add {PLACE}; until_ok has_device {DRIVE}")
        p.b.run(f"until_ok has_device {DRIVE}")
        for name in ("first", "borrow"):
            row[name] = int(p.b.run(f"until_disk {DISK} smartio borrow {DRIVE} {lend.words(p)}").split()[-1]) / 1e6
            if name == "first":
                p.b.run(f"smartio return {DRIVE}")
                p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
        if self.o.count:
            self.read(p, p.b, "borrowed", row)
        p.b.run(f"smartio return {DRIVE}")
        p.a.run(f"smartio device remove {PLACE}")
        self.rows.append(row)

    def read(self, p, m, which, row):
        counts, row[f"{which} us"] = Counter(m, p.folder).reads(self.o.count)
        for name, values in counts.items():
            row[f"{which} {name}"] = statistics.median(values)
        row[f"{which} interrupts"] = len(counts.get("interrupt", ())) / self.o.count
        p.step(f"{which}: {row[f'{which} own']:.0f} instructions a read")

    def median(self, name):
        values = [r[name] for r in self.rows if name in r]
        return statistics.median(values) if values else None

    def counted(self):
        """Medians of the rounds."""
        ratio = self.median("borrowed own") / self.median("local own")
        lines = [("borrowed / own drive, without waiting", "counted", f"{ratio:.3f}")]
        for what, label, name in (
                ("instructions of a read, {}", "counted", "{} all"),
                ("the same without waiting, {}", "counted", "{} own"),
                ("interrupts of a read, {}", "counted", "{} interrupts"),
                ("instructions of an interrupt, {}", "counted", "{} interrupt"),
                ("time of a read, {}, us", "measured, the emulator's", "{} us")):
            lines += [(what.format(of), label, f"{self.median(name.format(which)):.5g}")
                      for which, of in (("local", "own drive"), ("borrowed", "borrowed"))]
        for module, name in OPERATIONS:
            value = self.median(f"borrowed {name}" if module else f"local {name}")
            if value is not None:
                lines.append((f"instructions of {name}{', borrowed' if module else ', own drive'}", "counted", f"{value:.0f}"))
        for name, _ in TABLES.values():
            if self.median(f"borrowed {name}") is not None:
                lines.append((f"of them in {name}, borrowed", "counted", f"{self.median(f'borrowed {name}'):.0f}"))
        return lines

    def show(self):
        lines = self.counted() if self.o.count else [
            (what, "measured, the emulator's", f"{self.median(name):.0f}") for what, name in (
                ("own driver's bind until the disk is there, ms", "bind"), ("borrow until the disk is there, ms", "borrow"),
                ("the first borrow since the drive was added, ms", "first"))]
        reads = f"reads of 4 KiB by fio (psync, direct), medians of {self.o.count} of them; " if self.o.count else ""
        print(f"\nDebian's nvme.ko: {reads}medians of {self.o.rounds} rounds")
        for what, label, value in lines:
            print(f"  {what:52} {value:>10}  {label}")
        os.makedirs(self.o.out, exist_ok=True)
        with open(f"{self.o.out}/lending.csv", "w", newline="", encoding="utf-8") as f:
            csv.writer(f).writerows([("what", "label", "value"), *lines])
        print(f"{self.o.out}/lending.csv")

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        counting.fill(image, build)
        image.add_data("/test-lib.sh", counting.script("lend-lib.sh"))


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
