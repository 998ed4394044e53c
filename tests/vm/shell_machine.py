# SPDX-License-Identifier: BSD-2-Clause
"""A machine with devices of vfio-user whose test runs here: it obeys lines of shell, one after the other."""
import select
import subprocess
import time

import paths  # noqa: F401
import qemu
from qemu import FIRST_SLOT
from machine import HARMLESS, REPORT, Channel, Failed, die_with_parent


class ShellMachine:
    """Use as a context. What a machine is told it begins at once; whoever wants to know more waits for it."""

    def __init__(self, name, kernel, initrd, folder, sockets, tsc_khz, memory=384, more=(), parameters="",
                 backend=None):
        self.name = name
        self.console_path = f"{folder}/console.{name}"
        self.stderr_path = f"{folder}/stderr.{name}"
        self.stderr = open(self.stderr_path, "w", encoding="utf-8")
        self.control = Channel("control")
        self.since = time.monotonic()
        self.limit(120)
        self.live = False
        self.said = []  # lines of what it runs now
        self.ends = []  # status of what has ended
        self.command = "its start"
        words = [*qemu.words(kernel, initrd, memory, backend or qemu.private_memory(memory),
                             append=f"loglevel=5 tsc_early_khz={tsc_khz} {parameters}"),
                 *more, "-serial", f"file:{self.console_path}", *self.control.chardev(), "-serial", "chardev:control"]
        for slot, path in enumerate(sockets, FIRST_SLOT):
            words += qemu.vfio_user(slot, path)
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.stderr,
                                        pass_fds=[self.control.theirs.fileno()], preexec_fn=die_with_parent)
        self.control.started()

    def limit(self, seconds):
        """Whoever waits from now on fails after so long."""
        self.deadline = time.monotonic() + seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.control.ours.close()
        self.stderr.close()

    def kill(self):
        """As if its power were cut."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def errors(self):
        """What QEMU complained of."""
        with open(self.stderr_path, encoding="utf-8", errors="replace") as f:
            return f.read().strip() or "it said nothing"

    def _receive(self):
        left = self.deadline - time.monotonic()
        if left <= 0 or not select.select([self.control.ours], [], [], left)[0]:
            raise Failed(f"{self.name}: {self.command}: no end in time; so far: {self.said}")
        lines = self.control.receive()
        if lines is None:
            self.kill()
            raise Failed(f"{self.name}: the machine has ended: {self.errors()}")
        for line in lines:
            text = line.decode(errors="replace")
            if self.live:
                print(f"[{time.monotonic() - self.since:8.3f}] {self.name}: {text}", flush=True)
            if text.startswith("END "):
                self.ends.append(int(text[4:]))
            elif text:
                self.said.append(text)

    def start(self, command):
        """Begin; wait() tells the end."""
        if self.live:
            print(f"[{time.monotonic() - self.since:8.3f}] {self.name}$ {command}", flush=True)
        self.said, self.ends = [], []
        self.command = command
        try:
            self.control.send(command.encode() + b"\n")
        except OSError as e:
            self.kill()
            raise Failed(f"{self.name}: {command}: the machine has ended: {self.errors()}") from e

    def wait(self):
        """What was said by what was started. What fails there fails here."""
        while not self.ends:
            self._receive()
        if self.ends[0] != 0:
            raise Failed(f"{self.name}: {self.command}: ended with {self.ends[0]}: {' '.join(self.said)}")
        return "\n".join(self.said)

    def hear(self):
        """The first line of what was started, while it goes on."""
        while not self.said and not self.ends:
            self._receive()
        return self.said[0] if self.said else self.wait()

    def run(self, command):
        self.start(command)
        return self.wait()

    def console(self):
        with open(self.console_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def report(self):
        """A line of the console that says that something is wrong with the kernel; None: nothing."""
        with open(self.console_path, "rb") as f:
            for line in f.read().splitlines():
                if REPORT.search(line) and not HARMLESS.search(line):
                    return f"{self.name}: the kernel reports: {line.decode(errors='replace').strip()}"
        return None
