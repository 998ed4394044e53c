#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the simulator runs is what is shipped: the archives without fabric accesses that it is linked
with are, byte for byte, those of smartiod and libsmartio.so.

usage: archives.py BUILD-DIR
"""
import glob
import hashlib
import os
import re
import subprocess
import sys

WANTED = {  # archive: who ships it
    "libcore.a": ["smartiod/smartiod", "emu/smartio-emu"],
    "libwire.a": ["libsmartio/libsmartio.so.*.*.*"],
    "libsmartiod.a": ["smartiod/smartiod"],
    "libsession.a": ["libsmartio/libsmartio.so.*.*.*"],
    "libtopofile.a": ["smartiod/smartiod", "emu/smartio-emu"],
}


def linked(build, target):
    """Archives on the link line of @target: name -> hash."""
    if "*" in target:
        target = next(os.path.relpath(f, build) for f in glob.glob(os.path.join(build, target)) if os.path.isfile(f))
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", "-s", target], check=True,
                           capture_output=True, text=True).stdout
    found = {}
    for path in re.findall(r"\S+\.a(?!\S)", lines):
        with open(os.path.join(build, path), "rb") as f:
            data = f.read()
        if data.startswith(b"!<thin>"):  # names its objects: their bytes count
            members = subprocess.run(["ar", "t", path], check=True, capture_output=True, text=True,
                                     cwd=build).stdout.split()
            data = b"".join(open(os.path.join(build, m), "rb").read() for m in members)
        found[os.path.basename(path)] = hashlib.sha256(data).hexdigest()
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = sys.argv[1]
    sim = linked(build, "tests/sim/smartio-sim")
    for name, owners in WANTED.items():
        for owner in owners:
            shipped = linked(build, owner)
            if name not in sim or name not in shipped or sim[name] != shipped[name]:
                sys.exit(f"{name}: {owner} has {shipped.get(name)}, smartio-sim {sim.get(name)}")
        print(f"{name}: {sim[name]}")


main()
