#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines, each with smartio.ko and a smartiod of its own, which are joined by virtual NTBs and speak TLS.

usage: cluster.py BUILD MACHINE [--console] [--soak]

As ntb.py. Programs of one machine use what programs of the other export, and then its NVMe drive.
"""
import os
import subprocess
import sys

import pair
import shim
from machine import Failed
from shell_machine import FIRST_SLOT

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = {"a": 4, "b": 8}
DRIVE_SLOT = 8
PLACE = f"0000:00:{DRIVE_SLOT:02x}.0"
DRIVE = "a/" + PLACE
FILE = f"""cluster: two-kernels
hosts:
  a: {{ address: 10.0.0.1:7470, adapters: [{{ pci: 0000:00:{FIRST_SLOT:02x}.0, to: b }}] }}
  b: {{ address: 10.0.0.2:7470, adapters: [{{ pci: 0000:00:{FIRST_SLOT:02x}.0, to: a }}] }}
"""


def start(p):
    p.both("load smartio; load ntb; load ntb_hw_smartio; load e1000e")
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


def check_interrupts(p):
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
    p.step(p.b.run(f"start_io {DRIVE} 4096 64 interrupt; end_io") + ", woken by the drive")
    p.b.run("stop_manager")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")


def smartio(p, *words):
    """A command to the emulated fabric."""
    done = subprocess.run([f"{p.build}/tools/smartio", "--state", f"{p.folder}/state", *words], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise Failed(f"smartio {' '.join(words)}: {done.stderr}")


def check_link(p):
    """The cable is pulled out under I/O of the other machine, and put in."""
    p.a.run(f"start_manager {DRIVE}")
    copy_there_and_back(p, p.b)
    p.both("remember")
    p.b.run(f"start_io {DRIVE} 4096 64")
    smartio(p, "fault", "link", "a", "down")
    print(p.b.run("broken_io"))
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.step("the link went down under I/O: the client was told, the drive is free")
    copy_there_and_back(p, p.a)
    smartio(p, "fault", "link", "a", "up")
    p.b.run(f"until_ok has_device {DRIVE}")
    copy_there_and_back(p, p.b)
    p.both("as_before")
    p.step("nothing is left of it")


def check_restart(p):
    """The lender's daemon is killed under I/O of the other machine, and started again: the manager on the same machine
    keeps the drive, the client on the other one is told."""
    p.b.run(f"start_io {DRIVE} 4096 64")
    p.a.run("kill -9 $(cat /tmp/smartiod.pid); start_daemon a")
    print(p.b.run("broken_io"))
    p.b.run(f"until_ok has_device {DRIVE}")
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.step("the lender's daemon was killed under I/O and started again")
    copy_there_and_back(p, p.b)
    p.b.run("as_before")
    p.a.run("stop_manager; until_ok only_devices")
    p.step("nothing is left of it")
    p.a.run(f"start_manager {DRIVE}")
    copy_there_and_back(p, p.b)
    p.a.run("remember")


def check_death(p):
    """The machine whose client does I/O loses its power, and comes back."""
    p.b.run(f"start_io {DRIVE} 4096 64")
    p.b.kill()
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.step("the other machine was killed under I/O: the drive is free")
    copy_there_and_back(p, p.a)
    p.restart_b()
    p.b.run("load smartio; load ntb; load ntb_hw_smartio; load e1000e; start_host b 10.0.0.2")
    p.b.run(f"until_ok has_device {DRIVE}")
    copy_there_and_back(p, p.b)
    # Until it was there again its devices might have written to what it had been granted.
    p.a.run("as_before")
    p.step("nothing is left of it")


class Cluster(pair.Kind):
    name = "cluster"
    doc = __doc__
    memory = 512
    tell = "cat /tmp/smartiod.log"
    checks = (start, check_memory, check_interrupts, give_drive, check_drive, check_link, check_restart, check_death)

    def prepare(self, build, folder):
        with open(f"{folder}/cluster.yaml", "w", encoding="ascii") as f:
            f.write(FILE)
        with open(f"{folder}/drive", "wb") as f:
            f.truncate(16 << 20)
        subprocess.run([f"{build}/tools/smartio", "cluster", "keys", f"{folder}/cluster.yaml", f"{folder}/keys"],
                       check=True, stdout=subprocess.DEVNULL)
        self.folder = folder

    def fill(self, image, kernel, build):
        for path in (shim.module(kernel, build), *kernel.modules("e1000e", "nvme")):
            image.add_file("/modules/" + os.path.basename(path), path)
        for name in ("tools/smartio", "smartiod/smartiod", "drivers/nvme-user/smartio-nvme",
                     "tests/system/verify", "tests/vm/lists", "examples/example-pingpong", "examples/example-interrupts", "examples/example-ring"):
            image.add_program(os.path.join(build, name))
        image.add_file("/etc/smartio/cluster.yaml", f"{self.folder}/cluster.yaml")
        for name in os.listdir(f"{self.folder}/keys"):
            image.add_file(f"/keys/{name}", f"{self.folder}/keys/{name}")
        image.add_file("/test-lib.sh", os.path.join(HERE, "cluster-lib.sh"))

    def qemu(self, host, folder):
        own, other = (f"{folder}/ether.{h}" for h in (host, "b" if host == "a" else "a"))
        drive = ("-blockdev", f"raw,node-name=disk0,file.driver=file,file.filename={folder}/drive,cache.no-flush=on",
                 "-device", f"nvme,serial=SIO0,drive=disk0,addr={DRIVE_SLOT:x}") if host == "a" else ()
        return (*drive, "-netdev", f"dgram,id=net,local.type=unix,local.path={own},remote.type=unix,remote.path={other}",
                "-device", f"e1000e,netdev=net,mac=52:54:00:00:00:0{NODE[host]},romfile=")


if __name__ == "__main__":
    sys.exit(pair.main(Cluster()))
