#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The rooms of the house (folders), who calls and includes whom, and what must not be.

usage: rooms.py BUILD [--show] [FOLDER...]

A room is a folder with C files. An edge goes from the file that leaves a symbol undefined to the one that
defines it (nm over BUILD's objects), or from the one that includes a header to that header. It is an error

- when rooms call one another, or include one another's headers, in a circle: stairs lead down only;
- when files of one room call one another in a circle of more files than LIMITS says;
- when a file of the upper storeys (UPPER) includes a header that is not installed and not its own.

Prints, for each folder, its rooms from the lowest on: files, the largest circle within, the rooms that it calls.
--show: the files of each circle too, and every call within it. Exit status 1: there is an error.
"""
import collections
import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
# The most files that may call one another in a circle within a room.
LIMITS = {"smartiod": 8, "libsmartio": 6, "emu": 6, "drivers/nvme-user": 8, "tools": 6, "tests/sim": 8}
UPPER = ["drivers", "examples", "bench"]
ALLOWED = ["libsmartio/envelope/"]  # what both commands print with --json, in a static library that is not installed


def components(edges):
    """Strongly connected sets of more than one (Tarjan), largest first; nothing recurses."""
    index, low, stack, found = {}, {}, [], []
    for start in edges:
        if start in index:
            continue
        work = [(start, None)]
        while work:
            node, rest = work.pop()
            if rest is None:
                index[node] = low[node] = len(index)
                stack.append(node)
                rest = iter(edges.get(node, ()))
            for other in rest:
                if other not in index:
                    work += [(node, rest), (other, None)]
                    break
                if other in stack:
                    low[node] = min(low[node], low[other])
            else:
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
    return sorted(found, key=len, reverse=True)


def symbols(paths):
    """Object path -> (what it defines, what it leaves undefined)."""
    found = {path: (set(), set()) for path in paths}
    out = subprocess.run(["nm", "-A", "-P", *paths], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        path, name, kind = line.split()[:3]
        if kind == "U":
            found[path.rstrip(":")][1].add(name)
        elif kind in "TDBRVWC":
            found[path.rstrip(":")][0].add(name)
    return found


def sources(build):
    """Source path from the top -> (what it defines, what it leaves undefined), of each source's first object."""
    objects = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            path = os.path.relpath(os.path.realpath(os.path.join(entry["directory"], entry["file"])), ROOT)
            target = os.path.join(entry["directory"], entry["output"])
            # The simulator and tests build some of them once more, for a world of their own.
            ours = path.startswith("tests/sim/") or not entry["output"].startswith("tests/")
            if path.endswith(".c") and ours and os.path.exists(target):
                objects.setdefault(path, target)
    known = symbols(list(objects.values()))
    return {path: known[target] for path, target in objects.items()}


def calls(files):
    """File -> the files that it calls."""
    owner = {name: f for f, (have, _) in files.items() for name in have}
    return {f: sorted({owner[n] for n in want if n in owner} - {f}) for f, (_, want) in files.items()}


def includes(folders):
    """File -> the files of these folders that it includes, by the paths that the build knows them by."""
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files", "*.c", "*.h"], capture_output=True, text=True,
                             check=False).stdout.split()
    named = {}
    for f in tracked:
        named[f] = f
        if f.startswith("libsmartio/"):
            named.setdefault(f.removeprefix("libsmartio/"), f)
        if f.startswith("include/"):
            named[f.removeprefix("include/")] = f
    edges = {}
    for f in tracked:
        if not f.startswith(tuple(x + "/" for x in folders)):
            continue
        with open(os.path.join(ROOT, f), encoding="utf-8") as text:
            wanted = re.findall(r'^#\s*include\s+["<]([^">]+)[">]', text.read(), re.M)
        there = (os.path.normpath(os.path.join(os.path.dirname(f), w)) for w in wanted)
        edges[f] = sorted({named.get(n) or named.get(w) for n, w in zip(there, wanted)} - {None, f})
    return edges


def room(path):
    return os.path.dirname(path)


def between(edges, folder):
    """Rooms of the folder -> the rooms there that they lead to."""
    rooms = {room(f): set() for f in edges if (room(f) + "/").startswith(folder + "/")}
    for f, others in edges.items():
        if room(f) in rooms:
            rooms[room(f)] |= {room(o) for o in others if room(o) in rooms} - {room(f)}
    return rooms


def lowest_first(rooms):
    order = []
    while rest := [r for r in rooms if r not in order]:
        free = [r for r in rest if rooms[r] <= set(order)]
        order += sorted(free or rest)
    return order


class Report:
    def __init__(self, show):
        self.show, self.errors = show, []

    def circle(self, what, files, edges):
        self.errors.append(f"{what}: {', '.join(files)}")
        self.files(files, edges)

    def files(self, files, edges):
        if self.show:
            for f in files:
                print(f"      {f} -> {', '.join(o for o in edges[f] if o in files)}")

    def folder(self, folder, edges, included):
        rooms = between(edges, folder)
        inner = collections.defaultdict(list)
        for c in components({f: [o for o in others if room(o) == room(f)] for f, others in edges.items()}):
            inner[room(c[0])].append(c)
        for name in lowest_first(rooms):
            mine = [f for f in edges if room(f) == name]
            found = inner[name]
            circle = f"circle of {len(found[0])}" if found else "no circle"
            down = ", ".join(sorted(os.path.relpath(r, folder) for r in rooms[name]))
            print(f"  {os.path.relpath(name, folder):<14} {len(mine):3} files, {circle:<13} {'-> ' + down if down else ''}".rstrip())
            limit = LIMITS.get(name) or LIMITS.get(folder, 1)  # a room may have one of its own
            for c in found:
                if len(c) > limit:
                    self.circle(f"{name}: {len(c)} files call one another in a circle, at most {limit} may", c, edges)
                else:
                    self.files(c, edges)
        for kind, graph in (("call", rooms), ("include", between(included, folder))):
            for c in components(graph):
                pairs = {r: graph[r] & set(c) for r in c}
                self.errors.append(f"{folder}: rooms {kind} one another in a circle: " +
                                   "; ".join(f"{r} -> {', '.join(sorted(o))}" for r, o in pairs.items()))
                self.between(c, edges if kind == "call" else included)

    def between(self, rooms, edges):
        if self.show:
            for f, others in sorted(edges.items()):
                for o in others:
                    if room(f) in rooms and room(o) in rooms and room(f) != room(o):
                        print(f"      {f} -> {o}")

    def upper(self, included):
        for f, others in included.items():
            if not f.startswith(tuple(u + "/" for u in UPPER)):
                continue
            for o in others:
                if not o.startswith(("include/", f.split("/")[0] + "/", *ALLOWED)):
                    self.errors.append(f"{f} includes {o}, which is not installed")


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    if not args or {a for a in sys.argv[1:] if a.startswith("-")} - {"--show"}:
        sys.exit(__doc__)
    folders = args[1:] or list(LIMITS)
    edges = calls(sources(args[0]))
    if not edges:
        sys.exit(f"rooms.py: there are no objects in {args[0]}: build it first")
    included = includes(sorted({f.split("/")[0] for f in folders} | set(UPPER)))
    report = Report("--show" in sys.argv)
    for folder in folders:
        print(folder)
        report.folder(folder, edges, included)
    report.upper(included)
    for e in report.errors:
        print(f"error: {e}", file=sys.stderr)
    sys.exit(1 if report.errors else 0)


main()
