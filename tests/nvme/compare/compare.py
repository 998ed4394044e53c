#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Our drive model answers as QEMU's NVMe device does, but for differences with reasons.

usage: compare.py NVME_SEQUENCES [QEMU]       the test
       compare.py --record NVME_SEQUENCES QEMU    write what QEMU answers to qemu.txt and functions-qemu.txt

sequences.txt is run on the model, and functions.txt on one with virtual functions; and on QEMU where
that is installed in the version that the records are of; else the model is held against these alone.
"""
import fnmatch
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# What is added to the kind of drive; sequences; what QEMU answered.
LISTS = [("", os.path.join(HERE, "sequences.txt"), os.path.join(HERE, "qemu.txt")),
         ("-functions", os.path.join(HERE, "functions.txt"), os.path.join(HERE, "functions-qemu.txt"))]
REASONS = os.path.join(HERE, "differences.txt")


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=140)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: {done.returncode}\n{done.stderr}")
    return done.stdout.splitlines()


def version(qemu):
    text = run(qemu, "--version")[0]
    return re.search(r"version (\d+\.\d+)", text).group(1)


def on_qemu(program, qemu, kind, sequences):
    return [f"# QEMU {version(qemu)}"] + run(program, "qemu" + kind, sequences, qemu)


def by_key(lines):
    """"name step answer", and of Identify "name step field value": what belongs together."""
    found = {}
    for line in lines:
        name, step, answer = line.split(" ", 2)
        word = answer.split(" ")[0]
        key = f"{name} {word}" if re.fullmatch(r"[a-z][a-z0-9]*", word) and word != "no" \
            and word != "nothing" and " " in answer else name
        found.setdefault(key, []).append(f"{step} {answer}")
    return found


def reasons():
    """Paragraphs: lines "pattern pattern...", then the reason, which begins with "- "."""
    table, patterns = [], []
    with open(REASONS, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip()
            if not line or line.startswith("#"):
                patterns = []
            elif line.startswith("- "):
                if not patterns:
                    sys.exit(f"differences.txt:{number}: a reason for nothing")
                table += [(p, number) for p in patterns]
            elif not line.startswith(" "):
                patterns += [p.strip() for p in line.split(",") if p.strip()]
    return table


def compare(model, qemu):
    table, used, problems = reasons(), set(), 0
    for key in sorted(set(model) | set(qemu)):
        hits = [p for p, _ in table if fnmatch.fnmatchcase(key, p)]
        used.update(hits if model.get(key) != qemu.get(key) else [])
        if model.get(key) == qemu.get(key) or hits:
            continue
        problems += 1
        print(f"{key}: no reason is given for\n  model {model.get(key)}\n  QEMU  {qemu.get(key)}")
    for pattern, line in table:
        if pattern not in used:
            problems += 1
            print(f"differences.txt:{line}: {pattern}: there is no such difference (any more)")
    return problems


def check_record(args, kind, sequences, path, record):
    """Does QEMU, where it is installed, answer as recorded? Return: problems."""
    if len(args) < 2:
        print(f"QEMU is not installed: compared with {os.path.basename(path)} alone")
        return 0
    if f"# QEMU {version(args[1])}" != record[0]:
        print(f"QEMU {version(args[1])} is not what {os.path.basename(path)} is of: compared with that alone")
        return 0
    problems, now = 0, on_qemu(*args, kind, sequences)
    for old, new in zip(record, now):
        if old != new:
            problems += 1
            print(f"QEMU now answers otherwise than recorded:\n  {old}\n  {new}")
    return problems + (len(record) != len(now))


def main():
    args = sys.argv[1:]
    if args[0] == "--record":
        for kind, sequences, path in LISTS:
            with open(path, "w", encoding="ascii") as f:
                f.write("\n".join(on_qemu(args[1], args[2], kind, sequences)) + "\n")
        return 0
    problems, model, qemu = 0, [], []
    for kind, sequences, path in LISTS:
        with open(path, encoding="ascii") as f:
            record = f.read().splitlines()
        problems += check_record(args, kind, sequences, path, record)
        model += run(args[0], "model" + kind, sequences)
        qemu += record[1:]
    problems += compare(by_key(model), by_key(qemu))
    names = {line.split(" ")[0] for line in model}
    print(f"{len(names)} sequences, {len(model)} answers, {problems} problems")
    return problems != 0


if __name__ == "__main__":
    sys.exit(main())
