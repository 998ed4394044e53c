#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What clang warns of in the sources of a build folder, without objects of them.

Half of what clang takes for one of our sources is its own start (110 of 230 ms, measured), so sources that are
compiled with the same options are given to one process, but for those with a #pragma, which would count for the next
ones, too. It makes code of them in its own terms (LLVM's), which is thrown away: all that clang warns of has been seen
then, but for instructions in assembler.

usage: warnings.py FOLDER [TARGET]
What FOLDER generates for its sources is made first. Left out is what TARGET is made of: ninja compiles that.
Exit status: 1 if a source warns or does not compile.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

MOST = 40  # sources of a process: the last one should not run alone for long


def run(folder, *words):
    """Return: exit status, and what was said."""
    done = subprocess.run(words, cwd=folder, check=False, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def ninja(folder, *words):
    status, said = run(folder, "ninja", *words)
    if status:
        sys.exit(f"ninja {' '.join(words)}: exit {status}\n{said[-4000:]}")
    return said.splitlines()


def generate(folder):
    """What sources include or are that is generated."""
    made = [line for line in ninja(folder, "-t", "targets", "rule", "CUSTOM_COMMAND")
            if line.endswith((".c", ".h", ".cc", ".hh"))]
    if made:
        ninja(folder, *made)


def take(words, option, n):
    """Removes @option with the @n - 1 words that belong to it. Return: the last of them."""
    at = words.index(option)
    last = words[at + n - 1]
    del words[at:at + n]
    return last


def has_pragma(folder, source):
    with open(os.path.join(folder, source), encoding="utf-8", errors="replace") as f:
        return re.search(r"^\s*#\s*pragma|_Pragma", f.read(), re.M) is not None


def groups(folder, leave):
    """Sources by the options that they are compiled with, but for those whose object is in @leave."""
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = {}
    for c in commands:
        if c["output"] in leave:
            continue
        words = shlex.split(c["command"])
        for option, n in (("-MD", 1), ("-MQ", 2), ("-MF", 2), ("-o", 2), ("-c", 1)):
            take(words, option, n)
        words.remove(c["file"])
        # A target's own folder has what is generated for it: mostly nothing, or no header.
        own = c["output"].partition(".p/")[0] + ".p"
        path = os.path.join(folder, own)
        if not os.path.isdir(path) or not any(name.endswith((".h", ".hh")) for name in os.listdir(path)):
            words = [w for w in words if w != "-I" + own]
        found.setdefault(tuple(words), set()).add(c["file"])
    return found


def compiler(folder, words, source):
    """The command of the compiler proper, which takes several sources; the driver starts it for each."""
    status, said = run(folder, *words, "-fsyntax-only", "-###", source)
    lines = [line for line in said.splitlines() if '"-cc1"' in line]
    if status or len(lines) != 1 or "warning:" in said:
        sys.exit(f"{shlex.join(words)} -###: no command of one compiler:\n{said}")
    # Colours are for terminals; meson and ccache ask for them all the same.
    command = [w for w in shlex.split(lines[0]) if w != "-fcolor-diagnostics"]
    take(command, "-main-file-name", 2)
    command[command.index("-fsyntax-only")] = "-emit-llvm-only"
    if command.pop() != source:
        sys.exit(f"the last word is not {source}: {lines[0]}")
    return command


def check(folder, words, sources):
    return run(folder, *compiler(folder, words, sources[0]), *sources)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder, targets = sys.argv[1], sys.argv[2:]
    generate(folder)
    leave = set()
    for line in ninja(folder, "-t", "commands", *targets) if targets else []:
        words = shlex.split(line)
        if "-c" in words and "-o" in words:
            leave.add(words[words.index("-o") + 1])
    jobs = []
    for words, sources in groups(folder, leave).items():
        alone = sorted(name for name in sources if has_pragma(folder, name))
        names = sorted(sources.difference(alone))
        jobs += [(words, [name]) for name in alone]
        jobs += [(words, names[at:at + MOST]) for at in range(0, len(names), MOST)]
    if not jobs:
        sys.exit(f"{folder} has no source that {' '.join(targets)} leaves out")
    jobs.sort(key=lambda job: -len(job[1]))
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for status, said in pool.map(lambda job: check(folder, *job), jobs):
            bad += status != 0 or "warning:" in said
            print(said, end="", flush=True)
    print(f"{sum(len(job[1]) for job in jobs)} sources by {len(jobs)} processes, {len(leave)} left to ninja: "
          f"{bad or 'no'} processes with warnings or errors")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
