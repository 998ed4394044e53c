# SPDX-License-Identifier: BSD-2-Clause
"""A heavy workload: two accelerators and a drive train a small network, wherever they are (paper, section 7.2).

examples/training.c does it: the drive's data go straight to the accelerators, by commands that these build, and
weights from one to the other. The losses have to be the same to the last bit. The program measures its epochs; what
crosses each host's link is counted.
"""
import os
import re
import statistics
import sys

from parts import BENCH, ON_MODEL, Failed, bars, table

sys.path.insert(0, os.path.join(BENCH, "base"))
from cluster_base import Cluster  # noqa: E402

TOPOLOGY = """\
cluster: training
switches: [sw0]
hosts:
  driver:
    devices: {nvme0: {type: nvme, size: 16M}, own0: {type: accelerator}, own1: {type: accelerator}}
  lender:
    devices: {nvme1: {type: nvme, size: 16M}, lent0: {type: accelerator}, lent1: {type: accelerator}}
  other: {devices: {lent2: {type: accelerator}}}
"""
PLACES = {"own host": ("nvme0", "own0", "own1"), "one lender": ("nvme1", "lent0", "lent1"),
          "two lenders": ("nvme1", "lent0", "lent2")}
EPOCHS = 12
LINKS = ("wr_bytes", "rd_bytes")


def crossed(cluster):
    """Bytes of data through each host's adapter, both ways."""
    found = cluster.stats()["adapters"]
    return {host: sum(found[host + ".0"][k] for k in LINKS) for host in ("driver", "lender", "other")}


def train(cluster, program, devices):
    """Lines of the program; milliseconds of an epoch, and of the shortest; bytes that crossed, by host."""
    before = crossed(cluster)
    text, said = cluster.both(cluster.start("driver", program, *devices, str(EPOCHS)))
    after = crossed(cluster)
    took = re.search(r"an epoch took ([\d.]+) ms, the shortest ([\d.]+) ms", said)
    if len(text.splitlines()) != EPOCHS or not took:
        raise Failed(f"training on {', '.join(devices)}: not {EPOCHS} epochs: {text}{said}")
    return text, tuple(map(float, took.groups())), {h: after[h] - before[h] for h in after}


def training(c):
    """Time of an epoch by place; equal losses."""
    program = os.path.join(c.build, "examples", "example-training")
    rounds = c.pick(3, 31, 61)
    times, bytes_of, losses = {p: [] for p in PLACES}, {}, {}
    try:
        with Cluster(c.build, TOPOLOGY) as cluster:
            cluster.manager("driver", "nvme0")
            cluster.manager("lender", "nvme1")
            for i in range(rounds):
                order = list(PLACES)
                for place in order[i % 3:] + order[:i % 3]:
                    text, took, bytes_of[place] = train(cluster, program, PLACES[place])
                    times[place].append(took)
                    losses.setdefault(place, set()).add(text)
    except AssertionError as e:
        raise Failed(str(e)) from e
    if len(set().union(*losses.values())) != 1:
        raise Failed("the losses differ from place to place, or from round to round")
    c.csv("training", ["place", "round", "mean_ms", "least_ms"],
          ([p, i + 1, *took] for p, v in times.items() for i, took in enumerate(v)))
    # Beside other work the mean is theirs: the least says what the three do.
    ratios = {p: c.ratio(f"an epoch on devices of {p} / own host", [s for _, s in v], [s for _, s in times["own host"]])
              for p, v in times.items() if p != "own host"}
    least = {p: min(short for _, short in v) for p, v in times.items()}
    mean = {p: statistics.median(m for m, _ in v) for p, v in times.items()}
    last = next(iter(losses["own host"])).splitlines()[-1].split("loss ")[1]
    rows = [[p, f"{least[p]:.2f}", *((str(ratios[p]), ratios[p].span()) if p in ratios else ("1", "")), f"{mean[p]:.2f}",
             *(f"{bytes_of[p][h] / 1024:.1f}" for h in ("driver", "lender", "other")), last] for p in PLACES]
    head = ["drive and accelerators of", "ms for an epoch, least", "of own host's", "25 % to 75 %", "mean", "KiB driver", "KiB lender", "KiB other",
            "loss of epoch 12 (bits of both halves)"]
    return ([table("Times measured; bytes through each host's link counted, of all 12 epochs and what leads there",
                   head, rows)],
            [bars("An epoch of two accelerators and a drive", ON_MODEL, "ms",
                  {"shortest": list(least.items()), "mean of a run": list(mean.items())})])
