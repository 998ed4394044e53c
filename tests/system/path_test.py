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

    def iopath(self, node, count, depth, *more, wrap=(), during=None):
        """Runs iopath; @during is called with it before and after its reads."""
        child = self.c.start(node, *wrap, os.path.join(BUILD, "tests", "system", "iopath"), "nvme0",
                             str(count), str(depth), *more, stdin=subprocess.PIPE)
        results = []
        for word in ("open", "done"):
            line = child.stdout.readline()
            self.assertIn(word, line, child.stderr.read() if not line else "")
            results.append(during() if during else None)
            child.stdin.write("\n")
            child.stdin.flush()
        self.c.finish(child, timeout=600)
        return results

    def test_no_system_call(self):
        """100,000 reads make no system call, in no thread, but sched_yield."""
        trace = os.path.join(self.c.dir, "trace")
        for node in ("lender", "client1"):
            self.iopath(node, 100000, 8, wrap=("strace", "-f", "-qq", "-o", trace, "-e",
                                               "trace=!sched_yield"))
            with open(trace, encoding="ascii", errors="replace") as f:
                calls = [line for line in f if re.match(r"\d+\s+\w+\(", line)]
            marks = [i for i, line in enumerate(calls) if "getppid(" in line]
            self.assertEqual(len(marks), 2, "the marks around the reads")
            self.assertEqual(calls[marks[0] + 1:marks[1]], [], node)

    def test_no_message(self):
        """100,000 reads, and the message counters of all daemons stand still."""
        def counters():
            stats = json.loads(self.c.smartio("stats", "--json"))
            return {(d["name"], k): d["counters"][k] for d in stats["daemons"]
                    for k in ("client_messages", "client_events", "peer_messages_received",
                              "peer_messages_sent", "port_requests", "port_events")}

        for node in ("lender", "client1"):
            quiet = [counters(), counters()]  # what asking costs
            before, after = self.iopath(node, 100000, 8, during=counters)
            for key, value in before.items():
                with self.subTest(counter=key):
                    self.assertEqual(after[key] - value, quiet[1][key] - quiet[0][key])

    def test_instructions_local_and_remote_are_equal(self):
        """callgrind, the client alone: submit and the polls that return something."""
        def instructions(node):
            out = os.path.join(self.c.dir, f"callgrind.{node}")
            self.iopath(node, 10000, 25, "calm",
                        wrap=("valgrind", "-q", "--tool=callgrind", "--collect-atstart=no",
                              f"--callgrind-out-file={out}"))
            with open(out, encoding="ascii", errors="replace") as f:
                return next(int(line.split()[1]) for line in f if line.startswith("totals:"))

        local, remote = instructions("lender"), instructions("client1")
        print(f"\ninstructions per I/O at depth 25, submit and poll: local {local / 10000:.2f}, "
              f"remote {remote / 10000:.2f}")
        self.assertGreater(local, 10000 * 20)
        self.assertEqual(local, remote)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
