# SPDX-License-Identifier: BSD-2-Clause
"""What every test of the command needs: a place of its own, and the proof that nothing stays."""
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

# Who runs the tests in the background ignores these, and a shell cannot trap what it finds ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

TOOL = os.environ.get("SMARTIO_TOOL", "smartio")
HERE = os.path.dirname(os.path.abspath(__file__))

try:
    from jsonschema import Draft202012Validator
except ImportError:  # schema_test.py says so
    SCHEMAS = None
else:
    SCHEMAS = {}
    FOLDER = os.path.join(HERE, "..", "..", "tools", "schema")
    for schema_name in os.listdir(FOLDER):
        with open(os.path.join(FOLDER, schema_name), encoding="utf-8") as schema_file:
            SCHEMAS[schema_name.removesuffix(".json")] = json.load(schema_file)


def check_schema(doc):
    """A document of --json is as its schema says, where schemas can be checked."""
    if SCHEMAS is not None:
        Draft202012Validator(SCHEMAS[doc["schema"].removeprefix("smartio/")]).validate(doc)

TOPOLOGY = """\
cluster: %s
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    devices:
      nvme0: {type: nvme, size: 16M, block: 512}
  client1: {ram: 64M}
  client2: {ram: 64M}
"""


def processes_with(name, value):
    """Processes that were started with NAME=VALUE in their environment, or VALUE in their words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = f.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read()
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if state != "Z" and (f"{name}={value}".encode() in env or value.encode() in words):
            found.append((int(pid), words.replace(b"\0", b" ").decode(errors="replace")))
    return found


def status_of(pid, field):
    """A line of /proc/PID/status."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(line.split(":", 1)[1].strip() for line in f if line.startswith(field + ":"))


def wait_gone(pid, seconds=60):
    """Wait until a process, not necessarily our child, has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(seconds * 1000):
            raise AssertionError(f"process {pid} still lives after {seconds} s")
    finally:
        os.close(fd)


class CommandTest(unittest.TestCase):
    """A base directory of its own; afterwards no cluster, process or file may be left."""

    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SMARTIO_")}
        self.env["XDG_RUNTIME_DIR"] = self.dir
        self.base = os.path.join(self.dir, "smartio")
        self.children = []
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self.nothing_left)

    def nothing_left(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            for pipe in (child.stdin, child.stdout, child.stderr):
                if not pipe.closed:
                    pipe.close()
            child.wait(60)
        wrong = []
        for cluster in self.json("cluster", "status")["clusters"]:
            where = ("--state", cluster["directory"])
            if cluster["state"] == "running":
                audit = self.smartio(*where, "doctor", "--audit", "--within", "60", status=None)
                wrong += audit.stderr.splitlines()
            wrong += self.smartio(*where, "cluster", "down", status=None).stderr.splitlines()[1:]
        # The keeper of a command that was killed hears of it, and ends then.
        for pid, words in processes_with("XDG_RUNTIME_DIR", self.dir):
            try:
                wait_gone(pid)
            except AssertionError:
                wrong.append(f"process {pid} is left over: {words}")
        if os.path.isdir(self.base):
            wrong += [f"{name} is left over" for name in os.listdir(self.base)]
        self.assertEqual(wrong, [])

    def smartio(self, *args, status=0, env=None, **more):
        """Run the command to its end. @status None: any."""
        done = subprocess.run([TOOL, *args], capture_output=True, text=True, timeout=60,
                              env={**self.env, **(env or {})}, check=False, **more)
        if status is not None and done.returncode != status:
            self.fail(f"smartio {args}: exit {done.returncode}, not {status}\n"
                      f"{done.stdout}{done.stderr}")
        return done

    def start(self, *args, env=None, **more):
        """Run the command in the background."""
        child = subprocess.Popen([TOOL, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 env={**self.env, **(env or {})}, **more)
        self.children.append(child)
        return child

    def fails(self, *args, say, status=1, **more):
        """One line that begins with "smartio:", holds all of @say, and nothing on stdout."""
        done = self.smartio(*args, status=status, **more)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1 if status == 1 else 2, done.stderr)
        self.assertTrue(lines[0].startswith("smartio: "), done.stderr)
        for text in [say] if isinstance(say, str) else say:
            self.assertIn(text, lines[0])
        if status == 2:
            self.assertRegex(lines[1], r"^Try '.*smartio.* --help'\.$")
        return done

    def document(self, text):
        """What the one document that a command printed holds."""
        doc = json.loads(text)
        check_schema(doc)
        return doc["data"]

    def json(self, *args):
        return self.document(self.smartio(*args, "--json").stdout)

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def topology(self, name="test"):
        return self.file(f"{name}.yaml", TOPOLOGY % name)

    def up(self, name="test"):
        self.smartio("cluster", "up", self.topology(name))
        return os.path.join(self.base, name)

    def node(self, name):
        return next(n["node"] for n in self.json("node", "list")["nodes"] if n["name"] == name)

    def pid_of(self, state, program):
        with open(os.path.join(state, f"{program}.pid"), encoding="ascii") as f:
            return int(f.read())

    def crash(self, state, node):
        """Kill a host's daemon: the host crashes."""
        pid = self.pid_of(state, f"smartiod.{node}")
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)


def main():
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
