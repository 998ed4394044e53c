#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same seed is the same run: the hash over the trace of all events is equal twice in a row, and
in every build that is given; and other seeds have other hashes.

usage: same.py SEEDS SMARTIO-SIM...
"""
import subprocess
import sys


def result(binary, seed):
    out = subprocess.run([binary, "--quiet", "--seconds", "3", str(seed)], capture_output=True, text=True)
    # A seed that fails does so everywhere at the same instant with the same words.
    return out.stdout + out.stderr


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    seen = {}
    for seed in range(1, int(sys.argv[1]) + 1):
        first = result(sys.argv[2], seed)
        for binary in sys.argv[2:] * 2:
            again = result(binary, seed)
            # Builds of different commits differ in what they say they are.
            if again.split("commit")[0] != first.split("commit")[0]:
                sys.exit(f"seed {seed}: {sys.argv[2]} says\n{first}{binary} says\n{again}")
        seen[first] = seed
    if len(seen) != int(sys.argv[1]):
        sys.exit("different seeds, the same run")
    print(f"{len(seen)} seeds, {len(sys.argv) - 2} builds, each twice: the same hashes")


main()
