#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two machines with a Debian and systemd each, on which our packages are installed: from nothing to remote I/O.

usage: installed.py BUILD MACHINE [--console]

As cluster.py, but nothing of ours is there before dpkg, and the daemons are systemd's services. The modules of package
smartio-dkms are compiled by dkms here; the NTB core, which Debian's kernels lack, comes from Debian's source.
"""
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

import paths  # noqa: F401
import cache
import cluster
import debian_root
import ntb_clients
import pair
import shim
from cluster import DRIVE, NODE, PLACE
from initrd import Initrd

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
INSTALLED = ("libsmartio0", "libsmartio-nvme0", "smartio")  # on the machines
SHELL = """[Unit]
Description=Lines of the test
After=systemd-udevd.service
[Service]
ExecStart=/bin/sh /opt/test/shell
StandardOutput=null
[Install]
WantedBy=multi-user.target
"""


def tree_as_it_is():
    """Differs when a file of the tree does."""
    names = subprocess.run(["git", "-C", TREE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                           capture_output=True, text=True).stdout.split("\0")
    stats = [(name, os.stat(f"{TREE}/{name}")) for name in names if name and os.path.exists(f"{TREE}/{name}")]
    return hashlib.sha256(repr([(name, s.st_size, s.st_mtime_ns) for name, s in stats]).encode()).hexdigest()


def make_packages(build):
    """The folder with the packages of the tree as it is: made once for all who want them."""
    if not shutil.which("dh") or not shutil.which("dkms"):
        raise cache.Unavailable("debhelper or dkms is not installed")
    folder, key = f"{build}/deb", tree_as_it_is()
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/of", "a+", encoding="ascii") as of:
        fcntl.flock(of, fcntl.LOCK_EX)
        of.seek(0)
        if of.read() == key:
            return folder
        of.truncate(0)
        done = subprocess.run(["sh", f"{TREE}/tools/build/deb.sh", folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"deb.sh: {done.stdout[-2000:]}{done.stderr[-4000:]}")
        print(done.stdout, end="")
        of.write(key)
    return folder


def deb(folder, name):
    path, = glob.glob(f"{folder}/{name}_*.deb")
    return path


def needs(folder):
    """What the machines need to have besides, by what the packages say."""
    names = set()
    for name in INSTALLED:
        said = subprocess.run(["dpkg-deb", "-f", deb(folder, name), "Depends"], check=True, capture_output=True, text=True)
        names.update(re.match(r"[a-z0-9.+-]+", word.strip())[0] for word in said.stdout.split(",") if word.strip())
    return names - set(INSTALLED)


def dkms_modules(folder, kernel, work):
    """smartio.ko and smartio_lend.ko, as dkms makes them of the package's sources."""
    unpacked = f"{work}/dkms"
    subprocess.run(["dpkg-deb", "-x", deb(folder, "smartio-dkms"), unpacked], check=True)
    (source,) = os.listdir(f"{unpacked}/usr/src")
    name, version = source.rsplit("-", 1)
    os.mkdir(f"{work}/made")
    done = subprocess.run(["dkms", "build", "-m", name, "-v", version, "-k", kernel.release, "--kernelsourcedir",
                           kernel.build, "--sourcetree", f"{unpacked}/usr/src", "--no-depmod", "--dkmstree", f"{work}/made"],
                          capture_output=True, text=True)
    made = [os.path.join(at, f) for at, _, files in os.walk(f"{work}/made") for f in files if re.search(r"\.ko(\.xz)?$", f)]
    if done.returncode != 0 or not made:
        log = glob.glob(f"{work}/made/**/make.log", recursive=True)
        raise RuntimeError(f"dkms: {done.stdout[-1000:]}{done.stderr[-1000:]}" +
                           (open(log[0], encoding="utf-8").read()[-3000:] if log else ""))
    return made


def install(p):
    p.step("both machines run systemd")
    for m, host in ((p.a, "a"), (p.b, "b")):
        m.start(f"start_machine {host} 10.0.0.{NODE[host] // 4}; install_packages; join_cluster {host}; "
                "load_modules_now")
    p.a.wait()
    p.b.wait()
    p.step("packages are installed, systemd has started smartiod on both")
    for m, other in ((p.a, "b"), (p.b, "a")):
        m.run(f"until_ok said '{other} is up'")
    print(p.a.run("smartio node list; systemd-analyze security --no-pager smartiod | tail -n 1"))
    p.step("each sees the other")


def use(p):
    p.a.run(f"smartio device add {PLACE}; until_ok has_device {DRIVE}; smartio-nvme manager {DRIVE} --background")
    p.b.run(f"until_ok has_device {DRIVE}; copy {DRIVE}")
    p.step("a file was written and read by the other machine's client")
    print(p.b.run("smartio doctor || :"))


def upgrade(p):
    """Packages are installed again where the drive is: the daemon is another one, I/O of its host goes on."""
    p.a.run(f"start_io {DRIVE}")
    before = p.a.run("main_pid")
    p.a.run("install_packages; until_ok serves; goes_on io")
    if p.a.run("main_pid") == before:
        raise pair.Failed("the daemon was not restarted by the upgrade")
    p.a.run(f"copy {DRIVE}; goes_on io; systemctl stop io")
    p.step("packages were installed again under I/O, which went on with the new daemon")


def remove(p):
    p.b.run("dpkg --purge smartio; ! systemctl -q is-active smartiod; test ! -e /run/smartiod; test ! -e /usr/bin/smartiod;"
            "! systemctl cat smartiod")
    p.step("and removed: nothing runs")


class Installed(cluster.Cluster):
    name = "installed"
    doc = __doc__
    memory = 1024
    tell = "journalctl -q -u smartiod --no-pager | tail -n 30; cat /tmp/dpkg.log; systemctl status --no-pager smartiod"
    checks = (install, use, upgrade, remove)

    def prepare(self, build, folder):
        super().prepare(build, folder)
        self.debs = make_packages(build)
        self.root = debian_root.get(needs(self.debs))

    def build_initrd(self, kernel, build, into):
        image = Initrd()
        debian_root.fill(image, self.root)
        lib = f"/usr/lib/modules/{kernel.release}"
        clients = ntb_clients.get(kernel)
        for path in (*dkms_modules(self.debs, kernel, self.folder), f"{clients}/ntb.ko",
                     shim.module(kernel, build, ntb=clients), *kernel.modules("e1000e", "nvme")):
            image.add_file(f"{lib}/updates/{os.path.basename(path)}", path)
        conf = "usr/lib/modules-load.d/smartio.conf"
        image.add_file("/" + conf, f"{self.folder}/dkms/{conf}")
        for name in INSTALLED:
            path = deb(self.debs, name)
            image.add_file(f"/opt/test/debs/{os.path.basename(path)}", path)
        image.add_file("/opt/test/cluster.yaml", f"{self.folder}/cluster.yaml")
        for name in os.listdir(f"{self.folder}/keys"):
            image.add_file(f"/opt/test/keys/{name}", f"{self.folder}/keys/{name}")
        for name, source in (("lib.sh", "guest/lib.sh"), ("installed-lib.sh", "installed-lib.sh"), ("shell", "installed-shell.sh")):
            image.add_file(f"/opt/test/{name}", os.path.join(HERE, source))
        image.add_data("/etc/systemd/system/shell.service", SHELL)
        image.add_link("/etc/systemd/system/multi-user.target.wants/shell.service", "/etc/systemd/system/shell.service")
        image.add_link("/etc/systemd/system/default.target", "/lib/systemd/system/multi-user.target")
        image.write(into)


if __name__ == "__main__":
    sys.exit(pair.main(Installed()))
