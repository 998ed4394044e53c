#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where a submission queue lies shows in what crosses the fabric: smartio-nvme bench --sq.

usage: place_test.py BUILD
"""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system"))
from cluster import Cluster  # noqa: E402

BUILD = None
TOPOLOGY = """\
cluster: places
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    devices: {nvme0: {type: nvme, size: 16M, cmb: 16K}, mem0: {type: memory, size: 1M}, acc0: {type: accelerator}}
  client: {ram: 64M, iommu: on, devices: {mem1: {type: memory, size: 1M}}}
"""
COUNT = 300


class Places(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster(BUILD, TOPOLOGY)
        cls.c.__enter__()
        cls.addClassCleanup(cls.c.__exit__)

    def reads(self):
        """Read requests that passed each host's adapter."""
        done = json.loads(self.c.smartio("stats", "--json"))["data"]
        return {row["name"]: int(row["counters"]["rd_req"], 0) for row in done["adapters"]}

    def bench(self, place, status=0):
        child = self.c.start("client", self.c.nvme, "bench", "nvme0", "-c", str(COUNT), "--warmup", "0",
                             "-d", "4", "--sq", place)
        out, err = child.communicate(timeout=120)
        self.assertEqual(child.returncode, status, out + err)
        return err

    def test_places(self):
        self.c.manager("lender")
        drive = {}
        for place, passes in (("local", {"lender.0", "client.0"}), ("lender", set()), ("auto", set()), ("cmb", set()),
                              ("device:mem0", set()), ("device:acc0", set())):
            before, counted = self.reads(), self.fetches()
            self.bench(place)
            after = self.reads()
            drive[place] = self.fetches() - counted
            for adapter, n in after.items():
                fetched = n - before[adapter]
                with self.subTest(place=place, adapter=adapter):
                    # As many entries as are there are fetched by one read.
                    self.assertEqual(fetched > 0, adapter in passes, fetched)
                    self.assertLessEqual(fetched, COUNT + 8)
        # Reads of one page have no lists, so what the drive reads is its queue, and two commands of the manager's. Its
        # own memory it reads without a transaction.
        self.assertLessEqual(drive["cmb"], 8)
        for place in ("local", "lender", "auto", "device:mem0", "device:acc0"):
            self.assertGreaterEqual(drive[place] - drive["cmb"], COUNT // 8)
        self.assertIn("one of auto, local, lender, cmb, device:NAME is wanted", self.bench("cpu", 2))
        self.assertIn("of devices of the drive's own host", self.bench("device:mem1", 1))
        self.assertIn("no device 'mem9'", self.bench("device:mem9", 1))

    def fetches(self):
        """Read requests of the drive."""
        done = json.loads(self.c.smartio("stats", "--json"))["data"]
        return sum(int(row["counters"]["rd_req"], 0) for row in done["devices"] if row["name"] == "nvme0")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
