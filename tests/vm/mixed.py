#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A mixed cluster: two emulated hosts and a machine at one switch; with --soak a second machine. Memory and interrupts of
each for the others, the drive of an emulated host for clients on the machines, and QEMU's drive in a machine for clients on
the emulated hosts.

usage: mixed.py BUILD MACHINE [--console] [--mapped] [--soak]

With --mapped the machines' windows are mapped ones, and each emulated host has a pool: round trips between its memory and the
machine's make no access to smartio-emu, and what a program that is killed had there is free again. MACHINE is none-6.1, intel-6.12 and so on: the machines' IOMMU (none with --mapped), and their kernel. Exit status 77, and a line that says why, if there is no QEMU
that speaks vfio-user, no kernel to be had, or no network namespace.
"""
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

import paths  # noqa: F401
import cache
import cluster
import kernel as kernels
import ntb_clients
import pair
import qemu
import shim
import vfio_qemu
from initrd import Initrd
from machine import Failed
from shell_machine import FIRST_SLOT, ShellMachine

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77
LIMIT = 300  # seconds
INSIDE = "SMARTIO_MIXED_INSIDE"  # we are in a network namespace of our own
# Where the emulated hosts' daemons are, for QEMU's own network stack, which leads machines there. These have higher node
# ids, so they are the ones that connect; to one another they have a wire.
ADDRESS = "10.8.0.1"
NODE = {"one": 4, "two": 8, "vm": 12, "other": 16}
WIRE = {"vm": "10.9.0.1", "other": "10.9.0.2"}
DRIVE = "nvme0"
# A drive of the machine's own, QEMU's model; its blocks are 512 bytes.
PLACE = "0000:00:08.0"
OWN_DRIVE = f"vm/{PLACE}"
MEMORY = 384  # MB of a machine


def cluster_file(mapped):
    window = f"    window: mapped\n    ram: {MEMORY}M\n" if mapped else ""
    return f"""cluster: mixed
hosts:
  one: {{ address: {ADDRESS}:7471, devices: {{ nvme0: {{ type: nvme, size: 64M }} }} }}
  two: {{ address: {ADDRESS}:7472 }}
""" + "".join(f"""  {name}:
    kind: machine
    address: {address}:7470
{window}    adapters: [{{ pci: 0000:00:{FIRST_SLOT:02x}.0, window: 64M, entries: 1024 }}]
""" for name, address in WIRE.items()) + "access: { between_machines: open }\n"


class Program:
    """On an emulated host, in the background."""

    def __init__(self, test, host, words):
        self.words = words
        self.process = subprocess.Popen([*test.tool, "run", "-n", host, "--", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, stdin=subprocess.PIPE, text=True)

    def hear(self, wanted):
        """Its first line, which is this."""
        line = self.process.stdout.readline()
        if line.strip() != wanted:
            raise Failed(f"{' '.join(self.words)}: {line}{self.process.communicate()[0]}")

    def wait(self, seconds=LIMIT):
        try:
            said = self.process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired as e:
            self.process.kill()
            raise Failed(f"{' '.join(self.words)}: no end in time: {self.process.communicate()[0]}") from e
        if self.process.returncode:
            raise Failed(f"{' '.join(self.words)}: {self.process.returncode}: {said}")
        return said.strip()


class Test:
    def __init__(self, build, folder, iommu, options):
        self.build = build
        self.iommu = iommu
        self.folder = folder
        self.soak = "--soak" in options
        self.mapped = "--mapped" in options
        self.state = f"{folder}/state"
        self.tool = [f"{build}/tools/smartio", "--state", self.state]
        self.programs = []
        self.since = time.monotonic()
        self.machines = []
        with open(f"{folder}/cluster.yaml", "w", encoding="ascii") as f:
            f.write(cluster_file(self.mapped))

    def step(self, text):
        print(f"{text} ({time.monotonic() - self.since:.0f} s)", flush=True)
        for m in self.machines:
            m.limit(LIMIT * (10 if self.soak else 1))

    def smartio(self, *words):
        done = subprocess.run([*self.tool, *words], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"smartio {' '.join(words)}: {done.stderr}")
        return done.stdout.strip()

    def start(self, host, *words):
        program = Program(self, host, [f"{self.build}/{words[0]}", *map(str, words[1:])])
        self.programs.append(program)
        return program

    def on(self, host, *words):
        return self.start(host, *words).wait()

    def until(self, what, there):
        for _ in range(600):
            if there():
                return
            time.sleep(0.05)  # nobody tells
        raise Failed(f"{what}: not in time")


VERIFY = "tests/system/verify"
PING, INTERRUPTS, VECTOR = "examples/example-pingpong", "examples/example-interrupts", "examples/example-dma_vector"
NVME = "drivers/nvme-user/smartio-nvme"


def start_machine(t, name):
    m = t.make(name)
    m.wait()
    others = "".join(f"; ip address add {WIRE[name]} peer {WIRE[o]} dev eth1; ip link set eth1 up"
                     for o in WIRE if o != name)
    m.run(f"{t.load}; load e1000e; ip address add 10.0.2.15/24 dev eth0; ip link set eth0 up; "
          f"ip route add default via 10.0.2.2{others}; start_among {name}")
    for host in ("one", "two"):
        m.run(f"until_ok said '{host} is up'")
    return m


def check_start(t):
    t.vm = start_machine(t, "vm")
    print(t.smartio("node", "list"))
    print(t.vm.run("smartio node list"))
    drawn = t.smartio("topology")
    if "of a machine" not in drawn or "vm" not in t.smartio("topology", "--dot"):
        raise Failed(f"the picture has no machine: {drawn}")
    t.step("the machine's daemon and those of the emulated hosts have found one another")


def check_memory(t):
    for host in ("one", "two"):
        t.vm.start(f"example-pingpong {NODE[host]} first 20")
        t.on(host, PING, NODE["vm"], "second", 20)
        t.vm.wait()
    other = t.start("one", PING, NODE["two"], "first", 20)
    t.on("two", PING, NODE["one"], "second", 20)
    other.wait()
    t.step("each writes into the others' memory")


def exits(t):
    """Accesses of the machine to its adapter that smartio-emu has carried out."""
    adapters = json.loads(t.smartio("stats", "--json"))["data"]["adapters"]
    return next(int(a["counters"]["exits"], 16) for a in adapters if a["name"] == "vm.0")


ROUNDS = 3000


def pool_free(t, host):
    hosts = json.loads(t.smartio("stats", "--json"))["data"]["hosts"]
    return next(int(h["counters"]["pool_free"], 16) for h in hosts if h["name"] == host)


def check_killed_program(t):
    """What it had in the pool is free, and nothing else."""
    before = pool_free(t, "two")
    program = t.start("two", PING, NODE["vm"], "first", 20)
    t.until("it has a segment", lambda: pool_free(t, "two") < before)
    program.process.kill()
    t.until("what it had is free", lambda: pool_free(t, "two") == before)


def check_pools(t):
    """A store of the machine's processors into an emulated host's segment, and a load, is none of smartio-emu's."""
    if not t.mapped:
        return
    said = t.vm.run("dmesg")
    if any(f"shows the pool of node {NODE[host]}" not in said for host in ("one", "two")):
        raise Failed(f"the machine does not see the pools: {said}")
    before = exits(t)
    t.vm.start(f"example-pingpong {NODE['one']} first {ROUNDS}")
    t.on("one", PING, NODE["vm"], "second", ROUNDS)
    t.vm.wait()
    grew = exits(t) - before
    if grew >= ROUNDS:
        raise Failed(f"{ROUNDS} round trips between the machine and a host made {grew} accesses to smartio-emu")
    check_killed_program(t)
    t.step(f"{ROUNDS} round trips with {grew} accesses to smartio-emu, all of them before or after")


def check_engines(t):
    """DMA queues: the engine of an emulated host writes to the machine's memory, and the machine's to that host's."""
    t.vm.start("example-dma_vector show")
    sent = t.on("one", VECTOR, "send", NODE["vm"])
    shown = t.vm.wait()
    if sent != shown:
        raise Failed(f"{sent}, but {shown}")
    other = t.start("one", VECTOR, "show")
    sent = t.vm.run(f"example-dma_vector send {NODE['one']}")
    shown = other.wait()
    if sent != shown:
        raise Failed(f"{sent}, but {shown}")
    t.step("DMA queues both ways")


def check_interrupts(t):
    server = t.start("one", INTERRUPTS, "serve")
    t.vm.run(f"example-interrupts ask {NODE['one']} {NODE['vm']} 4")
    server.wait()
    t.step("the machine asks an emulated host by interrupts, and is answered")
    t.vm.start("example-interrupts serve")
    t.on("two", INTERRUPTS, "ask", NODE["vm"], NODE["two"], 4)
    t.vm.wait()
    t.step("an emulated host asks the machine")


def check_drive(t):
    start_manager(t)
    t.vm.run(f"until_ok has_device {DRIVE}; head -c 65536 /dev/urandom >file; "
             f"smartio-nvme copy-in {DRIVE} file --offset 1M; "
             f"smartio-nvme copy-out {DRIVE} back --offset 1M --length 64K; cmp file back")
    t.step("a file was written and read by the machine, on the drive of an emulated host")
    sent = t.vm.run("sha256sum <file")
    got = subprocess.run(f"{' '.join(t.tool)} run -n two -- {t.build}/{NVME} read {DRIVE} --offset 1M --length 64K "
                         "| sha256sum", shell=True, capture_output=True, text=True).stdout
    if got.split()[0] != sent.split()[0]:
        raise Failed(f"the emulated host reads {got}, the machine wrote {sent}")
    t.step("the emulated host reads what the machine wrote")
    print(t.vm.run(f"start_io {DRIVE} 8192 64 interrupt; end_io"))
    t.step("the machine's client is woken by that drive")


def check_own_drive(t):
    """QEMU's drive in the machine, for clients on the emulated hosts: their doorbells are carried on, it moves data to and
    from their memory through the window, and wakes them.
    """
    t.vm.run(f"smartio device add {PLACE}; until_ok has_device {OWN_DRIVE}; start_manager {OWN_DRIVE}")
    with open(f"{t.folder}/sent", "wb") as f:
        f.write(os.urandom(65536))
    t.on("two", NVME, "copy-in", OWN_DRIVE, f"{t.folder}/sent", "--offset", "1M")
    t.on("one", NVME, "copy-out", OWN_DRIVE, f"{t.folder}/got", "--offset", "1M", "--length", "64K")
    t.vm.run(f"smartio-nvme copy-out {OWN_DRIVE} got --offset 1M --length 64K")
    sums = {t.vm.run("sha256sum <got").split()[0]}
    for name in ("sent", "got"):
        with open(f"{t.folder}/{name}", "rb") as f:
            sums.add(hashlib.sha256(f.read()).hexdigest())
    if len(sums) != 1:
        raise Failed("a file on the machine's drive is another one for who reads it")
    t.step("a file was written by one emulated host, and read by the other and by the machine, on the machine's own drive")
    woken = t.start("one", VERIFY, OWN_DRIVE, 8192, 64, "interrupt")
    woken.hear("running")
    clients = [woken, t.start("two", VERIFY, OWN_DRIVE, 16384, 64)]
    t.vm.run(f"until_ok same_borrowers {OWN_DRIVE} 3 0; start_io {OWN_DRIVE} 24576 64")
    t.until("the list outside has its borrowers", lambda: borrowers(t, OWN_DRIVE) == ["4", "0"])
    t.vm.run("end_io")
    for program in clients:
        end(program)
    t.step("clients of all use it at once, one is woken by it")
    t.vm.run("stop_manager")
    refused = subprocess.run([*t.tool, "run", "-n", "two", "--", f"{t.build}/{NVME}", "manager", OWN_DRIVE],
                             capture_output=True, text=True)
    if refused.returncode == 0 or "doorbells alone" not in refused.stderr:
        raise Failed(f"a manager on an emulated host: {refused.returncode}: {refused.stderr}")
    t.vm.run(f"until_ok same_borrowers {OWN_DRIVE} 0 0; smartio device remove {PLACE}")
    t.step("no manager of it can be on an emulated host, which says why; all is given back")


def check_views(t):
    """The emulated hosts' views have the machine: on, joined, with what passed, its daemon connected with theirs; and its own
    list has them."""
    node = next(n for n in json.loads(t.smartio("node", "list", "--json"))["data"]["nodes"] if n["name"] == "vm")
    link = next(a for a in json.loads(t.smartio("stats", "--json"))["data"]["adapters"] if a["name"] == "vm.0")
    # Nobody counts what goes through mapped windows.
    passed = {name: int(link["counters"][name], 16) for name in (("exits",) if t.mapped else ("rd_bytes", "wr_bytes", "msg"))}
    found = (node["kind"], node["state"], node["adapters"][0]["link"], node["peers_up"])
    if found != ("machine", "up", "up", 2) or not all(passed.values()):
        raise Failed(f"the views show the machine as {found}, {passed}")
    t.vm.run("smartio node list >nodes; grep -Eq '^one +4 +host +up ' nodes && grep -Eq '^vm +12 +machine +up ' nodes")
    t.step(f"the views have the machine: {passed}")


def borrowers(t, drive=DRIVE):
    """How many borrow it, and how many have ended whom it may still write to."""
    (words,) = [line.split() for line in t.smartio("device", "list").splitlines() if line.startswith(drive)]
    return words[-2:]


def check_link(t):
    """The cable of the drive's host is pulled out under I/O of the machine, and put in."""
    t.vm.run(f"start_io {DRIVE} 8192 64")
    other = t.start("one", VERIFY, DRIVE, 16384, 64)
    t.smartio("fault", "link", "one", "down")
    print(t.vm.run("broken_io"))
    t.until("the drive is free", lambda: borrowers(t)[1] == "0" and borrowers(t)[0] in ("1", "2"))
    t.smartio("fault", "link", "one", "up")
    end(other)
    t.vm.run(f"until_ok has_device {DRIVE}")
    t.step("the cable was pulled out under I/O: the machine's client was told")


def end(program):
    """A verify that must not have noticed anything."""
    program.process.stdin.close()
    program.process.stdin = None
    print(program.wait().splitlines()[-1])


def start_manager(t):
    t.smartio("run", "-n", "one", "--", f"{t.build}/{NVME}", "manager", "--background", DRIVE)


def check_death(t):
    """The machine loses its power under its client's I/O, and comes back."""
    other = t.start("one", VERIFY, DRIVE, 16384, 64)
    t.vm.run(f"start_io {DRIVE} 8192 64")
    t.vm.kill()
    t.until("the drive is free", lambda: borrowers(t) == ["2", "0"])
    end(other)
    t.smartio("doctor", "--audit", "--within", "60")
    t.step("the machine was killed under I/O: the emulated hosts have taken all back, and one's client went on")
    if t.soak:
        t.vm = start_machine(t, "vm")
        check_memory(t)


def check_two(t):
    """Two machines beside two emulated hosts: clients of all on the drive, and one machine is killed."""
    other = start_machine(t, "other")
    t.vm.run("until_ok said 'other is up'")
    t.vm.start(f"example-pingpong {NODE['other']} first 10")
    other.run(f"example-pingpong {NODE['vm']} second 10")
    t.vm.wait()
    t.step("a second machine is there, and the two write into each other's memory")
    clients = [t.start(host, VERIFY, DRIVE, first, 64) for host, first in (("one", 16384), ("two", 24576))]
    other.run(f"until_ok has_device {DRIVE}; start_io {DRIVE} 32768 64")
    t.vm.run(f"start_io {DRIVE} 8192 64")
    t.until("all four borrow", lambda: borrowers(t) == ["5", "0"])
    other.kill()
    t.until("what it had is taken back", lambda: borrowers(t) == ["4", "0"])
    for program in clients:
        end(program)
    print(t.vm.run("end_io"))
    t.smartio("doctor", "--audit", "--within", "60")
    t.step("one of two machines was killed under I/O of all: the others have no error")


def check_more(t):
    if t.soak:
        check_link(t)
        check_two(t)


CHECKS = [check_start, check_memory, check_pools, check_engines, check_interrupts, check_drive, check_own_drive, check_views, check_more, check_death]


def build_initrd(t, kernel):
    image = Initrd()
    image.add_base()
    clients = ntb_clients.get(kernel)
    for name, path in (("ntb", f"{clients}/ntb.ko"), ("ntb_hw_smartio", shim.module(kernel, t.build, ntb=clients)),
                       ("smartio", shim.module(kernel, t.build))):
        image.add_file(f"/modules/{name}.ko", path)
    for path in kernel.modules("e1000e"):
        image.add_file("/modules/" + os.path.basename(path), path)
    for name in ("tools/smartio", "smartiod/smartiod", NVME, "tests/system/verify", "tests/vm/lists", PING, INTERRUPTS,
                 VECTOR):
        image.add_program(os.path.join(t.build, name))
    image.add_file("/etc/smartio/cluster.yaml", f"{t.folder}/cluster.yaml")
    for name in os.listdir(f"{t.state}/keys"):
        image.add_file(f"/keys/{name}", f"{t.state}/keys/{name}")
    for name, source in (("/lib.sh", "guest/lib.sh"), ("/ntb-lib.sh", "ntb-lib.sh"), ("/test-lib.sh", "cluster-lib.sh")):
        image.add_file(name, os.path.join(HERE, source))
    with open(os.path.join(HERE, "ntb-init.sh"), encoding="utf-8") as f:
        image.add_data("/init", f.read(), 0o755)
    image.write(f"{t.folder}/initrd")
    t.load = pair.Kind().load_adapter("vm")


def own_drive(t, name):
    """What makes QEMU give it a drive."""
    if name != "vm":
        return ()
    path = f"{t.folder}/drive"
    with open(path, "wb") as f:
        f.truncate(16 << 20)
    return ("-blockdev", f"raw,node-name=disk0,file.driver=file,file.filename={path},cache.no-flush=on",
            "-device", "nvme,serial=SIO0,drive=disk0,addr=8")


def memory_of(t, name):
    """Keywords and words of a machine whose memory lies in the file that peers map."""
    if not t.mapped:
        return {}, ()
    shared = f"{t.state}/memory"
    offset = sorted(WIRE, key=NODE.get).index(name) * MEMORY << 20
    pools = (f"{t.state}/memory.{host}" for host in ("one", "two"))
    return {"memory": MEMORY, "backend": qemu.part_of(shared, MEMORY, offset)}, qemu.shown(shared, *pools)


def check_all(t, kernel, stack, options):
    tsc_khz = subprocess.run([f"{t.build}/tests/vm/tsc_khz"], check=True, capture_output=True, text=True).stdout.strip()
    t.smartio("cluster", "up", f"{t.folder}/cluster.yaml")
    stack.callback(lambda: subprocess.run([*t.tool, "cluster", "down"], capture_output=True))
    build_initrd(t, kernel)
    t.step("the emulated hosts are up")

    def make(name):
        wires = (cluster.wire(t.folder, name, other, "wire", f"52:54:00:00:00:{NODE[name]:02x}")
                 for other in WIRE if other != name)
        keywords, shown = memory_of(t, name)
        m = ShellMachine(name + "'" * sum(m.name.startswith(name) for m in t.machines), kernel, f"{t.folder}/initrd",
                         t.folder, [f"{t.state}/vfio.{name}.0"], tsc_khz, **keywords,
                         more=(*pair.IOMMU[t.iommu], *shown, *own_drive(t, name), "-netdev", "user,id=net", "-device", "e1000e,netdev=net,romfile=",
                               *(word for wire in wires for word in wire)))
        t.machines.append(stack.enter_context(m))
        m.limit(LIMIT * (10 if t.soak else 1))
        m.live = "--console" in options
        return m

    t.make = make
    for check in CHECKS:
        check(t)


def judge(t, kernel, stack, options):
    """What is wrong; None: nothing."""
    try:
        check_all(t, kernel, stack, options)
    except (Failed, subprocess.SubprocessError) as e:
        for m in t.machines:
            shown = pair.ask(m, "smartio device list; tail -n 30 /tmp/manager* /tmp/io.* /tmp/smartiod.log; true")
            print(f"--- {m.name}: {shown}\n--- console of {m.name}\n{m.console()}")
        print(subprocess.run([*t.tool, "device", "list"], capture_output=True, text=True).stdout)
        for program in t.programs:
            if program.process.returncode is None:
                program.process.kill()
                print(f"--- {' '.join(program.words)}: {program.process.communicate()[0]}")
        for name in sorted(os.listdir(t.state)):
            if name.endswith(".log"):
                with open(f"{t.state}/{name}", encoding="utf-8", errors="replace") as f:
                    print(f"--- {name}\n{f.read()[-4000:]}")
        return str(e)
    finally:
        for program in t.programs:
            if program.process.poll() is None:
                program.process.kill()
    reports = [r for r in (m.report() for m in t.machines) if r]
    return reports[0] if reports else None


def enter_namespace():
    """Addresses of ours, which nobody else has."""
    words = ["unshare", "-n" if os.geteuid() == 0 else "-rn"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        raise cache.Unavailable("no network namespace: unshare -rn fails")
    os.execvpe(words[0], [*words, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def main():
    options = {w for w in sys.argv[1:] if w.startswith("--")}
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    iommu, _, kernel_name = words[1].partition("-") if len(words) == 2 else ("", "", "")
    if iommu not in pair.IOMMU or options - {"--console", "--mapped", "--soak"} or kernel_name not in kernels.STOCK:
        sys.exit(__doc__.strip())
    if "--mapped" in options and iommu != "none":
        sys.exit("an IOMMU of the machine and mapped windows exclude each other (docs/virtual-ntb.md)")
    try:
        kernel = kernels.get(kernel_name)
        vfio_qemu.command()
        ntb_clients.get(kernel)
        if INSIDE not in os.environ:
            enter_namespace()
        for line in ("link set lo up", f"address add {ADDRESS}/32 dev lo"):
            subprocess.run(["busybox", "ip", *line.split()], check=True)
        with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder, contextlib.ExitStack() as stack:
            wrong = judge(Test(os.path.abspath(words[0]), folder, iommu, options), kernel, stack, options)
    except cache.Unavailable as e:
        print(f"mixed on {words[1]}: skipped: {e}")
        return SKIP
    print(f"mixed on {words[1]}: {'FAILED: ' + wrong if wrong else 'passed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
