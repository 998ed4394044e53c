#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The ping-pong through mapped segments and through bare memory is one loop, the same instructions: the
compiler has made no second copy of it, and put it nowhere in line.

usage: loop_test.py BENCH-SISCI-PINGPONG
"""
import re
import subprocess
import sys

LOOP = "bounce"


def main():
    names = subprocess.run(["nm", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    copies = [name for name in re.findall(r" [tT] (\S+)$", names, re.M)
              if name == LOOP or name.startswith(LOOP + ".")]
    if len(copies) != 1:
        sys.exit(f"{sys.argv[1]}: {copies} where {LOOP} alone would be right")
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", sys.argv[1]], check=True,
                          capture_output=True, text=True).stdout
    callers = {}
    for function, body in re.findall(r"^[0-9a-f]+ <(\S+)>:\n((?:.+\n)*)", code, re.M):
        callers[function] = len(re.findall(rf"\bcall\w*\s.*<{re.escape(copies[0])}>", body))
    if sum(callers.values()) < 1:
        sys.exit(f"nobody calls {copies[0]}")
    print(f"{copies[0]}: called {sum(callers.values())} times, by "
          f"{', '.join(f for f, n in callers.items() if n)}")


if __name__ == "__main__":
    main()
