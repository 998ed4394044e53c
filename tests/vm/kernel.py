#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The kernels of the test machines.

usage: kernel.py 6.1|6.12|debug|netdebug|6.12-iommufd|debug-vfio|backports|backports-iommufd

Debian's own (tools/machine/debian_kernel.py); the debug kernel, built from Debian's source of 6.12 with
debug-kernel.config, in the cache, too; the same with what machines of a pair need besides (debug-net.config); 6.12 with another VFIO, and the debug kernel with one (vfio_modules.py); the newest
of Debian's backports, as it is and with another VFIO (backports_kernel.py).
"""
import hashlib
import os
import shutil
import subprocess

import paths  # noqa: F401
import backports_kernel
import cache
import debian_kernel as debian
import packages
import vfio_modules
from debian_kernel import STOCK, add_modules, gather_modules, stock  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
DEBUG_CONFIG = os.path.join(HERE, "debug-kernel.config")
NET_CONFIG = os.path.join(HERE, "debug-net.config")
DEBUG_SOURCE = "linux-source-6.12"
NAMES = (*STOCK, "debug", "netdebug", vfio_modules.NAME, "debug-vfio", *backports_kernel.NAMES)


def make_kernel(tree, *words, log):
    """One run of the kernel's make."""
    done = subprocess.run(["make", "-s", "-C", tree, f"-j{min(os.cpu_count(), 8)}", *words],
                          stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        log.flush()
        with open(log.name, encoding="utf-8", errors="replace") as f:
            raise RuntimeError(f"the debug kernel does not build:\n{f.read()[-3000:]}")


def check_config(tree, config):
    """What was asked for is there: kconfig drops what it finds no way to give, without a word."""
    with open(os.path.join(tree, ".config"), encoding="ascii") as f:
        got = set(f.read().splitlines())
    missing = [w for w in config.splitlines() if w.startswith("CONFIG_") and w not in got]
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


def read_config(*paths):
    text = ""
    for path in paths:
        with open(path, encoding="ascii") as f:
            text += f.read()
    return text


def debug(name, *paths):
    config = read_config(*paths)
    key = f"{name}-{packages.version(DEBUG_SOURCE)}-{hashlib.sha256(config.encode()).hexdigest()[:12]}"

    def make(into):
        deb = packages.download(DEBUG_SOURCE, into)
        tree = os.path.join(into, "tree")
        os.mkdir(tree)
        packages.unpack(deb, into)
        os.unlink(deb)
        packages.run("tar", "-x", "-f", os.path.join(into, "usr/src", DEBUG_SOURCE + ".tar.xz"),
                     "-C", tree, "--strip-components=1")
        shutil.rmtree(os.path.join(into, "usr"))
        with open(os.path.join(tree, "kernel/configs/smartio.config"), "w", encoding="ascii") as f:
            f.write(config)
        with open(os.path.join(into, "build.log"), "w", encoding="utf-8") as log:
            make_kernel(tree, "tinyconfig", "smartio.config", log=log)
            check_config(tree, config)
            make_kernel(tree, "bzImage", "modules", log=log)
        shutil.copy(os.path.join(tree, "arch/x86/boot/bzImage"), os.path.join(into, "vmlinuz"))
        gather_modules(tree, os.path.join(into, "modules"))
        release = packages.run("make", "-s", "-C", tree, "kernelrelease")
        with open(os.path.join(into, "release"), "w", encoding="ascii") as f:
            f.write(release)
        keep_build_tree(tree, into)
        shutil.rmtree(tree)

    kernel = debian.Kernel(name, cache.have(key, make))
    cache.forget_others(f"{name}-", key)
    return kernel


def get(name):
    """The kernel of this name; Unavailable if it cannot be fetched."""
    if name == vfio_modules.NAME:
        return vfio_modules.get()
    if name in backports_kernel.NAMES:
        return backports_kernel.get(name)
    if name == "debug-vfio":
        return vfio_modules.for_debug(debug("debug", DEBUG_CONFIG))
    if name == "netdebug":
        return debug(name, DEBUG_CONFIG, NET_CONFIG)
    return debug(name, DEBUG_CONFIG) if name == "debug" else stock(name)


if __name__ == "__main__":
    debian.main(__doc__, NAMES, get)
