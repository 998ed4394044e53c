#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file system that two machines have mounted at once, on one drive that is a disk of both: ocfs2, Debian's.

usage: ocfs2.py BUILD MACHINE [--console] [--soak]

As disk.py. Each machine makes, renames, reads and removes files in a folder of its own and appends to a file of both, for
20 seconds (--soak: 5 minutes); each checks what the other wrote; then fsck.
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


def start(p):
    cluster.start(p)
    p.both("load smartio_blk; load_ocfs2")
    cluster.give_drive(p)
    p.a.run(f"start_manager {DRIVE}")


def check_mount(p):
    disk.attach(p, (p.a, p.b))
    p.both("o2cb register-cluster two")
    p.a.run("mkfs.ocfs2 -q -N 2 -b 4096 -C 4096 -J size=4M --cluster-stack=o2cb --cluster-name=two -F $DISK")
    p.step("a made a file system")
    p.a.run("mount_ocfs2")
    p.step("a has mounted it")
    p.b.run("mount_ocfs2")
    p.step("b has mounted it, too")


def check_files(p):
    """Each finds at once what the other wrote."""
    p.a.run("mkdir /tmp/mnt/a /tmp/mnt/b /tmp/mnt/both; echo from a >/tmp/mnt/both/a; "
            ": >/tmp/mnt/both/lines; : >/tmp/mnt/both/lock")
    p.b.run("[ \"$(cat /tmp/mnt/both/a)\" = 'from a' ]; echo and b >>/tmp/mnt/both/a")
    said = p.a.run("cat /tmp/mnt/both/a")
    if said != "from a\nand b":
        raise Failed(f"a reads {said!r}")
    p.step("each reads at once what the other wrote")


def check_stress(p):
    seconds = 300 if p.soak else 20
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
    p.both("umount /tmp/mnt")
    said = p.b.run("fsck.ocfs2 -fn $DISK >/tmp/fsck 2>&1 || { cat /tmp/fsck; false; }; tail -n 2 /tmp/fsck")
    p.step(f"unmounted, fsck finds nothing wrong: {said}")
    for m in (p.a, p.b):
        m.run("smartio-nvme detach $DISK; disk_is_gone")


class Ocfs2(disk.Disk):
    name = "ocfs2"
    doc = __doc__
    memory = 448
    checks = (start, check_mount, check_files, check_stress, check_end)

    def prepare(self, build, folder):
        super().prepare(build, folder)
        os.truncate(f"{folder}/drive", 96 << 20)

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
