#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How large clusters start, rest and work on this machine: measured, times of our software.

usage: sizes.py BUILD [--hosts N,...] [--rounds N] [--idle SECONDS] [--quick]

For 4 hosts and the cluster files of 60 and 120: how long `smartio cluster up` takes, and the processor time that its programs
have used by then, which other work on the machine leaves as it is; their memory (proportional set size: what they share counts
once) and the processor time that they use at rest; and one connect and map against 4 hosts, in turns with them. With
60 hosts that once more while each host exports 100 segments and maps 10 of every other's.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "base")]
from cluster_base import Cluster  # noqa: E402

FILES = os.path.join(HERE, "..", "..", "examples", "topologies")
FILE = {4: "one-switch", 60: "sixty-hosts", 120: "one-hundred-and-twenty-hosts"}
CROWD = {60: (100, 10)}  # segments of each host, and those of each other's that it maps
TIMES = 300
TICKS = os.sysconf("SC_CLK_TCK")


class Programs:
    """smartio-emu and the daemons of a cluster."""

    def __init__(self, cluster):
        self.pids = []
        for name in os.listdir(cluster.state):
            if name.endswith(".pid"):
                with open(os.path.join(cluster.state, name), encoding="ascii") as f:
                    self.pids.append(int(f.read()))

    def seconds(self):
        """Processor time that they have used; the scheduler's count is finer than clock ticks."""
        total = 0
        for pid in self.pids:
            for task in os.listdir(f"/proc/{pid}/task"):
                try:
                    with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                        total += int(f.read().split()[0]) / 1e9
                except OSError:
                    with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as f:
                        total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / TICKS
        return total

    def mebibytes(self):
        total = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        return total / 1024


def topology(hosts):
    with open(os.path.join(FILES, FILE[hosts] + ".yaml"), encoding="utf-8") as f:
        return f.read()


def nodes(cluster):
    found = json.loads(cluster.smartio("node", "list", "--json"))["data"]
    return [(n["name"], n["node"]) for n in found["nodes"]]


class Work:
    """Connects to a segment of the first host, and maps it, from the second."""

    def __init__(self, build, cluster, names):
        self.program, self.cluster = os.path.join(build, "bench", "paper", "bench-control"), cluster
        (_, self.node), (self.name, _) = names[:2]

    def microseconds(self):
        """Of a connect and of a map, each with what ends it; the median."""
        total = 0
        for operation in ("connect", "map"):
            rows = {}
            out = self.cluster.run(self.name, self.program, operation, self.device(), str(self.node), str(TIMES))
            for line in out.splitlines():
                name, ns = line.rsplit(",", 1)
                rows.setdefault(name, []).append(int(ns))
            total += statistics.median(rows[operation])
        return total / 1000

    def device(self):
        return json.loads(self.cluster.smartio("device", "list", "--json"))["data"]["devices"][0]["name"]


def export(build, cluster, names, crowd):
    """Programs that export, on the first host or on all; with a crowd all map of each other."""
    program = os.path.join(build, "bench", "paper", "bench-control")
    if not crowd:
        children = [cluster.start(names[0][0], program, "export", "1", stdin=subprocess.PIPE)]
    else:
        children = [cluster.start(name, program, "crowd", *map(str, crowd), *(str(n) for _, n in names if n != node),
                                  stdin=subprocess.PIPE) for name, node in names]
    for child in children:
        if child.stdout.readline() != "ready\n":
            raise AssertionError(child.communicate()[1])
    if crowd:
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        for child in children:
            if child.stdout.readline() != "mapped\n":
                raise AssertionError(child.communicate()[1])
    return children


def end(cluster, children):
    for child in children:
        child.stdin.close()
        child.stdin = None
    for child in children:
        cluster.finish(child)


def idle(programs, seconds):
    time.sleep(seconds / 4)
    before = programs.seconds()
    time.sleep(seconds)
    return 100 * (programs.seconds() - before) / seconds


def one(build, small, hosts, rounds, seconds, crowd):
    """Figures of a size; @small: work in a cluster of 4 hosts, to be compared with in turns; None: this is it."""
    started = time.monotonic()
    with Cluster(build, topology(hosts)) as cluster:
        up = time.monotonic() - started
        programs, names = Programs(cluster), nodes(cluster)
        used = programs.seconds()
        children = export(build, cluster, names, crowd)
        work = Work(build, cluster, names)
        mine, ratio = [], []
        for _ in range(rounds):
            mine.append(work.microseconds())
            if small:
                ratio.append(mine[-1] / small.microseconds())
        rest, memory = idle(programs, seconds), programs.mebibytes()
        end(cluster, children)
    of = f"{statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})" if ratio else "1"
    what = f"{hosts}, {crowd[0]} segments each, {crowd[1]} of every other's mapped" if crowd else str(hosts)
    print(f"| {what} | {up:.2f} s, {used:.2f} s of processor | {memory:.0f} MiB | {rest:.3f} % | "
          f"{statistics.median(mine):.0f} us | {of} |", flush=True)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("build")
    args.add_argument("--hosts", default="60,120", help="4 come first always")
    args.add_argument("--rounds", type=int, default=9)
    args.add_argument("--idle", type=float, default=20, metavar="SECONDS")
    args.add_argument("--quick", action="store_true", help="shows that it runs")
    o = args.parse_args()
    sizes = [4] if o.quick else [int(n) for n in o.hosts.split(",")]
    if not set(sizes) <= set(FILE):
        args.error(f"--hosts {o.hosts}: of {', '.join(map(str, FILE))}")
    rounds, seconds = (1, .2) if o.quick else (o.rounds, o.idle)
    build = os.path.abspath(o.build)
    print("| hosts | up | resident (PSS) | idle, of a core | connect and map | of that with 4 hosts |\n"
          "|---|---|---|---|---|---|")
    one(build, None, 4, rounds, seconds, None)
    with Cluster(build, topology(4)) as cluster:
        names = nodes(cluster)
        children = export(build, cluster, names, None)
        small = Work(build, cluster, names)
        for hosts in sizes:
            one(build, small, hosts, rounds, seconds, None)
            if hosts in CROWD or o.quick:
                one(build, small, hosts, rounds, seconds, CROWD.get(hosts, (3, 2)))
        end(cluster, children)


if __name__ == "__main__":
    main()
