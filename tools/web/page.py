#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Put the page of smartio web together, as C: its scripts within it, and a policy that lets a browser run those and
apply that style alone, by their sums.

usage: page.py PAGE.html SCRIPT.js... > page.c
"""
import base64
import hashlib
import os
import re
import sys


def literal(text):
    """As a C string, line by line."""
    lines = text.encode().splitlines(keepends=True)
    return "\n".join('\t"' + "".join(
        chr(b) if 0x20 <= b < 0x7f and b not in b'"\\?' else f"\\{b:03o}" for b in line) + '"' for line in lines)


def sums(page, element):
    found = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in found)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        page = f.read()
    for path in sys.argv[2:]:
        mark = f"/* {os.path.basename(path)} */\n"
        if page.count(mark) != 1:
            sys.exit(f"page.py: {sys.argv[1]} must have the line {mark.strip()} once")
        with open(path, encoding="utf-8") as f:
            page = page.replace(mark, f.read())
    policy = (f"default-src 'none'; script-src {sums(page, 'script')}; style-src {sums(page, 'style')}; "
              "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    print("/* Made of tools/web/page.html by page.py. */\n#include \"web/server.h\"\n")
    print(f"const char tool_web_policy[] =\n{literal(policy)};\n\nconst char tool_web_html[] =\n{literal(page)};")


main()
