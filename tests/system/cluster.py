# SPDX-License-Identifier: BSD-2-Clause
"""A cluster for tests that measure, count and kill: up, programs on hosts, audit, down."""
import json
import os
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "base"))
from cluster_base import Cluster as Base  # noqa: E402

TOPOLOGY = """\
cluster: system
switches: [sw0]
hosts:
  lender:
    ram: 256M
    iommu: on
    adapters: [{to: sw0, window: 1G, entries: 512}]
    devices:
      nvme0: {type: nvme, size: 256M, block: 512, queue_pairs: 31}
  manager: {ram: 256M}
  client1: {ram: 256M, iommu: on}
  client2: {ram: 256M}
  client3: {ram: 256M}
"""


class Cluster(Base):
    """Use as a context; what it started is gone afterwards."""

    def __init__(self, build, topology=TOPOLOGY):
        super().__init__(build, topology)

    def end(self, child, timeout=60):
        """Exit status, output, errors of a child that may end as it likes."""
        out, err = child.communicate(timeout=timeout)
        self.children.remove(child)
        return child.returncode, out, err

    def end_by_itself(self, child, timeout=60):
        """The same of a child that is not told to end: its input stays open. Its words are few."""
        child.wait(timeout)
        return self.end(child)

    def audit(self):
        return self.smartio("doctor", "--audit")

    def audit_until(self, want, tries=200):
        """The audit, repeated while deaths are still being settled, until it is @want."""
        got = None
        for _ in range(tries):
            done = subprocess.run([self.smartio_path, "--state", self.state, "doctor", "--audit"],
                                  capture_output=True, text=True, timeout=60)
            got = done.stdout + done.stderr
            if done.returncode == 0 and done.stdout == want:
                return
        raise AssertionError(f"the audit found\n{got}\nand not, as before,\n{want}")

    def counters(self):
        """Of the drive, by name."""
        for device in json.loads(self.smartio("stats", "--json"))["data"]["devices"]:
            if device["name"] == "nvme0":
                return {k: int(v, 16) for k, v in device["counters"].items()}
        raise AssertionError("smartio stats does not know nvme0")

    def crash(self, node):
        """Kill a host's smartiod; it is gone when this returns."""
        pid = self.daemon_pid(node)
        gone = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([gone], [], [], 60)
        os.close(gone)

    def daemon_pid(self, node):
        """Process id of a host's smartiod (or of the machine room: node None)."""
        if node is None:
            name = "emu.pid"
        else:
            nodes = json.loads(self.smartio("node", "list", "--json"))["data"]["nodes"]
            name = f"smartiod.{next(n['node'] for n in nodes if n['name'] == node)}.pid"
        with open(os.path.join(self.state, name), encoding="ascii") as f:
            return int(f.read())
