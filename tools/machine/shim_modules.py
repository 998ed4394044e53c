# SPDX-License-Identifier: BSD-2-Clause
"""The kernel modules of SmartIO, built out of a copy of their sources."""
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess

PATTERNS = ("shim/*", "shim/blk/*", "shim/lend/*", "shim/ntb/*", "shim/ntb_client/*", "shim/test/*",
            "include/smartio/disk.h", "include/smartio/uapi.h", "include/smartio/vntb.h")


def sources(root):
    """Their paths below @root: of the source tree, or of what smartio-dkms installs."""
    return sorted(path for pattern in PATTERNS for path in glob.glob(pattern, root_dir=root)
                  if os.path.isfile(os.path.join(root, path)))


def digest(root):
    """Changes when a source does."""
    content = hashlib.sha256()
    for path in sources(root):
        with open(os.path.join(root, path), "rb") as f:
            content.update(path.encode() + b"\0" + f.read())
    return content.hexdigest()[:12]


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


def build(root, kernel, work, words=(), ntb=None):
    """The modules for a kernel of the cache, in the folder that is returned, below @work. @words: to make.
    @ntb: a folder with the symbols of the kernel's NTB core, for those on top of it. RuntimeError: they do not
    build."""
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in sources(root):
            copy_if_new(os.path.join(root, path), os.path.join(work, path))
        core = ["CONFIG_NTB=m", f"KBUILD_EXTRA_SYMBOLS={ntb}/Module.symvers"] if ntb else []
        # Debian's kernels carry BTF, for which pahole would be wanted.
        done = subprocess.run(["make", "-C", kernel.build, f"M={os.path.join(work, 'shim')}",
                               "CONFIG_DEBUG_INFO_BTF_MODULES=", *core, *words, "modules"],
                              capture_output=True, text=True)
        if done.returncode != 0 or re.search("(warning|error):", done.stderr):
            shutil.rmtree(os.path.join(work, "shim"))  # the next one must not find it done
            raise RuntimeError(f"SmartIO's modules for {kernel.release} do not build:\n"
                               f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return os.path.join(work, "shim")
