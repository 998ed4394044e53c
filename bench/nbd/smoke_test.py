#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench.py runs to its end and shows every row, with possible numbers; no rate is judged.

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


def bench(*args):
    return subprocess.run([sys.executable, os.path.join(HERE, "bench.py"), "--build", BUILD, *args],
                          capture_output=True, text=True, timeout=240, check=False)


class Smoke(unittest.TestCase):
    def test_all_rows(self):
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as f:
            done = bench("--rounds", "1", "--seconds", "0.2", "--csv", f.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = list(csv.DictReader(f))
        self.assertEqual(len(rows), 4)
        for row in rows:
            with self.subTest(row=row["requests"]):
                self.assertIn(row["requests"], done.stdout)
                self.assertGreater(float(row["smartio"]), 0)
                self.assertGreater(float(row["memory"]), 0)
                self.assertAlmostEqual(float(row["ratio"]), float(row["smartio"]) / float(row["memory"]))

    def test_says_what_is_wrong(self):
        for args, text in ((["--rounds", "0"], "--rounds 0"), (["--build", "/nowhere"], "nbdkit-plugin-dev")):
            done = bench(*args)
            with self.subTest(args=args):
                self.assertEqual(done.returncode, 2)
                self.assertIn(text, done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
