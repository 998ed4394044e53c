#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""In a ring of eight hosts (examples/topologies/ring-of-eight.yaml) each lends its drive and uses the next one's, all at once.

usage: ring_test.py BUILD
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "..", "system"))
from cluster import Cluster  # noqa: E402

BUILD = None
HOSTS = 8
BYTES = 4 << 20


class Ring(unittest.TestCase):
    def test_each_lends_and_borrows(self):
        with open(os.path.join(ROOT, "examples", "topologies", "ring-of-eight.yaml"), encoding="utf-8") as f:
            topology = f.read()
        with Cluster(BUILD, topology) as c:
            for i in range(HOSTS):
                c.manager(f"h{i}", f"nvme{i}")
            written = [os.urandom(BYTES) for _ in range(HOSTS)]
            path = [os.path.join(c.dir, f"file{i}") for i in range(HOSTS)]
            for name, data in zip(path, written):
                with open(name, "wb") as f:
                    f.write(data)
            for command, more in (("copy-in", []), ("copy-out", ["--length", str(BYTES)])):
                children = [c.start(f"h{i}", c.nvme, command, f"nvme{(i + 1) % HOSTS}", path[i] + ("" if command == "copy-in"
                                                                                              else ".out"), *more)
                            for i in range(HOSTS)]
                for child in children:
                    out, err = child.communicate(timeout=120)
                    self.assertEqual(child.returncode, 0, out + err)
            for name, data in zip(path, written):
                with open(name + ".out", "rb") as f:
                    self.assertTrue(f.read() == data, name)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
