#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A QEMU that speaks vfio-user (11.1 or newer), from Debian's trixie-backports, in the cache: nothing is installed.

usage: vfio_qemu.py            fetch it, unless it is there, and print how it is started
       vfio_qemu.py ARGUMENT...   start it

Once, some 50 MB are downloaded from the archive that apt is configured with, and take 180 MB in the user's cache.
Debian's signatures are checked. It runs with libraries of its own, whatever this system has. mmdebstrap is needed.
"""
import os
import re
import sys

import cache
import packages

NAME = "qemu-vfio-user"
SUITES = ("trixie", "trixie-backports")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def archive():
    """Where apt has Debian itself from."""
    targets = packages.run("apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL) $(COMPONENT)")
    for line in targets.splitlines():
        found = re.fullmatch(r"(\S+) Debian Debian main", line.strip())
        if found:
            return found[1]
    raise cache.Unavailable("apt is configured with no archive of Debian's")


def fetch(into):
    uri = archive()
    packages.run("mmdebstrap", "--variant=extract", f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
                 f"--keyring={KEYRING}", '--aptopt=APT::Install-Recommends "false"',
                 '--aptopt=Acquire::Languages "none"', f'--aptopt=APT::Default-Release "{SUITES[1]}"',
                 "--include=qemu-system-x86,libc6", SUITES[0], os.path.join(into, "root"),
                 *(f"deb {uri} {suite} main" for suite in SUITES))


def command():
    """The words that start it; fetched first if need be."""
    root = os.path.join(cache.have(NAME, fetch), "root")
    libraries = os.path.join(root, "usr/lib/x86_64-linux-gnu")
    return [sys.executable, "-IB", os.path.join(os.path.dirname(os.path.abspath(__file__)), "no_io_uring.py"),
            "env", f"QEMU_MODULE_DIR={libraries}/qemu", os.path.join(root, "usr/lib64/ld-linux-x86-64.so.2"),
            "--library-path", libraries, os.path.join(root, "usr/bin/qemu-system-x86_64"),
            "-L", os.path.join(root, "usr/share/qemu"), "-L", os.path.join(root, "usr/share/seabios")]


def main():
    if sys.argv[1:2] in (["--help"], ["-h"]):
        print(__doc__.strip())
        return
    try:
        words = command()
    except cache.Unavailable as e:
        sys.exit(f"vfio_qemu.py: {e}")
    if len(sys.argv) == 1:
        print(" ".join(words))
        return
    os.execvp(words[0], words + sys.argv[1:])


if __name__ == "__main__":
    main()
