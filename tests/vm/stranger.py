#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A machine whose drive is our NVMe model, served by vfio-user to a QEMU: Linux partitions, fills and checks it.

usage: stranger.py BUILD KERNEL [--console]

Exit status 77, and a line that says why, if there is no QEMU that speaks vfio-user, or no kernel to be had.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import paths  # noqa: F401
import cache
import kernel as kernels
import vfio_qemu
from initrd import Initrd
from machine import HARMLESS, REPORT, die_with_parent

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77
LIMIT = 240  # seconds
TOPOLOGY = """cluster: stranger
hosts:
  vm:
    kind: machine
    devices: { disk: { type: nvme, size: 64M, queue_pairs: 4, vectors: 5, serial: STRANGER } }
"""
MEMORY = 512  # MB


def build_initrd(kernel, into):
    image = Initrd()
    image.add_base()
    for word in ("mkfs.ext4", "e2fsck", "nvme"):
        path = shutil.which(word) or shutil.which(word, path="/usr/sbin:/sbin")
        if path:
            image.add_program(path)
        elif word != "nvme":
            raise cache.Unavailable(f"{word} is not installed: apt-get install e2fsprogs")
    modules = kernel.modules("nvme", "crc32c_generic", "ext4")
    for path in modules:
        image.add_file("/modules/" + os.path.basename(path), path)
    image.add_data("/modules/order", "".join(os.path.basename(p) + "\n" for p in modules))
    with open(os.path.join(HERE, "stranger.sh"), encoding="utf-8") as f:
        image.add_data("/init", f.read(), 0o755)
    image.write(into)


def start_emu(build, folder, log, topology):
    """Our side, when it is ready."""
    os.mkdir(f"{folder}/state", 0o700)
    path = f"{folder}/state/topology.yaml"  # where commands of smartio look for it
    with open(path, "w", encoding="ascii") as f:
        f.write(topology)
    ready, theirs = os.pipe()
    emu = subprocess.Popen([f"{build}/emu/smartio-emu", "--topology", path, "--state",
                            f"{folder}/state", "--ready-fd", str(theirs)], pass_fds=[theirs], stderr=log,
                           preexec_fn=die_with_parent)
    os.close(theirs)
    if os.read(ready, 6) != b"ready\n":
        raise RuntimeError("smartio-emu does not start")
    os.close(ready)
    return emu


def run_machine(kernel, folder, live):
    """What it said. It switches itself off; a time limit does so else."""
    words = [*vfio_qemu.command(), "-accel", "tcg,thread=single", "-M", "q35,memory-backend=ram0", "-smp", "2", "-m",
             str(MEMORY), "-cpu", "qemu64,+rdrand", "-object", f"memory-backend-memfd,id=ram0,size={MEMORY}M,share=on",
             "-display", "none", "-vga", "none", "-nic", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
             "-kernel", kernel.image, "-initrd", f"{folder}/initrd", "-append",
             "console=ttyS0 loglevel=5 panic=-1 oops=panic no_timer_check random.trust_cpu=on watchdog_thresh=60",
             "-device", '{"driver":"vfio-user-pci","socket":{"type":"unix","path":"%s/state/vfio.disk"},"rombar":0}'
             % folder]
    qemu = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            preexec_fn=die_with_parent)
    timer = threading.Timer(LIMIT, qemu.kill)
    timer.start()
    said = b""
    for line in qemu.stdout:
        said += line
        if live:
            print(line.decode(errors="replace"), end="", flush=True)
    qemu.wait()
    timer.cancel()
    return said


def judge(said, log):
    """What is wrong; None: nothing."""
    if b"STRANGER PASSED" not in said:
        return "the machine did not come to its end"
    for line in said.splitlines():
        if REPORT.search(line) and not HARMLESS.search(line):
            return "the kernel reports: " + line.decode(errors="replace")
    if "fault no." in log or "fatal" in log:
        return "the drive complains"
    if "its peer is gone" not in log:
        return "smartio-emu has not seen the machine's end"
    return None


def main():
    words = [w for w in sys.argv[1:] if w != "--console"]
    live = "--console" in sys.argv
    if len(words) != 2 or words[1] not in kernels.STOCK:
        sys.exit(__doc__.strip())
    with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder, \
            open(f"{folder}/log", "w+", encoding="utf-8") as log:
        try:
            kernel = kernels.get(words[1])
            vfio_qemu.command()
            build_initrd(kernel, f"{folder}/initrd")
        except cache.Unavailable as e:
            print(f"stranger on {words[1]}: skipped: {e}")
            return SKIP
        emu = start_emu(words[0], folder, log, TOPOLOGY)
        try:
            said = run_machine(kernel, folder, live)
        finally:
            emu.terminate()
            status = emu.wait()
        log.seek(0)
        text = log.read()
        wrong = judge(said, text) or (f"smartio-emu ended with {status}" if status else None)
        if wrong and not live:
            print(said.decode(errors="replace"))
        print("\n".join(line.decode(errors="replace") for line in said.splitlines() if line.startswith(b"STRANGER")))
        print(text)
        print(f"stranger on {words[1]}: {'FAILED: ' + wrong if wrong else 'passed'}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
