#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio passthrough: a borrowed drive driven by a machine that is no QEMU but our own initiator of vfio-user. The
machine's memory, doorbells and interrupts are the drive's own: what passes through the relay and between the daemons
while it works is counted, and is nothing."""
import fcntl
import os
import random
import select
import signal
import socket
import struct
import time

import base
import relays

from initiator import (CC, CONFIG, CSTS, GET_IRQ_INFO, RAM, RAM_BYTES, RESET, SET_IRQS, WAIT, Initiator,  # noqa: E402
                       Refused)
from mapped_drive import ONES  # noqa: E402

TOPOLOGY = """cluster: guests
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    devices:
      nvme0: { type: nvme, size: 16M, queue_pairs: 2, queue_entries: 16, vectors: 3, serial: LENT }
      mem0: { type: memory, size: 1M }
  open:
    ram: 64M
    devices:
      nvme1: { type: nvme, size: 1M }
  second:
    ram: 64M
    iommu: on
    devices:
      nvme2: { type: nvme, size: 16M, queue_pairs: 2, queue_entries: 16, vectors: 3, serial: OTHER }
      plain: { type: nvme, size: 1M, vectors: 0 }
      pf0: { type: nvme, size: 16M, queue_pairs: 2, queue_entries: 16, vectors: 3, serial: PF, virtual_functions: 1 }
  client1: { ram: 64M }
  client2: { ram: 64M, iommu: on }
"""


class Passthrough(relays.RelayTest):
    topology = TOPOLOGY

    def test_a_machine_drives_it(self):
        child, path = self.relay()
        self.assertEqual(self.device()["borrowers"], 0)
        m = self.machine(path)
        self.assertEqual((self.device()["borrowers"], self.device()["state"]), (1, "exclusive"))
        self.assertEqual(m.read(0, 4, CONFIG), struct.pack("=HH", 0x1b36, 0x10))
        self.assertEqual(m.read(9, 3, CONFIG), b"\x02\x08\x01")
        m.start()
        self.assertEqual(m.do(0, 6, RAM + 0x10000, 0, (1,)), 0)
        self.assertEqual(m.ram[0x10004:0x10018], b"LENT".ljust(20))
        before, sent = self.traffic(), len(m.sent)
        m.use(0, 100)
        self.assertEqual(len(m.sent), sent, "a message of the machine's while it works")
        self.assertEqual(self.traffic(), before)
        # The machine starts again: the drive is reset, its doorbells still lead to it.
        m.ask(RESET)
        self.assertEqual(m.read32(CC), 0)
        m.start()
        data = m.use(0)
        # It ends: the device is everybody's, and what was written stays.
        m.sock.close()
        self.says(child, "is returned")
        self.assertEqual(self.device()["borrowers"], 0)
        other, path2 = self.relay(host="client2")
        m2 = self.machine(path2)
        m2.start()
        self.assertEqual(m2.do(1, 2, RAM + 0x30000, 1, (0, 0, 15)), 0)
        self.assertEqual(m2.ram[0x30000:0x32000], data)
        m2.sock.close()
        self.says(other, "is returned")
        self.end(child)
        self.end(other)
        self.assertEqual(os.path.exists(path), False)

    def test_what_is_refused(self):
        for device, host, say in (("nvme1", "client1", "its host's IOMMU does not translate"),
                                  ("plain", "client1", "no MSI-X: INTx is not passed through"),
                                  ("nothing", "client1", "nothing")):
            done = self.smartio("run", "-n", host, "--", base.TOOL, "passthrough", device, "--socket",
                                f"{self.dir}/x", status=1)
            self.assertIn(say, done.stderr)
        done = self.smartio("run", "-n", "client1", "--", base.TOOL, "passthrough", "nvme0", "--socket",
                            f"{self.dir}/{'x' * 120}", status=1)
        self.assertIn("107 bytes at most", done.stderr)
        mine = self.file("mine", "a file, and nobody's socket")
        done = self.smartio("run", "-n", "client1", "--", base.TOOL, "passthrough", "nvme0", "--socket", mine, status=1)
        self.assertIn("is no socket", done.stderr)
        self.assertTrue(os.path.exists(mine))
        child, path = self.relay()
        m = self.machine(path, ram=False)
        # A second machine, here and on another host, and a relay at a socket that is served.
        self.assertRaises((EOFError, ConnectionError), lambda: self.machine(path))
        self.says(child, "another one has it")
        other, path2 = self.relay(host="client2")
        self.assertRaises((EOFError, ConnectionError), lambda: self.machine(path2))
        self.says(other, "cannot be borrowed")
        done = self.smartio("run", "-n", "client2", "--", base.TOOL, "passthrough", "nvme0", "--socket", path2, status=1)
        self.assertIn("in use", done.stderr)
        # It, and whoever else only connects, has not had the device borrowed, which would reset it.
        m.sock.close()
        self.says(child, "is returned")
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
        self.smartio("run", "-n", "client1", "--", base.TOOL, "passthrough", "nvme0", "--socket", path, status=1)
        m = self.machine(path, ram=False)
        self.assertIn("is borrowed", child.stderr.readline())
        # Memory that could be cut short, or is no whole pages; interrupts that are no eventfds.
        loose = os.memfd_create("loose", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(loose, 1 << 20)
        self.assertRaises(Refused, m.map, RAM, 1 << 20, [loose])
        self.assertIn("sealed against shrinking", child.stderr.readline())
        fcntl.fcntl(loose, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.assertRaises(Refused, m.map, RAM, 2 << 20, [loose])
        self.assertRaises(Refused, m.map, RAM, 1000, [loose])
        # An address that the device cannot have: where interrupts go, beyond what it can send.
        for at in (0xfee00000, 1 << 60):
            self.assertRaises(Refused, m.map, at, 1 << 20, [loose])
            self.assertIn("the device cannot have it there", self.says(child, f"at {at:#x}"))
        m.map(RAM, 1 << 20, [loose])
        self.assertRaises(Refused, m.map, RAM - 4096, 1 << 20, [loose])  # two at one
        self.assertRaises(Refused, m.set_irqs, [loose])
        os.close(loose)
        info = struct.unpack("=IIII", m.ask(GET_IRQ_INFO, struct.pack("=IIII", 16, 0, 0, 0)))
        self.assertEqual(info[3], 0, "it has INTx")
        self.assertEqual(m.read(0x3d, 1, CONFIG), b"\0", "it has an interrupt pin")
        self.assertRaises(Refused, m.ask, SET_IRQS, struct.pack("=IIIII", 20, 4 | 32, 0, 0, 1), [m.irq[0]])
        # Configuration space: what a machine may write is what stays.
        before = m.read(0, 256, CONFIG)
        m.write(0, bytes(4), CONFIG)
        m.write(0x08, bytes(4), CONFIG)
        m.write(0x2c, bytes(4), CONFIG)
        m.write(0x34, b"\xff", CONFIG)
        self.assertEqual(m.read(0, 256, CONFIG), before)
        m.sock.close()
        self.says(child, "is returned")
        # Now the other one can have it.
        m2 = self.machine(path2)
        m2.start()
        m2.use(0, 2)
        self.end(other)  # under its machine
        self.assertRaises((EOFError, ConnectionError), m2.read32, CSTS)
        self.end(child)

    def test_memory_that_is_not_the_machines(self):
        """Random addresses: no command reaches anything. What the drive faults is counted."""
        child, path = self.relay()
        m = self.machine(path)
        m.start()
        n = int(os.environ.get("SMARTIO_RANDOM_ADDRESSES", "400"))
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        before = self.device_faults()
        pages = bytes(m.ram[0x40000:])
        for _ in range(n):
            while True:
                at = rng.getrandbits(rng.choice((32, 36, 48, 64))) & ~0xfff
                if not RAM - 8192 < at < RAM + RAM_BYTES and at >> 20 != 0xfee:
                    break
            m.do(1, rng.choice((1, 2)), at, 1, (rng.randrange(1000), 0, 7))  # one page, read or written
        self.assertEqual(self.device_faults() - before, n, f"seed {seed}")
        self.assertEqual(bytes(m.ram[0x40000:]), pages)
        m.use(0, 2)
        # Without the bus master bit it reaches nothing of the machine either.
        m.write(4, struct.pack("=H", 2), CONFIG)
        before = self.device_faults()
        m.submit(1, 2, RAM + 0x30000, 1, (0, 0, 7))
        end = time.monotonic() + WAIT
        while self.device_faults() == before and time.monotonic() < end:
            time.sleep(0.01)
        self.assertGreater(self.device_faults(), before)
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_memory_comes_and_goes(self):
        """Ranges that are plugged in and out while the device works: low and high, two of one file."""
        child, path = self.relay()
        m = self.machine(path)
        m.start()
        more = os.memfd_create("more", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(more, 4 << 20)
        fcntl.fcntl(more, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        data = m.use(0, 1)
        for at, offset in ((0, 0), (0x2000, 1 << 20), (1 << 40, 2 << 20)):
            m.ask(2, struct.pack("=IIQQQ", 32, 3, offset, at, 0x2000), [more])
            self.assertEqual(m.do(1, 2, at, 1, (0, 0, 15)), 0)
            self.assertEqual(os.pread(more, 8192, offset), data)
        before = self.device_faults()
        m.unmap(0x2000, 0x2000)
        m.do(1, 2, 0x2000, 1, (0, 0, 7))
        self.assertGreater(self.device_faults(), before)
        # What is to be read alone, firmware, is not for devices.
        m.ask(2, struct.pack("=IIQQQ", 32, 1, 1 << 20, 0x2000, 0x2000), [more])
        m.do(1, 2, 0x2000, 1, (0, 0, 7))
        self.assertEqual(os.pread(more, 8192, 1 << 20), data)
        os.close(more)
        m.use(0, 2)
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_vectors_that_are_set_again(self):
        """Each fires once, at once, for what may have come meanwhile; and then for what comes."""
        child, path = self.relay()
        m = self.machine(path)
        m.start()
        m.use(0, 1)
        for turn in range(100):
            before, m.irq = m.irq, [os.eventfd(0, os.EFD_NONBLOCK) for _ in m.irq]
            Initiator.set_irqs(m, m.irq)
            for fd in m.irq:
                self.assertEqual(os.eventfd_read(fd), 1, turn)
            self.assertEqual(m.do(1, 2, RAM + 0x30000, 1, (0, 0, 15)), 0)
            for fd in before:
                self.assertRaises(BlockingIOError, os.eventfd_read, fd)
                os.close(fd)
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_an_eventfd_that_is_full(self):
        """Whoever adds to it would wait until its emulator reads it, were it not the kernel that adds."""
        child, path = self.relay("nvme0", "client1", "--unplug")
        m = self.machine(path)
        full, most = os.eventfd(0), (1 << 64) - 2
        m.ask(SET_IRQS, struct.pack("=IIIII", 20, 4 | 32, 2, 0, 1), [full])
        os.eventfd_write(full, most)
        m.ask(SET_IRQS, struct.pack("=IIIII", 20, 1 | 32, 2, 0, 1))  # it is triggered
        m.ask(SET_IRQS, struct.pack("=IIIII", 20, 4 | 32, 4, 0, 1), [full])
        self.assertGreaterEqual(os.eventfd_read(full), most)
        os.eventfd_write(full, most)
        self.smartio("device", "reset", "nvme0", "--force")
        self.says(child, "is lost to its machine")  # which is asked to unplug it
        self.assertTrue(m.dead())
        self.assertGreaterEqual(os.eventfd_read(full), most)
        os.close(full)
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_two_devices_of_different_lenders(self):
        """In one machine, that is: with one memory."""
        children, machines = [], []
        for device in ("nvme0", "nvme2"):
            child, path = self.relay(device)
            children.append(child)
            machines.append(self.machine(path))
        for m in machines:
            m.start()
        first, second = (m.use(0) for m in machines)
        # Through the memory of the first machine: the second device gets that, too.
        m = machines[1]
        m.map(RAM + RAM_BYTES, RAM_BYTES, [machines[0].ram_fd])
        machines[0].ram[0x20000:0x22000] = first
        self.assertEqual(m.do(1, 1, RAM + RAM_BYTES + 0x20000, 1, (64, 0, 15)), 0)
        self.assertEqual(m.do(1, 2, RAM + 0x30000, 1, (64, 0, 15)), 0)
        self.assertEqual(m.ram[0x30000:0x32000], first)
        self.assertNotEqual(first, second)
        for m, child in zip(machines, children):
            m.sock.close()
            self.says(child, "is returned")
            self.end(child)

    def test_who_says_nothing(self):
        """And stays connected is in nobody's way; of too many the first ones are turned away."""
        child, path = self.relay()
        silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(6)]
        for s in silent:
            self.addCleanup(s.close)
            s.connect(path)
        for s in silent[:2]:
            self.assertEqual(s.recv(1), b"")
        m = self.machine(path)
        m.start()
        m.use(0, 2)
        for s in silent[3:]:
            self.assertRaises(BlockingIOError, s.recv, 1, socket.MSG_DONTWAIT)
        # It would have the device, and another one has it.
        silent[-1].send(b"x")
        self.assertRaises(ConnectionError, silent[-1].recv, 1)
        self.says(child, "another one has it")
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def lose(self, how):
        child, path = self.relay("nvme0", "client1", "--unplug")
        m = self.machine(path)
        m.start()
        request = os.eventfd(0, os.EFD_NONBLOCK)
        m.ask(SET_IRQS, struct.pack("=IIIII", 20, 4 | 32, 4, 0, 1), [request])
        m.use(0, 2)
        how(child)
        self.says(child, "is lost to its machine")
        self.assertTrue(select.select([request], [], [], 10)[0], "nobody asked to unplug it")
        self.assertEqual(os.eventfd_read(request), 1)
        os.close(request)
        self.assertTrue(m.dead())
        self.assertEqual(m.read32(0, CONFIG), ONES)
        m.write32(CC, 0x460001)  # into the void
        m.post32(0x1000, 1)
        m.ask(RESET)
        self.assertTrue(m.dead())
        m.sock.close()
        self.says(child, "is returned")
        return child, path

    def test_the_lender_dies(self):
        child, path = self.lose(lambda _: self.crash(self.state, self.node("lender")))
        self.smartio("cluster", "restart-node", "lender")
        m = self.machine(path)  # the same relay, the same disk
        m.start()
        m.use(0, 2)
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_the_device_is_pulled_out(self):
        child, path = self.lose(lambda _: self.smartio("fault", "device", "nvme0", "out"))
        self.assertRaises((EOFError, ConnectionError), lambda: self.machine(path))
        self.says(child, "cannot be borrowed")
        self.smartio("fault", "device", "nvme0", "in")
        m = self.machine(path)
        m.start()
        m.use(0, 2)
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_it_is_reset_by_force(self):
        """The machine's doorbells would lead nowhere, and its driver wait for ever."""
        child, path = self.lose(lambda _: self.smartio("device", "reset", "nvme0", "--force"))
        m = self.machine(path)
        m.start()
        m.ask(RESET)  # the machine's own: as often as it likes
        m.ask(RESET)
        m.start()
        m.use(0, 2)
        m.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_the_cable_is_pulled(self):
        child, _ = self.lose(lambda _: self.smartio("fault", "link", "client1", "down"))
        self.end(child)

    def test_the_relay_is_killed(self):
        """Under I/O: everything is taken back, and the next machine finds the drive as it was."""
        child, path = self.relay()
        m = self.machine(path)
        m.start()
        data = m.use(0, 2)
        for n in range(10):
            m.submit(1, 1, RAM + 0x20000, 1, (16 * n, 0, 15))
        for pid, words in base.processes_with("XDG_RUNTIME_DIR", self.dir):
            if words.split()[1:2] == ["passthrough"]:
                os.kill(pid, signal.SIGKILL)
        self.assertNotEqual(child.wait(60), 0)
        self.assertRaises((EOFError, ConnectionError), m.read32, CSTS)
        audit = self.smartio("doctor", "--audit", "--within", "60")
        self.assertEqual(self.device()["quarantined"], 0, audit.stderr)
        # Its doorbells lead nowhere now.
        child, path = self.relay(host="client2")
        m2 = self.machine(path)
        m2.start()
        for n in range(16):
            m.post32(0x1008, n)
        self.assertEqual(m2.do(1, 2, RAM + 0x30000, 1, (16, 0, 15)), 0)
        self.assertEqual(m2.ram[0x30000:0x32000], data)
        m2.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_the_relay_ends_under_a_machine(self):
        """Its emulator lives on, with the doorbells mapped: they lead nowhere. A physical function, too, whose reset takes
        its virtual ones along."""
        for name in ("nvme2", "pf0"):
            child, path = self.relay(name)
            m = self.machine(path)
            m.start()
            data = m.use(0, 2)
            self.end(child)
            child, path = self.relay(name, "client2")
            m2 = self.machine(path)
            m2.start()
            m2.use(64, 2)
            # The next one's queue, as the emulator that lives on would have the drive see it: far behind its commands.
            before = self.device_faults(name)
            for n in range(16):
                m.doorbells[(0x1000 - m.area[0]) // 4] = m.doorbells[(0x1008 - m.area[0]) // 4] = n
            self.assertEqual(m2.do(1, 2, RAM + 0x30000, 1, (16, 0, 15)), 0)
            self.assertEqual(m2.ram[0x30000:0x32000], data)
            m2.use(64, 2)
            self.assertEqual(m2.read32(CSTS) & 3, 1, "it has failed")
            self.assertEqual(self.device_faults(name), before)
            m2.sock.close()
            self.says(child, "is returned")
            self.end(child)


if __name__ == "__main__":
    base.main()
