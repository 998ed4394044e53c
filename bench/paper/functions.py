# SPDX-License-Identifier: BSD-2-Clause
"""Throughput of a drive's physical and virtual functions: the lender's own, borrowed, two hosts at once.

The drive is a model with SR-IOV (virtual_functions in the topology file). Rounds of all parties take turns, so that
one can be compared with another. What is measured is time of our software: two functions share the one processor
that the machine room has, as two functions of a real device share its medium and its link.
"""
import contextlib
import os
import statistics
import sys

from chart import size
from parts import BENCH, ON_MODEL, Failed, lines, table

sys.path.insert(0, os.path.join(BENCH, "base"))
sys.path.insert(0, os.path.join(BENCH, "nvme"))
from cluster_base import Cluster  # noqa: E402
from spread import quartiles  # noqa: E402
import machine  # noqa: E402

TOPOLOGY = """\
cluster: functions
switches: [sw0]
hosts:
  lender: {devices: {nvme0: {type: nvme, size: 64M, virtual_functions: 2}}}
  one:
  two:
"""
DISK = 64 << 20
# Who: the clients that run at once, each a function and a host.
PARTIES = {"physical, own host": [("nvme0", "lender")], "physical, borrowed": [("nvme0", "one")],
           "virtual, own host": [("nvme0-vf1", "lender")], "virtual, borrowed": [("nvme0-vf1", "one")],
           "two functions, two hosts": [("nvme0-vf1", "one"), ("nvme0-vf2", "two")],
           "one function, two hosts": [("nvme0", "one"), ("nvme0", "two")]}
BASE = "physical, own host"
SIZES = [(4096, 32), (16384, 16), (65536, 8), (262144, 4), (1 << 20, 4)]  # bytes of a read, depth


def measure(cluster, worker, rounds, seconds):
    """Party -> size -> of each round bytes per second, and the least share of the clients; and the same of BASE beside it."""
    allowed = sorted(os.sched_getaffinity(0))
    cpus, room = [allowed[0], allowed[-1]], cluster.pid_of_room()
    found, base = ({who: {n: [] for n, _ in SIZES} for who in PARTIES if who != BASE} for _ in range(2))
    with contextlib.ExitStack() as stack:
        client = {}
        for device, host in sorted({c for party in PARTIES.values() for c in party}):
            w = machine.Worker(cluster.on(host, worker, "client", device), f"{device} on {host}")
            stack.callback(w.end)
            client[device, host] = w
        client["nvme0", "lender"].ask("fill", DISK)
        for i in range(rounds):
            for size, depth in SIZES:
                for who in PARTIES:
                    if who != BASE:
                        # Each beside the one that it is compared with; who came first comes last the next time.
                        for one in (BASE, who)[::1 if i % 2 else -1]:
                            some = [client[c] for c in PARTIES[one]]
                            r = machine.measure(some, room, depth, size, cpus, seconds, DISK)
                            share = min(a["count"] for a in r.answers) / (r.count / len(some)) if r.count else 0
                            (base if one == BASE else found)[who][size].append((r.bytes, share))
    found[BASE] = {n: [v for by in base.values() for v in by[n]] for n, _ in SIZES}
    return found, base


def functions(c):
    """Read throughput by size, for each function and host."""
    worker = os.path.join(c.build, "bench", "nvme", "bench-nvme-worker")
    rounds, seconds = c.pick((1, 0.02), (25, 0.004), (101, 0.02))
    try:
        with Cluster(c.build, TOPOLOGY, apart=True) as cluster:
            for device in ("nvme0", "nvme0-vf1", "nvme0-vf2"):
                cluster.manager("lender", device)
            found, base = measure(cluster, worker, rounds, seconds)
    except (AssertionError, machine.Failed) as e:
        raise Failed(str(e)) from e
    c.csv("functions", ["who", "bytes", "round", "GBps", "least_share"],
          ([who, n, i + 1, f"{rate / 1e9:.4f}", f"{share:.3f}"] for who, by in found.items()
           for n, values in by.items() for i, (rate, share) in enumerate(values)))
    rows, against, series = [], [], {}
    for who in PARTIES:
        rates = {n: [r / 1e9 for r, _ in v] for n, v in found[who].items()}
        series[who] = [(n, statistics.median(v), *quartiles(v)) for n, v in rates.items()]
        least = statistics.median(s for v in found[who].values() for _, s in v)
        rows.append([who, *(f"{statistics.median(v):.2f}" for v in rates.values()),
                     "" if len(PARTIES[who]) == 1 else f"{least:.2f}"])
        if who != BASE:
            ratios = [c.ratio(f"{who} / {BASE}, {size(n)}", [r for r, _ in found[who][n]], [r for r, _ in base[who][n]])
                      for n, _ in SIZES]
            against.append([who, *(r.cell() for r in ratios)])
    sizes = [size(n) for n, _ in SIZES]
    one = {who: series[who] for who, clients in PARTIES.items() if len(clients) == 1}
    two = {who: series[who] for who in series if who not in one or who == "physical, borrowed"}
    form = {"log": "x", "sizes": 2}
    return ([table("GB/s of reads, median of rounds", ["function and client", *sizes, "least share of its part"], rows),
             table(f"Of what the {BASE} reads beside it: median of turns (25 % to 75 %)", ["function and client", *sizes], against)],
            [lines(title, ON_MODEL, "bytes of a read", "GB/s: median; 25 % to 75 %", some, **form)
             for title, some in (("Reads by one function", one), ("Reads by two hosts at once", two))])
