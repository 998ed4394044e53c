#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A C table of calls of every function of the API, for misuse_test.c to make with whatever is wrong.

usage: misuse_calls.py TABLE OUTPUT     TABLE: docs/sisci-coverage.md
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "build"))
import sisci_coverage  # noqa: E402

HANDLES = {
    "sci_desc_t": "DESC", "sci_local_segment_t": "LOCAL_SEGMENT", "sci_remote_segment_t": "REMOTE_SEGMENT",
    "sci_map_t": "MAP", "sci_sequence_t": "SEQUENCE", "sci_dma_queue_t": "DMA_QUEUE",
    "sci_dma_channel_t": "DMA_CHANNEL", "sci_local_interrupt_t": "LOCAL_INTERRUPT",
    "sci_remote_interrupt_t": "REMOTE_INTERRUPT", "sci_local_data_interrupt_t": "LOCAL_DATA_INTERRUPT",
    "sci_remote_data_interrupt_t": "REMOTE_DATA_INTERRUPT", "sci_block_transfer_t": "BLOCK_TRANSFER",
    "sci_smartio_device_t": "DEVICE", "sci_device_t": "DEVICE",
}
# What else a call needs to be right but for one parameter.
SCALARS = {
    "command": "SCI_Q_API", "size": "64", "length": "64", "nodeId": "m->node", "vecLength": "1",
    "maxEntries": "1", "maxCount": "1", "segmentId": "777", "memtype": "SCI_MEMTYPE_PRIVATE",
}
UNREAD = {"callbackArg", "addr"}  # may be anything, or a hint


def argument(text, made):
    base, stars, name = re.fullmatch(r"(.*?)\s*(\**)(\w+)", text).groups()
    kind = re.sub(r"\b(const|volatile)\b", "", base).strip()
    if name == "error" and stars:
        made["error"] = True
        return "m->error"
    if not stars and kind in HANDLES:
        made["handles"].append(HANDLES[kind])
        return f"({kind})m->handle[{len(made['handles']) - 1}]"
    if name == "flags":
        made["flags"] = True
        return "m->flags"
    if kind.startswith("sci_cb_") or name in UNREAD:
        return "NULL"
    if stars:
        made["pointers"].append(name)
        return f"({kind} {stars})m->pointer[{len(made['pointers']) - 1}]"
    if kind == "sci_address_t":
        return "(sci_address_t){4, 0, 0}"
    if kind == "sci_dma_type_t":
        return "SCI_DMA_TYPE_ADAPTER"
    return SCALARS.get(name, "0")


def call(name, prototype, flags, errors):
    made = {"handles": [], "pointers": [], "flags": False, "error": False}
    head, parameters = re.fullmatch(r"(.*?)\((.*)\)", prototype).groups()
    args = [] if parameters == "void" else [argument(p.strip(), made) for p in parameters.split(",")]
    returns = head != f"void {name}"
    body = f"{name}({', '.join(args)});"
    if returns:
        cast = "(uint64_t)(uintptr_t)" if "*" in head else "(uint64_t)"
        body = f"m->result = {cast}{body}"
    lawful = " | ".join("SCI_FLAG_" + f for f in flags) or "0"
    row = [f'.name = "{name}"', f".make = call_{name}", f".lawful = {lawful}"]
    row += [f".{what} = true" for what, is_so in (
        ("has_flags", made["flags"]), ("has_error", made["error"]), ("returns", returns),
        ("absent", errors == ["NOT_SUPPORTED"])) if is_so]
    if made["handles"]:
        row += [f".n_handles = {len(made['handles'])}", f".handle = {{{', '.join(made['handles'])}}}"]
    if made["pointers"]:
        names = ", ".join(f'"{p}"' for p in made["pointers"])
        row += [f".n_pointers = {len(made['pointers'])}", f".pointer = {{{names}}}"]
    return (f"static void call_{name}(struct misuse *m)\n{{\n\t(void)m;\n\t{body}\n}}\n\n",
            f"\t{{{', '.join(row)}}},\n")


def main():
    functions, table = "", ""
    for name, prototype, flags, errors, _ in sisci_coverage.functions(sys.argv[1]):
        if name != "SCITerminate":
            function, row = call(name, prototype, flags, errors)
            functions, table = functions + function, table + row
    with open(sys.argv[2], "w", encoding="ascii") as f:
        f.write(f"{functions}static const struct call calls[] = {{\n{table}}};\n")


main()
