#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program of machine B moves data with A's drive from and to the memory of another device, which lies in a BAR.

usage: far_bar.py BUILD MACHINE [--third | --own] [--there] [--console] [--soak]

As cluster.py. The other device is QEMU's ivshmem: A's, beside the drive; with --third that of a third machine, with --own B's.
With --there only the machine of that device has an IOMMU.
"""
import sys

import cluster
import pair
import trio
from cluster import DRIVE
from machine import Failed

MEMORY = "0000:01:00.0"  # behind a port, which can reset it
PORT_SLOT = 9


def host_of(p):
    return getattr(p, p.kind.memory_host)


def memory(p):
    return f"{p.kind.memory_host}/{MEMORY}"


def others(host, p):
    return tuple(h for h in p.up if h != host)


def give(p):
    cluster.give_drive(p)
    host_of(p).run(f"smartio device add {MEMORY}")
    for m in p.machines():
        m.run(f"until_ok has_device {memory(p)}; until_ok has_device {DRIVE}")
    p.a.run(f"start_manager {DRIVE}")
    p.both("remember")
    p.step("a drive and a device with memory are known on all")


def is_cut_by_iommu(p):
    """That of the drive's host, or beyond the window that of the other device's."""
    return p.iommu != "none" and (p.kind.has_iommu("a") or p.kind.has_iommu(p.kind.memory_host))


def check_refused(p):
    """What nobody gets; without an IOMMU nobody gets anything, and hears what would be right."""
    said = p.b.run(f"bartarget refused {DRIVE} {memory(p)} {p.kind.refused(p)}; bartarget nomember {DRIVE}")
    print(said)
    if not is_cut_by_iommu(p) and "intel_iommu=on" not in said:
        raise Failed("nothing says what would be right")
    p.step("what is not the program's is refused")


def start_work(p):
    p.b.run(f"begin work bartarget work {DRIVE} {memory(p)}; runs work; goes_on work")
    host_of(p).run(f"until_ok same_borrowers {memory(p)} 1 0")


def restart(p, host, what="work"):
    """The daemon of @host is killed under what a program does, and started again."""
    m = getattr(p, host)
    for other in others(host, p):
        getattr(p, other).run(f"meetings {host}")
    m.run(f"kill_daemon; start_daemon {host}")
    for other in others(host, p):
        getattr(p, other).run(f"until_ok met {host}")
    p.b.run(f"goes_on {what}")


def check_work(p):
    start_work(p)
    p.step("the drive reads and writes the other device's memory")
    for host in p.up * (3 if p.soak else 1):
        restart(p, host)
        p.step(f"smartiod of {host} was killed and started again under it")
    # A reset of the memory's device while the drive sends there would lose what is under way: see bartarget.sh for resets.
    p.b.run("finish work; tail -n 1 /tmp/p.work.out")
    p.both("as_before")
    p.step("nothing is left of it: " + p.b.run("tail -n 1 /tmp/p.work.out"))


def is_its_alone(p):
    """The next one's memory is its alone."""
    for device in (DRIVE, memory(p)):
        getattr(p, device[0]).run(f"until_ok same_borrowers {device} {1 if device == DRIVE else 0} 0")
    p.b.run(f"begin still bartarget still {memory(p)}; runs still")
    cluster.copy_there_and_back(p, p.b)
    p.b.run("finish still")


def check_death(p):
    start_work(p)
    p.b.run("kill -9 $(cat /tmp/p.work.pid); stop_feeder work")
    is_its_alone(p)
    p.step("the program was killed under it")
    for host in dict.fromkeys(("a", p.kind.memory_host)):
        start_work(p)
        m = getattr(p, host)
        for other in others(host, p):
            getattr(p, other).run(f"meetings {host}")
        m.run("kill_daemon")
        p.b.run("kill -9 $(cat /tmp/p.work.pid); stop_feeder work")
        m.run(f"start_daemon {host}")
        for other in others(host, p):
            getattr(p, other).run(f"until_ok met {host}")
        is_its_alone(p)
        p.step(f"the program was killed while smartiod of {host} was away")
    p.both("as_before")


def can_have_queues(p):
    """Beside the drive, where an IOMMU takes the memory away again, its queues may lie there."""
    return is_cut_by_iommu(p) and p.kind.has_iommu("a") and p.kind.memory_host == "a"


def start_queue(p, m):
    m.run(f"begin queue bartarget queue {DRIVE} {memory(p)}; runs queue; goes_on queue")


def is_lent_again(p):
    """The drive works, and the memory is the next one's when the queue in it has been deleted."""
    cluster.copy_there_and_back(p, p.b)
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0; until_ok same_borrowers {memory(p)} 0 0")
    p.b.run(f"until_ok bartarget borrow {memory(p)}; begin still bartarget still {memory(p)}; runs still")
    cluster.copy_there_and_back(p, p.b)
    p.b.run("finish still")


def check_queue(p):
    if not can_have_queues(p):
        print(p.b.run(f"bartarget noqueue {DRIVE} {memory(p)}"))
        p.step("the drive's queues do not lie in the other device's memory")
        return
    for m in (p.b, p.a):
        start_queue(p, m)
        p.step(f"the drive fetches commands of {m.name} from the other device's memory")
        for host in p.up if m == p.b else ("a",):
            for other in others(host, p):
                getattr(p, other).run(f"meetings {host}")
            getattr(p, host).run(f"kill_daemon; start_daemon {host}")
            for other in others(host, p):
                getattr(p, other).run(f"until_ok met {host}")
            m.run("goes_on queue")
            p.step(f"smartiod of {host} was killed and started again under it")
        m.run("finish queue; tail -n 1 /tmp/p.queue.out")
        start_queue(p, m)
        m.run("kill -9 $(cat /tmp/p.queue.pid); stop_feeder queue")
        is_lent_again(p)
        p.step("the program was killed: its queue was left in place until it was deleted")
        start_queue(p, m)
        p.b.run("meetings a")
        p.a.run("kill_daemon")
        m.run("kill -9 $(cat /tmp/p.queue.pid); stop_feeder queue")
        p.a.run("start_daemon a")
        p.b.run("until_ok met a")
        is_lent_again(p)
        p.step("the program was killed while smartiod of a was away")
    p.both("as_before")


def start_member(p):
    p.b.run(f"begin member bartarget member {memory(p)}; runs member; goes_on member")


def check_member(p):
    """Memory of the device is a member of a multicast group: what B writes there arrives, with or without an IOMMU."""
    start_member(p)
    p.step("a group's member in the other device's memory has what was written to the group")
    for host in p.up:
        restart(p, host, "member")
        p.step(f"smartiod of {host} was killed and started again under it")
    p.b.run("finish member; tail -n 1 /tmp/p.member.out")
    start_member(p)
    p.b.run("kill -9 $(cat /tmp/p.member.pid); stop_feeder member")
    host_of(p).run(f"until_ok same_borrowers {memory(p)} 0 0")
    p.b.run(f"begin still bartarget still {memory(p)}; runs still; begin member bartarget group; runs member; "
            "goes_on member; finish member; finish still")
    p.both("as_before")
    p.step("its program was killed: what is written to the group does not come to who has the memory next")


def check_all(p):
    check_member(p)
    check_refused(p)
    check_queue(p)
    if is_cut_by_iommu(p):
        check_work(p)
        check_death(p)
    p.a.run(f"stop_manager; until_ok same_borrowers {DRIVE} 0 0")


class FarBar(cluster.Cluster):
    name = "far_bar"
    doc = __doc__
    topology = pair.TOPOLOGY.replace("\n", "\nmulticast: exact\n", 1)
    options = ("--third", "--own", "--there")
    memory_host = "a"
    checks = (cluster.start, give, check_all)

    def refused(self, p):
        """What bartarget is told of IOMMUs; behind a window whose pages they are is asked first."""
        if is_cut_by_iommu(p):
            return "iommu"
        return "" if self.memory_host == "a" else "window"

    def has_iommu(self, host):
        return "--there" not in self.given or host == self.memory_host

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        image.add_program(f"{build}/tests/vm/bartarget")

    def qemu(self, host, folder):
        words = ("-device", f"pcie-root-port,id=behind,chassis=1,slot=1,addr={PORT_SLOT:x}",
                 "-object", "memory-backend-ram,id=shared,size=256K,share=on",
                 "-device", "ivshmem-plain,memdev=shared,bus=behind")
        return (*super().qemu(host, folder), *(words if host == self.memory_host else ()))


class Own(FarBar):
    memory_host = "b"


class Third(FarBar):
    topology = trio.TOPOLOGY.replace("\n", "\nmulticast: exact\n", 1)
    file = trio.FILE
    hosts = trio.HOSTS
    memory_host = "c"
    checks = (trio.start, give, check_all)

    def network(self, host, folder):
        return trio.Trio.network(self, host, folder)


if __name__ == "__main__":
    sys.exit(pair.main(Third() if "--third" in sys.argv else Own() if "--own" in sys.argv else FarBar()))
