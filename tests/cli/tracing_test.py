# SPDX-License-Identifier: BSD-2-Clause
"""Log levels of smartiod's rooms, its lines in the journal, and the static probes that docs/tracing.md lists.

usage: tracing_test.py SMARTIOD LIBSMARTIO LIBSMARTIO-NVME SMARTIO-EMU"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = dict(zip(("smartiod", "libsmartio.so", "libsmartio-nvme.so", "smartio-emu"), sys.argv[1:5]))

# Runs where /run/systemd is its own: a socket is the journal, and standard error is said to lead there.
JOURNAL = r"""
import os, socket, subprocess, sys
off, emu, state, *command = sys.argv[1:]
os.makedirs("/run/systemd/journal")
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")

def start(command, env, stderr):
    ready, theirs = os.pipe()
    p = subprocess.Popen([*command, "--ready-fd", str(theirs)], pass_fds=[theirs], stderr=stderr,
                         env={**os.environ, **env})
    os.close(theirs)
    assert os.read(ready, 100)
    return p

with open("/run/systemd/stderr", "wb") as f:
    st = os.fstat(f.fileno())
    room = start([emu, *command[1:5]], {}, None)
    daemon = start(command, {"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino + int(off)}"}, f)
    for p in daemon, room:
        p.terminate()
        p.wait()
journal.setblocking(False)
try:
    while True:
        sys.stdout.buffer.write(journal.recv(65536) + b"--\n")
except BlockingIOError:
    pass
sys.stdout.buffer.write(b"standard error:\n" + open("/run/systemd/stderr", "rb").read())
"""

TOPOLOGY = """cluster: one
hosts:
  a: { node: 4, ram: 16M, adapters: [] }
"""


def smartiod(*options, **env):
    return subprocess.run([PROGRAMS["smartiod"], *options], capture_output=True, text=True,
                          env={**os.environ, **env}, check=False)


class Levels(unittest.TestCase):
    def test_rooms_are_the_folders(self):
        folders = {p.parent.name for p in (ROOT / "smartiod").glob("*/*.c")}
        done = smartiod("-D", "cellar.debug")
        self.assertEqual(done.returncode, 2)
        named = re.search(r"no room is called 'cellar'; there are (.*)", done.stderr)
        self.assertEqual(set(named[1].split(", ")), folders)

    def test_wrong_levels(self):
        for text, says in (("lender", "wanted ROOM.LEVEL"), (".debug", "wanted ROOM.LEVEL"),
                           ("lender.loud", "no level is called 'loud'"), ("lender.8", "no level is called '8'")):
            for done in (smartiod("-D", text), smartiod(SMARTIOD_DEBUG="dma.debug," + text)):
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(text + ": " + says, done.stderr)


@unittest.skipIf(os.geteuid(), "root alone has a /run/systemd of its own")
class Journal(unittest.TestCase):
    def lines(self, inode_off, *options):
        """What a daemon says from its start to its end."""
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        base = pathlib.Path(place.name)
        (base / "one.yaml").write_text(TOPOLOGY, encoding="ascii")
        script = "mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && exec \"$@\""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c", JOURNAL, str(inode_off),
                               PROGRAMS["smartio-emu"], base, PROGRAMS["smartiod"], "--topology", base / "one.yaml", "--state", base, "-n", "a", *options],
                              capture_output=True, text=True, check=False)
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        journal, _, stderr = done.stdout.partition("standard error:\n")
        return journal, stderr

    def test_a_line_has_its_room(self):
        journal, stderr = self.lines(0, "-D", "live.debug")
        if not journal and "SMARTIO_ROOM" not in pathlib.Path(PROGRAMS["smartiod"]).read_bytes().decode("latin1"):
            self.skipTest("built without the journal")
        self.assertRegex(journal, r"(?m)^SMARTIO_ROOM=live$")
        self.assertRegex(journal, r"(?m)^SMARTIO_NODE=4$")
        self.assertRegex(journal, r"(?m)^CODE_FILE=.*smartiod/live/\w+\.c$")
        self.assertNotIn("node 4", stderr)

    def test_another_file_is_no_journal(self):
        journal, stderr = self.lines(1)
        self.assertEqual(journal, "")
        self.assertIn("smartiod node 4: info: ready", stderr)


class Probes(unittest.TestCase):
    def test_documented(self):
        text = (ROOT / "docs/tracing.md").read_text(encoding="utf-8")
        documented = {(m[1], m[2]) for m in re.finditer(r"^\| (smart\w+:\w+) \| (\S+) \|", text, re.M)}
        there = set()
        for name, path in PROGRAMS.items():
            notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
            for m in re.finditer(r"Provider: (\w+)\s+Name: (\w+)", notes):
                there.add((f"{m[1]}:{m[2]}", name))
        if not there:
            self.skipTest("built without probes")
        self.assertEqual(documented, there)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
