#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Device Lending, again and again: a drive is lent, borrowed, used, returned and taken back, and nothing adds up.

usage: lend_cycles.py BUILD MACHINE [--a-alone] [--b-alone] [--console] [--soak]

As lend.py. 50 cycles, with --soak 1,000; in each tenth the lender has the drive itself between two.
"""
import sys

import lend
import pair
from cluster import DRIVE, PLACE
from lend import SHADOW
from machine import Failed

ROUND = 10  # cycles without the lender


def audit(p):
    return p.both("smartio doctor --audit")


def kept(p):
    """Kilobytes that the kernels have in objects that are not given back by themselves."""
    return [int(n) for n in p.both("echo 3 >/proc/sys/vm/drop_caches; awk '/^SUnreclaim/ { print $2 }' /proc/meminfo")]


def cycles(p, n):
    p.b.run(f"for i in $(seq {n}); do smartio borrow {DRIVE} {lend.words(p)} >/dev/null; until_ok works /dev/nvme0n1; "
            f"smartio return {DRIVE}; test ! -e /sys/bus/pci/devices/{SHADOW}; done; until_ok as_remembered")
    p.a.run("until_ok as_remembered")


def check_cycles(p):
    p.a.run(p.kind.load("nvme"))
    rounds = 100 if p.soak else 5
    cycles(p, ROUND)  # what is made once is there
    before, had = audit(p), kept(p)
    for n in range(rounds):
        cycles(p, ROUND)
        p.a.run(f"smartio lend {PLACE} --undo; until_ok test -b /dev/nvme0n1; smartio lend {PLACE}; until_ok has_device {DRIVE}")
        p.b.run(f"until_ok has_device {DRIVE}")
        if n % 5 == 4:
            p.step(f"{(n + 1) * ROUND} cycles")
    if audit(p) != before:
        raise Failed(f"the audit found {before}, and now {audit(p)}")
    p.step(f"the audit finds what it found; kernels had {had} KiB, and have {kept(p)}")


class Cycles(lend.Lend):
    name = "lend_cycles"
    doc = __doc__
    checks = (lend.start, check_cycles)


if __name__ == "__main__":
    sys.exit(pair.main(Cycles()))
