#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines joined back to back by virtual NTBs: Linux's own NTB clients run on ntb_hw_smartio.ko.

usage: ntb.py BUILD MACHINE [--console] [--soak]

MACHINE is none-6.1, intel-6.12 and so on: IOMMU and kernel of both. --console shows what is run, as it is run; --soak
sends more through the network. Exit status 77, and a line that says why, if there is no QEMU that speaks vfio-user,
or no kernel to be had.
"""
import sys

import paths  # noqa: F401
import ntb_clients
import pair
from machine import Failed


def load_driver(p):
    p.both("load ntb; load ntb_hw_smartio; until_ok test -e /sys/bus/ntb/devices/$(bdf)")
    p.both(f"same IOMMU $(iommu) {p.iommu}")
    for m in (p.a, p.b):
        m.run("logged 'smartio.*: 1 peers, 1 of them NTB ports' || fail $(dmesg | tail -n 3)")
    p.step("the driver is loaded")


def renew(p):
    """Nothing of a client is left for the next: the driver resets the function. ntb_pingpong leaves messages, which
    ntb_perf would take for its peer's."""
    p.both("for f in unbind bind; do echo $(bdf) >/sys/bus/pci/drivers/ntb_hw_smartio/$f; done")


# ---- ntb_tool ----

TOOL = "D=$(debug ntb_tool); "


def check_ports_and_link(p):
    p.both("load ntb_tool")
    for m, port in ((p.a, 0), (p.b, 1)):
        m.run(TOOL + f"same port $(cat $D/port) {port}; same 'peer port' $(cat $D/peer0/port) {1 - port}; "
              "same link $(cat $D/peer0/link) N")
    p.a.run(TOOL + "echo Y >$D/link; same 'link before the peer' $(cat $D/peer0/link) N")
    p.a.start(TOOL + "echo Y >$D/peer0/link_event")
    p.b.run(TOOL + "echo Y >$D/link; echo Y >$D/peer0/link_event; same link $(cat $D/peer0/link) Y")
    p.a.wait()
    p.b.start(TOOL + "echo N >$D/peer0/link_event")
    p.a.run(TOOL + "echo N >$D/link; same 'own link' $(cat $D/peer0/link) N")
    p.b.wait()
    p.a.run(TOOL + "echo Y >$D/link")
    p.b.run(TOOL + "echo Y >$D/peer0/link_event")
    p.step("ntb_tool: ports and link")


def check_doorbells(p):
    for to, sender in ((p.b, p.a), (p.a, p.b)):
        to.run(TOOL + "same mask $(cat $D/db_mask) 0xffffffff; echo 'c 0x80000001' >$D/db_mask")
        to.start(TOOL + "echo 0x80000000 >$D/db_event")
        sender.run(TOOL + "echo 's 0x80000000' >$D/peer_db")
        to.wait()
        # The second one's interrupt comes although the first is still set.
        to.start(TOOL + "echo 0x80000001 >$D/db_event")
        sender.run(TOOL + "echo 's 1' >$D/peer_db")
        to.wait()
        to.run(TOOL + "before=$(interrupts doorbell); echo 'c 0xffffffff' >$D/db; same doorbells $(cat $D/db) 0x0; "
               "echo $before >before")
        # One that is masked is kept, and told when it is not masked any more.
        sender.run(TOOL + "echo 's 0x10' >$D/peer_db")
        to.run(TOOL + "same 'masked doorbell' $(cat $D/db) 0x10; "
               "same 'interrupts of a masked doorbell' $(interrupts doorbell) $(cat before); "
               "echo 'c 0x10' >$D/db_mask; until_ok more_interrupts $(cat before) doorbell; "
               "echo 'c 0x10' >$D/db; same doorbells $(cat $D/db) 0x0")
    p.step("ntb_tool: doorbells")


def check_scratchpads(p):
    p.both(TOOL + "for i in 0 1 62 63; do echo $((i * 16777216 + 5)) >$D/spad$i; done")
    for m in (p.a, p.b):
        m.run(TOOL + "for i in 0 1 62 63; do same spad$i $(($(cat $D/peer0/spad$i))) $((i * 16777216 + 5)); "
              "echo $((i + 77)) >$D/peer0/spad$i; done")
    p.both(TOOL + "for i in 0 1 62 63; do same spad$i $(($(cat $D/spad$i))) $((i + 77)); done")
    p.step("ntb_tool: scratchpads")


def check_messages(p):
    for to, sender in ((p.b, p.a), (p.a, p.b)):
        to.run(TOOL + "echo 'c 2' >$D/msg_mask")
        to.start(TOOL + "echo 2 >$D/msg_event")
        sender.run(TOOL + "echo 0x12345678 >$D/peer0/msg1")
        to.wait()
        to.run(TOOL + "same message $(cat $D/msg1) '0x12345678<-0'")
        sender.run(TOOL + "echo 1 >$D/peer0/msg1; same 'status of one not taken' $(cat $D/msg_sts) 0x20000; "
                   "echo 'c 0x20000' >$D/msg_sts; same status $(cat $D/msg_sts) 0x0")
        to.run(TOOL + "same message $(cat $D/msg1) '0x12345678<-0'; echo 'c 2' >$D/msg_sts; echo 's 2' >$D/msg_mask")
        sender.run(TOOL + "echo 0xffffffff >$D/peer0/msg1; echo 3 >$D/peer0/msg3; same status $(cat $D/msg_sts) 0x0")
        to.run(TOOL + "same messages $(cat $D/msg_sts) 0xa; same message $(cat $D/msg1) '0xffffffff<-0'; "
               "same message $(cat $D/msg3) '0x00000003<-0'; echo 'c 0xa' >$D/msg_sts")
    p.step("ntb_tool: messages")


def check_windows(p):
    """Both windows both ways at once, each with its own bytes; then one is taken away."""
    p.both(TOOL + "for w in 0 1; do echo 16384 >$D/peer0/mw_trans$w; echo 0:16384 >$D/peer0/peer_mw_trans$w; done")
    p.both(TOOL + "for w in 0 1; do head -c 5003 /dev/urandom >sent$w; cat sent$w >$D/peer0/peer_mw$w; done")
    sums = p.both("sha256sum sent0 sent1 | cut -c 1-64")
    got = p.both(TOOL + "for w in 0 1; do head -c 5003 $D/peer0/mw$w | sha256sum | cut -c 1-64; done")
    if got != (sums[1], sums[0]) or len({*sums[0].split(), *sums[1].split()}) != 4:
        raise Failed(f"windows: {sums} were sent, {got} came")
    p.both(TOOL + "for w in 0 1; do head -c 5003 /dev/urandom >own$w; cat own$w >$D/peer0/mw$w; done")
    sums = p.both("sha256sum own0 own1 | cut -c 1-64")
    got = p.both(TOOL + "for w in 0 1; do head -c 5003 $D/peer0/peer_mw$w | sha256sum | cut -c 1-64; done")
    if got != (sums[1], sums[0]):
        raise Failed(f"windows: {sums} were there, {got} was read")
    p.b.run(TOOL + "echo 0 >$D/peer0/mw_trans0")
    p.a.run(TOOL + "same 'what was taken away' $(first_bytes $D/peer0/peer_mw0) "
            "ffffffffffffffff; same 'the other window' \"$(head -c 5003 $D/peer0/peer_mw1 | sha256sum | cut -c 1-64)\" "
            + sums[1].split()[1] + "; until_ok logged 'read of .* through the window at .*nothing is granted there'")
    p.b.run("until_ok logged 'read of .* by a peer at .*nothing is granted there'")
    # ntb_tool (6.1, 6.12) goes wrong when it is removed with windows: it removes their files twice.
    p.both(TOOL + "for w in 0 1; do echo 0:0 >$D/peer0/peer_mw_trans$w; echo 0 >$D/peer0/mw_trans$w; done")
    p.step("ntb_tool: memory windows")


def check_unbind(p):
    """The driver goes under a client that is in use."""
    p.a.start(TOOL + "echo N >$D/peer0/link_event")
    p.b.run("echo $(bdf) >/sys/bus/pci/drivers/ntb_hw_smartio/unbind; [ ! -e /sys/bus/ntb/devices/$(bdf) ]")
    p.a.wait()
    p.b.run("echo $(bdf) >/sys/bus/pci/drivers/ntb_hw_smartio/bind; " + TOOL + "echo Y >$D/link; "
            "echo Y >$D/peer0/link_event; same mask $(cat $D/db_mask) 0xffffffff; same spad63 $(cat $D/spad63) 0x0")
    p.both("rmmod ntb_tool")
    p.step("the driver was unbound and bound")


# ---- the others ----

def check_pingpong(p):
    renew(p)
    p.both("load ntb_pingpong delay_ms=5")
    p.both("until_ok at_least 30 $(debug ntb_pingpong)/count")
    p.both("rmmod ntb_pingpong")
    p.step("ntb_pingpong")


def check_perf(p):
    renew(p)
    p.both("load ntb_perf total_order=14 chunk_order=13")
    for m in (p.a, p.b):
        said = m.run("D=$(debug ntb_perf); echo 0 >$D/run; cat $D/run")
        if "copied 16384 bytes" not in said:
            raise Failed(f"{m.name}: ntb_perf: {said}")
        p.step(f"ntb_perf: {' '.join(said.split())}")
    p.both("rmmod ntb_perf")


def start_network(*machines):
    for m, address in machines:
        m.run("load ntb_transport; load ntb_netdev; until_ok test -e /sys/class/net/eth0; "
              "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6; ip link set lo up; "
              f"ip address add 10.0.0.{address}/24 dev eth0; ip link set eth0 up")


def ping(p):
    """One by one: after the last of several ping waits twice the longest time that an answer took, and no longer."""
    for _ in range(5):
        said = p.a.run("ping -c 1 -W 20 10.0.0.2")
        if " 1 packets received" not in said:
            raise Failed(f"ping: {said}")
    p.step("ntb_netdev: " + said.splitlines()[-1])


def check_network(p):
    renew(p)
    start_network((p.a, 1), (p.b, 2))
    p.both("until_ok at_least 1 /sys/class/net/eth0/carrier")
    ping(p)
    size = 100_000_000 if p.soak else 1 << 20
    p.both(f"head -c {size} /dev/urandom >file; httpd -p 80 -h /tmp")
    sums = p.both("sha256sum <file")
    got = []
    for m, other in ((p.a, 2), (p.b, 1)):
        m.limit(pair.LIMIT * (20 if p.soak else 1))
        got.append(m.run(f"wget -q -O - http://10.0.0.{other}/file | sha256sum"))
    got = tuple(got)
    if got != (sums[1], sums[0]):
        raise Failed(f"network: {sums} were sent, {got} came")
    p.step(f"ntb_netdev: {size} bytes each way by TCP")


def check_network_unbind(p):
    """The driver goes under the network, and comes back."""
    p.b.run("echo $(bdf) >/sys/bus/pci/drivers/ntb_hw_smartio/unbind; [ ! -e /sys/class/net/eth0 ]")
    p.a.run("until_ok at_most 0 /sys/class/net/eth0/carrier")
    p.b.run("rmmod ntb_netdev; rmmod ntb_transport; echo $(bdf) >/sys/bus/pci/drivers/ntb_hw_smartio/bind")
    start_network((p.b, 2))
    p.both("until_ok at_least 1 /sys/class/net/eth0/carrier")
    ping(p)


def check_death(p):
    """A machine's power is cut, and it comes back."""
    p.b.kill()
    p.a.run("until_ok at_most 0 /sys/class/net/eth0/carrier")
    p.step("a machine was killed")
    p.restart_b()
    p.b.run("load ntb; load ntb_hw_smartio")
    start_network((p.b, 2))
    p.both("until_ok at_least 1 /sys/class/net/eth0/carrier")
    ping(p)


CHECKS = (load_driver, check_ports_and_link, check_doorbells, check_scratchpads, check_messages, check_windows,
          check_unbind, check_pingpong, check_perf, check_network, check_network_unbind, check_death)


class Ntb(pair.Kind):
    name = "ntb"
    doc = __doc__
    drivers = (*ntb_clients.CLIENTS, "ntb_hw_smartio")
    checks = CHECKS


if __name__ == "__main__":
    sys.exit(pair.main(Ntb()))
