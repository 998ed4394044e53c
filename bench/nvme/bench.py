#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The emulated drive and its driver beside a bare loop that moves the same bytes.

Brings up a cluster of five hosts in a folder of its own and measures, in short rounds that take
turns: a client on the lender, a client on another host, and the bare loop, two processes that pass
64-byte commands, data and 16-byte completions through shared memory. docs/performance.md tells what
the numbers mean. Nothing passes or fails here: the exit status is 0 when all was measured.
"""
import argparse
import contextlib
import os
import platform
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from machine import Bare, Cluster, Failed, Priority  # noqa: E402
from report import table, write_csv, write_png  # noqa: E402
from rows import NEED_TWO, ROWS, SWEEP, Bench  # noqa: E402

KEYS = ["idle", "first"] + [r[0] for r in ROWS] + ["stall", "clients30", "sweep", "waits", "files", "instructions"]
FULL = {"rounds": 101, "seconds": 0.02, "long": 10.0, "many_rounds": 51, "windows": 60, "many": 0.2, "gap": 0.005,
        "first_rounds": 21, "first_ios": 20, "idle": 10.0, "sweep": SWEEP, "sweep_rounds": 7,
        "callgrind": 300, "wait_rounds": 31}
QUICK = {"rounds": 101, "seconds": 0.004, "long": 2.0, "many_rounds": 51, "windows": 20, "many": 0.02, "gap": 0.005,
         "first_rounds": 7, "first_ios": 20, "idle": 3.0, "sweep": [1, 4, 16, 64], "sweep_rounds": 5,
         "callgrind": 30, "wait_rounds": 21}
SMOKE = {"rounds": 3, "seconds": 0.01, "long": 0.3, "many_rounds": 1, "windows": 8, "many": 0.05, "gap": 0.005,
         "first_rounds": 2, "first_ios": 5, "idle": 1.0, "sweep": [1, 32], "sweep_rounds": 1,
         "callgrind": 10, "wait_rounds": 2}


def siblings(cpu):
    try:
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list",
                  encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return str(cpu)


def choose_cpus(text):
    """Two processors of different cores; twice the same if there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    if text:
        try:
            cpus = [int(t) for t in text.split(",")]
        except ValueError:
            cpus = []
        if len(cpus) != 2 or not set(cpus) <= set(allowed):
            raise Failed(f"--cpus {text}: two of {','.join(map(str, allowed))} are right")
        return cpus
    others = [c for c in allowed if siblings(c) != siblings(allowed[0])]
    return [allowed[0], (others or allowed[1:] or allowed)[0]]


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], epilog="Rows: " +
                                ", ".join(KEYS))
    p.add_argument("--build", required=True, metavar="DIR", help="the build folder")
    length = p.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="half a minute: shorter rounds, fewer points")
    length.add_argument("--smoke", action="store_true", help="see in seconds that it works; the numbers mean little")
    p.add_argument("--csv", metavar="FILE", help="every round of every row")
    p.add_argument("--png", metavar="FILE", help="histogram, depth against rate, shares of 30 clients over time (gnuplot)")
    p.add_argument("--only", metavar="ROW,...", help="these rows alone")
    p.add_argument("--rounds", type=int, metavar="N", help="rounds of the table's rows")
    p.add_argument("--seconds", type=float, metavar="S", help="length of one window")
    p.add_argument("--cpus", metavar="A,B", help="processors of client and device")
    p.add_argument("--nice", type=int, default=0, metavar="N",
                   help="priority of both sides where client and device have a processor each "
                   "(else it would change what a yield does), and of this session meanwhile; "
                   "below 0 needs privilege")
    o = p.parse_args()
    given = {k: getattr(o, k) for k in ("rounds", "seconds") if getattr(o, k) is not None}
    for key, value in {**(SMOKE if o.smoke else QUICK if o.quick else FULL), **given}.items():
        setattr(o, key, value)
    if o.rounds < 1 or not 0.001 <= o.seconds <= 60:
        p.error("--rounds at least 1, --seconds 0.001 to 60 are right")
    o.only = o.only.split(",") if o.only else KEYS
    for key in o.only:
        if key not in KEYS:
            p.error(f"--only {key}: one of {', '.join(KEYS)} is right")
    return o


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def introduce(o, cpus):
    print("measured: times of our software, not of PCIe")
    print(f"  {processor()}, {os.cpu_count()} processors, Linux {platform.release()}, load "
          f"{os.getloadavg()[0]:.1f}; processors {cpus[0]} and {cpus[1]}, nice {o.nice}")
    print(f"  build {os.path.basename(os.path.normpath(o.build))}: {build_kind(o.build)}")
    if o.smoke:
        print("  --smoke: too short to mean much")


def build_kind(build):
    """Whether the machine room checks each access against its naive list: that costs."""
    try:
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            checks = "-DNDEBUG" not in f.read()
    except OSError:
        return "flags unknown"
    return "with assertions and the naive list of the machine room (no -DNDEBUG)" if checks else \
        "without assertions and naive list (-DNDEBUG)"


def measure(b, o, rows):
    """In an order in which what is opened for one row does not disturb another."""
    def done(row):
        b.say("")
        rows.append(row)
        table(row, lambda text: print(text, flush=True))

    if "idle" in o.only:
        done(b.idle())
    b.clients()
    parts = [(spec[0], lambda s=spec: b.table_row(s)) for spec in ROWS]
    parts += [("stall", b.long), ("first", b.first), ("clients30", b.many), ("sweep", b.sweep), ("waits", b.waits),
              ("files", b.files), ("instructions", b.instructions)]
    for key, run in parts:
        if key in o.only and (b.has_two or key not in NEED_TWO):
            done(run())
        elif key in o.only:
            print(f"\n{key}: not measured, there is one processor")


def bench(o):
    cpus = choose_cpus(o.cpus)
    introduce(o, cpus)
    rows, priority = [], Priority(o.nice)
    with contextlib.ExitStack() as stack:
        stack.callback(priority.end)
        cluster = Cluster(o.build, priority)
        stack.callback(cluster.down)
        bare = Bare(o.build, 1, priority)
        stack.callback(bare.down)
        bare2 = Bare(o.build, 30, priority, sessions=2)
        stack.callback(bare2.down)
        b = Bench(o, cluster, bare, bare2, cpus)
        stack.callback(b.close)
        measure(b, o, rows)
    if o.csv:
        write_csv(rows, o.csv)
    if o.png:
        reason = write_png(rows, o.png)
        if reason:
            print(f"\n{reason}")


def main():
    o = parse()
    o.build = os.path.abspath(o.build)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        bench(o)
    except Failed as e:
        sys.exit(f"bench: {e}")
    except PermissionError as e:
        sys.exit(f"bench: {e} (--nice below 0 needs privilege)")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
