#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The examples run as they are, each process on a host of its own, and say the right thing.

usage: examples_test.py BUILD
"""
import os
import re
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "system"))
from cluster import Cluster  # noqa: E402

BUILD = None
TOPOLOGY = """\
cluster: examples
switches: [sw0]
hosts:
  one:
    ram: 64M
    devices:
      nvme0: {type: nvme, size: 16M}
      mem1: {type: memory, size: 64K}
      acc1: {type: accelerator, size: 1M}
      acc2: {type: accelerator, size: 1M}
  two:
    ram: 64M
    iommu: on
    devices: {mem2: {type: memory, size: 64K}, acc3: {type: accelerator, size: 1M}, acc4: {type: accelerator, size: 1M}}
  three: {ram: 64M, devices: {mem3: {type: memory, size: 64K}, acc5: {type: accelerator, size: 1M}}}
"""
NODES = {"one": "4", "two": "8", "three": "12"}


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster(BUILD, TOPOLOGY)
        cls.c.__enter__()
        cls.addClassCleanup(cls.c.__exit__)

    def setUp(self):
        self.before = self.c.audit()

    def tearDown(self):
        self.c.audit_until(self.before)

    def run_all(self, *programs):
        """Each program is (host, example, arguments...), started in turn. Returns what they said."""
        children = [self.c.start(host, os.path.join(BUILD, "examples", "example-" + name), *args)
                    for host, name, *args in programs]
        said = []
        for child in children:
            out, err = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, err)
            said.append(out)
        return said

    def test_pingpong(self):
        said = self.run_all(("one", "pingpong", NODES["two"], "second", "200"),
                            ("two", "pingpong", NODES["one"], "first", "200"))
        self.assertEqual(said, ["200 rounds\n"] * 2)

    def test_ring(self):
        received, sent = self.run_all(("one", "ring", "receive", NODES["three"], "20000"),
                                      ("three", "ring", "send", NODES["one"], "20000"))
        self.assertEqual(received.replace("received", "sent"), sent)
        self.assertIn(f"sum {sum(7 * n * 7 + 21 for n in range(1, 20001))}\n", sent)

    def test_dma_vector(self):
        shown, sent = self.run_all(("two", "dma_vector", "show"),
                                   ("one", "dma_vector", "send", NODES["two"]))
        self.assertEqual(shown, sent)
        self.assertRegex(sent, r"^128 x 128, sum [1-9]\d+\n$")

    def test_interrupts(self):
        said = self.run_all(("three", "interrupts", "serve"),
                            ("two", "interrupts", "ask", NODES["three"], NODES["two"], "100"))
        self.assertEqual(said, ["", "100 answers\n"])

    def test_reflective(self):
        said = self.run_all(*[(host, "reflective", str(i), "3") for i, host in enumerate(NODES)])
        self.assertEqual(said, ["0 was here\n1 was here\n2 was here\n"] * 3)

    def test_batch_and_drive_health(self):
        """The drive counts what the batches did; a change that is not confirmed is refused."""
        nvme = os.path.join(BUILD, "drivers", "nvme-user", "smartio-nvme")
        manager = self.c.start("one", nvme, "manager", "nvme0")
        try:
            said, = self.run_all(("one", "drive_health", "nvme0"))
            before = [int(n) for n in re.findall(r"(\d+) (?:reads|writes)", said)]
            for host in NODES:
                said, = self.run_all((host, "batch", "nvme0", "3"))
                total = sum((n * 0x9e3779b97f4a7c15 + i) % 2**64 for n in range(3) for i in range(32 * 512)) % 2**64
                self.assertEqual(said, f"{3 * 2 * 32} commands, sum {total}\n")
            said, = self.run_all(("two", "drive_health", "nvme0"))
            self.assertRegex(said, r"^313 K of 343 K, 100 % of its spare, \d+ reads, \d+ writes\nrefused: .*confirm.*\n$")
            after = [int(n) for n in re.findall(r"(\d+) (?:reads|writes)", said)]
            self.assertEqual([a - b for a, b in zip(after, before)], [3 * 3 * 32] * 2)
        finally:
            manager.terminate()
            manager.communicate(timeout=60)

    def test_peer_to_peer(self):
        nvme = os.path.join(BUILD, "drivers", "nvme-user", "smartio-nvme")
        manager = self.c.start("one", nvme, "manager", "nvme0")
        try:
            for memory in "mem1", "mem2", "mem3":
                said, = self.run_all(("two", "peer_to_peer", "nvme0", memory, "20"))
                total = sum((n * 0x9e3779b97f4a7c15 + i) % 2**64 for n in range(20) for i in range(64))
                self.assertEqual(said, f"20 blocks, sum {total % 2**64}\n")
        finally:
            manager.terminate()
            manager.communicate(timeout=60)

    def test_memory_driver(self):
        """The same from near and from far, polled and by interrupt; and after one that was killed at work."""
        total = sum((n * 0x9e3779b97f4a7c15 + i) % 2**64 for n in range(30) for i in range(1024)) % 2**64
        for host, memory, how in (("one", "mem1", "poll"), ("two", "mem1", "poll"), ("two", "mem3", "interrupt")):
            victim = self.c.start(host, os.path.join(BUILD, "examples", "example-memory_driver"),
                                  memory, str(10**9), how)
            self.assertEqual(victim.stdout.readline(), "ready\n")
            victim.kill()
            victim.communicate(timeout=60)
            said, = self.run_all((host, "memory_driver", memory, "30", how))
            self.assertEqual(said, f"ready\n30 copies, sum {total}\n")

    def test_memory_driver_hears_of_a_loss(self):
        """The device is pulled out while it works."""
        driver = self.c.start("two", os.path.join(BUILD, "examples", "example-memory_driver"), "mem3", str(10**9), "poll")
        self.assertEqual(driver.stdout.readline(), "ready\n")
        self.c.smartio("fault", "device", "mem3", "out")
        _, err = driver.communicate(timeout=60)
        self.assertEqual((driver.returncode, err), (3, "the device was lost\n"))
        self.c.smartio("fault", "device", "mem3", "in")

    def test_file_checksum(self):
        """A file is copied to the drive; accelerators beside it, of the program's host and of a third one sum it up."""
        nvme = os.path.join(BUILD, "drivers", "nvme-user", "smartio-nvme")
        data, pieces = os.urandom(150 * 1024 + 512), []
        for at in range(0, len(data), 65536):
            words = struct.unpack(f"<{len(data[at:at + 65536]) // 4}I", data[at:at + 65536])
            pieces.append(sum(w * (2 * n + 1) for n, w in enumerate(words)) % 2**64)
        manager = self.c.start("one", nvme, "manager", "nvme0")
        try:
            with tempfile.NamedTemporaryFile() as f:
                f.write(data)
                f.flush()
                self.c.run("three", nvme, "copy-in", "nvme0", f.name)
            for accelerator in "acc1", "acc3", "acc5":
                said, = self.run_all(("two", "file_checksum", "nvme0", accelerator, str(len(data))))
                self.assertEqual(said, f"{len(data)} bytes, sum {sum(pieces) % 2**64}\n")
        finally:
            manager.terminate()
            manager.communicate(timeout=60)

    def test_training(self):
        """Local accelerators, those of one lender, and of two: the same loss to the last bit, and it falls."""
        nvme = os.path.join(BUILD, "drivers", "nvme-user", "smartio-nvme")
        manager = self.c.start("one", nvme, "manager", "nvme0")
        try:
            said = [self.run_all(("two", "training", "nvme0", *pair, "12"))[0]
                    for pair in (("acc3", "acc4"), ("acc1", "acc2"), ("acc1", "acc5"))]
        finally:
            manager.terminate()
            manager.communicate(timeout=60)
        self.assertEqual(said[1:], [said[0]] * 2)
        losses = [float(line.split()[3]) for line in said[0].splitlines()]
        self.assertEqual(len(losses), 12)
        self.assertLess(losses[-1], losses[0] / 2)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
