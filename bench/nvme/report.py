# SPDX-License-Identifier: BSD-2-Clause
"""What was measured, as text, CSV and a picture."""
import csv
import shutil
import statistics
import subprocess

from machine import QUIET
from rows import BARE, BARE2, IN_FILE, IN_MEMORY, LOCAL, REMOTE, REMOTE2, WAKE_IDLE

COLUMNS = ["row", "round", "depth", "who", "value", "count", "rate", "min_ns", "p50_ns", "p99_ns",
           "p9999_ns", "max_ns", "line_before_ns", "line_after_ns", "lost", "share_off_mean",
           "rate_of_one", "doorbells_per_batch", "client_ns", "waits_polled", "waits_slept"]
WIDTH = 34


def us(ns):
    return f"{ns / 1e3:.2f}" if ns < 1e5 else f"{ns / 1e3:.0f}"


def headline(metric, value):
    if metric in ("latency", "latest", "first"):
        return us(value)
    if metric == "bytes":
        return f"{value / 1e9:.2f}"
    return f"{value / 1e6:.3f}"


UNITS = {"latency": "us, median", "latest": "us, latest", "first": "us, median", "bytes": "GB/s",
         "rate": "M I/O per s", "many": "M I/O per s"}


def reached(target, value):
    return value <= target[1] if target[0] == "<=" else value >= target[1]


def verdict(target, value):
    word = "at most" if target[0] == "<=" else "at least"
    return f"target: {word} {target[1]:g}: {'met' if reached(target, value) else 'not met'}"


def span(values, form="{:.2f}"):
    return (f"{form.format(statistics.median(values))} ({form.format(min(values))} to "
            f"{form.format(max(values))})") if values else "none"


def line_text(row):
    """The cache line's round trip beside the row."""
    before = [b for b, _ in row.lines if b is not None]
    after = [a for _, a in row.lines if a is not None]
    if not before:
        return "cache line: not measured, there is one processor"
    both = before + after
    return (f"cache line round trip {statistics.median(before):.0f} ns before, "
            f"{statistics.median(after):.0f} after ({min(both):.0f} to {max(both):.0f})")


def table(row, out):
    """A row of the issue's table, as lines of text."""
    out(f"\n{row.title}")
    out(f"  {row.pinned}" + (f"; {line_text(row)}" if row.lines else ""))
    kind = {"idle": idle, "sweep": sweep, "instructions": instructions, "files": files,
            "waits": waits}.get(row.metric, parties)
    kind(row, out)
    for note in row.notes:
        out(f"  {note}")


def parties(row, out):
    out(f"  {'':24} {UNITS[row.metric] + ' of rounds (range)':<{WIDTH}} "
        f"{'p50':>8} {'p99':>8} {'p99.99':>8} {'max':>8}  us, all rounds")
    for who, s in row.samples.items():
        values = [headline(row.metric, v) for v in (s.median(), min(s.rounds), max(s.rounds))]
        out(f"  {who:24} {values[0] + ' (' + values[1] + ' to ' + values[2] + ')':<{WIDTH}} "
            f"{us(s.percentile(.5)):>8} {us(s.percentile(.99)):>8} {us(s.percentile(.9999)):>8} "
            f"{us(s.max):>8}")
    compare(row, out)


def target_of(row):
    """Of many clients beside one: the bare loop's own ratio, and what may be missing of it."""
    if row.metric != "many":
        return row.target
    return row.target[0], statistics.median(row.ratios[BARE]) + row.target[1]


def compare(row, out):
    if row.metric == "latest":
        worst = row.samples[REMOTE].max
        result = "met" if reached(row.target, worst) else "not met"
        if result == "not met" and row.samples[REMOTE].lost > QUIET:
            result = "not judged, others had the processor"
        out(f"  latest completion of the drive {worst / 1e6:.2f} ms; target: at most 20 ms: "
            f"{result}")
        return
    for who, ratios in row.ratios.items():
        if not ratios:
            continue
        judged = row.target and who not in (BARE, LOCAL)
        quiet = row.quiet_ratios.get(who, [])
        undisturbed = f"; of the {len(quiet)} undisturbed of {len(ratios)}: {span(quiet)}"
        if row.metric == "many":
            text = f"{who}: 30 clients / one, round by round: {span(ratios)}{undisturbed}"
        elif row.metric == "first":
            judged = who == (REMOTE, WAKE_IDLE)
            text = f"{who[0]} / {who[1]}, round by round: {span(ratios)}"
        else:
            text = f"{who} / {BARE}, round by round: {span(ratios)}{undisturbed}"
        if judged and (row.shared or row.metric == "many") and 2 * len(quiet) < len(ratios):
            text += "; not judged, others had the processor in most rounds"
        elif judged:
            text += f"; {verdict(target_of(row), statistics.median(ratios))}"
        out(f"  {text}")
    if row.two_ratios:
        out(f"  {REMOTE2} / {BARE2}: {span(row.two_ratios)}")
    for who, spreads in getattr(row, "spreads", {}).items():
        percent = span([100 * s for s in spreads], "{:.1f}")
        text = f"{who}: farthest share from the mean: {percent} %"
        if who != BARE and 2 * len(row.quiet_ratios[who]) >= len(spreads):
            text += f"; {verdict(('<=', 2), 100 * statistics.median(spreads))}"
        out(f"  {text}")


def idle(row, out):
    out(f"  {100 * row.value:.3f} % of a processor; target: at most 0.1 %: "
        f"{'met' if reached(row.target, row.value) else 'not met'}")


def sweep(row, out):
    out(f"  {'depth':>7}  M I/O per s: median of rounds (range)")
    out(f"  {'':7}  " + "".join(f"{who:28}" for who in row.points))
    for i, point in enumerate(row.points[BARE]):
        cells = []
        for points in row.points.values():
            _, median, low, high = points[i]
            cells.append(f"{median / 1e6:.3f} ({low / 1e6:.3f} to {high / 1e6:.3f})")
        out(f"  {point[0]:7}  " + "".join(f"{c:28}" for c in cells))


def files(row, out):
    for depth, length, rates, ratios, quiet in row.points:
        out(f"  depth {depth:2}, {length // 1024:3} KiB: {statistics.median(rates[IN_FILE]) / 1e3:.1f} against "
            f"{statistics.median(rates[IN_MEMORY]) / 1e3:.1f} thousand reads per s; file / memory, "
            f"round by round: {span(ratios)}; of the {len(quiet)} undisturbed of {len(ratios)}: {span(quiet)}")


def waits(row, out):
    out(f"  {'':12} {'us, median of rounds (range)':<{WIDTH}} {'p50':>8} {'p99':>8} {'max':>8}  us, all rounds;  "
        "client's processor time, us per I/O (range)")
    for title, samples, cost in row.points:
        out(f"  {title}")
        for way, s in samples.items():
            if not s.rounds:
                continue
            out(f"    {way:10} {us(s.median()) + ' (' + us(min(s.rounds)) + ' to ' + us(max(s.rounds)) + ')':<{WIDTH}} "
                f"{us(s.percentile(.5)):>8} {us(s.percentile(.99)):>8} {us(s.max):>8}  "
                f"                 {span([c / 1e3 for c in cost[way]])}")


def instructions(row, out):
    for who, v in row.values.items():
        out(f"  {who:24} {v['instructions']:.1f} instructions; memset: "
            f"{'called' if v['memset'] else 'none'}; {v['doorbells']:.2f} submission doorbells per "
            f"batch; the drive read {v['read_bytes']:.0f} bytes per command; "
            f"{verdict(row.target, v['instructions'])}")


def write_csv(rows, path):
    with open(path, "w", newline="", encoding="ascii") as f:
        w = csv.DictWriter(f, COLUMNS)
        w.writeheader()
        for row in rows:
            for record in row.records:
                w.writerow({"row": row.key, "depth": row.depth, **record})


def blocks(series):
    """gnuplot's in-line data, one block per series."""
    return "".join("".join(f"{x} {y}\n" for x, y in points) + "e\n" for points in series)


def histogram(samples):
    """Shares of all I/Os, in steps of 5 %."""
    steps, total = {}, sum(samples.buckets.values())
    for value, n in samples.buckets.items():
        step = 50.0
        while step * 1.05 <= value:
            step *= 1.05
        steps[step] = steps.get(step, 0) + n
    return [(f"{ns / 1e3:.4f}", f"{100 * n / total:.5f}") for ns, n in sorted(steps.items())]


def latencies(row):
    """Histograms of depth 1. None: somebody completed nothing at all."""
    names = [LOCAL, REMOTE, BARE]
    if not set(names) <= set(row.samples):
        return None
    plots = ", ".join(f"'-' with histeps lw 2 title '{n}'" for n in names)
    return f"""
set key top right
set logscale x
set title '4 KiB random reads, depth 1'
set xlabel 'latency, us'
set ylabel 'share of I/Os in steps of 5 %, %'
plot {plots}
{blocks([histogram(row.samples[n]) for n in names])}"""


def rates(row):
    """Depth against rate."""
    names = [LOCAL, REMOTE, BARE]
    plots = ", ".join(f"'-' with linespoints lw 2 title '{n}'" for n in names)
    return f"""
set key top left
set logscale x 2
set title '4 KiB random reads'
set xlabel 'depth'
set ylabel 'million I/Os per second'
set yrange [0:*]
plot {plots}
{blocks([[(d, f"{m / 1e6:.4f}") for d, m, _, _ in row.points[n]] for n in names])}"""


def client_shares(row):
    """
    Of each client and window: how far its share is from the mean, in percent. Windows in which nobody had the
    processor are left out. None: there are no others.
    """
    records = [r for r in row.records if r.get("row") == "shares"]
    windows = {r["round"] for r in records if float(r["value"])}
    clients = {}
    for r in records:
        if r["round"] in windows:
            clients.setdefault(r["who"], []).append((r["round"], float(r["value"])))
    return [[(window, 100 * (share * len(clients) - 1)) for window, share in points]
            for points in clients.values()] or None


def shares(row):
    """Shares of all clients over time; where they are to stay is drawn, too."""
    clients = client_shares(row)
    if not clients:
        return None
    widest = max(2.5, *(1.1 * abs(y) for points in clients for _, y in points))
    plots = ", ".join(f"'-' with lines lw 1 lc {i + 1} notitle" for i in range(len(clients)))
    return f"""
set key top right
set title '{len(clients)} clients on one processor, depth 32: shares over time'
set xlabel 'window of time'
set ylabel 'share of all I/Os beside the mean, %'
set yrange [{-min(widest, 105):.2f}:{widest:.2f}]
set xrange [1:{max(2, clients[0][-1][0])}]
plot 2 with lines lw 2 dt 2 lc rgb 'black' title 'at most 2 %', -2 with lines lw 2 dt 2 lc rgb 'black' notitle, {plots}
{blocks([[(x, f"{y:.3f}") for x, y in points] for points in clients])}"""


PANELS = {"depth1": latencies, "sweep": rates, "clients30": shares}


def write_png(rows, path):
    """Latencies, depth against rate, and shares over time, of the rows that were measured. Return: a reason, or None."""
    if not shutil.which("gnuplot"):
        return "no picture: gnuplot is not installed (Debian: gnuplot-nox)"
    by_key = {row.key: row for row in rows}
    panels = [draw(by_key[key]) for key, draw in PANELS.items() if key in by_key]
    panels = [p for p in panels if p]
    if not panels:
        return f"no picture: it needs one of the rows {', '.join(PANELS)}, and I/O in it"
    script = f"""
set terminal pngcairo size {700 * len(panels)},600
set output '{path.replace("'", "''")}'
set multiplot layout 1,{len(panels)} title 'measured: times of our software, not of PCIe'
{"".join("reset" + chr(10) + "set grid" + p for p in panels)}
unset multiplot
"""
    done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr.strip():
        return f"no picture: gnuplot: {done.stderr.strip() or done.returncode}"
    return None
