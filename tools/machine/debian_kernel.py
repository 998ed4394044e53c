#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernels for machines, by version, with their headers, in the cache.

usage: debian_kernel.py 6.1|6.12

Packages are resolved through meta packages.
"""
import hashlib
import lzma
import os
import re
import shutil
import struct
import sys

import cache
import packages

# The meta packages: of image and of headers.
STOCK = {
    "6.1": ("linux-image-amd64", "linux-headers-amd64"),
    "6.12": ("linux-image-6.12-amd64", "linux-headers-6.12-amd64"),
}
# What machines load: the driver that gets the drive back, what that needs, and VFIO.
WANTED = (r"/boot/vmlinuz"
          r"|/(drivers/nvme/(host/nvme|host/nvme-core|common/[^/]+)|block/t10-pi|crypto/[^/]+"
          r"|lib/[^/]+|drivers/dma-buf/[^/]+|fs/(ext4|jbd2)/[^/]+|fs/mbcache|drivers/md/dm-mod"
          r"|drivers/vfio/(pci/)?vfio[^/]*|virt/lib/irqbypass|drivers/iommu/iommufd/iommufd"
          r"|arch/x86/crypto/crc[^/]+|drivers/(ptp/ptp|pps/pps_core|net/ethernet/intel/e1000e/e1000e)"
          r")\.ko(\.xz)?$")


class Kernel:
    """A folder of the cache: vmlinuz, modules/ (flat, *.ko), build/ (to build modules against)."""

    def __init__(self, name, path):
        self.name = name
        self.path = path
        self.image = os.path.join(path, "vmlinuz")
        self.build = os.path.join(path, "build")
        self.folders = [os.path.join(path, "modules")]
        with open(os.path.join(path, "release"), encoding="ascii") as f:
            self.release = f.read().strip()

    def module(self, name):
        """Path of a module; None: it is built in, or not there."""
        paths = (os.path.join(folder, name.replace("-", "_") + ".ko") for folder in self.folders)
        return next(filter(os.path.exists, paths), None)

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


def add_modules(kernel, pattern):
    """More modules of a stock kernel, for those who rarely need them."""
    package = packages.resolve(STOCK[kernel.name][0])
    content = hashlib.sha256(pattern.encode()).hexdigest()[:8]

    def make(into):
        deb = packages.download(package, into)
        packages.unpack(deb, f"{into}/tree", pattern)
        os.unlink(deb)
        gather_modules(f"{into}/tree", f"{into}/modules")
        shutil.rmtree(f"{into}/tree")

    kernel.folders.append(os.path.join(cache.have(f"more-{kernel.release}-{content}", make), "modules"))


def main(usage, names, get):
    """A script's command line: the kernel that it names is fetched, and it is said where it is."""
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        sys.exit(usage.strip())
    try:
        kernel = get(sys.argv[1])
    except (cache.Unavailable, RuntimeError) as e:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {e}")
    print(kernel.release, kernel.path)


if __name__ == "__main__":
    main(__doc__, STOCK, stock)
