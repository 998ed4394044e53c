#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A stock driver on a borrowed drive and on the machine's own: instructions of a read, and of our DMA operations (paper 7.1.1).

usage: bench.py BUILD MACHINE [--count N] [--rounds N] [--out DIR] [--console]

MACHINE is none-6.1, none-6.12, intel-6.1 or intel-6.12. Two QEMU machines of one kind, joined by a virtual NTB; A has
QEMU's drive. In each round nvme.ko and fio read N blocks of 4 KiB from it on A, then on B, which has borrowed it; A's
driver is loaded again in between. QEMU counts the instructions that a machine executes, by a plugin (insns.c): from one
read to the next, of the kernel and of fio, and in each call of a DMA operation, with all that it calls. These are exact;
the clock's interrupts make some reads longer, therefore medians. Times are the emulator's, where each access to the other
machine is a message to a process: they say nothing about hardware.
"""
import argparse
import csv
import os
import re
import shutil
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests", "vm")]
import cluster  # noqa: E402
import lend  # noqa: E402
import pair  # noqa: E402
from cluster import DRIVE, PLACE  # noqa: E402
from machine import Failed  # noqa: E402

DISK = "/dev/nvme0n1"
# Kinds of calls, as insns.c numbers them: the reader waits, an interrupt is served; operations of ours and, where there is an
# IOMMU, of the kernel's own, by the module and the name of their functions.
WAIT, INTERRUPT = 0, 1
OPERATIONS = (("smartio_lend", "map_page"), ("smartio_lend", "unmap_page"), ("smartio_lend", "map_sg"), ("smartio_lend", "unmap_sg"),
              ("", "iommu_dma_map_page"), ("", "iommu_dma_unmap_page"), ("", "iommu_dma_map_sg"), ("", "iommu_dma_unmap_sg"))
FIRST_OPERATION = 2
# What both of them call, to write the IOMMU's tables and to have it forget them.
TABLES = {10: ("iommu_map", r"iommu_map(_atomic)?"), 11: ("iommu_unmap", r"iommu_unmap|iommu_unmap_fast")}
READ = "blkdev_read_iter"
# A read of the drive takes so long: else the emulator's drive, when its machine is idle, has answered before the reader waits.
SLOW_US = 3000
# Where a call of that kind begins, and functions of whom goes on behind it.
CALLS = {WAIT: (r"(blk_)?io_schedule(_timeout)?", r"__blkdev_direct_IO_simple|blkdev_direct_IO.*|blkdev_read_iter"),
         INTERRUPT: (r"handle_edge_irq", r"(asm_|__)?common_interrupt|(__)?irq_exit_rcu")}


def parse(symbols):
    """[(address, name, module)] of lines of /proc/kallsyms, sorted."""
    out = []
    for line in symbols.splitlines():
        words = line.split()
        if len(words) in (3, 4) and words[1].lower() == "t":
            out.append((int(words[0], 16), words[2], words[3].strip("[]") if len(words) == 4 else ""))
    return sorted(out)


def control(symbols):
    """What the plugin is told."""
    found = parse(symbols)
    lines = [f"read {a:x}" for a, name, module in found if name == READ and not module]
    if len(lines) != 1:
        raise Failed(f"the kernel has {len(lines)} functions {READ}; one is wanted")
    behind = {a: b for (a, *_), (b, *_) in zip(found, found[1:])}
    drivers = [(min(at), max(at) + 4096) for at in ([a for a, _, m in found if m == module] for module in ("nvme", "nvme_core"))]
    callers = []
    for a, name, module in found:
        for kind, (begins, ends) in CALLS.items():
            if not module and re.fullmatch(begins, name):
                lines.append(f"begin {kind} {a:x}")
            elif not module and re.fullmatch(ends, name):
                lines.append(f"end {kind} {a:x} {behind[a]:x}")
        if (module, name) in OPERATIONS:
            lines.append(f"begin {FIRST_OPERATION + OPERATIONS.index((module, name))} {a:x}")
        if not module and re.match("(__)?dma_(un)?map_", name):
            drivers.append((a, behind[a]))
        if module == "smartio_lend" or re.match("(__)?iommu_dma_(un)?map", name):
            callers.append((a, min(behind[a], a + 4096)))
        lines += [f"begin {kind} {a:x}" for kind, (_, begins) in TABLES.items() if not module and re.fullmatch(begins, name)]
    lines += [f"end {kind} {first:x} {last:x}" for first, last in callers for kind in TABLES]
    lines += [f"end {FIRST_OPERATION + i} {first:x} {last:x}" for first, last in drivers for i in range(len(OPERATIONS))]
    return "\n".join(lines) + "\n"


class Counter:
    """Instructions of one machine."""

    def __init__(self, m, folder):
        self.m, self.folder = m, folder

    def reads(self, count):
        """{what: [instructions of each]}; microseconds of the median read, by the emulator's clock."""
        with open(f"{self.folder}/control.{self.m.name}", "w", encoding="ascii") as f:
            f.write(control(self.m.run("symbols")))
        took = float(self.m.run(f"count_reads {DISK} {count}").split()[-1])
        with open(f"{self.folder}/counts.{self.m.name}", encoding="ascii") as f:
            counts = {name: list(map(int, values)) for name, *values in map(str.split, f)}
        if len(counts["all"]) < count / 2:
            raise Failed(f"{count} reads, of which {len(counts['all'])} were seen to wait for the drive")
        names = {str(INTERRUPT): "interrupt", **{str(kind): name for kind, (name, _) in TABLES.items()},
                 **{str(i): name for i, (_, name) in enumerate(OPERATIONS, FIRST_OPERATION)}}
        return {names.get(name, name): values for name, values in counts.items() if values}, took


class Compare(lend.Lend):
    name = "lending"
    doc = __doc__
    parameters = "maxcpus=1"  # the plugin is not told which processor executes
    memory = 496  # with fio and its libraries, and less than the window

    def __init__(self, options):
        self.o = options
        self.checks = (self.start, self.compare)
        self.rows = []

    def prepare(self, build, folder):
        self.build = build
        super().prepare(build, folder)

    def qemu(self, host, folder):
        plugin = f"{self.build}/bench/lending/insns.so,control={folder}/control.{host},out={folder}/counts.{host}"
        words = [w.replace("drive=disk0", "drive=slow0") for w in super().qemu(host, folder)]
        if host == self.drive_host:
            words += ["-object", f"throttle-group,id=slow,x-iops-read={1000000 // SLOW_US}", "-blockdev",
                      "throttle,node-name=slow0,throttle-group=slow,file=disk0"]
        return (*words, "-plugin", plugin)

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
        self.read(p, p.a, "local", row)
        p.a.run(f"rmmod nvme; smartio device add {PLACE}; until_ok has_device {DRIVE}")
        p.b.run(f"until_ok has_device {DRIVE}")
        row["borrow"] = int(p.b.run(f"until_disk {DISK} smartio borrow {DRIVE} {lend.words(p)}").split()[-1]) / 1e6
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

    def show(self):
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
        for what, name in (("own driver's bind until the disk is there, ms", "bind"), ("borrow until the disk is there, ms", "borrow")):
            lines.append((what, "measured, the emulator's", f"{self.median(name):.0f}"))
        print(f"\nReads of 4 KiB by fio (psync, direct); medians of {self.o.count} reads, and of {self.o.rounds} rounds")
        for what, label, value in lines:
            print(f"  {what:48} {value:>10}  {label}")
        os.makedirs(self.o.out, exist_ok=True)
        with open(f"{self.o.out}/lending.csv", "w", newline="", encoding="utf-8") as f:
            csv.writer(f).writerows([("what", "label", "value"), *lines])
        print(f"{self.o.out}/lending.csv")

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        fio = shutil.which("fio")
        if not fio:
            raise pair.cache.Unavailable("fio is not installed: apt-get install fio")
        image.add_program(fio)
        image.add_program(f"{build}/bench/lending/mark")
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
