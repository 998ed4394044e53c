#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The SISCI calls beside what the machine itself can do: docs/sisci-performance.md.

Times of our software on one machine: a store to a remote segment is one to memory here, and nothing of
PCIe is in them.

usage: bench.py BUILD [--only ROW,...] [--rounds N] [--starts N] [--cpus A,B] [--quick | --smoke]
                [--csv FILE] [--png FILE]
rows: pingpong copy count read int dma seg
"""
import argparse
import resource
import shutil
import statistics
import subprocess

from frame import Bench, Cluster, Ratio, TOPOLOGY, verdict, write_csv, write_png

MOST_COPIED = 1 << 20  # bytes at once
FEW, MANY = 10, 20000  # segments that one program has mapped
# Bytes, queues that a program keeps going, transfers that each is told of at once, and what is wanted.
DMA = [(size, 1, 1, 0.8) for size in (64 << 10, 256 << 10, 1 << 20, 4 << 20)] + [
    (256 << 10, 1, 100, 0.95), (1 << 20, 1, 100, 0.95), (1 << 20, 2, 1, 0.8)]


def us(values):
    return f"{statistics.median(values) / 1000:.2f}"


def pingpong(b):
    return b.pair("pingpong", b.rounds_wanted or b.pick(3, 301, 301), b.pick(100, 1000, 10000))


def show_pingpong(samples):
    took = samples["pingpong"]
    ratio = Ratio(took["sisci"], took["memfd"])
    print(f"  ns per round trip: mapped segments {statistics.median(took['sisci']):.1f}, bare memfd "
          f"{statistics.median(took['memfd']):.1f}; ratio {ratio}")
    print(f"  {verdict(('holds', 1.0), [ratio])}")


def started_anew(b, once):
    """The median of a start's rounds, for each start: where the system puts programs in memory decides
    how fast copies are, by any way, and it puts them elsewhere each time.
    """
    samples = {}
    for _ in range(b.starts()):
        b.cpus.reverse()  # one of them may be faster
        for what, took in once().items():
            for who, values in took.items():
                samples.setdefault(what, {}).setdefault(who, []).append(statistics.median(values))
    return samples


def copy(b):
    most = b.pick(1 << 16, MOST_COPIED, MOST_COPIED)
    turn = b.pick(1 << 16, 1 << 20, 8 << 20)
    return started_anew(b, lambda: b.served("copy", most, [b.rounds(9), turn, most])[0])


def show_copies(samples, wanted):
    """A line for each size."""
    print(f"  {'bytes':>9} {'SCIMemCpy ns':>13} {'memcpy':>10} {'function':>10}  "
          f"{'memcpy/SCIMemCpy':<24}  function/SCIMemCpy")
    ratios = []
    for size, took in samples.items():
        ours = took["sisci"]
        ratios.append(Ratio(took["memcpy"], ours))
        cells = [f"{statistics.median(took[w]):.2f}" for w in ("sisci", "memcpy", "function")]
        print(f"  {size:>9} {cells[0]:>13} {cells[1]:>10} {cells[2]:>10}  "
              f"{str(ratios[-1]):<24}  {Ratio(took['function'], ours)}")
    print("  memcpy: called, with the fence; function: both in a function of another library that has "
          "SCIMemCpy's\n  parameters and checks nothing")
    print(f"  {verdict(('at least', wanted), ratios)}")


def show_copy(samples):
    show_copies(samples, 0.95)
    first = next(iter(samples.values()))
    print(f"  a call of a function of another library that does nothing: "
          f"{statistics.median(first['nothing']):.2f} ns")


def count(b):
    if not shutil.which("valgrind"):
        return {}
    return {str(size): {who: [b.instructions("copy", size, who, b.pick(20, 1000, 10000))]
                        for who in ("sisci", "memcpy", "function")}
            for size in b.pick((64,), (64, 512, 4096), (64, 512, 4096))}


def show_count(samples):
    if not samples:
        print("  not counted: valgrind is not installed")
    for size, took in samples.items():
        print(f"  {size:>9} bytes: SCIMemCpy {took['sisci'][0]:.1f}, memcpy {took['memcpy'][0]:.1f}, "
              f"in a function {took['function'][0]:.1f}")


def read(b):
    most = b.pick(1 << 16, MOST_COPIED, MOST_COPIED)
    turn = b.pick(1 << 13, 1 << 20, 4 << 20)
    return started_anew(b, lambda: b.pair("read", b.rounds(9), turn, most))


def show_read(samples):
    show_copies(samples, 0.90)


def interrupts(b):
    return b.pair("int", b.rounds_wanted or b.pick(3, 121, 121), b.pick(100, 60, 1000))


def show_interrupts(samples):
    for what, name, against, limit in (
            ("trigger", "SCITriggerInterrupt -> SCIWaitForInterrupt", "eventfd", 1.2),
            ("message", "data interrupt of 64 B", "datagram", 1.0)):
        took = samples[what]
        ratio = Ratio(took["sisci"], took[against])
        print(f"  {name}: {us(took['sisci'])} us, {against}: {us(took[against])}; ratio {ratio}")
        print(f"  {verdict(('at most', limit), [ratio])}")


def dma(b):
    def once():
        found = {}
        for size, queues, vector, _ in b.pick(DMA[:1], DMA[:3], DMA):
            transfers = vector * 2 if vector > 1 else max(16, (16 << 20) // size)
            found[f"{size >> 10} KiB, queues {queues}, at once {vector}"] = b.served(
                "dma", size, [b.rounds(21), transfers, size, queues, vector])[0]["dma"]
        return found

    return started_anew(b, once)


def show_dma(samples):
    for (what, took), (*_, wanted) in zip(samples.items(), DMA):
        ratio = Ratio(took["memcpy"], took["queue"])
        print(f"  {what}: a transfer {us(took['queue'])} us, memcpy {us(took['memcpy'])}; "
              f"memcpy/transfer {ratio}; the caller used {statistics.median(took['core']):.0%} of "
              f"its core; {verdict(('at least', wanted), [ratio])}")


class Side:
    """A cluster whose hosts a and b export @segments, half each, and a program on c that has them."""

    def __init__(self, b, segments):
        self.cluster = Cluster(b.build, TOPOLOGY)
        self.program = b.program("seg")
        self.half = segments // 2

    def __enter__(self):
        self.cluster.__enter__()
        try:
            for host in "ab":
                self.start(host, "export", 0, self.half, [])
            self.child = self.start("c", "connect", 0, self.half, ["4", "8"])
        except BaseException:
            self.cluster.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()

    def start(self, host, what, first, count, more):
        child = self.cluster.start(host, self.program, what, str(first), str(count), *more,
                                   stdin=subprocess.PIPE)
        if child.stdout.readline() != "ready\n":
            raise SystemExit(f"{host}: {child.communicate()[1]}")
        return child

    def measure(self, times):
        self.child.stdin.write(f"{times}\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(self.child.communicate()[1])
        return float(line)


def most_segments():
    """Each is a descriptor of the machine room, which gives each of three hosts a third of what it may have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MANY if hard == resource.RLIM_INFINITY else min(MANY, 2 * ((hard - 300) // 3), hard - 300)
    if most < MANY:
        print(f"  {most} instead of {MANY} segments: the hard limit of descriptors (ulimit -Hn) is {hard}")
    return most


def segments(b):
    many, times = b.pick((60, 20), (2000, 100), (most_segments(), 500))
    took = {"few": [], "many": []}
    with Side(b, FEW) as few_side, Side(b, many) as many_side:
        for r in range(b.rounds(41) + 1):
            for who, side in [("few", few_side), ("many", many_side)][::-1 if r % 2 else 1]:
                ns = side.measure(times)
                if r > 0:  # the first round warms up
                    took[who].append(ns)
    return {"seg": took}


def show_segments(samples):
    took = samples["seg"]
    ratio = Ratio(took["many"], took["few"])
    print(f"  among {FEW}: {us(took['few'])} us, among many: {us(took['many'])}; ratio {ratio}")
    print(f"  {verdict(('at most', 1.5), [ratio])}")


ROWS = {
    "pingpong": ("8 bytes to and fro through mapped segments of two hosts, and a bare memfd",
                 pingpong, show_pingpong),
    "copy": ("SCIMemCpy to a remote segment that nobody reads, and a called memcpy", copy, show_copy),
    "count": ("instructions of a copy with its loop, counted under callgrind", count, show_count),
    "read": ("SCIMemCpy to a remote segment whose owner reads what comes, and a called memcpy",
             read, show_read),
    "int": ("interrupts, round trips", interrupts, show_interrupts),
    "dma": ("DMA queues, and memcpy on one core", dma, show_dma),
    "seg": (f"unmap, disconnect, connect, map: one of {FEW} and of {MANY} segments", segments,
            show_segments),
}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--only", default=",".join(ROWS))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--starts", type=int, help="of the rows copy, read and dma")
    parser.add_argument("--cpus", type=lambda text: [int(n) for n in text.split(",")])
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="fewer rounds and starts")
    length.add_argument("--smoke", action="store_true", help="shows that it runs")
    parser.add_argument("--csv")
    parser.add_argument("--png")
    args = parser.parse_args()
    wanted = args.only.split(",")
    for key in wanted:
        if key not in ROWS:
            parser.error(f"{key} is no row: {' '.join(ROWS)}")
    if args.rounds is not None and args.rounds < 2 or args.starts is not None and args.starts < 1:
        parser.error("at least 2 rounds and a start")
    b = Bench(args)
    print("measured: times of our software, not of PCIe. Medians of rounds, in turns, or of starts; "
          "ratios: median\n(and 95 % interval) of these", flush=True)
    found = {}
    for key in wanted:
        title, measure, show = ROWS[key]
        before = b.line.ns()
        found[key] = measure(b)
        print(f"\n{title}\n  cache line round trip {before:.0f} ns before, {b.line.ns():.0f} after")
        show(found[key])
    b.line.end()
    if args.csv:
        write_csv(args.csv, found)
    if args.png:
        points = {who: [(int(size), statistics.median(took[who]))
                        for size, took in found.get("copy", {}).items()]
                  for who in ("sisci", "memcpy", "function")}
        reason = write_png(args.png, points if "copy" in found else {})
        if reason:
            print(reason)


if __name__ == "__main__":
    main()
