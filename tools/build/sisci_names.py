#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The names that programs look up in libsisci.so at run time, made from the header.

Programs that load the library with dlopen() ask for _SISCI_PUBLIC_FUNC_ST_<function> (or _MT_), and
for flags as objects: const unsigned int _SISCI_PUBLIC_CONST_<flag>.

usage: sisci_names.py HEADER LINKER-OPTIONS C-SOURCE
"""
import re
import sys

DECLARATION = r"(?:[\w]+[\s*]+)+?(SCI\w+)\s*\([^;{]*\)\s*;"
CONSTANT = r"^#define (SCI_(?:FLAG|Q|MEMTYPE|MEMACCESS|INFINITE|LOCAL|DMA_CHANNEL)\w+) "


def main():
    header, options, source = sys.argv[1:]
    with open(header, encoding="ascii") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    constants = re.findall(CONSTANT, text, re.M)
    functions = re.findall(DECLARATION, re.sub(r"^\s*#.*$", "", text, flags=re.M))
    if len(functions) < 50 or len(constants) < 50:
        raise SystemExit(f"{header}: {len(functions)} functions, {len(constants)} constants: "
                         "it does not look as this script expects")
    with open(options, "w", encoding="ascii") as f:
        for name in functions:
            for kind in ("ST", "MT"):
                f.write(f"--defsym=_SISCI_PUBLIC_FUNC_{kind}_{name}={name}\n")
    with open(source, "w", encoding="ascii") as f:
        f.write("/* SPDX-License-Identifier: BSD-2-Clause */\n#include \"sisci_api.h\"\n"
                "#pragma GCC visibility push(default)\n")
        for name in constants:
            f.write(f"extern const unsigned int _SISCI_PUBLIC_CONST_{name};\n"
                    f"const unsigned int _SISCI_PUBLIC_CONST_{name} = {name};\n")


if __name__ == "__main__":
    main()
