# SPDX-License-Identifier: BSD-2-Clause
"""Machines of one kind, two if nothing else is said, joined by virtual NTBs: what the tests of such a pair share.

Its user gives main() a Kind, whose script is the user's file: usage, one line for each step, exit status.
"""
import contextlib
import os
import subprocess
import sys
import tempfile
import time

import paths  # noqa: F401
import cache
import kernel as kernels
import ntb_clients
import qemu
import shim
import stranger
import vfio_qemu
from initrd import Initrd
from machine import Failed
from shell_machine import ShellMachine

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77
LIMIT = 300  # seconds for one step
TOPOLOGY = """cluster: back-to-back
hosts:
  a:
    kind: machine
    adapters: [{ to: b, window: 64M, entries: 1024 }]
  b:
    kind: machine
    adapters: [{ to: a, window: 64M, entries: 1024 }]
"""
IOMMU = qemu.IOMMU
KERNELS = {**{name: name for name in kernels.STOCK}, "debug": "netdebug"}


def mapped_topology(memory):
    """TOPOLOGY with mapped windows, of machines with @memory MiB each."""
    return TOPOLOGY.replace("    kind: machine\n", f"    kind: machine\n    window: mapped\n    ram: {memory}M\n")


class Kind:
    """What a test wants of its machines, and what it does with them. All may be changed by who derives."""

    name = ""
    doc = ""
    topology = TOPOLOGY
    hosts = ("a", "b")
    late = ()     # those of them that a check starts
    adapters = {}  # how many a host has, if not one
    memory = 384  # MB of each machine
    mapped = False  # their memory lies in one file, in their order: of a topology with such windows
    checks = ()   # functions of a Pair, in their order
    drivers = ("ntb", "ntb_hw_smartio")
    tell = None   # what a machine is asked when something is wrong

    options = ()  # that it knows, besides everybody's
    given = frozenset()  # those of the command line

    def prepare(self, build, folder):
        """Once, before the machines."""

    def load_adapter(self, host):
        """What loads the modules of an adapter."""
        return "load smartio; load ntb; load ntb_hw_smartio"

    def fill(self, image, kernel, build):
        """What the machines have besides busybox and @drivers."""

    def qemu(self, host, folder):
        """More words of a machine's QEMU."""
        return ()

    parameters = ""  # more of the kernel's

    def has_iommu(self, host):
        """Whether that of the machine's name is this host's, too."""
        return True

    def build_initrd(self, kernel, build, into):
        image = Initrd()
        image.add_base()
        clients = ntb_clients.get(kernel)
        for name in self.drivers:
            path = shim.module(kernel, build, ntb=clients) if name == "ntb_hw_smartio" else f"{clients}/{name}.ko"
            image.add_file(f"/modules/{name}.ko", path)
        image.add_file("/lib.sh", os.path.join(HERE, "guest/lib.sh"))
        image.add_file("/ntb-lib.sh", os.path.join(HERE, "ntb-lib.sh"))
        with open(os.path.join(HERE, "ntb-init.sh"), encoding="utf-8") as f:
            image.add_data("/init", f.read(), 0o755)
        self.fill(image, kernel, build)
        image.write(into)


class Pair:
    """The machines, by their hosts' names; what a check needs of them."""

    def __init__(self, kind, make, iommu, soak):
        self.kind = kind
        self.make = make
        self.iommu = iommu
        self.soak = soak
        self.since = time.monotonic()
        self.last = "the start"  # step that was made
        self.up = tuple(host for host in kind.hosts if host not in kind.late)
        for host in self.up:
            setattr(self, host, make(host))
        for m in self.machines():
            m.wait()
        self.step("all machines are up")

    def machines(self):
        return tuple(getattr(self, host) for host in self.up)

    def restart(self, host):
        """One that was killed, or has not been there yet."""
        m = self.make(host)
        setattr(self, host, m)
        if host not in self.up:
            self.up += (host,)
        m.wait()

    def restart_a(self):
        self.restart("a")

    def restart_b(self):
        self.restart("b")

    def both(self, command):
        """On all of them, at the same time. What each of them said."""
        for m in self.machines():
            m.start(command)
        return tuple(m.wait() for m in self.machines())

    def load_adapters(self):
        """The modules of an adapter, on all."""
        for host, m in zip(self.up, self.machines()):
            m.start(self.kind.load_adapter(host))
        for m in self.machines():
            m.wait()

    def step(self, text):
        self.last = f"{text} ({time.monotonic() - self.since:.0f} s)"
        print(self.last, flush=True)
        for m in self.machines():
            m.limit(LIMIT * (10 if self.soak else 1))


def judge(check_all, machines, log):
    """What is wrong; None: nothing."""
    try:
        check_all()
    except Failed as e:
        return str(e)
    reports = [r for r in (m.report() for m in machines) if r]
    if reports:
        return reports[0]
    return "smartio-emu complains" if "fatal" in log() else None


def ask(m, command):
    """What it still says, after something went wrong."""
    m.limit(20)
    try:
        return m.run(command)
    except (Failed, OSError) as e:
        return str(e)


def backend(kind, host, folder):
    """Its memory; None: of its own."""
    if not kind.mapped:
        return None
    return qemu.part_of(f"{folder}/state/memory", kind.memory, kind.hosts.index(host) * kind.memory << 20)


def shown(kind, folder):
    """That of all mapped machines."""
    return qemu.shown(f"{folder}/state/memory") if kind.mapped else ()


def run(kind, build, kernel, iommu, folder, options, log):
    """What is wrong; None: nothing."""
    tsc_khz = subprocess.run([f"{build}/tests/vm/tsc_khz"], check=True, capture_output=True, text=True).stdout.strip()
    machines = []
    with contextlib.ExitStack() as stack:
        def make(host):
            name = host + "'" * sum(m.name[0] == host for m in machines)
            sockets = [f"{folder}/state/vfio.{host}.{n}" for n in range(kind.adapters.get(host, 1))]
            m = ShellMachine(name, kernel, f"{folder}/initrd", folder, sockets, tsc_khz,
                             memory=kind.memory * (2 if kernel.name == "netdebug" and not kind.mapped else 1), parameters=kind.parameters, backend=backend(kind, host, folder),
                             more=(*IOMMU[iommu if kind.has_iommu(host) else "none"], *shown(kind, folder), *kind.qemu(host, folder)))
            machines.append(stack.enter_context(m))
            m.limit(LIMIT * (10 if "--soak" in options else 1))
            m.live = "--console" in options
            return m

        def check_all():
            p = Pair(kind, make, iommu, "--soak" in options)
            p.build, p.folder = build, folder
            try:
                for check in kind.checks:
                    check(p)
            except Failed as e:
                raise Failed(f"{e}; behind: {p.last}") from e

        wrong = judge(check_all, machines, log)
        if wrong and kind.tell:
            for m in machines:
                print(f"--- {m.name}: {kind.tell}\n{ask(m, kind.tell)}")
    if wrong:
        for m in machines:
            print(f"--- console of {m.name}\n{m.console()}\n--- QEMU of {m.name}\n{m.errors()}")
    return wrong


def main(kind):
    options = {w for w in sys.argv[1:] if w.startswith("--")}
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    if len(words) != 2 or options - {"--console", "--soak", *kind.options}:
        sys.exit(kind.doc.strip())
    kind.given = options
    build, machine = os.path.abspath(words[0]), words[1]
    iommu, _, kernel_name = machine.partition("-")
    if iommu not in IOMMU or kernel_name not in KERNELS:
        sys.exit(f"{machine}: IOMMU and kernel are right, {', '.join(IOMMU)} and {', '.join(KERNELS)}, as in none-6.1")
    with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder, \
            open(f"{folder}/log", "w+", encoding="utf-8") as log:
        try:
            kernel = kernels.get(KERNELS[kernel_name])
            vfio_qemu.command()
            kind.prepare(build, folder)
            kind.build_initrd(kernel, build, f"{folder}/initrd")
        except cache.Unavailable as e:
            print(f"{kind.name} on {machine}: skipped: {e}")
            return SKIP

        def said_by_emu():
            log.seek(0)
            return log.read()

        emu = stranger.start_emu(build, folder, log, kind.topology)
        try:
            wrong = run(kind, build, kernel, iommu, folder, options, said_by_emu)
        finally:
            emu.terminate()
            status = emu.wait()
        wrong = wrong or (f"smartio-emu ended with {status}" if status else None)
        print(said_by_emu())
        print(f"{kind.name} on {machine}: {'FAILED: ' + wrong if wrong else 'passed'}")
        return 1 if wrong else 0
