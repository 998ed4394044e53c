#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio-emu's models served by vfio-user, driven by an initiator of our own: no QEMU.

usage: vfio_live_test.py SMARTIO-EMU [--record FOLDER]
--record: write what the initiator sends into FOLDER, as seeds for tests/fuzz/vfio_fuzz.c.
"""
import errno
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

from initiator import (ASQ, CC, CONFIG, CSTS, DMA_READ, DMA_WRITE, FOREIGN, GET_INFO, GET_IRQ_INFO, GET_REGION_INFO, RAM, RAM_BYTES,
                       REGION_READ, REGION_WRITE, REPLY, RESET, WAIT, Drive, Initiator, Refused)

EMU = sys.argv.pop(1)
RECORD = None
if "--record" in sys.argv:
    RECORD = sys.argv.pop(sys.argv.index("--record") + 1)
    sys.argv.remove("--record")
TOPOLOGY = """cluster: strangers
hosts:
  vm:
    kind: machine
    devices:
      disk: { type: nvme, size: 4M, queue_pairs: 2, queue_entries: 16, vectors: 3, serial: STRANGER }
      other: { type: nvme, size: 1M }
      acc: { type: accelerator, size: 1M, units: 1, vectors: 3 }
"""


class Accelerator(Initiator):
    """With a driver: rings of 8 commands at RAM + 4K * queue, completions at RAM + 64K + 256 * queue."""

    MEMORY, LOCAL = 2, 1 << 63

    def start(self):
        self.given = [0, 0, 0]
        self.write(4, struct.pack("=H", 6), CONFIG)
        self.set_irqs(self.irq)
        for queue in range(3):
            at = 0x40 + 0x20 * queue
            self.write(at + 8, struct.pack("=QII", RAM + 0x1000 * queue, 8, queue))
            self.write32(at, 1)
            assert self.read32(at + 4) == 1

    def do(self, queue, operation, *arguments):
        """Status and result."""
        n = self.given[queue]
        told = 0x10000 + 256 * queue + 16 * (n % 8)
        at = 0x1000 * queue + 64 * (n % 8)
        self.ram[at:at + 64] = struct.pack("=IIQ6Q", operation, 1, RAM + told, *arguments, *[0] * (6 - len(arguments)))
        self.given[queue] = n + 1
        self.post32(0x1000 + 64 * queue, n + 1)
        assert self.interrupted(queue), "no interrupt"
        result, status, number = struct.unpack_from("=QII", self.ram, told)
        assert number == n + 1
        return status, result


class Vfio(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-vfio-")
        self.addCleanup(shutil.rmtree, self.dir)
        with open(f"{self.dir}/topology.yaml", "w", encoding="ascii") as f:
            f.write(TOPOLOGY)
        os.mkdir(f"{self.dir}/state", 0o700)
        self.log = open(f"{self.dir}/log", "w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        ready, theirs = os.pipe()
        self.emu = subprocess.Popen(
            [EMU, "--topology", f"{self.dir}/topology.yaml", "--state", f"{self.dir}/state", "--ready-fd",
             str(theirs)], pass_fds=[theirs], stderr=self.log)
        os.close(theirs)
        self.addCleanup(self.end)
        self.assertEqual(os.read(ready, 6), b"ready\n")
        os.close(ready)

    def end(self):
        self.assertIsNone(self.emu.poll(), "it has ended")
        self.emu.terminate()
        self.assertEqual(self.emu.wait(WAIT), 0)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def initiator(self, device="disk", **options):
        i = Drive(f"{self.dir}/state/vfio.{device}", **options)
        self.addCleanup(i.close)
        return i

    def record(self, name, i):
        if RECORD:
            with open(os.path.join(RECORD, name), "wb") as f:
                f.write(i.sent)

    def test_the_drive_is_used(self):
        i = self.initiator()
        self.assertIn(b"max_data_xfer_size", i.version)
        self.assertEqual(i.ask(GET_INFO, struct.pack("=IIII", 16, 0, 0, 0)), struct.pack("=IIII", 16, 3, 9, 5))
        info = struct.unpack("=IIIIQQ", i.ask(GET_REGION_INFO, struct.pack("=IIIIQQ", 32, 0, 0, 0, 0, 0)))
        self.assertEqual(info[1:3] + info[4:5], (3, 0, 0x4000))
        irqs = struct.unpack("=IIII", i.ask(GET_IRQ_INFO, struct.pack("=IIII", 16, 0, 2, 0)))
        self.assertEqual(irqs[3], 3)
        self.assertEqual(i.read(0, 4, CONFIG), struct.pack("=HH", 0x1b36, 0x10))
        self.assertEqual(i.read(9, 3, CONFIG), b"\x02\x08\x01")
        i.start()
        self.assertEqual(i.do(0, 6, RAM + 0x10000, 0, (1,)), 0)
        self.assertEqual(i.ram[0x10004:0x10018], b"STRANGER".ljust(20))
        data = os.urandom(8192)
        i.ram[0x20000:0x22000] = data
        for n in range(40):  # the queues wrap
            self.assertEqual(i.do(1, 1, RAM + 0x20000, 1, (16 * n, 0, 15)), 0)
            self.assertEqual(i.do(1, 2, RAM + 0x30000, 1, (16 * n, 0, 15)), 0)
            self.assertEqual(i.ram[0x30000:0x32000], data)
            i.ram[0x30000:0x32000] = bytes(8192)
        self.record("use", i)

    def test_an_accelerator_is_used(self):
        i = Accelerator(f"{self.dir}/state/vfio.acc")
        self.addCleanup(i.close)
        self.assertEqual(i.read(0, 4, CONFIG), struct.pack("=HH", 0x1b36, 0x11f1))
        self.assertEqual(i.read(9, 3, CONFIG), b"\x00\x00\x12")
        self.assertEqual(i.read32(0), 0x41454d53)
        i.write32(0, 7)
        self.assertEqual(i.read32(0), 0x41454d53)
        i.start()
        data = bytes(n * 7 % 256 for n in range(20000))
        i.ram[0x20000:0x20000 + len(data)] = data
        for _ in range(20):
            self.assertEqual(i.do(0, 1, RAM + 0x20000, i.LOCAL | 0x100, len(data)), (0, len(data)))
        self.assertEqual(i.read(0x100, 64, i.MEMORY), data[:64])
        words = struct.unpack(f"={len(data) // 4}I", data)
        total = sum(w * (2 * n + 1) for n, w in enumerate(words)) % 2**64
        self.assertEqual(i.do(2, 3, i.LOCAL | 0x100, len(data)), (0, total))
        self.assertEqual(i.do(1, 1, i.LOCAL | 0x100, RAM + 0x30000, len(data)), (0, len(data)))
        self.assertEqual(i.ram[0x30000:0x30000 + len(data)], data)
        # Memory that nobody mapped, and a kernel that there is not.
        self.assertEqual(i.do(0, 1, RAM - 4096, i.LOCAL, 4096)[0], 2)
        self.assertEqual(i.do(2, 99)[0], 1)
        i.write(0x100, bytes(4), i.MEMORY)
        self.assertEqual(i.do(2, 5, i.LOCAL | 0x100, 0), (0, 0))
        i.ask(RESET)
        self.assertEqual(i.read(0x100, 64, i.MEMORY), bytes(64))
        self.assertEqual(i.read32(0x44), 0)

    def test_registers_are_exact(self):
        i = self.initiator()
        before = i.read(0, 0x1000)
        i.write(0, b"\xff" * 8)  # CAP
        i.write32(CSTS, 0xffffffff)
        i.write(0x800, b"\xff" * 16)  # reserved
        self.assertEqual(i.read(0, 0x1000), before)
        i.write32(0xc, 5)  # INTMS
        i.write32(0x10, 1)  # INTMC
        self.assertEqual((i.read32(0xc), i.read32(0x10)), (4, 4))
        i.write(0x2000, b"\x11" * 48)  # the table of vectors is the peer's
        self.assertEqual(i.read(0x2000, 48), b"\x11" * 48)
        i.write(0x2030, b"\xff" * 8)  # what is pending is not
        self.assertEqual(i.read(0x2030, 8), bytes(8))
        self.record("registers", i)

    def test_wild_dma_harms_nobody(self):
        i = self.initiator()
        i.start()
        i.ram[0x10000:0x11000] = b"x" * 4096
        for prp in (0, RAM + RAM_BYTES, 1 << 63, 2**64 - 4096):
            i.do(1, 2, prp, 1, (0, 0, 7))  # posted writes: the drive does not hear that they are lost
            self.assertNotEqual(i.do(1, 1, prp, 1, (0, 0, 7)), 0)
        # Memory that was taken back.
        i.unmap(RAM, RAM_BYTES)
        i.map(RAM, 0x10000, [i.ram_fd])
        with self.assertRaises(Refused) as refused:
            i.map(RAM + 0xf000, 0x2000, [i.ram_fd])
        self.assertEqual(refused.exception.args[0], errno.EEXIST)
        i.do(1, 2, RAM + 0x10000, 1, (0, 0, 7))
        self.assertEqual(i.ram[0x10000:0x11000], b"x" * 4096)
        self.assertEqual(i.do(1, 2, RAM + 0x8000, 1, (0, 0, 7)), 0)
        self.assertIn("fault no. 1: cannot write", self.said())
        self.record("wild", i)

    def test_who_is_no_bus_master_moves_nothing(self):
        i = self.initiator()
        i.set_irqs(i.irq)
        i.enable(master=False)
        i.submit(0, 6, RAM + 0x10000, 0, (1,))
        while not i.read32(CSTS) & 2:  # fatal: its queue cannot be read
            pass
        self.assertEqual(i.ram[0x10000:0x11000], bytes(4096))
        self.assertIn("it is no bus master", self.said())

    def test_accesses_to_what_is_no_memory_are_the_peers(self):
        i = self.initiator()
        i.map(FOREIGN, 0x1000, [])
        i.start()
        i.submit(1, 2, FOREIGN, 1, (0, 0, 7))
        while not i.dma:
            i.read32(CSTS)  # the server's message comes before a reply
        self.assertEqual(i.dma, [(DMA_WRITE, FOREIGN, bytes(4096))])
        self.assertTrue(i.interrupted(1))
        self.assertEqual(i.completed(1), 0)
        # The model cannot wait for what it reads there.
        self.assertNotEqual(i.do(1, 1, FOREIGN, 1, (0, 0, 7)), 0)

    def test_resets(self):
        i = self.initiator()
        i.start()
        i.ram[0x20000:0x21000] = b"kept" * 1024
        self.assertEqual(i.do(1, 1, RAM + 0x20000, 1, (0, 0, 7)), 0)
        devctl = 0x80 + 8
        for reset in (lambda: i.ask(RESET), lambda: i.write(devctl, b"\0\x80", CONFIG)):
            reset()
            self.assertEqual((i.read32(CC), i.read32(CSTS), i.read32(ASQ)), (0, 0, 0))
            self.assertEqual(i.read(4, 2, CONFIG), b"\0\0")
            i.start()
            self.assertEqual(i.do(1, 2, RAM + 0x30000, 1, (0, 0, 7)), 0)
            self.assertEqual(i.ram[0x30000:0x31000], b"kept" * 1024)
        self.record("reset", i)

    def test_a_peer_that_is_killed_leaves_a_fresh_drive(self):
        i = self.initiator()
        i.start()
        i.ram[0x20000:0x21000] = b"kept" * 1024
        self.assertEqual(i.do(1, 1, RAM + 0x20000, 1, (0, 0, 7)), 0)
        child = os.fork()
        if child == 0:  # in the middle of a message, with commands on their way
            for n in range(8):
                i.submit(1, 2, RAM + 0x40000, 1, (0, 0, 7))
            i.sock.sendall(struct.pack("=HHIII", 0, REGION_WRITE, 4096, 0, 0) + bytes(100))
            os._exit(0)
        os.waitpid(child, 0)
        i.sock.close()
        i = self.initiator()
        self.assertEqual((i.read32(CC), i.read32(CSTS)), (0, 0))
        i.start()
        self.assertEqual(i.do(1, 2, RAM + 0x30000, 1, (0, 0, 7)), 0)
        self.assertEqual(i.ram[0x30000:0x31000], b"kept" * 1024)

    def test_one_peer_at_a_time(self):
        i = self.initiator()
        other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        other.settimeout(WAIT)
        other.connect(f"{self.dir}/state/vfio.disk")
        self.assertEqual(other.recv(1), b"")
        other.close()
        i.start()

    def test_who_cuts_its_memory_short_harms_itself_alone(self):
        i, o = self.initiator(), self.initiator("other")
        i.start()
        o.start()
        os.ftruncate(i.ram_fd, 0x10000)
        # Its data are gone: it reads zeros, or writes to nobody; the queues are gone with them.
        i.submit(1, 2, RAM + 0x200000, 1, (0, 0, 7))
        i.interrupted(1)
        self.assertEqual(o.do(1, 1, RAM + 0x20000, 1, (0, 0, 7)), 0)
        i.sock.close()
        i = self.initiator()
        i.start()

    def test_who_does_not_read_waits_for_itself_alone(self):
        i, o = self.initiator(), self.initiator("other")
        i.sock.setblocking(False)
        ask = struct.pack("=HHIIIQII", 1, REGION_READ, 32, 0, 0, 0, 0, 0x4000)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += i.sock.send(ask * 64)
        except BlockingIOError:
            pass
        self.assertLess(sent, 64 << 20)
        o.start()
        self.assertEqual(o.do(1, 1, RAM + 0x20000, 1, (0, 0, 7)), 0)
        # It reads at last: everything is there, in order.
        i.sock.settimeout(WAIT)
        for _ in range(sent // 32):
            number, command, flags, error, reply = i.receive()
            self.assertEqual((number, command, flags, error, len(reply)), (1, REGION_READ, REPLY, 0, 0x4010))

    def test_nonsense_ends_the_connection(self):
        for bad in (b"\xff" * 16, struct.pack("=HHIII", 1, RESET, 15, 0, 0),
                    struct.pack("=HHIII", 1, DMA_READ, 16, REPLY, 0)):
            i = self.initiator()
            i.sock.sendall(bad)
            with self.assertRaises((EOFError, ConnectionError)):
                while True:
                    i.receive()
            i.close = lambda: None
        pipe = os.pipe()
        i = self.initiator()
        with self.assertRaises(Refused):  # it may block whoever writes to it
            i.set_irqs([pipe[1]])
        for fd in pipe:
            os.close(fd)
        with self.assertRaises(Refused):  # shorter than it says
            i.map(0, RAM_BYTES * 2, [i.ram_fd])


unittest.main()
