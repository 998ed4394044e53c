# SPDX-License-Identifier: BSD-2-Clause
"""A folder that stands in for PATH, from which tests take programs away."""
import os


def link_all(bin_dir, without=()):
    """Links each program of PATH, the first of each name, into the new folder @bin_dir.

    A link to ccache looks for the compiler that it is called as in the rest of PATH, which is this folder: those are left out.
    """
    os.mkdir(bin_dir)
    for folder in os.environ["PATH"].split(":"):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            program, link = os.path.join(folder, name), os.path.join(bin_dir, name)
            if name in without or os.path.lexists(link):
                continue
            if name != "ccache" and os.path.basename(os.path.realpath(program)) == "ccache":
                continue
            os.symlink(program, link)
