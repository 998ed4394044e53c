#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Mistakes that a good engineer could make here, each a small patch, and who finds them.

mutants.py verify BUILD        every patch applies, and what it touches compiles (make check)
mutants.py run [NAME...]       each in turn, on all cores: the simulator alone, then all tests.
                               Results stay in build/mutants/results.json; a second run goes on
                               where the first stopped (make mutants)
mutants.py report              the table, from the results
mutants.py list

A patch begins with "# " lines that tell the mistake; then a diff. A mutant is caught if a command fails
with it that passes without: every command runs on the unpatched tree first.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
WORK = ROOT / "build/mutants"
BUDGET = 300  # seconds a mutant, and a side

# Who may catch a mutant, in this order: those that take the least time first.
SIMULATOR = [
    ("simulator", "build/m/tests/sim/smartio-sim --check tests/sim/seeds.txt --new 400 --first 1 --jobs 1"),
    ("simulator, more seeds",
     "build/m/tests/sim/smartio-sim --check /dev/null --new 1000 --first 10001 --jobs 1"),
    ("seam, litmus", "meson test -C build/m --no-rebuild -q --suite sim --no-suite long"),
]
TESTS = [
    ("unit", "meson test -C build/m --no-rebuild -q --suite core --suite wire --suite topofile"),
    ("fuzz", "meson test -C build/m --no-rebuild -q --suite fuzz"),
    ("rooms", "meson test -C build/m --no-rebuild -q --suite emu --suite smartiod --suite nvme"),
    ("port", "meson test -C build/m --no-rebuild -q --suite port"),
    ("api", "meson test -C build/m --no-rebuild -q --suite api --suite clients"),
    ("system", "meson test -C build/m --no-rebuild -q --suite system --suite cli"),
]


def patches():
    found = {}
    for p in sorted(HERE.glob("*.patch")):
        found[p.stem] = p
    return found


def what(patch):
    return " ".join(line[2:] for line in patch.read_text().splitlines() if line.startswith("# "))


def touched(patch):
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.M)


def apply(tree, patch, *more):
    return subprocess.run(["git", "apply", "--recount", "-C1", *more, str(patch)], cwd=tree,
                          capture_output=True, text=True)


# ---- verify ----

def compile_lines(build):
    """{source: [command, ...]} of the build's compile_commands.json, paths absolute."""
    lines = {}
    for c in json.loads((build / "compile_commands.json").read_text()):
        source = (pathlib.Path(c["directory"]) / c["file"]).resolve()
        lines.setdefault(source, []).append((c["directory"], c["command"]))
    return lines


def verify_one(name, patch, build, lines):
    """What is wrong with the patch, or None."""
    files = touched(patch)
    if not files or not what(patch):
        return "has no diff, or does not say what the mistake is"
    with tempfile.TemporaryDirectory(prefix="mutant") as tmp:
        for f in files:
            if not (ROOT / f).exists():
                return f"{f} is gone"
            dest = pathlib.Path(tmp) / f
            dest.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / f, dest)
        done = apply(tmp, patch)
        if done.returncode:
            return "does not apply: " + done.stderr.strip()
        for f in files:
            if f.endswith(".h"):
                continue
            if (ROOT / f) not in lines:
                return f"{f} is in no build"
            directory, command = lines[ROOT / f][0]
            words = [w for w in shlex.split(command) if w != "-c"]
            words = [w for w in words if (pathlib.Path(directory) / w).resolve() != ROOT / f]
            if "-o" in words:
                at = words.index("-o")
                del words[at:at + 2]
            for flag in ("-MD", "-Werror", "-fprofile-arcs"):
                words = [w for w in words if w != flag]
            while "-MQ" in words:
                at = words.index("-MQ")
                del words[at:at + 2]
            while "-MF" in words:
                at = words.index("-MF")
                del words[at:at + 2]
            # Includes beside the source are found there; all else as ever.
            words += ["-fsyntax-only", "-iquote", str((ROOT / f).parent), str(pathlib.Path(tmp) / f)]
            made = subprocess.run(words, cwd=directory, capture_output=True, text=True)
            if made.returncode:
                return f"{f} does not compile:\n{made.stderr.strip()[:2000]}"
    return None


def verify(args):
    build = pathlib.Path(args.build).resolve()
    lines = compile_lines(build)
    all_of_them = patches()
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {n: pool.submit(verify_one, n, p, build, lines) for n, p in all_of_them.items()}
    for name, job in jobs.items():
        if job.result():
            print(f"{name}: {job.result()}")
            bad += 1
    if len(all_of_them) < 60:
        print(f"{len(all_of_them)} mutants are too few: at least 60")
        bad += 1
    print(f"{len(all_of_them)} mutants, {bad} of them to be mended")
    return 1 if bad else 0


# ---- run ----

class Results:
    """build/mutants/results.json; a mutant's key holds the patch and the tree it was run on."""

    def __init__(self, commit):
        self.path, self.commit, self.lock = WORK / "results.json", commit, threading.Lock()
        self.all = json.loads(self.path.read_text()) if self.path.exists() else {}

    def key(self, patch):
        return hashlib.sha256(patch.read_bytes()).hexdigest()[:12] + "@" + self.commit

    def get(self, name, patch):
        r = self.all.get(name)
        return r if r and r["key"] == self.key(patch) else None

    def put(self, name, patch, **result):
        with self.lock:
            self.all[name] = dict(result, key=self.key(patch), what=what(patch))
            tmp = self.path.with_suffix(".new")
            tmp.write_text(json.dumps(self.all, indent=1, sort_keys=True))
            tmp.replace(self.path)


class Tree:
    """A copy of the committed tree with a build of its own."""

    def __init__(self, number, commit):
        self.dir, self.log = WORK / f"tree{number}", WORK / f"tree{number}.log"
        if not (self.dir / ".git").exists():
            shutil.rmtree(self.dir, ignore_errors=True)
            subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(self.dir)], check=True)
        self.git("fetch", "-q", "origin")
        self.git("checkout", "-q", "--force", "--detach", commit)
        self.git("clean", "-q", "-fd")
        if not (self.dir / "build/m/build.ninja").exists():
            self.must("meson setup build/m -Dbuildtype=debugoptimized")
        self.must("ninja -C build/m")

    def git(self, *command):
        subprocess.run(["git", "-C", str(self.dir), *command], check=True)

    def run(self, command, seconds):
        """Exit status; None: it ran out of time. It and all that it started are ended."""
        with open(self.log, "w") as log:
            p = subprocess.Popen(shlex.split(command), cwd=self.dir, stdout=log, stderr=log,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                return p.wait(timeout=max(seconds, 1))
            except subprocess.TimeoutExpired:
                return None
            finally:
                try:
                    os.killpg(p.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                p.wait()

    def must(self, command):
        if self.run(command, 1800) != 0:
            sys.exit(f"mutants: '{command}' failed without any mutant; see {self.log}")

    def side(self, commands, baseline):
        """Who of @commands catches the mutant in BUDGET seconds: (name, seconds) or (None, seconds)."""
        start = time.monotonic()
        for name, command in commands:
            if not baseline.get(name):
                continue
            left = BUDGET - (time.monotonic() - start)
            if left <= 0:
                break
            limit = min(left, baseline[name] * 10 + 60)
            status = self.run(command, limit)
            # What hangs ten times as long as it takes is caught; what the budget cut short is not.
            if (status is None and limit < left) or status:
                return name, round(time.monotonic() - start, 1)
        return None, round(time.monotonic() - start, 1)

    def mutate(self, name, patch, baseline, results):
        done = apply(self.dir, patch)
        if done.returncode:
            results.put(name, patch, error="does not apply")
            return
        try:
            if self.run("ninja -C build/m", 1800) != 0:
                results.put(name, patch, error="does not compile")
                return
            sim, sim_s = self.side(SIMULATOR, baseline)
            tests, tests_s = self.side(TESTS, baseline)
            results.put(name, patch, sim=sim, sim_seconds=sim_s, tests=tests, tests_seconds=tests_s)
            print(f"{name}: simulator: {sim or 'NOT CAUGHT'} ({sim_s} s); "
                  f"others: {tests or 'NOT CAUGHT'} ({tests_s} s)", flush=True)
        finally:
            self.git("checkout", "-q", "--force", ".")


def measure_baseline(tree, commit):
    """{name: seconds} of what passes without a mutant; what does not pass catches nothing."""
    path = WORK / "baseline.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if known.get("commit") == commit:
        return known["seconds"]
    seconds = {}
    for name, command in SIMULATOR + TESTS:
        start = time.monotonic()
        if tree.run(command, 1800) == 0:
            seconds[name] = time.monotonic() - start
        else:
            print(f"'{name}' fails without a mutant: it is left out", flush=True)
    path.write_text(json.dumps({"commit": commit, "seconds": seconds}, indent=1))
    return seconds


def run(args):
    WORK.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.strip()
    results = Results(commit)
    todo = [(n, p) for n, p in patches().items()
            if (not args.name or n in args.name) and not results.get(n, p)]
    print(f"{len(todo)} of {len(patches())} mutants to run", flush=True)
    trees = [Tree(i, commit) for i in range(args.jobs)]
    baseline = measure_baseline(trees[0], commit)
    queue = iter(todo)
    lock = threading.Lock()

    def worker(tree):
        while True:
            with lock:
                item = next(queue, None)
            if item is None:
                return
            tree.mutate(*item, baseline, results)

    threads = [threading.Thread(target=worker, args=(t,)) for t in trees]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return report(args)


def report(_args):
    path = WORK / "results.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    sim = both = n = 0
    for name, patch in patches().items():
        r = known.get(name)
        if not r or "error" in r:
            print(f"{name:44} {r['error'] if r else 'not run yet'}")
            continue
        n += 1
        sim += r["sim"] is not None
        both += r["sim"] is not None or r["tests"] is not None
        print(f"{name:44} {r['sim'] or '-':24} {r['tests'] or '-':10}")
    if n:
        print(f"{n} run: {both} caught ({100 * both / n:.0f} %, wanted 95), "
              f"{sim} by the simulator alone ({100 * sim / n:.0f} %, wanted 70)")
    return 0


def main():
    parser = argparse.ArgumentParser(description="Mutants, and who finds them")
    sub = parser.add_subparsers(dest="what", required=True)
    v = sub.add_parser("verify")
    v.add_argument("build")
    r = sub.add_parser("run")
    r.add_argument("name", nargs="*")
    r.add_argument("--jobs", type=int, default=os.cpu_count())
    sub.add_parser("report")
    sub.add_parser("list")
    args = parser.parse_args()
    if args.what == "list":
        for name, patch in patches().items():
            print(f"{name:44} {what(patch)}")
        return 0
    return {"verify": verify, "run": run, "report": report}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
