#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Drives whose blocks are in files: what is written survives, and what is wrong with a file is said."""
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "cli"))
import base  # noqa: E402

NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")
MIB = 1 << 20

TOPOLOGY = """cluster: filed
hosts:
  lender: {devices: {nvme0: {type: nvme, size: 8M, file: "%s"}}}
  client1:
"""
MACHINE = """cluster: filed
hosts:
  vm: {kind: machine, devices: {disk: {type: nvme, size: 1M, file: "%s"}}}
"""
TWO = """cluster: filed
hosts:
  lender: {devices: {nvme0: {type: nvme, namespaces: [{size: 1M, file: "%s"}, {size: 1M, file: "%s"}, {size: 1M}]}}}
  client1:
"""


class Filed(base.CommandTest):
    def nvme(self, *args, **more):
        return self.smartio("run", "-n", "client1", "--", NVME, *args, **more)

    def path(self, name):
        return os.path.join(self.dir, name)

    def begin(self, text):
        self.smartio("cluster", "up", self.file("filed.yaml", text))
        self.nvme("manager", "nvme0", "--background")

    def contents(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def make(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)


class Survives(Filed):
    def test_down_and_up(self):
        data = self.make("data", random.Random(25).randbytes(5 * MIB + 512))
        self.begin(TOPOLOGY % self.path("disk"))
        self.assertEqual(os.stat(self.path("disk")).st_size, 8 * MIB)
        self.assertEqual(os.stat(self.path("disk")).st_mode & 0o777, 0o600)
        self.nvme("copy-in", "nvme0", data, "--offset", "1M")
        self.smartio("cluster", "down")
        self.assertEqual(self.contents("disk"), bytes(MIB) + self.contents("data") + bytes(2 * MIB - 512))
        self.begin(TOPOLOGY % self.path("disk"))
        self.nvme("copy-out", "nvme0", self.path("out"), "--offset", "1M", "--length", str(5 * MIB + 512))
        self.assertEqual(self.contents("out"), self.contents("data"))
        # A hole gives its room back.
        before = os.stat(self.path("disk")).st_blocks
        self.nvme("trim", "nvme0", "--offset", "2M", "--length", "2M", "--yes")
        self.assertLess(os.stat(self.path("disk")).st_blocks, before)
        self.nvme("zero", "nvme0", "--offset", "1M", "--length", "512", "--yes")
        self.assertEqual(self.contents("disk")[MIB:4 * MIB],
                         bytes(512) + self.contents("data")[512:MIB] + bytes(2 * MIB))
        self.nvme("verify", "nvme0", "--length", "8M")
        self.nvme("format", "nvme0", "--yes")
        self.assertEqual(self.contents("disk"), bytes(8 * MIB))
        self.nvme("bench", "nvme0", "-c", "2000", "--depth", "32")

    @unittest.skipUnless(shutil.which("strace"), "strace is missing")
    def test_new_file_survives_power_loss(self):
        """Its name reaches the disk before it has its size: a file of the right size needs no sync any more."""
        os.mkdir(self.path("disks"))
        os.symlink("disks/disk", self.path("link"))
        for want in ([f"fsync({self.path('disks')})", f"ftruncate({self.path('disks/disk')})"], []):
            trace = self.path("trace")
            with subprocess.Popen(["strace", "-f", "-qq", "-y", "-o", trace, "-e", "trace=fsync,ftruncate", base.TOOL, "cluster",
                                   "up", self.file("filed.yaml", TOPOLOGY % self.path("link"))],
                                  env=self.env, stderr=subprocess.PIPE, text=True) as up:
                self.assertIn("is up", up.stderr.readline())
                self.smartio("cluster", "down")
                up.communicate(timeout=60)  # strace stays as long as what was started
            with open(trace, encoding="utf-8") as f:
                calls = re.findall(r"(fsync|ftruncate)\(\d+<([^>]*disks[^>]*)>", f.read())
            self.assertEqual([f"{name}({path})" for name, path in calls], want)

    def test_emulator_killed(self):
        data = self.make("data", random.Random(26).randbytes(4 * MIB))
        self.begin(TOPOLOGY % self.path("disk"))
        self.nvme("copy-in", "nvme0", data)
        state = os.path.join(self.dir, "smartio", "filed")
        pid = self.pid_of(state, "emu")
        os.kill(pid, signal.SIGKILL)
        base.wait_gone(pid)
        self.smartio("cluster", "down", "--force", status=None)
        self.begin(TOPOLOGY % self.path("disk"))
        self.nvme("copy-out", "nvme0", self.path("out"), "--length", "4M")
        self.assertEqual(self.contents("out"), self.contents("data"))

    def test_no_room(self):
        """A write that the file system refuses fails, the drive works on, and nothing else is lost."""
        data = self.make("data", random.Random(27).randbytes(6 * MIB))
        self.begin(TOPOLOGY % self.path("disk"))
        pid = self.pid_of(os.path.join(self.dir, "smartio", "filed"), "emu")
        old = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4 * MIB, old[1]))
        done = self.nvme("copy-in", "nvme0", data, status=1)
        self.assertIn("apacity", done.stderr)
        self.nvme("copy-in", "nvme0", self.make("small", b"small" * 1000), "--offset", "2M")
        self.assertEqual(self.nvme("read", "nvme0", "--offset", "2M", "--length", "5000").stdout, "small" * 1000)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, old)
        self.nvme("copy-in", "nvme0", data)
        self.assertEqual(self.contents("disk")[:6 * MIB], self.contents("data"))

    def test_cut_short(self):
        self.begin(TOPOLOGY % self.path("disk"))
        self.nvme("copy-in", "nvme0", self.make("data", b"here" * 1024))
        os.truncate(self.path("disk"), MIB)
        done = self.nvme("read", "nvme0", "--offset", "2M", "--length", "512", status=1)
        self.assertIn("LBA", done.stderr)
        self.assertEqual(self.nvme("read", "nvme0", "--length", "4096").stdout, "here" * 1024)

    def test_of_a_machine(self):
        """A drive that is served by vfio-user has its file, too."""
        self.smartio("cluster", "up", self.file("filed.yaml", MACHINE % self.path("disk")))
        self.assertEqual(os.stat(self.path("disk")).st_size, MIB)
        self.smartio("cluster", "down")
        self.make("disk", b"short")
        done = self.smartio("cluster", "up", self.file("filed.yaml", MACHINE % self.path("disk")), status=1)
        self.assertIn("it has 5 bytes", done.stderr)

    def test_namespaces(self):
        self.begin(TWO % (self.path("one"), self.path("two")))
        for nsid in ("1", "2", "3"):
            self.nvme("copy-in", "nvme0", self.make(nsid, nsid.encode() * 4096), "-n", nsid)
        self.nvme("zero", "nvme0", "-n", "2", "--length", "512", "--yes")
        self.smartio("cluster", "down")
        self.begin(TWO % (self.path("one"), self.path("two")))
        self.assertEqual(self.nvme("read", "nvme0", "-n", "1", "--length", "4096").stdout, "1" * 4096)
        self.assertEqual(self.nvme("read", "nvme0", "-n", "2", "--length", "4096").stdout,
                         "\0" * 512 + "2" * (4096 - 512))
        self.assertEqual(self.nvme("read", "nvme0", "-n", "3", "--length", "4096").stdout, "\0" * 4096)


class Wrong(Filed):
    def refuses(self, text, *say):
        done = self.smartio("cluster", "up", self.file("filed.yaml", text), status=1)
        for words in say:
            self.assertIn(words, done.stderr)

    def test_files(self):
        os.mkdir(self.path("folder"))
        self.refuses(TOPOLOGY % self.path("folder"), self.path("folder"), "it is a directory; a regular file is right")
        self.make("short", b"x" * 4096)
        self.refuses(TOPOLOGY % self.path("short"), "it has 4096 bytes", "size 8388608")
        self.assertEqual(self.contents("short"), b"x" * 4096)
        os.mkfifo(self.path("pipe"))
        self.refuses(TOPOLOGY % self.path("pipe"), "a pipe or a socket")
        self.refuses(TOPOLOGY % "/dev/null", "/dev/null: it is a character device")
        self.refuses(TOPOLOGY % self.path("no/such"), "No such file or directory")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path("socket"))
            self.refuses(TOPOLOGY % self.path("socket"), "a pipe or a socket")

    def test_used_twice(self):
        self.make("one", b"")
        os.link(self.path("one"), self.path("two"))
        self.refuses(TWO % (self.path("one"), self.path("two")), "another namespace of this cluster has it")
        self.refuses(TWO % (self.path("one"), self.path("one")), "device 'nvme0' has this file")

    def test_locked(self):
        with subprocess.Popen(["flock", self.make("disk", b""), "sh", "-c", "echo locked; read line"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b"locked\n")
            self.refuses(TOPOLOGY % self.path("disk"), "another program has it locked")
            holder.stdin.close()
            holder.wait()
        self.begin(TOPOLOGY % self.path("disk"))


if __name__ == "__main__":
    base.main()
