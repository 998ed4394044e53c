#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""nbdkit's smartio plugin beside nbdkit's own memory plugin, by fio's nbd engine.

usage: bench.py [--build DIR] [--rounds N] [--seconds S] [--csv FILE]

A host of an emulated cluster serves a range of another host's drive, and the memory plugin serves as much memory. In each round
fio asks each of them for each kind of requests, over one connection, for S seconds (2); who comes first changes from round to
round, so that the ratios of a round hold on a busy machine, too.
"""
import argparse
import csv
import json
import os
import select
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "base"))
from cluster_base import Cluster  # noqa: E402
from spread import quartiles  # noqa: E402

SIZE = "64M"
TOPOLOGY = f"""cluster: nbd
switches: [sw0]
hosts:
  lender: {{ ram: 32M, devices: {{ nvme0: {{ type: nvme, size: {SIZE} }} }} }}
  manager: {{ ram: 32M }}
  client: {{ ram: 64M }}
"""
REQUESTS = {  # what, and fio's words for it
    "reads of 4 KiB, 1 in flight": ("randread", "4k", 1),
    "reads of 4 KiB, 32 in flight": ("randread", "4k", 32),
    "writes of 4 KiB, 32 in flight": ("randwrite", "4k", 32),
    "reads of 128 KiB, 8 in flight": ("randread", "128k", 8),
}


def serve(cluster, node, plugin, *parameters):
    """The URI of a server on a host, which answers when nbdkit has written its pid."""
    path = os.path.join(cluster.dir, os.path.basename(plugin))
    os.mkfifo(path + ".pid")
    # Open for writing, too: then there is no end of file before nbdkit opens it.
    pid = os.open(path + ".pid", os.O_RDWR)
    server = cluster.start(node, "nbdkit", "-f", "-U", path, "-P", path + ".pid", plugin, *parameters)
    end = os.pidfd_open(server.pid)
    try:
        if pid not in select.select([pid, end], [], [], 60)[0]:
            server.kill()
            raise AssertionError(f"{server.what} serves nothing: {server.communicate()[1].strip()}")
    finally:
        os.close(pid)
        os.close(end)
    return f"nbd+unix:///?socket={path}"


def rate(uri, kind, seconds):
    """Requests per second."""
    how, size, depth = REQUESTS[kind]
    done = subprocess.run(
        ["fio", "--name=one", "--ioengine=nbd", f"--uri={uri}", f"--rw={how}", f"--bs={size}", f"--iodepth={depth}",
         "--time_based", f"--runtime={round(seconds * 1000)}ms", f"--size={SIZE}", "--randrepeat=1", "--output-format=json"],
        capture_output=True, text=True, timeout=seconds + 120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"fio: {done.stderr.strip() or done.stdout.strip()}")
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    return job["read" if how == "randread" else "write"]["iops"]


def measure(cluster, plugin, rounds, seconds):
    """What each server does in each round: (kind, server) -> requests per second."""
    servers = {"smartio": serve(cluster, "client", plugin, "device=nvme0"),
               "memory": serve(cluster, "manager", "memory", SIZE)}
    found = {(kind, who): [] for kind in REQUESTS for who in servers}
    for n in range(rounds):
        for kind in REQUESTS:
            for who in sorted(servers, reverse=n % 2):
                found[kind, who].append(rate(servers[who], kind, seconds))
    return found


def show(found, path):
    rows = []
    for kind in REQUESTS:
        ratios = [a / b for a, b in zip(found[kind, "smartio"], found[kind, "memory"])]
        rows.append((kind, *(statistics.median(found[kind, who]) for who in ("smartio", "memory")),
                     statistics.median(ratios), *quartiles(ratios), min(ratios), max(ratios)))
    print(f"measured, {len(ratios)} rounds by turns, load of this machine {os.getloadavg()[0]:.0f}; requests per second, and the "
          "ratio of the smartio plugin to the memory plugin:\nmedian (25 % to 75 %; least, most)")
    for kind, ours, memory, ratio, low, high, least, most in rows:
        print(f"  {kind:30} {ours:8.0f} {memory:8.0f}   {ratio:.2f} ({low:.2f} to {high:.2f}; {least:.2f}, {most:.2f})")
    if path:
        with open(path, "w", newline="", encoding="utf-8") as f:
            csv.writer(f).writerows([("requests", "smartio", "memory", "ratio", "25 %", "75 %", "least", "most"), *rows])


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "build", "plain"), help="default: build/plain")
    p.add_argument("--rounds", type=int, default=7, help="default: 7")
    p.add_argument("--seconds", type=float, default=2, help="of each measurement; default: 2")
    p.add_argument("--csv", metavar="FILE")
    o = p.parse_args()
    for name, least in (("rounds", 1), ("seconds", .1)):
        if getattr(o, name) < least:
            p.error(f"--{name} {getattr(o, name)}: {least} or more is needed")
    o.plugin = os.path.join(os.path.abspath(o.build), "drivers", "nvme-nbd", "nbdkit-smartio-plugin.so")
    for program in ("fio", "nbdkit"):
        if not shutil.which(program):
            p.error(f"{program} is not installed")
    if not os.path.exists(o.plugin):
        p.error(f"{o.plugin} is not there: build it, with the package nbdkit-plugin-dev installed")
    return o


def main():
    o = options()
    try:
        with Cluster(os.path.abspath(o.build), TOPOLOGY) as cluster:
            cluster.manager()
            show(measure(cluster, o.plugin, o.rounds, o.seconds), o.csv)
    except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
        sys.exit(f"bench.py: {e}")


if __name__ == "__main__":
    main()
