#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs as they exist for SISCI, each process on a host of its own: they must run as they are.

usage: clients_test.py BUILD
"""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from cluster import Cluster  # noqa: E402

BUILD = None
TOPOLOGY = """\
cluster: clients
switches: [sw0]
hosts:
  one: {ram: 64M}
  two: {ram: 64M, iommu: on}
"""


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster(BUILD, TOPOLOGY)
        cls.c.__enter__()
        cls.addClassCleanup(cls.c.__exit__)

    def setUp(self):
        self.before = self.c.audit()

    def tearDown(self):
        self.c.audit_until(self.before)

    @staticmethod
    def program(name):
        return os.path.join(BUILD, "tests", "clients", "client-" + name)

    def pair(self, name, server="one", client="two", node="4"):
        serving = self.c.start(server, self.program(name), "server")
        self.c.run(client, self.program(name), "client", node)
        self.c.finish(serving)

    def test_a_performance_suite_orders_by_messages(self):
        self.pair("suite")

    def test_the_same_with_both_on_one_host(self):
        self.pair("suite", client="one")

    def test_a_cpp_program_throws_error_codes(self):
        for _ in range(3):
            self.pair("throws", server="two", client="one", node="8")

    def test_a_plugin_of_a_collective_library(self):
        for server, client in (("one", "two"), ("two", "one"), ("two", "two")):
            with tempfile.TemporaryDirectory() as folder:
                handle = os.path.join(folder, "handle")
                os.mkfifo(handle)
                serving = self.c.start(server, self.program("plugin"), "server", handle)
                self.c.run(client, self.program("plugin"), "client", handle)
                self.c.finish(serving)

    def test_a_program_that_looks_names_up(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(BUILD, "libsmartio", "libsmartio.so"),
                       os.path.join(folder, "libsisci.so"))
            self.c.run("two", "env", f"LD_LIBRARY_PATH={folder}", self.program("names"))

    def test_fixed_ids_are_free_again_at_once(self):
        for end in ("exit", "terminate", "abort"):
            others = [self.c.start("two", "sh", "-c", f"for i in $(seq 10); do {self.program('restart')}"
                                   f" 4 {end} || exit 1; done")]
            for _ in range(10):
                self.c.run("one", self.program("restart"), "8", end)
            for other in others:
                self.c.finish(other)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
