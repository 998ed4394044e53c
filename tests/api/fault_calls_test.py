#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each system call of the library fails once, by strace: no crash, no hang, nothing lost.

usage: fault_calls_test.py BUILD

A scenario per kind of object (fault_objects.c). strace counts the calls of one name, thread by thread,
so name and number are tried, pair by pair. That the library goes on after any failure, for every one, is fault_test.c's.
"""
import os
import re
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from cluster import Cluster  # noqa: E402

BUILD = None
TOPOLOGY = """\
cluster: calls
switches: [sw0]
multicast: MULTICAST
hosts:
  one: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M}}}
  two: {ram: 64M, iommu: on}
"""
# What each of them really can say; others: ENOMEM.
ERRORS = {"socket": "EMFILE", "connect": "ECONNREFUSED", "eventfd2": "EMFILE",
          "openat": "EMFILE", "clone3": "EAGAIN", "clone": "EAGAIN", "read": "EAGAIN",
          "userfaultfd": "EPERM", "ioctl": "EINVAL", "lseek": "EINVAL"}
# They cannot fail (a write to an event descriptor, but when it is readable), or nobody could do anything
# about it; or they are not the library's.
NEVER = {"write", "futex", "close", "munmap", "sched_yield", "exit", "exit_group", "rt_sigprocmask", "getppid",
         "brk", "rseq", "set_robust_list", "clock_nanosleep", "getdents64", "newfstatat", "madvise",
         "getpid", "gettid", "restart_syscall", "sched_getaffinity"}
# Of the connection to smartiod; the program judges what it is told by the kind (fault_judge.c).
REQUESTS = {"connect", "recvmsg"}


class Calls(unittest.TestCase):
    def setUp(self):
        self.program = os.path.join(BUILD, "tests", "api", "fault-calls")
        self.flapping = False

    def start_cluster(self, multicast):
        self.c = Cluster(BUILD, TOPOLOGY.replace("MULTICAST", multicast))
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)

    def pairs(self, scenario, *kind):
        """(name, number) of the system calls between the marks, in whatever thread."""
        trace = os.path.join(self.c.dir, "trace")
        self.c.run("one", "strace", "-f", "-qq", "-o", trace, self.program, scenario, *kind)
        seen, found, marks = {}, set(), 0
        with open(trace, encoding="ascii", errors="replace") as f:
            for line in f:
                m = re.match(r"(\d+)\s+(\w+)\(", line)
                if not m:
                    continue
                seen[m.groups()] = seen.get(m.groups(), 0) + 1
                if m.group(2) == "getppid":
                    marks += 1
                elif marks == 1 and m.group(2) not in NEVER:
                    found.add((m.group(2), seen[m.groups()]))
        # The second round, that nothing is wrong after a failure, makes the same calls.
        self.assertEqual(marks, 4, "the marks")
        # How often threads poll is chance: more of it is no other case.
        return sorted(p for p in found if p[0] not in ("poll", "ppoll") or p[1] <= 20)

    def fails(self, scenario, pair):
        """Whether the call did fail; AssertionError when more went wrong than that."""
        name, number = pair
        if name == "sendmsg":
            # A message is tried four times. Three failures nobody notices; of all from then on each request
            # tells, and the session ends with the program alone.
            link = ["link"] if self.flapping else []
            few = self.fails_so(scenario, name, f"{number}..{number + 2}", "ENOBUFS", *link)
            return self.fails_so(scenario, name, f"{number}+", "ENOMEM", "unsent", *link) and few
        return self.fails_so(scenario, name, str(number), ERRORS.get(name, "ENOMEM"),
                             "request" if name in REQUESTS else "system")

    def fails_so(self, scenario, name, when, error, *kind):
        trace = os.path.join(self.c.dir, "injected")
        code, out, err = self.c.end(self.c.start(
            "one", "strace", "-f", "-qq", "-o", trace, "-e", f"trace={name}", "-e",
            f"inject={name}:error={error}:when={when}", self.program, scenario, *kind), timeout=100)
        if "begun" not in out:  # a thread's number is that of the program's start, in another
            return False
        self.assertEqual(code, 0, f"{scenario}: {name} {when} failing: {err.strip()}")
        with open(trace, encoding="ascii", errors="replace") as f:
            return "(INJECTED)" in f.read()

    def try_all(self, scenario, *kind):
        """How many calls failed, one by one: the scenarios use the same numbers of segments."""
        failed, pairs = 0, self.pairs(scenario, *kind)
        self.assertGreater(len(pairs), 4, scenario)
        for pair in pairs:
            with self.subTest(scenario=scenario, pair=pair):
                failed += self.fails(scenario, pair)
        self.assertGreater(failed, len(pairs) / 2, scenario)
        return failed

    def settle(self):
        """What a borrower had mapped when its connection ended waits for a manager's word."""
        manager = self.c.manager("two")
        manager.terminate()
        self.c.end(manager)

    def scenarios(self, exact):
        listed = subprocess.run([self.program], capture_output=True, text=True)
        return [s for s in listed.stdout.split() if s.endswith("_exact") == exact]

    def fail_all(self, scenarios):
        before, failed = self.c.audit(), 0
        for scenario in scenarios:
            failed += self.try_all(scenario)
            self.settle()
            self.c.audit_until(before)
        print(f"\n{failed} system calls failed, one by one")

    def test_each_call_fails_once(self):
        self.start_cluster("fused")
        scenarios = self.scenarios(exact=False)
        self.assertGreater(len(scenarios), 15)
        self.fail_all(scenarios)

    def test_each_call_fails_once_with_exact_groups(self):
        self.start_cluster("exact")
        scenarios = self.scenarios(exact=True)
        self.assertEqual(len(scenarios), 1)
        self.fail_all(scenarios)

    def flap(self):
        while not self.calm:
            for state in ("down", "up"):
                self.c.smartio("fault", "link", "two.0", state, "--no-wait")

    def test_each_call_fails_once_while_the_link_flaps(self):
        self.start_cluster("fused")
        before = self.c.audit()
        server = self.c.start("two", self.program, "serve", stdin=subprocess.PIPE)
        self.assertIn("serving", server.stdout.readline())
        self.calm, self.flapping = False, True
        flapping = threading.Thread(target=self.flap)
        flapping.start()
        try:
            failed = self.try_all("far", "link")
        finally:
            self.calm = True
            flapping.join()
        self.c.finish(server)
        self.c.audit_until(before)
        print(f"\n{failed} system calls failed while the link flapped")


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
