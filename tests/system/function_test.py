#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Virtual functions of one drive: a host each has one, at once (paper, section 7.1.6).

usage: function_test.py BUILD
"""
import json
import os
import random
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD = None
TOPOLOGY = """\
cluster: functions
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    devices: {nvme0: {type: nvme, size: 16M, queue_pairs: 4, virtual_functions: 2}}
  one: {ram: 64M, iommu: on}
  two: {ram: 64M}
"""
HOSTS = {"nvme0": "lender", "nvme0-vf1": "one", "nvme0-vf2": "two"}
MIB = 1 << 20


class Functions(unittest.TestCase):
    def setUp(self):
        self.c = Cluster(BUILD, TOPOLOGY)
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        self.audit = self.c.audit()

    def manager(self, device, host=None):
        child = self.c.start(host or HOSTS[device], self.c.nvme, "manager", device)
        self.assertIn("ready", child.stdout.readline(), device)
        return child

    def counters(self):
        return {d["name"]: {k: int(v, 16) for k, v in d["counters"].items()}
                for d in json.loads(self.c.smartio("stats", "--json"))["data"]["devices"]}

    def devices(self):
        return {d["name"]: d for d in json.loads(self.c.smartio("device", "list", "--json"))["data"]["devices"]}

    def end(self, child):
        child.send_signal(signal.SIGTERM)
        self.c.finish(child)

    def write(self, device, at, data):
        path = os.path.join(self.c.dir, device)
        with open(path, "wb") as f:
            f.write(data)
        return self.c.start(HOSTS[device], self.c.nvme, "write", device, "--input", path, "--offset", str(at))

    def read(self, device, at, n):
        path = os.path.join(self.c.dir, "read-" + device)
        self.c.run(HOSTS[device], self.c.nvme, "read", device, "--output", path, "--offset", str(at), "--length",
                   str(n))
        with open(path, "rb") as f:
            return f.read()

    def test_two_hosts_have_a_function_each(self):
        managers = [self.manager(d) for d in HOSTS]
        found = self.devices()
        for index, device in enumerate(HOSTS):
            self.assertEqual((found[device]["borrowers"], found[device]["state"]), (1, "shared"), device)
            self.assertEqual(found[device]["bdf"], found["nvme0"]["bdf"] + index)
            self.assertEqual(found[device].get("physical_function"), "nvme0" if index else None)
            self.assertEqual(found[device]["slot"], found["nvme0"]["slot"])
        # All write at once, each its part; each then reads what all wrote.
        before = self.counters()
        data = {d: random.Random(d).randbytes(MIB) for d in HOSTS}
        for child in [self.write(d, i * MIB, data[d]) for i, d in enumerate(HOSTS)]:
            self.c.finish(child)
        for device in HOSTS:
            self.assertEqual(self.read(device, 0, 3 * MIB), b"".join(data.values()), device)
        after = self.counters()
        for device in HOSTS:
            self.assertEqual({k: after[device][k] - before[device][k] for k in ("bytes_written", "bytes_read", "faults")},
                             {"bytes_written": MIB, "bytes_read": 3 * MIB, "faults": 0}, device)
        # Exact: what one function's host asks for is that function's alone, in the drive and on the fabric.
        self.c.run("one", self.c.nvme, "bench", "nvme0-vf1", "--count", "1000", "--warmup", "0", "--random")
        last = self.counters()
        self.assertEqual(last["nvme0-vf1"]["commands_read"] - after["nvme0-vf1"]["commands_read"], 1000)
        self.assertEqual(last["nvme0-vf1"]["bytes_read"] - after["nvme0-vf1"]["bytes_read"], 1000 * 4096)
        self.assertGreaterEqual(last["nvme0-vf1"]["wr_bytes"] - after["nvme0-vf1"]["wr_bytes"], 1000 * (4096 + 16))
        # So are its interrupts, each sent by its own requester id.
        self.c.run("two", self.c.nvme, "bench", "nvme0-vf2", "--count", "100", "--warmup", "0", "--interrupt")
        self.assertGreater(self.counters()["nvme0-vf2"]["interrupts"], last["nvme0-vf2"]["interrupts"])
        self.assertEqual(self.counters()["nvme0-vf1"]["interrupts"], last["nvme0-vf1"]["interrupts"])
        for device in ("nvme0", "nvme0-vf2"):
            for key in ("commands_read", "bytes_read", "wr_bytes", "rd_bytes"):
                self.assertEqual(last[device][key], after[device][key], f"{device} {key}")
        for child in managers:
            self.end(child)
        self.assertEqual(self.c.audit(), self.audit)

    def bench(self, device, *args):
        """A client that has begun its I/O: the drive has counted some."""
        begun = self.counters()[device]["commands_read"]
        child = self.c.start(HOSTS[device], self.c.nvme, "bench", device, "--depth", "8", "--json", *args)
        while self.counters()[device]["commands_read"] == begun:
            self.assertIsNone(child.poll(), device)
        return child

    def kill(self, *children):
        """What `smartio run` started, which is a program of its own pid."""
        for child in children:
            child.kill()
        for child in children:
            self.assertEqual(self.c.end(child)[0], -signal.SIGKILL)

    def test_a_holder_is_killed(self):
        first, second = self.manager("nvme0-vf1"), self.manager("nvme0-vf2")
        holder = self.bench("nvme0-vf1", "--seconds", "600")
        other = self.bench("nvme0-vf2", "--count", "200000")
        self.kill(holder, first)
        # The other function's host sees nothing of it, and somebody else may have this one.
        self.assertIsNone(second.poll())
        again = self.manager("nvme0-vf1", "two")
        data = random.Random("again").randbytes(MIB)
        HOSTS["nvme0-vf1"] = "two"
        try:
            self.c.finish(self.write("nvme0-vf1", 0, data))
        finally:
            HOSTS["nvme0-vf1"] = "one"
        self.assertEqual(self.read("nvme0-vf2", 0, MIB), data)
        self.assertEqual(json.loads(self.c.finish(other))["data"]["completed"], 200000)
        for child in (again, second):
            self.end(child)
        self.c.audit_until(self.audit)

    def test_a_reset_of_one_is_its_own(self):
        second = self.manager("nvme0-vf2")
        resets = {d: v["generation"] for d, v in self.devices().items()}
        other = self.bench("nvme0-vf2", "--count", "100000")
        self.c.smartio("device", "reset", "nvme0-vf1")
        self.c.finish(other)
        found = self.devices()
        self.assertEqual({d: found[d]["generation"] - resets[d] for d in HOSTS},
                         {"nvme0": 0, "nvme0-vf1": 2, "nvme0-vf2": 0})
        self.end(second)
        self.assertEqual(self.c.audit(), self.audit)

    def lost(self, child):
        status, _, err = self.c.end(child)
        self.assertNotEqual(status, 0)
        self.assertIn("reset or lost", err)

    def test_a_reset_of_the_physical_function_is_told_to_all(self):
        managers = [self.manager(d) for d in ("nvme0-vf1", "nvme0-vf2")]
        clients = [self.bench(d, "--seconds", "600") for d in ("nvme0-vf1", "nvme0-vf2")]
        self.assertIn("nvme0 is in use: 4 borrows live, the first of nvme0-vf",
                      self.refused("device", "reset", "nvme0"))
        self.c.smartio("device", "reset", "--force", "nvme0")
        for child in clients:
            self.lost(child)
        # A manager resets the drive anew, if it finds it back when it looks, or ends.
        for child in managers:
            child.send_signal(signal.SIGTERM)
            self.c.end(child)
        # They are there again, for whoever comes.
        for device in HOSTS:
            self.end(self.manager(device))
        self.c.audit_until(self.audit)

    def refused(self, *args):
        done = subprocess.run([self.c.smartio_path, "--state", self.c.state, *args], capture_output=True, text=True,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_functions_go_and_come_by_the_capability(self):
        """As sriov_numvfs has it: all go, from whoever uses them, and the first ones come back."""
        managers = [self.manager(d) for d in HOSTS]
        clients = [self.bench(d, "--seconds", "600") for d in ("nvme0-vf1", "nvme0-vf2")]
        physical = self.bench("nvme0", "--count", "100000")
        self.c.smartio("fault", "device", "nvme0", "functions", "1")
        for child in clients:
            self.lost(child)
        # The physical function's own clients see nothing of it.
        self.assertEqual(json.loads(self.c.finish(physical))["data"]["completed"], 100000)
        self.assertEqual({d: v["state"] == "out" for d, v in self.devices().items()},
                         {"nvme0": False, "nvme0-vf1": False, "nvme0-vf2": True})
        for child in managers[1:]:
            child.send_signal(signal.SIGTERM)
            self.c.end(child)
        self.end(managers[0])
        self.end(self.manager("nvme0-vf1"))
        # A reset of the drive keeps the number; a start of its host enables all.
        self.c.smartio("device", "reset", "nvme0")
        self.assertEqual({d for d, v in self.devices().items() if v["state"] == "out"}, {"nvme0-vf2"})
        self.assertIn("nvme0 has 2 virtual functions; 0 to 2 is right",
                      self.refused("fault", "device", "nvme0", "functions", "3"))
        self.assertIn("nvme0-vf1 has no virtual functions",
                      self.refused("fault", "device", "nvme0-vf1", "functions", "0"))
        self.c.smartio("fault", "device", "nvme0", "functions", "0")
        self.assertEqual({d for d, v in self.devices().items() if v["state"] == "out"}, {"nvme0-vf1", "nvme0-vf2"})
        self.c.smartio("fault", "device", "nvme0", "functions", "2")
        for device in HOSTS:
            self.end(self.manager(device))
        self.c.audit_until(self.audit)

    def test_the_drive_is_pulled_out(self):
        managers = [self.manager(d) for d in ("nvme0-vf1", "nvme0-vf2")]
        client = self.bench("nvme0-vf2", "--seconds", "600")
        self.assertIn("nvme0-vf1 is a virtual function, which comes and goes with nvme0; name that one",
                      self.refused("fault", "device", "nvme0-vf1", "out"))
        self.c.smartio("fault", "device", "nvme0", "out")
        self.lost(client)
        for child in managers:
            self.assertNotEqual(self.c.end(child)[0], 0)
        self.assertEqual({d["state"] for d in self.devices().values()}, {"out"})
        self.c.smartio("fault", "device", "nvme0", "in")
        for device in HOSTS:
            self.end(self.manager(device))
        self.c.audit_until(self.audit)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
