# SPDX-License-Identifier: BSD-2-Clause
"""The blocks of README.md, docs/ and the man pages, and what each of them is (docs/documents.md)."""
import re
from dataclasses import dataclass

# Why a reader's commands are not run by the test: what stands behind `sh`.
REASONS = ("needs hardware", "needs root", "needs QEMU", "needs CUDA", "needs fio", "takes long")
BUILT = set()  # of these: the test's build has it
KINDS = ("sh", "c", "yaml", "json", "text")
# What somebody would type; a block of text may not begin a line with one of these.
COMMANDS = re.compile(r"^\s*(\$ |sudo |make\b|meson |ninja |cc |gcc |clang |smartio |smartio-nvme |smartiod |smartio-emu "
                      r"|python3 |build/|tests/|tools/|\./|export |kill |insmod |modprobe |apt)")


@dataclass
class Block:
    path: str
    line: int  # of its first line of text
    words: list  # kind, and what stands behind it
    lines: list

    @property
    def kind(self):
        return self.words[0] if self.words else ""

    @property
    def rest(self):
        return " ".join(self.words[1:])

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)

    @property
    def runs(self):
        return self.kind == "sh" and (not self.rest or self.rest in BUILT)

    def where(self):
        return f"{self.path}:{self.line}"


def markdown(path, text):
    """Fenced blocks; those by indentation come without a kind."""
    blocks, fence, block, in_list, blank = [], None, None, False, True
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"^( *)(```+)(.*)$", line)
        if fence:
            if mark and mark.group(2) == fence[1] and not mark.group(3).strip():
                fence = block = None
            else:
                block.lines.append(line[len(fence[0]):] if line.startswith(fence[0]) else line)
            continue
        if mark:
            fence = mark.group(1, 2)
            block = Block(path, number + 1, mark.group(3).split(), [])
            blocks.append(block)
            blank = False
            continue
        if not line.strip():
            blank = True
            continue
        if line.startswith("    ") and (block or (blank and not in_list)):
            if not block:
                block = Block(path, number, [], [])
                blocks.append(block)
            block.lines.append(line[4:])
        else:
            block = None
            if re.match(r"^ {0,3}([-*]|\d+\.) ", line):
                in_list = True
            elif not line.startswith(" "):
                in_list = False
        blank = False
    return blocks


def manual(path, text):
    """Literal blocks of scdoc, typed if they are examples; "; needs root" before one says why it is not."""
    blocks, block, reason, section = [], None, [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if line == "```":
            kind = ["sh", *reason] if section == "EXAMPLES" else ["text"]
            block = None if block else Block(path, number + 1, kind, [])
            if block:
                blocks.append(block)
            reason = []
        elif block:
            block.lines.append(line)
        elif line.startswith("; "):
            reason = line[2:].split()
        elif line.startswith("# "):
            section = line[2:]
        elif section == "EXAMPLES" and line.startswith("\t"):
            blocks.append(Block(path, number, [], [line.strip()]))
    return blocks


def of(path, text):
    return manual(path, text) if path.endswith(".scd") else markdown(path, text)


def complaint(block):
    """What is wrong with it as a block; None: nothing."""
    if not block.words:
        return ("a block without a kind: write ```sh for what a reader types (the test runs it), ```sh takes long "
                f"or another reason ({', '.join(REASONS)}) if it cannot be run here, ```c, ```yaml, or ```text")
    if block.kind not in KINDS:
        return f"'{block.kind}' is no kind of block: {', '.join(KINDS)} are"
    if block.kind == "sh" and block.rest and block.rest not in REASONS:
        return f"'{block.rest}' is no reason: {', '.join(REASONS)} are"
    if block.kind in ("text", "json"):
        for i, line in enumerate(block.lines):
            if COMMANDS.match(line):
                return f"line {block.line + i} is a command in a block of {block.kind}: ```sh is its kind"
    return None
