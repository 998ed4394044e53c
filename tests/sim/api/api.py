#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The API's tests in the simulator: each program with several seeds, half of them new each time, and
one of them twice, which must be the same run. What is skipped there, and why, is compared with a list;
so are the programs that are not built for the simulator at all.

usage: api/api.py SMARTIO-SIM-API LIST [--seeds N] [--first SEED] [--only PROGRAM] [--record]
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

LARGE = {"block", "copy", "dma", "dma_loss", "multicast_exact"}  # they move most: a third of the seeds
# Not built for the simulator.
ELSEWHERE = {
    "answers": "a socket on which the test plays smartiod itself",
    "fault": "a library linked with an allocator and a world of the test's own",
    "gpu": "a library that stands for CUDA's driver",
    "guest": "memory and eventfds of the test's own",
    "many": "limits of the kernel's, and tens of thousands of calls",
    "many_members": "sixty hosts at once",
    "mirror": "signals, and pages that may only be read",
    "near": "memory devices",
    "dma_bar": "memory devices",
    "overlay": "memory devices",
    "overlay_life": "memory devices",
    "p2p": "memory devices",
    "p2p_cut": "memory devices",
    "stress": "processes that the kernel kills anywhere, for as long as was asked",
    "wait": "a library linked with a world of the test's own",
}
NO_CLUSTER = {"constants", "copy_words", "handle", "quick", "ring"}  # of parts of the library
LIMIT_S = 600  # no run takes that long, on whatever machine


def run(binary, program, seed):
    p = subprocess.run([binary, program, str(seed)], capture_output=True, text=True, errors="replace",
                       timeout=LIMIT_S)
    return p.returncode, p.stdout + p.stderr


def table(program, output):
    """Lines of the list: each test, and whether it ran or what it would need."""
    needs, test, lines = None, None, []
    for line in output.splitlines():
        if m := re.match(r"\[ RUN +\] (\w+)", line):
            test, needs = m[1], None
        elif m := re.match(r"\[  NEEDS +\] (.*)", line):
            needs = m[1]
        elif re.match(r"\[       OK \]", line):
            lines.append(f"{program} {test} runs")
        elif needs and line == f"[  SKIPPED ] {test}":
            lines.append(f"{program} {test} skipped: needs {needs}")
            needs = None
    return lines


def elsewhere(programs, tests):
    """Lines of the list: the tests of the programs that are not here; all others are here."""
    paths = {os.path.basename(p)[:-len("_test.c")]: p for p in glob.glob(os.path.join(tests, "*_test.c"))}
    if differ := set(paths) - NO_CLUSTER ^ set(programs) ^ set(ELSEWHERE):
        sys.exit(f"neither run here nor listed as skipped, or both: {' '.join(sorted(differ))}")
    lines = []
    for name, why in ELSEWHERE.items():
        with open(paths[name], encoding="ascii") as f:
            names = re.findall(r"(?:API_TEST|cmocka_unit_test\w*)\((\w+)", f.read())
        lines += [f"{name} {test} skipped: needs {why}" for test in names]
    return lines


def compare(path, lines, record):
    with open(path, encoding="utf-8") as f:
        expected = f.read().splitlines()
    head = [line for line in expected if line.startswith("#")]
    if record:
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(head + lines) + "\n")
    elif lines != expected[len(head):]:
        differ = sorted(set(lines) ^ set(expected[len(head):]))
        sys.exit(f"{path} says otherwise; --record writes what was seen:\n" + "\n".join(differ))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("binary")
    a.add_argument("list")
    a.add_argument("--seeds", type=int, default=6)
    a.add_argument("--first", type=int, default=int(time.time()) * 1000)
    a.add_argument("--only")
    a.add_argument("--record", action="store_true")
    a = a.parse_args()
    programs = subprocess.run([a.binary, "--list"], check=True, capture_output=True, text=True).stdout.split()
    if a.only:
        programs = [a.only]
    jobs = []
    for program in programs:
        n = a.seeds // 3 if program in LARGE else a.seeds
        fixed = list(range(1, n // 2 + 1))
        jobs += [(program, seed) for seed in fixed + [a.first + i for i in range(n - n // 2)]]
    jobs += [(program, 1) for program in programs if program not in LARGE]  # again
    seen, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (program, seed), (rc, output) in zip(jobs, pool.map(lambda j: run(a.binary, *j), jobs)):
            before = seen.setdefault((program, seed), output)
            same = before.splitlines()[-1:] == output.splitlines()[-1:]
            if rc or not same:
                failed += 1
                print(f"{a.binary} {program} {seed}\n{output}" +
                      ("" if same else f"another run of the same seed said\n{before}"))
    if failed:
        sys.exit(f"{failed} of {len(jobs)} runs failed")
    if not a.only:
        lines = [line for p in programs for line in table(p, seen[(p, next(s for q, s in jobs if q == p))])]
        lines += elsewhere(programs, os.path.join(os.path.dirname(a.list), "..", "..", "api"))
        compare(a.list, lines, a.record)
        print(f"{len(lines)} tests, {sum(line.endswith(' runs') for line in lines)} of them run here")
    print(f"{len(jobs)} runs of {len(programs)} programs, new seeds from {a.first}")


main()
