#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A virtual machine reads from a drive that is passed through to it: its own host's, and one of another host (paper 7.3.2).

usage: passthrough.py BUILD KERNEL [--count N] [--rounds N] [--out DIR] [--console]

KERNEL is 6.1 or 6.12. The machine is QEMU's, on a host of an emulated cluster. In each round nvme.ko and fio in it read N
blocks of 4 KiB from the host's own drive, and, started again, from another host's, which is borrowed; `smartio passthrough`
gives it either. Counted: the machine's instructions of a read, by a plugin of QEMU (insns.c); messages between daemons and
what wakes `smartio passthrough` while it reads. Times are the emulator's.
"""
import argparse
import contextlib
import csv
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tests", "vm")]
import paths  # noqa: E402, F401
import cache  # noqa: E402
import counts  # noqa: E402
import guest  # noqa: E402
import kernel as kernels  # noqa: E402
import vfio_qemu  # noqa: E402
from machine import Failed  # noqa: E402

DEVICE, LENDER = "nvme0", "lender"
# Where the machine runs.
WAYS = (("own", LENDER), ("borrowed", "a"))


def add(image, build):
    counts.fill(image, build)
    image.add_data("/test-lib.sh", counts.script("guest-lib.sh"))


def read(t, way, host, count):
    relay = t.relay(DEVICE, host)
    m = t.machine(way, relay, more=counts.qemu(t.build, t.folder, way), parameters=counts.PARAMETERS)
    m.run(f"until_ok test -b {counts.DISK}")
    before = t.messages(), relay.wakes()
    found, took = counts.Counter(m, t.folder).reads(count)
    if (t.messages(), relay.wakes()) != before:
        raise Failed(f"messages of daemons and wakes of the relay were {before}, and are {t.messages()}, {relay.wakes()}")
    guest.off(m)
    relay.says("is returned")
    relay.end()
    row = {name: statistics.median(values) for name, values in found.items()}
    row.update(us=took, interrupts=len(found["interrupt"]) / count)
    t.step(f"{way}: {row['own']:.0f} instructions a read, no message between daemons, {row['interrupts']:.2f} interrupts")
    return row


def show(rows, o):
    def median(way, name):
        return statistics.median(r[way][name] for r in rows)

    lines = [("borrowed / own drive, without waiting", "counted", f"{median('borrowed', 'own') / median('own', 'own'):.3f}")]
    for what, label, name in (("instructions of a read", "counted", "all"), ("the same without waiting", "counted", "own"),
                              ("interrupts of a read", "counted", "interrupts"),
                              ("instructions of an interrupt", "counted", "interrupt"),
                              ("time of a read, us", "measured, the emulator's", "us")):
        lines += [(f"{what}, {of}", label, f"{median(way, name):.5g}")
                  for way, of in (("own", "own host's drive"), ("borrowed", "borrowed"))]
    lines.append(("messages between daemons, and wakes of the relay", "counted", "0"))
    print(f"\nReads of 4 KiB by fio (psync, direct) in a virtual machine; medians of {o.count} reads, and of {o.rounds} rounds")
    for what, label, value in lines:
        print(f"  {what:52} {value:>10}  {label}")
    os.makedirs(o.out, exist_ok=True)
    with open(f"{o.out}/passthrough.csv", "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([("what", "label", "value"), *lines])
    print(f"{o.out}/passthrough.csv")


def run(build, kernel, o):
    with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder, contextlib.ExitStack() as stack:
        guest.build_initrd(kernel, f"{folder}/initrd", lambda image: add(image, build))
        t = guest.Test(build, kernel, folder, stack, {"--console"} if o.console else set())
        t.output(t.tool, "fault", "device", DEVICE, "delay", "--opcode", "read", "--count", "0", "--time",
                 str(counts.SLOW_US // 1000))
        try:
            show([{way: read(t, way, host, o.count) for way, host in WAYS} for _ in range(o.rounds)], o)
        except (Failed, OSError) as e:
            for m in t.machines:
                print(f"--- QEMU of {m.name}, {m.process.poll()}: {m.errors()}\n--- console\n{m.console()}")
            return str(e)
    return None


def main():
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    p.add_argument("build")
    p.add_argument("kernel", choices=kernels.STOCK)
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--out", default="results")
    p.add_argument("--console", action="store_true")
    o = p.parse_args()
    try:
        kernel = kernels.get(o.kernel)
        vfio_qemu.command()
        wrong = run(os.path.abspath(o.build), kernel, o)
    except cache.Unavailable as e:
        print(f"passthrough on {o.kernel}: skipped: {e}")
        return guest.SKIP
    print(f"passthrough on {o.kernel}: {'FAILED: ' + wrong if wrong else 'passed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
