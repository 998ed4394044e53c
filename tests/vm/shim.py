# SPDX-License-Identifier: BSD-2-Clause
"""smartio.ko and ntb_hw_smartio.ko, built for a kernel of the cache; alone: is smartio.ko thin?"""
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys

LINES = 5500  # under so many
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def copy_if_new(source, target):
    """Keeps the time of what did not change, so that make does nothing then."""
    with open(source, "rb") as f:
        data = f.read()
    if os.path.exists(target):
        with open(target, "rb") as f:
            if f.read() == data:
                return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(source, target)


def copy_sources(work):
    for pattern in ("shim/*", "shim/lend/*", "shim/ntb/*", "shim/test/*", "include/smartio/uapi.h", "include/smartio/vntb.h"):
        for path in glob.glob(pattern, root_dir=ROOT):
            if os.path.isfile(os.path.join(ROOT, path)):
                copy_if_new(os.path.join(ROOT, path), os.path.join(work, path))


def module(kernel, build, ntb=None):
    """Path of smartio.ko, built in @build if it is not yet. @ntb: a folder with the symbols of the kernel's NTB
    core: path of ntb_hw_smartio.ko."""
    # C=1: sparse looks at what is compiled. What was built without it, sparse has yet to see.
    name = "ntb_hw_smartio.ko" if ntb else "smartio.ko"
    sparse = ["C=1"] if shutil.which("sparse") else []
    work = os.path.join(build, "shim", os.path.basename(kernel.path) + ("-sparse" if sparse else ""))
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        copy_sources(work)
        core = ["CONFIG_NTB=m", f"KBUILD_EXTRA_SYMBOLS={ntb}/Module.symvers"] if ntb else []
        # Debian's kernels carry BTF, for which pahole would be wanted.
        done = subprocess.run(["make", "-C", kernel.build, f"M={os.path.join(work, 'shim')}",
                               "CONFIG_DEBUG_INFO_BTF_MODULES=", "TEST=1", *core, *sparse, "modules"],
                              capture_output=True, text=True)
        if done.returncode != 0 or re.search("(warning|error):", done.stderr):
            shutil.rmtree(os.path.join(work, "shim"))  # the next one must not find it done
            raise RuntimeError(f"{name} for {kernel.release} does not build:\n"
                               f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return os.path.join(work, "shim", name)


def loop(kernel, build):
    """Path of smartio_loop.ko."""
    return os.path.join(os.path.dirname(module(kernel, build)), "test", "smartio_loop.ko")


def main():
    lines = 0
    for path in glob.glob(os.path.join(ROOT, "shim", "*.[ch]")):
        with open(path, encoding="utf-8") as f:
            lines += len(f.readlines())
    print(f"smartio.ko has {lines} lines")
    return 0 if 0 < lines < LINES else 1


if __name__ == "__main__":
    sys.exit(main())
