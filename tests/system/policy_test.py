#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who may do what, and how much, as the cluster's file says: what programs are told, on a cluster that runs.

usage: policy_test.py BUILD

The hosts far and near are of one emulated cluster; far's address is one of its own, as another machine's is.
"""
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402
from tls_test import free_ports  # noqa: E402

BUILD = None
OWN = os.getuid()
DEVICES = "devices: {nvme0: {type: nvme, size: 256M}, nvme1: {type: nvme, size: 256M}}"


class Policy(unittest.TestCase):
    def up(self, text, apart=False):
        if apart:
            ports = free_ports(3)
            address = [f"address: '127.0.0.{1 + (i == 2)}:{port}'" for i, port in enumerate(ports)]
        else:
            address = ["ram: 256M"] * 3
        self.c = Cluster(BUILD, f"cluster: lab\nhosts:\n  lender: {{ {address[0]}, {DEVICES} }}\n"
                                f"  near: {{ {address[1]} }}\n  far: {{ {address[2]} }}\n{text}")
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)

    def start(self, host, *command, **more):
        command = [self.c.smartio_path, "--state", self.c.state, "run", "-n", host, "--", *command]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)

    def borrow(self, host, device="nvme0", **more):
        """As a drive's manager; exit status 0 if it was lent."""
        return self.start(host, self.c.nvme, "manager", device, "--background", **more)

    def assert_refused(self, done, text):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(text, done.stderr)

    def test_a_node_is_refused_by_the_lender(self):
        self.up("access: { rules: [{ device: nvme0, nodes: [near] }] }\n")
        self.assert_refused(self.borrow("far"), "node 12 may not borrow device lender/nvme0: allowed: nodes 8; "
                                                "see line 6 of the cluster's file")
        for host, device in (("near", "nvme0"), ("far", "nvme1")):
            self.assertEqual(self.borrow(host, device).returncode, 0)
        with open(os.path.join(self.c.state, "smartiod.4.log"), encoding="utf-8") as f:
            self.assertIn("refused: node 12 may not borrow device lender/nvme0", f.read())

    def test_a_client_that_is_refused_does_not_wait(self):
        """Refused is not taken: it says so at once, whatever it may wait for."""
        self.up("access: { rules: [{ device: nvme0, nodes: [near] }, { device: nvme1, users: [4242] }] }\n")
        self.c.manager("near", "nvme0")
        for host, device, text in (("far", "nvme0", "node 12 may not borrow device lender/nvme0: allowed: nodes 8; see "
                                                    "line 6 of the cluster's file"),
                                   ("near", "nvme1", f"user {OWN} may not borrow device lender/nvme1: allowed: users 4242; "
                                                     "see line 6")):
            for wait in ((), ("--wait=600",)):
                done = self.start(host, self.c.nvme, "identify", device, *wait)
                self.assert_refused(done, text)
                self.assertNotIn("waiting", done.stderr)

    def test_a_program_is_who_the_kernel_says(self):
        self.up(f"access: {{ rules: [{{ device: nvme0, users: [{OWN}] }}, {{ device: nvme1, groups: [4242] }}] }}\n")
        self.assertEqual(self.borrow("near").returncode, 0)
        self.assert_refused(self.borrow("far", "nvme1"), f"user {OWN} may not borrow device lender/nvme1: allowed: "
                                                         "groups 4242; see line 6")
        if OWN == 0:
            done = self.borrow("far", "nvme1", preexec_fn=lambda: os.setgroups([7, 4242]))
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_machines_share_nothing_by_themselves(self):
        self.up("", apart=True)
        self.assert_refused(self.borrow("far"), "node 12 may not borrow device lender/nvme0: it is on another machine")
        self.assertEqual(self.borrow("near").returncode, 0)

    def test_machines_share_what_the_file_says(self):
        self.up("access: { rules: [{ device: nvme0, nodes: [far] }] }\n", apart=True)
        self.assertEqual(self.borrow("far").returncode, 0)
        self.assert_refused(self.borrow("far", "nvme1"), "it is on another machine")

    def test_a_quota_counts_back_when_a_program_is_killed(self):
        self.up("quotas: { node: { borrows: 1 } }\n")
        before = self.c.audit()
        holder = self.c.manager("far", "nvme1")
        for _ in range(10):
            self.assert_refused(self.borrow("far"), "node 12 (far) may have 1 (quotas.node.borrows")
        self.assertEqual(self.c.stats()["daemons"]["lender"]["refusals"], 10)
        holder.send_signal(signal.SIGKILL)
        self.c.end(holder)
        self.c.audit_until(before)
        done = self.borrow("far")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
