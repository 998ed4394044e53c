#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input on a live cluster: the API's error or one line, exit status 1 (2 for usage), no loss.

usage: badinput_test.py BUILD

What must be refused is asked as a user types it (smartio, smartio-nvme) and as a program calls it
(badinput.c, which checks codes and texts). After each case the audit finds what it found before.
"""
import os
import resource
import select
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD = None
CLIENT_NODE = 12  # of client1: ids are multiples of 4, in the file's order

TOPOLOGY = """\
cluster: bad
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    devices:
      nvme0: {type: nvme, size: 64M, block: 512, queue_pairs: 31}
  manager: {ram: 64M}
  client1: {ram: 64M}
  client2: {ram: 64M}
"""


def limit_files(n):
    """For a child: so many descriptors, and no way to more."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


class BadInput(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.c = Cluster(BUILD, TOPOLOGY)
        self.up()
        self.addCleanup(self.c.__exit__)
        self.helper = os.path.join(BUILD, "tests", "system", "badinput")
        self.hold = os.path.join(BUILD, "tests", "system", "hold")
        self.before = self.c.audit()

    def up(self):
        self.c.__enter__()

    # ---- ways to ask ----

    def refused(self, child, say, status=1, lines=1):
        """A child of the cluster: nothing on stdout, one line on stderr that holds all of @say."""
        code, out, err = self.c.end(child)
        self.assertEqual((code, out), (status, ""), f"{child.what}: {err}")
        self.assertEqual(len(err.splitlines()), lines, f"{child.what}: {err}")
        for text in say:
            self.assertIn(text, err.splitlines()[0])

    def smartio_refuses(self, *args, say, status=1):
        child = subprocess.Popen([self.c.smartio_path, "--state", self.c.state, *args],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.what = f"smartio {' '.join(args)}"
        self.c.children.append(child)
        self.refused(child, ["smartio: ", *say], status, 1 if status == 1 else 2)

    def nvme_refuses(self, *args, say, status=1, node="client1"):
        child = self.c.start(node, self.c.nvme, *args)
        self.refused(child, ["smartio-nvme: ", *say], status)

    def calls(self, *args, node="client1", log="", **more):
        """Cases of badinput.c, on a host, to the end."""
        self.good(self.c.start(node, self.helper, *args, **more), log)

    def good(self, child, log=""):
        """It ends well; on stderr is nothing but lines like @log, of the library."""
        code, _, err = self.c.end(child)
        err = [line for line in err.splitlines() if line != log]
        self.assertEqual((code, err), (0, []), child.what)

    def by_itself(self, *command, node=CLIENT_NODE):
        """A program with the host's socket, but not tied to the host: it survives a crash."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("SMARTIO_")}
        env["SMARTIO_SOCKET"] = os.path.join(self.c.state, f"node.{node}")
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=env)
        child.what = " ".join(command)
        self.c.children.append(child)
        return child

    def says(self, child, word):
        line = child.stdout.readline()
        self.assertIn(word, line, f"{child.what}: {child.stderr.read() if not line else line}")
        return line

    def tell(self, child):
        child.stdin.write("go\n")
        child.stdin.flush()

    def nothing_lost(self):
        self.c.audit_until(self.before)

    # ---- as a user types it ----

    def test_topology(self):
        """Beside a running cluster, which does not notice."""
        def written(old, new):
            path = os.path.join(self.c.dir, "wrong.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(TOPOLOGY.replace(old, new, 1))
            return path

        self.assertNotEqual(self.before, "")
        beside = os.path.join(self.c.dir, "beside")
        none = os.path.join(self.c.dir, "none.yaml")
        for what, make, say in [
                ("none", lambda: none, [none, "No such file"]),
                ("a folder", lambda: self.c.dir, [self.c.dir, "Is a directory"]),
                ("empty", lambda: written(TOPOLOGY, ""), ["wrong.yaml"]),
                ("no YAML", lambda: written("{ram: 64M}", "{ram: 64M"), ["wrong.yaml:"]),
                ("size", lambda: written("64M", "64Mb"), ["wrong.yaml:5", "ram", "64Mb"]),
                ("width", lambda: written("iommu: on", "iommu: on\n    adapters: [{window: 4x}]"),
                 ["wrong.yaml:7", "4x"]),
                ("key", lambda: written("iommu", "iomu"), ["wrong.yaml:6", "iomu", "iommu"]),
                ("device", lambda: written("type: nvme", "type: nvm"), ["wrong.yaml:8", "nvm"]),
                ("block", lambda: written("block: 512", "block: 513"), ["wrong.yaml:8", "513"]),
                ("node id", lambda: written("manager: {", "manager: {node: 6, "),
                 ["wrong.yaml:9", "6", "multiple of 4"])]:
            with self.subTest(what=what):
                path = make()
                self.smartio_refuses("cluster", "validate", path, say=say)
                self.smartio_refuses("--state", beside, "cluster", "up", path, say=say)
                self.assertFalse(os.path.exists(beside))
        self.smartio_refuses("cluster", "up", self.c.file, say=["running already"])
        self.nothing_lost()

    def test_long_state_path(self):
        long = os.path.join(self.c.dir, "x" * 100)
        self.smartio_refuses("--state", long, "cluster", "up", self.c.file,
                             say=[long, "107", "--state"])
        self.assertFalse(os.path.exists(long))
        self.nothing_lost()

    def test_names_that_are_none(self):
        self.smartio_refuses("run", "-n", "moon", "--", "true", say=["moon", "client1"])
        self.smartio_refuses("run", "-n", "4000", "--", "true", say=["4000"])
        self.smartio_refuses("cluster", "restart-node", "moon", say=["moon", "client1"])
        self.smartio_refuses("device", "info", "nvme7", say=["nvme7"])
        self.smartio_refuses("device", "info", "0x999", say=["0x999"])
        self.c.manager()
        with_manager = self.c.audit()
        for name in ("nvme7", "0x999", "99999999999999999999"):
            for command in ("identify", "manager", "bench"):
                self.nvme_refuses(command, name, say=[name])
        self.c.audit_until(with_manager)

    def test_usage(self):
        self.smartio_refuses("run", "-n", "client1", say=["the command is missing"], status=2)
        self.smartio_refuses("cluster", "up", say=["TOPOLOGY"], status=2)
        self.smartio_refuses("fly", say=["fly"], status=2)
        self.nvme_refuses("fly", "nvme0", say=["fly"], status=2)
        self.nvme_refuses("identify", say=["DEVICE"], status=2)
        self.nvme_refuses("bench", "nvme0", "--depth", "0", say=["--depth 0", "1 to"], status=2)
        self.nvme_refuses("read", "nvme0", "--length", "4x", say=["4x"], status=2)
        self.nothing_lost()

    def test_managers(self):
        """None: clients are told so. Two: the second is. Exclusively borrowed: both are."""
        for command in (["identify"], ["bench"], ["read", "--length", "512"]):
            self.nvme_refuses(command[0], "nvme0", "--wait=0", *command[1:],
                              say=["nvme0", "manager"])
        self.nothing_lost()
        manager = self.c.manager()
        with_manager = self.c.audit()
        for node in ("manager", "lender", "client1"):
            self.nvme_refuses("manager", "nvme0", say=["nvme0", "manager"], node=node)
        self.c.audit_until(with_manager)
        self.assertIn("nvme0", self.c.run("client1", self.c.nvme, "identify", "nvme0"))
        manager.send_signal(signal.SIGTERM)
        self.good(manager)
        self.nothing_lost()

    def test_device_in_use(self):
        owner = self.c.start("client2", self.helper, "exclusive", "nvme0", stdin=subprocess.PIPE)
        self.says(owner, "held")
        held = self.c.audit()
        self.nvme_refuses("manager", "nvme0", say=["nvme0", "exclusive"])
        self.nvme_refuses("identify", "nvme0", "--wait=0", say=["nvme0", "exclusive"])
        self.c.audit_until(held)
        other = self.c.start("client1", self.helper, "in-use", "nvme0", stdin=subprocess.PIPE)
        self.says(other, "refused")
        self.tell(owner)
        self.good(owner)
        self.tell(other)
        self.good(other)
        self.nothing_lost()

    def test_past_the_namespace(self):
        self.c.manager()
        with_manager = self.c.audit()
        mib = os.path.join(self.c.dir, "mib")
        with open(mib, "wb") as f:
            f.write(os.urandom(1 << 20))
        writes = self.c.counters()["commands_write"]
        for where, say in (("64M", "67108864"), ("67108352", "there is room for 512"),
                           ("100G", "67108864"), ("18446744073709551104", "67108864")):
            self.nvme_refuses("copy-in", "nvme0", mib, "--offset", where, say=[say])
        self.nvme_refuses("read", "nvme0", "--length", "65M", say=["67108864"])
        self.nvme_refuses("bench", "nvme0", "--offset", "64M", say=["67108864"])
        self.nvme_refuses("read", "nvme0", "-n", "2", "-l", "512", say=["namespace 2"])
        self.assertEqual(self.c.counters()["commands_write"], writes, "something was written")
        self.calls("namespace", "nvme0")
        # One write of the helper's was in range.
        self.assertEqual(self.c.counters()["commands_write"], writes + 1)
        self.assertEqual(self.c.counters()["fatal"], 0)
        self.c.audit_until(with_manager)

    def test_32nd_queue_pair(self):
        self.c.manager()
        with_manager = self.c.audit()
        self.refused(self.c.start("client1", self.hold, "nvme0", "32", stdin=subprocess.DEVNULL),
                     ["hold: 31 of 32 queue pairs", "nvme0", "31"])
        self.c.audit_until(with_manager)
        # The same when others have them, on whatever host.
        some = self.c.start("client1", self.hold, "nvme0", "16", stdin=subprocess.PIPE)
        rest = self.c.start("lender", self.hold, "nvme0", "15", stdin=subprocess.PIPE)
        self.says(some, "open 16")
        self.says(rest, "open 15")
        self.nvme_refuses("bench", "nvme0", say=["nvme0", "31", "queue pair"], node="client2")
        self.good(some)
        self.c.run("client2", self.c.nvme, "bench", "nvme0", "--count", "10")
        self.good(rest)
        self.c.audit_until(with_manager)

    # ---- as a program calls it ----

    def test_segments(self):
        self.calls("segments")
        self.nothing_lost()

    def test_nodes(self):
        self.calls("nodes", "4")
        self.nothing_lost()

    def test_wrong_devices(self):
        self.calls("devices", "nvme0")
        self.calls("devices", "nvme0", node="lender")
        self.nothing_lost()

    def test_no_smartiod(self):
        self.good(self.by_itself(self.helper, "nobody"))
        self.nothing_lost()

    # ---- descriptors ----

    def test_program_without_descriptors(self):
        lost = "libsmartio: a sender's ring cannot be mapped: the sender is cut off"
        for limit in ("64", "1024"):
            self.calls("files", limit, log=lost)
            self.nothing_lost()

    def test_tools_without_descriptors(self):
        """As after `ulimit -n`: each number gives success, or one line."""
        self.c.manager()
        with_manager = self.c.audit()
        worked = set()
        for limit in range(4, 40):
            child = self.by_itself("sh", "-c", f'ulimit -n {limit}; exec "$0" bench nvme0 -c 10',
                                   self.c.nvme)
            code, _, err = self.c.end(child)
            self.assertIn(code, (0, 1), f"{limit}: {err}")
            self.assertEqual(len(err.splitlines()), 0 if code == 0 else 1, f"{limit}: {err}")
            if code == 1:
                self.assertRegex(err, "descriptor|Too many open files", str(limit))
            worked.add(code)
        self.assertEqual(worked, {0, 1})
        self.c.audit_until(with_manager)

    def test_program_with_many_descriptors(self):
        self.calls("many-files", "1100")
        self.nothing_lost()

    def test_too_many_objects(self):
        self.calls("fill-daemon", "4096", stdin=subprocess.DEVNULL)
        self.nothing_lost()

    def test_many_clients(self):
        child = self.c.start("client1", self.helper, "clients", "1100", stdin=subprocess.PIPE)
        self.says(child, "clients 1100")
        many = self.c.audit()
        self.assertNotEqual(many, self.before)
        # smartiod has more than 1,024 connections, and serves the next as any other.
        sockets = len(os.listdir(f"/proc/{self.c.daemon_pid('client1')}/fd"))
        self.assertGreater(sockets, 1100)
        self.calls("segments")
        self.calls("devices", "nvme0")
        self.c.manager("client1")
        self.c.run("client1", self.c.nvme, "bench", "nvme0", "--count", "10")
        self.tell(child)
        self.good(child)

    def test_many_clients_killed(self):
        child = self.c.start("client1", self.helper, "clients", "1100", stdin=subprocess.PIPE)
        self.says(child, "clients 1100")
        child.kill()
        self.c.end(child)
        self.nothing_lost()
        self.calls("segments")

    # ---- smartiod gone ----

    def crash(self, pid=None):
        """Kill client1's smartiod, and know that it has ended."""
        pid = pid or self.c.daemon_pid("client1")
        fd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(select.select([fd], [], [], 20)[0], "smartiod did not end")
        os.close(fd)

    @staticmethod
    def sleeps_in(child, but_not=None):
        """The number of the system call that its first thread waits in."""
        while child.poll() is None:
            with open(f"/proc/{child.pid}/syscall", encoding="ascii") as f:
                number = f.read().split()[0]
            if number not in ("running", but_not):
                return number
        raise AssertionError(f"{child.what}: {child.stderr.read()}")

    def host_comes_back(self, child):
        self.says(child, "gone")
        self.c.smartio("cluster", "restart-node", "client1")
        self.tell(child)
        self.good(child)

    def test_gone_while_waiting(self):
        child = self.by_itself(self.helper, "gone-waiting", "nvme0")
        self.says(child, "waiting")
        self.crash()
        self.host_comes_back(child)
        self.nothing_lost()

    def test_gone_while_asked(self):
        child = self.by_itself(self.helper, "gone-asking", "nvme0")
        self.says(child, "ready")
        reading = self.sleeps_in(child)
        pid = self.c.daemon_pid("client1")
        os.kill(pid, signal.SIGSTOP)
        self.tell(child)
        self.sleeps_in(child, but_not=reading)  # it waits for the answer
        self.crash(pid)
        self.host_comes_back(child)
        self.nothing_lost()

    def test_gone_under_io(self):
        self.c.manager()
        with_manager = self.c.audit()
        child = self.by_itself(self.helper, "gone-nvme", "nvme0")
        self.says(child, "reading")
        self.crash()
        self.host_comes_back(child)
        self.c.audit_until(with_manager)

    def test_gone_under_tools(self):
        """A client and a manager, as they are typed."""
        manager = self.by_itself(self.c.nvme, "manager", "nvme0")
        self.says(manager, "ready")
        client = self.by_itself(self.c.nvme, "bench", "nvme0", "--seconds", "100", "--progress")
        client.stderr.readline()
        self.crash()
        code, _, err = self.c.end(client)
        self.assertEqual(code, 1)
        last = err.splitlines()[-1]
        self.assertIn("smartio-nvme: ", last)
        self.assertIn("nvme0", last)
        self.refused(manager, ["smartio-nvme: ", "nvme0"])
        self.refused(self.by_itself(self.c.nvme, "identify", "nvme0"),
                     ["smartio-nvme: ", "smartiod"])
        self.smartio_refuses("run", "-n", "client1", "--", "true",
                             say=["client1", "down", "restart-node"])
        self.c.smartio("cluster", "restart-node", "client1")
        # What the drive may still reach of the dead waits for a manager, whose reset settles it.
        manager = self.c.manager()
        manager.send_signal(signal.SIGTERM)
        self.assertEqual(self.c.end(manager)[0], 0)
        self.nothing_lost()


class FewDescriptors(BadInput):
    """The same questions to daemons and a machine room with 1,024 descriptors, and no more."""

    def up(self):
        done = subprocess.run([self.c.smartio_path, "--state", self.c.state, "cluster", "up",
                               self.c.file], capture_output=True, text=True, timeout=60,
                              preexec_fn=limit_files(1024), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_full_host(self):
        """One program takes its host's share of the machine room: the others go on."""
        child = self.c.start("client1", self.helper, "fill-daemon", "descriptor",
                             stdin=subprocess.PIPE)
        self.says(child, "full")
        self.nvme_refuses("manager", "nvme0", say=["descriptor"], node="client1")
        manager = self.c.manager()
        self.c.run("client2", self.c.nvme, "bench", "nvme0", "--count", "10")
        self.tell(child)
        self.good(child)
        self.c.run("client1", self.c.nvme, "bench", "nvme0", "--count", "10")
        manager.send_signal(signal.SIGTERM)
        self.c.finish(manager)
        self.nothing_lost()


def load_tests(loader, _tests, _pattern):
    """Of the second class its own cases only."""
    suite = loader.loadTestsFromTestCase(BadInput)
    for name in loader.getTestCaseNames(FewDescriptors):
        if name not in dir(BadInput):
            suite.addTest(FewDescriptors(name))
    return suite


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
