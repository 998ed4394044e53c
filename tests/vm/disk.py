#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One drive as a disk of two machines at once, each with a queue pair of its own.

usage: disk.py BUILD MACHINE [--console] [--soak]

As cluster.py. The drive is A's, and so is the manager.
"""
import os
import sys

import cluster
import pair
import shim
from cluster import DRIVE, PLACE
from machine import Failed

HERE = os.path.dirname(os.path.abspath(__file__))


def start(p):
    cluster.start(p)
    p.both(f"load smartio_blk; {p.kind.load('crc32c_generic', 'ext4')}")
    cluster.give_drive(p)
    p.a.run(f"start_manager {DRIVE}")
    p.both("remember")


def attach(p, machines, options="--survive off"):
    for m in machines:
        m.start(f"smartio-nvme attach {DRIVE} {options}")
    for m in machines:
        print(m.wait())


def detach(machines):
    for m in machines:
        m.run("smartio-nvme detach $DISK; disk_is_gone")
    for m in machines:
        m.run("until_ok as_remembered")


def check_both(p):
    """Each writes where the other reads, at the same time."""
    attach(p, (p.a, p.b))
    p.step("both have the disk")
    for _ in range(8 if p.soak else 1):
        for m, place in ((p.a, 1), (p.b, 2)):
            m.start(f"write_own $DISK {place}")
        written = p.a.wait(), p.b.wait()
        for m, place in ((p.a, 2), (p.b, 1)):
            m.start(f"read_other $DISK {place}")
        found = p.a.wait(), p.b.wait()
        if found != (written[1], written[0]):
            raise Failed(f"{written} was written by a and b, {found} read")
    p.step("each reads what the other wrote")


def check_silence(p):
    """I/O of B is between its kernel and the drive alone."""
    p.b.run("raw_copy $DISK 24576 64")
    before = p.both("peer_messages"), p.a.run("lender_interrupts")
    p.b.run("for i in 1 2 3 4; do raw_copy $DISK 24576 64; done")
    after = p.both("peer_messages"), p.a.run("lender_interrupts")
    if after != before:
        raise Failed(f"messages of daemons and interrupts at the lender were {before}, after I/O {after}")
    p.step(f"I/O went on without a message between daemons or an interrupt at the lender: {after}")


def check_files(p):
    """A file system that B made, which A reads when B has let go of it."""
    p.b.run("/bin/mke2fs -q -b 4096 -O ^has_journal $DISK 2048; fill $DISK; e2fsck -fn $DISK >fsck; tail -n 1 fsck >&2")
    sent = p.b.run("sum_of $DISK")
    p.b.run("mkdir -p /tmp/mnt; mount -t ext4 -o ro $DISK /tmp/mnt; refused 'is open' smartio-nvme detach $DISK; "
            "umount /tmp/mnt")
    found = p.a.run("sum_of $DISK")
    if found != sent:
        raise Failed(f"{found} is read by a, {sent} was written by b")
    p.step("a reads the files that b wrote")
    detach((p.a, p.b))
    p.step("both were detached, and nothing is left of them")


def check_ranges(p):
    """A range for each, which the other does not get."""
    attach(p, (p.a, p.b), "--survive off --length 4M")
    p.b.run("smartio-nvme leases " + DRIVE)
    first = p.a.run("cat /sys/block/smartio-nvme0/smartio/first"), p.b.run("cat /sys/block/smartio-nvme0/smartio/first")
    if first[0] == first[1]:
        raise Failed(f"both ranges begin at {first}")
    for m in (p.a, p.b):
        m.start("write_own $DISK 3; refused . dd if=/dev/zero of=$DISK bs=4096 seek=1024 count=1 oflag=direct")
    written = p.a.wait(), p.b.wait()
    for m, sent in ((p.a, written[0]), (p.b, written[1])):
        if m.run("read_other $DISK 3") != sent:
            raise Failed("a range has been overwritten")
    detach((p.a, p.b))
    p.step("each had a range of its own")


def check_killed(p):
    """The holder at B dies under I/O of both; A's goes on."""
    attach(p, (p.a, p.b))
    p.a.run("start_raw_io $DISK")
    p.b.run("start_raw_io $DISK; kill -9 $(disk_holder); disk_has_ended; until_ok as_remembered")
    p.a.run(f"raw_io_goes_on; until_ok same_borrowers {DRIVE} 2 0")
    p.step("the holder was killed under I/O: nothing is left of it, and the other machine's disk goes on")


def check_reset(p):
    """The manager is killed, and the next one resets the drive: reads of both go on, and writes of whoever is alone."""
    attach(p, (p.a, p.b), "--alone --wait=600")
    for m, place in ((p.a, 1), (p.b, 2)):
        m.run(f"[ $(ls /sys/block/smartio-nvme0/mq | wc -l) = 2 ] || fail queues; start_own_io $DISK {place}")
    for _ in range(5 if p.soak else 1):
        p.a.run(f"kill_manager; start_manager {DRIVE}")
        for m in (p.a, p.b):
            m.run("own_io_goes_on")
    p.b.run("[ $(cat /sys/block/smartio-nvme0/smartio/state) = live ] || fail state; stop_own_io")
    p.a.run("own_io_goes_on; stop_own_io")
    p.b.run("until_ok as_remembered")
    p.step("the drive was reset under I/O of both, and both disks go on")


def check_manager(p):
    """A manager that is killed is not noticed, the next one's reset ends the disks."""
    attach(p, (p.b,))
    p.b.run("start_raw_io $DISK")
    p.a.run("kill_manager; raw_io_goes_on")
    p.b.run("raw_io_goes_on")
    p.a.run(f"start_manager {DRIVE}; disk_has_ended")
    p.b.run("disk_has_ended; until_ok as_remembered")
    p.step("a manager was killed, and the next one has reset the drive: the disks are gone")


def check_daemons(p):
    """Either daemon dies, and comes back: nobody notices."""
    attach(p, (p.a, p.b), "--survive off --timeout 10000")
    for m in (p.a, p.b):
        m.run("start_raw_io $DISK")
    for name, m, other in (("a", p.a, p.b), ("b", p.b, p.a)):
        m.run(f"kill -9 $(cat /tmp/smartiod.pid); start_daemon {name}; until_ok has_device {DRIVE}")
        other.run(f"until_ok has_device {DRIVE}")
        for each in (p.a, p.b):
            each.run(f"raw_io_goes_on; until_ok same_borrowers {DRIVE} 3 0")
        p.step(f"smartiod of {name} was killed under I/O and started again: both disks go on")
    p.b.run("stop_raw_io; until_ok as_remembered")
    p.a.run(f"raw_io_goes_on; until_ok same_borrowers {DRIVE} 2 0")


def check_link(p):
    attach(p, (p.b,), "--survive off --timeout 10000")
    p.b.run("start_raw_io $DISK")
    cluster.smartio(p, "fault", "link", "a", "down")
    p.b.run("disk_has_ended")
    p.a.run(f"raw_io_goes_on; until_ok same_borrowers {DRIVE} 2 0")
    p.step("the cable was pulled out under I/O: b's disk is gone, a's goes on")
    cluster.smartio(p, "fault", "link", "a", "up")
    p.b.run(f"until_ok has_device {DRIVE}")


def check_death(p):
    """B loses its power under I/O; then the drive is taken from A."""
    attach(p, (p.b,))
    p.b.run("start_raw_io $DISK")
    p.b.kill()
    p.a.run(f"until_ok same_borrowers {DRIVE} 2 0; raw_io_goes_on")
    p.step("b was killed under I/O: a's disk goes on")
    p.a.run(f"smartio device remove {PLACE} --force; disk_has_ended; rmmod smartio_blk")
    p.step("the drive was taken away under I/O: the disk is gone, the module unloaded")


def check_faults(p):
    """What of that is in `make soak` alone."""
    if p.soak:
        for check in (check_manager, check_daemons, check_link, check_death):
            check(p)


class Disk(cluster.Cluster):
    name = "disk"
    doc = __doc__
    memory = 384
    checks = (start, check_both, check_silence, check_files, check_ranges, check_reset, check_killed, check_faults)

    def load(self, *modules):
        """Lines of shell that load them and what they need."""
        return "; ".join(f"load_module {os.path.basename(path)}" for path in self.kernel.modules(*modules))

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        self.kernel = kernel
        image.add_file("/modules/smartio_blk.ko", shim.sibling(kernel, build, "smartio_blk"))
        for path in kernel.modules("crc32c_generic", "ext4"):
            image.add_file("/modules/" + os.path.basename(path), path)
        for program in ("mke2fs", "e2fsck"):
            image.add_program(f"/sbin/{program}")
        for name, into in (("cluster-lib.sh", "/cluster-lib.sh"), ("lend-lib.sh", "/lend-lib.sh"),
                           ("disk-lib.sh", "/test-lib.sh")):
            with open(os.path.join(HERE, name), "rb") as f:
                image.add_data(into, f.read())


if __name__ == "__main__":
    sys.exit(pair.main(Disk()))
