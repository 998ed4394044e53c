# SPDX-License-Identifier: BSD-2-Clause
"""One virtual machine: started, heard, obeyed, ended.

Its first serial line is the kernel's console, the second carries lines between the test's script in
the machine and us (guest/init, guest/lib.sh). Nothing here waits for time to pass: what ends a wait is
a line, the machine's end, or the test's time limit.
"""
import ctypes
import functools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time

import paths  # noqa: F401
import cache

QEMU = os.environ.get("SMARTIO_VM_QEMU", "qemu-system-x86_64")
# What a kernel says when something is wrong with it, or with our module.
REPORT = re.compile(
    rb"BUG:|KASAN:|UBSAN:|WARNING:|Oops|general protection|Kernel panic|DMA-API:|INFO: task|"
    rb"INFO: possible|INFO: trying to register non-static|suspicious RCU usage|"
    rb"new suspected memory leaks|refcount_t:|rcu: INFO|list_add corruption|list_del corruption|"
    rb"Unable to handle|unregister_netdevice|bad page|Bad page|possible circular|"
    rb"sleeping function called|trapped fault|segfault at")
# What some kernels say of themselves in every boot.
HARMLESS = re.compile(
    rb"DMA-API: (preallocated|debugging enabled)")
# What 6.12 says of its own hot-plug when a device leaves a slot: its thread takes reset_lock and
# pci_rescan_remove_lock in both orders. Only if nothing of ours has part in it.
OWN_LOCKS = re.compile(
    rb"WARNING: possible circular locking(?:(?!smartio|</TASK>)[\s\S])*?irq/\d+-pciehp"
    rb"(?:(?!smartio|</TASK>)[\s\S])*reset_lock(?:(?!smartio|</TASK>)[\s\S])*</TASK>")

IOMMU = {
    "none": (),
    # Interrupt remapping wants an irqchip that is split where the kernel emulates one. In caching mode,
    # which no hardware has, kernels flush strictly whatever they are told.
    "intel": ("-device", "intel-iommu,intremap=on"),
    "amd": ("-device", "amd-iommu,intremap=on"),
}
# QEMU says that the IOAPIC is at 00:14.0, as AMD's southbridges have it, and its machine has no function there. Kernels
# of Debian's backports (7.3) look at it, and remap no interrupts if it is neither an SMBus nor an ISA bridge. So there is
# one that says it is an SMBus; nothing drives it.
SOUTHBRIDGE = ("-drive", "driver=null-co,if=none,id=southbridge,read-zeroes=on",
               "-device", "virtio-blk-pci,drive=southbridge,class=0x0c05,addr=14.0")
# Where both processors are threads of QEMU 7.2, one may translate code just while the other patches it,
# and keep the breakpoint that marks this: "Oops: int3", now and then. Debian's kernels patch themselves at
# any time (jump labels), so their processors take turns in one thread, which costs no more time.
THREADS = {"debug": "multi"}  # all others: "single"
# Behind a root port the drive can be taken out; but QEMU's AMD IOMMU drops the interrupts of what is
# behind one.
NVME_BUS = {"none": "rp0", "intel": "rp0", "amd": "pcie.0,addr=9"}


class Failed(Exception):
    pass


def check_qemu():
    if not shutil.which(QEMU):
        raise cache.Unavailable(f"{QEMU} is not installed: apt-get install qemu-system-x86")


@functools.cache
def amd_tells():
    """Newer models of AMD's IOMMU tell the kernel of an access that they stop; they are asked to remap."""
    asked = [QEMU, "-device", "amd-iommu,help"]
    return "dma-remap=" in subprocess.run(asked, capture_output=True, text=True).stdout


def tells_of_faults(iommu):
    return iommu == "intel" or (iommu == "amd" and amd_tells())


def iommu_options(iommu, kernel):
    options = [*IOMMU[iommu]]
    if iommu == "amd" and amd_tells():
        options[1] += ",dma-remap=on"
    if iommu == "amd" and kernel.startswith("backports"):
        options += SOUTHBRIDGE
    return options


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Channel:
    """One end of a socket pair; QEMU has the other."""

    def __init__(self, name):
        self.name = name
        self.ours, self.theirs = socket.socketpair()
        self.all = b""
        self.rest = b""

    def chardev(self):
        return ["-chardev", f"socket,id={self.name},fd={self.theirs.fileno()}"]

    def started(self):
        self.theirs.close()

    def receive(self):
        """Whole lines that came; None: QEMU has closed it."""
        try:
            data = self.ours.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            return None
        self.all += data
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [line.rstrip(b"\r") for line in lines]

    def send(self, data):
        self.ours.sendall(data)


class Machine:
    """A machine with one NVMe drive behind a root port of its own. Use as a context."""

    def __init__(self, kernel, iommu, initrd, drive, nvme, memory, append, more):
        self.channels = {n: Channel(n) for n in ("console", "control", "qmp")}
        self.limit(60)
        self.since = time.monotonic()
        self.live = False  # print what the script says as it comes
        self.talk = []
        self.drive = drive
        self.nvme_bus = NVME_BUS[iommu]
        self.qmp_answers = []
        self.qmp_events = []
        self.ended = False
        # Without an instruction for random numbers kernels measure jitter for a second or more of each start.
        words = [QEMU, "-accel", f"tcg,thread={THREADS.get(kernel.name, 'single')}", "-M", "q35", "-smp", "2",
                 "-cpu", "qemu64,+rdrand",
                 "-m", str(memory), "-display", "none", "-vga", "none", "-nic", "none", "-no-reboot", "-nodefaults",
                 *iommu_options(iommu, kernel.name)]
        for channel in self.channels.values():
            words += channel.chardev()
        words += ["-serial", "chardev:console", "-serial", "chardev:control",
                  "-mon", "chardev=qmp,mode=control",
                  "-blockdev", f"raw,node-name=disk0,file.driver=file,file.filename={drive},"
                  "cache.no-flush=on",
                  # Hot-plug as a PCIe slot does it, which every kernel here knows.
                  "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
                  "-device", "pcie-root-port,id=rp0,chassis=1,slot=1,bus=pcie.0,addr=8",
                  "-device", f"nvme,{nvme},drive=disk0,id=nvme0,bus={NVME_BUS[iommu]}",
                  "-kernel", kernel.image, "-initrd", initrd,
                  # A timer that is late because this machine is busy is not a broken one, nor is a
                  # processor that does nothing for half a minute.
                  "-append", f"console=ttyS0 panic=-1 oops=panic no_timer_check "
                  "random.trust_cpu=on "
                  "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=150 "
                  # The firmware gives hot-plug away only for power saving, which the debug kernel lacks.
                  f"pcie_ports=native {append}", *more]
        fds = [c.theirs.fileno() for c in self.channels.values()]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, pass_fds=fds,
                                        preexec_fn=die_with_parent)
        for channel in self.channels.values():
            channel.started()

    def limit(self, seconds):
        """Whoever waits from now on, for whatever, fails after so long."""
        self.time_limit = seconds
        self.deadline = time.monotonic() + seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for channel in self.channels.values():
            channel.ours.close()

    def _wait(self, until=None):
        """Until something comes: (channel, its lines); or, if a time is given, until then: None."""
        while True:
            left = min(self.deadline, until or self.deadline) - time.monotonic()
            by_fd = {c.ours: c for c in self.channels.values()}
            ready = select.select(list(by_fd), [], [], max(left, 0))[0]
            if not ready and time.monotonic() < self.deadline:
                return None
            if not ready:
                raise Failed(f"no end after {self.time_limit} s")
            for sock in ready:
                channel = by_fd[sock]
                lines = channel.receive()
                if lines is None:
                    raise Failed(f"the machine has ended: {self._last_words()}")
                return channel, lines

    def _last_words(self):
        self.process.kill()
        said = self.process.communicate()[1].decode(errors="replace").strip()
        return said or "it said nothing"

    def _qmp_line(self, line):
        message = json.loads(line)
        if "return" in message or "error" in message:
            self.qmp_answers.append(message)
        elif "event" in message:
            self.qmp_events.append(message)

    def seconds(self):
        """How long it has been on, and how much of our processors' time that took."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            user, system = f.read().rpartition(")")[2].split()[11:13]
        return (time.monotonic() - self.since,
                (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))

    def _say(self, text):
        text = f"[{time.monotonic() - self.since:8.3f}] {text}"
        self.talk.append(text)
        if self.live:
            print(text, flush=True)

    def lines(self):
        """What the script in the machine says, line by line."""
        while True:
            channel, lines = self._wait()
            for line in lines:
                if channel.name == "control":
                    text = line.decode(errors="replace")
                    self._say(text)
                    yield text
                elif channel.name == "qmp":
                    self._qmp_line(line)
                elif b"Kernel panic" in line:
                    raise Failed("the kernel panicked")

    def answer(self, text):
        """A line to the script."""
        self.channels["control"].send(text.encode() + b"\n")

    def _qmp_wait(self, there, until=None):
        """Whether it came in time."""
        while not there():
            came = self._wait(until)
            if not came:
                return False
            channel, lines = came
            for line in lines:
                if channel.name == "qmp":
                    self._qmp_line(line)
                elif channel.name == "control":
                    self._say(line.decode(errors="replace"))
        return True

    def qmp(self, command, **arguments):
        """A command to QEMU."""
        if not self.qmp_answers:
            self.channels["qmp"].send(b'{"execute": "qmp_capabilities"}\n')
            self._qmp_wait(lambda: self.qmp_answers)
        n = len(self.qmp_answers)
        self.channels["qmp"].send(json.dumps({"execute": command, "arguments": arguments}).encode()
                                  + b"\n")
        self._qmp_wait(lambda: len(self.qmp_answers) > n)
        if "error" in self.qmp_answers[-1]:
            raise Failed(f"QEMU: {command}: {self.qmp_answers[-1]['error']['desc']}")
        return self.qmp_answers[-1]["return"]

    def pull_out(self):
        """The drive, as a hand would that presses the slot's button: what follows the machine does."""
        self.qmp_events.clear()
        self.qmp("device_del", id="nvme0")

    def _on_bus(self, name):
        buses = [b["devices"] for b in self.qmp("query-pci")]
        for devices in buses:
            buses += [d["pci_bridge"]["devices"] for d in devices
                      if "devices" in d.get("pci_bridge", ())]
        return any(d["qdev_id"] == name for devices in buses for d in devices)

    def put_in(self):
        """The drive again, with what it holds. Returns "kept" if QEMU has kept the one pulled out: the
        machine has switched the slot off, the drive is on no bus, but the object never ends. QEMU 7.2
        forgets a reference for each command whose completion waits to be written when the drive is reset
        or goes. It has the first block node for ever; a second one shows the same file."""
        node = "disk0"
        if not self._qmp_wait(lambda: any(e["event"] == "DEVICE_DELETED" and
                                          e["data"].get("device") == "nvme0"
                                          for e in self.qmp_events), time.monotonic() + 20):
            if self._on_bus("nvme0"):
                raise Failed("the machine has not switched off the slot of the drive")
            node = "disk1"
            self.qmp("blockdev-add", **{"node-name": node, "driver": "raw", "file": {
                "driver": "file", "filename": self.drive, "locking": "off"}})
        self.qmp("device_add", driver="nvme", id="nvme0", drive=node, serial="SIO0",
                 bus=self.nvme_bus)
        return "" if node == "disk0" else "kept"

    def console(self):
        return self.channels["console"].all.decode(errors="replace")

    def reports(self):
        """Lines of the console that say that something is wrong with the kernel."""
        return [line.decode(errors="replace").strip()
                for line in OWN_LOCKS.sub(b"", self.channels["console"].all).splitlines()
                if REPORT.search(line) and not HARMLESS.search(line)]
