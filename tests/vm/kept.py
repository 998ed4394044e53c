#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A Debian with systemd on which our packages share a drive by VFIO: no module of ours, and every process of ours that
is not the user's is restarted and killed under I/O.

usage: kept.py BUILD KERNEL [--console] [--soak]

KERNEL is 6.1 or 6.12, where devices are had by their IOMMU groups, or 6.12-iommufd.
"""
import os
import subprocess
import sys
import tempfile
import time

import paths  # noqa: F401
import cache
import debian_root
import installed
import kernel as kernels
import vfio_modules
import vfio_qemu
from initrd import Initrd
from machine import Failed
from pair import IOMMU, SKIP, ask
from shell_machine import ShellMachine

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 600  # seconds
SLOT = 8
PLACE = f"0000:00:{SLOT:02x}.0"
MEMORY = 1024  # MB
TELL = ("journalctl -q -u smartiod-vfio -u smartio-vfio --no-pager -o short-monotonic | tail -n 60; cat /tmp/dpkg.log | tail -n 5;"
        "systemctl status --no-pager smartio-vfio")
ENDS = (("smartio-vfio", "kill"), ("smartiod-vfio", "kill"), ("smartio-vfio", "restart"), ("smartiod-vfio", "restart"))


def build_initrd(kernel, debs, root, into):
    image = Initrd()
    debian_root.fill(image, root)
    lib = f"/usr/lib/modules/{kernel.release}"
    for path in kernel.modules("nvme", "vfio_iommu_type1", "vfio_pci"):
        image.add_file(f"{lib}/updates/{os.path.basename(path)}", path)
    for name in installed.INSTALLED:
        path = installed.deb(debs, name)
        image.add_file(f"/opt/test/debs/{os.path.basename(path)}", path)
    for name, source in (("lib.sh", "guest/lib.sh"), ("installed-lib.sh", "installed-lib.sh"),
                         ("kept-lib.sh", "kept-lib.sh"), ("shell", "installed-shell.sh")):
        image.add_file(f"/opt/test/{name}", os.path.join(HERE, source))
    image.add_data("/etc/systemd/system/shell.service", installed.SHELL)
    image.add_link("/etc/systemd/system/multi-user.target.wants/shell.service", "/etc/systemd/system/shell.service")
    image.add_link("/etc/systemd/system/default.target", "/lib/systemd/system/multi-user.target")
    image.write(into)


class Test:
    def __init__(self, machine, soak, iommufd):
        self.m, self.soak, self.iommufd = machine, soak, iommufd
        self.since = time.monotonic()

    def run(self, command):
        return self.m.run(f". /opt/test/kept-lib.sh; {command}")

    def step(self, text):
        print(f"{text} ({time.monotonic() - self.since:.0f} s)", flush=True)


def install(t):
    """The commands of docs/vfio.md."""
    by = "iommufd" if t.iommufd else "group"
    t.run("start_alone; install_packages; systemctl enable -q --now smartiod-vfio; until_ok answers; "
          f"smartio device add {PLACE} --vfio; until_ok has_device {PLACE}; "
          f"smartio device info {PLACE} | grep 'had of VFIO by *{by}$'")
    t.step(f"from packages, with vfio-pci, the drive is shared, by {by}")
    print(t.run("systemd-analyze security --no-pager smartiod-vfio | tail -n 1;"
                "systemd-analyze security --no-pager smartio-vfio | tail -n 1; smartio doctor"))
    t.run(f"systemd-run -q --unit=manager smartio-nvme manager {PLACE}; "
          f"smartio-nvme copy-in {PLACE} /usr/bin/smartiod; "
          f"smartio-nvme copy-out {PLACE} - --length $(stat -c %s /usr/bin/smartiod) | cmp - /usr/bin/smartiod")
    t.step("a file was written and read")


def restart_all(t):
    """I/O goes on, whoever ends."""
    t.run(f"start_io {PLACE}; until_ok queue_pairs {PLACE} 1")
    t.run("remember")
    for i in range(40 if t.soak else 8):
        unit, how = ENDS[i % len(ENDS)]
        t.run(f"end_one {unit} {how}; goes_on io")
    t.run("until_ok as_before")
    t.run(f"copy {PLACE}; goes_on io")
    t.step("both processes were killed and restarted under I/O, which went on, and holds what it held")


def die_meanwhile(t):
    """A program is killed while nobody is there to hear of it."""
    t.run(f"systemctl stop io; remember; start_io {PLACE}")
    t.run("before=$(main_pid smartio-vfio); io=$(main_pid io); kill -STOP $before; kill -9 $io; kill -9 $before; "
          "until_ok comes_back smartio-vfio $before; until_ok answers; until_ok as_before")
    t.run(f"copy {PLACE}")
    t.step("a client was killed while smartio-vfio was dead: nothing is left of it")


def give_back(t):
    t.run("systemctl stop manager; "
          f"until_ok smartio device remove {PLACE}; until_ok test -b /dev/nvme0n1")
    t.run("systemctl stop smartiod-vfio smartio-vfio smartio-vfio.socket; dpkg --purge smartio >/dev/null 2>&1; "
          "! systemctl cat smartio-vfio 2>/dev/null; test ! -e /run/smartiod")
    t.step("the drive is nvme.ko's again, and nothing of ours is left")


CHECKS = (install, restart_all, die_meanwhile, give_back)


def run(machine, soak, iommufd):
    """What is wrong; None: nothing."""
    try:
        machine.wait()
        t = Test(machine, soak, iommufd)
        t.step("the machine runs systemd")
        for check in CHECKS:
            check(t)
    except Failed as e:
        return str(e)
    return machine.report()


def main():
    options = {w for w in sys.argv[1:] if w.startswith("--")}
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    if len(words) != 2 or words[1] not in (*kernels.STOCK, vfio_modules.NAME) or options - {"--console", "--soak"}:
        sys.exit(__doc__.strip())
    build = os.path.abspath(words[0])
    with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder:
        try:
            kernel = kernels.get(words[1])
            vfio_qemu.command()
            debs = installed.make_packages(build)
            build_initrd(kernel, debs, debian_root.get(installed.needs(debs)), f"{folder}/initrd")
        except cache.Unavailable as e:
            print(f"kept on {words[1]}: skipped: {e}")
            return SKIP
        with open(f"{folder}/drive", "wb") as f:
            f.truncate(16 << 20)
        tsc_khz = subprocess.run([f"{build}/tests/vm/tsc_khz"], check=True, capture_output=True, text=True).stdout.strip()
        drive = ("-blockdev", f"raw,node-name=disk0,file.driver=file,file.filename={folder}/drive,cache.no-flush=on",
                 "-device", f"nvme,serial=SIO0,drive=disk0,addr={SLOT:x}")
        with ShellMachine("alone", kernel, f"{folder}/initrd", folder, [], tsc_khz, memory=MEMORY,
                          more=(*IOMMU["intel"], *drive)) as m:
            m.limit(LIMIT * (10 if "--soak" in options else 1))
            m.live = "--console" in options
            wrong = run(m, "--soak" in options, words[1] == vfio_modules.NAME)
            if wrong:
                print(ask(m, TELL))
                print(m.console()[-6000:])
        print(f"kept on {words[1]}: {'FAILED: ' + wrong if wrong else 'passed'}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
