#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench.py --smoke runs to its end and prints every row, with possible numbers. No time is judged.

usage: smoke_test.py BUILD
"""
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = None
PARTIES = {"drive, lender", "drive, remote", "bare loop"}
SHARED = PARTIES | {"drive, two sessions", "bare loop, two sessions"}
WHO = {"idle": {"cluster"}, "depth1": PARTIES, "depth32": PARTIES, "large": PARTIES,
       "shared32": SHARED, "shared1": SHARED, "stall": PARTIES - {"drive, lender"},
       "first": {"drive, remote", "drive, eventfd", "eventfd, after the same",
                 "eventfd, at once"},
       "clients30": PARTIES - {"drive, lender"}, "sweep": PARTIES,
       "files": {"drive in memory", "drive in a file"},
       "waits": {f"{way}, {when}" for way in ("polling", "interrupts", "hybrid")
                 for when in ("drive at once", "drive at once, one processor for both", "drive 1 ms late")},
       "shares": {f"client {i + 1}" for i in range(30)}}
NEED_TWO = {"depth1", "depth32", "large", "first", "clients30", "sweep", "shares", "waits"}


def bench(*args, timeout=120):
    return subprocess.run([sys.executable, os.path.join(HERE, "bench.py"), "--build", BUILD, *args],
                          capture_output=True, text=True, timeout=timeout, check=False)


class Smoke(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-bench-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def test_all_rows(self):
        table, picture = os.path.join(self.dir, "b.csv"), os.path.join(self.dir, "b.png")
        done = bench("--smoke", "--csv", table, "--png", picture)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("measured: times of our software, not of PCIe", done.stdout)
        with open(table, encoding="ascii") as f:
            rows = list(csv.DictReader(f))
        two = len(os.sched_getaffinity(0)) > 1
        for key, parties in WHO.items():
            if key in NEED_TWO and not two:
                continue
            if key == "files" and "without liburing" in done.stdout:
                continue
            with self.subTest(row=key):
                self.assertEqual({r["who"] for r in rows if r["row"] == key}, parties)
        for r in rows:
            if r["count"] and int(r["count"]):
                with self.subTest(**r):
                    low, high = int(r["min_ns"]), int(r["max_ns"])
                    self.assertLess(0, low)
                    # A bucket's middle stands for its values: it may be 1 % off.
                    for key in ("p50_ns", "p99_ns", "p9999_ns"):
                        self.assertLessEqual(low * 0.99, int(r[key]))
                        self.assertLessEqual(int(r[key]), high * 1.01)
        self.instructions(rows, done.stdout)
        self.picture(picture, done.stdout, two)

    def instructions(self, rows, text):
        """Exact, and the same on the lender and across the switch; or a line that says why not."""
        values = {r["value"] for r in rows if r["row"] == "instructions"}
        if not values:
            self.assertIn("not measured: ", text)
            return
        self.assertEqual(len(values), 1)
        self.assertGreater(float(values.pop()), 20)

    def picture(self, path, text, two):
        if shutil.which("gnuplot") and two:
            with open(path, "rb") as f:
                self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")
        else:
            self.assertIn("no picture: ", text)

    def test_says_what_is_wrong(self):
        for args, text in ((["--only", "depth2"], "--only depth2"), (["--cpus", "0,999"], "0,999"),
                           (["--cpus", "x"], "--cpus x"), (["--rounds", "0"], "--rounds")):
            done = bench(*args, timeout=20)
            with self.subTest(args=args):
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(text, done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
