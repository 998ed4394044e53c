# SPDX-License-Identifier: BSD-2-Clause
"""How stable the ratios of a machine are: the median of each over several runs, and how far the runs lie from it.

What one run says of itself (`unsure`) is from its turns alone. Runs lie further apart: another start finds other places in
memory, and a machine that is shared has other hours.
"""
import argparse
import json
import os
import statistics

from parts import NOTES

SAME = ("processor", "commit", "build", "length")  # what runs have to have alike to be compared


def load(path):
    """Of a folder that a run left, or of its results.json."""
    if os.path.isdir(path):
        path = os.path.join(path, "results.json")
    try:
        with open(path, encoding="utf-8") as f:
            found = json.load(f)
        return {"path": path, "about": found["about"],
                "ratios": {(e["name"], r["name"]): r for e in found["experiments"] for r in e["ratios"]}}
    except (OSError, ValueError) as e:
        raise SystemExit(f"{path}: {e.strerror if isinstance(e, OSError) else 'no JSON'}") from e
    except (KeyError, TypeError) as e:
        raise SystemExit(f"{path}: no results of smartio-bench with ratios in them") from e


def differences(runs):
    """Lines that say what is not alike in all runs."""
    lines = []
    for key in SAME:
        values = sorted({str(r["about"].get(key)) for r in runs})
        if len(values) > 1:
            lines.append(f"the runs differ in {key}: {'; '.join(values)}")
    return lines


def compare(runs, within):
    """Rows: experiment, ratio, runs that have it, median, least, most, how far the farthest is, note."""
    rows = []
    for key in dict.fromkeys(k for r in runs for k in r["ratios"]):
        found = [r["ratios"][key] for r in runs if key in r["ratios"]]
        values = [f["median"] for f in found if f["turns"]]
        if not values:
            rows.append({"key": key, "n": 0, "note": found[0]["note"]})
            continue
        median = statistics.median(values)
        far = max(abs(v - median) for v in values) / median
        rows.append({"key": key, "n": len(values), "median": median, "least": min(values), "most": max(values), "far": far,
                     "inside": far <= within, "note": found[0]["note"]})
    return rows


def show(runs, rows, within):
    width = max((len(r["key"][1]) for r in rows), default=0)
    print(f"{'':{width + 14}} runs  median   least    most  farthest")
    for r in rows:
        head = f"{r['key'][0]:12}  {r['key'][1]:{width}}"
        if not r["n"]:
            print(f"{head}  nothing seen")
            continue
        print(f"{head} {r['n']:5} {r['median']:7.3f} {r['least']:7.3f} {r['most']:7.3f}  {100 * r['far']:6.1f} %"
              f"{'' if r['inside'] else '  more than ' + format(100 * within, 'g') + ' %'}")
    outside = [r for r in rows if r["n"] and not r["inside"]]
    print(f"\n{len(rows) - len(outside)} of {len(rows)} ratios of {len(runs)} runs are within {100 * within:g} % of their median.")
    for note in sorted({r["note"] for r in outside if r["note"]}):
        why = f", which {NOTES[note]}" if note in NOTES else ""
        print(f"{sum(r['note'] == note for r in outside)} of the others: {note}{why}.")
    for line in differences(runs):
        print(line)


def main(argv):
    p = argparse.ArgumentParser(prog="smartio-bench compare", description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--within", type=float, default=5, metavar="PERCENT", help="what is near enough; default: 5")
    p.add_argument("result", nargs="+", metavar="RESULT", help="--out of a run, or its results.json: two or more")
    o = p.parse_args(argv)
    if len(o.result) < 2:
        p.error("two results at least are right")
    if not 0 < o.within < 100:
        p.error(f"--within {o.within:g}: more than 0, less than 100 is right")
    runs = [load(path) for path in o.result]
    show(runs, compare(runs, o.within / 100), o.within / 100)
