# SPDX-License-Identifier: BSD-2-Clause
"""What two machines need for ocfs2: modules of Debian's kernels, and its tools with the libraries that they need."""
import os
import re
import shutil

import paths  # noqa: F401
import cache
import kernel as kernels
import packages

MODULES = r"/fs/(ocfs2|configfs|quota)/([^/]+/)?[^/]+\.ko(\.xz)?$"
# In the order to load them, before ocfs2 itself.
STACK = ("configfs", "ocfs2_stackglue", "ocfs2_nodemanager", "ocfs2_dlm", "ocfs2_stack_o2cb", "quota_tree")
TOOLS = ("ocfs2-tools", "libcmap4", "libcorosync-common4", "libqb100", "libdlm3", "libaio1")
PROGRAMS = ("mkfs.ocfs2", "mount.ocfs2", "fsck.ocfs2", "o2cb", "ocfs2_hb_ctl")


def get(kernel):
    """A folder with modules/, flat, and programs/ and libraries/."""
    image = packages.resolve(kernels.STOCK[kernel.name][0])
    key = f"ocfs2-{kernel.name}-{packages.version(image)}-{packages.version('ocfs2-tools')}"

    def make(into):
        tree = os.path.join(into, "tree")
        os.mkdir(tree)
        for package, wanted in ((image, MODULES), *((p, "") for p in TOOLS)):
            deb = packages.download(package, into)
            packages.unpack(deb, tree, wanted)
            os.unlink(deb)
        kernels.gather_modules(tree, os.path.join(into, "modules"))
        for folder, wanted in (("programs", "^(" + "|".join(map(re.escape, PROGRAMS)) + ")$"),
                               ("libraries", r"\.so\.\d")):
            os.mkdir(os.path.join(into, folder))
            for at, _, files in os.walk(tree):
                for name in files:
                    if re.search(wanted, name):
                        # Links between libraries become files.
                        shutil.copy(os.path.join(at, name), os.path.join(into, folder, name))
        shutil.rmtree(tree)

    path = cache.have(key, make)
    cache.forget_others(f"ocfs2-{kernel.name}-", key)
    return path
