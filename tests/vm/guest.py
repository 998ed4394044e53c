#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pass-through: machines of QEMU on hosts of an emulated cluster have drives that are borrowed from other hosts. The
drivers in them are Debian's, which know nothing of it.

usage: guest.py BUILD KERNEL [--console] [--soak]

Exit status 77, and a line that says why, if there is no QEMU that speaks vfio-user, or no kernel to be had.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import paths  # noqa: F401
import cache
import kernel as kernels
import vfio_qemu
from initrd import Initrd
from machine import Failed, die_with_parent
from shell_machine import ShellMachine

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77
LIMIT = 240  # seconds, of each machine
MEMORY = 384  # MB of each machine; a window takes all of it
HOST = "{ ram: 1G, iommu: on, adapters: [{ to: sw0, window: 1G, entries: 512 }]"
TOPOLOGY = f"""cluster: guests
switches: [sw0]
hosts:
  lender: {HOST},
    devices: {{ nvme0: {{ type: nvme, size: 64M, queue_pairs: 4, vectors: 5, serial: FIRST }} }} }}
  other: {HOST},
    devices: {{ nvme1: {{ type: nvme, size: 64M, queue_pairs: 4, vectors: 5, serial: SECOND }},
                mem1: {{ type: memory, size: 1M }} }} }}
  a: {HOST} }}
  b: {HOST} }}
"""
# A slot that takes devices while the machine runs, as PCI Express does it.
SLOTS = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
         "-device", "pcie-root-port,id=rp0,chassis=1,slot=1,bus=pcie.0,addr=8",
         "-device", "pcie-root-port,id=rp1,chassis=2,slot=2,bus=pcie.0,addr=9",
         "-device", "pcie-root-port,id=rp2,chassis=3,slot=3,bus=pcie.0,addr=a")
IO_TIMEOUT = 5  # seconds; by itself the driver waits for 30


def build_initrd(kernel, into, fill=lambda image: None):
    """@fill adds what a machine has besides."""
    image = Initrd()
    image.add_base()
    for word in ("mkfs.ext4", "e2fsck"):
        path = shutil.which(word) or shutil.which(word, path="/usr/sbin:/sbin")
        if not path:
            raise cache.Unavailable(f"{word} is not installed: apt-get install e2fsprogs")
        image.add_program(path)
    modules = kernel.modules("nvme", "crc32c_generic", "ext4")
    for path in modules:
        image.add_file("/modules/" + os.path.basename(path), path)
    image.add_data("/modules/order", "".join(os.path.basename(p) + "\n" for p in modules))
    for name in ("guest/lib.sh", "ntb-lib.sh", "guest-lib.sh"):
        to = {"guest-lib.sh": "test-lib.sh"}.get(name, os.path.basename(name))
        image.add_file(f"/{to}", os.path.join(HERE, name))
    with open(os.path.join(HERE, "ntb-init.sh"), encoding="utf-8") as f:
        image.add_data("/init", f.read(), 0o755)
    fill(image)
    image.write(into)


class Relay:
    """smartio passthrough on a host; a line of what it says at a time."""

    def __init__(self, test, device, host, *more):
        self.path = f"{test.folder}/{device}.{host}"
        self.paths = [self.path, *(f"{self.path}.{2 + n}" for n in range(len(more)))]
        self.process = subprocess.Popen(
            [test.tool, "run", "-n", host, "--", test.tool, "passthrough", device, *more, "--socket", self.path],
            env=test.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, preexec_fn=die_with_parent)
        self.said = []
        self.says("a virtual machine can have it")

    def says(self, text):
        for line in self.process.stderr:
            self.said.append(line.strip())
            if text in line:
                return line
        raise Failed(f"the relay has ended before it said '{text}': {self.said}")

    def pid(self):
        """Its own, not that of smartio run."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
                if words[1:2] == [b"passthrough"] and self.path.encode() in words:
                    return int(pid)
        raise Failed(f"no relay serves {self.path}")

    def wakes(self):
        """How often its threads have waited, that is, have been woken: for whatever came to it."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid()}/task"):
            with open(f"/proc/{self.pid()}/task/{task}/status", encoding="ascii") as f:
                total += int(next(line for line in f if line.startswith("voluntary_ctxt")).split()[1])
        return total

    def end(self):
        if self.process.stderr.closed:
            return
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        self.process.stderr.close()


class Monitor:
    """QEMU's, to plug devices in and out."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(path)
        self.file = self.sock.makefile("r", encoding="utf-8")
        self.events = []
        self.file.readline()  # its greeting
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.sock.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = json.loads(self.file.readline())
            if "error" in answer:
                raise Failed(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
            self.events.append(answer)

    def wait(self, event, device):
        while True:
            for e in self.events:
                if e["event"] == event and e.get("data", {}).get("device") == device:
                    self.events.remove(e)
                    return
            line = self.file.readline()
            if not line:
                raise Failed(f"QEMU has ended before {event} of {device}")
            self.events.append(json.loads(line))

    def plug(self, relay, name, slot):
        self.ask("device_add", driver="vfio-user-pci", id=name, bus=slot, rombar=0,
                 socket={"type": "unix", "path": relay.path})


class Test:
    """A cluster, and the machines on its hosts."""

    def __init__(self, build, kernel, folder, stack, options):
        self.build, self.kernel, self.folder, self.stack = build, kernel, folder, stack
        self.live, self.soak = "--console" in options, "--soak" in options
        self.since = time.monotonic()
        self.tool = f"{build}/tools/smartio"
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("SMARTIO_")},
                    "XDG_RUNTIME_DIR": folder}
        self.tsc_khz = self.output(f"{build}/tests/vm/tsc_khz").strip()
        self.machines = []
        with open(f"{folder}/guests.yaml", "w", encoding="ascii") as f:
            f.write(TOPOLOGY)
        self.output(self.tool, "cluster", "up", f"{folder}/guests.yaml")
        stack.callback(lambda: self.output(self.tool, "cluster", "down"))

    def output(self, *words):
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=self.env, timeout=120).stdout

    def json(self, *words):
        return json.loads(self.output(self.tool, *words, "--json"))["data"]

    def device(self, name="nvme0"):
        return next(d for d in self.json("device", "list")["devices"] if d["name"] == name)

    def messages(self):
        """What daemons have sent to each other, and what the drives have faulted."""
        return {d["name"]: [int(d["counters"][c], 16) for c in ("peer_messages_sent", "peer_messages_received", "faults")]
                for d in self.json("stats")["daemons"]}

    def relay(self, device, host, *more):
        r = Relay(self, device, host, *more)
        self.stack.callback(r.end)
        return r

    def machine(self, name, *relays, more=(), parameters=""):
        monitor = f"{self.folder}/qmp.{name}"
        m = ShellMachine(name, self.kernel, f"{self.folder}/initrd", self.folder, [path for r in relays for path in r.paths],
                         self.tsc_khz, memory=MEMORY, parameters=parameters,
                         more=(*SLOTS, "-qmp", f"unix:{monitor},server=on,wait=off", *more))
        self.machines.append(self.stack.enter_context(m))
        m.monitor_path = monitor
        m.limit(LIMIT)
        m.live = self.live
        m.wait()
        m.run(f"load_all {IO_TIMEOUT}")
        return m

    def crash_lender(self):
        """Its daemon dies, and the host with it."""
        node = next(n["node"] for n in self.json("node", "list")["nodes"] if n["name"] == "lender")
        with open(f"{self.folder}/smartio/guests/smartiod.{node}.pid", encoding="ascii") as f:
            os.kill(int(f.read()), signal.SIGKILL)

    def step(self, text):
        print(f"{text} ({time.monotonic() - self.since:.0f} s)", flush=True)


def off(m):
    """The machine switches itself off."""
    m.start("poweroff -f")
    m.process.wait(60)


def check_files(t):
    """A file system made, filled and checked; then the machine moves to another host, and its disk is the same."""
    relay = t.relay("nvme0", "a")
    if t.device()["borrowers"]:
        raise Failed("it is borrowed, though no machine is there")
    m = t.machine("first", relay)
    m.run("until_ok test -b /dev/nvme0n1; same serial $(cat /sys/class/nvme/nvme0/serial) FIRST; "
          "same driver $(basename $(readlink /sys/class/nvme/nvme0/device/driver)) nvme")
    if (t.device()["borrowers"], t.device()["state"]) != (1, "exclusive"):
        raise Failed(f"it is not borrowed for the machine alone: {t.device()}")
    t.step("nvme.ko of the machine has a drive of another host")
    m.run("mkfs.ext4 -q /dev/nvme0n1; fill /dev/nvme0n1")
    before, wakes = t.messages(), relay.wakes()
    m.run("fill /dev/nvme0n1; e2fsck -fn /dev/nvme0n1 >fsck")
    after, more = t.messages(), relay.wakes()
    if (before, wakes) != (after, more):
        raise Failed(f"messages of daemons {before}, wakes of the relay {wakes}; after I/O {after}, {more}")
    t.step(f"a file system was filled and checked without a message between daemons {list(after.values())} "
           f"and without the relay, which was woken {more} times before")
    written = m.run("sum_of /dev/nvme0n1").split()[-1]
    off(m)
    relay.says("is returned")
    if t.device()["borrowers"]:
        raise Failed("the machine is off, and the drive is borrowed")
    t.step("the machine is off, and the drive was returned")
    there = t.relay("nvme0", "b")
    m = t.machine("moved", there)
    found = m.run("until_ok test -b /dev/nvme0n1; sum_of /dev/nvme0n1").split()[-1]
    if found != written:
        raise Failed(f"on the other host {found} is read, {written} was written")
    t.step("on another host the machine finds its files")
    off(m)
    there.says("is returned")
    relay.end()
    there.end()


def check_hot_plug(t):
    """Devices of two lenders come to a machine that runs, copy to each other, and one leaves. QEMU 11.1 ends when it
    unplugs a device of vfio-user: here the machine lets go of it, and the relay takes it back."""
    first, second = t.relay("nvme0", "a"), t.relay("nvme1", "a")
    m = t.machine("plugged")
    monitor = Monitor(m.monitor_path)
    m.run("test ! -e /dev/nvme0n1")
    monitor.plug(first, "first", "rp0")
    m.run("until_ok drive_with FIRST")
    monitor.plug(second, "second", "rp1")
    m.run("until_ok drive_with SECOND")
    t.step("two drives of two hosts were plugged into a running machine")
    m.run("mkfs.ext4 -F -q $(drive_with FIRST); fill $(drive_with FIRST); "
          "dd if=$(drive_with FIRST) of=$(drive_with SECOND) bs=1M oflag=direct; "
          "cmp $(drive_with FIRST) $(drive_with SECOND); fill $(drive_with SECOND)")
    t.step("one is the copy of the other, and both are used")
    m.run("take_out FIRST; ! drive_with FIRST")
    first.end()
    m.run("fill $(drive_with SECOND)")
    if t.device("nvme0")["borrowers"] or t.device("nvme1")["borrowers"] != 1:
        raise Failed("who was taken out is not the one that was returned")
    t.step("one was taken out, and returned; the other stays")
    again = t.relay("nvme0", "a")
    monitor.plug(again, "again", "rp2")
    m.run("until_ok drive_with FIRST; fill $(drive_with FIRST)")
    t.step("and came back, in another slot")
    off(m)
    for relay in (again, second):
        relay.says("is returned")
        relay.end()


def check_peers(t):
    """Two devices of different lenders by one relay: the drive is given the other's BAR where QEMU says that the machine has
    it. (tests/cli/passthrough_peer_test.py moves data there: no stock driver does.)"""
    relay = t.relay("nvme0", "a", "mem1")
    m = t.machine("peers", relay)
    m.run("until_ok drive_with FIRST")
    # The kernel has given it addresses; nobody has enabled it, for it has no driver.
    m.run("for d in /sys/bus/pci/devices/*; do [ -e $d/driver ] || [ ! -e $d/resource2 ] || echo 1 >$d/enable; done")
    print(relay.says("BAR 2 of mem1").strip())
    m.run("mkfs.ext4 -F -q $(drive_with FIRST); fill $(drive_with FIRST)")
    off(m)
    relay.says("is returned")
    relay.says("is returned")
    relay.end()
    t.step("QEMU's machine has a drive that reaches another device's memory")


def lose(t, what, how, back):
    """The device is lost under I/O: the driver hears ones and gives up. The next machine has it."""
    relay = t.relay("nvme0", "a")
    m = t.machine(what.replace(" ", "-"), relay)
    m.run("until_ok drive_with FIRST; start_raw_io $(drive_with FIRST)")
    how()
    relay.says("is lost to its machine")
    m.run("until_ok test -s /tmp/raw.end; until_ok no_drive FIRST")
    t.step(f"{what}: the driver has given up, and the machine goes on")
    back()
    off(m)
    relay.says("is returned")
    m = t.machine(f"after-{what.replace(' ', '-')}", relay)  # media end with their host
    m.run("until_ok drive_with FIRST; mkfs.ext4 -F -q $(drive_with FIRST); fill $(drive_with FIRST)")
    off(m)
    relay.says("is returned")
    relay.end()


def check_losses(t):
    lose(t, "device out", lambda: t.output(t.tool, "fault", "device", "nvme0", "out"),
         lambda: t.output(t.tool, "fault", "device", "nvme0", "in"))
    lose(t, "lender dead", t.crash_lender, lambda: t.output(t.tool, "cluster", "restart-node", "lender"))


def check_relay_killed(t):
    """QEMU answers with ones; the machine goes on without its drive, and others have that."""
    relay = t.relay("nvme0", "a")
    m = t.machine("orphan", relay)
    m.run("until_ok drive_with FIRST; start_raw_io $(drive_with FIRST)")
    os.kill(relay.pid(), signal.SIGKILL)
    m.run("until_ok test -s /tmp/raw.end; until_ok no_drive FIRST")
    t.step("the relay was killed under I/O: the driver has given up")
    t.output(t.tool, "doctor", "--audit", "--within", "60")
    there = t.relay("nvme0", "b")
    m2 = t.machine("heir", there)
    m2.run("until_ok drive_with FIRST; mkfs.ext4 -F -q $(drive_with FIRST); fill $(drive_with FIRST)")
    off(m2)
    there.says("is returned")
    t.step("another machine has the drive")
    m.kill()


CHECKS = (check_files,)
MORE = (check_hot_plug, check_peers, check_losses, check_relay_killed)


def run(build, kernel, options):
    """What is wrong; None: nothing."""
    with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder, contextlib.ExitStack() as stack:
        build_initrd(kernel, f"{folder}/initrd")
        test = Test(build, kernel, folder, stack, options)
        try:
            for check in (*CHECKS, *(MORE if test.soak else ())):
                check(test)
        except (Failed, OSError, subprocess.SubprocessError) as e:
            for m in test.machines:
                print(f"--- QEMU of {m.name}, {m.process.poll()}: {m.errors()}")
                print(f"--- console of {m.name}\n{m.console()}")
            return str(e)
        reports = [r for r in (m.report() for m in test.machines) if r]
        return reports[0] if reports else None


def main():
    options = {w for w in sys.argv[1:] if w.startswith("--")}
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    if len(words) != 2 or options - {"--console", "--soak"} or words[1] not in kernels.STOCK:
        sys.exit(__doc__.strip())
    try:
        kernel = kernels.get(words[1])
        vfio_qemu.command()
        wrong = run(os.path.abspath(words[0]), kernel, options)
    except cache.Unavailable as e:
        print(f"guest on {words[1]}: skipped: {e}")
        return SKIP
    print(f"guest on {words[1]}: {'FAILED: ' + wrong if wrong else 'passed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
