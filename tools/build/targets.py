#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The targets of ninja that some of the tests of a build folder need, a line each: a build that is
there for a few tests compiles what those run.

usage: targets.py FOLDER --suite NAME
"""
import argparse
import json
import os
import subprocess
import sys


def introspect(folder, what):
    return json.loads(subprocess.run(["meson", "introspect", what, folder], stdout=subprocess.PIPE, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--suite", required=True)
    args = parser.parse_args()
    top = os.path.realpath(args.folder)
    targets = {t["id"]: t["filename"] for t in introspect(args.folder, "--targets")}
    needed = set()
    for test in introspect(args.folder, "--tests"):
        if args.suite in (s.rpartition(":")[2] for s in test["suite"]):
            needed.update(os.path.relpath(f, top) for d in test["depends"] for f in targets[d])
    if not needed:
        sys.exit(f"{args.folder} has no test of suite {args.suite} that needs a target")
    print("\n".join(sorted(needed)))


if __name__ == "__main__":
    main()
