#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Mistakes that a good engineer could make here, each a small patch, and who finds them.

mutants.py verify BUILD        every patch applies, and what it touches compiles (make check; several of one
                               source at once, so what only compiles beside another is seen by run alone)
mutants.py run [NAME...]       each in turn, on all cores (--jobs): the simulator alone; what it does not
                               catch, and with --both all, the other tests. Results stay in
                               build/mutants/results.json; a second run goes on where the first
                               stopped (make mutants)
mutants.py report              the table, from the results
mutants.py list

A patch begins with "# " lines that tell the mistake; then a diff. A mutant is caught by a seed or a test
that fails with it and passes without it: what failed runs in a tree without mutant at once. Results hold
the commit; a run at a later one goes on, too, unless --again.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
WORK = ROOT / "build/mutants"
BUILD = "build/m"
BUDGET = 300  # seconds of a core that a mutant has, and a side
STUCK = 200  # that a few seeds can take, at most
PROGRAM_STUCK = 60  # that one of the simulator's other programs can

# Who may catch a mutant, in this order: those that take the least time first.
SIM_DIR = "tests/sim"
SIM, SIM_API = f"{SIM_DIR}/smartio-sim", f"{SIM_DIR}/smartio-sim-api"
FIRST_SEED, SLICE = 10001, 20  # behind the fixed seeds: the same ones for every mutant
# Programs, and faults, that go that way, taken in turns. Every second new seed has these, and so have some
# before all others. Few hosts, of which each meets all.
EAGER_SEEDS = [
    (r"restore|recovery|session/", [
        "--faults restart --workload share,segment,device,keep,interrupt,dma",
        "--faults restart --workload manager,nvme,device,segment",
        "--faults restart,death --workload share,segment,interrupt,kinds,callback",
        "--faults restart --workload perjurer,share,segment,device,keep",
        "--faults restart,unheard --workload share,segment,device,keep,interrupt,callback,kinds",
        "--faults absent --workload segment,share",
        "--faults absent,stop,restart --workload interrupt",
        "--faults restart,lack,memory --workload segment,device,keep,share"]),
    (r"smartiod/lender/dmabar", [
        "--workload peers --faults none",
        "--workload peers --faults death,crash,link,cut,delay",
        "--workload peers --faults death,link,memory,port,removal,anew",
        "--workload placer,steward,nvme --faults death,removal,memory,port,lack"]),
    (r"smartiod/(lender/|borrower/|device/|restart/adopt|segment/(orphaned|grant)|daemon/peer)|core/(iommu|ledger|placement)|"
     r"emu/(memory/dmamap|device/|base/owner)", [
        "--workload device,keep,manager,nvme",
        "--hosts 3 --workload device,keep,segment --faults death,crash",
        "--hosts 3 --workload device,keep --faults cut,link,delay",
        "--hosts 3 --faults anew",
        "--hosts 3 --faults liar --workload deceived",
        "--hosts 4 --workload device,keep,segment,raw --faults forge",
        "--hosts 2 --workload device,keep,manager,nvme --faults death,port,memory",
        "--workload device,keep,segment --faults restart,death",
        "--hosts 3 --faults stranger,crash,link",
        "--workload functions,device --faults death,removal"]),
    (r"drivers/nvme-user/(share|serve_share|lease|serve_lease)", [
        "--workload sharer,manager --faults death,stop --seconds 4",
        "--workload leaser,steward --faults none --seconds 4",
        "--workload leaser,sharer,manager --faults death,crash,link,cut,delay,stop --seconds 4"]),
    (r"drivers/|devices/nvme", [
        "--workload manager,nvme",
        "--workload manager,nvme --faults flood --seconds 3",
        "--hosts 3 --workload manager,nvme --faults doubled,late,death",
        "--hosts 3 --workload manager,nvme,asker --faults stop,death,stray",
        "--hosts 3 --workload manager,nvme,asker --faults stop,memory",
        "--hosts 3 --workload nvme,steward --faults lost,late,phase",
        "--hosts 3 --workload manager,nvme,device --faults lost,late,doubled,phase,fatal,death",
        "--hosts 3 --workload manager,nvme,device --faults crash,cut,delay,removal"]),
    (r"sisci/dma/|emu/engine/(engine|channel)|smartiod/dma/", [
        "--workload dma,gather,block",
        "--hosts 3 --workload dma,gather,block --faults link,death,crash",
        "--hosts 3 --faults stranger", "--workload dma,gather,block --faults doze"]),
    (r"fanout|mcast", ["--workload exact,group", "--hosts 4 --workload segment --faults stranger"]),
    (r"sisci/segment/memory", ["--workload kinds", "--hosts 2 --workload kinds --faults memory,port,lack"]),
    (r"smartiod/daemon/(query|list)|sisci/(query/|interrupt/trigger_group)", [
        "--workload query,segment --faults none", "--workload herald,segment --faults flood",
        "--workload query,tool,herald,segment,device"]),
    (r"dint|ring|dataint|emu/device/irq", [
        "--workload interrupt", "--hosts 3 --workload interrupt --faults death,link,crash",
        "--workload interrupt --faults flood"]),
    (r"smartiod/segment/(connect|window|segment|export|grant|map|range|room)|core|emu/memory/(grant|map)", [
        "--workload segment,callback",
        "--hosts 3 --workload segment,callback,share --faults link,cut,delay",
        "--hosts 3 --workload listen,callback --faults link,crash,death",
        "--hosts 4 --workload segment,callback,device,raw --faults forge",
        "--hosts 3 --workload segment,kinds,share --faults death,crash,port",
        "--hosts 3 --workload segment,device,dma --faults tables,death",
        "--hosts 3 --faults stranger,crash,link", "--hosts 3 --workload segment --faults stranger"]),
    (r"sisci/(copy/sequence|segment/|base/)|smartiod/(daemon/session|segment/removal)", [
        "--hosts 3 --workload segment --faults link", "--hosts 3 --workload listen,callback",
        "--hosts 3 --workload listen,callback --faults link,crash,death"]),
    (r"", ["--workload segment,device,interrupt"]),
]
EAGER = 60
# The simulator's other programs, and after how many seeds each runs. A seed of the API's tests is seconds.
OTHERS = [(0, "api 1"), (60, "litmus_test"), (60, "fabric_test"), (60, "api 2"), (100, "api 3"), (240, "seam_test")]
OTHERS += [(300 + 100 * i, f"api {i}") for i in range(4, 20)]
SIM_TARGETS = f"{SIM} {SIM_API} " + " ".join(f"{SIM_DIR}/{name}" for _, name in OTHERS if not name.startswith("api"))
# A layer's own tests come first, then the others in this order.
TESTS = [
    (r"libsmartio/(core|wire)/", "--suite core --suite wire --suite topofile"),
    (r"libsmartio/session/", "--suite session"),
    (r"smartiod/", "--suite smartiod"),
    (r"emu/", "--suite emu"),
    (r"drivers/|devices/nvme", "--suite nvme"),
    (r"smartiod/(port|live/port)", "--suite port --suite clients --suite fuzz"),
    (r"libsmartio/sisci/", "--suite api --no-suite sim --no-suite stress --no-suite plain-only"),
    (r"tools/", "--suite system --suite cli --suite api"),
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


def mutate(patch, tree):
    """Makes the mutant's files in the new folder @tree. Return: what is wrong with the patch, or None."""
    files = touched(patch)
    if not files or not what(patch):
        return "has no diff, or does not say what the mistake is"
    for f in files:
        if not (ROOT / f).exists():
            return f"{f} is gone"
        (tree / f).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / f, tree / f)
    done = apply(tree, patch)
    return "does not apply: " + done.stderr.strip() if done.returncode else None


def compiles(f, path, lines):
    """Return: what is wrong with @path, a copy of the source @f with mistakes, or None."""
    if (ROOT / f) not in lines:
        return f"{f} is in no build"
    directory, command = lines[ROOT / f][0]
    words = [w for w in shlex.split(command) if w not in ("-c", "-MD", "-fprofile-arcs")]
    words = [w for w in words if (pathlib.Path(directory) / w).resolve() != ROOT / f]
    for flag in ("-o", "-MQ", "-MF"):
        while flag in words:
            at = words.index(flag)
            del words[at:at + 2]
    # Includes beside the source are found there; all else as ever. Warnings that come late are for the run.
    words += ["-fsyntax-only", "-iquote", str((ROOT / f).parent), str(path)]
    made = subprocess.run(words, cwd=directory, capture_output=True, text=True)
    return f"{f} does not compile:\n{made.stderr.strip()[:2000]}" if made.returncode else None


def together(f, trees, top):
    """Mistakes that do not touch one another become one source, for one start of the compiler.

    @trees: {name: folder} of the mutants of @f. Return: [(path, [name, ...]), ...], the paths in the folder @top
    """
    made = []
    for name, tree in trees.items():
        for path, names in made:
            merged = subprocess.run(["git", "merge-file", "-p", str(path), str(ROOT / f), str(tree / f)],
                                    capture_output=True)
            if merged.returncode == 0:
                path.write_bytes(merged.stdout)
                names.append(name)
                break
        else:
            path = top / str(len(made)) / f
            path.parent.mkdir(parents=True)
            shutil.copy(tree / f, path)
            made.append((path, [name]))
    return made


def verify_source(f, trees, top, lines):
    """Return: {name: what is wrong with @f} of the mutants in @trees."""
    wrong = {}
    for path, names in together(f, trees, top):
        if compiles(f, path, lines):
            wrong.update({name: compiles(f, trees[name] / f, lines) for name in names})
    return {name: words for name, words in wrong.items() if words}


def verify(args):
    lines = compile_lines(pathlib.Path(args.build).resolve())
    all_of_them = patches()
    with tempfile.TemporaryDirectory(prefix="mutants") as tmp, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        trees = {name: pathlib.Path(tmp) / "alone" / name for name in all_of_them}
        said = pool.map(lambda name: mutate(all_of_them[name], trees[name]), all_of_them)
        wrong = {name: words for name, words in zip(all_of_them, said) if words}
        sources = {}
        for name, patch in all_of_them.items():
            for f in touched(patch) if name not in wrong else ():
                if not f.endswith(".h"):
                    sources.setdefault(f, {})[name] = trees[name]
        jobs = [pool.submit(verify_source, f, found, pathlib.Path(tmp) / "together" / str(n), lines)
                for n, (f, found) in enumerate(sources.items())]
        for job in jobs:
            wrong.update(job.result())
    for name in sorted(wrong):
        print(f"{name}: {wrong[name]}")
    bad = len(wrong)
    if len(all_of_them) < 60:
        print(f"{len(all_of_them)} mutants are too few: at least 60")
        bad += 1
    print(f"{len(all_of_them)} mutants, {bad} of them to be mended")
    return 1 if bad else 0


# ---- run ----

class Results:
    """build/mutants/results.json: what is known of each mutant, with the patch and the commit it was run on."""

    def __init__(self):
        self.path, self.lock = WORK / "results.json", threading.Lock()
        self.all = json.loads(self.path.read_text()) if self.path.exists() else {}

    def get(self, name, patch):
        r = self.all.get(name)
        return r if r and r["patch"] == digest(patch) else None

    def put(self, name, r):
        with self.lock:
            self.all[name] = r
            tmp = self.path.with_suffix(".new")
            tmp.write_text(json.dumps(self.all, indent=1, sort_keys=True))
            tmp.replace(self.path)


def digest(patch):
    return hashlib.sha256(patch.read_bytes()).hexdigest()[:12]


def fixed_seeds():
    """The lines of seeds.txt without what they were, ranges written out."""
    lines = []
    for line in (ROOT / "tests/sim/seeds.txt").read_text().splitlines():
        line = line.partition("#")[0].strip()
        several = re.fullmatch(r"(\d+)-(\d+)", line)
        lines += [str(n) for n in range(int(several[1]), int(several[2]) + 1)] if several else [line] if line else []
    return lines


def seed_line(patch, fixed, i):
    """What the @i-th try is: a few seeds with the programs that go that way, the fixed ones, new ones."""
    options = next(o for pattern, o in EAGER_SEEDS if any(re.search(pattern, f) for f in touched(patch)))
    if EAGER <= i < EAGER + len(fixed):
        return fixed[i - EAGER]
    n = i if i < EAGER else i - len(fixed)
    return f"{FIRST_SEED + n}" + (f" {options[n % 7 % len(options)]}" if i < EAGER or n % 2 else "")


def processor_time(pid):
    """Seconds of a core that @pid and those of its children took that it has waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(n) for n in fields[11:15]) / os.sysconf("SC_CLK_TCK")


class Tree:
    """A copy of the committed tree with a build of its own."""

    def __init__(self, name, commit):
        self.dir, self.log, self.lock = WORK / name, WORK / f"{name}.log", threading.Lock()
        if not (self.dir / ".git").exists():
            shutil.rmtree(self.dir, ignore_errors=True)
            subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(self.dir)], check=True)
        self.git("fetch", "-q", "origin")
        self.git("checkout", "-q", "--force", "--detach", commit)
        self.git("clean", "-q", "-fd")
        if not (self.dir / BUILD / "build.ninja").exists():
            # As in other builds, but no time is spent on what debuggers want to know.
            status, _ = self.run(f"meson setup {BUILD} -Ddebug=false -Doptimization=2")
            if status:
                sys.exit(f"mutants: meson fails; see {self.log}")

    def git(self, *command):
        subprocess.run(["git", "-C", str(self.dir), *command], check=True)

    def run(self, command, seconds=1800):
        """(exit status, seconds of a core); status None: it took more than @seconds, and it and all that
        it started were ended. The clock on the wall would let mutants escape on a busy machine."""
        with open(self.log, "w") as log:
            p = subprocess.Popen(shlex.split(command), cwd=self.dir, stdout=log, stderr=log,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        done = select.poll()
        done.register(pidfd := os.pidfd_open(p.pid), select.POLLIN)
        try:
            while not done.poll(1000) and processor_time(p.pid) < seconds:
                pass
            took = processor_time(p.pid)
            over = not done.poll(0)
        finally:
            os.close(pidfd)
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        return None if over else p.returncode, took

    def build(self):
        """What the simulator's side runs, alone."""
        return self.run(f"ninja -C {BUILD} {SIM_TARGETS}")[0] == 0

    def seeds(self, lines, seconds):
        """(what failed first, as arguments for smartio-sim, or None; seconds of a core)"""
        (self.dir / BUILD / "seeds").write_text("\n".join(lines) + "\n")
        status, took = self.run(f"{BUILD}/{SIM} --check {BUILD}/seeds --new 0 --jobs 1 --stop", seconds)
        failed = re.search(r"^smartio-sim (\d.*)$", self.log.read_text(), re.M)
        if status and not failed:
            raise RuntimeError(f"seeds failed without a word; see {self.log}")
        if failed:
            self.said = self.log.read_text()[failed.end():].strip().partition("\n")[0][:200]
        return failed and failed[1].strip(), took

    def program(self, command):
        """(has it failed?, seconds of a core)"""
        status, took = self.run(f"{BUILD}/{command}", PROGRAM_STUCK)
        words = [line for line in self.log.read_text(errors="replace").splitlines() if "rror" in line or "ail" in line]
        self.said = (words or [""])[0].strip()[:200]
        return status != 0, took

    def tests(self, which, seconds):
        """(the tests that failed, seconds of a core). What they need is built; the first failure ends it."""
        log = self.dir / BUILD / "meson-logs/testlog.json"
        log.unlink(missing_ok=True)
        status, took = self.run(f"meson test -C {BUILD} -q --maxfail 1 --no-suite long {which}", seconds)
        if not status:
            return [], took
        if not log.exists():
            raise RuntimeError(f"'{which}' could not be run; see {self.log}")
        results = [json.loads(line) for line in log.read_text().splitlines()]
        return [r["name"].rpartition(" / ")[2] for r in results
                if r["result"] in ("FAIL", "TIMEOUT", "ERROR")], took


class Hunt:
    """One mutant in its tree; @good is the tree without a mutant, which judges what failed."""

    def __init__(self, tree, good, results, commit, args):
        self.tree, self.good, self.results, self.args, self.commit = tree, good, results, args, commit
        self.fixed = fixed_seeds()

    def left(self, side):
        return self.args.seconds - self.r[side + "_seconds"]

    def passes_without(self, what, run):
        """A mutant is caught by what passes without it."""
        with self.good.lock:
            fine = run(self.good)
        if not fine:
            print(f"{self.name}: '{what}' fails without a mutant, too", flush=True)
        return fine

    def by_seeds(self):
        """The next few seeds."""
        r = self.r
        lines = [seed_line(self.patch, self.fixed, i) for i in range(r["seeds"], r["seeds"] + SLICE)]
        failed, took = self.tree.seeds(lines, STUCK)
        r["sim_seconds"] += took
        r["seeds"] += len(lines)
        if failed:
            self.caught(f"{SIM} {failed}", "seed " + failed)

    def caught(self, command, name):
        """@command has failed."""
        if self.passes_without(name, lambda t: not t.program(command)[0]):
            self.r["sim"], self.r["said"] = name, self.tree.said

    def by_programs(self, name):
        """One of OTHERS."""
        commands = {name: f"{SIM_DIR}/{name}"}
        if name.startswith("api"):
            tests = subprocess.run([self.tree.dir / BUILD / SIM_API, "--list"], check=True, capture_output=True, text=True)
            seed = name.split()[1]
            commands = {f"api {t} {seed}": f"{SIM_API} {t} {seed}" for t in tests.stdout.split()}
        for what, command in commands.items():
            failed, took = self.tree.program(command)
            self.r["sim_seconds"] += took
            if failed:
                self.caught(command, what)
                break

    def by_tests(self, side, which):
        failed, took = self.tree.tests(which, max(self.left(side), 1))
        self.r[side + "_seconds"] += took
        for name in failed:
            if self.passes_without(name, lambda t: not t.tests(shlex.quote(name), 600)[0]):
                self.r[side] = name
                return

    def simulator(self):
        r = self.r
        if r["sim"] or self.left("sim") <= 0:
            return
        if not self.tree.build():
            r["error"] = "does not compile"
            return
        while not r["sim"] and self.left("sim") > 0:
            other = next((name for at, name in OTHERS if at <= r["seeds"] and name not in r["programs"]), None)
            if other:
                self.by_programs(other)
                r["programs"].append(other)
            else:
                self.by_seeds()

    def others(self):
        r = self.r
        own = [t for t in TESTS if any(re.search(t[0], f) for f in touched(self.patch))]
        for _, suites in own + [t for t in TESTS if t not in own]:
            if suites in r["suites"] or r["tests"] or self.left("tests") <= 0:
                continue
            self.by_tests("tests", suites)
            r["suites"].append(suites)

    def run(self, name, patch):
        old = self.results.get(name, patch)
        self.name, self.patch = name, patch
        sides = {"sim": {"sim": None, "sim_seconds": 0, "seeds": 0, "programs": []},
                 "tests": {"tests": None, "tests_seconds": 0, "suites": []}}
        self.r = {"patch": digest(patch)}
        for side, fresh in sides.items():
            # What the other side found is not forgotten.
            again = self.args.again and self.args.only != {"sim": "tests", "tests": "simulator"}[side]
            known = old and "error" not in old and not (again and old["commit"] != self.commit)
            self.r |= {k: old[k] if known and k in old else v for k, v in fresh.items()}
        if self.r["sim"]:
            self.r["said"] = old["said"] if "said" in old else ""
        self.r["commit"] = self.commit
        try:
            if apply(self.tree.dir, patch).returncode:
                self.r["error"] = "does not apply"
            elif self.args.only != "tests":
                self.simulator()
            if "error" not in self.r and self.args.only != "simulator" and (self.args.both or not self.r["sim"]):
                self.others()
        finally:
            self.tree.git("checkout", "-q", "--force", ".")
        self.results.put(name, self.r)
        print(line_of(name, self.r), flush=True)


def wanted(r, commit, args):
    """Is there anything left to do for a mutant with the result @r?"""
    if not r or "error" in r or (args.again and r["commit"] != commit):
        return True
    if r["sim"] and (r["tests"] or not args.both):
        return False
    return (args.only != "tests" and not r["sim"] and r["sim_seconds"] < args.seconds) or \
        (args.only != "simulator" and not r["tests"] and r["tests_seconds"] < args.seconds and
         len(r["suites"]) < len(TESTS))


def run(args):
    WORK.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.strip()
    results = Results()
    todo = [(n, p) for n, p in patches().items()
            if (not args.name or n in args.name) and wanted(results.get(n, p), commit, args)]
    print(f"{len(todo)} of {len(patches())} mutants to run", flush=True)
    good = Tree("good", commit)
    if args.only != "tests" and not good.build():
        sys.exit(f"mutants: what is without a mutant does not compile; see {good.log}")
    queue, lock = iter(todo), threading.Lock()

    def worker(number):
        hunt = Hunt(Tree(f"tree{number}", commit), good, results, commit, args)
        while True:
            with lock:
                item = next(queue, None)
            if item is None:
                return
            hunt.run(*item)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for job in [pool.submit(worker, i) for i in range(args.jobs)]:
            job.result()
    return report(args)


def line_of(name, r):
    if "error" in r:
        return f"{name:36} {r['error']}"
    sim = r["sim"] or "NOT CAUGHT"
    tests = r["tests"] or ("NOT CAUGHT" if r["suites"] else "not needed")
    return f"{name:36} {sim:32} {r['sim_seconds']:5.0f} s  {tests:32} {r['tests_seconds']:5.0f} s"


def report(_args):
    results = Results()
    known = {n: results.get(n, p) for n, p in patches().items()}
    for name, r in known.items():
        print(line_of(name, r) if r else f"{name:36} not run yet")
    ran = [r for r in known.values() if r and "error" not in r]
    sim = sum(r["sim"] is not None for r in ran)
    both = sum(r["sim"] is not None or r["tests"] is not None for r in ran)
    if ran:
        print(f"{len(ran)} of {len(known)} run: {both} caught ({100 * both / len(ran):.1f} %, wanted 95), "
              f"{sim} by the simulator alone ({100 * sim / len(ran):.1f} %, wanted 70); commits: "
              + ", ".join(sorted({r["commit"][:7] for r in ran})))
    return 0


def main():
    parser = argparse.ArgumentParser(description="Mutants, and who finds them")
    sub = parser.add_subparsers(dest="what", required=True)
    v = sub.add_parser("verify")
    v.add_argument("build")
    r = sub.add_parser("run")
    r.add_argument("name", nargs="*")
    r.add_argument("--jobs", type=int, default=os.cpu_count())
    r.add_argument("--seconds", type=float, default=BUDGET, help="of a core, a mutant and a side")
    r.add_argument("--only", choices=["simulator", "tests"], help="one side")
    r.add_argument("--both", action="store_true", help="other tests also for what the simulator catches")
    r.add_argument("--again", action="store_true", help="also what was caught at another commit")
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
