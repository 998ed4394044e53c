#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench/run --smoke all does every experiment, with possible numbers, and leaves a whole page, pictures, CSV and
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
LABEL = {"paths": "modelled", "placement": "modelled", "queues": "counted", "iommu": "modelled", "fidelity": "modelled",
         "accelerator": "measured on a model", "remote": "measured", "sharing": "measured", "sisci": "measured",
         "functions": "measured on a model", "training": "measured on a model", "multicast": "counted", "control": "measured"}


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
        done = run("--smoke", "--out", self.dir, "all")
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
                for r in e["ratios"]:
                    self.ratio(r)
        by = {e["name"]: e for e in results["experiments"]}
        self.assertEqual({e["name"] for e in results["experiments"] if e["ratios"]},
                         {"accelerator", "remote", "sharing", "functions", "training", "control", "sisci"})
        self.assertIn("All ratios, and how far to trust them", done.stdout)
        self.modelled(by)
        self.counted(by)
        self.files(sum(len(e["charts"]) for e in results["experiments"]))

    def chart(self, c):
        self.assertTrue(c["y"] and c["title"] and c["series"], c["title"])
        for name, points in c["series"].items():
            self.assertTrue(points, name)
            for p in points:
                for value in p[1:]:
                    self.assertTrue(math.isfinite(value) and value >= 0, (name, p))

    def ratio(self, r):
        """Others may have had the processors for the whole of the one turn of a party."""
        self.assertGreater(r["turns"] + r["lost"], 0)
        if r["turns"]:
            self.assertTrue(0 < r["quarter"] <= r["median"] <= r["three_quarters"] and r["unsure"] >= 0, r)

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

    def counted(self, by):
        """One Identify of 4 KiB to 59 hosts; 12 epochs whose losses are the same; messages of the control path."""
        group, each = ([int(v) for v in r[1:5]] for r in by["multicast"]["tables"][0]["rows"])
        self.assertEqual(group, [17, 17, 59 * 16 + 1, 59])
        self.assertEqual(each, [59 * 17] * 3 + [59])
        local, lender, beside, cmb = ([int(v) for v in r[1:]] for r in by["queues"]["tables"][0]["rows"])
        self.assertTrue(local[0] >= 1000 and local[1] >= 1000 and lender[0] >= 1000 and beside[0] >= 1000,
                        (local, lender, beside))
        self.assertTrue(lender[1] == beside[1] == cmb[1] == 0 and cmb[0] <= 8, (lender, beside, cmb))
        rows = by["training"]["tables"][0]["rows"]
        self.assertEqual([r[0] for r in rows], ["own host", "one lender", "two lenders"])
        self.assertEqual(len({r[-1] for r in rows}), 1)
        self.assertEqual([float(r[5]) == 0 for r in rows], [True, False, False])  # bytes through the driver's link
        self.assertEqual([float(r[7]) == 0 for r in rows], [True, True, False])
        self.assertEqual(len(by["functions"]["tables"][0]["rows"]), 6)
        # Whole numbers: nothing else is asked for meanwhile. Borrows and returns in a row are announced together.
        counts = [float(r[-2]) for r in by["control"]["tables"][0]["rows"]]
        self.assertEqual([*counts[:2], *counts[3:]], [5, 9, 17])
        self.assertGreaterEqual(counts[2], 9)
        self.assertLessEqual(counts[2], 13)

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
        self.assertNotRegex(text, r'''["']black["']|rgb\( *0, *0, *0\)''')
        pictures = glob.glob(os.path.join(self.dir, "*.png"))
        self.assertEqual(len(pictures), charts)
        for path in pictures:
            with open(path, "rb") as f:
                self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")
        tables = glob.glob(os.path.join(self.dir, "*.csv"))
        self.assertEqual(len(tables), 8)
        for path in tables:
            with open(path, encoding="ascii") as f:
                self.assertTrue(list(csv.DictReader(f)), path)

    def test_sizes(self):
        """One row for each size, with figures in it."""
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "sizes.py"), BUILD, "--quick"], capture_output=True,
                              text=True, timeout=170, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = done.stdout.splitlines()[2:]
        self.assertEqual([row.split("|")[1].strip() for row in rows],
                         ["4", "4", "4, 3 segments each, 2 of every other's mapped"])
        for row in rows:
            up, mebibytes, idle, took, of = (float(re.match(r"[\d.]+", cell.strip())[0]) for cell in row.split("|")[2:7])
            self.assertTrue(up > 0 and mebibytes > 1 and 0 <= idle < 100 and took > 1 and of > 0, row)

    def result(self, name, **ratios):
        """A folder as a run leaves it."""
        path = os.path.join(self.dir, name)
        os.makedirs(path)
        with open(os.path.join(path, "results.json"), "w", encoding="utf-8") as f:
            json.dump({"about": {"processor": name}, "experiments": [{"name": "e", "ratios": [
                {"name": k, "turns": 5, "lost": 0, "median": v, "note": "of threads" if k == "b" else ""} for k, v in
                ratios.items()]}]}, f)
        return path

    def test_compares_runs(self):
        """Medians over runs, and which are farther from them than asked for."""
        folders = [self.result("x", a=1.0, b=2.0), self.result("y", a=1.04, b=2.0), self.result("z", a=1.02, b=3.0)]
        done = subprocess.run([sys.executable, "-B", RUN, "compare", *folders], capture_output=True, text=True, timeout=20,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"e +a +3 +1\.020 +1\.000 +1\.040 +2\.0 %\n")
        self.assertRegex(done.stdout, r"e +b +3 +2\.000 +2\.000 +3\.000 +50\.0 %  more than 5 %\n")
        self.assertIn("1 of 2 ratios of 3 runs are within 5 %", done.stdout)
        self.assertIn("1 of the others: of threads.", done.stdout)
        self.assertIn("the runs differ in processor: x; y; z", done.stdout)
        done = subprocess.run([sys.executable, "-B", RUN, "compare", "--within", "1", *folders], capture_output=True, text=True,
                              timeout=20, check=False)
        self.assertIn("0 of 2 ratios", done.stdout)
        for args, text in (([folders[0]], "two results at least"), (["--within", "0", *folders], "--within 0"),
                           ([self.dir, folders[0]], "results.json: No such file"), ([RUN, folders[0]], "no JSON")):
            done = subprocess.run([sys.executable, "-B", RUN, "compare", *args], capture_output=True, text=True, timeout=20,
                                  check=False)
            with self.subTest(args=args):
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(text, done.stderr)

    def test_says_what_is_wrong(self):
        for args, text in ((["speed"], "there is no experiment speed; all, paths"), ([], "EXPERIMENT"),
                           (["--quick", "--full", "all"], "not allowed with"), (["--smoke", "--quick", "all"], "not allowed with"),
                           (["--build", "/nonexistent", "all"], "nothing is built there")):
            done = run(*args, timeout=20)
            with self.subTest(args=args):
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, re.escape(text))

    def test_a_failed_experiment_is_told(self):
        """Of a build without the benchmark's program; the others are done."""
        os.makedirs(os.path.join(self.dir, "b", "tools"))
        os.symlink(os.path.join(BUILD, "tools", "smartio"), os.path.join(self.dir, "b", "tools", "smartio"))
        done = run("--build", os.path.join(self.dir, "b"), "--smoke", "--out", self.dir, "sisci", "placement")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not done: sisci", done.stderr)
        self.assertIn("borrower's RAM", done.stdout)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
