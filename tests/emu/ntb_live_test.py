#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Machines joined by smartio-emu's virtual NTBs, each driven by an initiator of our own: no QEMU.

usage: ntb_live_test.py SMARTIO-EMU
"""
import fcntl
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from initiator import CONFIG, DMA_READ, DMA_WRITE, RAM, RAM_BYTES, WAIT, Drive
from ntb_machine import (DB_MASK, DEVICE, ENTRY, FAULT_COUNT, FAULT_REASON, LINK, MAGIC, NODE, ONES, PEER, PIECES,
                         STALE_READS, VECTOR_DOORBELL, WINDOW, Machine, peer, piece)

EMU = sys.argv.pop(1)
F_SEAL_FUTURE_WRITE = 0x10
TOPOLOGY = """cluster: machines
hosts:
  vm1: {{ kind: machine, window: {window}, {ram} {devices} adapters: [{{ window: 1M, entries: 256 }}] }}
  vm2: {{ kind: machine, window: {window}, {ram} adapters: [{{ window: 1M, entries: 256 }}] }}
  vm3: {{ kind: machine, window: {window}, {ram} adapters: [{{ window: 1M, entries: 256 }}] }}
"""


class Ntb(unittest.TestCase):
    window, ram, devices = "exact", "", ""
    topology = None  # instead of that

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-ntb-")
        self.addCleanup(shutil.rmtree, self.dir)
        with open(f"{self.dir}/topology.yaml", "w", encoding="ascii") as f:
            f.write(self.topology or TOPOLOGY.format(window=self.window, ram=self.ram, devices=self.devices))
        os.mkdir(f"{self.dir}/state", 0o700)
        ready, theirs = os.pipe()
        self.emu = subprocess.Popen(
            [EMU, "--topology", f"{self.dir}/topology.yaml", "--state", f"{self.dir}/state", "--ready-fd",
             str(theirs)], pass_fds=[theirs])
        os.close(theirs)
        self.addCleanup(self.end)
        self.assertEqual(os.read(ready, 6), b"ready\n")
        os.close(ready)

    def end(self):
        self.assertIsNone(self.emu.poll(), "it has ended")
        self.emu.terminate()
        self.assertEqual(self.emu.wait(WAIT), 0)
        self.assertEqual(os.listdir(f"{self.dir}/state"), [])

    def machine(self, name):
        m = Machine(f"{self.dir}/state/vfio.{name}.0", vectors=40)
        self.addCleanup(m.close)
        return m.start()

    def link(self, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(WAIT)
            s.connect(f"{self.dir}/state/room")
            s.send(request.encode())
            return s.recv(512).decode()


class Exact(Ntb):
    def test_a_store_lands_in_the_others_memory(self):
        a, b = self.machine("vm1"), self.machine("vm2")
        self.assertEqual((a.read32(NODE), b.read32(NODE)), (4, 8))
        self.assertEqual(a.read32(peer(0, 8)), 5)  # up, a machine
        self.assertEqual(a.read32(peer(1, 8)), 4)  # vm3 is off
        a.grant(0, 0, RAM + 0x2000, 0x1000)
        b.lead(7, 0, RAM + 0x2000)
        b.write32(7 * ENTRY + 0x10, 0xc0ffee, WINDOW)
        self.assertEqual(struct.unpack_from("=I", a.ram, 0x2010)[0], 0xc0ffee)
        a.ram[0x2020:0x2024] = b"abcd"
        self.assertEqual(b.read(7 * ENTRY + 0x20, 4, WINDOW), b"abcd")
        self.assertEqual(b.read32(8 * ENTRY, WINDOW), ONES)
        self.assertEqual(b.read32(FAULT_COUNT), 1)

    def test_doorbells_interrupt(self):
        a, b = self.machine("vm1"), self.machine("vm2")
        a.write32(DB_MASK, 0)
        b.write32(peer(0, 0x20), 1 << 5)
        self.assertTrue(a.interrupted(VECTOR_DOORBELL + 5))

    def test_registers_of_devices(self):
        a, b = self.machine("vm1"), self.machine("vm2")
        a.grant(0, 0, DEVICE, 0x1000)
        b.lead(0, 0, DEVICE)
        b.write32(0x10, 7, WINDOW)
        b.ask_window(0x14)
        self.assertEqual(a.serve_one(0), (DMA_WRITE, DEVICE + 0x10, b"\7\0\0\0"))
        self.assertEqual(a.serve_one(0x1234)[:2], (DMA_READ, DEVICE + 0x14))
        self.assertEqual(b.answered(), 0x1234)

    def test_who_waits_for_each_other(self):
        a, b = self.machine("vm1"), self.machine("vm2")
        for one, other in ((a, b), (b, a)):
            one.grant(0, 0, DEVICE, 0x1000)
            other.lead(0, 0, DEVICE)
        a.ask_window(0)  # of b, which does not answer while it waits itself:
        self.assertEqual(b.receive()[1], DMA_READ)
        b.ask_window(0)
        self.assertEqual(b.answered(), ONES)
        self.assertEqual(b.read32(STALE_READS), 1)

    def test_who_is_slow_holds_up_who_reads_there(self):
        a, b, c = self.machine("vm1"), self.machine("vm2"), self.machine("vm3")
        a.grant(0, 0, DEVICE, 0x1000)
        c.grant(0, 1, RAM, 0x1000)
        b.lead(0, 0, DEVICE)
        b.lead(1, 1, RAM)
        a.read32(MAGIC)
        b.ask_window(0)
        self.assertEqual(a.receive()[1], DMA_READ)  # and there it stays
        c.write32(peer(1, 0x20), 1)  # nobody else waits
        self.assertEqual(c.read32(NODE), 12)
        self.assertEqual(b.answered(), ONES)
        self.assertEqual((b.read32(FAULT_COUNT), b.read32(FAULT_REASON)), (1, PEER))
        b.write32(ENTRY, 9, WINDOW)
        self.assertEqual(c.ram[0], 9)

    def test_who_is_killed_reads_ones(self):
        b = self.machine("vm2")
        there, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            a = Machine(f"{self.dir}/state/vfio.vm1.0", vectors=40).start()
            a.grant(0, 0, RAM, 0x1000)
            a.grant(1, 0, DEVICE, 0x1000)
            os.write(theirs, b"x")
            a.receive()  # a read, which is not answered
            os.write(theirs, b"y")
            signal.pause()
        self.assertEqual(os.read(there, 1), b"x")
        start = b.read64(peer(0, 0x10))
        b.lead(0, 0, RAM)
        b.lead(1, 0, DEVICE)
        b.write64(0x10000 + 0x10, start)
        self.assertEqual(b.read32(0, WINDOW), 0)
        b.ask_window(ENTRY)
        self.assertEqual(os.read(there, 1), b"y")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.assertEqual(b.answered(), ONES)
        while b.read32(peer(0, 8)) & 1:  # until its hang-up was seen
            self.assertTrue(b.interrupted(0))
        self.assertEqual(b.read32(0, WINDOW), ONES)
        # It is there again, and has granted the same: that is another start.
        a = self.machine("vm1")
        a.grant(0, 0, RAM, 0x1000)
        self.assertGreater(b.read64(peer(0, 0x10)), start)
        self.assertEqual(b.read32(0, WINDOW), ONES)
        b.write64(0x10000 + 0x10, b.read64(peer(0, 0x10)))
        self.assertEqual(b.read32(0, WINDOW), 0)
        for fd in (there, theirs):
            os.close(fd)

    def test_cables(self):
        a, b = self.machine("vm1"), self.machine("vm2")
        a.grant(0, 0, RAM, 0x1000)
        b.lead(0, 0, RAM)
        self.assertEqual(self.link("link 4 0 down"), "ok")
        self.assertEqual(b.read32(0, WINDOW), ONES)
        self.assertEqual(b.read32(FAULT_REASON), LINK)
        self.assertEqual(self.link("link 4 0 up"), "ok")
        self.assertEqual(b.read32(0, WINDOW), 0)
        self.assertIn("no adapter 1", self.link("link 4 1 up"))
        self.assertIn("node id 44", self.link("link 44 0 up"))

    def test_there_is_no_mapped_memory(self):
        a = self.machine("vm1")
        self.assertEqual(a.read32(PIECES), 0)
        self.assertFalse(os.path.exists(f"{self.dir}/state/memory"))


class WithDrive(Ntb):
    """A drive of one machine, whose data, completions and lists lie in the other's memory."""
    devices = "devices: { disk: { type: nvme, size: 1M, queue_pairs: 2, vectors: 3 } },"
    BAR = 0x90000000
    READ, WRITE = 2, 1
    DATA_TRANSFER_ERROR = 4

    def drive(self, low):
        d = Drive(f"{self.dir}/state/vfio.disk")
        self.addCleanup(d.close)
        if low:
            d.map(0, low, [d.ram_fd])
        return d

    def both(self):
        a, b = self.machine("vm1"), self.machine("vm2")
        a.write(0x10 + 4 * WINDOW, struct.pack("=Q", self.BAR), CONFIG)
        b.grant(0, 0, RAM, RAM_BYTES)
        for entry, page in enumerate((7, 3, 5)):
            a.lead(entry, 0, RAM + page * ENTRY)
        return a, b

    def test_a_drive_beside_an_adapter_works_through_its_window(self):
        a, b = self.both()
        d = self.drive(1 << 20)
        d.set_irqs(d.irq)
        d.enable()
        # Completions lie in the third page, data in the first two, which are not in that order there.
        self.assertEqual(d.do(0, 5, self.BAR + 2 * ENTRY, 0, (15 << 16 | 1, 1 << 16 | 3)), 0)
        self.assertEqual(d.do(0, 1, RAM + 0x2000, 0, (15 << 16 | 1, 1 << 16 | 1)), 0)
        data = os.urandom(2 * ENTRY)

        def do(opcode, n):
            d.submit(1, opcode, self.BAR, 1, (0, 0, 15))
            self.assertTrue(d.interrupted(1))
            entry = b.ram[5 * ENTRY + 16 * n:5 * ENTRY + 16 * n + 16]
            self.assertEqual(struct.unpack_from("=HHHH", entry, 8), (n + 1, 1, n, 1))
            d.post32(0x100c, n + 1)

        b.ram[7 * ENTRY:8 * ENTRY], b.ram[3 * ENTRY:4 * ENTRY] = data[:ENTRY], data[ENTRY:]
        do(self.WRITE, 0)
        b.ram[3 * ENTRY:8 * ENTRY] = bytes(5 * ENTRY)
        do(self.READ, 1)
        self.assertEqual(b.ram[7 * ENTRY:8 * ENTRY] + b.ram[3 * ENTRY:4 * ENTRY], data)
        self.assertEqual((a.read32(FAULT_COUNT), b.read32(FAULT_COUNT), d.dma), (0, 0, []))

    def test_what_the_drive_is_refused(self):
        a, b = self.both()
        d = self.drive(1 << 20)
        d.start()
        a.read32(MAGIC)
        beyond = self.BAR + 3 * ENTRY
        self.assertEqual(d.do(1, self.WRITE, beyond, 1, (0, 0, 7)) & 0xff, self.DATA_TRANSFER_ERROR)
        self.assertEqual((a.read32(FAULT_COUNT), a.read32(FAULT_REASON)), (1, 1))
        b.write32(0x30000, 0)  # nothing is granted any more
        a.write32(FAULT_COUNT, 1)
        self.assertEqual(d.do(1, self.WRITE, self.BAR, 1, (0, 0, 7)) & 0xff, self.DATA_TRANSFER_ERROR)
        self.assertEqual((a.read32(FAULT_COUNT), b.read32(FAULT_COUNT)), (1, 1))

    def test_behind_an_iommu_an_address_is_not_one_of_the_bus(self):
        a, b = self.both()
        d = self.drive(4096)  # a page that an IOMMU may well have at address 0
        d.start()
        self.assertEqual(d.do(1, self.WRITE, self.BAR, 1, (0, 0, 7)) & 0xff, self.DATA_TRANSFER_ERROR)
        self.assertEqual((a.read32(FAULT_COUNT), b.read32(FAULT_COUNT)), (0, 0))


class Pool(Ntb):
    """Of an emulated host beside a machine whose windows are mapped."""
    topology = """cluster: c
hosts:
  one: { address: 127.0.0.1:7001, pool: 3M }
  two: { address: 127.0.0.1:7002, iommu: on }
  vm: { kind: machine, address: 127.0.0.1:7003, window: mapped, ram: 4M, adapters: [{ window: 1M, entries: 256 }] }
"""

    def test_it_is_a_file_by_which_it_is_known(self):
        state = f"{self.dir}/state"
        self.assertEqual(sorted(n for n in os.listdir(state) if n.startswith("memory")), ["memory", "memory.one"])
        fd = os.open(f"{state}/memory.one", os.O_RDWR)
        self.assertEqual(os.fstat(fd).st_size, 4 << 20)  # that of a BAR
        header = os.pread(fd, 16, 0)
        for size in (0, 8 << 20):  # programs of the host have it, too
            self.assertRaises(PermissionError, os.ftruncate, fd, size)
        for seal in (fcntl.F_SEAL_WRITE, F_SEAL_FUTURE_WRITE):  # nobody could map it any more
            self.assertRaises(PermissionError, fcntl.fcntl, fd, fcntl.F_ADD_SEALS, seal)
        os.close(fd)
        vm = self.machine("vm")
        self.assertEqual(vm.read32(PIECES), 2)
        self.assertEqual([vm.read32(piece(i, 4)) for i in range(2)], [0, 4])
        self.assertEqual([vm.read64(piece(1, at)) for at in (16, 24)], [3 << 20, 0])
        self.assertEqual(header, struct.pack("<QQ", vm.read64(0x58), 4))


class Mapped(WithDrive):
    window, ram = "mapped", "ram: 4M,"

    def test_memory_is_one_file(self):
        a, b = self.machine("vm1"), self.machine("vm3")
        path = f"{self.dir}/state/memory"
        self.assertEqual(os.stat(path).st_size, 16 << 20)  # that of a BAR
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(b.read32(PIECES), 3)
        self.assertEqual((b.read32(piece(0)), b.read32(piece(1)), b.read32(piece(2))), (ONES, 0, 1))
        self.assertEqual([b.read64(piece(0, at)) for at in (8, 16, 24)], [0, 4 << 20, 8 << 20])
        self.assertEqual([b.read64(piece(1, at)) for at in (8, 16, 24)], [0, 4 << 20, 0])
        self.assertEqual([b.read64(piece(2, at)) for at in (8, 16, 24)], [0, 4 << 20, 4 << 20])
        self.assertEqual(a.read64(piece(2, 24)), 8 << 20)

    def test_memory_is_the_machines_that_describes_it(self):
        """QEMU says where it lies in the machine's part, not in the file."""
        a, b = self.machine("vm1"), self.machine("vm2")
        fd = os.open(f"{self.dir}/state/memory", os.O_RDWR)
        for m in (a, b):
            m.map(0, 4 << 20, [fd])
        b.grant(0, 0, 0x2000, 0x1000)
        a.lead(0, 0, 0x2000)
        a.write32(0x10, 0xc0ffee, WINDOW)
        self.assertEqual(os.pread(fd, 4, 0x2010), bytes(4))
        self.assertEqual(struct.unpack("=I", os.pread(fd, 4, (4 << 20) + 0x2010)), (0xc0ffee,))
        os.close(fd)

    def test_a_drive_reaches_what_the_file_shows(self):
        """Its QEMU has described the file as it does with a BAR that is plain memory."""
        a = self.machine("vm1")
        d = self.drive(0)
        fd = os.open(f"{self.dir}/state/memory", os.O_RDWR)
        d.map(self.BAR, 16 << 20, [fd])
        d.start()
        with mmap.mmap(fd, 16 << 20) as file:
            there, data = (4 << 20) + 7 * ENTRY, os.urandom(ENTRY)  # of vm2, which is off
            file[there:there + ENTRY] = data
            self.assertEqual(d.do(1, self.WRITE, self.BAR + there, 1, (0, 0, 7)) & 0xff, 0)
            file[there:there + ENTRY] = bytes(ENTRY)
            self.assertEqual(d.do(1, self.READ, self.BAR + there, 1, (0, 0, 7)) & 0xff, 0)
            self.assertEqual(file[there:there + ENTRY], data)
        os.close(fd)
        self.assertEqual((a.read32(FAULT_COUNT), d.dma), (0, []))


unittest.main()
