#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines of a cluster in which something dies at random, again and again: nothing may be left of it.

usage: deaths.py BUILD MACHINE [--deaths=N] [--seed=N] [--only=WHAT] [--console] [--soak]

As cluster.py. Clients of both machines do I/O on A's drive, and each writes to memory of the other. What dies is drawn
from a deck with one card for each thing that can: a program, also as it starts, the manager, a smartiod, the cable, a
machine; when it is used up it is shuffled again. The instant is random, too. After each death whoever has no part in it
goes on, whoever has is told, all is started again and works; then all programs end, and both smartiods, both kernels
and their adapters hold what they held before. 10 deaths, with --soak 1,000. The seed is printed. --only=pull_cable, and
so on: nothing else dies.
"""
import base64
import os
import random
import sys

import cluster
import pair
from cluster import DRIVE, NODE, PLACE, SEGMENT
from machine import Failed

DEATHS = {False: 10, True: 1000}  # in soak or not
LATEST_US = 300000  # a death comes so long after the last thing that was awaited, at most
OTHER = {"a": "b", "b": "a"}
# What runs, in the order in which it is started: on which machine, what.
PROGRAMS = {
    "export-a": ("a", f"sharer export {SEGMENT}"),
    "export-b": ("b", f"sharer export {SEGMENT}"),
    "import-a": ("a", f"sharer import {NODE['b']} {SEGMENT}"),
    "import-b": ("b", f"sharer import {NODE['a']} {SEGMENT}"),
    "io-a": ("a", f"verify {DRIVE} 0 64 seldom"),
    "io-b": ("b", f"verify {DRIVE} 4096 64"),
}
CLIENTS = ("io-a", "io-b")
IMPORTER = {"export-a": "import-b", "export-b": "import-a"}


def on(p, program):
    return getattr(p, PROGRAMS[program][0])


def of(host):
    return {name for name, (where, _) in PROGRAMS.items() if where == host}


def begin(p, names):
    for name in (n for n in PROGRAMS if n in names):
        on(p, name).run(f"begin {name} {PROGRAMS[name][1]}; runs {name}")


def finish(p):
    """An exporter ends when nobody is connected any more."""
    for name in reversed(PROGRAMS):
        on(p, name).run(f"finish {name}")
    p.a.run("stop_manager")


def instant(p):
    return f"usleep {p.random.randrange(LATEST_US)}"


def told(p, names):
    for name in sorted(names):
        print(f"  {name}: {on(p, name).run(f'was_told {name}')}")


class Death:
    """What becomes of the programs."""

    def __init__(self, dead=(), is_told=(), may_be_told=()):
        self.dead, self.told, self.may = set(dead), set(is_told), set(may_be_told)

    def settle(self, p):
        """Everybody is as is right for him; then all run."""
        told(p, self.told)
        for name in sorted(self.may):
            if on(p, name).run(f"has_ended_itself {name} && echo yes || echo no") == "yes":
                told(p, {name})
                self.told.add(name)
        for name in PROGRAMS:
            if name not in self.dead | self.told:
                on(p, name).run(f"goes_on {name}")
        begin(p, self.dead | self.told)


# ---- what can die: each does it, undoes it, and returns who has a part in it ----

def kill_program(p, name):
    on(p, name).run(f"{instant(p)}; murder {name}")
    return Death({name}, {IMPORTER[name]} if name in IMPORTER else ())


def kill_starting_program(p, name):
    on(p, name).run(f"finish {name}; begin {name} {PROGRAMS[name][1]}; {instant(p)}; murder {name}")
    return Death({name})


def kill_manager(p):
    """Its clients go on until the next one resets the drive."""
    p.a.run(f"{instant(p)}; kill_manager")
    for name in CLIENTS:
        on(p, name).run(f"goes_on {name}")
    p.a.run(f"start_manager {DRIVE}")
    return Death(is_told=CLIENTS)


def kill_starting_manager(p):
    p.a.run(f"kill_manager; begin_manager {DRIVE}; {instant(p)}; kill_manager; start_manager {DRIVE}")
    return Death(is_told=CLIENTS)


def kill_daemon(p, host):
    m, peer = getattr(p, host), getattr(p, OTHER[host])
    for machine, other in ((m, OTHER[host]), (peer, host)):
        machine.run(f"meetings {other}")
    m.run(f"{instant(p)}; kill_daemon; {instant(p)}; start_daemon {host}; until_ok met {OTHER[host]}")
    peer.run(f"until_ok met {host}")
    return Death()  # nobody notices


def pull_cable(p, host):
    p.a.run(instant(p))
    cluster.smartio(p, "fault", "link", host, "down")
    told(p, {"io-b"})
    cluster.smartio(p, "fault", "link", host, "up")
    p.b.run(f"until_ok has_device {DRIVE}")
    return Death({"io-b"}, may_be_told=("import-a", "import-b"))


def shake_cable(p, host):
    """It is out for too short a time for some to notice."""
    p.a.run(instant(p))
    for _ in range(p.random.randrange(1, 4)):
        cluster.smartio(p, "fault", "link", host, "down")
        cluster.smartio(p, "fault", "link", host, "up")
    p.b.run(f"until_ok has_device {DRIVE}")
    return Death(may_be_told=("io-b", "import-a", "import-b"))


def kill_machine(p, host):
    m, peer = getattr(p, host), getattr(p, OTHER[host])
    peer.run(f"meetings {host}; {instant(p)}")
    m.kill()
    lost = {"a": {"io-b", "import-b"}, "b": {"import-a"}}[host]
    told(p, lost)
    start_machine(p, host)
    peer.run(f"until_ok met {host}")
    return Death(of(host) | lost)


def start_machine(p, host):
    (p.restart_a if host == "a" else p.restart_b)()
    m = getattr(p, host)
    m.run(f"{p.kind.load_adapter(host)}; load e1000e; start_host {host} 10.0.0.{NODE[host] // 4}; "
          f"until_ok said '{OTHER[host]} is up'")
    if host == "a":
        m.run(f"smartio device add {PLACE}; start_manager {DRIVE}")
    p.b.run(f"until_ok has_device {DRIVE}")


DECK = (*((kill_program, name) for name in PROGRAMS),
        *((kill_starting_program, name) for name in PROGRAMS if name not in IMPORTER),
        (kill_manager,), (kill_starting_manager,),
        *((kill, host) for kill in (kill_daemon, pull_cable, shake_cable, kill_machine) for host in OTHER))


# ---- what is left ----

def audit(p):
    return p.both("smartio doctor --audit --within 60")


def start_all(p):
    p.a.run(f"start_manager {DRIVE}")
    p.b.run(f"until_ok has_device {DRIVE}")
    begin(p, PROGRAMS)


def check_rest(p, before):
    """All programs end, and nothing is left."""
    finish(p)
    for m, text in zip(p.machines(), before):
        m.start(f"audit_as {base64.b64encode(text.encode() + bytes([10])).decode()}")
    for m in p.machines():
        m.wait()


def begin_all(p):
    seed = p.kind.number("seed", random.randrange(1 << 32))
    p.random = random.Random(seed)
    print(f"--seed={seed}", flush=True)
    start_all(p)
    finish(p)  # what is made once is there
    p.before = audit(p)
    start_all(p)
    p.step("all programs run")


def check_deaths(p):
    deaths, deck = p.kind.number("deaths", DEATHS[p.soak]), []
    for n in range(deaths):
        deck = deck or p.random.sample(p.kind.deck, len(p.kind.deck))
        what, *of_what = deck.pop()
        p.last = f"death {n + 1}: {what.__name__} {' '.join(of_what)}"
        print(p.last, flush=True)
        what(p, *of_what).settle(p)
        check_rest(p, p.before)
        start_all(p)
        p.step(f"  all of {n + 1} deaths is gone")


class Deaths(cluster.Cluster):
    name = "deaths"
    doc = __doc__
    checks = (cluster.start, cluster.give_drive, begin_all, check_deaths)
    tell = "tail -n 200 /tmp/smartiod.log; head -n 20 /tmp/p.*.err /tmp/manager.err || :; smartio doctor --audit"

    def __init__(self, numbers, deck):
        self.numbers, self.deck = numbers, deck

    def number(self, name, otherwise):
        return self.numbers.get(name, otherwise)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        image.add_file("/cluster-lib.sh", os.path.join(pair.HERE, "cluster-lib.sh"))
        image.add_file("/test-lib.sh", os.path.join(pair.HERE, "deaths-lib.sh"))


def take_option(name):
    """Out of the command line; None: it is not there."""
    value = None
    for word in [w for w in sys.argv if w.startswith(f"--{name}=")]:
        sys.argv.remove(word)
        value = word.partition("=")[2]
    return value


def main():
    numbers = {name: take_option(name) for name in ("deaths", "seed")}
    only = take_option("only")
    deck = [card for card in DECK if only in (None, card[0].__name__)]
    try:
        numbers = {name: int(n) for name, n in numbers.items() if n is not None}
    except ValueError as e:
        sys.exit(f"--deaths and --seed want a number: {e}")
    if not deck:
        sys.exit(f"--only={only}: one of {', '.join(sorted({card[0].__name__ for card in DECK}))} is right")
    return pair.main(Deaths(numbers, deck))


if __name__ == "__main__":
    sys.exit(main())
