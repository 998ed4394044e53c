# SPDX-License-Identifier: BSD-2-Clause
"""smartio.ko, built for a kernel of the cache; alone: is it thin?"""
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys

LINES = 3000  # under so many
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


def module(kernel, build):
    """Path of the module, built in @build if it is not yet."""
    # C=1: sparse looks at what is compiled. What was built without it, sparse has yet to see.
    sparse = ["C=1"] if shutil.which("sparse") else []
    work = os.path.join(build, "shim", os.path.basename(kernel.path) + ("-sparse" if sparse else ""))
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = os.path.join(ROOT, "shim")
        for name in os.listdir(sources):
            if os.path.isfile(os.path.join(sources, name)):
                copy_if_new(os.path.join(sources, name), os.path.join(work, "shim", name))
        copy_if_new(os.path.join(ROOT, "include/smartio/uapi.h"),
                    os.path.join(work, "include/smartio/uapi.h"))
        # Debian's kernels carry BTF, for which pahole would be wanted.
        done = subprocess.run(["make", "-C", kernel.build, f"M={os.path.join(work, 'shim')}",
                               "CONFIG_DEBUG_INFO_BTF_MODULES=", *sparse, "modules"],
                              capture_output=True, text=True)
        if done.returncode != 0 or re.search("(warning|error):", done.stderr):
            shutil.rmtree(os.path.join(work, "shim"))  # the next one must not find it done
            raise RuntimeError(f"smartio.ko for {kernel.release} does not build:\n"
                               f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return os.path.join(work, "shim", "smartio.ko")


def main():
    lines = 0
    for path in glob.glob(os.path.join(ROOT, "shim", "*.[ch]")):
        with open(path, encoding="utf-8") as f:
            lines += len(f.readlines())
    print(f"smartio.ko has {lines} lines")
    return 0 if 0 < lines < LINES else 1


if __name__ == "__main__":
    sys.exit(main())
