#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines whose windows are mapped: processors and drives reach the other's memory as the machine's own RAM.

usage: mapped.py BUILD MACHINE [--console] [--soak]

As cluster.py, whose checks these are in part. A has QEMU's drive, and B our model. Reads of a client on the other machine are
counted: messages between daemons, accesses that come to smartio-emu, and the client's instructions, which must be those of a
client where the drive is; and what QEMU's drive moves in parts of 8 bytes, as it does where it does not find plain memory. MACHINE is
none-6.1 or none-6.12: an exporter's IOMMU and mapped windows exclude each other (docs/virtual-ntb.md).
"""
import json
import os
import shutil
import subprocess
import sys

import cluster
import model
import pair
import qemu
from cluster import DRIVE
from machine import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL_SLOT = cluster.DRIVE_SLOT + 1
MODEL_PLACE = f"0000:00:{MODEL_SLOT:02x}.0"
MODEL = f"b/{MODEL_PLACE}"
DRIVES = {DRIVE: "QEMU's drive", MODEL: "our model"}
READS = 500          # one by one
COUNTED, DEPTH = 640, 32  # of which instructions are counted
VALGRIND = "/usr/libexec/valgrind"
# What QEMU and its drive load from, or store to, memory of another process's function, 8 bytes at a time.
PARTS = ("memory_region_ram_device_read", "memory_region_ram_device_write")


def give_model(p):
    p.b.run(f"smartio device add {MODEL_PLACE}")
    p.both(f"until_ok has_device {MODEL}")
    p.step("our model is known on both, too")


def exits(p):
    """What smartio-emu has counted of accesses to each machine's adapter."""
    said = subprocess.run([f"{p.build}/tools/smartio", "--state", f"{p.folder}/state", "stats", "--json"], check=True,
                          capture_output=True, text=True).stdout
    return {a["name"]: int(a["counters"]["exits"], 16) for a in json.loads(said)["data"]["adapters"]}


def ends(p, drive):
    """The machine where the drive is, and the other."""
    return (p.a, p.b) if drive.startswith("a/") else (p.b, p.a)


def check_path(p):
    """A read of the other machine's drive is two doorbells, and nothing else leaves the machines."""
    if not p.kind.iopath:
        p.step("reads are not counted: apt-get install valgrind")
        return
    for drive, name in DRIVES.items():
        near, far = ends(p, drive)
        near.run(f"start_manager {drive}")
        far.run(f"start_path {drive} {READS} 1")
        messages, before = p.both("peer_messages"), exits(p)
        far.run("next_of_path done")
        after = exits(p)
        grew = {adapter: after[adapter] - before[adapter] for adapter in after}
        if p.both("peer_messages") != messages or grew != {f"{near.name}.0": 0, f"{far.name}.0": 2 * READS}:
            raise Failed(f"{READS} reads of {name}, one by one: {messages} messages of daemons became {p.both('peer_messages')}, and "
                         f"there were {grew} accesses to adapters")
        far.run("end_path")
        near.run(f"stop_manager; until_ok same_borrowers {drive} 0 0")
        p.step(f"{READS} reads of {name}: no message between daemons, and {2 * READS} doorbells alone came to smartio-emu")


def check_copies(p):
    """All that QEMU's drive moved until now it copied as to and from RAM."""
    for host, m in zip(p.up, p.machines()):
        if "trace event" in m.errors():
            raise Failed(f"QEMU of {host} does not count what it accesses in parts: {m.errors()}")
        with open(f"{p.folder}/parts.{host}", encoding="utf-8", errors="replace") as f:
            parts = sum(event in line for line in f for event in PARTS)
        if parts:
            raise Failed(f"QEMU of {host} accessed memory {parts} times in parts of 8 bytes")
    p.step("no QEMU has accessed memory in parts of 8 bytes")


def check_instructions(p):
    """A client's own ones, on the drive's machine and on the other."""
    if not p.kind.valgrind:
        p.step("instructions are not counted: apt-get install valgrind")
        return
    p.a.run(f"start_manager {DRIVE}")
    counted = []
    for m in (p.a, p.b):
        m.limit(3 * pair.LIMIT)  # emulated twice
        counted.append(int(m.run(f"instructions {DRIVE} {COUNTED} {DEPTH}").split()[-1]))
    p.a.run(f"stop_manager; until_ok same_borrowers {DRIVE} 0 0")
    if counted[0] != counted[1] or counted[0] < 20 * COUNTED:
        raise Failed(f"a client on the drive's machine has {counted[0]} instructions for {COUNTED} reads, one on the other {counted[1]}")
    p.step(f"a client has {counted[0] / COUNTED:.2f} instructions for each read at depth {DEPTH}, on either machine")


def check_more(p):
    """What of cluster.py's is in `make soak` alone."""
    if p.soak:
        for check in (cluster.check_interrupts, cluster.check_card, cluster.check_link, cluster.check_import, cluster.check_restart,
                      cluster.check_death):
            check(p)


class Mapped(cluster.Cluster):
    name = "mapped"
    doc = __doc__
    mapped = True
    topology = pair.mapped_topology(cluster.Cluster.memory).replace("  b:\n", f"  b:\n    devices: {{ {model.DRIVE} }}\n")
    checks = (cluster.start, cluster.check_memory, cluster.give_drive, give_model, cluster.check_drive, check_path,
              check_copies, check_instructions, check_more)
    iopath = valgrind = False  # whether they are to be had

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        self.iopath = os.path.exists(f"{build}/tests/system/iopath")
        self.valgrind = self.iopath and os.path.exists(f"{VALGRIND}/callgrind-amd64-linux")
        if self.valgrind:
            image.add_program(shutil.which("valgrind.bin") or shutil.which("valgrind"), "/bin/valgrind.bin")
            for name in ("callgrind-amd64-linux", "vgpreload_core-amd64-linux.so"):
                image.add_program(f"{VALGRIND}/{name}")
        if self.iopath:
            image.add_program(f"{build}/tests/system/iopath")
        for name in ("cluster-lib.sh", "mapped-lib.sh"):
            with open(os.path.join(HERE, name), "rb") as f:
                image.add_data("/test-lib.sh" if name == "mapped-lib.sh" else "/" + name, f.read())

    def qemu(self, host, folder):
        words = (*super().qemu(host, folder), *(w for event in PARTS for w in ("-trace", event)), "-D", f"{folder}/parts.{host}")
        return (*words, *qemu.vfio_user(MODEL_SLOT, f"{folder}/state/vfio.disk")) if host == MODEL[0] else words


if __name__ == "__main__":
    sys.exit(pair.main(Mapped()))
