# SPDX-License-Identifier: BSD-2-Clause
"""The rows of the table: what each measures, in rounds that take turns."""
import os
import re
import statistics
import subprocess
import sys
import time

from machine import DISK, Cluster, Failed, Worker, cpu_ns, percentile, pin

LOCAL, REMOTE, BARE = "drive, lender", "drive, remote", "bare loop"
REMOTE2, BARE2 = "drive, two sessions", "bare loop, two sessions"
REMOTE_EVENT = "drive, eventfd"  # its client cannot be woken by faults, or is told not to
IN_MEMORY, IN_FILE = "drive in memory", "drive in a file"
FILE_SHAPES = [(1, 4096), (32, 4096), (1, 131072), (32, 131072)]  # depth and length
WAYS = ["polling", "interrupts", "hybrid"]  # by which a client finds completions, as its worker numbers them
WAIT_SHAPES = [("drive at once", 0, False), ("drive at once, one processor for both", 0, True), ("drive 1 ms late", 1, False)]
WAKE_IDLE, WAKE_BUSY = "eventfd, after the same", "eventfd, at once"


class Samples:
    """All rounds of one party in one row."""

    def __init__(self):
        self.rounds, self.buckets, self.min, self.max = [], {}, None, 0

    def add(self, headline, result):
        self.rounds.append(headline)
        for value, n in result.buckets.items():
            self.buckets[value] = self.buckets.get(value, 0) + n
        self.max = max(self.max, result.max)
        self.min = result.min if self.min is None else min(self.min, result.min)

    def median(self):
        return statistics.median(self.rounds)

    def percentile(self, share):
        return percentile(self.buckets, share)


class Row:
    """
    @metric: "latency" (the median of a round, less is better), "rate" or "bytes" (more is).
    @target: what the ratio to the bare loop must reach.
    """

    def __init__(self, key, title, metric, depth, length, shared=False, target=None):
        self.key, self.title, self.metric = key, title, metric
        self.depth, self.length, self.shared, self.target = depth, length, shared, target
        self.samples, self.lines, self.records = {}, [], []
        self.ratios, self.quiet_ratios = {LOCAL: [], REMOTE: []}, {LOCAL: [], REMOTE: []}
        self.two_ratios = []  # of REMOTE2 to BARE2, where there are such
        self.pinned, self.notes = "", []

    def headline(self, result):
        if self.metric == "latency":
            return result.percentile(0.5) if result.count else None
        return result.bytes if self.metric == "bytes" else result.rate


ROWS = [
    ("depth1", "depth 1, 4 KiB, two processors", "latency", 1, 4096, False, ("<=", 1.1)),
    ("depth32", "depth 32, 4 KiB, two processors", "rate", 32, 4096, False, (">=", 0.92)),
    ("large", "depth 8, 128 KiB, two processors", "bytes", 8, 131072, False, (">=", 0.97)),
    ("shared32", "depth 32, 4 KiB, one processor for both", "rate", 32, 4096, True, (">=", 0.5)),
    ("shared1", "depth 1, 4 KiB, one processor for both", "latency", 1, 4096, True, None),
]
NEED_TWO = {"depth1", "depth32", "large", "first", "clients30", "sweep"}
SWEEP = [1, 2, 4, 8, 16, 32, 64, 128]


class Bench:
    """What the rows need: cluster, clients, bare loop, round trips."""

    def __init__(self, options, cluster, bare, bare2, cpus):
        self.o, self.c, self.cpus = options, cluster, cpus
        self.bare, self.bare2 = bare, bare2
        self.apart, self.together = (cpus[0], cpus[1]), (cpus[0], cpus[0])
        worker = cluster.worker
        self.has_two = cpus[0] != cpus[1]
        self.line = Worker([worker, "line", str(cpus[0]), str(cpus[1])], "line") \
            if self.has_two else None
        self.wake = Worker([worker, "wake", str(cpus[0]), str(cpus[1])], "wake")
        self.local = self.remote = self.remote2 = None
        self.turn = 0

    def close(self):
        for w in (self.line, self.wake):
            if w:
                w.end()

    def clients(self):
        self.local, self.remote = self.c.client("lender"), self.c.client("client1")
        self.remote2 = self.c.client("client1", session=True)
        self.local.ask("fill", DISK)

    def line_ns(self):
        """A cache line's round trip between the two processors, now; None if there is one."""
        if not self.line:
            return None
        with self.c.frozen():
            return self.line.ask("trip")["ps"] / 1000

    def say(self, text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def one(self, who, depth, length, cpus, seconds):
        if who in (BARE, BARE2):
            with self.c.frozen():
                return (self.bare if who == BARE else self.bare2).measure(1, depth, length, cpus,
                                                                          seconds)
        client = {LOCAL: self.local, REMOTE: self.remote, REMOTE2: self.remote2}[who]
        return self.c.measure([client], depth, length, cpus, seconds)

    def round(self, row, depth, length, cpus, seconds):
        """All parties, beginning with another each time, between two looks at the cache line."""
        order = [LOCAL, REMOTE, BARE] + [REMOTE2, BARE2] * row.shared
        self.turn += 1
        order = order[self.turn % len(order):] + order[:self.turn % len(order)]
        before = self.line_ns()
        results = {who: self.one(who, depth, length, cpus, seconds) for who in order}
        after = self.line_ns()
        row.lines.append((before, after))
        bare = row.headline(results[BARE])
        for who in sorted(results, key=[LOCAL, REMOTE, BARE, REMOTE2, BARE2].index):
            result = results[who]
            value = row.headline(result)
            if value is not None:
                row.samples.setdefault(who, Samples()).add(value, result)
            else:
                row.notes.append(f"{who}: no completion at all in round {len(row.lines)}")
            row.records.append({"round": len(row.lines), "who": who, "value": value,
                                "count": result.count, "rate": result.rate,
                                "min_ns": result.min, "p50_ns": result.percentile(0.5),
                                "p99_ns": result.percentile(0.99),
                                "p9999_ns": result.percentile(0.9999), "max_ns": result.max,
                                "line_before_ns": before, "line_after_ns": after,
                                "lost": round(result.lost, 4)})
            if who in row.ratios and bare and value is not None:
                row.ratios[who].append(value / bare)
                if not result.disturbed and not results[BARE].disturbed:
                    row.quiet_ratios[who].append(value / bare)
        if row.shared and row.headline(results[BARE2]) and row.headline(results[REMOTE2]):
            row.two_ratios.append(row.headline(results[REMOTE2]) / row.headline(results[BARE2]))

    def table_row(self, spec):
        row = Row(*spec)
        cpus = self.together if row.shared else self.apart
        row.pinned = (f"client and device pinned to processor {cpus[0]}" if row.shared else
                      f"client pinned to processor {cpus[0]}, device to {cpus[1]}")
        for i in range(self.o.rounds):
            self.say(f"{row.title}: round {i + 1} of {self.o.rounds}")
            self.round(row, row.depth, row.length, cpus, self.o.seconds)
        return row

    def long(self):
        """The latest completion in many seconds on one processor."""
        row = Row("stall", f"depth 32, one processor for both, {self.o.long:g} s without a break",
                  "latest", 32, 4096, True, ("<=", 20e6))
        row.pinned = f"client and device pinned to processor {self.cpus[0]}"
        before = self.line_ns()
        for who in (REMOTE, BARE):
            self.say(f"{row.title}: {who}")
            result = self.one(who, 32, 4096, self.together, self.o.long)
            row.samples[who] = Samples()
            row.samples[who].add(result.max, result)
            row.samples[who].lost = result.lost
            row.notes.append(f"{who}: others had {100 * result.lost:.2f} % of the processor")
            row.records.append({"round": 1, "who": who, "value": result.max, "count": result.count,
                                "rate": result.rate, "min_ns": result.min,
                                "p50_ns": result.percentile(0.5), "p99_ns": result.percentile(0.99),
                                "p9999_ns": result.percentile(0.9999), "max_ns": result.max})
        row.lines.append((before, self.line_ns()))
        return row

    def many(self):
        """Thirty clients on one processor against one; the device's session is another one."""
        n = 30
        row = Row("clients30", "30 clients on one processor against one, depth 32, 4 KiB", "many",
                  32, 4096, False, (">=", -0.03))  # beside the bare loop's
        row.pinned = (f"all clients pinned to processor {self.apart[0]}, "
                      f"device to {self.apart[1]}")
        row.spreads = {REMOTE: [], BARE: []}
        row.ratios, row.quiet_ratios = {REMOTE: [], BARE: []}, {REMOTE: [], BARE: []}
        with self.c.frozen():
            cluster = Cluster(self.c.build, self.c.priority, apart=True)
            try:
                clients = []
                for i in range(n):
                    self.say(f"{row.title}: client {i + 1}")
                    clients.append(cluster.client(f"client{i % 3 + 1}"))
                clients[0].ask("fill", DISK)
                for i in range(self.o.many_rounds):
                    self.say(f"{row.title}: round {i + 1} of {self.o.many_rounds}")
                    self.many_round(row, cluster, clients, i)
                self.shares(row, cluster, clients)
            finally:
                cluster.down()
        return row

    def shares(self, row, cluster, clients):
        """What part of all each client had, window by window."""
        for i in range(self.o.windows):
            self.say(f"{row.title}: window {i + 1} of {self.o.windows}")
            r = cluster.measure(clients, 32, 4096, self.apart, self.o.many, tail=0.01)
            for k, answer in enumerate(r.answers):
                row.records.append({"row": "shares", "round": i + 1, "who": f"client {k + 1}",
                                    "value": f"{answer['count'] / r.count if r.count else 0:.5f}",
                                    "lost": round(r.lost, 4)})

    def many_round(self, row, cluster, clients, i):
        def drive(count):
            return cluster.measure(clients[:count], 32, 4096, self.apart, self.o.many, tail=0.01)

        def bare(count):
            with cluster.frozen():
                return self.bare2.measure(count, 32, 4096, self.apart, self.o.many, tail=0.01)

        before = self.line.ask("trip")["ps"] / 1000
        parties = [(REMOTE, drive), (BARE, bare)]
        for who, measure in parties if i % 2 else reversed(parties):
            one, all_of_them = measure(1), measure(len(clients))
            ratio = all_of_them.rate / one.rate if one.rate else 0
            row.samples.setdefault(who, Samples()).add(all_of_them.rate, all_of_them)
            row.ratios[who].append(ratio)
            if not one.disturbed and not all_of_them.disturbed:
                row.quiet_ratios[who].append(ratio)
            row.spreads[who].append(all_of_them.spread)
            row.records.append({"round": i + 1, "who": who, "value": ratio,
                                "count": all_of_them.count, "rate": all_of_them.rate,
                                "min_ns": all_of_them.min, "p50_ns": all_of_them.percentile(0.5),
                                "p99_ns": all_of_them.percentile(0.99),
                                "p9999_ns": all_of_them.percentile(0.9999),
                                "max_ns": all_of_them.max, "line_before_ns": before,
                                "share_off_mean": all_of_them.spread, "rate_of_one": one.rate,
                                "lost": round(all_of_them.lost, 4)})
        row.lines.append((before, self.line.ask("trip")["ps"] / 1000))

    def first(self):
        """The first I/O after idling, and a wake-up by eventfd after the same, in turns."""
        row = Row("first", f"first I/O after {self.o.gap * 1e3:g} ms idle, two processors", "first",
                  1, 4096, False, ("<=", 1.1))
        row.pinned = f"client pinned to processor {self.apart[0]}, device to {self.apart[1]}"
        client = self.c.client("client1", wrap=("env", "SMARTIO_WAKE=eventfd"))
        try:
            for i in range(self.o.first_rounds):
                self.say(f"{row.title}: round {i + 1} of {self.o.first_rounds}")
                self.first_round(row, client, i)
        finally:
            self.c.end([client])
        row.ratios = {(a, b): [x / y for x, y in zip(row.samples[a].rounds, row.samples[b].rounds)]
                      for a in (REMOTE, REMOTE_EVENT) for b in (WAKE_IDLE, WAKE_BUSY)}
        return row

    def first_round(self, row, client, i):
        gap = int(self.o.gap * 1e9)
        order = [REMOTE, REMOTE_EVENT, WAKE_IDLE]
        before = self.line_ns()
        for who in order[i % 3:] + order[:i % 3] + [WAKE_BUSY]:
            if who in (WAKE_IDLE, WAKE_BUSY):
                a = self.trips(gap if who == WAKE_IDLE else 0)
            else:
                a = self.first_ios(client if who == REMOTE_EVENT else self.remote, gap)
            value = a.percentile(0.5)
            row.samples.setdefault(who, Samples()).add(value, a)
            row.records.append({"round": i + 1, "who": who, "value": value, "count": a.count,
                                "min_ns": a.min, "p50_ns": value, "p99_ns": a.percentile(0.99),
                                "p9999_ns": a.percentile(0.9999), "max_ns": a.max,
                                "line_before_ns": before})
        row.lines.append((before, self.line_ns()))

    def trips(self, gap):
        with self.c.frozen():
            return Burst(self.wake.ask("trips", self.o.first_ios, gap))

    def first_ios(self, client, gap):
        pin(self.c.emu, self.apart[1])
        pin(client.pid, self.apart[0])
        self.c.priority.set([client.pid], self.c.emu, True)
        client.ask("first", 1, gap, DISK)  # what woke it before was not a doorbell
        return Burst(client.ask("first", self.o.first_ios, gap, DISK))

    def idle(self):
        """Processor time of the whole cluster while three clients are open and silent."""
        row = Row("idle", f"idle for {self.o.idle:g} s: five hosts, manager, three clients", "idle",
                  0, 0, False, ("<=", 0.001))
        row.pinned = "nothing pinned"
        clients = [self.c.client(f"client{i}") for i in (1, 2, 3)]
        try:
            self.say(row.title)
            time.sleep(0.5)  # what opening left to do
            pids = self.c.processes()
            before = {p: cpu_ns(p) for p in pids}
            start = time.monotonic()
            time.sleep(self.o.idle)
            seconds = time.monotonic() - start
            used = {p: (cpu_ns(p) - before[p]) / 1e9 / seconds for p in pids}
        finally:
            self.c.end(clients)
        row.value = sum(used.values())
        row.notes.append(f"{len(pids)} processes; of it smartio-emu "
                         f"{100 * used.get(self.c.emu, 0):.3f} %")
        row.records.append({"round": 1, "who": "cluster", "value": row.value})
        return row

    def sweep(self):
        row = Row("sweep", "depth against I/O rate, 4 KiB random reads, two processors", "sweep", 0,
                  4096)
        row.pinned = f"client pinned to processor {self.apart[0]}, device to {self.apart[1]}"
        row.points = {LOCAL: [], REMOTE: [], BARE: []}
        for depth in self.o.sweep:
            inner = Row("sweep", "", "rate", depth, 4096)
            for i in range(self.o.sweep_rounds):
                self.say(f"depth {depth}: round {i + 1} of {self.o.sweep_rounds}")
                self.round(inner, depth, 4096, self.apart, self.o.seconds)
            for who, s in inner.samples.items():
                row.points[who].append((depth, s.median(), min(s.rounds), max(s.rounds)))
            for record in inner.records:
                row.records.append({"depth": depth, **record})
            row.lines += inner.lines
        return row

    def waits(self):
        """Polling, interrupts and both, in turns: latency, and processor time of the client for each I/O."""
        row = Row("waits", "depth 1, 4 KiB: completions found by polling, by interrupts, by polling first", "waits", 1, 4096)
        row.pinned = f"client pinned to processor {self.cpus[0]}, device to {self.cpus[1]}, or to the client's"
        row.points = []
        clients = {}
        try:
            for number, way in enumerate(WAYS):
                clients[way] = self.c.client("client1")
                clients[way].ask("find", number)
            for title, late, shared in WAIT_SHAPES:
                if shared or self.has_two:
                    self.wait_shape(row, clients, title, late, shared)
        finally:
            self.c.end(list(clients.values()))
        return row

    def wait_shape(self, row, clients, title, late, shared):
        cpus = self.together if shared else self.apart
        samples, cost = {way: Samples() for way in WAYS}, {way: [] for way in WAYS}
        empty = {way: 0 for way in WAYS}
        if late:
            self.c.smartio("fault", "device", "--opcode", "read", "--count", "0", "--time", str(late), "nvme0", "delay")
        try:
            for i in range(self.o.wait_rounds):
                self.say(f"{row.title}: {title}: round {i + 1} of {self.o.wait_rounds}")
                for way in WAYS[i % 3:] + WAYS[:i % 3]:
                    r = self.c.measure([clients[way]], 1, 4096, cpus, self.o.seconds * (10 if late else 1))
                    done = r.answers[0]
                    if r.count:
                        samples[way].add(r.percentile(.5), r)
                        cost[way].append(done["ran"] / done["submitted"])
                    empty[way] += not r.count
                    row.records.append({"round": i + 1, "who": f"{way}, {title}", "value": r.percentile(.5) if r.count else None,
                                        "count": r.count, "rate": r.rate, "min_ns": r.min, "p50_ns": r.percentile(.5),
                                        "p99_ns": r.percentile(.99), "p9999_ns": r.percentile(.9999), "max_ns": r.max,
                                        "client_ns": round(done["ran"] / max(done["submitted"], 1)),
                                        "waits_polled": done["waits_polled"], "waits_slept": done["waits_slept"]})
        finally:
            if late:
                self.c.smartio("fault", "device", "nvme0", "clear")
        row.points.append((title, samples, cost))
        row.notes += [f"{title}: {way}: no completion in {n} rounds, others had the processor" for way, n in empty.items() if n]

    def files(self):
        """Remote reads of two drives of one emulator, in turns: blocks in memory, and in a file that the system has cached."""
        row = Row("files", "a drive in a file (cached) against one in memory, random reads", "files", 0, 0)
        row.pinned = f"client pinned to processor {self.apart[0]}, device to {self.apart[1]}"
        row.points = []
        try:
            cluster = Cluster(self.c.build, self.c.priority, files=True)
        except Failed as e:  # built without liburing
            row.notes.append(f"not measured: {e}")
            return row
        try:
            clients = {IN_MEMORY: cluster.client("client1"), IN_FILE: cluster.client("client1", drive="nvme1")}
            for client in clients.values():
                client.ask("fill", DISK)
            for depth, length in FILE_SHAPES:
                self.file_shape(row, cluster, clients, depth, length)
        finally:
            cluster.down()
        return row

    def file_shape(self, row, cluster, clients, depth, length):
        rates, disturbed = {who: [] for who in clients}, [False] * self.o.rounds
        for i in range(self.o.rounds):
            self.say(f"{row.title}: depth {depth}, {length} bytes: round {i + 1} of {self.o.rounds}")
            for who in list(clients)[::1 if i % 2 else -1]:
                with self.c.frozen():
                    r = cluster.measure([clients[who]], depth, length, self.apart, self.o.seconds)
                rates[who].append(r.rate)
                disturbed[i] |= r.disturbed
                row.records.append({"round": i + 1, "depth": depth, "who": who, "value": r.bytes, "count": r.count,
                                    "rate": r.rate, "min_ns": r.min, "p50_ns": r.percentile(0.5), "p99_ns": r.percentile(0.99),
                                    "p9999_ns": r.percentile(0.9999), "max_ns": r.max, "lost": round(r.lost, 4)})
        ratios = [(f / m, d) for f, m, d in zip(rates[IN_FILE], rates[IN_MEMORY], disturbed) if m]
        row.points.append((depth, length, rates, [r for r, _ in ratios], [r for r, d in ratios if not d]))

    def instructions(self):
        """Of the client, between submit and the poll that returns it; exact."""
        row = Row("instructions", "instructions per I/O of the driver, depth 32, 4 KiB",
                  "instructions", 32, 4096, False, ("<=", 90))
        row.pinned = "callgrind, the client's libraries alone: submit, ring, polls that find all"
        row.values = {}
        for who, node in ((LOCAL, "lender"), (REMOTE, "client1")):
            self.say(f"{row.title}: {who}")
            reason = self.callgrind(row, who, node)
            if reason:
                row.notes.append(reason)
                break
        return row

    def callgrind(self, row, who, node):
        out = os.path.join(self.c.dir, "callgrind.out")
        depth, batches = 32, self.o.callgrind
        if subprocess.run(["sh", "-c", "command -v valgrind"], capture_output=True,
                          check=False).returncode:
            return "not measured: valgrind is not installed"
        before = self.c.counters()
        w = self.c.client(node, wrap=("env", "SMARTIO_WAKE=timer", "valgrind", "-q", "--tool=callgrind",
                                      "--collect-atstart=no", f"--callgrind-out-file={out}"))
        answer = w.ask("calm", depth, batches, DISK)
        self.c.end([w])
        after = self.c.counters()
        with open(out, encoding="utf-8", errors="replace") as f:
            text = f.read()
        n = depth * batches
        total = driver_cost(text)
        if total == 0:
            return "not measured: built without valgrind's header, callgrind.h"
        reads = after["commands_read"] - before["commands_read"]
        row.values[who] = {
            "instructions": total / n,
            "doorbells": answer["doorbells_sq"] / batches,
            "memset": bool(re.search(r"fn=.*memset", text)),
            "read_bytes": (after["rd_bytes"] - before["rd_bytes"]) / reads,
        }
        row.records.append({"round": 1, "who": who, "value": total / n,
                            "doorbells_per_batch": row.values[who]["doorbells"]})
        return None


def driver_cost(text):
    """Of callgrind's output: instructions in all objects but the worker itself."""
    names, here, cost, skip = {}, "", 0, False
    for line in text.splitlines():
        name = re.match(r"ob=\((\d+)\)(?: (.*))?$", line)
        if name:
            here = names.setdefault(name.group(1), name.group(2))
        elif line.startswith(("cob=(", "fl=", "cfi=")):
            other = re.match(r"cob=\((\d+)\) (.*)$", line)
            if other:
                names[other.group(1)] = other.group(2)
        elif line.startswith("calls="):
            skip = True  # the next line is what the called function cost
        elif re.match(r"[+*\d-]", line):
            if not skip and not (here or "").endswith("bench-nvme-worker"):
                cost += int(line.split()[1])
            skip = False
    return cost


class Burst:
    """A worker's histogram of single trips."""

    def __init__(self, answer):
        self.buckets = dict(map(tuple, answer["buckets"]))
        self.count, self.min, self.max = answer["count"], answer["min"], answer["max"]

    def percentile(self, share):
        return percentile(self.buckets, share)
