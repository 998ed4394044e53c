#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines, each with smartio.ko and a smartiod of its own, which are joined by virtual NTBs and speak TLS.

usage: cluster.py BUILD MACHINE [--console] [--soak]

As ntb.py. Programs of one machine use what programs of the other export, and then its NVMe drive.
"""
import os
import subprocess
import sys
import time

import pair
import shim
from machine import Failed
from shell_machine import FIRST_SLOT

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = {"a": 4, "b": 8}
DRIVE_SLOT = 8
PLACE = f"0000:00:{DRIVE_SLOT:02x}.0"
DRIVE = "a/" + PLACE
SEGMENT = 1792
FILE = f"""cluster: two-kernels
hosts:
  a: {{ address: 10.0.0.1:7470, adapters: [{{ pci: 0000:00:{FIRST_SLOT:02x}.0, to: b }}] }}
  b: {{ address: 10.0.0.2:7470, adapters: [{{ pci: 0000:00:{FIRST_SLOT:02x}.0, to: a }}] }}
access: {{ between_machines: open }}
"""


def wire(folder, host, other, name, mac):
    """An Ethernet card of @host, whose cable leads to @other."""
    own, theirs = f"{folder}/ether.{host}-{other}", f"{folder}/ether.{other}-{host}"
    return ("-netdev", f"dgram,id={name},local.type=unix,local.path={own},remote.type=unix,remote.path={theirs}",
            "-device", f"e1000e,netdev={name},mac={mac},romfile=")


def start(p):
    p.load_adapters()
    p.both("load e1000e")
    for m, host in ((p.a, "a"), (p.b, "b")):
        m.start(f"start_host {host} 10.0.0.{NODE[host] // 4}")
    p.a.wait()
    p.b.wait()
    p.step("smartiod runs on both")
    for m, other in ((p.a, "b"), (p.b, "a")):
        m.run(f"until_ok said '{other} is up'")
    print(p.a.run("smartio node list"))
    p.step("each sees the other")


def check_memory(p):
    p.a.start("example-pingpong 8 first 20")
    p.b.run("example-pingpong 4 second 20")
    p.a.wait()
    p.step("both write into each other's memory")
    p.a.start("example-ring receive 8 300")
    sent = p.b.run("example-ring send 4 300")
    received = p.a.wait()
    if sent.split()[1:] != received.split()[1:]:
        raise Failed(f"{sent}, but {received}")
    p.step("a stream of messages through a ring")
    p.a.start("example-dma_vector show")
    sent = p.b.run("example-dma_vector send 4")
    shown = p.a.wait()
    if sent != shown:
        raise Failed(f"{sent}, but {shown}")
    p.both("smartio stats >stats; grep -q ' channels ' stats || { cat stats; false; }")
    p.step(f"a DMA queue: {sent}")


def check_interrupts(p):
    """Who triggers an interrupt and leaves at once has triggered it."""
    for _ in range(500 if p.soak else 5):
        p.a.start("example-interrupts serve")
        p.b.run("example-interrupts ask 4 8 10")
        p.a.wait()
    p.step("interrupts and data interrupts")


def give_drive(p):
    p.a.run(f"smartio device add {PLACE}")
    for m in (p.a, p.b):
        m.run(f"until_ok has_device {DRIVE}")
    print(p.b.run("smartio node list; smartio device list"))
    p.step("the drive is known on both")


def copy_there_and_back(p, m):
    """A file of random bytes, by a client on @m."""
    m.run(f"head -c 65536 /dev/urandom >file; smartio-nvme copy-in {DRIVE} file --offset 1M; "
          f"smartio-nvme copy-out {DRIVE} back --offset 1M --length 64K; cmp file back")
    p.step(f"a file was written and read by {m.name}")


def check_drive(p):
    p.a.run(f"start_manager {DRIVE}")
    p.step("a manager where the drive is")
    copy_there_and_back(p, p.a)
    copy_there_and_back(p, p.b)
    p.a.run("stop_manager")
    p.b.run(f"start_manager {DRIVE}")
    p.step("a manager on the other machine")
    copy_there_and_back(p, p.a)
    p.kind.check_wakeup(p)
    p.b.run("stop_manager")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")


def check_card(p):
    """Memory of a card of B's, which its driver exports as a dma-buf."""
    p.kind.check_card(p)


def reach_card(p):
    """Programs of A reach it, and A's drive."""
    p.b.run(f"load smartio_card; begin card cardbuf export {SEGMENT}; runs card")
    print(p.b.run("smartio segment list; smartio segment list --json | grep -q '\"memory\": *\"dmabuf\"'"))
    p.a.run(f"begin import sharer import {NODE['b']} {SEGMENT}; runs import; goes_on import; finish import")
    p.b.run("finish card; grep -q 'word [1-9]' /tmp/p.card.out")
    p.step("a program of the other machine wrote to a card's memory, and read it")
    p.a.run(f"start_manager {DRIVE}")
    said = p.b.run(f"cardbuf drive {DRIVE}")
    p.a.run(f"stop_manager; until_ok same_borrowers {DRIVE} 0 0")
    p.step(f"the other machine's drive as well, by {said.strip()}")


def smartio(p, *words):
    """A command to the emulated fabric."""
    done = subprocess.run([f"{p.build}/tools/smartio", "--state", f"{p.folder}/state", *words], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise Failed(f"smartio {' '.join(words)}: {done.stderr}")


def check_flaps(p):
    """The cable is out for a moment. Whoever sees it first stores again at once, and no store that is said to have
    arrived may be lost while the other one still sets its adapter up.
    """
    for moment in (0, 0.05, 0.1, 0.3, 0.5) * (20 if p.soak else 1):
        smartio(p, "fault", "link", "a", "down")
        time.sleep(moment)
        smartio(p, "fault", "link", "a", "up")
        p.a.run("goes_on import")
    p.a.run("finish import")
    p.b.run("finish export")
    p.step("the same after moments without a link")


def check_link(p):
    """The cable is pulled out under I/O of the other machine and stores to its memory, and put in."""
    p.a.run(f"start_manager {DRIVE}")
    copy_there_and_back(p, p.b)
    p.both("remember")
    p.b.run(f"begin export sharer export {SEGMENT}; runs export")
    p.a.run(f"begin import sharer import {NODE['b']} {SEGMENT}; runs import")
    p.b.run(f"start_io {DRIVE} 4096 64")
    smartio(p, "fault", "link", "a", "down")
    print(p.b.run("broken_io"))
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.step("the link went down under I/O: the client was told, the drive is free")
    copy_there_and_back(p, p.a)
    smartio(p, "fault", "link", "a", "up")
    p.a.run("goes_on import")
    p.step("a map of the other machine's memory is as it was before")
    check_flaps(p)
    p.b.run(f"until_ok has_device {DRIVE}")
    copy_there_and_back(p, p.b)
    p.both("as_before")
    p.step("nothing is left of it")


def restart(p, m, host, other):
    """The daemon of @m is killed under I/O of B, and started again: no I/O fails, and the peer tears nothing down."""
    for machine, peer in ((m, other), (p.b if m is p.a else p.a, host)):
        machine.run(f"meetings {peer}")
    m.run("kill_daemon")
    p.b.run("more_io")
    m.run(f"start_daemon {host}; until_ok met {other}")
    (p.b if m is p.a else p.a).run(f"until_ok met {host}")
    p.b.run("more_io")


def check_import(p):
    """The daemon of a machine that maps the other one's memory is killed, and started again."""
    p.b.run(f"begin export sharer export {SEGMENT}; runs export")
    p.a.run(f"begin import sharer import {NODE['b']} {SEGMENT}; runs import")
    p.b.run(f"begin target sharer export {SEGMENT + 1}; runs target")
    p.a.run(f"begin copy sharer copy {NODE['b']} {SEGMENT + 1}; runs copy")
    p.b.run("meetings a")
    p.a.run("meetings b; kill_daemon; goes_on import; goes_on copy; start_daemon a; until_ok met b")
    p.b.run("until_ok met a")
    p.a.run("goes_on import; goes_on copy; finish import")
    print(p.a.run("finish copy"))
    p.b.run("finish export; finish target")
    p.step("the importer's daemon was killed and started again: map and DMA queue are as they were before")


def check_restart(p):
    p.b.run(f"start_io {DRIVE} 4096 64 {p.kind.wakeup}")
    for _ in range(2):
        restart(p, p.a, "a", "b")
        p.a.run(f"until_ok same_borrowers {DRIVE} 2 0")
    p.step("the lender's daemon was killed under I/O and started again, twice")
    for _ in range(5 if p.soak else 1):
        restart(p, p.b, "b", "a")
        p.a.run(f"until_ok same_borrowers {DRIVE} 2 0")
    p.step("the borrower's daemon as well: " + p.b.run("end_io"))
    copy_there_and_back(p, p.b)
    p.both("as_before")
    p.step("nothing is left of it")


def bring_back_b(p):
    """A machine that was killed comes to the cluster again, and uses the drive."""
    p.restart_b()
    p.b.run(f"{p.kind.load_adapter('b')}; load e1000e; start_host b 10.0.0.2")
    p.b.run(f"until_ok has_device {DRIVE}")
    copy_there_and_back(p, p.b)


def check_death(p):
    """The machine whose client does I/O loses its power, and comes back."""
    p.b.run(f"start_io {DRIVE} 4096 64")
    p.b.kill()
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.step("the other machine was killed under I/O: the drive is free")
    copy_there_and_back(p, p.a)
    bring_back_b(p)
    # Until it was there again its devices might have written to what it had been granted.
    p.a.run("as_before")
    p.step("nothing is left of it")


class Cluster(pair.Kind):
    name = "cluster"
    doc = __doc__
    file = FILE
    memory = 512
    drive = ""  # more of the drive's properties
    drive_host = "a"
    wakeup = "interrupt"  # how verify waits; "": it polls
    tell = "cat /tmp/smartiod.log"
    checks = (start, check_memory, check_interrupts, give_drive, check_drive, check_card, check_link, check_import,
              check_restart, check_death)

    def check_wakeup(self, p):
        p.step(p.b.run(f"start_io {DRIVE} 4096 64 interrupt; end_io") + ", woken by the drive")

    def check_card(self, p):
        reach_card(p)

    def prepare(self, build, folder):
        with open(f"{folder}/cluster.yaml", "w", encoding="ascii") as f:
            f.write(self.file)
        with open(f"{folder}/drive", "wb") as f:
            f.truncate(16 << 20)
        subprocess.run([f"{build}/tools/smartio", "cluster", "keys", f"{folder}/cluster.yaml", f"{folder}/keys"],
                       check=True, stdout=subprocess.DEVNULL)
        self.folder = folder

    def fill(self, image, kernel, build):
        for path in (shim.module(kernel, build), shim.of_tests(kernel, build, "smartio_card"),
                     *kernel.modules("e1000e", "nvme")):
            image.add_file("/modules/" + os.path.basename(path), path)
        for name in ("tools/smartio", "smartiod/smartiod", "drivers/nvme-user/smartio-nvme",
                     "tests/system/verify", "tests/vm/lists", "tests/vm/sharer", "tests/vm/cardbuf",
                     "examples/example-pingpong",
                     "examples/example-interrupts", "examples/example-ring", "examples/example-dma_vector"):
            image.add_program(os.path.join(build, name))
        image.add_file("/etc/smartio/cluster.yaml", f"{self.folder}/cluster.yaml")
        for name in os.listdir(f"{self.folder}/keys"):
            image.add_file(f"/keys/{name}", f"{self.folder}/keys/{name}")
        image.add_file("/test-lib.sh", os.path.join(HERE, "cluster-lib.sh"))

    def network(self, host, folder):
        return wire(folder, host, "b" if host == "a" else "a", "net", f"52:54:00:00:00:0{NODE[host]}")

    def qemu(self, host, folder):
        drive = ("-blockdev", f"raw,node-name=disk0,file.driver=file,file.filename={folder}/drive,cache.no-flush=on",
                 "-device", f"nvme,serial=SIO0,drive=disk0,addr={DRIVE_SLOT:x}{self.drive}") if host == self.drive_host else ()
        return (*drive, *self.network(host, folder))


if __name__ == "__main__":
    sys.exit(pair.main(Cluster()))
