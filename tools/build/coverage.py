#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Branch coverage of the pure logic: libsmartio/core and libsmartio/wire, by their own tests.

Builds at -O0 with gcc, runs the tests, prints a table per file. Fails if a file has less than 98 %,
or a branch is not taken that tests/untaken.txt does not name, or that list names one that is.
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/coverage"
ROOMS = ["libsmartio/core", "libsmartio/wire"]
SUITES = ["core", "wire", "fuzz"]
WANTED = 98.0


def run(*command, **more):
    subprocess.run(command, check=True, cwd=ROOT, **more)


def build():
    if not (BUILD / "build.ninja").exists():
        # gcc 12 crashes in these two warnings at -O0.
        run("meson", "setup", str(BUILD), "-Db_coverage=true", "-Doptimization=0",
            "-Dc_args=-Wno-format-truncation -Wno-format-overflow",
            env=dict(os.environ, CC="gcc", CXX="g++"), stdout=subprocess.DEVNULL)
    run("ninja", "-C", str(BUILD), "--quiet")
    for old in BUILD.rglob("*.gcda"):
        old.unlink()
    run("meson", "test", "-C", str(BUILD), "--no-rebuild", "-q", "--print-errorlogs",
        *[a for s in SUITES for a in ("--suite", s)], stdout=subprocess.DEVNULL)


def measure():
    """{file: (branches, [(line, text) of each one that is not taken])}"""
    out = subprocess.run(["gcovr", "-r", ".", str(BUILD), "--json",
                          *[a for r in ROOMS for a in ("-f", r + r"/.*\.c")]],
                         check=True, cwd=ROOT, capture_output=True, text=True).stdout
    found = {}
    for f in json.loads(out)["files"]:
        text = (ROOT / f["file"]).read_text().splitlines()
        branches = [(l["line_number"], b["count"]) for l in f["lines"] for b in l["branches"]]
        found[f["file"]] = (len(branches),
                            [(n, text[n - 1].strip()) for n, count in branches if count == 0])
    sources = {str(p.relative_to(ROOT)) for r in ROOMS for p in (ROOT / r).glob("*.c")}
    for f in sorted(sources - set(found)):
        sys.exit(f"coverage: nothing was measured in {f}")
    return found


def reasons():
    """tests/untaken.txt: FILE | the line of code | the reason."""
    known = {}
    for line in (ROOT / "tests/untaken.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            file, code, reason = (part.strip() for part in line.split(" | ", 2))
            known[file, code] = reason
    return known


def main():
    build()
    found, known, bad = measure(), reasons(), []
    total = missed = 0
    print(f"{'file':34} {'branches':>8} {'taken':>6} {'':>6}")
    for file, (n, untaken) in sorted(found.items()):
        percent = 100.0 * (n - len(untaken)) / n if n else 100.0
        total, missed = total + n, missed + len(untaken)
        print(f"{file:34} {n:8} {n - len(untaken):6} {percent:5.1f}%")
        if percent < WANTED:
            bad.append(f"{file} has {percent:.1f} %, wanted are {WANTED:.0f} %")
        for line, code in untaken:
            if (file, code) not in known:
                bad.append(f"{file}:{line}: a branch of '{code}' is not taken, and "
                           "tests/untaken.txt does not say why")
            else:
                print(f"    line {line}: {known[file, code]}")
    for file, code in known:
        if (file, code) not in [(f, c) for f, (_, u) in found.items() for _, c in u]:
            bad.append(f"tests/untaken.txt names '{code}' in {file}, but it is taken or gone")
    print(f"{'all':34} {total:8} {total - missed:6} {100.0 * (total - missed) / total:5.1f}%")
    for line in bad:
        print("coverage:", line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
