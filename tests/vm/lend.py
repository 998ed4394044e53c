#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Device Lending between two machines of one cluster: the NVMe drive of one of them in the PCI tree of the other.

usage: lend.py BUILD MACHINE [--a-alone] [--b-alone] [--console] [--soak]

As cluster.py, but that the machine's IOMMU may be one host's alone. B borrows: where it has an IOMMU there is a window,
else the drive reaches all of its memory. The driver is the kernel's own, which knows nothing of it.
"""
import os
import sys

import cluster
import pair
import shim
from cluster import DRIVE, PLACE
from machine import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
# A window takes all of the other machine's memory.
TOPOLOGY = pair.TOPOLOGY.replace("64M", "512M")
SHADOW = "8000:00:00.0"
WINDOW = "8M"
STOPPED = "dmesg | grep -c 'was stopped:' || true"  # accesses through an adapter


def words(p):
    """What is said of B's memory."""
    return f"--window {WINDOW}" if p.windowed else "--all-memory"


def start(p):
    p.windowed = p.iommu != "none" and p.kind.has_iommu("b")
    cluster.start(p)
    p.b.run(f"load smartio_lend; {p.kind.load('nvme')}; {p.kind.load('crc32c_generic', 'ext4')}")
    cluster.give_drive(p)
    p.both("remember")


def check_refusals(p):
    """What is refused is taken back, whatever had been made of it."""
    p.b.run(f"refused 'all memory' smartio borrow {DRIVE}; refused 'whole MiB' smartio borrow {DRIVE} --window 4K; "
            f"refused 'do not belong' smartio borrow {DRIVE} --window 1M --all-memory; "
            f"refused 'bytes are wanted' smartio borrow {DRIVE} --window 1X; until_ok as_remembered")
    other = "--all-memory" if p.windowed else "--window 8M"
    p.b.run(f"refused IOMMU smartio borrow {DRIVE} {other}; until_ok as_remembered")
    p.b.run(f"refused 'not borrowed' smartio return {DRIVE}")
    before = p.b.run(STOPPED)
    p.b.run(f"rmmod smartio_lend; refused 'smartio_lend' smartio borrow {DRIVE} {words(p)}; load smartio_lend; "
            "until_ok as_remembered")
    if p.b.run(STOPPED) != before:
        raise Failed("the window was granted and given back, and what the lender reads there is stopped by the borrower's IOMMU")
    p.a.run(f"refused 'of this host' smartio borrow {DRIVE} {words(p)}; until_ok as_remembered")
    p.step("refusals leave nothing")


def borrow(p):
    p.b.run(f"smartio borrow {DRIVE} {words(p)}; until_ok test -b /dev/nvme0n1")
    p.step("nvme.ko has the drive of the other machine")


def check_borrow(p):
    borrow(p)
    p.b.run(f"same driver $(basename $(readlink /sys/bus/pci/devices/{SHADOW}/driver)) nvme; "
            f"refused 'already' smartio borrow {DRIVE} {words(p)}")
    p.b.run("grep -q 'smartio shadow' /proc/iomem; grep -q smartio-shadow /proc/interrupts")
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0; refused '' smartio-nvme identify {DRIVE}")
    p.step("nobody else gets it")


def check_vectors(p):
    """A vector for each queue; what is masked is told later, and not lost. What is written into the table that the driver
    has is written to no device."""
    p.b.run(f"same kind \"$(cat /sys/bus/pci/devices/{SHADOW}/msi_irqs/* | sort -u)\" msix; "
            f"same vectors $(ls /sys/bus/pci/devices/{SHADOW}/msi_irqs | wc -l) 3; "
            "same queues $(grep -c nvme0q /proc/interrupts) 3; raw_copy /dev/nvme0n1 24576 64")
    p.b.run(f"write_byte {SHADOW} 131 c0; interrupts_of_peers >/tmp/peers; interrupts_of nvme0 >/tmp/told; start_one_read /dev/nvme0n1; "
            "until_ok more_from_peers; same told \"$(interrupts_of nvme0)\" $(cat /tmp/told); test ! -s /tmp/one.end; "
            f"write_byte {SHADOW} 131 80; until_ok test -s /tmp/one.end; same read $(cat /tmp/one.end) good")
    p.step("vectors of MSI-X, masked and pending")
    check_one_vector(p)
    p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/unbind; spoil_table {SHADOW}; echo {SHADOW} >/sys/bus/pci/drivers/nvme/bind; "
            "until_ok test -b /dev/nvme0n1; raw_copy /dev/nvme0n1 24576 64")
    p.step("its table is nobody's but the driver's")


def check_one_vector(p):
    """One of two queues' vectors is masked: its read waits, the other's goes on."""
    p.b.run("cpu=$(cpu_of_queue /dev/nvme0n1 nvme0q1); load smartio_mask irq=$(irq_of nvme0q1); interrupts_of_peers >/tmp/peers; "
            "start_one_read /dev/nvme0n1 taskset -c $cpu; until_ok more_from_peers; "
            "taskset -c $((1 - cpu)) dd if=/dev/nvme0n1 of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null; "
            "test ! -s /tmp/one.end; rmmod smartio_mask; until_ok test -s /tmp/one.end; same read $(cat /tmp/one.end) good")
    p.step("one vector, masked while another one tells")


def check_files(p):
    """A file system made, filled and checked on one machine, and then read on the one that has the drive."""
    sent = p.b.run("/bin/mke2fs -q -b 4096 -O ^has_journal /dev/nvme0n1 2048; fill /dev/nvme0n1; e2fsck -fn /dev/nvme0n1 >fsck; "
                   "tail -n 1 fsck >&2; sum_of /dev/nvme0n1")
    p.step("a file system was made and filled there")
    before = p.b.run("interrupts_of nvme0")
    p.b.run("raw_copy /dev/nvme0n1 24576 64")
    if int(p.b.run("interrupts_of nvme0")) <= int(before):
        raise Failed("the driver had no interrupts")
    p.step("it is woken by the drive")
    p.b.run(f"smartio return {DRIVE}; test ! -e /dev/nvme0n1; test ! -e /sys/bus/pci/devices/{SHADOW}; "
            "until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("it was returned, and nothing is left of it")
    p.a.run(f"smartio device remove {PLACE}; {p.kind.load('nvme')}; {p.kind.load('crc32c_generic', 'ext4')}; until_ok test -b /dev/nvme0n1")
    found = p.a.run("sum_of /dev/nvme0n1")
    if found.split()[-1] != sent.split()[-1]:
        raise Failed(f"{found} is read where the drive is, {sent} was written")
    p.step("its own machine reads the same files")
    cluster.give_drive(p)


def counts(p):
    """What daemons and the lender have done for it."""
    return p.both("peer_messages"), p.a.run("lender_interrupts")


def check_silence(p):
    """I/O is between the driver and the drive alone."""
    borrow(p)
    p.b.run("raw_copy /dev/nvme0n1 24576 64")
    before = counts(p)
    p.b.run("for i in 1 2 3 4; do raw_copy /dev/nvme0n1 24576 64; done")
    after = counts(p)
    if after != before:
        raise Failed(f"messages of daemons and interrupts at the lender were {before}, after I/O {after}")
    p.step(f"I/O went on without a message between daemons or an interrupt at the lender: {after}")
    p.b.run(f"start_raw_io /dev/nvme0n1; smartio return {DRIVE}; until_ok test -s /tmp/raw.end; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("it was returned under I/O")


def goes_on(p, text):
    """Nothing was noticed, whatever happened to the daemons: no request failed, the disk and its driver are the same."""
    p.b.run(f"checked_goes_on 1 2; same_disk {SHADOW}")
    p.a.run(f"until_ok same_borrowers {DRIVE} 1 0")
    p.step(text)


def part(p):
    """The network between the daemons is away until both have noticed, and comes back."""
    p.b.run("meetings a; partings a")
    p.a.run("partings b")
    p.b.run("ip link set eth0 down; until_ok parted a")
    p.a.run("until_ok parted b")
    p.b.run("checked_goes_on 1 2; ip link set eth0 up; until_ok met a")


def start_again(p, m, host, signal):
    other = "b" if host == "a" else "a"
    peer = p.b if m is p.a else p.a
    m.run(f"meetings {other}")
    peer.run(f"meetings {host}")
    m.run(f"kill -{signal} $(cat /tmp/smartiod.pid); until_ok has_ended $(cat /tmp/smartiod.pid)")
    p.b.run("checked_goes_on 1 2")
    m.run(f"start_daemon {host}; until_ok met {other}")
    peer.run(f"until_ok met {host}")


def check_daemons(p):
    """The daemons lose each other, or are killed and started again: nobody notices."""
    borrow(p)
    # Each page that goes through a window costs A's machine so much time that little is left for its daemon.
    size = 4096 if p.windowed else 65536
    p.b.run(f"start_checked_io 1 /dev/nvme0n1 {size} {(12 << 20) // size}; "
            f"start_checked_io 2 /dev/nvme0n1 {size} {(12 << 20) // size + 1}; remember_disk {SHADOW}")
    part(p)
    goes_on(p, "the network between the daemons was away under I/O: nothing was noticed")
    for m, host, signals in ((p.b, "b", ("KILL", "TERM")), (p.a, "a", ("KILL",))):
        for signal in signals if not p.soak else ("KILL", "TERM") * 5:
            word = "killed" if signal == "KILL" else "stopped"
            start_again(p, m, host, signal)
            goes_on(p, f"smartiod of {host} was {word} under I/O and started again: nothing was noticed")
    # The driver can still stop the drive, which takes the lender.
    p.b.run(f"end_checked_io 1 2; echo {SHADOW} >/sys/bus/pci/drivers/nvme/unbind")
    p.a.run(f"is_master {PLACE} 0")
    p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/bind; until_ok works /dev/nvme0n1")
    p.a.run(f"is_master {PLACE} 1")
    p.b.run(f"smartio return {DRIVE}; until_ok as_remembered")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0; until_ok as_remembered")
    p.step("it was returned, and nothing is left of it")


def check_gone(p):
    """The lender takes the drive back by force."""
    borrow(p)
    p.b.run("start_raw_io /dev/nvme0n1")
    p.a.run(f"smartio device remove {PLACE} --force")
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok as_remembered")
    p.step("the drive was taken away under I/O: the driver has given up")
    cluster.give_drive(p)



def check_master(p):
    """A driver that goes really stops the drive, and one that comes lets it send again."""
    borrow(p)
    p.a.run(f"is_master {PLACE} 1")
    p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/unbind")
    p.a.run(f"is_master {PLACE} 0")
    p.step("nvme.ko was unbound: the drive sends no more")
    p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/bind; until_ok test -b /dev/nvme0n1; raw_copy /dev/nvme0n1 24576 64; "
            f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/unbind; write_byte {SHADOW} 4 06; is_master {SHADOW} 1")
    p.a.run(f"until_ok is_master {PLACE} 1")
    p.b.run(f"write_byte {SHADOW} 4 02")
    p.a.run(f"until_ok is_master {PLACE} 0; command_of {PLACE} >/tmp/command")
    # Memory space, errors that stop some hosts, INTx: what is the lender's stays so, whatever is written.
    p.b.run(f"write_byte {SHADOW} 4 40; write_byte {SHADOW} 5 01; write_byte {SHADOW} 4 06")
    p.a.run(f'until_ok is_master {PLACE} 1; same command "$(command_of {PLACE})" $(($(cat /tmp/command) + 4))')
    p.b.run(f"smartio return {DRIVE}; until_ok as_remembered")
    borrow(p)
    p.b.run(f"raw_copy /dev/nvme0n1 24576 64; smartio return {DRIVE}; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("it was bound again, and nothing was written that is the lender's")


def check_window(p):
    """The lender's host reaches what the driver has mapped, while it has; a window that is full is waited for."""
    if not p.windowed:
        return
    p.b.run("start_trace_maps")
    borrow(p)
    p.b.run("aligned_maps 65536")
    p.b.run("raw_copy /dev/nvme0n1 24576 64")
    p.a.run(f"map_at {8 << 20:x} >/tmp/window; is_there $(($(cat /tmp/window) + {(8 << 20) - 4096}))")
    # After a read that it stops QEMU's AMD IOMMU interrupts its machine without end.
    tries = p.iommu != "amd"
    seen = int(p.a.run(f"count_there $(cat /tmp/window) {8 << 20} {32 * 4096}")) if tries else 1
    if seen > 8:
        raise Failed(f"of 64 pages of the window {seen} are there while the driver is idle")
    before = p.both(STOPPED)
    p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/unbind")
    if p.both(STOPPED) != before:
        raise Failed("what the lender reads when the drive is stopped is stopped by the borrower's IOMMU")
    p.a.run("same zeros $(devmem $(cat /tmp/window) 32) 0x00000000")
    if tries:
        p.a.run(f"! is_there $(($(cat /tmp/window) + {(8 << 20) - 4096}))")
    p.b.run(f"smartio return {DRIVE}; until_ok as_remembered")
    if tries:
        p.step(f"the lender's host reached {seen} of 64 pages, and none without the driver")
    p.b.run(f"smartio borrow {DRIVE} --window 1M; until_ok test -b /dev/nvme0n1; "
            "same most \"$(cat /sys/block/nvme0n1/queue/max_hw_sectors_kb)\" 256; flood /dev/nvme0n1; "
            f"smartio return {DRIVE}; until_ok as_remembered; ! logged 'pages mapped'")
    p.step("a window of 1 MiB was flooded")


def check_silent_lender(p):
    """The lender's daemon does not answer: what waits for it ends at its limit, and the device is lost."""
    borrow(p)
    p.a.run("kill -STOP $(cat /tmp/smartiod.pid)")
    p.b.run(f"start_unbind {SHADOW}; until_ok asks_lender $(cat /tmp/unbind.pid); until_ok test -s /tmp/unbind.end; "
            f"until_ok test ! -e /sys/bus/pci/devices/{SHADOW}")
    p.a.run("kill -CONT $(cat /tmp/smartiod.pid)")
    p.b.run(f"until_ok nobody_holds; until_ok has_device {DRIVE}; until_ok as_remembered")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
    p.step("the lender was silent while the driver went, until the limit")
    check_dead_daemons(p)


def check_dead_daemons(p):
    """What the driver asks while a daemon is away is answered when it is there again: the driver has stopped the drive."""
    for m, host in ((p.a, "a"), (p.b, "b")):
        borrow(p)
        m.run("kill_daemon")
        p.b.run(f"start_unbind {SHADOW}; until_ok asks_lender $(cat /tmp/unbind.pid)")
        m.run(f"start_daemon {host}")
        p.b.run("until_ok test -s /tmp/unbind.end")
        p.a.run(f"is_master {PLACE} 0")
        p.b.run(f"echo {SHADOW} >/sys/bus/pci/drivers/nvme/bind; until_ok works /dev/nvme0n1; smartio return {DRIVE}; "
                "until_ok as_remembered")
        p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
        p.step(f"smartiod of {host} was away while the driver went, and served it when it was there again")


def check_killed(p):
    """Whoever holds the borrow dies: the driver goes, all is taken back."""
    borrow(p)
    p.b.run("start_raw_io /dev/nvme0n1; kill -9 $(holder); until_ok test -s /tmp/raw.end; "
            f"until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok as_remembered")
    p.a.run("until_ok as_remembered")
    p.step("the holder was killed under I/O: nothing is left of it")


def check_lend(p):
    """A list says what is lent when the machine starts: what lay in that place, and nothing else."""
    other = f"{PLACE} 1234:5678"
    p.a.run(f"smartio lend {PLACE} --undo; until_ok test -b /dev/nvme0n1; smartio lend {PLACE} --persist; grep -q '^{PLACE} 1b36:0010$' "
            f"/etc/smartio/lent; smartio lend {PLACE} --undo; ! grep {PLACE} /etc/smartio/lent; smartio lend --again; until_ok test -b /dev/nvme0n1")
    p.a.run(f"echo '{other}' >/etc/smartio/lent; refused 'what was lent was 1234:5678' smartio lend --again; test -b /dev/nvme0n1; "
            "echo rubbish >/etc/smartio/lent; refused 'line 1' smartio lend --again; rm /etc/smartio/lent; "
            f"smartio lend {PLACE} --persist; smartio lend --again")
    for m in (p.a, p.b):
        m.run(f"until_ok has_device {DRIVE}")
    p.lent = p.a.run("tail -n 1 /etc/smartio/lent")
    p.step("it is lent, and is on the list of what is lent when the machine starts")


def check_keep(p):
    """It was lost, and comes back by itself, with its driver: the cable was out, then the lender's machine died."""
    p.b.run(f"smartio borrow {DRIVE} {words(p)} --keep; until_ok works /dev/nvme0n1; kill -9 $(kept_by); "
            f"until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; until_ok works /dev/nvme0n1; start_raw_io /dev/nvme0n1")
    p.step("the process that held it was killed: the driver has the drive again")
    cluster.smartio(p, "fault", "link", "a", "down")
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}")
    cluster.smartio(p, "fault", "link", "a", "up")
    p.b.run("until_ok works /dev/nvme0n1; start_raw_io /dev/nvme0n1")
    p.step("the cable was pulled out and put in: the driver has the drive again")
    p.a.kill()
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}")
    p.restart_a()
    p.a.run(f"{p.kind.load_adapter('a')}; load e1000e; start_host a 10.0.0.1; until_ok said 'b is up'; "
            f"echo '{p.lent}' >/etc/smartio/lent; smartio lend --again")
    p.b.run("until_ok works /dev/nvme0n1")
    p.step("the lender was killed under I/O and started again: the driver has the drive again")
    p.b.run(f"refused 'already' smartio borrow {DRIVE} {words(p)}; echo 1 >/sys/bus/pci/devices/{SHADOW}/remove; "
            f"until_ok works /dev/nvme0n1; smartio return {DRIVE}; nobody_holds; test ! -e /sys/bus/pci/devices/{SHADOW}; "
            "until_ok as_remembered")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0; remember")
    p.step("it came back after it was taken out of the tree, and was returned")


def check_link(p):
    borrow(p)
    p.b.run("start_raw_io /dev/nvme0n1")
    cluster.smartio(p, "fault", "link", "a", "down")
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}")
    p.step("the cable was pulled out under I/O: the driver has given up")
    p.a.run(f"until_ok same_borrowers {DRIVE} 0 0")
    p.step("and the drive is free")
    cluster.smartio(p, "fault", "link", "a", "up")
    p.b.run(f"until_ok has_device {DRIVE}")
    borrow(p)
    p.b.run("raw_copy /dev/nvme0n1 24576 64")
    p.step("it was borrowed again")


def check_death(p):
    """The lender loses its power under the bound driver."""
    p.b.run("start_raw_io /dev/nvme0n1")
    p.a.kill()
    p.b.run(f"until_ok test -s /tmp/raw.end; until_ok test ! -e /sys/bus/pci/devices/{SHADOW}; "
            "until_ok test ! -e /dev/nvme0n1; rmmod nvme; until_ok nobody_has smartio_lend; rmmod smartio_lend")
    p.step("the lender was killed under I/O: the driver has given up, and all can be unloaded")


class Lend(cluster.Cluster):
    tell = "cat /tmp/smartiod.log; ls /dev/nvme*; smartio device list; ps | grep smartio"
    name = "lend"
    doc = __doc__
    topology = TOPOLOGY
    memory = 384
    # With doorbell buffers, which nvme.ko sets up where it can, QEMU's drive takes what it reads there for the number of
    # commands: ones, where nothing is granted any more. It goes on for minutes, and its machine with it.
    drive = ",dbcs=off"
    checks = (start, check_refusals, check_borrow, check_vectors, check_files, check_silence, check_window, check_master, check_killed, check_daemons, check_silent_lender,
              check_gone, check_lend, check_keep, check_link, check_death)

    options = ("--a-alone", "--b-alone")

    def has_iommu(self, host):
        return not self.given & {f"--{h}-alone" for h in self.hosts if h != host}

    def load(self, *modules):
        """Lines of shell that load them and what they need."""
        return "; ".join(f"load_module {os.path.basename(path)}" for path in self.kernel.modules(*modules))

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        self.kernel = kernel
        image.add_file("/modules/smartio_lend.ko", shim.sibling(kernel, build, "smartio_lend"))
        image.add_file("/modules/smartio_mask.ko", shim.of_tests(kernel, build, "smartio_mask"))
        for path in kernel.modules("nvme", "crc32c_generic", "ext4"):
            image.add_file("/modules/" + os.path.basename(path), path)
        for program in ("mke2fs", "e2fsck"):
            image.add_program(f"/sbin/{program}")
        for name in ("cluster-lib.sh", "lend-lib.sh"):
            with open(os.path.join(HERE, name), "rb") as f:
                image.add_data("/test-lib.sh" if name == "lend-lib.sh" else "/" + name, f.read())


if __name__ == "__main__":
    sys.exit(pair.main(Lend()))
