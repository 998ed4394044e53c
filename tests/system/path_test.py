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
KEYS = ("rd_req", "rd_cpl", "rd_bytes", "wr_tlp", "wr_bytes")


def optimized():
    """Was BUILD made with -O2 and without sanitizers, so that its instructions can be limited?"""
    with open(os.path.join(BUILD, "meson-info", "intro-buildoptions.json"), encoding="ascii") as f:
        options = {o["name"]: o["value"] for o in json.load(f)}
    return options["optimization"] == "2" and options["b_sanitize"] in ("none", [])


class Path(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(os.path.join(BUILD, "tests", "system", "iopath")):
            raise unittest.SkipTest("iopath is not built: apt-get install valgrind")
        cls.c = Cluster(BUILD)
        cls.c.__enter__()
        cls.addClassCleanup(cls.c.__exit__)
        cls.c.manager()

    def bench(self, node, *args, wrap=()):
        return self.c.run(node, *wrap, self.c.nvme, "bench", "nvme0", "--json", *args, timeout=600)

    def counted(self):
        """What the fabric counted, by (device or adapter, counter)."""
        stats = json.loads(self.c.smartio("stats", "--json"))["data"]
        return {(o["name"], k): int(o["counters"][k], 16) for o in stats["devices"] + stats["adapters"]
                for k in KEYS}

    def test_transactions_of_a_queue_across_the_links(self):
        """With the submission queue beside the client, its entries are read across both links."""
        n = 1000
        before, after = self.iopath("client1", n, 1, "near", during=self.counted)
        for name in ("nvme0", "lender.0", "client1.0"):
            self.assertEqual({k: (after[(name, k)] - before[(name, k)]) / n for k in KEYS},
                             dict(zip(KEYS, (1, 1, 64, 17, 4096 + 16))), name)
        self.assertEqual(before[("client2.0", "wr_tlp")], after[("client2.0", "wr_tlp")])

    def test_transactions_per_read(self):
        """Depth 1, aligned 4 KiB: one 64 B read, one completion, 16 writes of 256 B, one of 16 B."""
        def cost(node, count):
            before = self.counted()
            self.bench(node, "--count", str(count), "--depth", "1", "--size", "4K", "--random",
                       "--read")
            after = self.counted()
            return {k: after[k] - before[k] for k in after}

        n = 500
        for node in ("lender", "client1", "client2"):
            base, more = cost(node, 100), cost(node, 100 + n)
            per_read = {k: (more[k] - base[k]) / n for k in more}
            with self.subTest(node=node):
                self.assertEqual({k: per_read[("nvme0", k)] for k in KEYS},
                                 dict(zip(KEYS, (1, 1, 64, 17, 4096 + 16))))
                # The queue that the drive reads lies beside it; what it writes crosses the links.
                crossed = dict(zip(KEYS, (0, 0, 0, 17, 4096 + 16)))
                for link in ("lender.0", "client1.0", "client2.0"):
                    there = node != "lender" and link in ("lender.0", node + ".0")
                    self.assertEqual({k: per_read[(link, k)] for k in KEYS},
                                     crossed if there else dict.fromkeys(KEYS, 0), link)

    def quiet(self):
        """Until opening has no more to say: daemons' counters grow by what asking costs, no more."""
        seen = []
        while len(seen) < 4 or len({tuple(b[k] - a[k] for k in b)
                                    for a, b in zip(seen[-4:], seen[-3:])}) > 1:
            stats = json.loads(self.c.smartio("stats", "--json"))["data"]
            seen.append({(d["name"], k): int(d["counters"][k], 16) for d in stats["daemons"] for k in
                         ("client_messages", "client_events", "port_requests", "port_events")})

    def iopath(self, node, count, depth, *more, wrap=(), during=None):
        """Runs iopath; @during is called with it before and after its reads."""
        child = self.c.start(node, *wrap, os.path.join(BUILD, "tests", "system", "iopath"), "nvme0",
                             str(count), str(depth), *more, stdin=subprocess.PIPE)
        results = []
        for word in ("open", "done"):
            line = child.stdout.readline()
            self.assertIn(word, line, child.stderr.read() if not line else "")
            if word == "open":
                self.quiet()
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
            stats = json.loads(self.c.smartio("stats", "--json"))["data"]
            return {(d["name"], k): int(d["counters"][k], 16) for d in stats["daemons"]
                    for k in ("client_messages", "client_events", "peer_messages_received",
                              "peer_messages_sent", "port_requests", "port_events")}

        for node in ("lender", "client1"):
            self.quiet()  # what an earlier client held may still be going back
            quiet = [counters(), counters()]  # what asking costs
            before, after = self.iopath(node, 100000, 8, during=counters)
            for key, value in before.items():
                with self.subTest(counter=key):
                    self.assertEqual(after[key] - value, quiet[1][key] - quiet[0][key])

    def test_instructions_local_and_remote_are_equal(self):
        """callgrind, the client alone: submit and the polls that return something."""
        # valgrind has no userfaultfd; the way with a flag to look at would count its rare wakes, too.
        def instructions(node):
            out = os.path.join(self.c.dir, f"callgrind.{node}")
            self.iopath(node, 9600, 32, "calm",
                        wrap=("env", "SMARTIO_WAKE=timer", "valgrind", "-q", "--tool=callgrind", "--collect-atstart=no",
                              f"--callgrind-out-file={out}"))
            with open(out, encoding="ascii", errors="replace") as f:
                return next(int(line.split()[1]) for line in f if line.startswith("totals:"))

        local, remote = instructions("lender"), instructions("client1")
        print(f"\ninstructions per I/O at depth 32, submit and poll: local {local / 9600:.2f}, "
              f"remote {remote / 9600:.2f}")
        self.assertGreater(local, 9600 * 20)
        self.assertEqual(local, remote)
        if optimized():
            self.assertLessEqual(local, 9600 * 115)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
