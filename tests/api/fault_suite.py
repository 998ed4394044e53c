#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every test of the API while calls of the library fail: tests may fail then, and only that.

usage: fault_suite.py BUILD [--seconds N] [--test NAME]... [--kind KIND]... [--at N]

Each program of a test has its n-th allocation, its n-th message to smartiod or its n-th other system call fail
(tests/lib/failing.c), for n of 1, 2, 3, ..., the less often the higher, until no program makes so many, or for
so long. A program may end then when it has told a right error. It must not crash, hang or leak (BUILD with
ASan), and once the test has ended all that it held is given back (doctor --audit). What it waits for without end
may be what the failure ended, in this program or another: it waits 20 s for it, and must not find it then; for a
callback or another program 30 s. Any other call that does not return is a hang.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import time

KINDS = ("memory", "request", "system")
# Their library is linked in, or is not asked through the cluster; or they are made to go on for long; or they
# try again for as long as a host does not answer, their own among them.
NOT_THESE = {"answers", "fault", "loss", "stress", "wait"}
LIMIT_S = 600
# What nobody may say, whatever fails.
WRONG = re.compile(r"Sanitizer|runtime error:|killed by signal|does not end|"
                   r"does not hold what it held|did not become ready|Test failed with exception|nobody woke")
TOLD = re.compile(r"^\S+:\d+: (?P<what>.*); the library says: (?P<text>.*)$", re.M)
CODE = re.compile(r"^(?P<got>.*) \(0x[0-9a-f]+\), expected (?P<expected>.*)$")
# As of fault_judge.c: what the failure is called, by kind; and what later calls, and other programs, say of it.
MEMORY = {"Out of system resources", "Out of library resources", "Link is down"}
RIGHT = {"memory": MEMORY,
         "request": {"Link is down", "Not initialized"},
         "system": MEMORY | {"System error"}}
FOLLOWS = {"OK", "No such segment or interrupt", "Not connected", "Segment is not connected", "Transfer failed",
           "Segment is not prepared", "Timed out", "Cancelled", "Remote link is down"}
# Where nobody is there to be told: a child of fork().
NOT_TOLD = {"p[0] == 0 && p[PAGE] == 0x77 is false"}
FAILED = re.compile(r"^failing: ", re.M)
# A program waits for what did not come, in a call (by failing.c) or for a callback or another program. In a call that
# is no mistake where anything has failed, for that ended it. Who is called back is told the end, too, but for these:
# no callback of a local segment is called when its session ends; of a data interrupt nobody says what a sender had
# sent whose ring could not be mapped, and rings of a receiver that lost its session stay, which one test waits for.
VAIN, CALLBACK = re.compile("waits in vain"), re.compile("step [0-9]+ does not come")
NOT_CALLED = {"memory_api_test": re.compile(r"^failing: request", re.M),
              "dataint_api_test": re.compile(r"^failing: request|the sender is cut off", re.M)}


def wrong_wait(name, err):
    """A wait that no failure explains."""
    vain, callback = VAIN.search(err), CALLBACK.search(err)
    if callback and not (name in NOT_CALLED and NOT_CALLED[name].search(err)):
        return callback
    return vain if vain and not FAILED.search(err) else None


def wrong_told(kind, err):
    """The first sentence of a program that is not a right error."""
    for m in TOLD.finditer(err):
        if m.group("what") in NOT_TOLD:
            continue
        code = CODE.match(m.group("what"))
        if code and code.group("got") not in RIGHT[kind] | FOLLOWS:
            return m.group(0)
        if not code and not m.group("text") and kind != "request":  # waits that succeed: all is lost
            return m.group(0)
    return None


class Suite:
    def __init__(self, build, seconds):
        self.build, self.end = build, time.monotonic() + seconds
        self.env = dict(os.environ, LD_PRELOAD=os.path.join(build, "tests", "lib", "libfailing.so"),
                        ASAN_OPTIONS="detect_leaks=1:abort_on_error=1:verify_asan_link_order=0",
                        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
                        SMARTIO_TEST_EMU=os.path.join(build, "emu", "smartio-emu"),
                        SMARTIO_TEST_SMARTIOD=os.path.join(build, "smartiod", "smartiod"),
                        SMARTIO_TEST_TOOL=os.path.join(build, "tools", "smartio"))
        self.runs, self.failed, self.wrong = 0, 0, []

    def run(self, program, kind, n):
        """Return: how many programs had a call fail."""
        name = os.path.basename(program)
        p = subprocess.Popen([program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             env=dict(self.env, SMARTIO_FAIL=f"{kind}:{n}"), text=True, errors="replace")
        try:
            _, err = p.communicate(timeout=LIMIT_S)
            why = WRONG.search(err) or wrong_wait(name, err) or wrong_told(kind, err)
            if p.returncode < 0:
                why = f"the test ended by signal {-p.returncode}"
        except subprocess.TimeoutExpired:
            p.kill()
            _, err = p.communicate()
            why = f"no end in {LIMIT_S} s"
        self.runs += 1
        failed = len(FAILED.findall(err))
        self.failed += failed
        if why:
            why = why if isinstance(why, str) else why.group(0)
            self.wrong.append((name, kind, n))
            print(f"{name}, {kind} {n}: {why}\n{err}", flush=True)
        return failed

    def over(self):
        return time.monotonic() > self.end

    def go_on(self, at):
        """The next round: one more n of each that has not come to its end."""
        for program, kind in list(at):
            if self.over():
                return
            n = at[program, kind]
            if self.run(program, kind, n):
                at[program, kind] = n + max(1, n // 4)
            else:
                del at[program, kind]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("build")
    p.add_argument("--seconds", type=int, default=600)
    p.add_argument("--test", action="append")
    p.add_argument("--kind", action="append", choices=KINDS)
    p.add_argument("--at", type=int)
    a = p.parse_args()
    suite = Suite(os.path.abspath(a.build), a.seconds)
    names = a.test or sorted({os.path.basename(f)[:-len("_api_test")] for f in
                              glob.glob(os.path.join(suite.build, "tests", "api", "*_api_test"))} - NOT_THESE)
    programs = [os.path.join(suite.build, "tests", "api", f"{name}_api_test") for name in names]
    at = {(program, kind): a.at or 1 for kind in a.kind or KINDS for program in programs}
    if not at:
        sys.exit("no tests: build them first")
    while at and not suite.over():
        suite.go_on(at)
        if a.at:
            break
    print(f"{len(programs)} tests, {suite.runs} runs, {suite.failed} calls failed, {len(suite.wrong)} runs went wrong")
    sys.exit(1 if suite.wrong or not suite.failed else 0)


if __name__ == "__main__":
    main()
