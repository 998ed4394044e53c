#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Virtual machines without any: what the commands refuse, and programs by an agent that runs here.

The machine's QEMU is a process that has its file open; what it does between `smartio run` and the agent, a thread does.
tests/vm/machines.py has real ones.
"""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import base

AGENT = os.environ["SMARTIO_AGENT"]
FILE = """cluster: m
hosts:
  v: { kind: machine, adapters: [{ to: w }] }
  w: { kind: machine, window: mapped, ram: 256M, adapters: [{ to: v }] }
  e: { ram: 16M }
"""
# Ends when its input does, with what it was sent.
TRAP = "trap 'echo usr1' USR1; trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.1; done"


def pump(source, sink):
    """One direction of a connection."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        try:
            end.shutdown(how)
        except OSError:
            pass


class Bridge:
    """A UNIX socket whose connections go on to a TCP port, until it is closed."""

    def __init__(self, path, port):
        self.port = port
        self.ends = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            other = socket.create_connection(("127.0.0.1", self.port))
            self.ends += [one, other]
            for pair in ((one, other), (other, one)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    def cut(self):
        """As if QEMU were killed."""
        for end in (self.listener, *self.ends):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self.thread.join()


def agents(mark):
    """Processes of an agent that was started with this in its environment: {pid: words}."""
    return dict(base.processes_with("SMARTIO_AGENT_TEST", mark))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Machine(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.env["SMARTIO_VM_CACHE"] = os.path.join(self.dir, "cache")
        self.smartio("cluster", "up", self.file("m.yaml", FILE))
        self.state = os.path.join(self.base, "m")

    def fake(self, node):
        """A process that passes for the machine's QEMU."""
        child = subprocess.Popen(["bash", "-c", f"exec 9>{self.state}/machine.{node}.pid; echo $$ >&9; echo up; "
                                  "exec sleep 1000"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), "up\n")
        return child

    def states(self):
        return {m["name"]: m["state"] for m in self.json("machine", "list")["machines"]}

    def test_refused(self):
        drive = self.file("drive", "x" * 100)
        for args, status, say in [
                (("start", "v"), 1, ("not fetched yet", "machine fetch")),
                (("start", "v", "--kernel", "6.12"), 1, ("not fetched yet", "machine fetch --kernel 6.12")),
                (("start", "v", "--kernel", "5.10"), 2, "6.1 or 6.12 is right"),
                (("start", "e"), 1, "no host of kind machine 'e'; it has v, w"),
                (("start", "v", "--memory", "12"), 2, "256M to 64G"),
                (("start", "v", "--memory", "128M"), 2, "256M to 64G"),
                (("start", "w", "--memory", "512M"), 2, "'ram' of the topology file"),
                (("start", "w", "--iommu", "amd"), 2, "past an IOMMU; 'window: exact' is right"),
                (("start", "v", "--iommu", "arm"), 2, "none, intel or amd is right"),
                (("start", "v", "--drive", "nowhere"), 1, ("nowhere", "truncate")),
                (("start", "v", "--drive", self.dir), 1, "neither a file nor a block device"),
                (("start", "v", "--drive", drive), 1, "100 bytes; 1M or more"),
                (("start",), 2, "NODE is missing"),
                (("console", "v"), 1, ("does not run", "machine start v")),
                (("stop", "v"), 1, "machine 'v' is off"),
                (("list", "x"), 2, "one word too many")]:
            with self.subTest(args):
                self.fails("machine", *args, status=status, say=say)
        self.fails("run", "-n", "v", "--", "true", say=("machine 'v' is off", "machine start v"))
        self.fails("run", "-n", "x", "--", "true", say="no host 'x'; it has e, v, w")
        said = self.smartio("machine", "fetch", "--dry-run")
        self.assertIn("QEMU with a vfio-user client", said.stderr)
        self.assertFalse(self.json("machine", "fetch", "--dry-run", "--kernel", "6.12")["fetched"])
        self.smartio("cluster", "down")
        self.fails("machine", "list", say="no cluster is running")

    def test_clusters_that_it_does_not_run(self):
        self.smartio("cluster", "down")
        adapter = "adapters: [{ to: s, window: 64M, entries: 256 }]"
        two = "".join(f"  m{i}: {{ kind: machine, {adapter} }}\n" for i in range(2))

        def addressed(ip):
            return two.replace("kind", f"address: {ip}:7470, kind", 1).replace(
                "m1: { kind", "m1: { address: 192.0.2.2:7470, kind")
        there = addressed("192.0.2.1").replace("to: s", "to: s, pci: 0000:00:10.0")
        for hosts, say in [
                ("".join(f"  m{i}: {{ kind: machine, {adapter} }}\n" for i in range(12)), "12 machines; "
                 "'smartio machine' runs those of a cluster with 11 at most"),
                (two + "access: { rules: [{ segments: all, nodes: all }] }\n", "rules or quotas"),
                (two + "quotas: { program: { borrows: 1 } }\n", "rules or quotas"),
                (addressed("192.0.2.1"), "'pci' left out, by which the machine finds it; 'pci: 0000:00:10.0' is right"),
                (addressed("192.0.2.1").replace("to: s", "to: s, pci: 0000:00:11.0"), "'pci' 0000:00:11.0"),
                (addressed("10.0.2.15"), "not in 127.0.0.0/8 nor in 10.0.2.0/24"),
                (addressed("127.0.0.2"), "not in 127.0.0.0/8 nor in 10.0.2.0/24"),
                (addressed('"[2001:db8::1]').replace(":7470,", ':7470",', 1), "2001:db8::1; an IPv4 address"),
                (there + "  e: { address: 127.0.0.1:7471 }\n", "lower 'node' for 'e'"),
                ("  e: { address: 127.0.0.2:7471 }\n" + there, "QEMU's network does not lead"),
                ("  e: { address: 127.0.0.1:7471 }\n" + there + "quotas: { program: { borrows: 1 } }\n", "not fetched yet")]:
            with self.subTest(say):
                self.smartio("cluster", "up", self.file("o.yaml", f"cluster: o\nswitches: [s]\nhosts:\n{hosts}"))
                self.fails("machine", "start", "m0", say=say)
                self.smartio("cluster", "down")

    def test_states(self):
        self.assertEqual(self.states(), {"v": "off", "w": "off"})
        child = self.fake(8)
        name = "w"
        self.assertEqual(self.states(), {"v": "off", "w": "running"})
        self.fails("machine", "start", name, say="running already")
        child.kill()
        child.wait()
        self.assertEqual(self.states()[name], "killed")
        status, = self.json("cluster", "status")["clusters"]
        self.assertEqual((status["state"], {m["name"]: m["state"] for m in status["machines"]}),
                         ("machine killed", self.states()))
        self.assertIn(f"machine {name} was killed", self.smartio("cluster", "status").stdout)
        found = [f for f in self.document(self.smartio("doctor", "--json", status=None).stdout)["findings"]
                 if f["state"] == "machine-killed"]
        self.assertEqual(len(found), 1)
        self.assertIn(f"machine start {name}", found[0]["mend"])
        self.fails("run", "-n", name, "--", "true", say=f"machine '{name}' was killed")
        self.assertEqual(self.json("machine", "stop", name)["was"], "killed")
        self.assertEqual(self.states()[name], "off")

    def test_down(self):
        """`cluster down` ends machines, too."""
        child = self.fake(4)
        self.assertGreaterEqual(self.json("cluster", "down")["ended"], 3)
        self.assertEqual(child.wait(60), -signal.SIGTERM)


class Programs(Machine):
    """An agent here, and what leads to it."""

    test_refused = test_states = test_down = None

    def setUp(self):
        super().setUp()
        self.fake(4)
        port = free_port()
        self.mark = f"agent-{os.getpid()}-{port}"
        done = subprocess.run([AGENT, "lo", "127.0.0.1", str(port)], capture_output=True, text=True,
                              env={**os.environ, "SMARTIO_AGENT_TEST": self.mark}, cwd=self.dir)
        if "Operation not permitted" in done.stderr:
            self.skipTest(f"no socket may be bound to an interface here: {done.stderr}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.end_agent)
        self.bridge = Bridge(os.path.join(self.state, "machine.4.run"), port)
        self.addCleanup(self.bridge.cut)

    def end_agent(self):
        for pid in agents(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            base.wait_gone(pid)

    def programs(self):
        """What the agent has started."""
        return {pid: words for pid, words in agents(self.mark).items() if "smartio-agent" not in words}

    def run_on(self, *command, **more):
        return self.smartio("run", "-n", "v", "--", *command, **more)

    def until_nothing_runs(self):
        """Nor what one of them has started at its end."""
        while running := self.programs():
            for pid in running:
                base.wait_gone(pid)

    def test_as_without(self):
        self.assertEqual(self.run_on("cat", input="some words").stdout, "some words")
        done = self.run_on("sh", "-c", "echo out; echo err >&2; exit 42", status=42)
        self.assertEqual((done.stdout, done.stderr), ("out\n", "err\n"))
        self.assertEqual(self.run_on("sh", "-c", 'printf "%s|" "$@"', "a b", "", "c d").stdout, "|c d|")
        self.run_on("sh", "-c", "kill -TERM $$", status=128 + signal.SIGTERM)
        done = self.run_on("/no/such", status=127)
        self.assertIn("'/no/such' cannot be run on machine 'v': No such file", done.stderr)
        self.assertIn("Permission denied", self.run_on("/etc/passwd", status=126).stderr)
        # What it leaves running does not hold the command up.
        self.run_on("sh", "-c", "sleep 1000 & exit 3", status=3)

    def test_much(self):
        """More than any buffer holds, both ways at once; and input that nobody reads."""
        data = os.urandom(1 << 20).hex()
        self.assertEqual(self.run_on("cat", input=data).stdout, data)
        self.assertEqual(self.run_on("sh", "-c", "exec <&-; exit 4", input=data, status=4).stdout, "")
        done = self.run_on("sh", "-c", "head -c 300000 /dev/zero | tee /dev/stderr")
        self.assertEqual((len(done.stdout), len(done.stderr)), (300000, 300000))

    def test_signals(self):
        child = self.start("run", "-n", "v", "--", "sh", "-c", TRAP)
        self.assertEqual(child.stdout.readline(), "ready\n")
        child.send_signal(signal.SIGUSR1)
        self.assertEqual(child.stdout.readline(), "usr1\n")
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.stdout.readline(), "term\n")
        self.assertEqual(child.wait(60), 5)

    def test_signal_while_nobody_reads(self):
        """Neither a full pipe of ours nor one of the program's holds a signal up."""
        child = self.start("run", "-n", "v", "--", "yes")
        self.assertEqual(child.stdout.readline(), "y\n")
        child.send_signal(signal.SIGTERM)
        self.until_nothing_runs()
        child.stdout.read()
        self.assertEqual(child.wait(60), 128 + signal.SIGTERM)

    def test_killed(self):
        """The command is killed: so is all that it started."""
        child = self.start("run", "-n", "v", "--", "sh", "-c", "setsid sleep 1234 & echo ready; sleep 1234")
        self.assertEqual(child.stdout.readline(), "ready\n")
        child.kill()
        child.wait()
        self.until_nothing_runs()

    def test_output_is_closed(self):
        child = self.start("run", "-n", "v", "--", "sh", "-c", "while echo x; do :; done; sleep 1000")
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.wait(60), 128 + signal.SIGPIPE)

    def test_machine_dies(self):
        child = self.start("run", "-n", "v", "--", "sh", "-c", "echo ready; sleep 1000")
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.bridge.cut()
        self.assertIn("machine v crashed", child.stderr.read())
        self.assertEqual(child.wait(60), 137)

    def test_detached(self):
        data = self.json_of_run("sh", "-c", "echo out; echo err >&2; cat; exit 6")
        self.until_line(data["log"], "ended with exit status 6")
        with open(data["log"], encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual(sorted(lines[:2]), ["err", "out"])
        self.assertEqual(len(lines), 3)
        self.assertIn("cannot be run", self.smartio("run", "-n", "v", "-d", "--", "/no/such", status=1).stderr)

    def json_of_run(self, *command):
        return self.document(self.smartio("run", "-n", "v", "-d", "--json", "--", *command).stdout)

    def until_line(self, path, words):
        """The log's writer ends with that line."""
        for pid, _ in base.processes_with("XDG_RUNTIME_DIR", self.dir):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if b"run\0-n\0v\0-d" in f.read():
                    base.wait_gone(pid)
        with open(path, encoding="utf-8") as f:
            self.assertIn(words, f.read())


class Agent(base.CommandTest):
    def test_usage(self):
        done = subprocess.run([AGENT], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, "usage: smartio-agent INTERFACE ADDRESS PORT\n"))


if __name__ == "__main__":
    if not os.path.exists(AGENT):
        sys.exit(f"{AGENT} is not built")
    base.main()
