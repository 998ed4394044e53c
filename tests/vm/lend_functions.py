#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Device Lending of one card to several: virtual functions of A's igb, which stays A's, with igbvf of B and of C.

usage: lend_functions.py BUILD MACHINE [--console] [--soak]

Three machines as in trio.py, without IOMMUs: with one in B the card's read of B's memory and B's of the card's registers may
wait for each other, and then one of them gets a wrong value (docs/virtual-ntb.md): a stream was seen to have ones in it. The
card hands what one function sends to another on itself; its own cable leads to a card that stays A's, as in lend_card.py.
Both functions are lent to B at once, too.
"""
import os
import sys

import cluster
import lend
import lend_card
import pair
import trio
from lend import SHADOW
from machine import Failed

FUNCTION = {"b": "0000:01:10.0", "c": "0000:01:10.2"}
SECOND = "8001:00:00.0"  # the second shadow of a machine
ADDRESS = {"a": lend_card.FAR, "b": "10.1.0.2", "c": "10.1.0.3"}
STREAM = 256 << 10
SECONDS = 10  # of iperf3, in `make soak`


def borrowers(p):
    return (("b", p.b), ("c", p.c))


def device(host):
    return f"a/{FUNCTION[host]}"


def start(p):
    if p.iommu != "none":
        raise Failed("a machine without an IOMMU is right")
    p.windowed = False
    trio.start(p)
    p.both("mkdir -p /tmp/www")
    for _, m in borrowers(p):
        m.run(f"load smartio_lend; {p.kind.load('igbvf')}")
    p.a.run(f"ip address add {ADDRESS['a']}/24 dev $(card_with 06); ip link set $(card_with 06) up; {p.kind.load('igb')}; "
            "until_ok has_card 05; ip link set $(card_with 05) up; until_ok carries $(card_with 05); "
            f"echo {len(FUNCTION)} >/sys/bus/pci/devices/{lend_card.CARD}/sriov_numvfs")
    p.a.run("; ".join(f"smartio lend {place}" for place in FUNCTION.values()))
    for m in p.machines():
        m.run("; ".join(f"until_ok has_device {device(host)}" for host in FUNCTION))
    p.both("remember")
    p.step("two virtual functions are known on all three")


def take(p, host, m, shadow=SHADOW):
    m.run(f"smartio borrow {device(host)} {lend.words(p)}; until_ok card_of {shadow}")


def set_up(m, host, shadow=SHADOW):
    m.run(f"ip address add {ADDRESS[host]}/24 dev $(card_of {shadow}); ip link set $(card_of {shadow}) up; "
          f"until_ok carries $(card_of {shadow})")


def borrow(p):
    for host, m in borrowers(p):
        take(p, host, m)
        set_up(m, host)
    p.step("each of the two others has a function, and igbvf with it")


def check_hidden(p):
    """A function by itself: nothing leads to the card, nor to its other functions."""
    for host, m in borrowers(p):
        m.run(f"same driver $(basename $(readlink /sys/bus/pci/devices/{SHADOW}/driver)) igbvf; "
              f"for name in sriov_numvfs sriov_totalvfs physfn virtfn0; do test ! -e /sys/bus/pci/devices/{SHADOW}/$name; done; "
              f"same functions $(ls /sys/bus/pci/devices | grep -c '^8') 1")
        other = "c" if host == "b" else "b"
        m.run(f"refused '' smartio borrow {device(other)} {lend.words(p)}")
    p.step("neither shows SR-IOV, and neither gets the other's")


def stream(p, sender, receiver):
    """Random bytes over TCP, which arrive as they were sent."""
    s, r = getattr(p, sender), getattr(p, receiver)
    sent = s.run(f"head -c {STREAM} /dev/urandom >/tmp/www/stream; httpd -p {ADDRESS[sender]}:80 -h /tmp/www; sha256sum </tmp/www/stream")
    got = r.run(f"wget -q -O /tmp/stream http://{ADDRESS[sender]}/stream; sha256sum </tmp/stream")
    if sent != got:
        raise Failed(f"{sent} was sent by {sender}, {got} received by {receiver}")
    p.step(f"{STREAM >> 10} KiB went from {sender} to {receiver}")


def check_streams(p):
    stream(p, "b", "c")
    stream(p, "c", "b")
    stream(p, "a", "b")


def iperf(p, server, client):
    s = getattr(p, server)
    s.start(f"iperf3 -s -1 -B {ADDRESS[server]} >/tmp/iperf.{server}")
    said = getattr(p, client).run(f"until_ok iperf3 -c {ADDRESS[server]} -t {SECONDS} -f m >/tmp/iperf 2>&1; grep receiver /tmp/iperf")
    s.wait()
    p.step(f"iperf3, {client} to {server}, in emulated machines: {said.strip()}")


def check_iperf(p):
    if p.soak:
        for server, client in (("b", "c"), ("c", "b"), ("a", "b")):
            iperf(p, server, client)


def check_death(p):
    """Who holds B's function dies under traffic; C's goes on."""
    p.c.start(f"ping -c 8 -w 60 {ADDRESS['a']} | tail -n 2")
    p.b.run(f"kill -9 $(holder); until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok as_remembered")
    said = p.c.wait()
    if "8 packets received" not in said:
        raise Failed(f"c lost packets when b's function went: {said}")
    p.step("b's holder was killed; c went on")
    take(p, "b", p.b)
    set_up(p.b, "b")
    p.b.run(f"ping -c 3 {ADDRESS['c']} >/dev/null")
    p.step("b has it again, and reaches c")


def check_return(p):
    for host, m in borrowers(p):
        m.run(f"smartio return {device(host)}; test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("both were returned, and nothing is left of them")


def check_both(p):
    """B has both at once; that they do not find each other within its own kernel, each has a network of its own."""
    for host, shadow in (("b", SHADOW), ("c", SECOND)):
        take(p, host, p.b, shadow)
    set_up(p.b, "b")
    p.b.run(f"(unshare -n sleep 100000) & until_ok pidof sleep; card=$(card_of {SECOND}); ip link set $card netns $(pidof sleep); "
            f"nsenter -n -t $(pidof sleep) sh -c \"ip address add {ADDRESS['c']}/24 dev $card; ip link set $card up\"")
    p.b.run(f"until_ok ping -c 1 -w 5 {ADDRESS['c']} >/dev/null; ping -c 5 {ADDRESS['c']} | tail -n 2; kill $(pidof sleep)")
    p.step("b has both, and each reaches the other")
    p.b.run("; ".join(f"smartio return {device(host)}" for host in FUNCTION) + "; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("both were returned by b, and nothing is left of them")


class Functions(lend_card.Card):
    name = "lend_functions"
    doc = __doc__
    # What a lends reaches all memory of both others.
    topology = trio.TOPOLOGY.replace("64M", "1G")
    file = trio.FILE
    hosts = trio.HOSTS
    options = ()
    checks = (start, borrow, check_hidden, check_streams, check_iperf, check_death, check_return, check_both)

    def is_igb(self):
        return True

    def network(self, host, folder):
        return trio.Trio.network(self, host, folder)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        if "--soak" in self.given:
            image.add_program("/usr/bin/iperf3")


if __name__ == "__main__":
    sys.exit(pair.main(Functions()))
