# SPDX-License-Identifier: BSD-2-Clause
"""What the control path takes, by size of the cluster and by number of segments; not in the paper, whose design it shows
(section 4.3).

Borrow a device, connect to a segment, map it, map memory for a device: each with what gives it back. Beside them
stands a floor: as many bare round trips between two processes of one processor as the operation has messages (counted), and
as many bare mmaps. The rest is what the daemons do. A map for each read is measured against a read of what is mapped.
"""
import os
import resource
import statistics
import subprocess
import sys

from parts import BENCH, MEASURED, Failed, bars, lines, table

sys.path.insert(0, os.path.join(BENCH, "base"))
from cluster_base import Cluster  # noqa: E402

# Operation, and what it gives: rows, with the mmaps of each.
OPERATIONS = {"connect": [("connect", 0), ("disconnect", 0)], "map": [("map", 1), ("unmap", 0)],
              "borrow": [("borrow", 0), ("return", 0)],
              "device": [("map for device", 0), ("unmap for device", 0)]}
COUNTED = ("client_messages", "peer_messages_received", "port_requests")


def topology(hosts, ram="16M"):
    text = ["cluster: control", "switches: [sw0]", "hosts:",
            f"  h1: {{ ram: {ram}, devices: {{ nvme0: {{ type: nvme, size: 16M }} }} }}"]
    # Id 252, which host 63 would have, is that of multicast groups.
    text += [f"  h{i}: {{ ram: 16M{', node: 508' if 4 * i == 252 else ''} }}" for i in range(2, hosts + 1)]
    return "\n".join(text) + "\n"


def read(text):
    rows = {}
    for line in text.splitlines():
        name, ns = line.rsplit(",", 1)
        rows.setdefault(name, []).append(int(ns))
    return rows


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def messages(cluster):
    return sum(d.get(k, 0) for d in cluster.stats()["daemons"].values() for k in COUNTED)


def count(cluster, work, operation, n):
    """Messages of one operation and its end: what a program with @n more has more."""
    totals = []
    for times in (0, n):
        before = messages(cluster)
        work(operation, times)
        totals.append(messages(cluster) - before)
    return (totals[1] - totals[0]) / n


def program(c):
    return os.path.join(c.build, "bench", "paper", "bench-control")


def one_size(c, hosts, n, segments=1):
    """All operations in a cluster of so many hosts: row -> nanoseconds; and messages by operation."""
    with Cluster(c.build, topology(hosts, "16M" if segments == 1 else "256M")) as cluster:
        server = cluster.start("h1", program(c), "export", str(segments), stdin=subprocess.PIPE)
        if server.stdout.readline() != "ready\n":
            raise AssertionError(server.communicate()[1])

        def work(operation, times):
            return read(cluster.run("h2", program(c), operation, "nvme0", "4", str(times)))
        work("connect", 10)  # warm
        found, counted = {}, {}
        for operation in [*OPERATIONS, "read"]:
            found.update(work(operation, n))
        for operation in OPERATIONS:
            counted[operation] = count(cluster, work, operation, n)
        server.stdin.close()
        server.stdin = None
        cluster.finish(server)
    return found, counted


def floor(c, trips, maps, n):
    return read(c.run(program(c), "floor", str(trips), str(maps), str(n)))["floor"]


def together(found, operation):
    """Of an operation and its end."""
    return [a + b for a, b in zip(*(found[p] for p, _ in OPERATIONS[operation]))]


def us(values):
    return f"{percentile(values, .5) / 1e3:.0f} / {percentile(values, .99) / 1e3:.0f}"


def sweep(c, by, floors, counted, what):
    """Rows by @what: each operation, its messages, its floor, and how often the median is that, at worst."""
    rows = []
    for operation, parts in OPERATIONS.items():
        both = {key: together(found, operation) for key, found in by.items()}
        worst = max(percentile(v, .5) for v in both.values()) / percentile(floors[operation], .5)
        rows.append([" and ".join(p for p, _ in parts), *(us(v) for v in both.values()), f"{counted[operation]:.1f}",
                     us(floors[operation]), f"{worst:.2f}"])
    head = ["operation", *(f"{k} {what}" for k in by), "messages (counted)", "floor", "of the floor, at most"]
    return table(f"By {what}, us, p50 / p99", head, rows)


def most_segments():
    """20,000, or as many as one of two hosts may have: each is a descriptor of smartio-emu, which has half for a host."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 20000 if most == resource.RLIM_INFINITY else min(20000, (most // 2 - 500) // 100 * 100)


def control(c):
    """Operations by hosts and by segments, with a floor."""
    hosts, segments, n = ([2, 10, 30], [10, 1000], 100) if c.quick else ([4, 15, 30, 60, 120],
                                                                         [10, 100, 1000, most_segments()], 2000)
    try:
        measured = {size: one_size(c, size, n) for size in hosts}
        counted = measured[hosts[0]][1]
        floors = {o: floor(c, round(counted[o]), sum(m for _, m in parts), n) for o, parts in OPERATIONS.items()}
        by_segments = {k: one_size(c, 2, n, k)[0] for k in segments}
    except AssertionError as e:
        raise Failed(str(e)) from e
    by = {size: found for size, (found, _) in measured.items()}
    c.csv("control", ["operation", "hosts", "segments", "p50_ns", "p99_ns"],
          [[name, size, 1, percentile(v, .5), percentile(v, .99)] for size, found in by.items() for name, v in found.items()] +
          [[name, 2, k, percentile(v, .5), percentile(v, .99)] for k, found in by_segments.items()
           for name, v in found.items()])
    series = {" and ".join(p for p, _ in OPERATIONS[o]):
              [(s, *(percentile(together(by[s], o), q) / 1e3 for q in (.5, .1, .9))) for s in hosts] for o in OPERATIONS}
    compare = {"the operation and its end": [(o, percentile(together(by[hosts[0]], o), .5) / 1e3) for o in OPERATIONS],
               "floor": [(o, percentile(floors[o], .5) / 1e3) for o in OPERATIONS]}
    reads = [[name, f"{statistics.median(by[hosts[0]][name]) / 1e3:.2f}"] for name in ("map, read, unmap", "read")]
    return ([sweep(c, by, floors, counted, "hosts"), sweep(c, by_segments, floors, counted, "segments"),
             table(f"A map for each read, {hosts[0]} hosts", ["what", "us"], reads)],
            [lines("Control path by size of the cluster", MEASURED, "hosts", "us: median; 10 % to 90 %", series, log="y"),
             bars(f"Control path and its floor, {hosts[0]} hosts", MEASURED, "us", compare)])
