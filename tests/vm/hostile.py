#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines of a cluster, of which one turns hostile: root there stores whatever it likes into its virtual NTB.

usage: hostile.py BUILD MACHINE [--console] [--soak]

As cluster.py. The other machine goes on: its memory and its drive's blocks are as they were, its own I/O does not fail,
and when the hostile one has ended, all that it had comes back.
"""
import sys
import time

import cluster
import pair
from cluster import DRIVE

SECONDS = {False: 5, True: 600}  # in soak or not
PIECE = 1000  # accesses of one program
WITNESS = 32  # MB of memory that nobody was granted


def begin(p):
    """The one to be attacked has memory, blocks and I/O of its own; the other a client, too."""
    p.a.run(f"start_manager {DRIVE}; remember")
    p.a.run(f"head -c {WITNESS << 20} /dev/urandom >/tmp/witness; md5sum /tmp/witness >/tmp/witness.md5")
    p.a.run(f"head -c 65536 /dev/urandom >file; smartio-nvme copy-in {DRIVE} file --offset 4M")
    p.a.run(f"start_io {DRIVE} 0 64")
    p.b.run(f"start_io {DRIVE} 4096 64")
    p.step("clients on both machines")


def attack(p, seconds, seed):
    """What was seen of the other machine's memory."""
    end = time.monotonic() + seconds
    accesses = seen = 0
    while accesses == 0 or time.monotonic() < end:
        words = p.b.run(f"rogue $(bdf) {seed + accesses} {PIECE}").split()
        accesses += int(words[0])
        seen += int(words[2])
    p.a.run("md5sum -c /tmp/witness.md5 >/dev/null")
    return f"{accesses} accesses, of its loads {seen} gave something"


def check_attacks(p):
    """With all that it was granted, and when its daemon has gone."""
    print(attack(p, SECONDS[p.soak], 1))
    p.step("the hostile machine did what it liked, beside its daemon")
    p.b.run("kill -9 $(cat /tmp/smartiod.pid)")
    print(attack(p, SECONDS[p.soak], 1000000))
    p.step("and without it")


def check_victim(p):
    p.a.run("end_io")
    p.a.run(f"smartio-nvme copy-out {DRIVE} back --offset 4M --length 64K; cmp file back; "
            "md5sum -c /tmp/witness.md5 >/dev/null")
    p.step("the other one's memory and blocks are as they were, its I/O did not fail")


def check_return(p):
    p.b.kill()
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    cluster.bring_back_b(p)
    p.a.run("as_before")
    p.step("nothing is left of it, and the machine is welcome again")


class Hostile(cluster.Cluster):
    name = "hostile"
    doc = __doc__
    parameters = "iomem=relaxed"  # root may map what a driver has
    checks = (cluster.start, cluster.give_drive, begin, check_attacks, check_victim, check_return)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        image.add_program(f"{build}/tests/vm/rogue")


if __name__ == "__main__":
    sys.exit(pair.main(Hostile()))
