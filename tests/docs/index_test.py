#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The index of docs/ names every page, every link leads somewhere, and files that documents name exist, with the
functions that a walk through the code names there; its files and returns are counted.

usage: index_test.py [UNITTEST-OPTION...]
"""
import glob
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
INDEX = "docs/README.md"
MANUALS = ("docs/man/*.scd", "drivers/nvme-user/*.scd", "drivers/accel/*.scd")
DOCUMENTS = ("README.md", "docs/*.md", *MANUALS)
CODE = ("smartiod", "libsmartio", "emu", "shim", "drivers", "include", "tools", "bench", "examples", "tests", "docs")
# Folders of libsmartio that documents name without it, as #include does.
SHORT = ("core", "wire", "envelope", "eventfd", "session", "sisci", "topofile")
SUFFIXES = r"\.(?:c|h|py|sh|md|txt|yaml|scd|build|config|patch|map)\b"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"(?<![\w/.<$-])((?:" + "|".join(CODE + SHORT) + r")/[\w./*-]*" + SUFFIXES + ")")
# A walk through the code: a table with this head, and a line below that counts.
WALK = re.compile(r"^\| file \| function \| what it does \|\n\|[-|]+\|\n((?:\|.*\n)+)\n"
                  r"\*\*(\d+) files, (\d+) returns\*\*", re.M)
STEP = re.compile(r"^\| `([^`]+)` \| ?([^|]*)\|")
PAGE = re.compile(r"\bdocs/([\w-]+\.md)\b")


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def found(patterns):
    return sorted(os.path.relpath(path, SOURCE) for pattern in patterns
                  for path in glob.glob(os.path.join(SOURCE, pattern)))


def without_blocks(text):
    """What programs print, and commands, are no links."""
    return re.sub(r"^( *)(```+).*?^\1\2 *$", "", text, flags=re.S | re.M)


def anchor(title):
    """As the usual renderers make it of a heading."""
    title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def anchors(text):
    return {anchor(m) for m in re.findall(r"^#+ (.*)$", without_blocks(text), flags=re.M)}


def links(path, text):
    """(target as it is written, file it means or None for another site, anchor or "")"""
    for target in LINK.findall(without_blocks(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, place = target.partition("#")
        yield target, os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path, place


def dead_links(path, text):
    for target, name, place in links(path, text):
        if not os.path.exists(os.path.join(SOURCE, name)):
            yield f"{path}: the link ({target}) leads to no file"
        elif place and place not in anchors(text if name == path else read(name)):
            yield f"{path}: the link ({target}) leads to no heading"


def missing_files(path, text):
    for name in sorted(set(FILE.findall(text))):
        if re.search(r"\b[A-Z]{3,}\.", name):
            continue  # NAME.sh: any of them
        full = f"libsmartio/{name}" if name.split("/")[0] in SHORT else name
        if not glob.glob(os.path.join(SOURCE, full)):
            yield f"{path}: {name} is not there"


def walks(path, text):
    """What is wrong with each walk: functions that are not in their files, and the counts. A return is a step to a
    file that the walk has left before."""
    for rows, files, returns in WALK.findall(text):
        way = []
        for row in rows.splitlines():
            name, functions = STEP.match(row).groups()
            if not os.path.exists(os.path.join(SOURCE, name)):
                yield f"{path}: {name} is not there"
                continue
            code = read(name)
            for function in re.findall(r"`(\w+)\(\)`", functions):
                if not re.search(rf"\b{function}\(", code):
                    yield f"{path}: {name} has no {function}()"
            if not way or way[-1] != name:
                way.append(name)
        count = len(set(way)), len(way) - len(set(way))
        if count != (int(files), int(returns)):
            yield f"{path}: a walk has {count[0]} files and {count[1]} returns, not {files} and {returns}"


# The recipes of docs/CONTRIBUTING.md: heading, and what the names of its example are in the product.
RECIPES = {
    "A SISCI call": r"\bSCIProbeNode\b|\b(SIO_MSG_)?NODE_PROBE\b|\bsmartiod_node_probe\b",
    "A request of the port": r"\b(SIO_OP_)?DMA_DETACH\b|_dma_detach\b",
    "A device model": r"\bemu_memdev_(model|type)\b|'memdev'",
    "A request to the lender": r"\b(SIO_PEER_)?UNHOLD\b|\b(sio_peer|smartiod_lend)_unhold\b",
    "A subcommand": r"\b(tool_)?device_reset(_command)?\b|\bdevice-reset\b",
}
PRODUCT = ("include", "libsmartio", "smartiod", "emu", "shim", "tools")


def recipe_files(text, heading, names, files):
    """Files of the product that have the names of a recipe's example, and do not stand in the recipe."""
    part = re.search(rf"^### {heading}\n(.*?)(?=^### |\Z)", text, re.S | re.M)[1]
    found = [f for f in files if f.startswith(PRODUCT) and
             re.search(names, f + re.sub(r"/\*.*?\*/", "", read(f), flags=re.S))]  # comments may
    yield from (f"docs/CONTRIBUTING.md: '{heading}' does not name {f}" for f in found if f"`{f}`" not in part)
    if len(found) < 2:
        yield f"docs/CONTRIBUTING.md: the example of '{heading}' is in {len(found)} files"


# Of the words that docs/glossary.md replaces, those that have no other meaning; names in `code` and of mutants may stay.
REPLACED = re.compile(r"(?<![\w-])(adrift|leftovers?|let(?:s|ting)? go of|who(?:ever)? has (?!which|how|what|to\b)(?=it\b|them\b|the\b)|"
                      r"(?:the|its|their|daemon's) books|(?:hangs?|hung|hanging) on|tells? of|told of|awaited|lured|hasty|"
                      r"holders? of the registers)(?![\w-])", re.I)
# The code has them neither in comments nor in names nor in messages.
REPLACED_CODE = re.compile(r"(?<![A-Za-z])(adrift|leftovers?|hasty|lured|awaited|let[ _]go|lets go of|news|"
                           r"(?:the|its|their|daemon's) books|books_\w+|(?:hangs?|hung|hanging) on|tells? of|told of|"
                           r"holders? of the registers)(?![A-Za-z])", re.I)
ROOMS = re.compile(r"(?:smartiod|emu|libsmartio|drivers|tools|shim|include|tests/sim)/.*\.[ch]$")


def replaced_words(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for word in REPLACED.findall(re.sub(r"`[^`]*`", "", line)):
            yield f"{path}:{number}: '{word}': docs/glossary.md has the field's term"


def replaced_in_code(path, text):
    """Comments may be broken over lines, so line ends, and what begins the next line, are spaces here."""
    for word in REPLACED_CODE.findall(re.sub(r"\s*\n\s*\*?\s*", " ", text)):
        yield f"{path}: '{word}': docs/glossary.md has the field's term"


def sources():
    for folder in CODE:
        for at, _, names in os.walk(os.path.join(SOURCE, folder)):
            for name in names:
                if re.search(r"\.(c|h|py|sh|build|json)$", name):
                    yield os.path.relpath(os.path.join(at, name), SOURCE)


class Index(unittest.TestCase):
    maxDiff = None

    def none(self, wrong):
        wrong = list(wrong)
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_every_page_has_its_line(self):
        named = [name for _, name, _ in links(INDEX, read(INDEX))]
        pages = [p for p in found(("docs/*.md", *MANUALS)) if p != INDEX]
        self.assertGreater(len(pages), 20)
        self.none(f"{INDEX}: {page} has no line" for page in pages if page not in named)

    def test_links(self):
        self.none(wrong for path in found(DOCUMENTS) if path.endswith(".md")
                  for wrong in dead_links(path, read(path)))

    def test_files_that_documents_name(self):
        self.none(wrong for path in found(DOCUMENTS) for wrong in missing_files(path, read(path)))

    def test_walks(self):
        text = read("docs/ARCHITECTURE.md")
        self.assertGreaterEqual(len(WALK.findall(text)), 2)
        self.none(walks("docs/ARCHITECTURE.md", text))

    def test_recipes(self):
        files = list(sources())
        self.none(wrong for heading, names in RECIPES.items()
                  for wrong in recipe_files(read("docs/CONTRIBUTING.md"), heading, names, files))

    def test_words(self):
        self.none(wrong for path in found(DOCUMENTS) if path not in ("docs/glossary.md", "docs/STATUS.md")
                  for wrong in replaced_words(path, read(path)))

    def test_words_of_code(self):
        rooms = [path for path in sources() if ROOMS.match(path)]
        self.assertGreater(len(rooms), 500)
        self.none(wrong for path in rooms for wrong in replaced_in_code(path, read(path)))

    def test_pages_that_code_names(self):
        pages = {os.path.basename(p) for p in found(("docs/*.md",))}
        self.none(f"{path}: docs/{page} is not there" for path in sources() if path != "tests/docs/index_test.py"
                  for page in sorted(set(PAGE.findall(read(path)))) if page not in pages)


class Checks(unittest.TestCase):
    """That the above can fail."""

    def test_links(self):
        self.assertEqual(list(dead_links(INDEX, "[a](README.md) [b](../README.md#license) [c](https://x.example/)")), [])
        self.assertEqual(list(dead_links(INDEX, "```text\n[a](no.md)\n```\n")), [])
        self.assertEqual(len(list(dead_links(INDEX, "[a](no.md)"))), 1)
        self.assertEqual(len(list(dead_links(INDEX, "[a](../README.md#nothing)"))), 1)
        self.assertEqual(list(dead_links(INDEX, "# A `b` of C!\n[a](#a-b-of-c)")), [])

    def test_words(self):
        self.assertEqual(list(replaced_words("x.md", "`adrift.c` and daemon-adrift-address are names")), [])
        self.assertEqual(len(list(replaced_words("x.md", "It lets go of what goes adrift"))), 2)

    def test_words_of_code(self):
        self.assertEqual(list(replaced_in_code("x.c", "/* It is notified of Hangzhou's newsletter. */")), [])
        self.assertEqual(len(list(replaced_in_code("x.c", "/* It hangs\n * on that. */ n_leftover = let_go(x);"))), 3)

    def test_walks(self):
        head = "| file | function | what it does |\n|---|---|---|\n"
        steps = ("| `emu/meson.build` | | x |\n| `tests/docs/index_test.py` | `walks()` | x |\n"
                 "| `emu/meson.build` | | x |\n")
        self.assertEqual(list(walks("x.md", head + steps + "\n**2 files, 1 returns**\n")), [])
        self.assertEqual(len(list(walks("x.md", head + steps + "\n**2 files, 2 returns**\n"))), 1)
        steps = steps.replace("walks()", "walk" + "ed()")
        self.assertEqual(len(list(walks("x.md", head + steps + "\n**2 files, 1 returns**\n"))), 1)

    def test_recipes(self):
        text = "### A call\n`emu/meson.build` `tools/main.c`\n### B\n`emu/live/main.c`\n"
        files = ["emu/meson.build", "tools/main.c", "emu/live/main.c"]
        self.assertEqual(list(recipe_files(text, "A call", "main.c", files[:2])), [])
        self.assertEqual(len(list(recipe_files(text, "A call", "main.c", files))), 1)
        self.assertEqual(len(list(recipe_files(text, "A call", "no such name", files))), 1)

    def test_files(self):
        self.assertEqual(list(missing_files("x.md", "emu/live/main.c, core/lut.c, include/smartio/*.h, build/emu/no.c")), [])
        for name in ("emu/nothing.c", "core/nothing.h", "docs/nothing.md"):
            self.assertEqual(len(list(missing_files("x.md", f"a {name} b"))), 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
