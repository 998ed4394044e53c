# SPDX-License-Identifier: BSD-2-Clause
"""What the experiments share: the programs that they run, and the forms of tables and charts."""
import csv
import json
import os
import statistics
import subprocess
import sys

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELLED, COUNTED, MEASURED, ON_MODEL = "modelled", "counted", "measured", "measured on a model"


class Failed(Exception):
    """The text is for the user."""


class Context:
    def __init__(self, build, quick, out):
        self.build, self.quick, self.out = build, quick, out
        self.tool = os.path.join(build, "tools", "smartio")

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
        quick = ["--quick"] if self.quick else []
        self.run(sys.executable, "-B", os.path.join(BENCH, room, "bench.py"), *where, *quick, *args, "--csv", path)
        with open(path, encoding="ascii") as f:
            return list(csv.DictReader(f))


def median(values, scale=1.0, form="{:.2f}"):
    """As text. A short window on a busy machine may have seen nothing at all; such values are 0, and left out."""
    seen = [v for v in values if v]
    return form.format(statistics.median(seen) / scale) if seen else "nothing seen"


def ratio(above, below):
    return median([a / b for a, b in zip(above, below) if a and b])


def table(title, columns, rows):
    return {"title": title, "columns": columns, "rows": [[str(c) for c in r] for r in rows]}


def lines(title, label, x, y, series, **more):
    return {"kind": "lines", "title": title, "label": label, "x": x, "y": y, "series": series, **more}


def bars(title, label, y, series, **more):
    return {"kind": "bars", "title": title, "label": label, "x": "", "y": y, "series": series, **more}
