#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/run --quick all does every experiment, with possible numbers, and leaves a whole page, pictures, CSV and
JSON. What is modelled is held against what the paper says; no measured time is judged.

usage: smoke_test.py BUILD
"""
import csv
import glob
import html.parser
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "run")
BUILD = None
LABEL = {"paths": "modelled", "placement": "modelled", "iommu": "modelled", "fidelity": "modelled",
         "accelerator": "measured on a model", "remote": "measured", "sharing": "measured", "sisci": "measured"}


def run(*args, timeout=170):
    return subprocess.run([sys.executable, "-B", RUN, "--build", BUILD, *args], capture_output=True, text=True,
                          timeout=timeout, check=False)


class Page(html.parser.HTMLParser):
    """Elements that are open, ids, references."""
    VOID = {"meta", "br", "img"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.refs, self.outside = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.look(dict(attrs))

    def handle_startendtag(self, tag, attrs):
        self.look(dict(attrs))

    def look(self, attrs):
        self.ids += [attrs["id"]] if "id" in attrs else []
        for key in ("href", "xlink:href", "src"):
            if key in attrs:
                (self.refs if attrs[key].startswith("#") else self.outside).append(attrs[key])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()


class Smoke(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-bench-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def test_all(self):
        done = run("--quick", "--out", self.dir, "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.splitlines()[-1].startswith("The report is "))
        with open(os.path.join(self.dir, "results.json"), encoding="utf-8") as f:
            results = json.load(f)
        self.assertEqual({e["name"]: e["label"] for e in results["experiments"]}, LABEL)
        for key in ("processor", "kernel", "commit", "build", "length", "date"):
            self.assertTrue(results["about"][key])
        for e in results["experiments"]:
            with self.subTest(e["name"]):
                self.assertTrue(e["tables"])
                for t in e["tables"]:
                    self.assertTrue(t["rows"])
                    self.assertEqual({len(r) for r in t["rows"]}, {len(t["columns"])})
                for c in e["charts"]:
                    self.chart(c)
        self.modelled({e["name"]: e for e in results["experiments"]})
        self.files(sum(len(e["charts"]) for e in results["experiments"]))

    def chart(self, c):
        self.assertTrue(c["y"] and c["title"] and c["series"], c["title"])
        for name, points in c["series"].items():
            self.assertTrue(points, name)
            for p in points:
                for value in p[1:]:
                    self.assertTrue(math.isfinite(value) and value >= 0, (name, p))

    def modelled(self, by):
        """What the paper says of ways, queues and the IOMMU."""
        self.assertEqual([r[1:3] for r in by["placement"]["tables"][0]["rows"]],
                         [["4", "1168"], ["3", "828"], ["1", "300"]])
        without, with_it = (float(r[2]) for r in by["iommu"]["tables"][0]["rows"])
        self.assertTrue(0.85 * 10.2 < without < 1.15 * 10.2 and 1.3 < with_it < 1.8, (without, with_it))
        ways = {r[0]: [float(v) for v in r[1:]] for r in by["paths"]["tables"][0]["rows"]}
        self.assertEqual(ways["own host, 3 hops"], ways["back to back, 3 hops"])
        one_more, base = ways["cluster switch, 4 hops"], ways["back to back, 3 hops"]
        self.assertLess(one_more[2], 0.9 * base[2])  # small writes
        self.assertGreater(one_more[6], 0.99 * base[6])  # large ones
        self.assertLess(one_more[7], 0.9 * base[7])  # large reads

    def files(self, charts):
        with open(os.path.join(self.dir, "report.html"), encoding="utf-8") as f:
            text = f.read()
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertEqual(page.outside, [], "the page needs no other file")
        for name in LABEL:
            self.assertIn(name, page.ids)
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertLessEqual({r[1:] for r in page.refs}, set(page.ids))
        if not shutil.which("gnuplot"):
            self.assertIn("no pictures: gnuplot is not installed", text)
            return
        self.assertEqual(text.count("<svg"), charts)
        self.assertNotRegex(text, r'"black"|rgb\( *0, *0, *0\)')
        pictures = glob.glob(os.path.join(self.dir, "*.png"))
        self.assertEqual(len(pictures), charts)
        for path in pictures:
            with open(path, "rb") as f:
                self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")
        tables = glob.glob(os.path.join(self.dir, "*.csv"))
        self.assertEqual(len(tables), 4)
        for path in tables:
            with open(path, encoding="ascii") as f:
                self.assertTrue(list(csv.DictReader(f)), path)

    def test_says_what_is_wrong(self):
        for args, text in ((["speed"], "there is no experiment speed; all, paths"), ([], "EXPERIMENT"),
                           (["--quick", "--full", "all"], "not allowed with"),
                           (["--build", "/nonexistent", "all"], "nothing is built there")):
            done = run(*args, timeout=20)
            with self.subTest(args=args):
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, re.escape(text))

    def test_a_failed_experiment_is_told(self):
        """Of a build without the benchmark's program; the others are done."""
        os.makedirs(os.path.join(self.dir, "b", "tools"))
        os.symlink(os.path.join(BUILD, "tools", "smartio"), os.path.join(self.dir, "b", "tools", "smartio"))
        done = run("--build", os.path.join(self.dir, "b"), "--quick", "--out", self.dir, "sisci", "placement")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not done: sisci", done.stderr)
        self.assertIn("borrower's RAM", done.stdout)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
