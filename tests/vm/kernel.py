#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The kernels of the test machines.

usage: kernel.py 6.1|6.12|debug

Debian's own, by version, with their headers; and the debug kernel, built from Debian's source of
6.12 with debug-kernel.config. Versions are resolved through meta packages; all is cached.
"""
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys

import cache
import packages

HERE = os.path.dirname(os.path.abspath(__file__))
DEBUG_CONFIG = os.path.join(HERE, "debug-kernel.config")
DEBUG_SOURCE = "linux-source-6.12"
# The meta packages: of image and of headers.
STOCK = {
    "6.1": ("linux-image-amd64", "linux-headers-amd64"),
    "6.12": ("linux-image-6.12-amd64", "linux-headers-6.12-amd64"),
}
# What machines load: the driver that gets the drive back, and what that needs.
WANTED = (r"/boot/vmlinuz"
          r"|/(drivers/nvme/(host/nvme|host/nvme-core|common/[^/]+)|block/t10-pi|crypto/[^/]+"
          r"|lib/[^/]+|drivers/dma-buf/[^/]+|fs/(ext4|jbd2)/[^/]+|fs/mbcache|drivers/md/dm-mod"
          r"|arch/x86/crypto/crc[^/]+|drivers/(ptp/ptp|pps/pps_core|net/ethernet/intel/e1000e/e1000e)"
          r")\.ko(\.xz)?$")


class Kernel:
    """A folder of the cache: vmlinuz, modules/ (flat, *.ko), build/ (to build modules against)."""

    def __init__(self, name, path):
        self.name = name
        self.path = path
        self.image = os.path.join(path, "vmlinuz")
        self.build = os.path.join(path, "build")
        with open(os.path.join(path, "release"), encoding="ascii") as f:
            self.release = f.read().strip()

    def module(self, name):
        """Path of a module; None: it is built in, or not there."""
        path = os.path.join(self.path, "modules", name.replace("-", "_") + ".ko")
        return path if os.path.exists(path) else None

    def modules(self, *names):
        """These modules and what they need, in the order to load them."""
        order = []

        def add(name):
            path = self.module(name)
            if path is None or path in order:
                return
            for need in module_needs(path):
                add(need)
            order.append(path)

        for name in names:
            add(name)
        return order


def module_needs(path):
    """What a module says it depends on."""
    with open(path, "rb") as f:
        found = re.search(rb"\0depends=([^\0]*)\0", f.read())
    return found.group(1).decode().split(",") if found and found.group(1) else []


def gather_modules(tree, into):
    """All *.ko and *.ko.xz below @tree, unpacked, flat, with underscores in their names."""
    os.makedirs(into, exist_ok=True)
    for folder, _, files in os.walk(tree):
        for name in files:
            stem, dot, kind = name.partition(".ko")
            if not dot:
                continue
            with (lzma.open if kind == ".xz" else open)(os.path.join(folder, name), "rb") as f:
                data = f.read()
            with open(os.path.join(into, stem.replace("-", "_") + ".ko"), "wb") as f:
                f.write(data)


def unpack_headers(meta, into):
    """Headers and kbuild of a kernel below @into; the place to build modules in."""
    package = packages.resolve(meta)
    parts = [package, *(p for p in packages.depends(package)
                        if re.match(r"linux-(headers|kbuild)-", p))]
    for part in parts:
        deb = packages.download(part, into)
        packages.unpack(deb, into)
        os.unlink(deb)
    folder = os.path.join("usr", "src", package)
    # The one absolute path in there leads to the common headers.
    makefile = os.path.join(into, folder, "Makefile")
    with open(makefile, encoding="utf-8") as f:
        text = f.read()
    with open(makefile, "w", encoding="utf-8") as f:
        f.write(text.replace("/usr/src/", "$(dir $(abspath $(lastword $(MAKEFILE_LIST))))../"))
    os.symlink(folder, os.path.join(into, "build"))


def unpack_image(path):
    """An image that is packed with xz, as 6.1's, unpacked: emulated processors take seconds for that, at
    each start. QEMU starts an ELF file by the kernel's PVH entry. (zstd takes them less than one.)"""
    with open(path, "rb") as f:
        image = f.read()
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)  # Documentation/arch/x86/boot.rst
    packed = image[(setup_sectors + 1) * 512 + offset:][:length]
    if packed.startswith(b"\xfd7zXZ\0"):
        with open(path, "wb") as f:
            f.write(lzma.LZMADecompressor().decompress(packed))


def stock(name):
    image, headers = STOCK[name]
    package = packages.resolve(image)
    content = hashlib.sha256(WANTED.encode() + b"xz unpacked").hexdigest()[:8]
    key = f"{name}-{packages.version(package)}-{content}"

    def make(into):
        deb = packages.download(package, into)
        tree = os.path.join(into, "tree")
        os.mkdir(tree)
        packages.unpack(deb, tree, WANTED)
        os.unlink(deb)
        (image,) = os.listdir(os.path.join(tree, "boot"))
        os.rename(os.path.join(tree, "boot", image), os.path.join(into, "vmlinuz"))
        unpack_image(os.path.join(into, "vmlinuz"))
        gather_modules(tree, os.path.join(into, "modules"))
        shutil.rmtree(tree)
        unpack_headers(headers, into)
        with open(os.path.join(into, "release"), "w", encoding="ascii") as f:
            f.write(image.removeprefix("vmlinuz-") + "\n")

    kernel = Kernel(name, cache.have(key, make))
    cache.forget_others(name + "-", key)
    return kernel


def make_kernel(tree, *words, log):
    """One run of the kernel's make."""
    done = subprocess.run(["make", "-s", "-C", tree, f"-j{min(os.cpu_count(), 8)}", *words],
                          stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        log.flush()
        with open(log.name, encoding="utf-8", errors="replace") as f:
            raise RuntimeError(f"the debug kernel does not build:\n{f.read()[-3000:]}")


def check_config(tree):
    """What was asked for is there: kconfig drops what it finds no way to give, without a word."""
    with open(os.path.join(tree, ".config"), encoding="ascii") as f:
        got = set(f.read().splitlines())
    with open(DEBUG_CONFIG, encoding="ascii") as f:
        want = [w for w in f.read().splitlines() if w.startswith("CONFIG_")]
    missing = [w for w in want if w not in got]
    if missing:
        raise RuntimeError(f"the debug kernel has no {', '.join(missing)}")


def keep_build_tree(tree, into):
    """What building a module needs: a tenth of the tree."""
    target = os.path.join(into, "build")
    keep = ["Makefile", ".config", "Module.symvers", "include", "arch/x86", "scripts", "tools/objtool"]
    for name in keep:
        source = os.path.join(tree, name)
        os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
        os.rename(source, os.path.join(target, name))
    for folder, _, files in os.walk(target):
        for name in files:
            if name.endswith((".o", ".a", ".cmd")) and "scripts" not in folder:
                os.unlink(os.path.join(folder, name))


def debug():
    with open(DEBUG_CONFIG, "rb") as f:
        config = hashlib.sha256(f.read()).hexdigest()[:12]
    key = f"debug-{packages.version(DEBUG_SOURCE)}-{config}"

    def make(into):
        deb = packages.download(DEBUG_SOURCE, into)
        tree = os.path.join(into, "tree")
        os.mkdir(tree)
        packages.unpack(deb, into)
        os.unlink(deb)
        packages.run("tar", "-x", "-f", os.path.join(into, "usr/src", DEBUG_SOURCE + ".tar.xz"),
                     "-C", tree, "--strip-components=1")
        shutil.rmtree(os.path.join(into, "usr"))
        shutil.copy(DEBUG_CONFIG, os.path.join(tree, "kernel/configs/smartio.config"))
        with open(os.path.join(into, "build.log"), "w", encoding="utf-8") as log:
            make_kernel(tree, "tinyconfig", "smartio.config", log=log)
            check_config(tree)
            make_kernel(tree, "bzImage", "modules", log=log)
        shutil.copy(os.path.join(tree, "arch/x86/boot/bzImage"), os.path.join(into, "vmlinuz"))
        gather_modules(tree, os.path.join(into, "modules"))
        release = packages.run("make", "-s", "-C", tree, "kernelrelease")
        with open(os.path.join(into, "release"), "w", encoding="ascii") as f:
            f.write(release)
        keep_build_tree(tree, into)
        shutil.rmtree(tree)

    kernel = Kernel("debug", cache.have(key, make))
    cache.forget_others("debug-", key)
    return kernel


def get(name):
    """The kernel of this name; Unavailable if it cannot be fetched."""
    return debug() if name == "debug" else stock(name)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in (*STOCK, "debug"):
        sys.exit(__doc__.strip())
    try:
        kernel = get(sys.argv[1])
    except (cache.Unavailable, RuntimeError) as e:
        sys.exit(f"kernel.py: {e}")
    print(kernel.release, kernel.path)


if __name__ == "__main__":
    main()
