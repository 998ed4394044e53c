#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Three machines at one cluster switch, each with one adapter, smartio.ko and a smartiod of its own.

usage: trio.py BUILD MACHINE [--console] [--soak]

As cluster.py. The drive is A's; B uses it when C is put into the cluster's file, started, and joins them; then both do, and
C is killed, comes back, is revoked, and leaves the file: B must notice none of it.
"""
import itertools
import os
import shutil
import subprocess
import sys

import cluster
import pair
from cluster import DRIVE
from machine import Failed
from shell_machine import FIRST_SLOT

HOSTS = ("a", "b", "c")
NODE = {host: 4 * n for n, host in enumerate(HOSTS, 1)}
ADDRESS = {host: f"10.0.0.{n}" for n, host in enumerate(HOSTS, 1)}
TOPOLOGY = "cluster: three-machines\nhosts:\n" + "".join(
    f"  {host}: {{ kind: machine, adapters: [{{ window: 64M, entries: 1024 }}] }}\n" for host in HOSTS)


def file_of(hosts):
    return "cluster: three-kernels\nhosts:\n" + "".join(
        f"  {host}: {{ address: {ADDRESS[host]}:7470, adapters: [{{ pci: 0000:00:{FIRST_SLOT:02x}.0 }}] }}\n"
        for host in hosts) + "access: { between_machines: open }\n"


FILE = file_of(HOSTS)
BLOCKS = {"b": 4096, "c": 8192}  # where each one's I/O begins


def others(host):
    return tuple(h for h in HOSTS if h != host)


def start_host(host):
    return f"load e1000e; start_host_of_many {host} {ADDRESS[host]} {' '.join(ADDRESS[h] for h in others(host))}"


def see_each_other(p):
    for one, other in itertools.permutations(p.up, 2):
        getattr(p, one).run(f"until_ok said '{other} is up'")
    print(p.a.run("smartio node list"))


def start(p):
    p.load_adapters()
    for host in p.up:
        getattr(p, host).start(start_host(host))
    for m in p.machines():
        m.wait()
    see_each_other(p)
    p.step(f"smartiod runs on {len(p.up)} machines, and each sees the others")


def begin(p):
    """A and B with a file of their own, that has no C."""
    p.both("take_file two.yaml")
    start(p)


def reload_file(p, name, hosts):
    """What an administrator does on each host that stays."""
    for m in (p.a, p.b):
        said = m.run(f"take_file {name}; smartio cluster reload")
        print(said)
        if "not up" in said:  # the others read files of their own
            raise Failed(said)
    for m in (p.a, p.b):
        m.run(f"until_ok knows {' '.join(hosts)}")


def power_on(p):
    p.restart("c")
    p.c.run(f"{p.kind.load_adapter('c')}; take_file three.yaml; {start_host('c')}")
    see_each_other(p)
    p.c.run(f"until_ok has_device {DRIVE}")
    cluster.copy_there_and_back(p, p.c)


def join(p):
    """C is put into the file, and its power is switched on, under I/O of B; its client uses the drive."""
    start_io(p, ("b",), "seldom")
    reload_file(p, "three.yaml", HOSTS)
    power_on(p)
    start_io(p, ("c",), "seldom")
    p.a.run(f"until_ok same_borrowers {DRIVE} 3 0")
    for m in (p.b, p.c):
        m.run("more_io")
        print(f"{m.name}: {m.run('end_io')}")
    p.step("c has joined under I/O of b, and each sees the other two")


def pairs(p):
    for one, other in itertools.combinations(HOSTS, 2):
        yield getattr(p, one), NODE[one], getattr(p, other), NODE[other]


def check_memory(p):
    for one, its_node, other, node in pairs(p):
        one.start(f"example-pingpong {node} first 10")
        other.run(f"example-pingpong {its_node} second 10")
        one.wait()
    p.step("each two write into each other's memory")


def check_interrupts(p):
    p.a.run("stop_manager")  # it has an interrupt of the number that the example wants
    for one, its_node, other, node in pairs(p):
        one.start("example-interrupts serve")
        other.run(f"example-interrupts ask {its_node} {node} 4")
        one.wait()
    p.a.run(f"start_manager {DRIVE}")
    p.step("each two interrupt each other")


def give_drive(p):
    p.a.run(f"smartio device add {cluster.PLACE}; start_manager {DRIVE}")
    p.both(f"until_ok has_device {DRIVE}")
    p.step("the drive is known on both")


def start_io(p, hosts, how=""):
    for host in hosts:
        getattr(p, host).start(f"start_io {DRIVE} {BLOCKS[host]} 64 {how}")
    for host in hosts:
        getattr(p, host).wait()


def check_drive(p):
    p.both("remember")
    start_io(p, BLOCKS)
    p.a.run(f"until_ok same_borrowers {DRIVE} 3 0")
    for m in (p.b, p.c):
        print(f"{m.name}: {m.run('end_io')}")
    p.step("both do I/O on the drive at once")


def check_death(p):
    """A machine loses its power under I/O of both, and comes back; the third one has no error."""
    start_io(p, BLOCKS)
    p.c.kill()
    p.a.run(f"until_ok same_borrowers {DRIVE} 2 0")
    p.b.run("more_io")
    p.step("c was killed under I/O: what it had is taken back")
    power_on(p)
    p.c.run("remember")
    print(f"b: {p.b.run('end_io')}")
    # Until c is there again its devices might write to what they had been granted.
    p.both("as_before")
    p.step("b went on all the time, c is back, and nothing is left of its first life")


def leave(p):
    """B's key is renewed, C is revoked, and then it is no longer in the file, all under I/O of both."""
    start_io(p, BLOCKS)
    for m, host in ((p.b, "b"), (p.a, "a")):
        m.run(f"renew_keys {host}")
    print(f"c: {p.c.run('broken_io')}")
    p.b.run("more_io")
    for m in (p.a, p.b):
        m.run("until_ok said 'c was revoked'")
    p.step("c was revoked: it was told, and b, whose key was renewed, went on")
    reload_file(p, "two.yaml", HOSTS[:2])
    p.b.run("more_io")
    p.c.kill()
    print(f"b: {p.b.run('end_io')}")
    # What c could still write to stays out of use until its machine starts again.
    p.b.run("as_before")
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.step("c has left the file under I/O of b")


def check_link(p):
    """B's cable is pulled out under I/O of both."""
    start_io(p, BLOCKS)
    cluster.smartio(p, "fault", "link", "b", "down")
    print(f"b: {p.b.run('broken_io')}")
    p.a.run(f"until_ok same_borrowers {DRIVE} 2 0")
    cluster.smartio(p, "fault", "link", "b", "up")
    p.b.run(f"until_ok has_device {DRIVE}")
    print(f"c: {p.c.run('end_io')}")
    p.both("as_before")
    p.step("b's cable was pulled out under I/O: b was told, c went on")


def check_manager(p):
    """C's client, with the manager on B, is woken by the drive, which is A's."""
    p.a.run("stop_manager")
    p.b.run(f"start_manager {DRIVE}")
    start_io(p, ("c",), "interrupt")
    print(f"c: {p.c.run('end_io')}")
    p.b.run("stop_manager")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0; start_manager {DRIVE}")
    p.step("the manager on b, a client on c, woken by the drive of a")


def check_more(p):
    """What of that is in `make soak` alone."""
    if p.soak:
        check_link(p)
        check_manager(p)


class Trio(cluster.Cluster):
    name = "trio"
    doc = __doc__
    topology = TOPOLOGY
    hosts = HOSTS
    late = ("c",)
    memory = 384
    file = FILE
    checks = (begin, give_drive, join, check_memory, check_interrupts, check_drive, check_death, check_more, leave)

    def prepare(self, build, folder):
        """At first A and B know nothing of C; what will be given to them when it is revoked lies in keys.new."""
        super().prepare(build, folder)
        for name, hosts in (("two", HOSTS[:2]), ("three", HOSTS)):
            with open(f"{folder}/{name}.yaml", "w", encoding="ascii") as f:
                f.write(file_of(hosts))
        shutil.copytree(f"{folder}/keys", f"{folder}/keys.new")
        for how in (("--renew", "b"), ("--revoke", "c")):
            subprocess.run([f"{build}/tools/smartio", "cluster", "keys", *how, f"{folder}/cluster.yaml",
                            f"{folder}/keys.new"], check=True, stdout=subprocess.DEVNULL)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        for name in ("two.yaml", "three.yaml"):
            image.add_file(f"/files/{name}", f"{self.folder}/{name}")
        for name in os.listdir(f"{self.folder}/keys.new"):
            image.add_file(f"/keys.new/{name}", f"{self.folder}/keys.new/{name}")

    def network(self, host, folder):
        """A wire to each of the others."""
        for n, other in enumerate(others(host)):
            yield from cluster.wire(folder, host, other, f"net{n}", f"52:54:00:00:0{n}:{NODE[host]:02x}")


if __name__ == "__main__":
    sys.exit(pair.main(Trio()))
