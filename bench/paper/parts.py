# SPDX-License-Identifier: BSD-2-Clause
"""What the experiments share: the programs that they run, and the forms of tables and charts."""
import csv
import json
import os
import statistics
import subprocess
import sys

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(BENCH, "base"))
from spread import median_interval, quartiles  # noqa: E402

MODELLED, COUNTED, MEASURED, ON_MODEL = "modelled", "counted", "measured", "measured on a model"


class Failed(Exception):
    """The text is for the user."""


THREADS = "latencies between threads"
NOTES = {THREADS: "depend on where the system runs these, and on how deep its processors sleep"}


class Ratio:
    """Of two parties that took turns: the median of each turn's ratio, and how far the turns lie apart.

    A turn in which one of them did nothing at all has none; such turns are counted in @lost.
    """

    def __init__(self, name, above, below, note=""):
        pairs = list(zip(above, below, strict=True))
        values = [a / b for a, b in pairs if a and b]
        self.name, self.note, self.turns, self.lost = name, note, len(values), len(pairs) - len(values)
        self.values = values

    def __str__(self):
        return f"{statistics.median(self.values):.2f}" if self.values else "nothing seen"

    def span(self):
        """Where the middle half of the turns lies."""
        return "{:.2f} to {:.2f}".format(*quartiles(self.values)) if self.values else ""

    def cell(self):
        """Both, for a table of many."""
        return f"{self} ({self.span()})" if self.values else str(self)

    def record(self):
        """For results.json, and for the table of all ratios."""
        if not self.values:
            return {"name": self.name, "turns": 0, "lost": self.lost, "note": self.note}
        median, least, most = median_interval(self.values)
        low, high = quartiles(self.values)
        return {"name": self.name, "turns": self.turns, "lost": self.lost, "median": median, "quarter": low,
                "three_quarters": high, "unsure": max(median - least, most - median) / median, "note": self.note}


class Context:
    """@length: "smoke", "quick" or "full". @ratios: of the experiment that runs."""

    def __init__(self, build, length, out):
        self.build, self.length, self.out = build, length, out
        self.tool = os.path.join(build, "tools", "smartio")
        self.ratios = []

    def pick(self, smoke, quick, full):
        return {"smoke": smoke, "quick": quick, "full": full}[self.length]

    def ratio(self, *args, **more):
        self.ratios.append(Ratio(*args, **more))
        return self.ratios[-1]

    def run(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{' '.join(words)}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
        return done.stdout

    def route(self, file, a, b, **options):
        words = [w for k, v in options.items() for w in ("--" + k, str(v))]
        return json.loads(self.run(self.tool, "route", "--json", *words, a, b,
                                   os.path.join(BENCH, "fidelity", file)))["data"]

    def csv(self, name, columns, rows):
        """@name.csv: each round of what was measured."""
        with open(os.path.join(self.out, name + ".csv"), "w", encoding="ascii", newline="") as f:
            w = csv.writer(f)
            w.writerow(columns)
            w.writerows(rows)

    def bench(self, room, *args):
        """Rows that bench/@room/bench.py writes as CSV."""
        path = os.path.join(self.out, f"{room}-{'-'.join(a.strip('-').replace(',', '-') for a in args)}.csv")
        where = [self.build] if room == "sisci" else ["--build", self.build]
        length = self.pick(["--smoke"], ["--quick"], [])
        self.run(sys.executable, "-B", os.path.join(BENCH, room, "bench.py"), *where, *length, *args, "--csv", path)
        with open(path, encoding="ascii") as f:
            return list(csv.DictReader(f))


def median(values, scale=1.0, form="{:.2f}"):
    """As text. A short window on a busy machine may have seen nothing at all; such values are 0, and left out."""
    seen = [v for v in values if v]
    return form.format(statistics.median(seen) / scale) if seen else "nothing seen"


def table(title, columns, rows):
    return {"title": title, "columns": columns, "rows": [[str(c) for c in r] for r in rows]}


def lines(title, label, x, y, series, **more):
    return {"kind": "lines", "title": title, "label": label, "x": x, "y": y, "series": series, **more}


def bars(title, label, y, series, **more):
    return {"kind": "bars", "title": title, "label": label, "x": "", "y": y, "series": series, **more}
