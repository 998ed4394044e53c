#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench.py --smoke runs to its end and writes every row, with possible numbers. No time is judged.

usage: smoke_test.py BUILD
"""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = None
DMA = {("host memory", "own", "write"), ("host memory", "own", "read"), ("host memory", "borrowed", "write"),
       ("host memory", "borrowed", "read")} | {
           ("peer to peer", path, direction) for path in ("own", "one lender", "two lenders")
           for direction in ("write", "read")}
DMA = {(e, p, form.format(d)) for e, p, d in DMA for form in ("{}", "{} 16 at once", "memcpy beside {}")} | {
    ("memcpy", "one process", "memcpy")}
PING = {("ping-pong", "own"), ("ping-pong", "one lender"), ("ping-pong", "two lenders"), ("two threads", "one process")}


def bench(*args, timeout=100):
    return subprocess.run([sys.executable, os.path.join(HERE, "bench.py"), "--build", BUILD, *args],
                          capture_output=True, text=True, timeout=timeout, check=False)


class Smoke(unittest.TestCase):
    def test_all_rows(self):
        with tempfile.TemporaryDirectory(prefix="sio-bench-test-") as folder:
            table = os.path.join(folder, "b.csv")
            done = bench("--smoke", "--csv", table)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(table, encoding="ascii") as f:
                rows = list(csv.DictReader(f))
        self.assertIn("measured on a model", done.stdout)
        self.assertEqual({r["label"] for r in rows}, {"measured on a model"})
        sizes = {4096 << n for n in range(9)}
        dma = [r for r in rows if r["bytes"]]
        for key in DMA:
            with self.subTest(key=key):
                self.assertEqual({int(r["bytes"]) for r in dma
                                  if (r["experiment"], r["path"], r["direction"]) == key}, sizes)
        self.assertEqual(len(dma), len(DMA) * len(sizes))
        for r in dma:
            self.assertTrue(0 < float(r["min_MBps"]) <= float(r["median_MBps"]) <= float(r["max_MBps"]), r)
        ping = [r for r in rows if r["rounds"]]
        self.assertEqual({(r["experiment"], r["path"]) for r in ping}, PING)
        for r in ping:
            self.assertTrue(0 < int(r["min_ns"]) <= int(r["p50_ns"]) <= int(r["p99_ns"]) <= int(r["max_ns"]), r)

    def test_says_what_is_wrong(self):
        for args, text in ((["--most", "5000"], "--most 5000"), (["--most", "268435456"], "--most"),
                           (["--rounds", "2000000"], "--rounds"), (["--transfers", "-1"], "--transfers"),
                           (["--starts", "-1"], "--starts")):
            done = bench(*args, timeout=20)
            with self.subTest(args=args):
                self.assertEqual(done.returncode, 2)
                self.assertIn(text, done.stderr)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
