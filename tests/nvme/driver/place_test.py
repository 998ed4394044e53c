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
  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M}}}
  client: {ram: 64M, iommu: on}
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
        for place, passes in (("local", {"lender.0", "client.0"}), ("lender", set()), ("auto", set())):
            before = self.reads()
            self.bench(place)
            after = self.reads()
            for adapter, n in after.items():
                fetched = n - before[adapter]
                with self.subTest(place=place, adapter=adapter):
                    # As many entries as are there are fetched by one read.
                    self.assertEqual(fetched > 0, adapter in passes, fetched)
                    self.assertLessEqual(fetched, COUNT + 8)
        self.assertIn("one of auto, local, lender is wanted", self.bench("cpu", 2))
        self.assertIn("its manager's alone", self.bench("cmb", 2))


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
