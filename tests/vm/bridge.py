#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines with smartio.ko, joined by virtual NTBs: memory and interrupts of one, used by the other.

usage: bridge.py BUILD MACHINE [--console]

As ntb.py, whose machines they are.
"""
import os
import re
import sys

import pair
import shim
from machine import Failed


def node_of(m):
    return re.search(r"adapter 0 of node (\d+)", m.run("dmesg | grep 'of node'"))[1]


def load(p):
    p.load_adapters()
    p.nodes = {m: node_of(m) for m in (p.a, p.b)}
    p.step("smartio.ko has an adapter")


def last_line(text):
    return text.strip().splitlines()[-1]


def check_memory(p):
    for m, other in ((p.a, p.b), (p.b, p.a)):
        mem, *way = last_line(m.run(f"peer grant {p.nodes[other]}")).split()
        seen = last_line(other.run(f"peer map {p.nodes[m]} {' '.join(way)} 23"))
        if seen != "4711":
            raise Failed(f"{other.name} reads {seen} through its window, 4711 is right")
        word = last_line(m.run(f"peer word {mem}"))
        if word != "23":
            raise Failed(f"{m.name} has {word} in its memory, 23 is right")
    p.step("memory")


def check_lengths(p):
    """A length is the exporter's word: one that no window has must not become an open one."""
    _, bus, _, generation, token = last_line(p.a.run(f"peer grant {p.nodes[p.b]}")).split()
    for start, length in ((bus, 1 << 52), (0, 2**64 - 4096), (bus, 1 << 44)):
        said = p.b.run(f"! peer map {p.nodes[p.a]} {start} {length} {generation} {token} 1 2>&1")
        if "bytes wanted" not in said:
            raise Failed(f"a map of {length} bytes: {said}")
    p.step("lengths that no window has")


def check_interrupts(p):
    for m, other in ((p.a, p.b), (p.b, p.a)):
        m.start(f"peer irq {p.nodes[other]}")
        way = m.hear().split()[1:]
        other.run(f"peer trigger {p.nodes[m]} {' '.join(way)}")
        if last_line(m.wait()) != "told":
            raise Failed(f"{m.name} was not interrupted")
    p.step("interrupts")


def check_end(p):
    """The peer's machine is killed, and started again."""
    mem, *way = last_line(p.a.run(f"peer grant {p.nodes[p.b]}")).split()
    p.b.kill()
    p.restart_b()
    p.b.run(p.kind.load_adapter("b"))
    seen = last_line(p.b.run(f"peer map {p.nodes[p.a]} {' '.join(way)} 5"))
    if seen != "4711":
        raise Failed(f"it reads {seen} through its window, 4711 is right")
    p.step("a machine that was killed")


class Bridge(pair.Kind):
    name = "bridge"
    doc = __doc__
    checks = (load, check_memory, check_lengths, check_interrupts, check_end)

    def fill(self, image, kernel, build):
        image.add_file("/modules/smartio.ko", shim.module(kernel, build))
        image.add_program(os.path.join(build, "tests/vm/peer"))


if __name__ == "__main__":
    sys.exit(pair.main(Bridge()))
