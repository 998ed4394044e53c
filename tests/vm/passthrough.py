#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines of a cluster: a relay on B gives A's drive to a virtual machine, at that machine's own addresses.

usage: passthrough.py BUILD MACHINE [--console] [--soak]

As cluster.py. The virtual machine is our own initiator of vfio-user (relay_guest.py): QEMU in a machine that is emulated
takes minutes to boot a kernel. MACHINE has IOMMUs.
"""
import os
import sys

import cluster
import pair
import python_image
from cluster import DRIVE, HERE, PLACE, smartio
from machine import Failed

SOCKET = "/tmp/vm.drive"
# What daemons have asked each other, in numbers.
MESSAGES = "sh -c 'smartio stats --node $(hostname) --json | grep peer_messages'"


def begin(p):
    p.a.run("head -c 8388608 /dev/urandom >/tmp/witness; md5sum /tmp/witness >/tmp/witness.md5")
    p.both("remember")
    start_relay(p)
    p.step("a relay waits for a virtual machine")


def start_relay(p):
    p.b.run(f"begin relay smartio passthrough {DRIVE} --socket {SOCKET}; until_ok test -S {SOCKET}")


def end_relay(p):
    p.b.run("kill $(cat /tmp/p.relay.pid); finish relay")


def faults(p):
    """Of the drive at A's IOMMU, as its kernel tells."""
    return int(p.a.run(f"dmesg | grep -c 'DMAR:.*{PLACE[5:]}.*fault' || true"))


def check_work(p):
    if faults(p):
        raise Failed("the drive's accesses are stopped before it does any")
    print(p.b.run(f"{p.kind.guest} {SOCKET} work {MESSAGES}"))
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0; md5sum -c /tmp/witness.md5 >/dev/null")
    if not faults(p):
        raise Failed("A's IOMMU stopped nothing")
    p.step(f"the virtual machine drives it, without a message; {faults(p)} accesses of it were stopped")


def hold(p):
    p.b.run(f"begin guest {p.kind.guest} {SOCKET} hold; runs guest")
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")


def check_guest_dies(p):
    """Under I/O."""
    hold(p)
    p.b.run("kill -9 $(cat /tmp/p.guest.pid)")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
    p.b.run("stop_feeder guest; grep -q 'is returned' /tmp/p.relay.err")
    p.step("it was killed under I/O: the drive is everybody's")


def go_on(p):
    p.b.run("on=$(grep -c '^on$' /tmp/p.guest.out || true); kill -USR1 $(cat /tmp/p.guest.pid); "
            "until_ok sh -c \"[ \\$(grep -c '^on$' /tmp/p.guest.out) -gt $on ]\"")


def restart(p, m, other, host, peer):
    """The daemon of @m is killed under the virtual machine's I/O, and started again."""
    m.run(f"meetings {peer}")
    other.run(f"meetings {host}")
    m.run(f"kill_daemon; start_daemon {host}; until_ok met {peer}")
    other.run(f"until_ok met {host}")
    go_on(p)


def check_daemons(p):
    """The relay's borrow is a program's: it outlives the daemons."""
    hold(p)
    go_on(p)
    for _ in range(2):
        restart(p, p.b, p.a, "b", "a")
        restart(p, p.a, p.b, "a", "b")
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.b.run("kill -9 $(cat /tmp/p.guest.pid)")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
    p.b.run("stop_feeder guest")
    p.step("both daemons were killed and started again, twice, under I/O: it goes on, by its relay, too")


def check_relay_dies(p):
    hold(p)
    p.b.run("kill -9 $(cat /tmp/p.relay.pid); until_ok grep -q 'the relay is gone' /tmp/p.guest.out; finish guest; "
            "stop_feeder relay")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
    p.both("as_before")
    p.step("the relay was killed under I/O: nothing is left of it")


def check_link(p):
    """Pulled out under I/O, and put in: the machine reads ones, and the next one finds the drive."""
    start_relay(p)
    hold(p)
    smartio(p, "fault", "link", "a", "down")
    p.b.run("until_ok grep -q 'the drive is gone' /tmp/p.guest.out; finish guest")
    smartio(p, "fault", "link", "a", "up")
    p.b.run(f"until_ok has_device {DRIVE}; {p.kind.guest} {SOCKET} work")
    end_relay(p)
    p.both("as_before")
    p.step("the link was down for a while")


def check_client(p):
    """Addresses are chosen no more: an ordinary client has the drive."""
    p.a.run(f"start_manager {DRIVE}")
    cluster.copy_there_and_back(p, p.b)
    p.a.run(f"stop_manager; until_ok same_borrowers {DRIVE} 0 0; md5sum -c /tmp/witness.md5 >/dev/null")


class Passthrough(cluster.Cluster):
    name = "passthrough"
    doc = __doc__
    checks = (cluster.start, cluster.give_drive, begin, check_work, check_guest_dies, check_daemons, check_relay_dies, check_link,
              check_client)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        self.guest = python_image.add_python(image, os.path.join(HERE, "relay_guest.py"),
                                             os.path.normpath(os.path.join(HERE, "../emu")))


if __name__ == "__main__":
    sys.exit(pair.main(Passthrough()))
