# SPDX-License-Identifier: BSD-2-Clause
"""A cluster for tests that measure, count and kill: up, programs on hosts, audit, down."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

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


class Cluster:
    """Use as a context; what it started is gone afterwards."""

    def __init__(self, build, topology=TOPOLOGY):
        self.smartio_path = os.path.join(build, "tools", "smartio")
        self.nvme = os.path.join(build, "drivers", "nvme-user", "smartio-nvme")
        self.dir = tempfile.mkdtemp(prefix="sio-")
        self.state = os.path.join(self.dir, "state")
        self.file = os.path.join(self.dir, "cluster.yaml")
        with open(self.file, "w", encoding="ascii") as f:
            f.write(topology)
        self.children = []

    def __enter__(self):
        try:
            self.smartio("cluster", "up", self.file)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in self.children:
            try:
                child.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
        if os.path.isdir(self.state):
            self.smartio("cluster", "down", check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def smartio(self, *args, check=True):
        """Standard output of a smartio command."""
        done = subprocess.run([self.smartio_path, "--state", self.state, *args],
                              capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise AssertionError(f"smartio {' '.join(args)}: exit {done.returncode}: "
                                 f"{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, node, *command, **more):
        """A command on a host, in the background."""
        child = subprocess.Popen([self.smartio_path, "--state", self.state, "run", "-n", node,
                                  "--", *command],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        child.what = f"{node}: {' '.join(command)}"
        self.children.append(child)
        return child

    def finish(self, child, timeout=120):
        """Its standard output; AssertionError unless it ended well."""
        out, err = child.communicate(timeout=timeout)
        self.children.remove(child)
        if child.returncode != 0:
            raise AssertionError(f"{child.what}: exit {child.returncode}: {err.strip()}")
        return out

    def end(self, child, timeout=60):
        """Exit status, output, errors of a child that may end as it likes."""
        out, err = child.communicate(timeout=timeout)
        self.children.remove(child)
        return child.returncode, out, err

    def end_by_itself(self, child, timeout=60):
        """The same of a child that is not told to end: its input stays open. Its words are few."""
        child.wait(timeout)
        return self.end(child)

    def run(self, node, *command, timeout=120):
        return self.finish(self.start(node, *command), timeout)

    def manager(self, node="manager"):
        child = self.start(node, self.nvme, "manager", "nvme0")
        line = child.stdout.readline()
        if "ready" not in line:
            raise AssertionError(f"manager: {line}{child.stderr.read()}")
        return child

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

    def daemon_pid(self, node):
        """Process id of a host's smartiod (or of the machine room: node None)."""
        if node is None:
            name = "emu.pid"
        else:
            nodes = json.loads(self.smartio("node", "list", "--json"))["data"]["nodes"]
            name = f"smartiod.{next(n['node'] for n in nodes if n['name'] == node)}.pid"
        with open(os.path.join(self.state, name), encoding="ascii") as f:
            return int(f.read())
