#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `make check` counts (tools/build/suite.py): which failed test is run once more, and that nothing is hidden."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUITE = pathlib.Path(__file__).resolve().parents[2] / "tools/build/suite.py"

# name, suite, exit status of the first run, of the second
TESTS = [("good", "core", 0, 0), ("left out", "cli", 77, 77), ("never", "cli", 1, 1), ("second", "vm", 1, 0),
         ("logic", "core", 1, 0), ("threads", "api", 3, 0)]


class Suite(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.top = pathlib.Path(self.dir.name)
        (self.top / "source").mkdir()
        self.out = self.top / "out"
        self.out.mkdir()

    def project(self, tests):
        """A project whose tests end with other statuses when they run for the second time."""
        script = self.top / "source/one.sh"
        script.write_text('#!/bin/sh\necho "words of $1"\n'
                          'if mkdir "$4/$1" 2>/dev/null; then exit "$2"; else exit "$3"; fi\n')
        script.chmod(0o755)
        rows = [f"test('{name}', find_program('one.sh'), suite: ['{suite}', 'plain-only'], "
                f"args: ['{name}', '{first}', '{then}', '{self.top}'])" for name, suite, first, then in tests]
        (self.top / "source/meson.build").write_text("\n".join(["project('smartio')"] + rows))
        subprocess.run(["meson", "setup", str(self.top / "build"), str(self.top / "source")], check=True,
                       stdout=subprocess.DEVNULL)

    def run_suite(self, *options, **env):
        r = subprocess.run([sys.executable, str(SUITE), str(self.top / "build"), str(self.out), *options],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | env)
        read = {name: (self.out / name).read_text() if (self.out / name).exists() else None
                for name in ("counts", "failures", "again")}
        return r, read

    def test_second_try(self):
        self.project(TESTS)
        r, read = self.run_suite(STRICT="")
        self.assertEqual(r.returncode, 1, r.stdout)
        self.assertEqual(read["counts"], "3 2 1\n", r.stdout)
        self.assertIn("never", read["failures"])
        self.assertIn("words of never", read["failures"])
        self.assertIn("logic", read["failures"])
        self.assertNotIn("second", read["failures"])
        # What passed at last is told with its first words.
        self.assertIn("words of second", read["again"])
        self.assertIn("words of threads", read["again"])
        self.assertNotIn("never", read["again"])
        self.assertIn("once more, alone: smartio:vm+plain-only / second", r.stdout)
        self.assertTrue((self.top / "build/meson-logs/testlog-first.txt").exists())

    def test_strict(self):
        self.project(TESTS)
        r, read = self.run_suite(STRICT="1")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(read["counts"], "1 4 1\n", r.stdout)
        self.assertEqual(read["again"], "")

    def test_many_failures_are_no_accident(self):
        self.project([(f"t{i}", "vm", 1, 0) for i in range(5)])
        r, read = self.run_suite(STRICT="")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(read["counts"], "0 5 0\n", r.stdout)

    def test_all_pass(self):
        self.project([("good", "core", 0, 0), ("bad", "vm", 1, 1)])
        r, read = self.run_suite("good", STRICT="")
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertEqual([read[name] for name in ("counts", "failures", "again")], ["1 0 0\n", "", ""])

    def test_nothing_ran(self):
        self.project([("good", "core", 0, 0)])
        r, read = self.run_suite("--suite", "nothing")
        self.assertNotEqual(r.returncode, 0)
        self.assertIsNone(read["counts"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
