#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the simulator says when a seed fails: one line with seed and commit, whatever ended it; a trace that
ends there; fewer faults with which it still fails; what the faults did.

usage: failures.py crash SMARTIO-SIM-THAT-CRASHES
       failures.py oracle SMARTIO-SIM-THAT-FAILS SMARTIO-SIM
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

LINE = r"^FAILED seed {} commit \S+ at (\d+\.\d{{6}}) s: (.*)$"
EVENT = re.compile(r"^\d+\.\d{9} \S")
CRASHES = {"assert": signal.SIGABRT, "abort": signal.SIGABRT, "bare": signal.SIGABRT,
           "wild": signal.SIGSEGV, "deep": signal.SIGSEGV}


def want(condition, *what):
    if not condition:
        sys.exit(" ".join(str(w) for w in what))


def run(program, seed, *more, **env):
    return subprocess.run([program, str(seed), *more], capture_output=True, text=True,
                          env=dict(os.environ, **env))


def the_line(seed, out):
    found = re.findall(LINE.format(seed), out.stderr, re.M)
    want(len(found) == 1, "not one line that says what failed, but", len(found), "in", out.stderr)
    return found[0]


def traced(folder, program, seed, *more, **env):
    """The run, its trace's lines and its file for Perfetto's viewer, which is whole."""
    trace, perfetto = os.path.join(folder, "t.txt"), os.path.join(folder, "t.json")
    out = run(program, seed, "--trace", trace, "--perfetto", perfetto, *more, **env)
    with open(trace, encoding="utf-8") as f:
        lines = f.read().split("\n")
    want(lines.pop() == "", "the trace ends within a line")
    with open(perfetto, encoding="utf-8") as f:
        events = json.load(f)
    for line in lines:
        want(EVENT.match(line), "a line of the trace has no time:", line)
    # Perfetto's has names of tracks beside.
    want(sum(e["ph"] != "M" for e in events) == len(lines), "events differ in number")
    want({e["tid"] for e in events if "tid" in e} ==
         {e["tid"] for e in events if e["name"] == "thread_name"}, "tracks without a name")
    begun = {}
    for e in events:
        if e["ph"] == "B":
            begun.setdefault(e["tid"], []).append(e["name"])
        elif e["ph"] == "E":
            want(e["name"] in begun.get(e["tid"], []), "a span ends that never began:", e)
            begun[e["tid"]].remove(e["name"])
    return out, lines, events


def ends_with(lines, events, at, text):
    time, last = lines[-1].split(" ", 1)
    want(last == "FAILED: " + text, "the trace ends with", lines[-1], "not with", text)
    want(time.startswith(at), "the trace ends at", time, "not at", at)
    want(events[-1]["name"].startswith("FAILED: "), "Perfetto's file ends with", events[-1])


def crash(folder, program):
    for how, sig in CRASHES.items():
        out, lines, events = traced(folder, program, 12, "--hosts", "2", SIM_CRASH=how)
        at, what = the_line(12, out)
        want(out.returncode == -sig, how, "ends with", out.returncode, out.stderr)
        want(what == "crash: " + sig.name, how, "is told as", what)
        ends_with(lines, events, at, what)
        want(lines[-2].endswith(" the crash: " + how), "before the end the trace has", lines[-2])
        if how == "bare":
            want("crash: a pointer into fabric memory was dereferenced" in out.stderr, out.stderr)


def shrunk(program, seed, options):
    """The options that fail at first, and those that --shrink ends with."""
    out = run(program, seed, "--shrink", *options)
    tried = re.findall(r"^(shrunk: )?fails: smartio-sim (.*)$", out.stdout, re.M)
    want(tried and tried[-1][0], "--shrink says", out.stdout)
    return tried[0][1].split(), tried[-1][1].split()


def option(words, name):
    return words[words.index(name) + 1] if name in words else ""


def oracle(folder, program):
    options = ["--workload", "interrupt", "--seconds", "2"]
    for seed in range(1, 200):
        bare = run(program, seed, *options)
        if bare.returncode == 0:
            continue
        out, lines, events = traced(folder, program, seed, *options)
        want(out.stderr == bare.stderr, "traced it is another run:", out.stderr, bare.stderr)
        at, what = the_line(seed, out)
        ends_with(lines, events, at, "oracle " + what)
        first, last = shrunk(program, seed, options)
        faults = option(last, "--faults")
        # One that fails without any fault, or by one that is no events, shows nothing of them.
        if faults == "none":
            continue
        without = ["999999" if last[i - 1] == "--events" else word for i, word in enumerate(last)]
        if run(program, *without).returncode:
            continue
        want(len(faults) < len(option(first, "--faults")), "of", first, "no fault was left out")
        want(option(last, "--events"), "no event was left out:", last)
        again = run(program, *last)
        want(again.returncode == 1, "with", last, "it ends with", again.returncode)
        the_line(seed, again)
        print(f"seed {seed}: {' '.join(first)}, shrunk to {' '.join(again.args[1:])}")
        return
    sys.exit("no seed fails by a fault")


def hashes(folder, program):
    """A seed that passes: the same hash, watched or not."""
    for seed in (3, 4):
        plain = run(program, seed, "--quiet", "--seconds", "1")
        out, lines, events = traced(folder, program, seed, "--quiet", "--seconds", "1")
        want(plain.returncode == 0 and plain.stdout == out.stdout, "traced it is another run")
        times = [float(line.split()[0]) for line in lines]
        want(len(lines) > 200 and times == sorted(times), "the trace goes back in time")
        want(any(e["ph"] == "B" for e in events), "no spans")


# Seeds in which most faults do something, some of them nothing.
COUNTED = {"3": [], "20": ["--faults", "port,memory,death,cut"]}
FAULT = re.compile(r"(\w+) (\d+)(?:/(\d+))?(?: in (\d+) of (\d+))?(?:, |$)")
# What the trace has of them, a line for each time.
TRACED = {"port": r"port \d+: fault port: op \d+ fails$", "memory": r"fault memory: an allocation fails",
          "cut": r"room: connection of daemons \d+ and \d+ breaks$", "crash": r"host \d+ crashes$",
          "death": r"\S+ killed( in step \d+)?$"}


def counts(line):
    return {name: [int(n or 0) for n in numbers] for name, *numbers in FAULT.findall(line.split(": ", 1)[1])}


def counted(folder, program):
    """What faults did: as the trace has it, summed of many seeds; one that did nothing is told."""
    total, lines = {}, []
    for seed, options in COUNTED.items():
        out, trace, _ = traced(folder, program, seed, "--seconds", "4", *options)
        line, = re.findall(r"^faults, counted: .*$", out.stdout, re.M)
        lines.append(f"{seed} --seconds 4 {' '.join(options)}\n")
        for name, (did, planned, *_) in counts(line).items():
            found = sum(bool(re.search(r"^\S+ " + TRACED[name], t)) for t in trace) if name in TRACED else did
            want(found == did, "seed", seed, name, "did", did, "and the trace has", found)
            total[name] = [a + b for a, b in zip(total.get(name, [0] * 4), (did, planned, did > 0, 1))]
    want(all(total[name][0] > 0 for name in TRACED), "some did nothing:", total)
    fixed = os.path.join(folder, "seeds")
    with open(fixed, "w", encoding="utf-8") as f:
        f.writelines(lines)
    for more, code in (((), 0), (("--all-faults",), 1)):
        out = subprocess.run([program, "--check", fixed, "--new", "0", *more], capture_output=True, text=True,
                             check=False)
        line, = re.findall(r"^faults, counted .*$", out.stdout, re.M)
        want(counts(line) == total, line, "is not the sum", total)
        want(out.returncode == code, *more, "it ends with", out.returncode, out.stderr)
    missing = set(re.findall(r"the fault (\w+) did nothing", out.stderr))
    every = re.findall(r"^fault (\w+)$", subprocess.run([program, "--list"], capture_output=True, text=True,
                                                        check=True).stdout, re.M)
    want(missing == {name for name in every if not total.get(name, [0])[0]}, "told are", missing)


def main():
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "crash":
            crash(folder, sys.argv[2])
        else:
            oracle(folder, sys.argv[2])
            hashes(folder, sys.argv[3])
            counted(folder, sys.argv[3])


if len(sys.argv) < 3:
    sys.exit(__doc__)
main()
