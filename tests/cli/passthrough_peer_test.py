#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio passthrough with two devices of different lenders in one machine: DMA from one to the BAR of the other, where the
machine has it. What crosses is counted; what the machine moves, disables, resets or loses is out of reach at once."""
import os
import shutil
import struct
import subprocess
import sys
import time

import base
import relays

from initiator import CONFIG, DMA_MAP, RAM, RESET, SET_IRQS, WAIT, Initiator  # noqa: E402
from mapped_drive import BYTES, DATA  # noqa: E402

TOPOLOGY = """cluster: guests
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    devices:
      nvme0: { type: nvme, size: 16M, queue_pairs: 2, queue_entries: 16, vectors: 3, serial: LENT }
      mem0: { type: memory, size: 1M }
  second:
    ram: 64M
    iommu: on
    devices:
      mem1: { type: memory, size: 1M }
  client1: { ram: 64M }
"""
BAR, MOVED, BAR_BYTES = 0xc0000000, 0x4000000000, 1 << 20
BAR_AT = 0x18  # in configuration space: BAR 2, the memory

# Another process, of another machine: it says its first words and sees what comes.
STRANGER = """import sys
sys.path.insert(0, sys.argv[2])
from initiator import Initiator
try:
    Initiator(sys.argv[1], ram=False).close()
except (EOFError, ConnectionError):
    sys.exit(3)
"""


class Memory(Initiator):
    """A machine's memory device: its BAR is where the machine wants it."""

    def __init__(self, path):
        super().__init__(path, ram=False, vectors=1, sealed=True)

    def place(self, at, enabled=True):
        self.write(4, struct.pack("=H", 0), CONFIG)
        self.write(BAR_AT, struct.pack("=Q", at), CONFIG)
        self.enable(enabled)

    def enable(self, enabled):
        self.write(4, struct.pack("=H", 2 * enabled), CONFIG)

    def bytes(self, offset, size):
        return self.read(offset, size, 2)


class Peers(relays.RelayTest):
    topology = TOPOLOGY

    def setUp(self):
        super().setUp()
        if os.environ.get("SMARTIO_RECORD"):
            Initiator.journal = []
            self.addCleanup(self.record, os.environ["SMARTIO_RECORD"])

    def record(self, folder):
        """For tests/fuzz/relay_fuzz.c."""
        with open(os.path.join(folder, self.id().rsplit(".", 1)[1]), "wb") as f:
            f.write(b"\0")
            for who, command, fds, message in Initiator.journal:
                if len(message) < 4096:
                    f.write(bytes([0x80 * isinstance(who, Memory) + 0x20 * (command == SET_IRQS) + fds]) + message)

    def start_machine(self, memory):
        path = os.path.join(self.dir, "vm")
        child = self.start("run", "-n", "client1", "--", base.TOOL, "passthrough", "nvme0", memory, "--socket", path)
        self.says(child, f"{memory}: a virtual machine can have it")
        drive = self.machine(path)
        mem = Memory(path + ".2")
        self.addCleanup(mem.close)
        drive.start()
        return child, path, drive, mem

    def announce(self, drive, at):
        """As the emulator does: another device's BAR is a range without a file."""
        drive.ask(DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, at, BAR_BYTES))

    def reaches(self, drive, mem, at):
        """From the drive's blocks to the other's memory, and back."""
        data = os.urandom(BYTES)
        drive.ram[DATA:DATA + BYTES] = data
        self.assertEqual(drive.do(1, 1, RAM + DATA, 1, (0, 0, 15)), 0)
        self.assertEqual(drive.do(1, 2, at + 0x2000, 1, (0, 0, 15)), 0)
        self.assertEqual(mem.bytes(0x2000, BYTES), data)
        self.assertEqual(drive.do(1, 1, at + 0x2000, 1, (64, 0, 15)), 0)
        self.assertEqual(drive.do(1, 2, RAM + 0x30000, 1, (64, 0, 15)), 0)
        self.assertEqual(drive.ram[0x30000:0x30000 + BYTES], data)

    def faults(self, drive, at):
        """It does not: the access is stopped, and the drive goes on."""
        before = self.device_faults()
        drive.do(1, 2, at + 0x2000, 1, (0, 0, 7))
        end = time.monotonic() + WAIT
        while self.device_faults() == before and time.monotonic() < end:
            time.sleep(0.01)
        self.assertGreater(self.device_faults(), before)

    def written(self):
        """Bytes of posted writes through each host's adapter."""
        hosts = {h["node"]: h["name"] for h in self.json("stats")["hosts"]}
        return {hosts[a["node"]]: int(a["counters"]["wr_bytes"], 16) for a in self.json("stats")["adapters"]}

    def goes(self, drive, mem, child):
        for m in (drive, mem):
            m.sock.close()
            self.says(child, "is returned")
        self.end(child)

    def crossings(self, memory, at_target):
        """Data go from the drive's lender to the other's, once; to the machine's host completions alone."""
        child, _, drive, mem = self.start_machine(memory)
        mem.place(BAR)
        self.announce(drive, BAR)
        self.says(child, f"nvme0 reaches {BAR_BYTES:#x} bytes at {BAR:#x}, BAR 2 of {memory}")
        self.reaches(drive, mem, BAR)
        asked, sent, before = self.traffic(), len(drive.sent) + len(mem.sent), self.written()
        for _ in range(20):
            self.assertEqual(drive.do(1, 2, BAR + 0x4000, 1, (0, 0, 15)), 0)
        after = {host: n - before[host] for host, n in self.written().items()}
        self.assertEqual(self.traffic(), asked)
        self.assertEqual(len(drive.sent) + len(mem.sent), sent, "a message of the machine's while it works")
        small = after["client1"]
        self.assertLess(small, 20 * 64)
        self.assertGreaterEqual(small, 20 * 16)
        self.assertEqual(after["second"], at_target)
        self.assertEqual(after["lender"], at_target + small)
        self.assertEqual(mem.bytes(0x4000, BYTES), mem.bytes(0x2000, BYTES))
        self.goes(drive, mem, child)

    def test_a_device_of_another_lender(self):
        self.crossings("mem1", 20 * BYTES)

    def test_a_device_of_the_same_lender(self):
        self.crossings("mem0", 0)

    def test_what_the_machine_moves(self):
        child, path, drive, mem = self.start_machine("mem1")
        mem.place(BAR)
        self.announce(drive, BAR)
        self.reaches(drive, mem, BAR)
        # Without the bus master bit it reaches nothing; it is as before when it has it again.
        drive.write(4, struct.pack("=H", 2), CONFIG)
        drive.write(4, struct.pack("=H", 6), CONFIG)
        self.reaches(drive, mem, BAR)
        mem.enable(False)
        self.faults(drive, BAR)
        mem.enable(True)
        self.reaches(drive, mem, BAR)
        # It has moved, before the emulator says so, and after.
        mem.place(MOVED)
        self.faults(drive, BAR)
        self.faults(drive, MOVED)
        drive.unmap(BAR, BAR_BYTES)
        self.announce(drive, MOVED)
        self.reaches(drive, mem, MOVED)
        self.faults(drive, BAR)
        # Memory where it was; no file comes with what is no memory.
        drive.map(BAR, BAR_BYTES, [drive.ram_fd])
        self.assertEqual(drive.do(1, 2, BAR + 0x50000, 1, (0, 0, 15)), 0)
        # A reset of the other device, which forgets where it was.
        mem.ask(RESET)
        self.faults(drive, MOVED)
        mem.place(MOVED)
        self.reaches(drive, mem, MOVED)
        # It is unplugged, and plugged in again.
        mem.sock.close()
        self.says(child, "is returned")
        self.faults(drive, MOVED)
        self.assertEqual(self.device("mem1")["borrowers"], 0)
        mem = Memory(path + ".2")
        self.addCleanup(mem.close)
        self.faults(drive, MOVED)
        mem.place(MOVED)
        self.reaches(drive, mem, MOVED)
        self.goes(drive, mem, child)

    def test_the_other_device_is_lost(self):
        child, _, drive, mem = self.start_machine("mem1")
        mem.place(BAR)
        self.announce(drive, BAR)
        self.reaches(drive, mem, BAR)
        self.smartio("fault", "device", "mem1", "out")
        self.says(child, "mem1 is lost to its machine")
        self.faults(drive, BAR)
        drive.use(0, 2)
        mem.sock.close()
        self.says(child, "mem1 is returned")
        self.smartio("fault", "device", "mem1", "in")
        mem = Memory(os.path.join(self.dir, "vm.2"))
        self.addCleanup(mem.close)
        mem.place(BAR)
        self.reaches(drive, mem, BAR)
        self.goes(drive, mem, child)

    def test_the_drives_lender_dies(self):
        """The other device is its machine's still, and can be returned."""
        child, _, drive, mem = self.start_machine("mem1")
        mem.place(BAR)
        self.announce(drive, BAR)
        self.reaches(drive, mem, BAR)
        self.crash(self.state, self.node("lender"))
        self.says(child, "nvme0 is lost to its machine")
        self.assertTrue(drive.dead())
        mem.write(0x2000, b"12345678", 2)
        self.assertEqual(mem.bytes(0x2000, 8), b"12345678")
        mem.sock.close()
        self.says(child, "mem1 is returned")
        self.assertEqual(self.device("mem1")["borrowers"], 0)
        drive.sock.close()
        self.says(child, "nvme0 is returned")
        self.smartio("cluster", "restart-node", "lender")
        self.end(child)

    def test_the_relay_is_killed(self):
        child, _, drive, mem = self.start_machine("mem1")
        mem.place(BAR)
        self.announce(drive, BAR)
        self.reaches(drive, mem, BAR)
        for _ in range(10):
            drive.submit(1, 2, BAR + 0x2000, 1, (0, 0, 15))
        for pid, words in base.processes_with("XDG_RUNTIME_DIR", self.dir):
            if words.split()[1:2] == ["passthrough"]:
                os.kill(pid, 9)
        self.assertNotEqual(child.wait(60), 0)
        self.smartio("doctor", "--audit", "--within", "60")
        for name in ("nvme0", "mem1"):
            self.assertEqual((self.device(name)["borrowers"], self.device(name)["quarantined"]), (0, 0))

    def test_who_may_have_them(self):
        """One machine alone: the devices reach each other."""
        child, path, drive, mem = self.start_machine("mem1")
        mem.sock.close()
        self.says(child, "mem1 is returned")
        done = subprocess.run([sys.executable, "-B", "-c", STRANGER, path + ".2", os.path.dirname(sys.modules[
            "initiator"].__file__)], check=False)
        self.assertEqual(done.returncode, 3)
        self.says(child, "another machine has the other devices")
        self.assertEqual(self.device("mem1")["borrowers"], 0)
        drive.sock.close()
        self.says(child, "nvme0 is returned")
        self.end(child)
        done = self.smartio("run", "-n", "client1", "--", base.TOOL, "passthrough", "nvme0", "nvme0", "--socket", path,
                            status=1)
        self.assertIn("nvme0 is named twice", done.stderr)

    def test_what_is_said_again_and_again(self):
        """A machine that turns a BAR off and on does not fill the log of its host."""
        child, _, drive, mem = self.start_machine("mem1")
        mem.place(BAR)
        self.announce(drive, BAR)
        for _ in range(300):
            mem.enable(False)
            mem.enable(True)
        self.reaches(drive, mem, BAR)
        drive.sock.close()
        said = 0
        while "is returned" not in (line := child.stderr.readline()):
            self.assertTrue(line)
            said += "reaches" in line
        self.assertGreater(said, 10)
        self.assertLess(said, 100)
        mem.sock.close()
        self.says(child, "is returned")
        self.end(child)

    def test_machines_that_cannot_be_told_apart(self):
        """Of processes that the relay does not see any two may be two machines."""
        apart = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
        if not shutil.which("unshare") or subprocess.run([*apart, "true"], check=False).returncode:
            self.skipTest("no namespace of processes can be made here")
        path = os.path.join(self.dir, "vm")
        child = self.start("run", "-n", "client1", "--", *apart, base.TOOL, "passthrough", "nvme0", "mem1", "--socket",
                           path)
        self.says(child, "mem1: a virtual machine can have it")
        drive = self.machine(path)
        self.assertRaises((EOFError, ConnectionError), Memory, path + ".2")
        self.says(child, "another machine may have the other devices")
        self.assertEqual(self.device("mem1")["borrowers"], 0)
        drive.sock.close()
        self.says(child, "nvme0 is returned")
        mem = Memory(path + ".2")
        mem.close()
        self.says(child, "mem1 is returned")
        child.kill()
        child.wait(60)


if __name__ == "__main__":
    base.main()
