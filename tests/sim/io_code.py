#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""In production an accessor of smartio/io.h is the bare access: each is compiled beside what stands
for it, and their instructions are compared.

usage: io_code.py INCLUDE-DIRECTORY COMPILER...
"""
import re
import subprocess
import sys
import tempfile

# Name, parameters, result, the accessor, the bare access; for every compiler and -O2. A barrier has
# an access on either side, so that one that orders nothing would differ.
BARRIER = {
    "to_fabric": '__asm__ volatile("sfence" ::: "memory")',
    "from_fabric": '__asm__ volatile("" ::: "memory")',
    "full": '__asm__ volatile("mfence" ::: "memory")',
}
CASES = [
    ("read8", "const volatile void *a", "uint8_t", "return sio_read8(a);", "return *(const volatile uint8_t *)a;"),
    ("read16", "const volatile void *a", "uint16_t", "return sio_read16(a);", "return *(const volatile uint16_t *)a;"),
    ("read32", "const volatile void *a", "uint32_t", "return sio_read32(a);", "return *(const volatile uint32_t *)a;"),
    ("read64", "const volatile void *a", "uint64_t", "return sio_read64(a);", "return *(const volatile uint64_t *)a;"),
    ("write8", "volatile void *a, uint8_t v", "void", "sio_write8(a, v);", "*(volatile uint8_t *)a = v;"),
    ("write16", "volatile void *a, uint16_t v", "void", "sio_write16(a, v);", "*(volatile uint16_t *)a = v;"),
    ("write32", "volatile void *a, uint32_t v", "void", "sio_write32(a, v);", "*(volatile uint32_t *)a = v;"),
    ("write64", "volatile void *a, uint64_t v", "void", "sio_write64(a, v);", "*(volatile uint64_t *)a = v;"),
    ("copy_to", "volatile void *a, const void *b, size_t n", "void", "sio_copy_to(a, b, n);",
     "memcpy((void *)(uintptr_t)a, b, n);"),
    ("copy_to_16", "volatile void *a, const void *b", "void", "sio_copy_to(a, b, 16);",
     "memcpy((void *)(uintptr_t)a, b, 16);"),
    ("copy_from", "void *a, const volatile void *b, size_t n", "void", "sio_copy_from(a, b, n);",
     "memcpy(a, (const void *)(uintptr_t)b, n);"),
    ("copy_across", "volatile void *a, const volatile void *b, size_t n", "void", "sio_copy_across(a, b, n);",
     "memmove((void *)(uintptr_t)a, (const void *)(uintptr_t)b, n);"),
    ("read32_acquire", "const volatile void *a", "uint32_t", "return sio_read32_acquire(a);",
     "return __atomic_load_n((const volatile uint32_t *)a, __ATOMIC_ACQUIRE);"),
    ("write32_release", "volatile void *a, uint32_t v", "void", "sio_write32_release(a, v);",
     "__atomic_store_n((volatile uint32_t *)a, v, __ATOMIC_RELEASE);"),
    ("compare_exchange32", "volatile void *a, uint32_t e, uint32_t v", "uint32_t",
     "return sio_compare_exchange32(a, e, v);",
     "return __sync_val_compare_and_swap((volatile uint32_t *)a, e, v);"),
    ("push_stores", "uint32_t *a", "uint32_t", "*a = 1; return sio_push_stores(a + 8) + a[1];",
     '*a = 1; __asm__ volatile("mfence" ::: "memory"); uint32_t r = *(const volatile uint32_t *)(a + 8);'
     ' __asm__ volatile("" ::: "memory"); return r + a[1];'),
] + [(name, "uint32_t *a", "uint32_t", f"*a = 1; sio_{name}_barrier(); *a = 2; return a[1];",
      f"*a = 1; {asm}; *a = 2; return a[1];") for name, asm in BARRIER.items()]
ACCESSOR = re.compile(r"^static inline .*?\b(sio_\w+)\(", re.M)


def check_all_are_here(header):
    with open(header, encoding="utf-8") as f:
        names = set(ACCESSOR.findall(f.read()))
    missing = [n for n in sorted(names) if not any(re.search(rf"\b{n}\(", c[3]) for c in CASES)]
    if missing:
        sys.exit(f"io.h has accessors that this test does not compare: {', '.join(missing)}")
    return len(names)


def functions(objfile):
    """Name -> instructions, without addresses."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", objfile], capture_output=True, text=True,
                          check=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(\w+)>:", line)
        if head:
            name = head.group(1)
            found[name] = []
        elif name and ":" in line:
            code = line.split(":", 1)[1].split("#")[0].strip()
            # Padding between functions is the assembler's.
            if code and not re.match(r"(data16|cs |nop|xchg +%ax,%ax)", code):
                found[name].append(re.sub(r"\b[0-9a-f]+ <[\w+]+>", "there", code))
    return found


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    include = sys.argv[1]
    n = check_all_are_here(f"{include}/smartio/io.h")
    source = '#include <string.h>\n#include "smartio/io.h"\n'
    for name, parameters, result, accessor, bare in CASES:
        for kind, code in (("accessor", accessor), ("bare", bare)):
            source += f"{result} {kind}_{name}({parameters});\n"
            source += f"{result} {kind}_{name}({parameters})\n{{\n{code}\n}}\n"
    for compiler in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/t.c", "w", encoding="ascii") as f:
                f.write(source)
            subprocess.run([compiler, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{include}", "-c",
                            f"{d}/t.c", "-o", f"{d}/t.o"], check=True)
            found = functions(f"{d}/t.o")
        for case in CASES:
            a, b = found[f"accessor_{case[0]}"], found[f"bare_{case[0]}"]
            if not a or a != b:
                sys.exit(f"{compiler}: {case[0]}:\n  accessor: {a}\n  bare:     {b}")
        print(f"{compiler}: {n} accessors in {len(CASES)} functions, each the bare access")


main()
