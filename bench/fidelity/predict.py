#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the time model (smartio route) says about hardware figures that others have published.

usage: predict.py --tool SMARTIO

Prints the table of docs/fidelity.md. No parameter was chosen after the figure that it predicts: latencies of
chips are the model's defaults, widths and generations the paper's, 32 requests at once what a function has
without extended tags. Nothing passes or fails here.
"""
import argparse
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
NEAR = 0.15


class Model:
    def __init__(self, tool):
        self.tool = tool

    def route(self, file, a, b, **options):
        words = [w for k, v in options.items() for w in ("--" + k, str(v))]
        done = subprocess.run([self.tool, "route", "--json", *words, a, b, os.path.join(HERE, file)],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["data"]

    def hops(self, file, a, b):
        return self.route(file, a, b)["hops"]

    def round_trip(self, file, a, b):
        """Nanoseconds, chips alone."""
        return 2 * self.route(file, a, b)["chips_ps"] / 1000

    def rate(self, way, size, file, a, b, **options):
        """GB/s of a transfer of so many bytes."""
        for t in self.route(file, a, b, **options)["transfers"]:
            if t["bytes"] == size:
                return size / t[way + "_ps"] * 1000
        raise KeyError(size)


LARGE = 128 << 20


def rows(m):
    """What, where published, published, predicted, does it fit, how it comes about, is it a number."""
    boxes, cable, switched = "boxes.yaml", "back-to-back.yaml", "switched.yaml"
    ram, lender, beside = ("nvme0", "borrower"), ("nvme0", "lender"), ("nvme0", "gpu0")

    def number(what, where, published, unit, predicted, how, digits=0):
        fits = abs(predicted - published) <= NEAR * published
        return (what, where, f"{published:g}{unit}", f"{predicted:.{digits}f}{unit}", "yes" if fits else "no", how,
                True)

    def said(what, where, published, predicted, fits, how):
        return (what, where, published, predicted, "yes" if fits else "no", how, False)

    for what, ends, hops in [("borrower's memory", ram, 4), ("lender's memory", lender, 3),
                             ("a device beside the drive", beside, 1)]:
        yield number(f"hops from the drive to a submission queue in {what}", "7.4.1", hops, "",
                     m.hops(boxes, *ends), "route")
    trips = [m.round_trip(boxes, *ends) for ends in (ram, lender, beside)]
    yield said("the nearer that queue, the shorter a command", "7.4.1", "in this order",
               ", ".join(f"{t:.0f}" for t in trips) + " ns", trips == sorted(trips, reverse=True),
               "chips there and back")
    yield number("hops more between devices of two lenders than of one", "7.1.5", 4, "",
                 m.hops(boxes, "gpu0", "gpu2") - m.hops(boxes, "gpu0", "gpu1"), "route")
    more = m.round_trip(boxes, "gpu0", "gpu2") - m.round_trip(boxes, "gpu0", "gpu1")
    yield said("what they add to a ping-pong", "7.1.5", "less than the worst case", f"at most {more:.0f} ns",
               more == 2 * (132 + 170 + 132 + 150), "chips there and back, data sheets' worst")
    gap = m.round_trip(cable, "nvme0", "borrower") - m.round_trip(cable, "nvme0", "lender")
    yield said("a borrowed drive's reads after a local one's", "7.1.1", "23 ns of a wide spread: none",
               f"{gap:.0f} ns", gap == 0, "as many chips of the same kinds")
    yield said("the user-space driver's", "7.4.3", "none", f"{gap:.0f} ns", gap == 0, "the same")
    for way in ("write", "read"):
        ratio = m.rate(way, LARGE, cable, "gpu0", "borrower") / m.rate(way, LARGE, cable, "gpu0", "lender")
        yield said(f"DMA {way}s of a borrowed device to a local one's", "7.1.2", "the same",
                   f"{ratio:.3f}", abs(ratio - 1) < 0.005, "the same")
    ratio = {size: m.rate("write", size, switched, "gpu0", "borrower") / m.rate("write", size, cable, "gpu0",
                                                                                "borrower")
             for size in (4096, 1 << 20)}
    yield said("one switch more: small writes are slower", "7.1.3", "yes", f"{ratio[4096]:.2f} at 4 KiB",
               ratio[4096] < 0.95, "170 ns of chip")
    yield said("and large ones are not, beyond 512 KiB", "7.1.3", "they converge", f"{ratio[1 << 20]:.3f} at 1 MiB",
               ratio[1 << 20] > 0.99, "170 ns once")
    slow = m.rate("read", LARGE, switched, "gpu0", "borrower") / m.rate("read", LARGE, cable, "gpu0", "borrower")
    yield said("one switch more: reads of all sizes are slower", "7.1.3", "noticeably", f"{slow:.2f}", slow < 0.95,
               "32 requests of 256 bytes, each open for longer")
    fast = m.rate("read", LARGE, cable, "gpu0", "borrower")
    yield number("DMA reads without the lender's IOMMU", "7.3.1", 10.2, " GB/s", fast,
                 "32 requests of 256 bytes at once", 1)
    direct, far = (m.round_trip(cable, a, "borrower") for a in ("gpu0", "lender"))
    yield number("and with it", "7.3.1", 1.5, " GB/s", 10.2 / 4 * direct / far,
                 "the figure above, by requests of 64 bytes, as many at once, from the lender's root", 2)
    log = "a published log of sisci-perf"
    yield number("processor's reads: rate", log, 9, " MB/s", 16 / 1.78, "its 1.78 us for a read, 16 bytes a load", 1)
    yield number("ping-pong of two processors", log, 2.16, " us", 1.78, "a read crosses both ways, too", 2)
    lane16 = 16 * 8 * 128 / 130 / 8  # GB/s
    yield number("processor's writes", log, 7.7, " GB/s", lane16 * 64 / 88, "x16 of generation 3, 64 bytes a packet",
                 1)
    yield number("DMA writes", log, 10.4, " GB/s", lane16 * 256 / 280, "the same, 256 bytes a packet", 1)
    yield number("DMA reads", log, 5.0, " GB/s", m.rate("read", LARGE, cable, "gpu0", "borrower"),
                 "as of the device above", 1)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--tool", required=True, metavar="SMARTIO", help="the smartio command")
    table = list(rows(Model(p.parse_args().tool)))
    print("| what | published in | published | modelled | fits | from |\n|---|---|---|---|---|---|")
    for row in table:
        print("| " + " | ".join(row[:6]) + " |")
    numbers, said = ([r[4] == "yes" for r in table if r[6] == is_number] for is_number in (True, False))
    print(f"\nOf {len(numbers)} figures {sum(numbers)} fit within {NEAR:.0%}; of {len(said)} statements {sum(said)}.")


if __name__ == "__main__":
    main()
