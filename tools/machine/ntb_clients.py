#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Linux's NTB core and its clients, which Debian's kernels have switched off, built from Debian's source of the kernel.

usage: ntb_clients.py 6.1|6.12

The files are taken unchanged out of the linux-source package and built beside a kernel of the cache, in the cache.
"""
import os
import re
import shutil
import subprocess
import sys

import cache
import debian_kernel as kernels
import packages

# In the order to load them.
CLIENTS = ("ntb", "ntb_tool", "ntb_pingpong", "ntb_perf", "ntb_transport", "ntb_netdev")
WANTED = ("drivers/ntb", "drivers/net/ntb_netdev.c")


def build(kernel, tree):
    """The modules, in the tree's folder drivers/ntb."""
    folder = os.path.join(tree, "drivers/ntb")
    os.rename(os.path.join(tree, "drivers/net/ntb_netdev.c"), os.path.join(folder, "ntb_netdev.c"))
    with open(os.path.join(folder, "Makefile"), "a", encoding="ascii") as f:
        f.write("obj-$(CONFIG_NTB_NETDEV) += ntb_netdev.o\n")
    options = [f"CONFIG_{name.upper()}=m" for name in CLIENTS]
    done = subprocess.run(["make", "-C", kernel.build, f"M={folder}", "CONFIG_DEBUG_INFO_BTF_MODULES=", *options,
                           "modules"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the NTB clients for {kernel.release} do not build:\n{done.stderr[-4000:]}")


def gather(tree, into):
    """What is kept: the modules, flat, and the symbols that a driver is built against."""
    for folder, _, files in os.walk(tree):
        for name in files:
            if name.endswith(".ko") or name == "Module.symvers":
                shutil.copy(os.path.join(folder, name), os.path.join(into, name))
    missing = [name for name in CLIENTS if not os.path.exists(os.path.join(into, name + ".ko"))]
    if missing:
        raise RuntimeError(f"the kernel's source has no {', '.join(missing)}")


def get(kernel):
    """A folder with CLIENTS as *.ko, and Module.symvers."""
    source = f"linux-source-{'.'.join(kernel.release.split('.')[:2])}"
    key = f"ntb-{os.path.basename(kernel.path)}-{packages.version(source)}"

    def make(into):
        deb = packages.download(source, into)
        tree = os.path.join(into, "tree")
        os.mkdir(tree)
        packages.unpack_source(deb, tree, WANTED)
        os.unlink(deb)
        build(kernel, tree)
        gather(tree, into)
        shutil.rmtree(tree)

    path = cache.have(key, make)
    cache.forget_others(re.match(r"ntb-[^-]*-", key)[0], key)
    return path


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in kernels.STOCK:
        sys.exit(__doc__.strip())
    try:
        print(get(kernels.stock(sys.argv[1])))
    except (cache.Unavailable, RuntimeError) as e:
        sys.exit(f"ntb_clients.py: {e}")


if __name__ == "__main__":
    main()
