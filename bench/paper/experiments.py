# SPDX-License-Identifier: BSD-2-Clause
"""The experiments of the paper's section 7, as far as they can be repeated without its hardware.

Each is a function that measures, counts or models, and returns tables and charts; TABLE has them all with the
seconds that they take, as far as is known. Labels: "measured" is a time of our software on this machine, nothing
of PCIe; "measured on a model" the same with an emulated device; "modelled" is computed (docs/fidelity.md).
"""
import os
import statistics
import sys
from collections import defaultdict

from chart import size
from control import control
from functions import functions
from multicast import multicast
from parts import BENCH, COUNTED, MEASURED, MODELLED, ON_MODEL, THREADS, bars, lines, median, table
from queues import queues
from training import training

# ---- modelled ----

WAYS = [("beside, 1 hop", "boxes.yaml", "gpu0", "gpu1"), ("own host, 3 hops", "back-to-back.yaml", "gpu0", "lender"),
        ("back to back, 3 hops", "back-to-back.yaml", "gpu0", "borrower"),
        ("cluster switch, 4 hops", "switched.yaml", "gpu0", "borrower"),
        ("two lenders, 5 hops", "boxes.yaml", "gpu0", "gpu2")]


def paths(c):
    """DMA throughput by size and way."""
    found, rows = {}, []
    for name, *way in WAYS:
        found[name] = data = c.route(*way)
        rate = {t["bytes"]: [t["bytes"] / t[k] * 1000 for k in ("write_ps", "read_ps")] for t in data["transfers"]}
        rows.append([name, data["hops"], f"{data['chips_ps'] / 1000:.0f}",
                     *(f"{r:.2f}" for n in (4096, 1 << 20, 128 << 20) for r in rate[n])])
    charts = [lines(f"DMA {way}s by size and way", MODELLED, "bytes of a transfer", "GB/s",
                    {name: [(t["bytes"], t["bytes"] / t[way + "_ps"] * 1000) for t in d["transfers"]
                            if t["bytes"] >= 4096] for name, d in found.items()}, log="x", sizes=3)
              for way in ("write", "read")]
    head = ["way", "hops", "ns one way", "write 4K", "read 4K", "write 1M", "read 1M", "write 128M", "read 128M"]
    return [table("GB/s of one transfer", head, rows)], charts


def placement(c):
    """Round trip of the drive's fetch by where the submission queue is."""
    where = [("borrower's RAM", "borrower"), ("lender's RAM", "lender"), ("device beside the drive", "gpu0")]
    rows, points = [], []
    for name, end in where:
        data = c.route("boxes.yaml", "nvme0", end)
        fetch = next(t for t in data["transfers"] if t["bytes"] == 64)["read_ps"] / 1000
        rows.append([name, data["hops"], f"{2 * data['chips_ps'] / 1000:.0f}", f"{fetch:.0f}"])
        points.append((name, 2 * data["chips_ps"] / 1000))
    return ([table("Fetching a command of 64 bytes", ["queue in", "hops (counted)", "ns in chips, there and back",
                                                       "ns with its packets"], rows)],
            [bars("Submission queue placement", MODELLED, "ns there and back", {"chips on the way": points})])


def iommu(c):
    """Reads with and without the lender's IOMMU, whose root asks for 64 bytes at a time."""
    ways = [("without (256 bytes a request)", ("back-to-back.yaml", "gpu0", "borrower"), 32, 1),
            ("with, 32 requests of 64 bytes", ("back-to-back.yaml", "lender", "borrower"), 32, 4)]
    rows, points = [], []
    for name, way, tags, split in ways:
        data = c.route(*way, tags=tags)
        rate = 128 * 2 ** 20 / next(t for t in data["transfers"] if t["bytes"] == 128 << 20)["read_ps"] * 1000
        if split > 1:  # so many open at once, each a part of what the model asks for
            rate = min(rate, tags * 64 / (2 * data["chips_ps"] / 1000))
        rows.append([name, data["hops"], f"{rate:.2f}", "10.2" if split == 1 else "a little over 1.5"])
        points.append((name, rate))
    return ([table("DMA reads", ["lender's IOMMU", "hops from who asks", "GB/s modelled", "GB/s published"], rows)],
            [bars("IOMMU penalty", MODELLED, "GB/s", {"reads of 128 MiB": points})])


def fidelity(c):
    """Published figures beside the model's."""
    text = c.run(sys.executable, "-B", os.path.join(BENCH, "fidelity", "predict.py"), "--tool", c.tool)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [table(text.splitlines()[-1], rows[0], rows[2:])], []


# ---- measured ----

def accelerator(c):
    """DMA throughput by size; ping-pong by percentile."""
    found = c.bench("accel")
    starts, pings = defaultdict(lambda: defaultdict(list)), defaultdict(list)
    for r in found:
        if r["direction"].startswith("memcpy beside"):
            continue  # of_memcpy of the others has it
        if r["bytes"]:
            key = f"{r['experiment']}, {r['path']}, {r['direction']}".replace(", one process, memcpy", "")
            starts[key][int(r["bytes"])].append(r)
        else:
            pings[f"{r['experiment']}, {r['path']}"].append(r)
    rate = {key: [(n, *(how(float(r[k]) / 1000 for r in rs) for how, k in
                        ((statistics.median, k) for k in ("median_MBps", "min_MBps", "max_MBps"))))
                  for n, rs in by.items()] for key, by in starts.items()}
    ping = {key: [(p, statistics.median(float(r[k]) for r in rs)) for p, k in
                  zip(("least", "25 %", "50 %", "75 %", "99 %"), ("min_ns", "p25_ns", "p50_ns", "p75_ns", "p99_ns"))]
            for key, rs in pings.items()}
    sizes = (4096, 65536, 262144, 1 << 20)
    rows = [[key, *(f"{dict((n, v) for n, v, *_ in points)[n]:.2f}" for n in sizes)] for key, points in rate.items()]
    shares = [[key, *(r.cell() for n in sizes[1:] for r in
                      [c.ratio(f"{key}, {size(n)}, of memcpy", [float(r["of_memcpy"]) for r in by[n]], [1] * len(by[n]))])]
              for key, by in starts.items() if key != "memcpy"]
    bare = [float(r["p50_ns"]) for r in pings["two threads, one process"]]
    trips = {key: c.ratio(f"{key} / two threads", [float(r["p50_ns"]) for r in rs], bare, THREADS)
             for key, rs in pings.items() if key != "two threads, one process"}
    charts = [lines(f"DMA, {of}, {how}", ON_MODEL, "bytes of a transfer", "GB/s: median; least to most of a start",
                    {k.replace(" 16 at once", ""): v for k, v in rate.items()
                     if k == "memcpy" or k.startswith(of) and k.endswith("at once") == (how != "one by one")},
                    log="xy", sizes=2)
              for of in ("host memory", "peer to peer") for how in ("one by one", "16 at once")]
    charts.append(bars("Ping-pong of two accelerators", ON_MODEL, "ns for a round trip", ping))
    return [table("GB/s, median", ["transfer", *map(size, sizes)], rows),
            table("Of memcpy's, in turns with it: median of starts (25 % to 75 %)", ["transfer", *map(size, sizes[1:])], shares),
            table("Round trips, ns", ["pair", "least", "25 %", "50 %", "75 %", "99 %", "of two threads'", "25 % to 75 %"],
                  [[k, *(f"{v:.0f}" for _, v in points), *((str(trips[k]), trips[k].span()) if k in trips else ("", ""))]
                   for k, points in ping.items()])], charts


def nvme_rows(found, key):
    by = defaultdict(list)
    for r in found:
        if r["row"] == key:
            by[r["who"]].append(r)
    return by


def remote(c):
    """One drive, its own host against another one's; a bare loop beside them."""
    found = c.bench("nvme", "--only", "depth1,depth32,large,sweep")
    rows, delays = [], {}
    for key, what in (("depth1", "4 KiB, depth 1"), ("depth32", "4 KiB, depth 32"), ("large", "128 KiB, depth 8")):
        by = nvme_rows(found, key)
        p50 = {who: [float(r["p50_ns"] or 0) for r in rs] for who, rs in by.items()}
        rows.append([what, *(median(p50[w], 1000) for w in ("drive, lender", "drive, remote", "bare loop")),
                     str(r := c.ratio(f"{what}: another host / own", p50["drive, remote"], p50["drive, lender"])), r.span()])
        if key == "depth1":
            delays = {who: [(n, statistics.median(float(r[k]) for r in seen) / 1000) for n, k in
                            (("least", "min_ns"), ("50 %", "p50_ns"), ("99 %", "p99_ns"), ("99.99 %", "p9999_ns"))]
                      for who, rs in by.items() for seen in [[r for r in rs if r["p50_ns"] and float(r["p50_ns"])]]
                      if seen}
    sweep = defaultdict(lambda: defaultdict(list))
    for who, rs in nvme_rows(found, "sweep").items():
        for r in rs:
            sweep[who][int(r["depth"])].append(float(r["rate"]) / 1e6)
    charts = [bars("4 KiB random reads at depth 1: median of rounds", MEASURED, "us", delays, log="y")] if delays else []
    if sweep:
        charts.append(lines("4 KiB random reads", MEASURED, "depth", "million I/Os per second",
                            {who: [(d, statistics.median(v), min(v), max(v)) for d, v in sorted(at.items())]
                             for who, at in sweep.items()}, log="x"))
    return [table("us, median", ["reads", "own host", "another host", "bare loop", "another / own", "25 % to 75 %"], rows)], charts


def shares(found):
    """Each client's part of all I/Os, window by window."""
    series = {who: [(int(r["round"]), 100 * float(r["value"])) for r in rs]
              for who, rs in nvme_rows(found, "shares").items()}
    windows = [p[0] for p in next(iter(series.values()))]
    # Where others had the processors for all of a window, nobody has a share of anything.
    windows = [w for w in windows if any(dict(points)[w] for points in series.values())] or windows
    series = {who: [p for p in points if p[0] in windows] for who, points in series.items()}
    whole = {w: [dict(points)[w] for points in series.values()] for w in windows}
    main = {"median; least to most": [(w, statistics.median(v), min(v), max(v)) for w, v in whole.items()],
            f"1 of {len(series)}": [(w, 100 / len(series)) for w in windows]}
    return lines("Shares of 30 clients of one drive, a grey line each", MEASURED, "window", "% of all I/Os", {**series, **main},
                 thin=list(series))


def sharing(c):
    """Thirty clients on one drive: together against one, and each one's share over time."""
    rows, found = [], c.bench("nvme", "--only", "clients30")
    for who, rs in nvme_rows(found, "clients30").items():
        together = c.ratio(f"{who}: 30 clients / one", [float(r["rate"]) for r in rs], [float(r["rate_of_one"]) for r in rs])
        rows.append([who, median([float(r["rate"]) for r in rs], 1e6), str(together), together.span(),
                     median([float(r["share_off_mean"]) for r in rs], 0.01, "{:.1f} %")])
    return [table("30 clients at depth 32", ["who", "million I/Os per second", "of one client's", "25 % to 75 %",
                                             "farthest share from the mean"], rows)], [shares(found)]


def sisci(c):
    """Segments, copies, interrupts, DMA queues of the API beside the bare machine."""
    found = c.bench("sisci", "--only", "pingpong,copy,int,dma")
    by = defaultdict(lambda: defaultdict(list))
    for r in found:
        by[r["row"], r["what"]][r["who"]].append(float(r["value"]))
    floor = {"pingpong": "memfd", "trigger": "eventfd", "message": "datagram"}
    rows, copies = [], defaultdict(list)
    for (row, what), parties in by.items():
        if row == "copy":
            for who in ("sisci", "memcpy"):
                copies["SCIMemCpy" if who == "sisci" else who].append(
                    (int(what), int(what) / statistics.median(parties[who])))
            continue
        if what == "line":  # the round trip of a cache line, beside each row
            continue
        ours, bare = ("queue", "memcpy") if row == "dma" else ("sisci", floor[what])
        name = f"{row}: {what}" if row != what else row
        r = c.ratio(f"{name} / {bare}", parties[ours], parties[bare], "" if row == "dma" else THREADS)
        rows.append([name, median(parties[ours], form="{:.0f}"), bare, median(parties[bare], form="{:.0f}"), str(r), r.span()])
    return ([table("ns, median", ["what", "SISCI", "beside it", "ns", "ratio", "25 % to 75 %"], rows)],
            [lines("Copies to a remote segment", MEASURED, "bytes of a copy", "GB/s",
                   {k: sorted(v) for k, v in copies.items()}, log="x", sizes=2)])


# Name, title, section of the paper, label, function, seconds: quick, full.
TABLE = [
    ("paths", "Longer ways: DMA by size", "7.1.2, 7.1.3", MODELLED, paths, (1, 1)),
    ("placement", "Where the submission queue is", "7.4.1", MODELLED, placement, (1, 1)),
    ("queues", "What the drive reads of submission queues", "7.4.1", COUNTED, queues, (1, 3)),
    ("iommu", "The lender's IOMMU", "7.3.1", MODELLED, iommu, (1, 1)),
    ("fidelity", "Published figures and the model", "7", MODELLED, fidelity, (2, 2)),
    ("accelerator", "DMA and peer-to-peer of accelerators", "7.1.2, 7.1.4, 7.1.5", ON_MODEL, accelerator, (16, 1800)),
    ("remote", "A drive of one's own host, and of another", "7.4.3", MEASURED, remote, (16, 45)),
    ("sharing", "One drive, thirty clients", "7.4.2", MEASURED, sharing, (16, 75)),
    ("functions", "Virtual functions on two hosts", "7.1.6", ON_MODEL, functions, (23, 220)),
    ("training", "Two accelerators and a drive train a network", "7.2", ON_MODEL, training, (10, 35)),
    ("multicast", "One Identify to 59 hosts", "7.4.2", COUNTED, multicast, (2, 5)),
    ("control", "The control path by size of the cluster", "", MEASURED, control, (15, 75)),
    ("sisci", "SISCI: segments, copies, interrupts, DMA", "", MEASURED, sisci, (13, 260)),
]
