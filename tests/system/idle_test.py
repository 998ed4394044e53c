#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What an idle cluster costs: processor time and memory of all its processes together.

usage: idle_test.py BUILD [SECONDS]

Five hosts, a drive, its manager, three clients open: at most 0.2 % of a core in all, where every program
wakes the drive; 5 % where a timer looks. Sums over seconds, not times: they hold on a slow machine, too.
"""
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD, SECONDS = None, 10


def processes(state):
    """Every process whose command line names the cluster or its environment does."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                line = f.read()
            with open(f"/proc/{name}/environ", "rb") as f:
                environ = f.read()
        except OSError:
            continue
        if state.encode() in line or state.encode() in environ:
            found.append(int(name))
    return found


def cpu_seconds(pid):
    """By the scheduler's nanoseconds: short turns fall between the ticks of /proc/PID/stat."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def pss_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        for line in f:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


class Idle(unittest.TestCase):
    def test_idle_cluster(self):
        with Cluster(BUILD) as c:
            c.manager()
            # Opened, and silent.
            clients = [c.start(n, os.path.join(BUILD, "tests", "system", "hold"), "nvme0", stdin=subprocess.PIPE) for n in
                       ("client1", "client2", "client3")]
            for child in clients:
                self.assertIn("open", child.stdout.readline())
            ways = {f["evidence"].split("wakes nvme0 ")[1]
                    for f in json.loads(c.smartio("doctor", "--json", check=False))["data"]["findings"]
                    if f["state"] == "waking" and f["verdict"] == "note"}
            limit = 0.05 if any(way.startswith("not") for way in ways) else 0.002
            all_of_it = processes(c.state)
            self.assertGreaterEqual(len(all_of_it), 1 + 5 + 2 * 4)
            before = {p: cpu_seconds(p) for p in all_of_it}
            time.sleep(SECONDS)  # the thing measured
            cpu = sum(cpu_seconds(p) - before[p] for p in all_of_it)
            pss = sum(pss_bytes(p) for p in all_of_it)
            print(f"\nidle for {SECONDS} s: {len(all_of_it)} processes, "
                  f"{100 * cpu / SECONDS:.3f} % of a core, Pss {pss / 1e6:.1f} MB; the drive is "
                  f"woken {', '.join(sorted(ways))}: the limit is {100 * limit} %")
            self.assertLess(cpu / SECONDS, limit)
            self.assertLess(pss, 100e6)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    if len(sys.argv) > 1:
        SECONDS = float(sys.argv.pop(1))
    unittest.main(verbosity=2)
