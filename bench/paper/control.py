# SPDX-License-Identifier: BSD-2-Clause
"""What the control path takes, by size of the cluster and by number of segments; not in the paper, whose design it shows
(section 4.3).

Borrow a device, connect to a segment, map it, map memory for a device: each with what gives it back. Beside them
stands a floor: as many bare round trips between two processes of one processor as the operation has messages (counted), and
as many bare mmaps. The rest is what the daemons do. A map for each read is measured against a read of what is mapped.

All daemons, programs and floors share one processor, as the two processes of a floor do: else what is measured is for most
of its time how long the system takes to wake another processor, which no two turns have alike. The smallest cluster is
measured a second time wherever the system puts its processes.
"""
import contextlib
import os
import resource
import statistics
import subprocess
import sys

from parts import BENCH, MEASURED, THREADS, Failed, bars, lines, table

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


@contextlib.contextmanager
def on(cpus):
    """What is started meanwhile runs on these processors."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


class Place:
    """A cluster of so many hosts, whose first exports so many segments, on some processors. Use as a context."""

    def __init__(self, c, hosts, cpus, segments=1):
        self.cluster = Cluster(c.build, topology(hosts, "16M" if segments == 1 else "256M"))
        self.c, self.cpus, self.segments = c, cpus, segments

    def __enter__(self):
        with contextlib.ExitStack() as stack, on(self.cpus):
            stack.enter_context(self.cluster)
            server = self.cluster.start("h1", program(self.c), "export", str(self.segments), stdin=subprocess.PIPE)
            if server.stdout.readline() != "ready\n":
                raise AssertionError(server.communicate()[1])
            self.work("connect", 10)  # warm
            stack.pop_all()
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()

    def work(self, operation, times):
        with on(self.cpus):
            return read(self.cluster.run("h2", program(self.c), operation, "nvme0", "4", str(times)))

    def floor(self, trips, maps, times):
        with on(self.cpus):
            return read(self.c.run(program(self.c), "floor", str(trips), str(maps), str(times)))["floor"]


class Turns:
    """Each operation at each place beside its floor: @found[place][row] and @floors[place][operation] are lists, one of
    nanoseconds for each turn.
    """

    def __init__(self, places, counted):
        self.places, self.counted = places, counted
        self.found = {p: {name: [] for parts in OPERATIONS.values() for name, _ in parts} for p in places}
        self.floors = {p: {o: [] for o in OPERATIONS} for p in places}
        self.turn = 0

    def bare(self, place, operation, n):
        maps = sum(m for _, m in OPERATIONS[operation])
        self.floors[place][operation].append(self.places[place].floor(round(self.counted[operation]), maps, n))

    def ours(self, place, operation, n):
        for name, values in self.places[place].work(operation, n).items():
            self.found[place][name].append(values)

    def take(self, n):
        """One turn of everything; who came first comes last in the next."""
        order = list(self.places)
        order = order[self.turn % len(order):] + order[:self.turn % len(order)]
        for operation in OPERATIONS:
            for place in order:
                for measure in (self.bare, self.ours)[::1 if self.turn % 2 else -1]:
                    measure(place, operation, n)
        self.turn += 1

    def both(self, place, operation):
        """Of an operation and its end: turn by turn."""
        return [[a + b for a, b in zip(*ns)] for ns in zip(*(self.found[place][p] for p, _ in OPERATIONS[operation]))]


def pooled(turns):
    return [ns for values in turns for ns in values]


def us(values):
    return f"{percentile(values, .5) / 1e3:.0f} / {percentile(values, .99) / 1e3:.0f}"


def title(operation):
    return " and ".join(p for p, _ in OPERATIONS[operation])


def sweep(c, turns, what, note=""):
    """Rows by place: each operation, its messages, its floor, and how often its median is that: turn by turn."""
    rows, against = [], []
    for operation in OPERATIONS:
        both = {p: turns.both(p, operation) for p in turns.places}
        floors = pooled(v for p in turns.places for v in turns.floors[p][operation])
        rows.append([title(operation), *(us(pooled(v)) for v in both.values()), f"{turns.counted[operation]:.1f}", us(floors)])
        ratios = [c.ratio(f"{title(operation)}, {p} {what} / floor", [statistics.median(v) for v in both[p]],
                          [statistics.median(v) for v in turns.floors[p][operation]], note) for p in turns.places]
        against.append([title(operation), *(r.cell() for r in ratios)])
    heads = [f"{p} {what}" for p in turns.places]
    return [table(f"By {what}, us, p50 / p99", ["operation", *heads, "messages (counted)", "floor"], rows),
            table(f"By {what}, of the floor beside it: median of turns (25 % to 75 %)", ["operation", *heads], against)]


def most_segments():
    """20,000, or as many as one of two hosts may have: each is a descriptor of smartio-emu, which has half for a host."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 20000 if most == resource.RLIM_INFINITY else min(20000, (most // 2 - 500) // 100 * 100)


def measure(c):
    """Turns by hosts, by segments, of the smallest cluster on all processors; and reads."""
    hosts, segments, turns, n = c.pick(([2, 10, 30], [10, 1000], 1, 20), ([2, 10, 30], [10, 1000], 33, 20),
                                       ([4, 15, 30, 60, 120], [10, 100, 1000, most_segments()], 40, 50))
    allowed = os.sched_getaffinity(0)
    one, reads = {min(allowed)}, {"map, read, unmap": [], "read": []}
    with contextlib.ExitStack() as stack:
        by_hosts = {k: stack.enter_context(Place(c, k, one)) for k in hosts}
        by_segments = {k: stack.enter_context(Place(c, 2, one, k)) for k in segments}
        free = {hosts[0]: stack.enter_context(Place(c, hosts[0], allowed))}
        least = by_hosts[hosts[0]]
        counted = {o: count(least.cluster, least.work, o, c.pick(100, 100, 1000)) for o in OPERATIONS}
        found = [Turns(places, counted) for places in (by_hosts, by_segments, free)]
        for _ in range(turns):
            for some in found:
                some.take(n)
            for name, values in least.work("read", n).items():
                reads[name] += values
    return found, reads


def control(c):
    """Operations by hosts and by segments, with a floor."""
    try:
        (by_hosts, by_segments, free), read_times = measure(c)
    except AssertionError as e:
        raise Failed(str(e)) from e
    hosts = list(by_hosts.places)
    rows = []
    for what, turns in (("one", by_hosts), ("one", by_segments), ("all", free)):
        for place, of in turns.found.items():
            size = (2, place) if turns is by_segments else (place, 1)
            rows += [[name, what, *size, i + 1, percentile(ns, .5), percentile(ns, .99)]
                     for name, values in of.items() for i, ns in enumerate(values)]
    c.csv("control", ["operation", "processors", "hosts", "segments", "turn", "p50_ns", "p99_ns"], rows)
    series = {title(o): [(p, *(percentile(pooled(by_hosts.both(p, o)), q) / 1e3 for q in (.5, .1, .9))) for p in hosts]
              for o in OPERATIONS}
    compare = {"the operation and its end": [(o, percentile(pooled(by_hosts.both(hosts[0], o)), .5) / 1e3) for o in OPERATIONS],
               "floor": [(o, percentile(pooled(by_hosts.floors[hosts[0]][o]), .5) / 1e3) for o in OPERATIONS]}
    reads = [[name, f"{statistics.median(ns) / 1e3:.2f}"] for name, ns in read_times.items()]
    return ([*sweep(c, by_hosts, "hosts"), *sweep(c, by_segments, "segments"),
             *sweep(c, free, "hosts, each process on any processor", THREADS),
             table(f"A map for each read, {hosts[0]} hosts", ["what", "us"], reads)],
            [lines("Control path by size of the cluster", MEASURED, "hosts", "us: median; 10 % to 90 %", series, log="y"),
             bars(f"Control path and its floor, {hosts[0]} hosts", MEASURED, "us", compare)])
