# SPDX-License-Identifier: BSD-2-Clause
"""Counts the instructions of a machine's reads by QEMU's plugin (insns.c)."""
import os
import re
import shutil

import cache
from machine import Failed

DISK = "/dev/nvme0n1"
# Kinds of calls, as insns.c numbers them: the reader waits, an interrupt is served; operations of ours and, where there is an
# IOMMU, of the kernel's own, by the module and the name of their functions.
WAIT, INTERRUPT = 0, 1
OPERATIONS = (("smartio_lend", "map_page"), ("smartio_lend", "unmap_page"), ("smartio_lend", "map_sg"), ("smartio_lend", "unmap_sg"),
              ("", "iommu_dma_map_page"), ("", "iommu_dma_unmap_page"), ("", "iommu_dma_map_sg"), ("", "iommu_dma_unmap_sg"))
FIRST_OPERATION = 2
# What both of them call, to write the IOMMU's tables and to have it forget them.
TABLES = {10: ("iommu_map", r"iommu_map(_atomic)?"), 11: ("iommu_unmap", r"iommu_unmap|iommu_unmap_fast")}
READ = "blkdev_read_iter"
# A read of the drive takes so long: else the emulator's drive, when its machine is idle, has answered before the reader waits.
SLOW_US = 3000
# Where a call of that kind begins, and functions of whom goes on behind it.
CALLS = {WAIT: (r"(blk_)?io_schedule(_timeout)?", r"__blkdev_direct_IO_simple|blkdev_direct_IO.*|blkdev_read_iter"),
         INTERRUPT: (r"handle_edge_irq", r"(asm_|__)?common_interrupt|(__)?irq_exit_rcu")}


def parse(symbols):
    """[(address, name, module)] of lines of /proc/kallsyms, sorted."""
    out = []
    for line in symbols.splitlines():
        words = line.split()
        if len(words) in (3, 4) and words[1].lower() == "t":
            out.append((int(words[0], 16), words[2], words[3].strip("[]") if len(words) == 4 else ""))
    return sorted(out)


def control(symbols):
    """What the plugin is told."""
    found = parse(symbols)
    lines = [f"read {a:x}" for a, name, module in found if name == READ and not module]
    if len(lines) != 1:
        raise Failed(f"the kernel has {len(lines)} functions {READ}; one is wanted")
    behind = {a: b for (a, *_), (b, *_) in zip(found, found[1:])}
    drivers = [(min(at), max(at) + 4096) for at in ([a for a, _, m in found if m == module] for module in ("nvme", "nvme_core"))]
    callers = []
    for a, name, module in found:
        for kind, (begins, ends) in CALLS.items():
            if not module and re.fullmatch(begins, name):
                lines.append(f"begin {kind} {a:x}")
            elif not module and re.fullmatch(ends, name):
                lines.append(f"end {kind} {a:x} {behind[a]:x}")
        if (module, name) in OPERATIONS:
            lines.append(f"begin {FIRST_OPERATION + OPERATIONS.index((module, name))} {a:x}")
        if not module and re.match("(__)?dma_(un)?map_", name):
            drivers.append((a, behind[a]))
        if module == "smartio_lend" or re.match("(__)?iommu_dma_(un)?map", name):
            callers.append((a, min(behind[a], a + 4096)))
        lines += [f"begin {kind} {a:x}" for kind, (_, begins) in TABLES.items() if not module and re.fullmatch(begins, name)]
    lines += [f"end {kind} {first:x} {last:x}" for first, last in callers for kind in TABLES]
    lines += [f"end {FIRST_OPERATION + i} {first:x} {last:x}" for first, last in drivers for i in range(len(OPERATIONS))]
    return "\n".join(lines) + "\n"


class Counter:
    """Instructions of one machine."""

    def __init__(self, m, folder):
        self.m, self.folder = m, folder

    def reads(self, count):
        """{what: [instructions of each]}; microseconds of the median read, by the emulator's clock."""
        with open(f"{self.folder}/control.{self.m.name}", "w", encoding="ascii") as f:
            f.write(control(self.m.run("symbols")))
        took = float(self.m.run(f"count_reads {DISK} {count}").split()[-1])
        with open(f"{self.folder}/counts.{self.m.name}", encoding="ascii") as f:
            counts = {name: list(map(int, values)) for name, *values in map(str.split, f)}
        if len(counts["all"]) < count / 2:
            raise Failed(f"{count} reads, of which {len(counts['all'])} were seen to wait for the drive")
        names = {str(INTERRUPT): "interrupt", **{str(kind): name for kind, (name, _) in TABLES.items()},
                 **{str(i): name for i, (_, name) in enumerate(OPERATIONS, FIRST_OPERATION)}}
        return {names.get(name, name): values for name, values in counts.items() if values}, took


def qemu(build, folder, name):
    """Words of the machine's QEMU. It has to use one processor (PARAMETERS)."""
    return ("-plugin", f"{build}/bench/lending/insns.so,control={folder}/control.{name},out={folder}/counts.{name}")


PARAMETERS = "maxcpus=1"  # the plugin is not told which processor executes


def fill(image, build):
    """What the machine's script (guest.sh) needs."""
    fio = shutil.which("fio")
    if not fio:
        raise cache.Unavailable("fio is not installed: apt-get install fio")
    image.add_program(fio)
    image.add_program(f"{build}/bench/lending/mark")


def script(library):
    """guest.sh, after one of tests/vm's."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "tests", "vm", library), encoding="utf-8") as f:
        text = f.read()
    with open(os.path.join(here, "guest.sh"), encoding="utf-8") as f:
        return text + f.read()
