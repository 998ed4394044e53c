#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is exact on the data path: instructions, system calls, messages, transactions.

usage: path_test.py BUILD
"""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD = None


class Path(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster(BUILD)
        cls.c.__enter__()
        cls.addClassCleanup(cls.c.__exit__)
        cls.c.manager()

    def bench(self, node, *args, wrap=()):
        return self.c.run(node, *wrap, self.c.nvme, "bench", "nvme0", "--json", *args, timeout=600)

    def test_transactions_per_read(self):
        """Depth 1, aligned 4 KiB: one 64 B read, one completion, 16 writes of 256 B, one of 16 B."""
        def cost(node, count):
            before = self.c.counters()
            self.bench(node, "--count", str(count), "--depth", "1", "--size", "4K", "--random",
                       "--read")
            after = self.c.counters()
            return {k: after[k] - before[k] for k in after}

        n = 500
        for node in ("lender", "client1", "client2"):
            base, more = cost(node, 100), cost(node, 100 + n)
            with self.subTest(node=node):
                self.assertEqual(more["rd_req"] - base["rd_req"], n)
                self.assertEqual(more["rd_cpl"] - base["rd_cpl"], n)
                self.assertEqual(more["rd_bytes"] - base["rd_bytes"], 64 * n)
                self.assertEqual(more["wr_tlp"] - base["wr_tlp"], 17 * n)
                self.assertEqual(more["wr_bytes"] - base["wr_bytes"], (4096 + 16) * n)

    def test_no_system_call_and_no_message(self):
        """100,000 I/Os make no call but sched_yield, and no daemon hears of them."""
        def calls(count):
            trace = os.path.join(self.c.dir, "calls")
            self.bench("client1", "--count", str(count), "--depth", "8", "--size", "4K",
                       "--random", "--read", wrap=("strace", "-f", "-c", "-o", trace))
            found = {}
            with open(trace, encoding="ascii") as f:
                for line in f:
                    m = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line)
                    if m and m.group(2) != "total":
                        found[m.group(2)] = int(m.group(1))
            found.pop("sched_yield", None)
            return found

        def messages():
            stats = json.loads(self.c.smartio("stats", "--json"))
            return {d["name"]: {k: v for k, v in d["counters"].items() if "message" in k or
                                k.startswith("peer_")} for d in stats["daemons"]}

        def heard(count):
            before = messages()
            self.bench("client1", "--count", str(count), "--depth", "8", "--size", "4K")
            after = messages()
            return {(n, k): after[n][k] - before[n][k] for n in after for k in after[n]}

        few, many = calls(100), calls(100100)
        # Threads that wait may wake a few times more or less; the I/Os are 100,000.
        for name in sorted(set(few) | set(many)):
            self.assertLess(abs(many.get(name, 0) - few.get(name, 0)), 20, name)
        few, many = heard(100), heard(100100)
        for name, value in many.items():
            self.assertLess(abs(value - few[name]), 20, name)

    def test_instructions_local_and_remote_are_equal(self):
        """callgrind, the client alone: submit and the polls that return something."""
        def instructions(node):
            out = os.path.join(self.c.dir, "callgrind.out")
            text = self.bench(node, "--count", "10000", "--warm-up", "1000", "--depth", "1",
                              "--size", "4K", "--random", "--read", "--toggle-collect",
                              wrap=("valgrind", "--tool=callgrind", "--collect-atstart=no",
                                    f"--callgrind-out-file={out}", "-q"))
            done = subprocess.run(["callgrind_annotate", out], capture_output=True, text=True,
                                  check=True)
            m = re.search(r"([\d,]+) \(100\.0%\)  PROGRAM TOTALS", done.stdout)
            return int(m.group(1).replace(",", "")), json.loads(text)

        local, remote = instructions("lender"), instructions("client1")
        print(f"instructions per I/O: local {local[0] / 10000:.1f}, remote {remote[0] / 10000:.1f}")
        self.assertEqual(local[0], remote[0])


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
