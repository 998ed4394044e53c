#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draw the rooms of the code, and which of them include headers of which, from the sources: docs/architecture.dot and,
by graphviz, docs/architecture.svg.

A room is a folder with C sources or headers. An arrow is an include; one that follows from others (a transitive one)
is left out, one of a circle is red. Arrows to include/, which every room may use, are not drawn.

usage: architecture.py [--check] [SOURCE]     --check: only say whether picture and page are up to date
"""
import hashlib
import os
import re
import subprocess
import sys

# The parts of the code: title, folder. Each folder below one that has sources is a room; tests are none.
PARTS = [("programs", ("tools", "drivers/nvme-user", "drivers/accel", "drivers/base")), ("library: libsmartio/sisci", ("libsmartio/sisci",)),
         ("daemon: smartiod", ("smartiod",)), ("emulated hardware: emu", ("emu",)),
         ("shared: libsmartio", ("libsmartio/core", "libsmartio/wire", "libsmartio/envelope", "libsmartio/eventfd",
                                 "libsmartio/packet", "libsmartio/topofile", "libsmartio/vfio", "libsmartio/vfiosock",
                                 "libsmartio/session"))]
MODELS = "emu/devices"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
COLOURS = {"programs": "#e8e8e8", "shared: libsmartio": "#e3efe0", "library: libsmartio/sisci": "#dce8f5",
           "daemon: smartiod": "#f6ead7", "emulated hardware: emu": "#efe1ef"}


def room_of(folder):
    """Models are drawn as one room."""
    return MODELS + "/NAME" if folder.startswith(MODELS + "/") else folder


def rooms(source):
    """{room: [its files, by their paths]}, room being a folder."""
    found = {}
    for _, folders in PARTS:
        for folder in folders:
            for at, _, names in os.walk(os.path.join(source, folder)):
                files = sorted(n for n in names if re.search(r"\.[ch](\.in)?$", n))
                at = os.path.relpath(at, source)
                if files:
                    found.setdefault(room_of(at), []).extend(os.path.join(at, n) for n in files)
    return found


def owner(name, path, found):
    """The room of a header that a file includes, as include folders have it (tools/build/room.sh), or None."""
    at = os.path.dirname(path)
    if "/" not in name or name.startswith("../"):
        name = os.path.normpath(os.path.join(at, name))
    for candidate in (name, f"libsmartio/{name}", f"{at.split('/')[0]}/{name}"):
        room = room_of(os.path.dirname(candidate))
        if candidate in found.get(room, ()):
            return room
    return None


def arrows(source, found):
    """{room: set of rooms whose headers it includes}"""
    edges = {room: set() for room in found}
    for room, files in found.items():
        for name in files:
            with open(os.path.join(source, name), encoding="utf-8") as f:
                for header in INCLUDE.findall(f.read()):
                    other = owner(header, name, found)
                    if other and other != room:
                        edges[room].add(other)
    return edges


def below(room, edges, without=None):
    """All rooms that can be reached from a room, but for the one arrow that is named."""
    seen, todo = set(), [room]
    while todo:
        at = todo.pop()
        for other in edges[at]:
            if other not in seen and (at, other) != without:
                seen.add(other)
                todo.append(other)
    return seen


def reduced(edges):
    """Without the arrows that follow from others; those from rooms of a circle all stay."""
    return sorted((a, b) for a in edges for b in edges[a]
                  if a in below(a, edges) or b not in below(a, edges, without=(a, b)))


def part_of(room):
    return next(title for title, folders in PARTS for f in folders if room == f or room.startswith(f + "/"))


def label(room):
    for prefix in ("libsmartio/sisci/", "libsmartio/", "smartiod/", "emu/", "drivers/"):
        if room.startswith(prefix):
            return room[len(prefix):]
    return room


def picture(source):
    found = rooms(source)
    edges = arrows(source, found)
    lines = ["// Made by tools/build/architecture.py from the includes of the sources.", "digraph rooms {",
             "\trankdir=TB; ranksep=0.45; nodesep=0.2; newrank=true;",
             '\tnode [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica", fontsize=11, height=0.3];',
             '\tedge [arrowsize=0.6, color="#555555"];']
    for number, (title, _) in enumerate(PARTS):
        lines.append(f"\tsubgraph cluster_{number} {{")
        lines.append(f'\t\tlabel="{title}"; labeljust=l; style=filled; color="{COLOURS[title]}"; '
                     'fontname="Helvetica"; fontsize=12;')
        lines += [f'\t\t"{room}" [label="{label(room)}"];' for room in sorted(found) if part_of(room) == title]
        lines.append("\t}")
    for a, b in reduced(edges):
        lines.append(f'\t"{a}" -> "{b}"{" [color=red]" if a in below(b, edges) else ""};')
    return "\n".join(lines) + "\n}\n", found, edges


def mark(dot):
    return f"<!-- of architecture.dot {hashlib.sha256(dot.encode()).hexdigest()[:16]} -->\n"


def draw(dot):
    try:
        svg = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise SystemExit("architecture.py: graphviz is needed: apt-get install graphviz") from None
    svg = re.sub(r"<!-- Generated by graphviz.*?-->\n", "", svg, flags=re.S)
    return svg + mark(dot)


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return f.read()


def main():
    args = [a for a in sys.argv[1:] if a != "--check"]
    here = os.path.dirname(os.path.abspath(__file__))
    source = args[0] if args else os.path.normpath(os.path.join(here, "..", ".."))
    docs = os.path.join(source, "docs")
    dot, found, edges = picture(source)
    if "--check" not in sys.argv:
        for name, text in (("architecture.dot", dot), ("architecture.svg", draw(dot))):
            with open(os.path.join(docs, name), "w", encoding="utf-8") as f:
                f.write(text)
    wrong = []
    if read(os.path.join(docs, "architecture.dot")) != dot or not read(
            os.path.join(docs, "architecture.svg")).endswith(mark(dot)):
        wrong.append("docs/architecture.svg does not show the rooms as they are: run tools/build/architecture.py")
    page = read(os.path.join(docs, "ARCHITECTURE.md"))
    wrong += [f"docs/ARCHITECTURE.md does not say what {room} is for" for room in sorted(found)
              if f"`{room}/`" not in page]
    wrong += [f"docs/ARCHITECTURE.md describes {room}, which is no room" for room in
              re.findall(r"^\| `([\w/-]+)/` \|", page, flags=re.M) if room not in found]
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
