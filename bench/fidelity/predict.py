#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the time model (smartio route) says about hardware figures that others have published.

usage: predict.py --tool SMARTIO

Prints the table of docs/fidelity.md. No parameter was fitted to the figure that it predicts: latencies of
chips are the model's defaults, widths and generations the paper's, 32 requests at once what a function has
without extended tags. Where another published figure is an input, its row names it. Nothing passes or fails here.
"""
import argparse
import json
import os
import subprocess
import tempfile
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
NEAR = 0.15
LARGE = 128 << 20
BOXES, CABLE, SWITCHED, HOSTS = "boxes.yaml", "back-to-back.yaml", "switched.yaml", "two-hosts.yaml"
LINE = 64  # bytes of a processor's cache line, and of a write-combining buffer
REQUEST = 256  # bytes that the graphics processor asks for at a time: seen by the paper's tracer (7.3.1)
LOG = "a published log of sisci-perf"
LOG_READ, LOG_WRITE = 1780, 300  # its read of a byte, its write with a flush: ns


class Model:
    def __init__(self, tool):
        self.tool = tool

    def route(self, file, a, b, **options):
        words = [w for k, v in options.items() for w in ("--" + k, str(v))]
        done = subprocess.run([self.tool, "route", "--json", *words, a, b, os.path.join(HERE, file)],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["data"]

    def accepts(self, topology):
        """Has this file's text places for all that it names?"""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="ascii") as f:
            f.write(topology)
            f.flush()
            done = subprocess.run([self.tool, "topology", "--dot", f.name], capture_output=True, text=True, check=False)
        if done.returncode and "too many lanes" not in done.stderr:
            raise RuntimeError(done.stderr)
        return done.returncode == 0

    def hops(self, file, a, b):
        return self.route(file, a, b)["hops"]

    def passed(self, file, *ends):
        """Names of all that is passed on the way from one of the @ends to the next, the first and the last left out."""
        names = []
        for a, b in zip(ends, ends[1:]):
            names += [c["name"] for c in self.route(file, a, b)["chips"]] + [b]
        return names[:-1]

    def round_trip(self, file, a, b):
        """Nanoseconds, chips alone."""
        return 2 * self.route(file, a, b)["chips_ps"] / 1000

    def transfer(self, size, *way, **options):
        return next(t for t in self.route(*way, **options)["transfers"] if t["bytes"] == size)

    def rate(self, way, size, file, a, b, **options):
        """GB/s of a transfer of so many bytes."""
        return size / self.transfer(size, file, a, b, **options)[way + "_ps"] * 1000

    def link(self, *way):
        """GB/s of all bytes on the slowest link of the way, headers and all, by the time of one write."""
        t, chips = self.transfer(LARGE, *way), self.route(*way)["chips_ps"]
        return (LARGE + 24 * t["write_packets"]) / (t["write_ps"] - chips) * 1000


class Row(NamedTuple):
    what: str
    where: str
    published: str
    predicted: str
    label: str  # modelled: a time or rate; counted: hops, packets, places
    fits: bool
    source: str
    figure: bool  # of a statement only its truth is judged


def figure(what, where, published, unit, predicted, source, digits=0, label="modelled"):
    return Row(what, where, f"{published:g}{unit}", f"{predicted:.{digits}f}{unit}", label,
               abs(predicted - published) <= NEAR * published, source, True)


def count(what, where, published, predicted, source):
    return figure(what, where, published, "", predicted, source, label="counted")


def said(what, where, published, predicted, fits, source, label="modelled"):
    return Row(what, where, published, predicted, label, fits, source, False)


def links_and_packets(m):
    way = (HOSTS, "east", "west")
    link = m.link(*way)
    yield figure("a link of 16 lanes of generation 3, with all that is on it", "3.1", 15.75, " GB/s", link,
                 "8 GT/s, 128 of 130 bits", 2)
    yield figure("and what is left for data", "3.1", 13.8, " GB/s", m.rate("write", LARGE, *way),
                 "256 bytes a packet", 1)
    yield count("completions of a read of 512 bytes", "7.1.3", 2, m.transfer(512, *way)["completions"],
                "256 bytes a packet")
    yield count("requests that a root makes of one of 256 bytes", "7.3.1", 4, REQUEST / LINE,
                "cache lines of 64 bytes")


def places(m):
    def cascade(hosts):
        """Six switches below a seventh, each with so many hosts."""
        subs = range(6)
        return ("cluster: cascade\nswitches:\n" +
                "".join(f"  - {{ name: {s}, ports: 24, lanes: 4 }}\n" for s in ("top", *(f"sub{i}" for i in subs))) +
                "links:\n" + "".join(f"  - {{ from: sub{i}, to: top, width: 16 }}\n" for i in subs) + "hosts:\n" +
                "".join(f"  h{i}-{k}: {{ adapters: [{{ to: sub{i}, width: 8 }}] }}\n" for i in subs
                        for k in range(hosts)))

    most = max(n for n in range(1, 13) if m.accepts(cascade(n)))
    yield count("hosts by 8 lanes at seven switches of 24 ports of 4 lanes", "7.4.2", 60, 6 * most,
                "ports that are left when six switches lead to the seventh by 16")


def placement(m):
    ends = [("nvme0", "borrower"), ("nvme0", "lender"), ("nvme0", "gpu0")]
    for what, way, hops in zip(("borrower's memory", "lender's memory", "a device beside the drive"), ends, (4, 3, 1)):
        yield count(f"hops from the drive to a submission queue in {what}", "7.4.1", hops, m.hops(BOXES, *way), "route")
    trips = [m.round_trip(BOXES, *way) for way in ends]
    yield said("the nearer that queue, the shorter a command", "7.4.1", "in this order",
               ", ".join(f"{t:.0f}" for t in trips) + " ns", trips == sorted(trips, reverse=True),
               "chips there and back")


def peers(m):
    near = m.passed(BOXES, "gpu0", "gpu1")
    yield said("DMA between two borrowed devices of one lender, beside two local ones", "7.1.4", "the same",
               f"through {', '.join(near)} alone", near == ["lender/box"], "route", "counted")
    hops = m.hops(BOXES, "gpu0", "gpu2") - m.hops(BOXES, "gpu0", "gpu1")
    yield count("hops more between devices of two lenders than of one", "7.1.5", 4, hops, "route")
    more = m.round_trip(BOXES, "gpu0", "gpu2") - m.round_trip(BOXES, "gpu0", "gpu1")
    yield said("what they add to a ping-pong", "7.1.5", "less than the worst case", f"at most {more:.0f} ns",
               more == 2 * (132 + 170 + 132 + 150), "chips there and back, data sheets' worst")
    yield said("training by devices of two lenders is slower than of one", "7.2", "slightly", f"{hops} hops further",
               hops > 0, "route", "counted")


def lending(m):
    gap = m.round_trip(CABLE, "nvme0", "borrower") - m.round_trip(CABLE, "nvme0", "lender")
    yield said("a borrowed drive's reads after a local one's", "7.1.1", "23 ns of a wide spread: none",
               f"{gap:.0f} ns", gap == 0, "as many chips of the same kinds")
    yield said("the user-space driver's", "7.4.3", "none", f"{gap:.0f} ns", gap == 0, "the same")
    for way in ("write", "read"):
        ratio = m.rate(way, LARGE, CABLE, "gpu0", "borrower") / m.rate(way, LARGE, CABLE, "gpu0", "lender")
        yield said(f"DMA {way}s of a borrowed device to a local one's", "7.1.2", "the same",
                   f"{ratio:.3f}", abs(ratio - 1) < 0.005, "the same")


def one_switch_more(m):
    sizes = [4096 << k for k in range(16)]
    ratio = {n: m.rate("write", n, SWITCHED, "gpu0", "borrower") / m.rate("write", n, CABLE, "gpu0", "borrower")
             for n in sizes}
    yield said("one switch more: small writes are slower", "7.1.3", "yes", f"{ratio[4096]:.2f} at 4 KiB",
               ratio[4096] < 0.95, "170 ns of chip")
    near = min(n for n in sizes if ratio[n] >= 0.99)
    yield figure("one switch more: writes converge", "7.1.3", 512, " KiB", near >> 10,
                 "the size from which less than 1 % is missing; 170 ns once")
    slow = m.rate("read", LARGE, SWITCHED, "gpu0", "borrower") / m.rate("read", LARGE, CABLE, "gpu0", "borrower")
    yield said("one switch more: reads of all sizes are slower", "7.1.3", "noticeably", f"{slow:.2f}", slow < 0.95,
               "32 requests of 256 bytes, each open for longer")


def iommu(m):
    fast = m.rate("read", LARGE, CABLE, "gpu0", "borrower")
    yield figure("DMA reads without the lender's IOMMU", "7.3.1", 10.2, " GB/s", fast,
                 "32 requests of 256 bytes at once", 1)
    direct, far = (m.round_trip(CABLE, a, "borrower") for a in ("gpu0", "lender"))
    split = 10.2 / (REQUEST / LINE) * direct / far
    yield figure("and with it", "7.3.1", 1.5, " GB/s", split,
                 "the figure above, by requests of 64 bytes, as many at once, from the lender's root", 2)
    yield count("times that such a read passes the lender's processor", "7.3.1", 2,
                2 * m.passed(CABLE, "gpu0", "lender", "borrower").count("lender"), "route there and back")
    writes = LINE / (LINE + 24) / (REQUEST / (REQUEST + 24))
    yield said("reads suffer more from it than writes", "7.3.1", "particularly",
               f"{split / 10.2:.2f} against {writes:.2f}", split / 10.2 < writes,
               "requests of 64 bytes against packets of 64 bytes")


def processors(m):
    way = (HOSTS, "east", "west")
    word, link = m.transfer(4, *way), m.link(*way)
    yield figure("a processor's read of 1 byte", LOG, 1.78, " us", word["read_ps"] / 1e6, "chips and packets alone", 2)
    yield figure("a processor's write and flush", LOG, 0.3, " us",
                 (word["write_ps"] - m.route(*way)["chips_ps"]) / 1e6, "the packet on its link alone", 2)
    yield figure("a processor's reads: rate", LOG, 9, " MB/s", 16 / LOG_READ * 1000,
                 "the log's 1.78 us for a read, 16 bytes a load", 1)
    yield figure("ping-pong of two processors", LOG, 2.16, " us", (LOG_READ + 2 * LOG_WRITE) / 1000,
                 "the log's read, which crosses both ways, and its write and flush (0.30 us) at either end", 2)
    yield figure("a processor's writes", LOG, 7.7, " GB/s", link * LINE / (LINE + 24),
                 "x16 of generation 3, 64 bytes a packet", 1)
    yield figure("DMA writes", LOG, 10.4, " GB/s", m.rate("write", LARGE, *way), "the same, 256 bytes a packet", 1)
    memory = LOG_READ - m.round_trip(CABLE, "gpu0", "borrower")
    yield figure("DMA reads", LOG, 5.0, " GB/s", m.rate("read", LARGE, CABLE, "gpu0", "borrower", memory=round(memory)),
                 "32 requests of 256 bytes at once, as of the device above, each as long as the log's 1.78 us", 1)


PARTS = (links_and_packets, places, placement, peers, lending, one_switch_more, iommu, processors)


def summary(table):
    def fitting(rows):
        return f"{sum(r.fits for r in rows)} of {len(rows)}"

    figures, statements = ([r for r in table if r.figure == f] for f in (True, False))
    counted, modelled = ([r for r in figures if r.label == label] for label in ("counted", "modelled"))
    return (f"Within {NEAR:.0%} are {fitting(figures)} figures: {fitting(counted)} counted, {fitting(modelled)} "
            f"modelled. Of the statements {fitting(statements)} hold.")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--tool", required=True, metavar="SMARTIO", help="the smartio command")
    m = Model(p.parse_args().tool)
    table = [row for part in PARTS for row in part(m)]
    print("| what | published in | published | ours | label | fits | from |\n|---|---|---|---|---|---|---|")
    for r in table:
        cells = (r.what, r.where, r.published, r.predicted, r.label, "yes" if r.fits else "no", r.source)
        print("| " + " | ".join(cells) + " |")
    print("\n" + summary(table))


if __name__ == "__main__":
    main()
