#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A sleeping drive is woken by the store that rings its doorbell, in each of the three ways.

usage: wake_test.py BUILD

That the drive slept is no matter of time but of the room's counters: it went to sleep (and took no
naps), and its wakes of the right kind have grown.
"""
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD = None
PIDFD_GETFD = 438  # pidfd_getfd(2), the same on every architecture
UFFD_MSG = 32  # bytes of one message of a userfaultfd
LIMIT = 60  # seconds that no test comes near
WAKES = {"fault": "wakes_by_fault", "eventfd": "wakes_by_event"}


class Wake(unittest.TestCase):
    def setUp(self):
        self.c = Cluster(BUILD)
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        self.program = os.path.join(BUILD, "tests", "system", "wake")

    def need_faults(self):
        found = json.loads(self.c.smartio("doctor", "--json", check=False))["data"]["findings"]
        faults = next(f for f in found if f["state"] == "no-faults")
        if faults["verdict"] != "ok":
            self.skipTest(faults["evidence"])

    def open(self, node, way, *args):
        """A client (or "manager") that wakes the drive in this way; it is open."""
        env = dict(os.environ, SMARTIO_WAKE=way)
        if node == "manager":
            child = self.c.start(node, self.c.nvme, "manager", "nvme0", env=env)
            self.assertIn("ready", child.stdout.readline())
        else:
            child = self.c.start(node, self.program, "nvme0", *args, env=env,
                                 stdin=subprocess.PIPE)
            line = child.stdout.readline()
            self.assertEqual(line, "open\n", line or child.stderr.read())
        return child

    def ask(self, child):
        child.stdin.write("\n")
        child.stdin.flush()

    def read(self, child):
        """One read of the client: its nanoseconds."""
        self.ask(child)
        line = child.stdout.readline()
        self.assertRegex(line, r"^\d+$", child.stderr.read() if not line else "")
        return int(line)

    def room(self):
        """Naps and sleeps of the machine room."""
        stats = json.loads(self.c.smartio("stats", "--json", "-n", "lender"))["data"]
        host = stats["hosts"][0]["counters"]
        return int(host["room_naps"], 16), int(host["room_sleeps"], 16)

    def asleep(self):
        """Wait until the room sleeps, and no longer naps."""
        for _ in range(200):
            naps, sleeps = self.room()
            for _ in range(20):
                naps_now, sleeps_now = self.room()
                if sleeps_now >= sleeps + 3:
                    break
            if naps_now == naps and sleeps_now >= sleeps + 3:
                return
        self.fail(f"the room does not sleep: {naps_now} naps, {sleeps_now} sleeps")

    def waking(self):
        """What doctor tells of this, without process numbers."""
        found = json.loads(self.c.smartio("doctor", "--json", check=False))["data"]["findings"]
        told = [f["evidence"] for f in found if f["state"] == "waking" and f["verdict"] == "note"]
        return sorted({t.split(":")[0] + " " + t.split("wakes nvme0 ")[1] for t in told})

    def wakes(self, way):
        return self.c.counters()[WAKES[way]]

    def state(self, pid):
        """One letter, as ps has it."""
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0]

    def read_asleep(self, child, way):
        """A read whose store found the room asleep: it was woken in this way.

        The question for the counter wakes the room, too, and its backstop does from time to time. On
        a busy machine the store may come while it still looks; then it is tried again. A drive that
        cannot be woken fails each time.
        """
        room = self.c.daemon_pid(None)
        for _ in range(50):
            self.asleep()
            woken = self.wakes(way)
            while self.state(room) == "R":
                os.sched_yield()
            self.read(child)
            if self.wakes(way) > woken:
                return
        self.fail(f"{WAKES[way]} stays at {woken}")

    def in_one_way(self, way, told):
        self.open("manager", way)
        before = self.c.audit()
        clients = [self.open(n, way) for n in ("client1", "client2", "lender")]
        self.assertEqual(self.waking(),
                         [f"{n} {told}" for n in ("client1", "client2", "lender", "manager")])
        for child in clients * 2:
            self.read_asleep(child, way)
        for child in clients:
            child.kill()
            self.c.end(child)
        self.c.audit_until(before)

    def test_by_fault(self):
        self.need_faults()
        self.in_one_way("fault", "by a page fault")

    def test_by_eventfd(self):
        self.in_one_way("eventfd", "by an event descriptor")

    def test_by_timer(self):
        self.open("manager", "timer")
        child = self.open("client1", "timer")
        self.assertEqual({w.split(" ", 1)[1].split(":")[0] for w in self.waking()}, {"not"})
        naps, _ = self.room()
        for _ in range(3):
            self.read(child)
        while self.room()[0] == naps:
            pass
        counters = self.c.counters()
        self.assertEqual((counters["wakes_by_fault"], counters["wakes_by_event"]), (0, 0))

    def test_each_for_itself(self):
        """One client that wakes nobody keeps the room napping; the others wake it all the same."""
        self.need_faults()
        self.open("manager", "fault")
        one = self.open("client1", "fault")
        self.asleep()
        other = self.open("client2", "timer")
        naps, _ = self.room()
        while self.room()[0] < naps + 3:
            pass
        woken = self.wakes("fault")
        for _ in range(200):
            self.read(one)
            self.read(other)
            if self.wakes("fault") > woken:
                break
        self.assertGreater(self.wakes("fault"), woken)
        other.kill()
        self.c.end(other)
        self.asleep()

    def test_a_wrong_word(self):
        self.open("manager", "")
        env = dict(os.environ, SMARTIO_WAKE="bell")
        code, _, err = self.c.end(self.c.start("client1", self.program, "nvme0", env=env,
                                               stdin=subprocess.DEVNULL))
        self.assertEqual(code, 1)
        self.assertIn("SMARTIO_WAKE: fault, eventfd or timer", err)

    def test_many_clients(self):
        self.need_faults()
        self.c.manager()
        clients = [self.open(("client1", "client2", "client3", "lender")[i % 4], "fault")
                   for i in range(20)]
        self.asleep()
        for child in clients:
            self.ask(child)  # all at once, while nobody has been answered yet
        for child in clients:
            self.assertRegex(child.stdout.readline(), r"^\d+$")
        for child in clients[:4]:
            self.read_asleep(child, "fault")
        for child in clients:
            self.read(child)

    def test_a_fork(self):
        """A child has copies of the mappings, which are not watched; its parent's are."""
        self.need_faults()
        self.c.manager()
        before = self.c.audit()
        child = self.open("client1", "fault", "fork")
        for _ in range(3):
            self.read_asleep(child, "fault")
        child.kill()
        self.c.end(child)
        self.c.audit_until(before)

    def blocked(self, child):
        """A client that waits in a fault: the room is stopped, asleep, when the store comes."""
        self.asleep()
        pid = self.c.daemon_pid(None)
        mine = self.program_of(child)
        while self.state(mine) == "R":  # it has answered, and is about to wait for the next word
            os.sched_yield()
        waiting = self.spent(mine)
        os.kill(pid, signal.SIGSTOP)
        self.ask(child)
        # It has run, and waits again: in the fault, for it has said nothing.
        while self.spent(mine) == waiting or self.state(mine) == "R":
            os.sched_yield()
        return pid, mine

    def program_of(self, child):
        """The process of the client itself: the one that has the queue's doorbells mapped."""
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{name}/exe") == self.program:
                    return int(name)
            except OSError:
                continue
        raise AssertionError("the client does not run")

    @staticmethod
    def spent(pid):
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
            return f.read()

    def take_faults(self, room):
        """Reads the faults that wait for the room, which is never notified of them: how many."""
        process, faults = os.pidfd_open(room), 0
        for fd in os.listdir(f"/proc/{room}/fd"):
            if os.readlink(f"/proc/{room}/fd/{fd}") != "anon_inode:[userfaultfd]":
                continue
            ours = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, process, int(fd), 0)
            if ours < 0:
                os.kill(room, signal.SIGCONT)
                self.skipTest(f"descriptors of the room: {os.strerror(ctypes.get_errno())}")
            try:
                faults += len(os.read(ours, UFFD_MSG)) // UFFD_MSG
            except BlockingIOError:
                pass
            os.close(ours)
        os.close(process)
        return faults

    def test_a_fault_without_an_event(self):
        """The store goes on all the same, with the room's next look."""
        self.need_faults()
        self.c.manager()
        child = self.open("client1", "fault")
        for _ in range(8):  # a room that was about to wake when it was stopped finds the store
            room, _ = self.blocked(child)
            faults = self.take_faults(room)
            os.kill(room, signal.SIGCONT)
            self.assertEqual(faults, 1)
            ready, _, _ = select.select([child.stdout], [], [], LIMIT)
            self.assertTrue(ready, "the store waits for ever")
            self.assertRegex(child.stdout.readline(), r"^\d+$")

    def test_killed_in_a_fault(self):
        self.need_faults()
        self.c.manager()
        before = self.c.audit()
        child = self.open("client1", "fault")
        room, program = self.blocked(child)
        os.kill(program, signal.SIGKILL)
        code, _, _ = self.c.end(child)
        os.kill(room, signal.SIGCONT)
        self.assertEqual(code, 137)
        self.c.audit_until(before)
        self.read(self.open("client1", "fault"))

    def test_the_room_dies_under_a_fault(self):
        self.need_faults()
        self.c.manager()
        child = self.open("client1", "fault")
        room, _ = self.blocked(child)
        os.kill(room, signal.SIGKILL)
        code, _, _ = self.c.end(child)  # it ends: an error, or with its host
        self.assertNotEqual(code, 0)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
