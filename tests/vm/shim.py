# SPDX-License-Identifier: BSD-2-Clause
"""smartio.ko and ntb_hw_smartio.ko, built for a kernel of the cache; alone: is smartio.ko thin?"""
import functools
import glob
import os
import shutil
import sys

from paths import ROOT
import shim_modules

LINES = 9450  # under so many; 900 of them are the DMA channels', 400 the multicast groups', 150 what ends late


@functools.cache  # make takes seconds to find that there is nothing to do
def module(kernel, build, ntb=None):
    """Path of smartio.ko, built in @build if it is not yet. @ntb: a folder with the symbols of the kernel's NTB
    core: path of ntb_hw_smartio.ko."""
    # C=1: sparse looks at what is compiled. What was built without it, sparse has yet to see.
    sparse = ["C=1"] if shutil.which("sparse") else []
    work = os.path.join(build, "shim", os.path.basename(kernel.path) + ("-sparse" if sparse else ""))
    folder = shim_modules.build(ROOT, kernel, work, ["TEST=1", *sparse], ntb)
    return os.path.join(folder, "ntb_hw_smartio.ko" if ntb else "smartio.ko")


def ntb_client(kernel, build, ntb):
    """Path of smartio_ntb.ko."""
    return os.path.join(os.path.dirname(module(kernel, build, ntb)), "smartio_ntb.ko")


def sibling(kernel, build, name):
    """Path of another module, of those that smartio.ko is built with."""
    return os.path.join(os.path.dirname(module(kernel, build)), name + ".ko")


def of_tests(kernel, build, name):
    """Path of a module of shim/test."""
    return os.path.join(os.path.dirname(module(kernel, build)), "test", name + ".ko")


def main():
    lines = 0
    for path in glob.glob(os.path.join(ROOT, "shim", "*.[ch]")):
        with open(path, encoding="utf-8") as f:
            lines += len(f.readlines())
    print(f"smartio.ko has {lines} lines")
    return 0 if 0 < lines < LINES else 1


if __name__ == "__main__":
    sys.exit(main())
