#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What an idle cluster costs: processor time and memory of all its processes together.

usage: idle_test.py BUILD [SECONDS]

Five hosts, a drive, its manager, three clients open. Where every program wakes the drive, all programs
together wake at most 20 times a second: the emulator looks ten times, the manager once. A count, so it
holds on a slow or a busy machine, where the same turns take more of a core. Nobody spins: at most 5 %.
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


def wakes(pid):
    """How often its threads went to sleep."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))
    return total


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
            timer = any(way.startswith("not") for way in ways)
            all_of_it = processes(c.state)
            self.assertGreaterEqual(len(all_of_it), 1 + 5 + 2 * 4)
            before = {p: (cpu_seconds(p), wakes(p)) for p in all_of_it}
            time.sleep(SECONDS)  # the thing measured
            cpu = sum(cpu_seconds(p) - before[p][0] for p in all_of_it) / SECONDS
            woken = sum(wakes(p) - before[p][1] for p in all_of_it) / SECONDS
            pss = sum(pss_bytes(p) for p in all_of_it)
            print(f"\nidle for {SECONDS} s: {len(all_of_it)} processes, "
                  f"{100 * cpu:.3f} % of a core, {woken:.1f} wakes a second, Pss {pss / 1e6:.1f} MB; "
                  f"the drive is woken {', '.join(sorted(ways))}")
            self.assertLess(cpu, 0.05)
            if not timer:
                self.assertLess(woken, 20)
            self.assertLess(pss, 100e6)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    if len(sys.argv) > 1:
        SECONDS = float(sys.argv.pop(1))
    unittest.main(verbosity=2)
