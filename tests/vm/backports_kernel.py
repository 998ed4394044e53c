#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The newest kernel that Debian has for its stable release, of trixie-backports, with two VFIOs, in the cache.

usage: backports_kernel.py backports|backports-iommufd

"backports" is as Debian built it; "backports-iommufd" has VFIO out of Debian's source of the same kernel, unchanged, with
iommufd, devices' own nodes and the mode without an IOMMU, which Debian has switched off (vfio_modules.py does this
for an older kernel). A compiler comes along: kernel and headers of that release are made by another one than this
system's. Once, some 330 MB are downloaded from the archive that apt is configured with, 40 MB are kept, and it takes some
three minutes; who wants a newer one removes the folder from the cache. mmdebstrap is needed, and root or user namespaces.
"""
import hashlib
import os
import re
import shutil
import subprocess

import paths  # noqa: F401
import cache
import debian_kernel as debian
import packages
import vfio_modules
import vfio_qemu

NAME = "backports"
NAMES = (NAME, f"{NAME}-iommufd")
INCLUDE = ("linux-image-amd64", "linux-headers-amd64", "linux-source", "gcc-14", "make", "libc6",
           # what kbuild calls
           "base-files", "dash", "coreutils", "mawk", "sed", "grep", "findutils", "binutils")
# What machines load, besides what they load of other kernels.
WANTED = debian.WANTED.removesuffix(r")\.ko(\.xz)?$") + r"|lib/(crypto|crc)/[^/]+|drivers/dax/.+)\.ko(\.xz)?$"
OPTIONS = {**vfio_modules.OPTIONS, "XE_VFIO_PCI": "", "ISM_VFIO_PCI": ""}


def unpack(root):
    uri = vfio_qemu.archive()
    suites = vfio_qemu.SUITES
    packages.run("mmdebstrap", "--variant=extract", f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
                 f"--keyring={vfio_qemu.KEYRING}", '--aptopt=APT::Install-Recommends "false"',
                 '--aptopt=Acquire::Languages "none"', f'--aptopt=APT::Default-Release "{suites[1]}"',
                 "--dpkgopt=path-exclude=/usr/share/doc/*", f"--include={','.join(INCLUDE)}", suites[0], root,
                 *(f"deb {uri} {suite} main" for suite in suites))


def the_one(folder, pattern):
    found = [name for name in os.listdir(folder) if re.fullmatch(pattern, name)]
    if len(found) != 1:
        raise cache.Unavailable(f"trixie-backports' kernel packages have {found or 'nothing'} for {pattern}")
    return os.path.join(folder, found[0])


def keep_kernel(root, into):
    """Image, modules that are wanted, and which release it is."""
    folder = the_one(os.path.join(root, "usr/lib/modules"), r".*-amd64")
    shutil.copy(os.path.join(folder, "vmlinuz"), os.path.join(into, "vmlinuz"))
    with open(os.path.join(into, "release"), "w", encoding="ascii") as f:
        f.write(os.path.basename(folder) + "\n")
    for place, _, files in os.walk(os.path.join(folder, "kernel")):
        for name in files:
            if not re.search(WANTED, os.path.join(place, name)):
                os.unlink(os.path.join(place, name))
    debian.gather_modules(os.path.join(folder, "kernel"), os.path.join(into, "modules"))


def make_in(root, tree):
    """The kernel's make in there: how vfio_modules.build() runs it."""
    headers = os.path.basename(the_one(os.path.join(root, "usr/src"), r"linux-headers-.*-amd64"))
    os.makedirs(os.path.join(root, "proc"), exist_ok=True)
    if not os.path.lexists(os.path.join(root, "usr/bin/awk")):
        os.symlink("mawk", os.path.join(root, "usr/bin/awk"))
    enter = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)), "sh", "-c",
             'mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"', root]
    return [*enter, "make", "-C", f"/usr/src/{headers}", f"M=/{os.path.relpath(tree, root)}"]


def build_vfio(root, into):
    tree = os.path.join(root, "tmp/tree")
    os.mkdir(tree)
    source = the_one(os.path.join(root, "usr/src"), r"linux-source-.*\.tar\.xz")
    packages.run("tar", "-xJ", "-f", source, "-C", tree, "--strip-components=1", "--wildcards",
                 *("*/" + w for w in vfio_modules.WANTED))
    vfio_modules.add_spans(tree)
    vfio_modules.build(make_in(root, tree), tree, ("drivers/iommu/iommufd", "drivers/vfio"), OPTIONS, vfio_modules.DEFINES)
    vfio_modules.gather(tree, os.path.join(into, "iommufd"), vfio_modules.MODULES)


def make(into):
    root = os.path.join(into, "root")
    unpack(root)
    keep_kernel(root, into)
    build_vfio(root, into)
    subprocess.run(["rm", "-rf", root], check=os.geteuid() == 0)


def get(name):
    how = hashlib.sha256(repr((INCLUDE, WANTED, OPTIONS, vfio_modules.DEFINES)).encode()).hexdigest()[:8]
    kernel = debian.Kernel(name, cache.have(f"{NAME}-{how}", make))
    if name != NAME:
        kernel.folders.insert(0, os.path.join(kernel.path, "iommufd", "modules"))
    return kernel


if __name__ == "__main__":
    debian.main(__doc__, NAMES, get)
