# SPDX-License-Identifier: BSD-2-Clause
"""smartio machine demo: all of it, once."""
import os
import signal
import subprocess
import tempfile
import time

import fetch
from guest_image import DRIVE_PLACE
from report import Failed, say

DEMO = """cluster: machine-demo
hosts:
  a: { kind: machine, adapters: [{ to: b, window: 64M, entries: 1024 }] }
  b: { kind: machine, adapters: [{ to: a, window: 64M, entries: 1024 }] }
"""
DEMO_DRIVE = f"a/{DRIVE_PLACE}"


class Demo:
    """A cluster of two machines in a folder of its own, for as long as this lasts."""

    def __init__(self, asks, folder):
        self.words = [asks["program"], "--state", os.path.join(folder, "state")]
        self.options = ["--kernel", asks["kernel"]]
        self.folder = folder
        self.since = time.monotonic()

    def step(self, text):
        say(f"[{time.monotonic() - self.since:4.0f} s] {text}")

    def begin(self, *words):
        return subprocess.Popen([*self.words, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def end(self, process, data=b""):
        """What it wrote."""
        out, err = process.communicate(data)
        if process.returncode != 0:
            said = err.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise Failed(f"{' '.join(process.args[3:])}: ended with {process.returncode}: {said[-1]}")
        return out

    def do(self, *words, data=b""):
        return self.end(self.begin(*words), data)

    def start_machines(self):
        with open(f"{self.folder}/drive", "wb") as f:
            f.truncate(64 << 20)
        starting = [self.begin("machine", "start", "a", *self.options, "--drive", f"{self.folder}/drive"),
                    self.begin("machine", "start", "b", *self.options)]
        try:
            for process in starting:
                self.end(process)
        finally:
            for process in starting:
                process.terminate()  # what it has begun it ends
                process.wait()

    def show(self):
        text = os.urandom(32768)
        self.do("run", "-n", "a", "--", "smartio-nvme", "manager", "--background", DEMO_DRIVE)
        self.step(f"a manager for the drive {DEMO_DRIVE}, on a")
        self.do("run", "-n", "b", "--", "sh", "-c",
                f"until smartio device list | grep -q '^{DEMO_DRIVE} '; do sleep 0.1; done")
        self.do("run", "-n", "b", "--", "sh", "-c",
                f"cat >/tmp/text && smartio-nvme copy-in {DEMO_DRIVE} /tmp/text --offset 1M", data=text)
        self.step("b has written 32 KiB of random bytes to it")
        with open(f"{self.folder}/drive", "rb") as f:
            f.seek(1 << 20)
            if f.read(len(text)) != text:
                raise Failed("they are not on the drive of a")
        got = self.do("run", "-n", "b", "--", "smartio-nvme", "copy-out", DEMO_DRIVE, "-", "--offset", "1M", "--length",
                      "32K")
        if got != text:
            raise Failed("b has read other bytes than it wrote")
        self.step("they are in the file that is a's drive, and b reads them")


def demo(asks):
    if not os.path.exists(fetch.manifest_path(asks["kernel"])):
        fetch.fetch(asks)
    with tempfile.TemporaryDirectory(prefix="sio-demo-") as folder:
        d = Demo(asks, folder)
        with open(f"{folder}/two-machines.yaml", "w", encoding="ascii") as f:
            f.write(DEMO)
        d.do("cluster", "up", f"{folder}/two-machines.yaml")
        try:
            d.step("a cluster of two machines, a and b, that are joined by virtual NTBs")
            d.start_machines()
            kernel = d.do("run", "-n", "b", "--", "uname", "-r").decode().strip()
            d.step(f"both run Linux {kernel}, each with a smartiod")
            d.show()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            d.do("cluster", "down")
        d.step("all is taken down; docs/machines.md does the same step by step")
    return {"kernel": asks["kernel"], "seconds": round(time.monotonic() - d.since)}
