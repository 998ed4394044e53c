#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The README's two commands in one fresh clone, as on a machine that lacks scdoc at the first: make demo, then, with
scdoc there, what make check does before its tests, and the test of what is installed. Minutes: for make soak.

usage: clone_test.py
"""
import os
import shutil
import subprocess
import tempfile

SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def hide(folder, *names):
    """A folder of links to all that PATH has but these."""
    for place in os.environ["PATH"].split(":"):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name not in names and not os.path.lexists(os.path.join(folder, name)):
                os.symlink(os.path.join(place, name), os.path.join(folder, name))
    return folder


def main():
    folder = tempfile.mkdtemp(prefix="sio-clone-")
    try:
        clone, less = os.path.join(folder, "smartio"), os.path.join(folder, "bin")
        os.mkdir(less)
        subprocess.run(["git", "clone", "-q", SOURCE, clone], check=True)
        subprocess.run(["make", "demo"], cwd=clone, check=True,
                       env={**os.environ, "PATH": hide(less, "scdoc")})
        for command in (["sh", "tools/build/deps.sh", "check"],
                        ["sh", "tools/build/configure.sh", "build/plain", "-Dtests=enabled"],
                        ["ninja", "--quiet", "-C", "build/plain"],
                        ["meson", "test", "-C", "build/plain", "--no-rebuild", "--print-errorlogs", "install"]):
            subprocess.run(command, cwd=clone, check=True)
    finally:
        shutil.rmtree(folder)


main()
