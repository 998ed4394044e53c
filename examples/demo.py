#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The main job, shown: five hosts, one NVMe drive, three clients that share it.

usage: demo.py --build DIR

Brings up the cluster of examples/demo.yaml in a folder of its own, runs the drive's manager on one
host and clients on three others, and takes everything down again, whatever happens.
"""
import argparse
import hashlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench", "nvme"))
import machine  # noqa: E402
from bench import choose_cpus  # noqa: E402
from machine import DISK, Worker, measure  # noqa: E402

CLIENTS = ["client1", "client2", "client3"]
RANGE = 128 << 20  # bytes of the drive that each client owns
ROUNDS = 7
WINDOW = 0.2  # seconds


def say(text):
    print(text, flush=True)


class Step:
    """A line that says what is done, then how long it took."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        print(f"  {self.text} ... ", end="", flush=True)
        self.start = time.monotonic()
        self.note = "done"
        return self

    def __exit__(self, kind, value, trace):
        say("FAILED" if kind else f"{self.note} ({time.monotonic() - self.start:.1f} s)")


class Failed(Exception):
    pass


class Cluster:
    def __init__(self, build):
        self.bin = {
            "smartio": os.path.join(build, "tools", "smartio"),
            "nvme": os.path.join(build, "drivers", "nvme-user", "smartio-nvme"),
            "worker": os.path.join(build, "bench", "nvme", "bench-nvme-worker"),
        }
        for path in self.bin.values():
            if not os.access(path, os.X_OK):
                raise Failed(f"{path} is not built")
        self.dir = tempfile.mkdtemp(prefix="sio-demo-")
        self.state = os.path.join(self.dir, "state")
        self.children = []

    def smartio(self, *args, check=True):
        done = subprocess.run([self.bin["smartio"], "--state", self.state, *args],
                              capture_output=True, text=True)
        if check and done.returncode != 0:
            raise Failed(f"smartio {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def on(self, node, *command):
        """The command line of a program on a host; it dies with it."""
        return [self.bin["smartio"], "--state", self.state, "run", "-n", node, "--", *command]

    def start(self, node, *args, **more):
        child = subprocess.Popen(self.on(node, self.bin["nvme"], *args),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        child.what = f"{node}: smartio-nvme {' '.join(args)}"
        self.children.append(child)
        return child

    def finish(self, child):
        out, err = child.communicate()
        self.children.remove(child)
        if child.returncode != 0:
            raise Failed(f"{child.what}: exit {child.returncode}: {err.strip()}")
        return out

    def run(self, node, *args):
        return self.finish(self.start(node, *args))

    def counters(self):
        """What the fabric counted at the drive's port."""
        for device in json.loads(self.smartio("stats", "--json"))["data"]["devices"]:
            if device["name"] == "nvme0":
                return {k: int(v, 16) for k, v in device["counters"].items()}
        raise Failed("smartio stats does not know nvme0")

    def down(self):
        for child in self.children:
            child.send_signal(signal.SIGTERM)
        for child in self.children:
            try:
                child.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
        if os.path.isdir(self.state):
            self.smartio("cluster", "down", check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for chunk in iter(lambda: f.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def real_files():
    """Three different files of this machine, 20 MB or more each: the compiler's own binaries first."""
    found = []
    names = [subprocess.run(["gcc", f"-print-prog-name={n}"], capture_output=True,
                            text=True).stdout.strip() for n in ("cc1", "cc1plus", "lto1")]
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib", "/usr/bin"):
        if os.path.isdir(folder):
            names += [os.path.join(folder, n) for n in sorted(os.listdir(folder))]
    for name in names:
        real = os.path.realpath(name)
        if os.path.isfile(real) and os.access(real, os.R_OK) and real not in found:
            if 20e6 <= os.path.getsize(real) <= RANGE:
                found.append(real)
        if len(found) == 3:
            return found
    raise Failed("this machine has no three files of 20 MB or more")


def copy_files(c, files):
    with Step("three clients copy a file each to the drive, all at once") as step:
        start = time.monotonic()
        jobs = [c.start(n, "copy-in", "nvme0", f, "--offset", str(i * RANGE))
                for i, (n, f) in enumerate(zip(CLIENTS, files))]
        for job in jobs:
            c.finish(job)
        total = sum(os.path.getsize(f) for f in files)
        step.note = f"{total / 1e6:.0f} MB, {total / 1e6 / (time.monotonic() - start):.0f} MB/s"
    with Step("each reads back another one's file") as step:
        jobs = []
        for i, node in enumerate(CLIENTS):
            j = (i + 1) % len(CLIENTS)
            out = os.path.join(c.dir, f"out{j}")
            jobs.append(c.start(node, "copy-out", "nvme0", out, "--offset", str(j * RANGE),
                                "--length", str(os.path.getsize(files[j]))))
        for job in jobs:
            c.finish(job)
    for i, name in enumerate(files):
        want, got = sha256(name), sha256(os.path.join(c.dir, f"out{i}"))
        os.unlink(os.path.join(c.dir, f"out{i}"))
        say(f"    {got[:16]}  {'=' if got == want else '!='}  {name}")
        if got != want:
            raise Failed(f"{name}: SHA-256 differs")


def client_pid(pid):
    """The smartio-nvme below `smartio run`."""
    while True:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            children = f.read().split()
        if not children:
            return pid
        pid = int(children[0])


def kill_one(c):
    with Step("one client is killed in the middle of I/O, two go on") as step:
        victim = c.start("client1", "bench", "nvme0", "--seconds", "30", "--depth", "16",
                         "--size", "4K", "--progress")
        others = [c.start(n, "bench", "nvme0", "--seconds", "2", "--depth", "16", "--size", "4K",
                          "--offset", str(i * RANGE), "--length", str(RANGE), "--json")
                  for i, n in enumerate(CLIENTS) if i > 0]
        victim.stderr.readline()  # I/O is running
        os.kill(client_pid(victim.pid), signal.SIGKILL)
        victim.communicate()
        c.children.remove(victim)
        results = [json.loads(c.finish(o))["data"] for o in others]
        step.note = "no error: " + ", ".join(f"{r['completed']} I/Os" for r in results)
    with Step("its queues are deleted, then its windows, then its memory"):
        deadline = time.monotonic() + 10
        while any(s["quarantined"] for s in
                  json.loads(c.smartio("segment", "list", "--json"))["data"]["segments"]):
            if time.monotonic() > deadline:
                raise Failed("something stays in quarantine")
            time.sleep(0.05)


def open_workers(c, nodes):
    """A client of bench/nvme on each."""
    return {n: Worker(c.on(n, c.bin["worker"], "client", "nvme0"), f"client on {n}") for n in nodes}


def latency(c):
    """
    Local and remote in turns, as bench/nvme measures: its client, pinned, in windows, on the same
    data; the transactions are counted by the fabric.
    """
    nodes = {"lender": "on the lender", "client1": "across the switch"}
    results = {n: [] for n in nodes}
    counted = {n: {"ios": 0} for n in nodes}
    cpus = choose_cpus(None)
    with Step(f"4 KiB random reads, depth 1, {ROUNDS} rounds of {WINDOW:g} s each, in turns"):
        with open(os.path.join(c.state, "emu.pid"), encoding="ascii") as f:
            emu = int(f.read())
        workers = open_workers(c, nodes)
        try:
            workers["lender"].ask("fill", DISK)
            for _ in range(ROUNDS):
                for node, worker in workers.items():
                    worker.ask("open", 1, 4096)
                    before = c.counters()
                    r = measure([worker], emu, 1, 4096, cpus, WINDOW, DISK)
                    after = c.counters()
                    results[node].append(r)
                    counted[node]["ios"] += r.answers[0]["submitted"]
                    for name, value in after.items():
                        counted[node][name] = counted[node].get(name, 0) + value - before[name]
        finally:
            for worker in workers.values():
                worker.end()
    report(nodes, results, counted, cpus)


def report(nodes, results, counted, cpus):
    # On a busy machine a window may pass in which the client or the drive did not run at all.
    rounds = [pair for pair in zip(results["lender"], results["client1"]) if all(r.buckets for r in pair)]
    if not rounds:
        say("    nothing was measured: other programs have these processors for themselves")
        return
    say("    measured, of our software (there is no PCIe in it): median of the rounds, and their range;")
    say(f"    the client on processor {cpus[0]}, the drive on {cpus[1]}")
    say("    client                 p50 (range), us            p99 (range), us")
    for where, of_node in zip(nodes.values(), zip(*rounds)):
        cells = []
        for share in (0.5, 0.99):
            values = sorted(r.percentile(share) / 1e3 for r in of_node)
            cells.append(f"{statistics.median(values):6.2f} ({values[0]:.2f} to {values[-1]:.2f})")
        say(f"    {where:<18} {cells[0]:<26} {cells[1]}")
    ratios = sorted(r.percentile(0.5) / l.percentile(0.5) for l, r in rounds)
    say(f"    across the switch / on the lender, p50 round by round: {statistics.median(ratios):.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f})")
    say("    counted at the drive's port, per I/O, by PCIe's rules")
    say("    client             read requests  completions  writes   bytes written")
    for node, where in nodes.items():
        f = counted[node]
        n = f["ios"]
        say(f"    {where:<18} {f['rd_req'] / n:13.3f} {f['rd_cpl'] / n:12.3f} "
            f"{f['wr_tlp'] / n:7.3f} {f['wr_bytes'] / n:15.1f}")


def demo(c):
    start = time.monotonic()
    with Step("five hosts, an NTB each, a switch, one NVMe drive"):
        c.smartio("cluster", "up", os.path.join(HERE, "demo.yaml"))
    say("")
    say(c.smartio("topology").rstrip("\n"))
    say("")
    with Step("host 'manager' resets the lender's drive and serves clients"):
        manager = c.start("manager", "manager", "nvme0")
        if "ready" not in manager.stdout.readline():
            c.finish(manager)
            raise Failed("the manager ended")
    copy_files(c, real_files())
    kill_one(c)
    latency(c)
    with Step("audit: daemons, machine room and system agree"):
        c.smartio("doctor", "--audit")
    say(f"\nAll of it worked, in {time.monotonic() - start:.0f} s.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", required=True, metavar="DIR", help="the build folder")
    build = os.path.abspath(parser.parse_args().build)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cluster = None
    try:
        cluster = Cluster(build)
        demo(cluster)
    except (Failed, machine.Failed) as e:
        sys.exit(f"demo: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if cluster:
            cluster.down()


if __name__ == "__main__":
    main()
