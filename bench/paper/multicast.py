# SPDX-License-Identifier: BSD-2-Clause
"""One Identify of a drive that 59 hosts receive (paper, section 7.4.2): counted, against one for each of them.

The cluster is the paper's largest, 60 hosts under seven switches (examples/topologies/sixty-hosts.yaml), each member
of the group with memory of its own. Packets are counted where they leave the drive and where they enter a host.
"""
import os
import subprocess
import sys

from parts import BENCH, COUNTED, Failed, bars, table

sys.path.insert(0, os.path.join(BENCH, "base"))
from cluster_base import Cluster  # noqa: E402

SUBS, OF_EACH, LENDER, DRIVER = 6, 10, "h1", "h25"


def topology():
    text = ["cluster: sixty", "multicast: exact", "switches:", "  - { name: top, ports: 24, lanes: 4 }"]
    text += [f"  - {{ name: sub{i}, ports: 24, lanes: 4 }}" for i in range(1, SUBS + 1)]
    text += ["links:"] + [f"  - {{ from: sub{i}, to: top, width: 16 }}" for i in range(1, SUBS + 1)] + ["hosts:"]
    for i in range(SUBS * OF_EACH):
        device = ", devices: { nvme0: { type: nvme, size: 16M } }" if i == 0 else ""
        text.append(f"  h{i + 1}: {{ ram: 16M, adapters: [{{ to: sub{i // OF_EACH + 1} }}]{device} }}")
    return "\n".join(text) + "\n"


def start(cluster, host, *args):
    child = cluster.start(host, os.path.join(cluster.build, "bench", "paper", "bench-multicast"), *args,
                          stdin=subprocess.PIPE)
    return child


def ready(child):
    if child.stdout.readline() != "ready\n":
        raise AssertionError(f"{child.what}: {child.communicate()[1].strip()}")


def ask(child, what):
    child.stdin.write(what + "\n")
    child.stdin.flush()


def once(cluster, driver, members, what):
    """Packets that leave the drive, and that enter hosts; microseconds until the drive says that it is done."""
    before = cluster.stats()
    for m in members:
        ask(m, what)
    ask(driver, what)
    ns = int(driver.stdout.readline())
    for m in members:
        if m.stdout.readline() != "seen\n":
            raise AssertionError(f"{m.what}: {m.communicate()[1].strip()}")
    after = cluster.stats()
    sent = after["devices"]["nvme0"]["wr_tlp"] - before["devices"]["nvme0"]["wr_tlp"]
    entered = [after["adapters"][a]["wr_tlp"] - before["adapters"][a]["wr_tlp"] for a in before["adapters"]
               if not a.startswith(LENDER + ".")]
    out = after["adapters"][LENDER + ".0"]["wr_tlp"] - before["adapters"][LENDER + ".0"]["wr_tlp"]
    return sent, out, sum(entered), sum(1 for n in entered if n), ns / 1000


def multicast(c):
    """One command to the group, and one to each member."""
    hosts = [f"h{i + 1}" for i in range(SUBS * OF_EACH) if f"h{i + 1}" not in (LENDER, DRIVER)]
    rounds, found = c.pick(1, 1, 5), {"group": [], "each": []}
    try:
        with Cluster(c.build, topology()) as cluster:
            members = [start(cluster, h, "listen") for h in hosts]
            for m in members:
                ready(m)
            driver = start(cluster, DRIVER, "drive", "nvme0", *(str(4 * int(h[1:])) for h in hosts))
            ready(driver)
            for _ in range(rounds):
                for what, rows in found.items():
                    rows.append(once(cluster, driver, members, what))
            for child in [driver, *members]:
                child.stdin.close()
                child.stdin = None
                cluster.finish(child)
    except (AssertionError, ValueError, OSError) as e:
        raise Failed(str(e)) from e
    for what, rows in found.items():
        if len({r[:4] for r in rows}) != 1:
            raise Failed(f"{what}: counts differ from round to round: {rows}")
    c.csv("multicast", ["to", "round", "from_drive", "out_of_lender", "into_hosts", "hosts", "us"],
          ([what, i + 1, *r] for what, rows in found.items() for i, r in enumerate(rows)))
    names = {"group": "one, to the group", "each": f"{len(hosts) + 1}, one to each"}
    rows = [[names[what], *map(str, r[0][:4]), f"{sorted(x[4] for x in r)[len(r) // 2]:.0f}"] for what, r in
            found.items()]
    head = ["commands", "packets of the drive", "out of its host", "into other hosts", "hosts", "us (measured)"]
    return ([table("Write packets of up to 256 bytes, completions included (counted)", head, rows)],
            [bars("One Identify to 59 hosts, and one for each", COUNTED, "packets",
                  {names[w]: [("sent by the drive", r[0][0]), ("out of its host", r[0][1]),
                              ("into other hosts", r[0][2])] for w, r in found.items()})])
