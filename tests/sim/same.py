#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same seed is the same run: the hash over the trace of all events is equal twice in a row, and
in every build that is given, those that compare all accesses with plain lists and those that do not; and
other seeds have other hashes.

usage: same.py SEEDS SMARTIO-SIM...
"""
import re
import subprocess
import sys


# In these it shows where engines cut their transfers.
ENGINES = [14, 26]


def result(binary, seed, *more):
    out = subprocess.run([binary, "--quiet", "--seconds", "5" if seed in ENGINES else "3", *more, str(seed)],
                         capture_output=True, text=True)
    # A seed that fails does so everywhere at the same instant with the same words; only builds of different
    # commits differ in what they say they are.
    return re.sub(r"commit \S+", "commit", out.stdout + out.stderr)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    seen = {}
    seeds = sorted({*range(1, int(sys.argv[1]) + 1), *ENGINES})
    for seed in seeds:
        first = result(sys.argv[2], seed)
        runs = [(binary, *more) for binary in sys.argv[2:] for more in ((), ("--unchecked",))]
        for binary, *more in runs:
            again = result(binary, seed, *more)
            if again != first:
                sys.exit(f"seed {seed}: {sys.argv[2]} says\n{first}{' '.join([binary, *more])} says\n{again}")
        seen[first] = seed
    if len(seen) != len(seeds):
        sys.exit("different seeds, the same run")
    print(f"{len(seen)} seeds, {len(sys.argv) - 2} builds, comparing all accesses or few: the same hashes")


main()
