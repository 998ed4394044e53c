#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages (section 3) of the SISCI API, made from what the header says: one per group of
functions, and for each function a page that refers to its group's. Runs when installing.

usage: sisci_man.py HEADER SCDOC MANDIR     (below $DESTDIR)
"""
import os
import re
import subprocess
import sys

# The start of a group's title in the header -> page and what NAME says. Others go by their title.
PAGES = {
    "The library": ("sci_library", "begin and end, virtual devices, texts of errors"),
    "Nodes": ("sci_nodes", "nodes, adapters, queries"),
    "Local segments": ("sci_local_segments", "memory of this host for others"),
    "Remote segments": ("sci_remote_segments", "memory of other hosts"),
    "Mapping": ("sci_mapping", "segments in this process's address space"),
    "Sequences": ("sci_sequences", "did the stores through a map arrive?"),
    "Copies": ("sci_copies", "copies by this CPU"),
    "Barriers": ("sci_barriers", "order of loads and stores"),
    "Interrupts": ("sci_interrupts", "interrupts without data"),
    "DMA": ("sci_dma", "copies by an engine"),
    "Data interrupts": ("sci_data_interrupts", "interrupts with data: messages"),
    "SmartIO: devices": ("sci_devices", "devices anywhere in the cluster"),
    "SmartIO: generations": ("sci_older_devices", "SmartIO before the current generation"),
    "Not on PCIe": ("sci_absent", "what is not on PCIe, or not here"),
}
NEW_PARAGRAPH = re.compile(r"^(@\w+(, @\w+)*:|Errors:|Return:|SCI_Q_\w+[,:])")


def escape(text):
    text = re.sub(r"([\\*_`~\[\]#|<>])", r"\\\1", text)
    return re.sub(r"@(\w+(?:\\_\w+)*)", r"*\1*", text)


def paragraphs(lines):
    """The lines of a comment, as scdoc has paragraphs."""
    found = [""]
    for line in lines:
        text = line.strip()
        if not text:
            found.append("")
        elif text.startswith("- ") or NEW_PARAGRAPH.match(text):
            found.append(text)
        else:
            found[-1] = f"{found[-1]} {text}".strip()
    return [escape(re.sub(r"^- ", "", p)) for p in found if p]


def comment_lines(comment):
    body = re.sub(r"^/\*\*?|\*/$", "", comment.strip())
    return [re.sub(r"^\s*\*( |$)", "", line) for line in body.splitlines()]


def groups(text):
    """[(title, [(comment's paragraphs, [prototype])])]"""
    found = []
    for part in re.split(r"^/\* ---- ", text, flags=re.M)[1:]:
        title, _, body = part.partition(" ---- */")
        entries = []
        for match in re.finditer(r"/\*.*?\*/|^[a-z][\w \t*]+\bSCI\w+\([^;]*\);", body, re.S | re.M):
            if match.group().startswith("/*"):
                entries.append((paragraphs(comment_lines(match.group())), []))
            elif entries:
                entries[-1][1].append(re.sub(r"\s+", " ", match.group()))
        if any(prototypes for _, prototypes in entries):
            found.append((title, entries))
    return found


def function(prototype):
    return re.search(r"\b(SCI\w+)\(", prototype).group(1)


def page_name(title):
    for start, page in PAGES.items():
        if title.startswith(start):
            return page
    title = title.split(":")[0]
    return "sci_" + re.sub(r"\W+", "_", title.lower()).strip("_"), title.lower()


def page(name, what, entries, others):
    text = f"{name}(3) \"SmartIO\"\n\n# NAME\n\n{name} - {what}\n\n# SYNOPSIS\n\n"
    text += "*#include <sisci\\_api.h>*\n\n"
    for _, prototypes in entries:
        for prototype in prototypes:
            text += f"{escape(prototype).replace(function(prototype), '*' + function(prototype) + '*')}\n\n"
    text += "# DESCRIPTION\n\n"
    for lines, prototypes in entries:
        for prototype in prototypes:
            text += f"*{function(prototype)}*()\n\n"
        text += "".join(line + "\n\n" for line in lines)
    return text + f"# SEE ALSO\n\n{', '.join(f'*{o}*(3)' for o in others)}, *smartio*(1)\n"


def intro(text, pages):
    lines = comment_lines(re.search(r"/\*\*.*?\*/", text, re.S).group())
    what = "the SISCI shared-memory API and its SmartIO extension"
    body = "".join(line + "\n\n" for line in paragraphs(lines))
    listed = "".join(f"*{name}*(3)\n\n\t{what}\n\n" for name, what in pages)
    return (f"sisci(3) \"SmartIO\"\n\n# NAME\n\nsisci - {what}\n\n# SYNOPSIS\n\n"
            "*#include <sisci\\_api.h>*\n\ncc ... $(pkg-config --cflags --libs smartio)\n\n"
            f"# DESCRIPTION\n\n{body}# PAGES\n\n{listed}# SEE ALSO\n\n*smartio*(1), *smartio-run*(1)\n")


def write(folder, scdoc, name, text):
    done = subprocess.run([scdoc], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}.3: {done.stderr}")
    with open(os.path.join(folder, name + ".3"), "w", encoding="utf-8") as f:
        f.write(done.stdout)


def main():
    header, scdoc, mandir = sys.argv[1:]
    with open(header, encoding="ascii") as f:
        text = f.read()
    folder = os.environ.get("DESTDIR", "") + os.path.join(mandir, "man3")
    os.makedirs(folder, exist_ok=True)
    found = [(page_name(title), entries) for title, entries in groups(text)]
    names = ["sisci"] + [name for (name, _), _ in found]
    write(folder, scdoc, "sisci", intro(text, [p for p, _ in found]))
    for (name, what), entries in found:
        write(folder, scdoc, name, page(name, what, entries, [n for n in names if n != name]))
        for _, prototypes in entries:
            for prototype in prototypes:
                path = os.path.join(folder, function(prototype) + ".3")
                with open(path, "w", encoding="ascii") as f:
                    f.write(f".so man3/{name}.3\n")


if __name__ == "__main__":
    main()
