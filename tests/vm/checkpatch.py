#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel's own checkpatch.pl says of shim/: nothing. It is that of the debug kernel's source.

usage: checkpatch.py
"""
import glob
import os
import subprocess
import sys

from paths import ROOT
import cache
import kernel as kernels

# Modules outside the kernel's tree are built for several versions of it; comparisons with those are taken for ones that
# have their constant on the wrong side.
IGNORED = "LINUX_VERSION_CODE,CONSTANT_COMPARISON"
SKIP = 77


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__.strip())
    try:
        tree = kernels.get("debug").build
    except cache.Unavailable as e:
        print(f"skipped: {e}")
        return SKIP
    files = sorted(glob.glob(os.path.join(ROOT, "shim/**/*.[ch]"), recursive=True))
    done = subprocess.run(["perl", os.path.join(tree, "scripts/checkpatch.pl"), "--no-tree", "--terse", "--show-types",
                           "--max-line-length=100", f"--ignore={IGNORED}", "--file", *files],
                          capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if not line.startswith("total:")]
    print("\n".join([*found, done.stderr.strip(), f"{len(files)} files, {len(found)} findings"]))
    # It ends with 1 if it found something, and with something else if it could not look.
    return 0 if files and not found and done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
