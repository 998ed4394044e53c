#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""VFIO with what Debian has switched off, for Debian's 6.12: iommufd, devices' own nodes, and the mode without an IOMMU;
and VFIO for the debug kernel, which has none.

usage: vfio_modules.py

The kernel is as it is; its VFIO is built beside it out of Debian's source of the same kernel, unchanged, with other
options, in the cache.
"""
import hashlib
import os
import shutil
import subprocess
import sys

import paths  # noqa: F401
import cache
import debian_kernel as debian
import packages

NAME = "6.12-iommufd"
BASE = "6.12"
SOURCE = "linux-source-6.12"
WANTED = ("drivers/vfio/*", "drivers/iommu/iommufd/*", "drivers/iommu/iommu-priv.h", "lib/interval_tree.c")
OPTIONS = {"IOMMUFD": "m", "VFIO": "m", "VFIO_GROUP": "y", "VFIO_CONTAINER": "y", "VFIO_DEVICE_CDEV": "y", "VFIO_NOIOMMU": "y",
           "VFIO_IOMMU_TYPE1": "m", "VFIO_PCI_CORE": "m", "VFIO_PCI": "m",
           # others' devices
           "VFIO_MDEV": "", "MLX5_VFIO_PCI": "", "VIRTIO_VFIO_PCI": "", "VFIO_DEBUGFS": ""}
# What the kernel's configuration, which is as Debian made it, does not define.
DEFINES = ("IOMMUFD_MODULE", "VFIO_DEVICE_CDEV", "VFIO_NOIOMMU")
MODULES = ("iommufd", "vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci")
# Devices by their IOMMU groups alone: of iommufd the debug kernel's IOMMU driver knows nothing.
DEBUG_WANTED = ("drivers/vfio/*", "virt/lib/*")
DEBUG_OPTIONS = {**OPTIONS, "IOMMUFD": "", "VFIO_DEVICE_CDEV": "", "VFIO_NOIOMMU": "", "IRQ_BYPASS_MANAGER": "m",
                 "VFIO_PCI_IGD": "", "VFIO_PCI_VGA": "", "VFIO_PCI_INTX": "y", "VFIO_PCI_MMAP": "y",
                 "VFIO_VIRQFD": "y"}
DEBUG_DEFINES = ("VFIO_MODULE", "VFIO_GROUP", "VFIO_CONTAINER", "VFIO_PCI_INTX", "VFIO_PCI_MMAP", "VFIO_VIRQFD",
                 "HAVE_KVM_IRQ_BYPASS")
DEBUG_MODULES = ("irqbypass", "vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci")


def add_spans(tree):
    """iommufd walks interval trees in a way that the kernel has only where it is switched on: it comes along."""
    with open(os.path.join(tree, "lib/interval_tree.c"), encoding="utf-8") as f:
        text = f.read()
    _, _, spans = text.partition("#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER\n")
    spans, _, _ = spans.rpartition("#endif")
    if not spans:
        raise RuntimeError("the kernel's lib/interval_tree.c has no spans")
    folder = os.path.join(tree, "drivers/iommu/iommufd")
    with open(os.path.join(folder, "spans.c"), "w", encoding="utf-8") as f:
        f.write("#include <linux/interval_tree.h>\n#include <linux/export.h>\n" + spans)
    with open(os.path.join(folder, "Makefile"), "a", encoding="ascii") as f:
        f.write("iommufd-y += spans.o\n")


def build(make, tree, folders, options, defines):
    """@make: the command that builds modules of @tree for a kernel."""
    with open(os.path.join(tree, "Kbuild"), "w", encoding="ascii") as f:
        f.write("".join(f"obj-m += {folder}/\n" for folder in folders))
    done = subprocess.run(
        [*make, f"-j{os.cpu_count()}", "CONFIG_DEBUG_INFO_BTF_MODULES=",
         *(f"CONFIG_{name}={value}" for name, value in options.items()),
         "KCFLAGS=" + " ".join(f"-DCONFIG_{name}=1" for name in defines), "modules"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the kernel's VFIO does not build:\n{done.stderr[-4000:]}")


def gather(tree, into, modules):
    debian.gather_modules(tree, os.path.join(into, "modules"))
    for name in modules:
        if not os.path.exists(os.path.join(into, "modules", name.replace("-", "_") + ".ko")):
            raise RuntimeError(f"the kernel's source has no {name}")


def get():
    """Debian's kernel of that version, whose VFIO is ours."""
    stock = debian.stock(BASE)
    how = hashlib.sha256(repr((WANTED, OPTIONS, DEFINES)).encode()).hexdigest()[:8]
    key = f"vfio-{os.path.basename(stock.path)}-{packages.version(SOURCE)}-{how}"

    def make(into):
        deb = packages.download(SOURCE, into)
        tree = os.path.join(into, "tree")
        os.mkdir(tree)
        packages.unpack_source(deb, tree, WANTED)
        os.unlink(deb)
        add_spans(tree)
        build(["make", "-C", stock.build, f"M={tree}"], tree, ("drivers/iommu/iommufd", "drivers/vfio"), OPTIONS, DEFINES)
        gather(tree, into, MODULES)
        shutil.rmtree(tree)

    kernel = debian.Kernel(NAME, stock.path)
    kernel.folders.insert(0, os.path.join(cache.have(key, make), "modules"))
    cache.forget_others(f"vfio-{BASE}-", key)
    return kernel


def for_debug(kernel):
    """The debug kernel, with VFIO."""
    how = hashlib.sha256(repr((DEBUG_WANTED, DEBUG_OPTIONS, DEBUG_DEFINES)).encode()).hexdigest()[:8]
    key = f"vfio-{os.path.basename(kernel.path)}-{how}"

    def make(into):
        deb = packages.download(SOURCE, into)
        tree = os.path.join(into, "tree")
        os.mkdir(tree)
        packages.unpack_source(deb, tree, DEBUG_WANTED)
        os.unlink(deb)
        build(["make", "-C", kernel.build, f"M={tree}"], tree, ("virt/lib", "drivers/vfio"), DEBUG_OPTIONS, DEBUG_DEFINES)
        gather(tree, into, DEBUG_MODULES)
        shutil.rmtree(tree)

    kernel.folders.insert(0, os.path.join(cache.have(key, make), "modules"))
    cache.forget_others("vfio-debug-", key)
    return kernel


if __name__ == "__main__":
    try:
        print(get().folders[0])
    except (cache.Unavailable, RuntimeError) as e:
        sys.exit(f"vfio_modules.py: {e}")
