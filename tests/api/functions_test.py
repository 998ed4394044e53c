#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/sisci-coverage.md, the installed headers, the library's exports and the tests agree.

usage: functions_test.py SOURCE LIBRARY
"""
import glob
import os
import re
import subprocess
import sys
import unittest

SOURCE, LIBRARY = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "tools", "build"))
import sisci_coverage  # noqa: E402


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="ascii") as f:
        return f.read()


def normal(prototype):
    """One way of spacing."""
    text = re.sub(r"\s+", " ", prototype).strip()
    text = re.sub(r"\s*([(),])\s*", r"\1", text)
    return re.sub(r"\s*\*\s*", " *", text)


def declared():
    """Functions of the installed header: name -> prototype."""
    text = re.sub(r"/\*.*?\*/", "", read("include", "sisci_api.h"), flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    found = re.findall(r"((?:[\w]+[\s*]+)+?(SCI\w+|SetSci\w+)\s*\([^;{]*\))\s*;", text)
    return {name: normal(prototype) for prototype, name in found}


def exported():
    out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True,
                         text=True).stdout
    names = (line.split()[-1].split("@")[0] for line in out.splitlines())
    return {n for n in names if re.match(r"_?SCI[A-Za-z]|SetSci", n)}


ROWS = sisci_coverage.functions(sisci_coverage.table_of(SOURCE))
THERE = {name: normal(prototype) for name, prototype, _, _, _ in ROWS}


class Functions(unittest.TestCase):
    def test_rows_are_well_formed(self):
        names = [r[0] for r in ROWS]
        self.assertGreater(len(names), 90)
        self.assertEqual(len(names), len(set(names)), "a function stands twice")
        for name, prototype, _, _, source in ROWS:
            self.assertIn(source, ("known", "chosen"), name)
            self.assertRegex(prototype, rf"^[\w *]+\b{name}\(.*\)$")

    def test_flags_and_errors_exist(self):
        flags = set(re.findall(r"define SCI_FLAG_(\w+)", read("include", "sisci_api.h")))
        errors = set(re.findall(r"\bSCI_ERR_(\w+) =", read("include", "sisci_error.h")))
        for name, _, used_flags, used_errors, _ in ROWS:
            for word in used_flags:
                self.assertIn(word, flags, name)
            for word in used_errors:
                self.assertIn(word.lstrip("~"), errors, name)

    def test_header_declares_them(self):
        self.assertEqual(THERE, declared())

    def test_library_exports_them(self):
        self.assertEqual(set(THERE), exported())

    def test_a_test_calls_each(self):
        text = "".join(read(path) for room in ("api", "lib")
                       for path in glob.glob(os.path.join(SOURCE, "tests", room, "*.[ch]")))
        untested = [n for n in THERE if not re.search(rf"\b{n}\(", text)]
        self.assertEqual(untested, [], "no test in tests/api calls these")

    def test_a_test_names_each_flag_with_its_function(self):
        unnamed = sisci_coverage.unnamed_flags(SOURCE)
        self.assertEqual(unnamed, [])

    def test_a_test_names_each_error_with_its_function(self):
        unnamed = sisci_coverage.unnamed_errors(SOURCE)
        self.assertEqual(unnamed, [])

    def test_what_is_never_given_has_its_reason(self):
        limits = read("docs", "sisci-limits.md").split("## Errors that are listed")[1].split("## ")[0]
        for name, _, _, used_errors, _ in ROWS:
            for word in used_errors:
                if word.startswith("~"):
                    self.assertRegex(limits, rf"(?m)^\|[^|]*\b{word[1:]}\b[^|]*\|[^|]*\b{name}\b",
                                     "docs/sisci-limits.md has no row for these")

    def test_a_test_names_each_reason_of_a_callback(self):
        text = "".join(sisci_coverage.tests(SOURCE).values())
        reasons = re.findall(r"\b(SCI_CB_\w+) = ", read("include", "sisci_types.h"))
        self.assertEqual(len(reasons), 5)
        self.assertEqual([r for r in reasons if r not in text], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
