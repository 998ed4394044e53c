# SPDX-License-Identifier: BSD-2-Clause
"""What the rows of the benchmark share: a cluster, samples and their ratios, and how they are shown."""
import csv
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "base"))
from cluster_base import Cluster  # noqa: E402
from spread import median_interval  # noqa: E402

TOPOLOGY = """\
cluster: sisci
switches: [sw0]
hosts:
  a: {ram: 512M}
  b: {ram: 512M}
  c: {ram: 512M}
"""


class Line:
    """The round trip of a cache line between the two processors, whenever it is asked for."""

    def __init__(self, build, cpus):
        self.child = subprocess.Popen(
            [os.path.join(build, "bench", "nvme", "bench-nvme-worker"), "line", *map(str, cpus)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.child.stdout.readline()

    def ns(self):
        self.child.stdin.write("trip\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())["ps"] / 1000

    def end(self):
        self.child.communicate()


class Bench:
    """A build, two processors, and the sizes of things; what the rows are given."""

    def __init__(self, args):
        cpus = args.cpus or sorted(os.sched_getaffinity(0))[:2]
        if len(cpus) < 2:
            raise SystemExit("two processors are needed: both sides would take turns on one")
        self.build, self.cpus = args.build, cpus
        self.length = "smoke" if args.smoke else "quick" if args.quick else "full"
        self.rounds_wanted, self.starts_wanted = args.rounds, args.starts
        self.line = Line(args.build, cpus)

    def pick(self, smoke, quick, full):
        """What fits the length that was asked for."""
        return {"smoke": smoke, "quick": quick, "full": full}[self.length]

    def rounds(self, usual):
        return self.rounds_wanted or self.pick(3, min(usual, 9), usual)

    def starts(self):
        return self.starts_wanted or self.pick(2, 21, 25)

    def program(self, name):
        return os.path.join(self.build, "bench", "sisci", f"bench-sisci-{name}")

    def pair(self, name, rounds, *numbers):
        """A program that plays both hosts, in two processes. The first round warms up."""
        with Cluster(self.build, TOPOLOGY) as c:
            return read(c.run("a", self.program(name), os.path.join(c.state, "node.4"), "4",
                              os.path.join(c.state, "node.8"), "8", *map(str, self.cpus),
                              str(rounds + 1), *map(str, numbers), timeout=600))

    def served(self, name, size, *measure):
        """A program on host b that exports @size bytes, and one on host a that measures. The machine
        room, whose engines copy, has the other processor.
        """
        with Cluster(self.build, TOPOLOGY) as c:
            os.sched_setaffinity(c.pid_of_room(), self.cpus[1:2])
            server = c.start("b", self.program(name), "serve", str(size), stdin=subprocess.PIPE)
            if server.stdout.readline() != "ready\n":
                raise SystemExit(server.communicate()[1])
            out = [c.run("a", self.program(name), "measure", "8", str(self.cpus[0]),
                         *map(str, words), timeout=600) for words in measure]
            server.communicate()
            return [read(text) for text in out]

    def instructions(self, name, size, who, times):
        """Of program @name's way @who to copy @size bytes, for one copy; under callgrind."""
        with Cluster(self.build, TOPOLOGY) as c:
            server = c.start("b", self.program(name), "serve", str(size), stdin=subprocess.PIPE)
            if server.stdout.readline() != "ready\n":
                raise SystemExit(server.communicate()[1])
            out = os.path.join(c.dir, "callgrind.out")
            c.run("a", "valgrind", "-q", "--tool=callgrind", f"--toggle-collect=by_{who}",
                  f"--callgrind-out-file={out}", self.program(name), "count", "8", who, str(size),
                  str(times), timeout=600)
            server.communicate()
            with open(out, encoding="utf-8", errors="replace") as f:
                total = next(line.split()[1] for line in f if line.startswith(("summary:", "totals:")))
            return int(total) / times


def read(text):
    """Lines "what who number", in the order of the rounds: {what: {who: [number]}}."""
    samples = {}
    for line in text.splitlines():
        what, who, number = line.split()
        samples.setdefault(what, {}).setdefault(who, []).append(float(number))
    return samples


class Ratio:
    """Of two parties' rounds, one by one."""

    def __init__(self, above, below):
        self.median, self.low, self.high = median_interval([a / b for a, b in zip(above, below)])

    def __str__(self):
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"

    def meets(self, target):
        word, number = target
        if word == "holds":
            return self.low <= number <= self.high
        return self.median <= number if word == "at most" else self.median >= number


def verdict(target, ratios):
    met = all(r.meets(target) for r in ratios)
    return f"wanted: {target[0]} {target[1]:.2f}: {'met' if met else 'not met'}"


def write_csv(path, rows):
    """@rows: {row: {what: {who: [number]}}}."""
    with open(path, "w", encoding="ascii", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(("row", "what", "who", "round", "value"))
        for row, samples in rows.items():
            for what, parties in samples.items():
                for who, values in parties.items():
                    writer.writerows((row, what, who, i, v) for i, v in enumerate(values))


def write_png(path, points):
    """@points: {who: [(bytes, nanoseconds)]} of the copies. Return: a reason, or None."""
    if not shutil.which("gnuplot"):
        return "no picture: gnuplot is not installed (Debian: gnuplot-nox)"
    if not points:
        return "no picture: it needs the row copy"
    blocks = "".join("".join(f"{size} {size / ns}\n" for size, ns in values) + "e\n"
                     for values in points.values())
    script = f"""
set terminal pngcairo size 900,600
set output '{path.replace("'", "''")}'
set title 'measured: times of our software, not of PCIe'
set grid
set logscale x 2
set xlabel 'bytes of a copy'
set ylabel 'GB/s'
plot {", ".join(f"'-' with linespoints lw 2 title '{who}'" for who in points)}
{blocks}"""
    done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr.strip():
        return f"no picture: gnuplot: {done.stderr.strip() or done.returncode}"
    return None
