#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Three machines of a cluster: a relay on B gives the drives of A and C to one virtual machine, and each drive reaches the other's
memory, which lies in a BAR, where that machine has it.

usage: passthrough_two.py BUILD MACHINE [--console] [--soak]

As passthrough.py, and the virtual machine is relay_two.py. What passes between the drives passes no adapter of B's.
"""
import os
import sys

import cluster
import pair
import python_image
import trio
from cluster import HERE, PLACE, smartio
from machine import Failed

SOCKET = "/tmp/vm.drive"
DRIVES = tuple(f"{host}/{PLACE}" for host in ("a", "c"))


def give(p):
    for m, drive in zip((p.a, p.c), DRIVES):
        m.run(f"smartio device add {PLACE}; until_ok has_device {drive}")
    for drive in DRIVES:
        p.both(f"until_ok has_device {drive}")
    for m in (p.a, p.c):
        m.run("head -c 8388608 /dev/urandom >/tmp/witness; md5sum /tmp/witness >/tmp/witness.md5")
    p.both("remember")
    p.step("both drives are known on all")


def start_relay(p):
    p.b.run(f"begin relay smartio passthrough {' '.join(DRIVES)} --socket {SOCKET}; until_ok test -S {SOCKET}; "
            f"until_ok test -S {SOCKET}.2")


def free(p, *which):
    for drive in which or DRIVES:
        (p.a if drive[0] == "a" else p.c).run(f"until_ok same_borrowers {drive} 0 0")


def faults(m):
    """Of the drive at its machine's IOMMU."""
    return int(m.run(f"dmesg | grep -c 'DMAR:.*{PLACE[5:]}.*fault' || true"))


def check_work(p):
    """Each to the other's memory and back; what the machine has moved is not reached where it was."""
    start_relay(p)
    if any(map(faults, (p.a, p.c))):
        raise Failed("accesses are stopped before a drive does any")
    print(p.b.run(f"{p.kind.guest} {SOCKET} work; cat /tmp/p.relay.err"))
    free(p)
    for m in (p.a, p.c):
        m.run("md5sum -c /tmp/witness.md5 >/dev/null")
        if not faults(m):
            raise Failed(f"the IOMMU of {m.name} stopped nothing")
    p.step("the drives of two lenders reach each other, where the virtual machine has them, and nowhere else")


def hold(p):
    p.b.run(f"begin guest {p.kind.guest} {SOCKET} hold; runs guest")


def check_daemons(p):
    """Killed and started again under what the drives send each other."""
    hold(p)
    for m, host in ((p.b, "b"), (p.c, "c"), (p.a, "a")):
        others = [(getattr(p, h), h) for h in trio.others(host)]
        for other, _ in others:
            other.run(f"meetings {host}")
        m.run(f"kill_daemon; start_daemon {host}")
        for other, name in others:
            other.run(f"until_ok met {host}")
            m.run(f"until_ok said '{name} is up'")
        p.b.run("goes_on guest")
        p.step(f"smartiod of {host} was killed and started again: the drives reach each other still")
    p.b.run("finish guest")
    free(p)


def check_lender_dies(p):
    """The machine of the second drive loses its power under what the first one sends there."""
    hold(p)
    p.c.kill()
    p.b.run("until_ok grep -q 'the other drive is gone' /tmp/p.guest.out; goes_on guest; finish guest")
    free(p, DRIVES[0])
    p.a.run("md5sum -c /tmp/witness.md5 >/dev/null")
    p.b.run("kill $(cat /tmp/p.relay.pid); finish relay")
    p.step("c was killed under it: the drive of a goes on")


class Two(cluster.Cluster):
    name = "passthrough_two"
    doc = __doc__
    topology = trio.TOPOLOGY
    hosts = trio.HOSTS
    file = trio.FILE
    memory = 320
    drive = ",cmb_size_mb=1"
    checks = (trio.start, give, check_work, check_daemons, check_lender_dies)

    def network(self, host, folder):
        return trio.Trio.network(self, host, folder)

    def prepare(self, build, folder):
        super().prepare(build, folder)
        with open(f"{folder}/drive-c", "wb") as f:
            f.truncate(16 << 20)

    def qemu(self, host, folder):
        self.drive_host = host if host in ("a", "c") else ""
        words = super().qemu(host, folder)
        return [w.replace(f"{folder}/drive", f"{folder}/drive-c") for w in words] if host == "c" else words

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        self.guest = python_image.add_python(image, os.path.join(HERE, "relay_two.py"),
                                             os.path.normpath(os.path.join(HERE, "../emu")))


if __name__ == "__main__":
    sys.exit(pair.main(Two()))
