# SPDX-License-Identifier: BSD-2-Clause
"""Relays (smartio passthrough) on hosts of an emulated cluster, and machines that are no QEMU but our own initiator of
vfio-user."""
import os
import signal
import sys

import base

sys.path.insert(0, os.path.join(base.HERE, "..", "emu"))
from mapped_drive import MappedDrive  # noqa: E402


class RelayTest(base.CommandTest):
    topology = None  # of a cluster named guests

    def setUp(self):
        super().setUp()
        self.smartio("cluster", "up", self.file("guests.yaml", self.topology))
        self.state = os.path.join(self.base, "guests")

    def relay(self, device="nvme0", host="client1", *options):
        """Its process, and its socket."""
        path = os.path.join(self.dir, f"{device}.{host}")
        child = self.start("run", "-n", host, "--", base.TOOL, "passthrough", device, "--socket", path, *options)
        self.says(child, "a virtual machine can have it")
        return child, path

    def says(self, child, text):
        while True:
            line = child.stderr.readline()
            self.assertTrue(line, f"it ended before it said '{text}'")
            if text in line:
                return line

    def machine(self, path, **more):
        m = MappedDrive(path, **more)
        self.addCleanup(m.close)
        return m

    def end(self, child):
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(60), 0)

    def device(self, name="nvme0"):
        return next(d for d in self.json("device", "list")["devices"] if d["name"] == name)

    def traffic(self):
        """What daemons have asked each other."""
        return {d["name"]: (d["counters"]["peer_messages_sent"], d["counters"]["peer_messages_received"])
                for d in self.json("stats")["daemons"]}

    def device_faults(self, name="nvme0"):
        return int(next(d for d in self.json("stats")["devices"] if d["name"] == name)["counters"]["faults"], 16)
