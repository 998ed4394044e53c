# SPDX-License-Identifier: BSD-2-Clause
"""smartio machine fetch: what machines need comes into the cache, once; and what is there of it."""
import json
import os
import shutil
import subprocess

import cache
import debian_kernel
import ntb_clients
import packages
import shim_modules
import vfio_qemu
from report import Failed, say

HERE = os.path.dirname(os.path.realpath(__file__))
MODULES = ("smartio.ko", "ntb_hw_smartio.ko")
NEEDS = {"apt-get": "apt", "dpkg": "dpkg", "mmdebstrap": "mmdebstrap", "make": "make", "gcc": "gcc", "xz": "xz-utils"}


def manifest_path(kernel):
    return os.path.join(cache.folder(), f"machine-{kernel}.json")


def sources(asks):
    """The folder with shim/ and include/: the source tree, or what smartio-dkms installs."""
    tree = os.path.dirname(os.path.dirname(HERE))
    installed = f"/usr/src/smartio-{asks['version']}"
    for root in (tree, installed):
        if os.path.exists(os.path.join(root, "shim", "port.c")):
            return root
    raise Failed(f"the sources of SmartIO's kernel modules are not in {installed}: apt-get install smartio-dkms")


def build_modules(asks, kernel, ntb):
    """The folder with MODULES for a kernel of the cache; built if they are not yet."""
    root = sources(asks)
    for command in ("make", "gcc"):
        if not shutil.which(command):
            raise Failed(f"SmartIO's modules are compiled for the kernel, and {command} is not installed: "
                         f"apt-get install {NEEDS[command]}")
    if not os.path.exists(os.path.join(kernel.build, "Makefile")):
        raise Failed(f"the headers of kernel {kernel.release} are missing in {kernel.path}, so no module can be "
                     f"built; remove that folder, and run: {asks['smartio']} machine fetch --kernel {kernel.name}")
    key = f"modules-{os.path.basename(kernel.path)}-{shim_modules.digest(root)}"

    def make(into):
        say(f"compiling SmartIO's modules for Linux {kernel.release}")
        folder = shim_modules.build(root, kernel, os.path.join(into, "build"), ntb=ntb)
        for name in MODULES:
            shutil.copy(os.path.join(folder, name), os.path.join(into, name))
        shutil.rmtree(os.path.join(into, "build"))

    return cache.have(key, make)


def fetch_busybox(into):
    """Of Debian's package; nothing is installed."""
    deb = packages.download("busybox-static", into)
    packages.unpack(deb, into)
    os.unlink(deb)


def have_busybox():
    """This system's, or one in the cache."""
    own = shutil.which("busybox")
    if own and subprocess.run(["ldd", own], capture_output=True).returncode != 0:
        return own
    folder = cache.have("busybox-static", fetch_busybox)
    for path in ("bin/busybox", "usr/bin/busybox"):
        if os.path.exists(os.path.join(folder, path)):
            return os.path.join(folder, path)
    raise Failed(f"{folder} has no busybox; remove it and fetch again")


def announce(asks):
    """What is about to be done."""
    say(f"into {cache.folder()}, from the archive that apt is configured with (nothing is installed; what is there "
        "is kept):")
    say("  QEMU with a vfio-user client, of Debian's trixie-backports: 50 MB, 180 MB unpacked")
    say(f"  Debian's Linux {asks['kernel']} with its headers: 90 MB, 150 MB unpacked")
    say(f"  NTB's core out of linux-source-{asks['kernel']}: 140 MB, of which 3 MB are kept")
    say("  busybox-static, unless this system has it: 1 MB")
    say("then SmartIO's kernel modules are compiled for that kernel")


def fetch(asks):
    announce(asks)
    if asks["dry_run"]:
        return {"kernel": asks["kernel"], "folder": cache.folder(), "fetched": False}
    for command, package in NEEDS.items():
        if not shutil.which(command):
            raise Failed(f"{command} is not installed: apt-get install {package}")
    sources(asks)
    vfio_qemu.command()
    say("QEMU is there")
    kernel = debian_kernel.stock(asks["kernel"])
    say(f"Linux {kernel.release} is there")
    ntb = ntb_clients.get(kernel)
    say("NTB's core is there")
    busybox = have_busybox()
    build_modules(asks, kernel, ntb)
    path = manifest_path(asks["kernel"])
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump({"kernel": kernel.path, "ntb": ntb, "busybox": busybox}, f)
    os.rename(path + ".new", path)
    say("all that machines need is there")
    return {"kernel": asks["kernel"], "folder": cache.folder(), "fetched": True}


def fetched(asks):
    """(kernel, folder of NTB's core, folder of our modules, busybox) of what `fetch` has left."""
    advice = f"run: {asks['smartio']} machine fetch" + ("" if asks["kernel"] == "6.1" else f" --kernel {asks['kernel']}")
    try:
        with open(manifest_path(asks["kernel"]), encoding="utf-8") as f:
            there = json.load(f)
    except (OSError, ValueError):
        raise Failed(f"what machines with Linux {asks['kernel']} need was not fetched yet; {advice}") from None
    qemu_folder = os.path.join(cache.folder(), vfio_qemu.NAME)
    for path in (qemu_folder, *there.values()):
        if not os.path.exists(path):
            raise Failed(f"{path}, which had been fetched, is gone; {advice}")
    kernel = debian_kernel.Kernel(asks["kernel"], there["kernel"])
    return kernel, there["ntb"], build_modules(asks, kernel, there["ntb"]), there["busybox"]
