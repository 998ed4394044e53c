#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What passes between two virtual machines: copies by processors, and the DMA of a drive, beside plain copies of memory.

usage: bench.py BUILD MACHINE [--exact] [--rounds N] [--csv FILE] [--console]

MACHINE is none-6.1 or none-6.12. Windows are mapped; with --exact each access is a message to smartio-emu. A has QEMU's drive, and
B our model, which smartio-emu serves; a client on A and one on B take turns. All takes turns within each round, so that ratios
hold on a busy machine; what the process that moves the data does in a second of a processor, QEMU for its drive and smartio-emu
for our model, does not depend on who else is there. The ratio of a copy
is to a plain one, that of a client on the other machine to one where the drive is. The figures are those of emulated processors, and say nothing of hardware.
"""
import argparse
import contextlib
import csv
import glob
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests", "vm"), os.path.join(HERE, "..", "base")]
import cluster  # noqa: E402
import mapped  # noqa: E402
import pair  # noqa: E402
from machine import Failed  # noqa: E402
from mapped import DRIVES  # noqa: E402

NAMES = {"own": "memcpy within B's memory", "write": "memcpy into A's memory", "read": "memcpy out of A's memory",
         "sisci": "SCIMemCpy into A's memory"}
NEAR, FAR = "client where it is", "client on the other machine"
SIZES = {False: {"copy": 1 << 20, "turn": 256 << 20, "io": "512K", "count": 64},
         True: {"copy": 16 << 10, "turn": 64 << 10, "io": "4K", "count": 4}}  # exact


def copies(p, size):
    """GB/s of each way, of one round."""
    said = p.b.run(f"bench-machines-window measure {cluster.NODE['a']} 1 {size['copy']} {size['turn']}")
    return {NAMES[who]: size["turn"] / int(ns) for who, ns in (line.split() for line in said.splitlines())}


def emu(p):
    """The process that serves the fabric, and our model."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            words = f.read().split(b"\0")
            if words[0].endswith(b"/smartio-emu") and f"{p.folder}/state".encode() in words:
                return int(path.split("/")[2])
    raise Failed("there is no smartio-emu")


def busy_ns(pid):
    """How long processors have run it."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def io(p, drive, size):
    """Of reads and writes by a client on either machine, of one round: GB/s, and GB for each second that who moves them was run."""
    mover = p.a.process.pid if drive == cluster.DRIVE else emu(p)
    out = {}
    for how in ("write", "read"):
        for m, who in zip(mapped.ends(p, drive), (NEAR, FAR)):
            since = busy_ns(mover)
            said = m.run(f"smartio-nvme bench {drive} --{how} --size {size['io']} --depth 8 --count {size['count']} --warmup 8 --length 8M "
                        "--json 2>/tmp/bench.err || fail \"$(cat /tmp/bench.err)\"")
            data = json.loads(said)["data"]
            name = f"{DRIVES[drive]}: {how}s of a {who}"
            out[name] = data["bytes_per_second"] / 1e9
            out[f"{name}, by processor time"] = size["count"] * data["size"] / (busy_ns(mover) - since)
    return out


def compared_with(name):
    """The row that it is a ratio of: copies of a plain one, a client on B of one on A."""
    return name.replace(FAR, NEAR) if "client" in name else NAMES["own"]


def table(rounds):
    """Median and range of each row, and of its ratio to another one in the same round."""
    out = []
    for name in rounds[0]:
        values = [r[name] for r in rounds]
        ratios = [r[name] / r[compared_with(name)] for r in rounds]
        out.append((name, *(f(v) for v in (values, ratios) for f in (statistics.median, min, max))))
    return out


class Bench(mapped.Mapped):
    name = "bench machines"
    doc = __doc__

    def __init__(self, options):
        self.o = options
        self.mapped = not options.exact
        if options.exact:
            self.topology = self.topology.replace("    window: mapped\n    ram: 512M\n", "")
        self.checks = (cluster.start, cluster.give_drive, mapped.give_model, self.measure)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        image.add_program(f"{build}/bench/machines/bench-machines-window")

    def measure(self, p):
        size = SIZES[self.o.exact]
        p.a.run(f"begin serve bench-machines-window serve {size['copy']}; runs serve")
        for drive in DRIVES:
            mapped.ends(p, drive)[0].run(f"smartio-nvme manager {drive} --background >/dev/null")
        rounds = []
        for n in range(self.o.rounds):
            row = copies(p, size)
            for drive in DRIVES:
                row.update(io(p, drive, size))
            rounds.append(row)
            p.step(f"round {n + 1} of {self.o.rounds}")
        self.show(table(rounds))

    def show(self, rows):
        window = "exact" if self.o.exact else "mapped"
        print(f"\nmeasured, {window} windows, {self.o.rounds} rounds, load of this machine {os.getloadavg()[0]:.0f}: median (range)")
        for name, value, low, high, ratio, least, most in rows:
            print(f"  {name:70} {value:9.4f} GB/s ({low:.4f} to {high:.4f})  ratio {ratio:.4f} ({least:.4f} to {most:.4f})")
        if self.o.csv:
            with open(self.o.csv, "w", newline="", encoding="utf-8") as f:
                csv.writer(f).writerows([("what", "GB/s", "least", "most", "ratio", "least", "most"), *rows])


def main():
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    p.add_argument("--exact", action="store_true")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--csv")
    o, rest = p.parse_known_args()
    sys.argv[1:] = rest
    return pair.main(Bench(o))


if __name__ == "__main__":
    sys.exit(main())
