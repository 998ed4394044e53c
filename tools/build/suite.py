#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs meson's tests of one build for check.sh, and tells what came of them.

Tests of real processes and virtual machines share a machine's processors with whatever else runs there, and may fail
for that alone. Such a test is run once more, with nothing beside it. What passes then counts as passed and is named at
the end with what it said the first time, so that nobody overlooks it; whoever wants none of this sets STRICT=1. Tests
that decide without a clock (logic, the simulator, fuzzers) have no second try: they fail for a reason each time.

usage: suite.py BUILD-FOLDER RESULT-FOLDER MESON-TEST-OPTION...
Adds a line "passed failed skipped" to RESULT-FOLDER/counts, and what failed to RESULT-FOLDER/failures and .../again.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

# Suites whose tests start processes that wait for one another.
TIMED = {"api", "bench", "cli", "clients", "docs", "emu", "examples", "nvme", "port", "system", "vm"}
# More than these are no accident.
MOST = 4
KINDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


class Result:
    """One test as meson's log has it: its name there is "project:suite+suite / test"."""

    def __init__(self, row):
        where, _, self.name = row["name"].partition(" / ")
        self.suites = {s.rpartition(":")[2] for s in where.partition(":")[2].split("+")}
        self.suite = where.partition(":")[2].partition("+")[0]
        self.full = row["name"]
        self.result = row["result"]
        self.kind = KINDS.get(row["result"], "failed")
        self.seconds = row["duration"]
        self.out = (row.get("stdout") or "").splitlines()
        self.err = (row.get("stderr") or "").splitlines()

    def last_words(self):
        return [f"-- {self.full}: {self.result}"] + \
            ["   " + shortened(line) for line in self.out[-8:] + self.err[-12:]]


def shortened(line):
    """The reason may be at either end of a line, as of a machine's last words."""
    return line if len(line) <= 500 else line[:150] + " [...] " + line[-350:]


def run(build, options):
    """Results of meson test, empty if it ran nothing."""
    log = build / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs", "-q", *options],
                   check=False)
    return [Result(json.loads(line)) for line in log.open()] if log.exists() else []


def times(results):
    took = {}
    for r in results:
        took[r.suite] = took.get(r.suite, 0) + r.seconds
    print("time of the tests, one by one:", ", ".join(
        f"{suite} {s:.0f} s" for suite, s in sorted(took.items(), key=lambda t: -t[1]) if s >= 1), flush=True)


def second_try(build, results):
    """Those that failed and may be tried again, if they pass now."""
    failed = [r for r in results if r.kind == "failed"]
    if os.environ.get("STRICT") or len(failed) > MOST:
        return []
    # The log of the first run stays, the next one makes its own.
    if failed:
        shutil.copy(build / "meson-logs/testlog.txt", build / "meson-logs/testlog-first.txt")
    better = []
    for r in failed:
        if not r.suites & TIMED:
            continue
        print(f"== once more, alone: {r.full}", flush=True)
        again = [a for a in run(build, ["--num-processes", "1", r.name]) if a.full == r.full]
        if len(again) == 1 and again[0].kind == "passed":
            better.append(r)
    return better


def main():
    build, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    results = run(build, sys.argv[3:])
    if not results:
        sys.exit("no test ran")
    times(results)
    for r in results:
        if r.kind == "skipped":
            print("skipped:", r.full, r.out[-1:], flush=True)
    better = second_try(build, results)
    failed = [r for r in results if r.kind == "failed" and r not in better]
    with (out / "failures").open("a") as f:
        print(*(line for r in failed for line in r.last_words()), sep="\n", end="\n" if failed else "", file=f)
    with (out / "again").open("a") as f:
        print(*(line for r in better for line in r.last_words()), sep="\n", end="\n" if better else "", file=f)
    skipped = sum(r.kind == "skipped" for r in results)
    with (out / "counts").open("a") as f:
        print(len(results) - skipped - len(failed), len(failed), skipped, file=f)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
