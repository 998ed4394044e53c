#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""killat kills a program at the very call that it is told, of all its threads and children.

usage: killat_test.py KILLAT
"""
import collections
import os
import subprocess
import sys
import tempfile
import time
import unittest

KILLAT = None
PROGRAM = """
import os, threading
def calls():
    for _ in range(10):
        os.umask(0)
threads = [threading.Thread(target=calls) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
if os.fork() == 0:
    calls()
    os._exit(0)
os.wait()
os.dup2(1, 9)
calls()
os.write(1, b"done\\n")
"""


def run(*words):
    return subprocess.run([KILLAT, *words, sys.executable, "-c", PROGRAM], capture_output=True, text=True)


class KillAt(unittest.TestCase):
    def counts(self, first):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "calls")
            self.assertEqual(run(first, "list", path).returncode, 0)
            while not os.path.exists(path):  # who counts ends after the program
                time.sleep(0.01)
            with open(path, encoding="ascii") as f:
                pairs = [line.split() for line in f]
        return collections.Counter({name: int(n) for name, n in pairs})

    def test_counts_all_threads_and_children(self):
        self.assertEqual(self.counts("execve")["umask"], 60)

    def test_counts_from_the_first_call_of_that_name(self):
        counted = self.counts("33")
        self.assertEqual(counted["umask"], 10)
        self.assertEqual(counted["write"], 1)
        self.assertEqual(counted["33"], 1)  # dup2, for which it has no name

    def test_kills_at_that_call_and_before_it_is_made(self):
        for first, last in (("execve", 60), ("33", 10)):
            for n, code in ((1, -9), (last - 1, -9), (last, -9), (last + 1, 0)):
                done = run(first, "umask", str(n))
                self.assertEqual(done.returncode, code, f"{first} {n}: {done.stderr}")
        self.assertEqual(run("33", "write", "1").stdout, "")
        self.assertEqual(run("33", "write", "2").stdout, "done\n")

    def test_says_what_it_does_not_know(self):
        self.assertIn("nosuchcall", run("execve", "nosuchcall", "1").stderr)


if __name__ == "__main__":
    KILLAT = sys.argv.pop(1)
    unittest.main()
