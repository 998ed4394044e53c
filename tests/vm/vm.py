#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a test in a virtual machine: guest/NAME.sh, with the programs of a build.

usage: vm.py BUILD MACHINE TEST [--console]
       vm.py --list

MACHINE is none-6.1, intel-6.12, amd-6.1, debug and so on: IOMMU and kernel ("debug" alone is the debug
kernel with Intel's IOMMU). Exit status 77, and a line that says why, if there is no QEMU or no
kernel to be had. A script's head may ask for more:
  # programs: PATH...   of the build, besides smartio, smartiod and smartio-nvme; or of the system
  # modules: NAME...    kernel modules to come along, in /modules; load_modules loads them
  # drive: SIZE         bytes of the drive; 64M
  # memory: MB          of the machine; 512, the debug kernel 1024
  # limit: SECONDS      of the whole test; 300
  # append: WORDS       to the kernel's command line
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import cache
import kernel as kernels
import shim
from initrd import Initrd
from machine import IOMMU, Failed, Machine, check_qemu

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, "guest")
PROGRAMS = ("tools/smartio", "smartiod/smartiod", "drivers/nvme-user/smartio-nvme")
SKIP = 77


class Script:
    """A test's script and what its head asks for."""

    def __init__(self, name):
        self.path = os.path.join(GUEST, name + ".sh")
        with open(self.path, encoding="utf-8") as f:
            text = f.read()
        self.asks = dict(re.findall(r"^# (programs|modules|drive|memory|limit|append): (.*)$", text, re.M))

    def words(self, what):
        return self.asks.get(what, "").split()

    def number(self, what, default):
        value = self.asks.get(what, str(default))
        if value.endswith("M"):
            return int(value[:-1]) << 20
        return int(value)


def parse_machine(name):
    """(kernel, IOMMU) of a machine's name."""
    iommu, _, kernel = ("intel-" + name if name == "debug" else name).partition("-")
    if iommu not in IOMMU or kernel not in (*kernels.STOCK, "debug"):
        raise SystemExit(f"vm.py: no machine is called {name}")
    return kernel, iommu


def find_program(build, word):
    """Of the build, if the word is a path; else of this system."""
    if "/" in word:
        return os.path.join(build, word)
    path = shutil.which(word)
    if not path:
        raise cache.Unavailable(f"{word} is not installed")
    return path


def build_initrd(build, kernel, iommu, script, into):
    image = Initrd()
    busybox = shutil.which("busybox")
    if not busybox or subprocess.run(["ldd", busybox], capture_output=True).returncode == 0:
        raise cache.Unavailable("no static busybox: apt-get install busybox-static")
    image.add_file("/bin/busybox", busybox)
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            image.add_link("/bin/" + applet, "busybox")
    for folder in ("/dev", "/proc", "/sys", "/tmp", "/run", "/root"):
        image.add_folder(folder)
    image.add_device("/dev/console", 5, 1)
    for word in (*PROGRAMS, "setpriv", *script.words("programs")):
        image.add_program(find_program(build, word))
    image.add_data("/etc/passwd", "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n"
                                  "other:x:1001:1001::/tmp:/bin/sh\n")
    image.add_data("/etc/group", "root:x:0:\nsmartio:x:900:user\nuser:x:1000:\nother:x:1001:\n")
    with open(os.path.join(GUEST, "init"), encoding="utf-8") as f:
        image.add_data("/init", f.read(), 0o755)
    image.add_file("/lib.sh", os.path.join(GUEST, "lib.sh"))
    with open(script.path, encoding="utf-8") as f:
        image.add_data("/test.sh", f"KERNEL={kernel.name}\nIOMMU={iommu}\n" + f.read())
    order = []
    for name in script.words("modules"):
        if name == "smartio":
            order.append(shim.module(kernel, build))
        else:
            order += [m for m in kernel.modules(name) if m not in order]
    for path in order:
        image.add_file("/modules/" + os.path.basename(path), path)
    image.add_data("/modules/order", "".join(os.path.basename(p) + "\n" for p in order))
    image.write(into)


def serve_host(machine, drive, words):
    """What a script asks of us with `host`. Returns the answer."""
    what, *args = words
    if what == "sha256":  # OFFSET LENGTH: of the drive's file
        with open(drive, "rb") as f:
            f.seek(int(args[0]))
            return hashlib.sha256(f.read(int(args[1]))).hexdigest()
    if what == "device_del":  # take the drive out, as a hand would
        machine.qmp("device_del", id="nvme0")
        return ""
    raise Failed(f"the script asks for {what}, which the host does not know")


def make_drive(path, size):
    """A drive whose first megabyte is not empty, and differs each time."""
    with open(path, "wb") as f:
        f.write(os.urandom(1 << 20))
        f.truncate(size)


def converse(machine, drive):
    """Serve the script until it ends."""
    for line in machine.lines():
        if line.startswith("HOST "):
            try:
                machine.answer("ok " + serve_host(machine, drive, line.split()[1:]))
            except Failed as e:
                machine.answer(f"no: {e}")
        elif line.startswith("END "):
            if line != "END 0":
                raise Failed(f"the script failed ({line[4:]})")
            return


def run(build, machine_name, test, show):
    kernel_name, iommu = parse_machine(machine_name)
    script = Script(test)
    check_qemu()
    start = time.monotonic()
    kernel = kernels.get(kernel_name)
    with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder:
        initrd, drive = os.path.join(folder, "initrd"), os.path.join(folder, "drive")
        build_initrd(build, kernel, iommu, script, initrd)
        make_drive(drive, script.number("drive", 64 << 20))
        memory = script.number("memory", 1024 if kernel_name == "debug" else 512)
        append = "ignore_loglevel" if kernel_name == "debug" else "loglevel=5"
        append += " " + " ".join(script.words("append"))
        ready = time.monotonic()
        with Machine(kernel, iommu, initrd, drive, memory, append,
                     script.number("limit", 300)) as m:
            failure = None
            try:
                converse(m, drive)
            except Failed as e:
                failure = str(e)
            reports = m.reports()
            if reports and not failure:
                failure = f"the kernel reports: {reports[0]}"
            if failure or show:
                print(f"--- console of {machine_name}\n{m.console()}\n--- the script")
                print("\n".join(m.talk))
        took = f"{ready - start:.0f} s to prepare, {time.monotonic() - ready:.0f} s in the machine"
        if failure:
            print(f"{test} on {machine_name}: FAILED: {failure} ({took})")
            return 1
        print(f"{test} on {machine_name}: passed ({took})")
        return 0


def main():
    words = [w for w in sys.argv[1:] if w != "--console"]
    if words == ["--list"]:
        print("\n".join(sorted(f[:-3] for f in os.listdir(GUEST)
                               if f.endswith(".sh") and f != "lib.sh")))
        return 0
    if len(words) != 3:
        sys.exit(__doc__.strip())
    try:
        return run(os.path.abspath(words[0]), words[1], words[2], "--console" in sys.argv)
    except cache.Unavailable as e:
        print(f"{words[2]} on {words[1]}: skipped: {e}")
        return SKIP


if __name__ == "__main__":
    sys.exit(main())
