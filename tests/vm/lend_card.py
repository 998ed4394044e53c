#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Device Lending of a network card: e1000e of one machine with the driver of the other.

usage: lend_card.py BUILD MACHINE [--igb] [--a-alone] [--b-alone] [--console] [--soak]

As lend.py. The card's cable leads back to its own machine, to a card that stays there: so the two kernels speak with
each other through a card that is one's and whose driver is the other's. With --igb it is an igb, which stays its machine's:
a virtual function of it is lent.
"""
import os
import sys

import cluster
import lend
import kernel as kernels
import pair
from lend import SHADOW
from machine import Failed

PORT_SLOT = 9
CARD = "0000:01:00.0"  # behind the port, which can reset it
VIRTUAL = "0000:01:10.0"
STREAM = 1 << 20
FAR, NEAR = "10.1.0.1", "10.1.0.2"


def start(p):
    p.windowed = p.iommu != "none" and p.kind.has_iommu("b")
    cluster.start(p)
    p.place = VIRTUAL if p.kind.is_igb() else CARD
    p.card = f"a/{p.place}"
    p.b.run("load smartio_lend")
    p.a.run(f"ip address add {FAR}/24 dev $(card_with 06); ip link set $(card_with 06) up")
    if p.kind.is_igb():
        p.b.run(p.kind.load("igbvf"))
        p.a.run(f"{p.kind.load('igb')}; until_ok has_card 05; ip link set $(card_with 05) up; until_ok carries $(card_with 05); "
                f"echo 1 >/sys/bus/pci/devices/{CARD}/sriov_numvfs; test -e /sys/bus/pci/devices/{VIRTUAL}")
        p.step("the card has a virtual function")
    p.a.run(f"smartio lend {p.place}")
    for m in (p.a, p.b):
        m.run(f"until_ok has_device {p.card}")
    p.both("remember")
    p.step("the card is known on both")


def borrow(p):
    p.b.run(f"smartio borrow {p.card} {lend.words(p)}; until_ok card_of {SHADOW}; ip address add {NEAR}/24 dev $(card_of {SHADOW}); "
            f"ip link set $(card_of {SHADOW}) up; until_ok carries $(card_of {SHADOW})")
    p.step(f"{p.kind.driver()} has the card of the other machine")


def check_vectors(p):
    """The driver gets the vectors that it wants, and they are not those of another mode."""
    p.b.run(f"same driver $(basename $(readlink /sys/bus/pci/devices/{SHADOW}/driver)) {p.kind.driver()}; "
            f"same vectors $(ls /sys/bus/pci/devices/{SHADOW}/msi_irqs | wc -l) 3; "
            f"same kind \"$(cat /sys/bus/pci/devices/{SHADOW}/msi_irqs/* | sort -u)\" msix")
    p.step("with three vectors of MSI-X")


def check_ping(p):
    print(p.b.run(f"ping -c 5 {FAR} | tail -n 2"))
    p.a.run(f"ping -c 5 {NEAR} >/dev/null")
    p.step("the two ping each other over it")


def stream(p, sender, receiver, address):
    sent = sender.run(f"mkdir -p /tmp/www; head -c {STREAM} /dev/urandom >/tmp/www/stream; httpd -p {address}:80 -h /tmp/www; "
                      "sha256sum </tmp/www/stream")
    received = receiver.run(f"wget -q -O /tmp/stream http://{address}/stream; sha256sum </tmp/stream")
    if sent != received:
        raise Failed(f"{sent} was sent, {received} received")
    p.step(f"{STREAM >> 10} KiB went from {sender.name} to {receiver.name}")


def check_streams(p):
    stream(p, p.b, p.a, NEAR)
    stream(p, p.a, p.b, FAR)


def check_daemons(p):
    """The daemons are killed and started again while the two ping each other, and no ping is lost."""
    p.b.run(f"dmesg | grep -c {SHADOW} >/tmp/said; start_pings {FAR}")
    for m, host, other in ((p.a, "a", "b"), (p.b, "b", "a")):
        m.run(f"meetings {other}; kill_daemon")
        p.b.run("pings_go_on")
        m.run(f"start_daemon {host}; until_ok met {other}")
        p.b.run(f"pings_go_on; same said $(dmesg | grep -c {SHADOW}) $(cat /tmp/said)")
        p.step(f"smartiod of {host} was killed and started again while the two pinged each other")
    p.b.run("end_pings")


def check_return(p):
    p.b.run(f"smartio return {p.card}; test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("it was returned, and nothing is left of it")
    p.a.run(f"smartio lend {p.place} --undo; {'' if p.kind.is_igb() else 'until_ok has_card 05; '}smartio lend {p.place}; "
            f"until_ok has_device {p.card}")
    p.b.run(f"until_ok has_device {p.card}")
    p.step("its own machine has had it, and lends it again")


def check_link(p):
    """The cable between the machines is pulled out while the card is up."""
    borrow(p)
    cluster.smartio(p, "fault", "link", "a", "down")
    p.b.run(f"until_ok test ! -e /sys/bus/pci/devices/{SHADOW}")
    p.step("the cable was pulled out: the driver has given up")
    cluster.smartio(p, "fault", "link", "a", "up")
    p.b.run(f"until_ok has_device {p.card}")
    borrow(p)
    check_ping(p)


class Card(lend.Lend):
    name = "lend_card"
    doc = __doc__
    checks = (start, borrow, check_vectors, check_ping, check_streams, check_daemons, check_return, check_link)

    options = ("--igb", *lend.Lend.options)

    def is_igb(self):
        return "--igb" in self.given

    def driver(self):
        return "igbvf" if self.is_igb() else "e1000e"

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        if not self.is_igb():
            return
        kernels.add_modules(kernel, r"/drivers/(net/ethernet/intel/igb(vf)?/[^/]+|i2c/(algos/i2c-algo-bit|i2c-core)|dca/dca)\.ko(\.xz)?$")
        for path in kernel.modules("igb", "igbvf"):
            image.add_file("/modules/" + os.path.basename(path), path)

    def qemu(self, host, folder):
        words = super().qemu(host, folder)
        if host != "a":
            return words
        for n, (own, other) in enumerate((("lent", "stays"), ("stays", "lent")), 5):
            words += ("-netdev", f"dgram,id={own},local.type=unix,local.path={folder}/{own},remote.type=unix,"
                      f"remote.path={folder}/{other}")
            if own == "lent":
                words += ("-device", f"pcie-root-port,id=behind,chassis=1,slot=1,addr={PORT_SLOT:x}")
            words += ("-device", f"{'igb' if own == 'lent' and self.is_igb() else 'e1000e'},netdev={own},mac=52:54:00:00:01:0{n},romfile="
                      + (",bus=behind" if own == "lent" else ""))
        return words


if __name__ == "__main__":
    sys.exit(pair.main(Card()))
