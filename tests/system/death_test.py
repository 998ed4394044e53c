#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""SIGKILL of clients, of their hosts and of the manager, while another client checks every byte.

usage: death_test.py BUILD

After each death the audit must find what it found before, and the checking client must have seen no
error. SOAK=1 in the environment: every system call, 100 instants, 30 crashes; else a part of them.
"""
import os
import random
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD = None
SOAK = bool(os.environ.get("SOAK"))
SEED = int(os.environ.get("SEED", "1"))


class Death(unittest.TestCase):
    def setUp(self):
        self.c = Cluster(BUILD)
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        self.hold = os.path.join(BUILD, "tests", "system", "hold")
        self.verify = os.path.join(BUILD, "tests", "system", "verify")
        self.random = random.Random(SEED)

    def bystander(self, node="client3"):
        child = self.c.start(node, self.verify, "nvme0", "100000", "1024", stdin=subprocess.PIPE)
        line = child.stdout.readline()
        self.assertIn("running", line, child.stderr.read() if not line else "")
        return child

    def bystander_is_well(self, child):
        self.assertIn("rounds", self.c.finish(child))
        fatal = self.c.counters()
        self.assertEqual(fatal["fatal"], 0, "the drive went to fatal status")

    def all_queue_pairs_can_be_had(self):
        """31 in all, by one client; a 32nd is refused with the reason."""
        code, _, err = self.c.end(self.c.start("client2", self.hold, "nvme0", "32",
                                               stdin=subprocess.DEVNULL))
        self.assertEqual(code, 1)
        self.assertIn("31 of 32 queue pairs", err)
        self.assertIn("31", err.split(":", 2)[2])

    def system_calls(self, *command):
        """Every call that a command makes, as (name, which of that name in its thread)."""
        trace = os.path.join(self.c.dir, "trace")
        self.c.run("client1", "strace", "-f", "-qq", "-o", trace, *command)
        most, seen = {}, {}
        with open(trace, encoding="ascii", errors="replace") as f:
            for line in f:
                m = re.match(r"(\d+)\s+(\w+)\(", line)
                if m:
                    seen[m.groups()] = seen.get(m.groups(), 0) + 1
                    most[m.group(2)] = max(most.get(m.group(2), 0), seen[m.groups()])
        # How often threads meet in a lock or a poller yields is chance: the first few of those.
        for name in ("sched_yield", "futex"):
            most[name] = min(most.get(name, 0), 5)
        return [(name, n) for name, count in most.items() for n in range(1, count + 1)]

    def test_client_at_each_system_call(self):
        """strace counts the calls of one name, so name and number are tried, pair by pair."""
        self.c.manager()
        other = self.bystander()
        command = (self.c.nvme, "bench", "nvme0", "--count", "20", "--depth", "4", "--write",
                   "--length", "1M")
        before = self.c.audit()
        pairs = self.system_calls(*command)
        self.c.audit_until(before)
        self.assertGreater(len(pairs), 100)
        if not SOAK:
            pairs = self.random.sample(pairs, 30)
        deaths = 0
        for name, n in pairs:
            code, _, err = self.c.end(self.c.start(
                "client1", "strace", "-f", "-qq", "-o", "/dev/null", "-e",
                f"inject={name}:signal=KILL:when={n}", *command))
            self.assertIn(code, (0, 137), f"{name} {n}: {err}")
            deaths += code == 137
            self.assertIsNone(other.poll(), "the other client ended")
            with self.subTest(call=name, number=n):
                self.c.audit_until(before)
        print(f"\nkilled at {deaths} of {len(pairs)} system calls")
        self.assertGreater(deaths, len(pairs) / 2)
        self.bystander_is_well(other)
        self.all_queue_pairs_can_be_had()

    def test_client_at_random_instants(self):
        self.c.manager()
        other = self.bystander()
        before = self.c.audit()
        for _ in range(100 if SOAK else 10):
            node = self.random.choice(["client1", "client2", "lender", "manager"])
            victim = self.c.start(node, self.c.nvme, "bench", "nvme0", "--seconds", "60", "--depth",
                                  "16", "--write", "--length", "16M", "--progress")
            victim.stderr.readline()
            # A moment of pure I/O, of another length each time.
            for _ in range(self.random.randrange(20)):
                self.c.counters()
            victim.kill()
            self.c.end(victim)
            self.assertIsNone(other.poll(), "the other client ended")
            self.c.audit_until(before)
        self.bystander_is_well(other)
        self.all_queue_pairs_can_be_had()

    def test_host_crashes(self):
        self.c.manager()
        other = self.bystander()
        before = self.c.audit()
        for _ in range(30 if SOAK else 4):
            victim = self.c.start("client1", self.c.nvme, "bench", "nvme0", "--seconds", "60",
                                  "--depth", "16", "--write", "--length", "16M", "--progress")
            victim.stderr.readline()
            for _ in range(self.random.randrange(10)):
                self.c.counters()
            os.kill(self.c.daemon_pid("client1"), 9)
            code, _, err = self.c.end(victim)
            # Killed with its host, unless it saw the loss first and ended by itself.
            self.assertIn(code, (1, 137), err)
            self.assertIn("host client1 is down" if code == 137 else "nvme0", err)
            self.c.smartio("cluster", "restart-node", "client1")
            self.assertIsNone(other.poll(), "the other client ended")
            self.c.audit_until(before)
        self.bystander_is_well(other)
        self.all_queue_pairs_can_be_had()

    def test_manager_under_load(self):
        manager = self.c.manager()
        before = self.c.audit()
        busy = self.c.start("client1", self.verify, "nvme0", "0", "1024", stdin=subprocess.PIPE)
        self.assertIn("running", busy.stdout.readline())
        manager.kill()
        self.c.end(manager)
        # I/O goes on without a manager ...
        done = self.c.counters()["commands_write"]
        while self.c.counters()["commands_write"] < done + 5000:
            self.assertIsNone(busy.poll(), "the client ended with its manager")
        # ... new clients are told what to do ...
        code, _, err = self.c.end(self.c.start("client2", self.c.nvme, "identify", "nvme0",
                                               "--wait=0"))
        self.assertEqual(code, 1)
        self.assertIn("manager", err)
        self.assertEqual(err.count("\n"), 1, err)
        # ... and a new manager's reset ends the old queue pairs with an error, and no hang.
        self.c.manager("client2")
        code, _, err = self.c.end_by_itself(busy)
        self.assertEqual(code, 1)
        self.assertIn("reset", err)
        again = self.bystander("client1")
        self.c.finish(again)
        self.all_queue_pairs_can_be_had()
        self.assertNotEqual(before, "")

    def test_two_managers(self):
        self.c.manager()
        before = self.c.audit()
        for node in ("manager", "client1"):
            code, _, err = self.c.end(self.c.start(node, self.c.nvme, "manager", "nvme0"))
            self.assertEqual(code, 1)
            self.assertIn("manager", err)
            self.assertEqual(err.count("\n"), 1, err)
        self.c.audit_until(before)

    def test_lender_crashes(self):
        """The drive's own host: clients get an error and no hang; all works again afterwards."""
        before = self.c.audit()
        manager = self.c.manager()
        busy = self.c.start("client1", self.verify, "nvme0", "0", "1024", stdin=subprocess.PIPE)
        self.assertIn("running", busy.stdout.readline())
        os.kill(self.c.daemon_pid("lender"), 9)
        for child in (busy, manager):
            code, _, err = self.c.end_by_itself(child)
            self.assertEqual(code, 1, err)
            self.assertIn("nvme0", err)
        self.c.smartio("cluster", "restart-node", "lender")
        self.c.audit_until(before)
        self.c.manager()
        self.c.finish(self.bystander())

    def test_drive_pulled_out(self):
        """Under I/O of all hosts: all end with an error; it comes back with what was written."""
        written = os.path.join(self.c.dir, "written")
        with open(written, "wb") as f:
            f.write(self.random.randbytes(1 << 20))
        before = self.c.audit()
        for state in ("out", "in"):
            manager = self.c.manager()
            self.c.run("client2", self.c.nvme, "copy-in", "nvme0", written, "--offset", "128M")
            users = [self.c.start(node, self.verify, "nvme0", str(100000 + 2048 * i), "1024",
                                  stdin=subprocess.PIPE)
                     for i, node in enumerate(("lender", "client1", "client3"))]
            for child in users:
                self.assertIn("running", child.stdout.readline())
            self.c.smartio("fault", "device", "nvme0", "out")
            if state == "in":  # before anybody has ended
                self.c.smartio("fault", "device", "nvme0", "in")
            for child in (*users, manager) if state == "out" else users:
                code, _, err = self.c.end_by_itself(child)
                self.assertEqual(code, 1, err)
                self.assertIn("nvme0", err)
            if state == "in":  # a manager that was slow has the drive again, and serves on
                manager.send_signal(signal.SIGTERM)
                self.assertIn(self.c.end_by_itself(manager)[0], (0, 1))
            self.c.smartio("fault", "device", "nvme0", "in")
            self.c.audit_until(before)
            manager = self.c.manager()
            read = self.c.dir + "/read"
            self.c.run("client1", self.c.nvme, "copy-out", "nvme0", read, "--offset", "128M",
                       "--length", "1M")
            with open(read, "rb") as f, open(written, "rb") as g:
                self.assertEqual(f.read(), g.read())
            self.c.finish(self.bystander())
            manager.send_signal(signal.SIGTERM)
            self.c.finish(manager)

    def test_room_is_gone(self):
        """Power cut: everybody ends, down cleans up."""
        self.c.manager()
        busy = self.bystander()
        os.kill(self.c.daemon_pid(None), 9)
        code, _, _ = self.c.end_by_itself(busy)
        self.assertNotEqual(code, 0)
        self.c.smartio("cluster", "down")
        self.assertFalse(os.path.exists(self.c.state))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
