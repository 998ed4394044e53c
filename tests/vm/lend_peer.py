#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Device Lending, peer-to-peer: a device that B has borrowed reads and writes BARs of other devices, by its own driver.

usage: lend_peer.py BUILD MACHINE [--third | --apart] [--a-alone] [--b-alone] [--console] [--soak]

As lend.py. A lends QEMU's edu device, which copies between its memory and what it reaches, and a drive with memory of its
own in a BAR; B has an edu of its own besides. Their drivers know dma_map_resource() and nothing of this. With --third the drive
is lent by a third machine; with --apart by one that only B has a cable to, so that the edu cannot reach it.
"""
import os
import sys

import cluster
import lend
import pair
import shim
import trio
from cluster import PLACE
from lend import SHADOW
from shell_machine import FIRST_SLOT

EDU, NEAR = "0000:01:00.0", "0000:00:0a.0"  # the lent one is behind a port, which can reset it
PORT_SLOT = 9
SECOND = "8001:00:00.0"  # the edu's shadow
FILES = f"/sys/bus/pci/devices/{SECOND}"
MEMORY = 2  # the BAR of the drive with its memory
OFFSET = 0x3000
NEIGHBOURS = {"a": "b", "b": "ac", "c": "b"}  # with --apart
LIES = ("within", "before", "behind", "odd", "around", "last")  # liar.c


def lender(p):
    """Of the drive."""
    return getattr(p, p.kind.drive_host)


def drive(p):
    return f"{p.kind.drive_host}/{PLACE}"


def start(p):
    p.windowed = p.iommu != "none" and p.kind.has_iommu("b")
    p.kind.start_hosts(p)
    p.b.run(f"load smartio_lend; {p.kind.load('nvme')}; load smartio_edu")
    p.a.run(f"smartio lend {EDU}")
    lender(p).run(f"smartio lend {PLACE}")
    for m in p.machines():
        m.run(f"until_ok has_device a/{EDU}; until_ok has_device {drive(p)}")
    p.both("remember")
    p.step("a drive and an edu device are known on all")


def borrow(p, peers="--peers"):
    p.b.run(f"smartio borrow {drive(p)} {lend.words(p)} {peers}; until_ok test -b /dev/nvme0n1; "
            f"smartio borrow a/{EDU} {lend.words(p)} {peers}; until_ok test -e {FILES}/map; "
            f"same driver $(basename $(readlink {FILES}/driver)) smartio_edu")
    p.step("both have their drivers on b")


def check_refused(p):
    borrow(p, peers="")
    p.b.run(f"refused '' map_bar {SECOND} {SHADOW} {MEMORY} 65536; logged 'borrowed without --peers'")
    give_back(p)
    p.step("without --peers nothing is mapped")


def give_back(p):
    p.b.run(f"smartio return a/{EDU}; smartio return {drive(p)}; until_ok as_remembered")
    for m in p.machines():
        m.run("until_ok as_remembered")


def words_there_and_back(p):
    """What the edu stores in the drive it finds there, and so does a processor of B, when the drive has no driver."""
    word = f"$(($(bar_of {SHADOW} {MEMORY}) + {OFFSET}"
    p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/unbind; "
            f"echo {OFFSET} 1badcafe >{FILES}/put; echo {OFFSET + 4} 600dbeef >{FILES}/put; "
            f"echo {OFFSET} >{FILES}/get; same word $(cat {FILES}/get) 1badcafe; "
            f"same word $(devmem {word} + 4)) 32) 0x600DBEEF; devmem {word} + 8)) 32 0x12345678; "
            f"echo {OFFSET + 8} >{FILES}/get; same word $(cat {FILES}/get) 12345678")
    p.step("the edu reads and writes the drive's memory")


def check_peers(p):
    borrow(p)
    p.b.run(f"raw_copy /dev/nvme0n1 24576 64; map_bar {SECOND} {SHADOW} {MEMORY} 65536; cat {FILES}/map >/tmp/first")
    words_there_and_back(p)
    p.b.run(f"echo 1 >{FILES}/unmap; map_bar {SECOND} {SHADOW} {MEMORY} 65536; same address $(cat {FILES}/map) $(cat /tmp/first); "
            f"refused '' map_bar {SECOND} {SHADOW} {MEMORY} {4 << 20}; logged 'ends behind'; "
            f"refused '' map_bar {SECOND} {SECOND} 0 4096; logged 'that its host has mapped'")


def check_end(p):
    """The drive is returned while the edu's driver has it mapped: from then on it is not reached any more."""
    p.b.run(f"map_bar {SECOND} {SHADOW} {MEMORY} 65536; echo {OFFSET} 11111111 >{FILES}/put; echo {OFFSET} >{FILES}/get; "
            f"same word $(cat {FILES}/get) 11111111; smartio return {drive(p)}")
    lender(p).run(f"until_ok same_borrowers {drive(p)} 0 0")
    if p.iommu != "none" and p.kind.has_iommu("a"):
        p.b.run(f"echo {OFFSET} 22222222 >{FILES}/put")
        p.step("the drive was returned, and the edu, whose driver still has it mapped, was told to write there")
    # Its memory outlives its resets.
    p.b.run(f"smartio borrow {drive(p)} {lend.words(p)} --peers; until_ok test -b /dev/nvme0n1; "
            f"map_bar {SECOND} {SHADOW} {MEMORY} 65536; echo {OFFSET} >{FILES}/get; same word $(cat {FILES}/get) 11111111; "
            f"echo {OFFSET} 33333333 >{FILES}/put; echo {OFFSET} >{FILES}/get; "
            f"same word $(cat {FILES}/get) 33333333; raw_copy /dev/nvme0n1 24576 64")
    p.step("it was borrowed again, is what it was, and is reached again")


def check_near(p):
    """A device of B's own: by the window, or with a reason not. The kernel lets nobody look at what a driver has."""
    p.b.run(f"echo {NEAR} >/sys/bus/pci/drivers/smartio_edu/unbind; echo 1 >/sys/bus/pci/devices/{NEAR}/enable")
    if p.windowed:
        p.b.run(f"map_bar {SECOND} {NEAR} 0 4096; echo 4 0000ffff >{FILES}/put; "
                f"same word $(devmem $(($(bar_of {NEAR} 0) + 4)) 32) 0xFFFF0000; echo 4 >{FILES}/get; "
                f"same word $(cat {FILES}/get) ffff0000; echo 1 >{FILES}/unmap")
        p.step("the edu reads and writes registers of b's own device")
    else:
        p.b.run(f"refused '' map_bar {SECOND} {NEAR} 0 4096; logged 'no IOMMU of this host'")
        p.step("b's own device is refused, for no IOMMU is there")


def check_killed(p):
    """Who holds the drive dies while it is mapped, which the edu outlives. A daemon's restart is not noticed."""
    p.b.run(f"map_bar {SECOND} {SHADOW} {MEMORY} 65536; kill -9 $(holder {drive(p)}); "
            f"until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; echo {OFFSET} 44444444 >{FILES}/put; test -e {FILES}/map")
    lender(p).run(f"until_ok same_borrowers {drive(p)} 0 0")
    p.step("the drive's holder was killed: the edu has its driver still")
    p.b.run(f"smartio borrow {drive(p)} {lend.words(p)} --peers; until_ok test -b /dev/nvme0n1; map_bar {SECOND} {SHADOW} {MEMORY} 65536")
    for m, host, other in ((p.a, "a", "b"), (p.b, "b", "a")):
        m.run(f"meetings {other}; kill_daemon; start_daemon {host}; until_ok met {other}")
        words_there_and_back(p)
        p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/bind; until_ok works /dev/nvme0n1")
        p.step(f"smartiod of {host} was killed and started again: the edu reaches the drive as before")


def check_return(p):
    give_back(p)
    p.b.run("! logged 'pages mapped'")
    p.step("both were returned, and nothing is left of them")


def start_daemon_again(p, preload):
    p.b.run("meetings a")
    p.a.run(f"meetings b; kill_daemon; export LD_PRELOAD={preload}; start_daemon a; unset LD_PRELOAD; until_ok met b")
    p.b.run("until_ok met a")


def check_liar(p):
    """The lender says of the other one's BARs that they are where the driver's own memory is, or nowhere: nobody believes it."""
    start_daemon_again(p, "/lib/libliar.so")
    p.b.run(f"smartio borrow {drive(p)} {lend.words(p)} --peers; until_ok test -b /dev/nvme0n1")
    for how in LIES:
        p.a.run(f"echo {how} >/tmp/lie; : >/tmp/lies")
        p.b.run(f"smartio borrow a/{EDU} {lend.words(p)} --peers; until_ok test -e {FILES}/map; said 'does not reach BAR'; "
                f"refused '' map_bar {SECOND} {SHADOW} {MEMORY} 65536; raw_copy /dev/nvme0n1 24576 64; smartio return a/{EDU}")
        print(p.a.run(f"rm /tmp/lie; test -s /tmp/lies; cat /tmp/lies; until_ok same_borrowers a/{EDU} 0 0"))
        p.step(f"a lender lied about a BAR's address ({how}): it is not mapped, and nothing else has changed")
    start_daemon_again(p, "")
    p.b.run(f"smartio borrow a/{EDU} {lend.words(p)} --peers; until_ok test -e {FILES}/map; "
            f"map_bar {SECOND} {SHADOW} {MEMORY} 65536; echo 1 >{FILES}/unmap")
    check_return(p)


class Peer(lend.Lend):
    name = "lend_peer"
    doc = __doc__
    topology = pair.TOPOLOGY.replace("64M", "1G")  # of A: all memory of B for each of two devices
    drive = lend.Lend.drive + ",cmb_size_mb=1"
    checks = (start, check_refused, check_peers, check_end, check_near, check_killed, check_return, check_liar)

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        image.add_file("/modules/smartio_edu.ko", shim.of_tests(kernel, build, "smartio_edu"))
        image.add_program(f"{build}/tests/vm/libliar.so", "/lib/libliar.so")

    def start_hosts(self, p):
        cluster.start(p)

    def qemu(self, host, folder):
        edu = "edu,dma_mask=0xffffffffffffffff"
        lent = ("-device", f"pcie-root-port,id=behind,chassis=1,slot=1,addr={PORT_SLOT:x}", "-device", f"{edu},bus=behind")
        return (*super().qemu(host, folder), *(lent if host == "a" else ("-device", f"{edu},addr={NEAR[8:10]}")))


class Third(Peer):
    options = ("--third",)
    topology = trio.TOPOLOGY.replace("64M", "1G")
    file = trio.FILE
    hosts = trio.HOSTS
    drive_host = "c"
    checks = Peer.checks[:-1]

    def start_hosts(self, p):
        trio.start(p)

    def network(self, host, folder):
        return trio.Trio.network(self, host, folder)


def start_apart(p):
    p.windowed = p.iommu != "none"
    p.load_adapters()
    for host in p.up:
        getattr(p, host).start(trio.start_host(host))
    for m in p.machines():
        m.wait()
    p.a.run(f"smartio lend {EDU}")
    lender(p).run(f"smartio lend {PLACE}")
    p.b.run(f"load smartio_lend; {p.kind.load('nvme')}; load smartio_edu; until_ok has_device a/{EDU}; until_ok has_device {drive(p)}")
    p.both("remember")
    p.step("a drive and an edu device are known on b, behind an adapter each")


def check_apart(p):
    """What is behind the other adapter is no device of B's own."""
    borrow(p)
    p.b.run(f"refused '' map_bar {SECOND} {SHADOW} {MEMORY} 65536; logged 'that its host has mapped'; raw_copy /dev/nvme0n1 24576 64")
    p.step("the drive's memory, behind the other adapter, is refused")


class Apart(Third):
    options = ("--apart",)
    topology = "cluster: chain\nhosts:\n" + "".join(
        f"  {host}: {{ kind: machine, adapters: [{', '.join(f'{{ to: {other}, window: 1G, entries: 1024 }}' for other in others)}] }}\n"
        for host, others in NEIGHBOURS.items())
    file = "cluster: three-kernels\nhosts:\n" + "".join(
        f"  {host}: {{ address: {trio.ADDRESS[host]}:7470, adapters: ["
        + ", ".join(f"{{ pci: 0000:00:{slot:02x}.0, to: {other} }}" for slot, other in enumerate(others, FIRST_SLOT))
        + "] }\n" for host, others in NEIGHBOURS.items()) + "access: { between_machines: open }\n"
    adapters = {host: len(others) for host, others in NEIGHBOURS.items()}
    checks = (start_apart, check_apart, check_return)


def kind():
    if "--apart" in sys.argv:
        return Apart()
    return Third() if "--third" in sys.argv else Peer()


if __name__ == "__main__":
    sys.exit(pair.main(kind()))
