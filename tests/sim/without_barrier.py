#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The model bites: a program whose copy of one source lacks one barrier fails with some seed, with
which the real one passes.

usage: without_barrier.py make FUNCTION BARRIER IN OUT    the copy, without its first
       without_barrier.py find SEEDS REAL WITHOUT [ARG...]  runs both, with {} for the seed
"""
import re
import subprocess
import sys


def make(function, barrier, source, target):
    with open(source, encoding="utf-8") as f:
        text = f.read()
    body = re.search(rf"^[^\n;]*\b{function}\([^;{{]*\n{{\n.*?^}}", text, re.M | re.S)
    if not body or f"\t{barrier}();" not in body.group(0):
        sys.exit(f"{source}: {function}() has no {barrier}()")
    cut = body.group(0).replace(f"\t{barrier}();", "\t;", 1)
    with open(target, "w", encoding="utf-8") as f:
        f.write(text[:body.start()] + cut + text[body.end():])


def run(program, args, seed):
    return subprocess.run([program] + [a.replace("{}", str(seed)) for a in args], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=300).returncode


def find(seeds, real, without, args):
    for seed in range(1, seeds + 1):
        if run(without, args, seed) == 0:
            continue
        if run(real, args, seed) != 0:
            sys.exit(f"seed {seed}: the real one fails, too")
        print(f"seed {seed} fails without the barrier")
        return
    sys.exit(f"the barrier can be left out: no seed of {seeds} fails")


if sys.argv[1:2] == ["make"] and len(sys.argv) == 6:
    make(*sys.argv[2:])
elif sys.argv[1:2] == ["find"] and len(sys.argv) > 4:
    find(int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
else:
    sys.exit(__doc__)
