#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs tests in virtual machines: guest/NAME.sh, with the programs of a build.

usage: vm.py BUILD MACHINE TEST... [--console] [--soak [--part=K/N]] [--record]
       vm.py --list

MACHINE is none-6.1, intel-6.12, amd-6.1 and so on: IOMMU and kernel ("debug" alone is the debug
kernel with Intel's IOMMU); vfio-intel-6.12 is the same without smartio.ko, but with VFIO, and vfio-intel-6.12-iommufd with
one that has what Debian switched off (vfio_modules.py); vfio-intel-backports and vfio-intel-backports-iommufd are such with
the newest kernel of Debian's backports. Tests follow each other in one machine; after one that fails, and for
those that want to be alone, a new one is started; "all" are all that make sense there. --console shows what is said in any case, as it comes, --soak
makes long tests of short ones, --part=K/N of those that try all there are (calls.sh) each N-th, from the K-th on; --record
lets tests write what they compare with.
Exit status 77, and a line that says why, if there is no QEMU or no kernel to be had, or nothing that the
tests could see on such a machine. SMARTIO_VM_QEMU is another QEMU than qemu-system-x86_64.
A script's head may ask for:
  # as: TEST            what another test asks for, and more
  # programs: PATH...   of the build, besides smartio, smartiod and smartio-nvme (* is any of a folder); or
                        of the system
  # modules: NAME...    kernel modules to come along; load_modules loads them
  # files: PATH...      of the source tree, to come along in /files
  # limit: SECONDS      of the whole test; 900; five times that with --soak
  # not: WORD...        IOMMUs and kernels of machines where there is nothing to be seen
  # worlds: WORD...     "module": with smartio.ko; "vfio": without it; the first alone, if it is not said
  # qemu: WORDS...      to QEMU's, of each test in the machine; SECOND is the file of another drive, as large and
                        empty
  # qemu-amd: WORDS...  the same, in place of these, on machines with AMD's IOMMU (NVME_BUS in machine.py)
  # alone: REASON       a machine of its own; only then also
  # drive: SIZE         bytes of the drive; 64M
  # nvme: OPTIONS       of QEMU's drive; it is empty then
  # memory: MB          of the machine; 768, the debug kernel 1024
  # append: WORDS       to the kernel's command line
"""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import paths  # noqa: F401
import backports_kernel
import cache
import kernel as kernels
import shim
from initrd import Initrd
from machine import IOMMU, Failed, Machine, check_qemu, tells_of_faults

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, "guest")
PROGRAMS = ("tools/smartio", "smartiod/smartiod", "smartiod/smartio-vfio", "drivers/nvme-user/smartio-nvme")
SKIP = 77
# Modules of stock kernels that are fetched when a script asks for them.
MORE = {"nbd": r"/drivers/block/nbd\.ko(\.xz)?$"}


HEAD = r"^# (programs|modules|files|limit|not|worlds|alone|drive|nvme|memory|append|qemu|qemu-amd): (.*)$"


def all_tests():
    return sorted(f[:-3] for f in os.listdir(GUEST)
                  if f.endswith(".sh") and f not in ("lib.sh", "leaks.sh"))


class Script:
    """A test's script and what its head asks for."""

    def __init__(self, name):
        self.name = name
        path = os.path.join(GUEST, name + ".sh")
        if not os.path.exists(path):
            raise SystemExit(f"vm.py: no test is called {name}")
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.asks = {}
        like = re.search(r"^# as: (.*)$", self.text, re.M)
        if like:
            self.asks = dict(Script(like[1]).asks)
        for what, words in re.findall(HEAD, self.text, re.M):
            self.asks[what] = f"{self.asks[what]} {words}" if what in self.asks else words

    def words(self, what):
        return self.asks.get(what, "").split()

    def number(self, what, default):
        value = self.asks.get(what, str(default))
        if value.endswith("M"):
            return int(value[:-1]) << 20
        return int(value)


def together(scripts):
    """Lists of scripts that share a machine."""
    alone = [[s] for s in scripts if "alone" in s.asks]
    shared = [s for s in scripts if "alone" not in s.asks]
    return ([shared] if shared else []) + alone


def parse_machine(name):
    """(kernel, IOMMU, world) of a machine's name."""
    world = "vfio" if name.startswith("vfio-") else "module"
    name = name.removeprefix("vfio-")
    iommu, _, kernel = ("intel-" + name if name == "debug" else name).partition("-")
    if iommu not in IOMMU or kernel not in kernels.NAMES:
        raise SystemExit(f"vm.py: no machine is called {name}")
    if kernel in backports_kernel.NAMES and world != "vfio":
        raise SystemExit(f"vm.py: there is no smartio.ko for this kernel: vfio-{name} is right")
    return "debug-vfio" if (kernel, world) == ("debug", "vfio") else kernel, iommu, world


def find_program(build, word):
    """Of the build, if the word is a path; else of this system."""
    if "/" in word:
        return os.path.join(build, word)
    path = shutil.which(word) or shutil.which(word, path="/usr/sbin:/sbin")
    if not path:
        raise cache.Unavailable(f"{word} is not installed")
    return path


def find_programs(build, words):
    """Their paths; what is meant by "*" must be there."""
    paths = []
    for word in words:
        found = sorted(glob.glob(os.path.join(build, word))) if "*" in word else [find_program(build, word)]
        if not found:
            raise cache.Unavailable(f"{build} has no {word}")
        paths += found
    return paths


def find_modules(kernel, build, names, world):
    order = []
    for name in names:
        if name == "smartio" and world == "vfio":
            order += kernel.modules("vfio_iommu_type1", "vfio_pci")
        elif name == "smartio":
            order.append(shim.module(kernel, build))
        elif name == "smartio_blk":
            order.append(shim.sibling(kernel, build, name))
        elif name in ("smartio_loop", "smartio_card"):
            order.append(shim.of_tests(kernel, build, name))
        else:
            if name in MORE and kernel.module(name) is None:
                kernels.add_modules(kernel, MORE[name])
            order += [m for m in kernel.modules(name) if m not in order]
    return order


def add_script(image, kernel, iommu, world, build, script, length):
    """The script in /tests, and what it asks for."""
    programs = find_programs(build, script.words("programs"))
    for path in programs:
        image.add_program(path)
    for path in script.words("files"):
        image.add_file("/files/" + os.path.basename(path), os.path.join(shim.ROOT, path))
    modules = find_modules(kernel, build, script.words("modules"), world)
    for path in modules:
        image.add_file("/modules/" + os.path.basename(path), path)
    names = " ".join(map(os.path.basename, programs))
    image.add_data(f"/tests/{script.name}.sh",
                   f"KERNEL={kernel.name}\nIOMMU={iommu}\nWORLD={world}\n"
                   f"TELLS={'1' if tells_of_faults(iommu) else ''}\n{length}PROGRAMS='{names}'\n"
                   f"MODULES='{' '.join(os.path.basename(p) for p in modules)}'\n{script.text}")


def build_initrd(build, kernel, iommu, world, scripts, length, into):
    """@length: variables of the scripts that say how long they take."""
    image = Initrd()
    image.add_base("/root")
    for word in (*PROGRAMS, "setpriv"):
        image.add_program(find_program(build, word))
    image.add_data("/etc/passwd", "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n"
                                  "other:x:1001:1001::/tmp:/bin/sh\n")
    image.add_data("/etc/group", "root:x:0:\nsmartio:x:900:user\nuser:x:1000:\nother:x:1001:\n")
    with open(os.path.join(GUEST, "init"), encoding="utf-8") as f:
        image.add_data("/init", f.read(), 0o755)
    image.add_file("/lib.sh", os.path.join(GUEST, "lib.sh"))
    image.add_data("/tests/order", "".join(s.name + "\n" for s in scripts))
    for script in scripts:
        add_script(image, kernel, iommu, world, build, script, length)
    image.write(into)


def serve_host(machine, drive, words):
    """What a script asks of us with `host`. Returns the answer."""
    what, *args = words
    if what == "sha256":  # OFFSET LENGTH: of the drive's file
        with open(drive, "rb") as f:
            f.seek(int(args[0]))
            return hashlib.sha256(f.read(int(args[1]))).hexdigest()
    if what == "pull_out":
        machine.pull_out()
        return ""
    if what == "put_in":
        return machine.put_in()
    raise Failed(f"the script asks for {what}, which the host does not know")


def make_drive(path, size, empty):
    """A drive whose first megabyte is not empty, and differs each time; or an empty one."""
    with open(path, "wb") as f:
        if not empty:
            f.write(os.urandom(1 << 20))
        f.truncate(size)


class Run:
    """One machine, and the tests that follow each other in it."""

    def __init__(self, build, machine_name, options, part):
        self.build = build
        self.name = machine_name
        self.options = options
        self.part = part
        kernel_name, self.iommu, self.world = parse_machine(machine_name)
        check_qemu()
        self.kernel = kernels.get(kernel_name)
        self.tsc_khz = subprocess.run([find_program(self.build, "tests/vm/tsc_khz")], check=True,
                                      capture_output=True, text=True).stdout.strip()
        self.failed = []

    def converse(self, machine, drive, script):
        """Serve one script until it ends."""
        recorded = {}
        for line in machine.lines():
            if line.startswith("HOST "):
                try:
                    machine.answer("ok " + serve_host(machine, drive, line.split()[1:]))
                except Failed as e:
                    machine.answer(f"no: {e}")
            elif line.startswith("RECORD "):
                _, name, text = line.split(" ", 2)
                recorded.setdefault(name, []).append(text + "\n")
            elif line.startswith("END "):
                break
        if "--record" in self.options:
            for name, lines in recorded.items():
                write_record(os.path.join(HERE, name), script.name, self.name, lines)
        if line != "END 0":
            raise Failed(f"the script failed ({line[4:]})")

    def tell(self, script, machine, seen, failure, took):
        """What became of one test. @seen: how much had been said before it began; @took: seconds, and of
        processors."""
        console, talk = seen
        if failure or "--console" in self.options:
            print(f"--- console of {self.name}\n{machine.console()[console:]}\n--- the script")
            print("as above" if machine.live else "\n".join(machine.talk[talk:]))
        verdict = f"FAILED: {failure}" if failure else "passed"
        print(f"{script.name} on {self.name}: {verdict} ({took[0]:.0f} s, {took[1]:.0f} s of processors)",
              flush=True)
        if failure:
            self.failed.append(f"{script.name} ({failure})")

    def one_after_the_other(self, machine, drive, scripts):
        """How many of them were run: the machine is not used any more after one that failed."""
        known, before = 0, (0, 0)
        for n, script in enumerate(scripts, 1):
            seen = len(machine.console()) if n > 1 else 0, len(machine.talk)
            failure = None
            machine.limit(script.number("limit", 900) * (5 if "--soak" in self.options else 1))
            try:
                self.converse(machine, drive, script)
                machine.answer("next")
            except Failed as e:
                failure = str(e)
            reports = machine.reports()
            if len(reports) > known and not failure:
                failure = f"the kernel reports: {reports[known]}"
            now = machine.seconds()
            self.tell(script, machine, seen, failure, [a - b for a, b in zip(now, before)])
            before = now
            if failure:
                return n
        return len(scripts)

    def run(self, scripts):
        """All of them, in as many machines as it takes."""
        first, soak = scripts[0], "1" if "--soak" in self.options else ""
        qemu = [w for s in scripts for w in s.words(f"qemu-{self.iommu}") or s.words("qemu")]
        with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder:
            initrd, drive = os.path.join(folder, "initrd"), os.path.join(folder, "drive")
            nvme = first.asks.get("nvme")
            make_drive(drive, first.number("drive", 64 << 20), bool(nvme))
            make_drive(drive + "2", first.number("drive", 64 << 20), True)
            memory = first.number("memory", 1024 if self.kernel.name == "debug" else 768)
            append = "ignore_loglevel" if self.kernel.name == "debug" else "loglevel=5"
            append += " slub_debug=FZPU" if self.kernel.name == "debug" and soak else ""
            append += " ".join(["", f"tsc_early_khz={self.tsc_khz}", *first.words("append")])
            while any(s.name != "leaks" for s in scripts):
                if self.kernel.name == "debug":
                    scripts = [*(s for s in scripts if s.name != "leaks"), Script("leaks")]
                build_initrd(self.build, self.kernel, self.iommu, self.world, scripts,
                             f"SOAK={soak}\nPART='{self.part}'\n", initrd)
                with Machine(self.kernel, self.iommu, initrd, drive, nvme or "serial=SIO0", memory,
                             append, [w.replace("SECOND", drive + "2") for w in qemu]) as m:
                    m.live = "--console" in self.options
                    scripts = scripts[self.one_after_the_other(m, drive, scripts):]


def write_record(path, test, machine, lines):
    """What a test compares with, as it was seen now."""
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# SPDX-License-Identifier: BSD-2-Clause\n"
                f"# Written by vm.py BUILD {machine} {test} --record, from what it saw.\n")
        f.writelines(lines)


def parse_part(parts, options):
    """(K, N) of --part=K/N as two words; "1 1" without it."""
    if not parts:
        return "1 1"
    found = re.fullmatch(r"--part=(\d+)/(\d+)", parts.pop())
    if parts or "--soak" not in options or not found or not 1 <= int(found[1]) <= int(found[2]):
        raise SystemExit("vm.py: --part=K/N goes with --soak, once, and K is 1 to N")
    return f"{found[1]} {found[2]}"


def main():
    options = {w for w in sys.argv[1:] if w.startswith("--")}
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    if options == {"--list"}:
        print("\n".join(all_tests()))
        return 0
    parts = {w for w in options if w.startswith("--part=")}
    if len(words) < 3 or options - parts - {"--console", "--soak", "--record"}:
        sys.exit(__doc__.strip())
    part = parse_part(parts, options)
    build, machine, *tests = words
    try:
        kernel, iommu, world = parse_machine(machine)
        names = all_tests() if tests == ["all"] else tests
        scripts = [s for s in map(Script, names)
                   if not {iommu, kernel} & set(s.words("not")) and world in (s.words("worlds") or ["module"])]
        if not scripts:
            raise cache.Unavailable("there is nothing to be seen on such a machine")
        for name in sorted(set(names) - {s.name for s in scripts}):
            print(f"{name} on {machine}: left out: there is nothing to be seen on such a machine")
        run = Run(os.path.abspath(build), machine, options, part)
        for group in together(scripts):
            run.run(group)
    except cache.Unavailable as e:
        print(f"{' '.join(tests)} on {machine}: skipped: {e}")
        return SKIP
    if run.failed:
        print(f"FAILED: {'; '.join(run.failed)}")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
