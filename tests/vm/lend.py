#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Device Lending between two machines of one cluster: the NVMe drive of one of them in the PCI tree of the other.

usage: lend.py BUILD MACHINE [--console] [--soak]

As cluster.py, but that B, who borrows, has no IOMMU. The driver is the kernel's own, which knows nothing of it.
"""
import os
import sys

import cluster
import pair
import shim
from cluster import DRIVE, PLACE
from machine import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
# A window takes all of the other machine's memory.
TOPOLOGY = pair.TOPOLOGY.replace("64M", "512M")
SHADOW = "8000:00:00.0"


def start(p):
    cluster.start(p)
    p.b.run(f"load smartio_lend; {p.kind.load('nvme')}; {p.kind.load('crc32c_generic', 'ext4')}")
    cluster.give_drive(p)
    p.both("remember")


def check_refusals(p):
    """What is refused is taken back, whatever had been made of it."""
    p.b.run(f"refused 'all memory' smartio borrow {DRIVE}; until_ok as_remembered")
    p.b.run(f"refused 'not borrowed' smartio return {DRIVE}")
    p.b.run(f"rmmod smartio_lend; refused 'smartio_lend' smartio borrow {DRIVE} --all-memory; load smartio_lend; "
            "until_ok as_remembered")
    p.a.run(f"refused 'of this host' smartio borrow {DRIVE} --all-memory; until_ok as_remembered")
    p.step("refusals leave nothing")


def borrow(p):
    p.b.run(f"smartio borrow {DRIVE} --all-memory; until_ok test -b /dev/nvme0n1")
    p.step("nvme.ko has the drive of the other machine")


def check_borrow(p):
    borrow(p)
    p.b.run(f"same driver $(basename $(readlink /sys/bus/pci/devices/{SHADOW}/driver)) nvme; "
            f"refused 'already' smartio borrow {DRIVE} --all-memory")
    p.b.run("grep -q 'smartio shadow' /proc/iomem; grep -q smartio-shadow /proc/interrupts")
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0; refused '' smartio-nvme identify {DRIVE}")
    p.step("nobody else gets it")


def check_files(p):
    """A file system made, filled and checked on one machine, and then read on the one that has the drive."""
    sent = p.b.run("/bin/mke2fs -q -b 4096 -O ^has_journal /dev/nvme0n1 2048; fill /dev/nvme0n1; e2fsck -fn /dev/nvme0n1 >fsck; "
                   "tail -n 1 fsck >&2; sum_of /dev/nvme0n1")
    p.step("a file system was made and filled there")
    before = p.b.run("interrupts_of nvme0")
    p.b.run("raw_copy /dev/nvme0n1 24576 64")
    if int(p.b.run("interrupts_of nvme0")) <= int(before):
        raise Failed("the driver had no interrupts")
    p.step("it is woken by the drive")
    p.b.run(f"smartio return {DRIVE}; test ! -e /dev/nvme0n1; test ! -e /sys/bus/pci/devices/{SHADOW}; "
            "until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("it was returned, and nothing is left of it")
    p.a.run(f"smartio device remove {PLACE}; {p.kind.load('nvme')}; {p.kind.load('crc32c_generic', 'ext4')}; until_ok test -b /dev/nvme0n1")
    found = p.a.run("sum_of /dev/nvme0n1")
    if found.split()[-1] != sent.split()[-1]:
        raise Failed(f"{found} is read where the drive is, {sent} was written")
    p.step("its own machine reads the same files")
    cluster.give_drive(p)


def counts(p):
    """What daemons and the lender have done for it."""
    return p.both("peer_messages"), p.a.run("lender_interrupts")


def check_silence(p):
    """I/O is between the driver and the drive alone."""
    borrow(p)
    p.b.run("raw_copy /dev/nvme0n1 24576 64")
    before = counts(p)
    p.b.run("for i in 1 2 3 4; do raw_copy /dev/nvme0n1 24576 64; done")
    after = counts(p)
    if after != before:
        raise Failed(f"messages of daemons and interrupts at the lender were {before}, after I/O {after}")
    p.step(f"I/O went on without a message between daemons or an interrupt at the lender: {after}")
    p.b.run(f"start_raw_io /dev/nvme0n1; smartio return {DRIVE}; until_ok test -s /tmp/raw.end; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("it was returned under I/O")


def check_daemons(p):
    """Either daemon dies: the borrow is lost, and the driver gives up."""
    for m, host in ((p.b, "b"), (p.a, "a")):
        borrow(p)
        p.b.run("start_raw_io /dev/nvme0n1")
        m.run(f"kill -9 $(cat /tmp/smartiod.pid); start_daemon {host}")
        p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; "
                f"until_ok has_device {DRIVE}; until_ok as_remembered")
        p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
        p.step(f"smartiod of {host} was killed under I/O: the driver has given up")


def check_gone(p):
    """The lender takes the drive back by force."""
    borrow(p)
    p.b.run("start_raw_io /dev/nvme0n1")
    p.a.run(f"smartio device remove {PLACE} --force")
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok as_remembered")
    p.step("the drive was taken away under I/O: the driver has given up")
    cluster.give_drive(p)


def check_killed(p):
    """Whoever holds the borrow dies: the driver goes, all is taken back."""
    borrow(p)
    p.b.run("start_raw_io /dev/nvme0n1; kill -9 $(holder); until_ok test -s /tmp/raw.end; "
            f"until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("the holder was killed under I/O: nothing is left of it")


def check_link(p):
    borrow(p)
    p.b.run("start_raw_io /dev/nvme0n1")
    cluster.smartio(p, "fault", "link", "a", "down")
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}")
    p.step("the cable was pulled out under I/O: the driver has given up")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
    p.step("and the drive is free")
    cluster.smartio(p, "fault", "link", "a", "up")
    p.b.run(f"until_ok has_device {DRIVE}")
    borrow(p)
    p.b.run("raw_copy /dev/nvme0n1 24576 64")
    p.step("it was borrowed again")


def check_death(p):
    """The lender loses its power under the bound driver."""
    p.b.run("start_raw_io /dev/nvme0n1")
    p.a.kill()
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; "
            "until_ok test ! -e /dev/nvme0n1; rmmod nvme; until_ok nobody_has smartio_lend; rmmod smartio_lend")
    p.step("the lender was killed under I/O: the driver has given up, and all can be unloaded")


class Lend(cluster.Cluster):
    name = "lend"
    doc = __doc__
    topology = TOPOLOGY
    memory = 384
    checks = (start, check_refusals, check_borrow, check_files, check_silence, check_killed, check_daemons,
              check_gone, check_link, check_death)

    def has_iommu(self, host):
        return host == "a"

    def load(self, *modules):
        """Lines of shell that load them and what they need."""
        return "; ".join(f"load_module {os.path.basename(path)}" for path in self.kernel.modules(*modules))

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        self.kernel = kernel
        image.add_file("/modules/smartio_lend.ko", os.path.join(os.path.dirname(shim.module(kernel, build)),
                                                                "smartio_lend.ko"))
        for path in kernel.modules("nvme", "crc32c_generic", "ext4"):
            image.add_file("/modules/" + os.path.basename(path), path)
        for program in ("mke2fs", "e2fsck"):
            image.add_program(f"/sbin/{program}")
        for name in ("cluster-lib.sh", "lend-lib.sh"):
            with open(os.path.join(HERE, name), "rb") as f:
                image.add_data("/test-lib.sh" if name == "lend-lib.sh" else "/" + name, f.read())


if __name__ == "__main__":
    sys.exit(pair.main(Lend()))
