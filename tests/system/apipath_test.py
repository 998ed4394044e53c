#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which system calls the SISCI API makes where data move: none, or those that docs/dma.md tells of; and how many a request takes.

usage: apipath_test.py BUILD
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD = None
STARTS = TRIGGERS = 1000
REQUESTS = 500


class ApiPath(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster(BUILD)
        cls.c.__enter__()
        cls.addClassCleanup(cls.c.__exit__)

    def served(self, node):
        """A server on @node."""
        program = os.path.join(BUILD, "tests", "system", "apipath")
        server = self.c.start(node, program, "serve", stdin=subprocess.PIPE)
        self.assertIn("serving", server.stdout.readline())
        return program, server

    def end(self, server):
        server.stdin.close()
        server.stdin = None
        self.c.finish(server)

    def calls(self, node, far):
        """Phase -> Counter of the names of system calls, of all threads, between its marks."""
        trace = os.path.join(self.c.dir, "trace")
        program, server = self.served(node)
        names = self.c.run("client1", "strace", "-f", "-qq", "-o", trace, program, str(far),
                           timeout=300).split()
        self.end(server)
        with open(trace, encoding="ascii", errors="replace") as f:
            lines = [m.groups() for m in (re.match(r"(\d+)\s+(\w+)\(", line) for line in f) if m]
        # The library's event thread waits and reads when it likes: the thread that moves data counts.
        caller = next(thread for thread, name in lines if name == "getppid")
        marks = [i for i, (_, name) in enumerate(lines) if name == "getppid"]
        self.assertEqual(len(marks), len(names) + 1, "the marks around the phases")
        spans = {name: lines[marks[i] + 1:marks[i + 1]] for i, name in enumerate(names)}
        self.others = len([thread for thread, _ in spans["requests"] if thread != caller])
        return {name: collections.Counter(call for thread, call in span if thread == caller)
                for name, span in spans.items()}

    def check(self, calls):
        # 1 million stores, loads and checks; copies of all sizes; waits for what is there.
        for phase in ("stores", "copies", "messages_there"):
            with self.subTest(phase):
                self.assertEqual(calls[phase], {})
        # The doorbell, if the engine sleeps; a poll of the completion event, and its read.
        with self.subTest("dma_polled"):
            polled = calls["dma_polled"]
            self.assertLessEqual(set(polled), {"write", "poll", "read"})
            for name in polled:
                self.assertLessEqual(polled[name], STARTS, name)
        with self.subTest("dma_waited"):
            # Who waits yields for a while before it sleeps; how often depends on who else runs.
            waited = calls["dma_waited"]
            self.assertLessEqual(set(waited), {"write", "poll", "ppoll", "read", "sched_yield"})
            self.assertLessEqual(waited["write"], 2 * STARTS)
            self.assertLessEqual(waited["poll"] + waited["ppoll"], 2 * STARTS)
        # A request is sent, waited for and read by its caller, and the event thread sleeps meanwhile (its gate is shut).
        with self.subTest("requests"):
            asked, n = calls["requests"], 2 * REQUESTS
            self.assertEqual(asked["sendmsg"], n)
            for name, most in (("ppoll", n), ("recvmsg", 2 * n), ("epoll_ctl", 2 * n)):
                self.assertLessEqual(asked[name], most + n / 10, name)
            self.assertLessEqual(sum(asked.values()), 6.5 * n, asked)
            self.assertLessEqual(self.others, n / 10)
        # A trigger is one write.
        for phase in ("triggers", "messages"):
            with self.subTest(phase):
                self.assertEqual(calls[phase], {"write": TRIGGERS})

    def test_to_another_host(self):
        self.check(self.calls("client2", 16))

    def test_valgrind_has_nothing_to_report(self):
        """SCIMemCpy() looks at an error before it writes it, but not there."""
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not installed")
        program, server = self.served("client2")
        self.c.run("client1", "valgrind", "-q", "--error-exitcode=9", program, "16", "unset",
                   timeout=120)
        self.end(server)

    def test_on_one_host(self):
        self.check(self.calls("client1", 12))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
