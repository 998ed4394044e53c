#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file system that two machines have mounted at once, on one drive that is a disk of both: ocfs2, Debian's.

usage: ocfs2.py BUILD MACHINE [--hour] [--console] [--soak]

As disk.py. Each machine makes, renames, reads and removes files in a folder of its own and appends to a file of both, for
20 seconds (--soak: 5 minutes; --hour: an hour, through mapped windows, which move more); each checks what the other wrote; then fsck. Appends without a lock are made on a second
ocfs2, too, on a drive that QEMU itself shares, where nothing is ours: they must end alike.
"""
import os
import shutil
import sys

import cluster
import disk
import ocfs2_packages
import pair
from cluster import DRIVE
from machine import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = """cluster:
	node_count = 2
	name = two

""" + "".join(f"""node:
	ip_port = 7777
	ip_address = 10.0.0.{n + 1}
	number = {n}
	name = {name}
	cluster = two

""" for n, name in enumerate("ab"))


OURS, QEMUS = "/tmp/mnt", "/tmp/qemus"
SHARED_SLOT = 9
RECORD = 512  # bytes of what is appended by direct I/O
TRIES = 10  # to see whether ocfs2 loses it on a drive without anything of ours


def start(p):
    cluster.start(p)
    p.both("load smartio_blk; load_ocfs2")
    cluster.give_drive(p)
    # Only now: the other drive shall be smartiod's.
    p.both(p.kind.load("nvme") + "; until_ok test -b $SHARED")
    p.a.run(f"start_manager {DRIVE}")


def check_mount(p):
    disk.attach(p, (p.a, p.b))
    p.both("o2cb register-cluster two")
    for drive, place in (("$DISK", OURS), ("$SHARED", QEMUS)):
        p.a.run(f"mkfs.ocfs2 -q -N 2 -b 4096 -C 4096 -J size=4M --cluster-stack=o2cb --cluster-name=two -F {drive}")
        p.a.run(f"mount_ocfs2 {drive} {place}")
        p.b.run(f"mount_ocfs2 {drive} {place}")
        p.step(f"both have mounted a file system of {drive}")


def check_files(p):
    """Each finds at once what the other wrote."""
    p.a.run("mkdir /tmp/mnt/a /tmp/mnt/b /tmp/mnt/both; echo from a >/tmp/mnt/both/a; "
            ": >/tmp/mnt/both/lines; : >/tmp/mnt/both/lock")
    p.b.run("[ \"$(cat /tmp/mnt/both/a)\" = 'from a' ]; echo and b >>/tmp/mnt/both/a")
    said = p.a.run("cat /tmp/mnt/both/a")
    if said != "from a\nand b":
        raise Failed(f"a reads {said!r}")
    p.step("each reads at once what the other wrote")


def found_by_both(p, path):
    """What is in a file, without what either has in its cache."""
    first, second = p.both(f"echo 3 >/proc/sys/vm/drop_caches; cat {path}")
    if first != second:
        raise Failed(f"of {path} a reads {first!r}, b {second!r}")
    return [line.rstrip() for line in first.splitlines()]


def append_in_turns(p, path, kept):
    """One line of A, one of B, and so on, each when the other's has been written: what is there then. With @kept each
    has the file open all the time."""
    p.a.run(f": >{path}")
    if kept:
        p.both(f"begin append appender {path}; runs append")
    lines = [f"{m.name} {n}" for n in range(10) for m in (p.a, p.b)]
    for n, line in enumerate(lines):
        m = p.b if n % 2 else p.a
        m.run(f"say_to append {n // 2 + 2} '{line}'" if kept else f"echo '{line}' >>{path}")
    if kept:
        p.both("finish append")
    return lines, found_by_both(p, path)


def append_at_once(p, path, records, direct):
    """As fast as each can, each record by a write() of its own. How many are there; each of them is whole."""
    p.a.run(f": >{path}")
    p.both(f"append_records {path} {records} {RECORD} {',direct' if direct else ''}")
    found = found_by_both(p, path)
    wanted = {f"{m.name} {n}" for m in (p.a, p.b) for n in range(1, records + 1)}
    if len(found) != len(set(found)) or not wanted >= set(found):
        raise Failed(f"{path} has other lines than were appended: {found}")
    return len(found)


def check_appends(p):
    """ocfs2 takes the place of a buffered append from the size that it knew before it asked the other machine: what was
    appended there since the file was last opened or looked at is overwritten. What is right on a drive without anything
    of ours must be right on ours, and what is lost there is lost here."""
    kept = {}
    for place in (OURS, QEMUS):
        lines, found = append_in_turns(p, f"{place}/turns", False)
        if found != lines:
            raise Failed(f"{place}: {lines} were appended in turns; there are {found}")
        kept[place] = append_in_turns(p, f"{place}/kept", True)[1]
    if kept[OURS] != kept[QEMUS]:
        raise Failed(f"appended in turns to a file that was kept open; on our disk: {kept[OURS]}, on QEMU's: {kept[QEMUS]}")
    p.step(f"appended in turns: nothing is lost; to a file that both keep open: {len(kept[OURS])} of 20 lines on either disk")
    records = 2000 if p.soak else 100
    found = {(place, direct): append_at_once(p, f"{place}/{'direct' if direct else 'buffered'}", records, direct)
             for place in (OURS, QEMUS) for direct in (True, False)}
    # ocfs2 seldom loses what is appended by direct I/O, too: on a busy machine it was seen on QEMU's drive, half of it.
    tries = 1
    while found[OURS, True] != 2 * records == found[QEMUS, True]:
        if tries == TRIES:
            raise Failed(f"{OURS}: {found[OURS, True]} of {2 * records} records appended by direct I/O are there; on QEMU's drive "
                         f"all of them, {tries} times")
        tries += 1
        found[QEMUS, True] = append_at_once(p, f"{QEMUS}/direct{tries}", records, True)
    for place in (OURS, QEMUS):
        p.step(f"{place}: of {2 * records} records appended at once {found[place, True]} are there by direct I/O, "
               f"{found[place, False]} without")


def check_stress(p):
    seconds = 3600 if "--hour" in p.kind.given else 300 if p.soak else 20
    for m, own in ((p.a, "a"), (p.b, "b")):
        m.limit(seconds * 10 + 300)
        m.start(f"stress_files {own} {seconds}")
    done = p.a.wait(), p.b.wait()
    p.step(f"{seconds} seconds of both: rounds and lines {done}")
    # What one wrote, the other checks, past its own cache of before.
    for m, other in ((p.a, "b"), (p.b, "a")):
        m.start(f"echo 3 >/proc/sys/vm/drop_caches; check_files {other}")
    p.a.wait()
    p.b.wait()
    lines, found = sum(int(d.split()[1]) for d in done), p.a.run("sed 's/.* //' /tmp/mnt/both/lines").split()
    if found != [str(n) for n in range(lines)]:
        raise Failed(f"{lines} lines were appended by both, one after the other; there are {found}")
    p.step("each has checked the other's files")


def check_end(p):
    p.both(f"umount {OURS}; umount {QEMUS}")
    for drive in ("$DISK", "$SHARED"):
        said = p.b.run(f"fsck.ocfs2 -fn {drive} >/tmp/fsck 2>&1 || {{ cat /tmp/fsck; false; }}; tail -n 2 /tmp/fsck")
        p.step(f"unmounted, fsck finds nothing wrong: {said}")
    for m in (p.a, p.b):
        m.run("smartio-nvme detach $DISK; disk_is_gone")


class Ocfs2(disk.Disk):
    name = "ocfs2"
    doc = __doc__
    memory = 448
    options = (*disk.Disk.options, "--hour")
    mapped = "--hour" in sys.argv
    topology = pair.mapped_topology(memory) if mapped else disk.Disk.topology
    checks = (start, check_mount, check_files, check_appends, check_stress, check_end)

    def prepare(self, build, folder):
        super().prepare(build, folder)
        for name in ("drive", "shared"):
            with open(f"{folder}/{name}", "wb") as f:
                f.truncate(96 << 20)

    def qemu(self, host, folder):
        return (*super().qemu(host, folder), "-blockdev",
                f"raw,node-name=shared0,file.driver=file,file.filename={folder}/shared,cache.no-flush=on",
                "-device", f"nvme,serial=SHARED,drive=shared0,share-rw=on,addr={SHARED_SLOT:x}")

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        have = ocfs2_packages.get(kernel)
        for name in sorted(os.listdir(f"{have}/modules")):
            image.add_file(f"/modules/{name}", f"{have}/modules/{name}")
        for path in kernel.modules("jbd2"):
            image.add_file("/modules/" + os.path.basename(path), path)
        os.environ["LD_LIBRARY_PATH"] = f"{have}/libraries"
        for name in ocfs2_packages.PROGRAMS:
            image.add_program(f"{have}/programs/{name}", f"/sbin/{name}")
        del os.environ["LD_LIBRARY_PATH"]
        image.add_program(shutil.which("flock"))
        image.add_data("/etc/ocfs2/cluster.conf", CONF)
        with open(os.path.join(HERE, "disk-lib.sh"), "rb") as f:
            image.add_data("/disk-lib.sh", f.read())
        with open(os.path.join(HERE, "ocfs2-lib.sh"), "rb") as f:
            image.add_data("/test-lib.sh", f.read())


if __name__ == "__main__":
    sys.exit(pair.main(Ocfs2()))
