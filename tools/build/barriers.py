#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Barriers that do not name their partner.

usage: barriers.py [FILE...]

A barrier orders nothing alone. So each function with an acquire, a release or a fence has a comment that says what
it pairs with, in it or right before it: "pairs with f()", the function at the other end, or in words what stands
there (a drive's order, a system call). A function that is named behind these words must exist. Looks at all C files of
FOLDERS, or at FILEs. Exit status 1: a comment is missing, or names what is not there.
"""
import os
import re
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
FOLDERS = ["include", "libsmartio", "smartiod", "emu", "drivers", "shim", "tools"]
BARRIER = re.compile(
    r"__ATOMIC_(RELEASE|ACQUIRE|ACQ_REL|SEQ_CST)\b|\bmemory_order_(release|acquire|acq_rel|seq_cst)\b"
    r"|\bsmp_(r|w)?mb\(|\bsmp_(store_release|load_acquire|store_mb|mb__\w+)\(|\b(dma_)?[rw]?mb\(\)"
    r"|\b(atomic_thread_fence|__sync_\w+|_mm_[slm]fence)\(|\bsio_(full|to_fabric|from_fabric)_barrier\(\)")
DEFINES = re.compile(r"\bsio_(full|to_fabric|from_fabric)_barrier\(void\)")
PARTNER = re.compile(r"\bpairs?\b[^.]*?\bwith\b", re.I)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def functions(text):
    """(line, text with the comment before it) of each function: it begins in the first column and ends with }."""
    lines = text.split("\n")
    start = 0
    for i, line in enumerate(lines):
        if re.match(r"\}", line) or not line.strip():
            if re.match(r"\}", line):
                yield start, "\n".join(lines[start:i + 1])
                start = i + 1
            elif i and lines[i - 1][:1] not in "\t ":
                start = i + 1  # outside of functions


def comments(text):
    return [re.sub(r"\s*\n\s*\*?\s*", " ", c) for c in re.findall(r"/\*(.*?)\*/|(?<=//)(.*)", text, flags=re.S)
            for c in c if c]


def check(path, text, names):
    for line, body in functions(text):
        code = re.sub(r"/\*.*?\*/", blank, body, flags=re.S)
        if DEFINES.search(code):
            continue
        barriers = [n for n, l in enumerate(code.split("\n")) if BARRIER.search(l)]
        said = [c for c in comments(body) if PARTNER.search(c)]
        if barriers and not said:
            yield "%s:%d: with what does this barrier pair?" % (path, line + barriers[0] + 1)
        for c in said:
            for name in re.findall(r"\b([a-z_]\w*)\(\)", c[PARTNER.search(c).end():]):
                if name not in names:
                    yield "%s:%d: pairs with %s(), which does not exist" % (path, line + 1, name)


def main():
    given = sys.argv[1:]
    files = [os.path.relpath(os.path.join(folder, f), ROOT) for top in FOLDERS
             for folder, _, found in os.walk(os.path.join(ROOT, top)) for f in found if f.endswith((".c", ".h"))]
    read = {f: open(os.path.join(ROOT, f), encoding="utf-8").read() for f in files}
    names = {n for text in read.values()
             for n in re.findall(r"\b([a-z_]\w*)\(", re.sub(r"/\*.*?\*/", "", text, flags=re.S))}
    if given:
        read = {f: open(f, encoding="utf-8").read() for f in given}
    faults = [m for f in sorted(read) for m in check(f, read[f], names)]
    print("\n".join(faults) if faults else "%d files: each barrier names its partner" % len(read))
    sys.exit(1 if faults else 0)


main()
