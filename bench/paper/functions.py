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

from parts import BENCH, ON_MODEL, Failed, lines, table

sys.path.insert(0, os.path.join(BENCH, "base"))
sys.path.insert(0, os.path.join(BENCH, "nvme"))
from cluster_base import Cluster  # noqa: E402
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
SIZES = [(4096, 32), (16384, 16), (65536, 8), (262144, 4), (1 << 20, 4)]  # bytes of a read, depth


def measure(cluster, worker, rounds, seconds):
    """Party -> size -> of each round bytes per second, and the least share of the clients."""
    allowed = sorted(os.sched_getaffinity(0))
    cpus, room = [allowed[0], allowed[-1]], cluster.pid_of_room()
    found = {who: {n: [] for n, _ in SIZES} for who in PARTIES}
    with contextlib.ExitStack() as stack:
        client = {}
        for device, host in sorted({c for party in PARTIES.values() for c in party}):
            w = machine.Worker(cluster.on(host, worker, "client", device), f"{device} on {host}")
            stack.callback(w.end)
            client[device, host] = w
        client["nvme0", "lender"].ask("fill", DISK)
        for i in range(rounds):
            for size, depth in SIZES:
                order = list(PARTIES)
                for who in order[i % len(order):] + order[:i % len(order)]:
                    some = [client[c] for c in PARTIES[who]]
                    r = machine.measure(some, room, depth, size, cpus, seconds, DISK)
                    share = min(a["count"] for a in r.answers) / (r.count / len(some)) if r.count else 0
                    found[who][size].append((r.bytes, share))
    return found


def functions(c):
    """Read throughput by size, for each function and host."""
    worker = os.path.join(c.build, "bench", "nvme", "bench-nvme-worker")
    rounds, seconds = (3, 0.02) if c.quick else (15, 0.1)
    try:
        with Cluster(c.build, TOPOLOGY) as cluster:
            for device in ("nvme0", "nvme0-vf1", "nvme0-vf2"):
                cluster.manager("lender", device)
            found = measure(cluster, worker, rounds, seconds)
    except (AssertionError, machine.Failed) as e:
        raise Failed(str(e)) from e
    c.csv("functions", ["who", "bytes", "round", "GBps", "least_share"],
          ([who, n, i + 1, f"{rate / 1e9:.4f}", f"{share:.3f}"] for who, by in found.items()
           for n, values in by.items() for i, (rate, share) in enumerate(values)))
    base = found["physical, own host"]
    rows, series = [], {}
    for who, by in found.items():
        rates = {n: [r / 1e9 for r, _ in v] for n, v in by.items()}
        series[who] = [(n, statistics.median(v), min(v), max(v)) for n, v in rates.items()]
        against = [statistics.median(a / b for (a, _), (b, _) in zip(by[n], base[n]) if b) for n, _ in SIZES]
        least = statistics.median(s for v in by.values() for _, s in v)
        rows.append([who, *(f"{statistics.median(rates[n]):.2f}" for n in (4096, 65536, 1 << 20)),
                     f"{min(against):.2f} to {max(against):.2f}", "" if len(PARTIES[who]) == 1 else f"{least:.2f}"])
    head = ["function and client", "4K", "64K", "1M", "of physical, own host", "least share of its part"]
    one = {who: series[who] for who, clients in PARTIES.items() if len(clients) == 1}
    two = {who: series[who] for who in series if who not in one or who == "physical, borrowed"}
    form = {"log": "x", "sizes": 2}
    return ([table("GB/s of reads, median of rounds", head, rows)],
            [lines(title, ON_MODEL, "bytes of a read", "GB/s: median; least to most", some, **form)
             for title, some in (("Reads by one function", one), ("Reads by two hosts at once", two))])
