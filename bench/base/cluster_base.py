# SPDX-License-Identifier: BSD-2-Clause
"""An emulated cluster for programs that measure: up, programs on its hosts, what was counted, down."""
import json
import os
import shutil
import signal
import subprocess
import tempfile


class Cluster:
    """Use as a context; what it started is gone afterwards. AssertionError: something went wrong.
    @apart: smartio-emu and the daemons are in a session of their own, with a weight of its own on each processor.
    """

    def __init__(self, build, topology, apart=False):
        self.build, self.apart = build, apart
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
            self.smartio("cluster", "up", self.file, start_new_session=self.apart)
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

    def smartio(self, *args, check=True, **more):
        """Standard output of a smartio command."""
        done = subprocess.run([self.smartio_path, "--state", self.state, *args],
                              capture_output=True, text=True, timeout=60, check=False, **more)
        if check and done.returncode != 0:
            raise AssertionError(f"smartio {' '.join(args)}: exit {done.returncode}: "
                                 f"{done.stdout}{done.stderr}")
        return done.stdout

    def on(self, node, *command):
        """The command that runs @command on a host."""
        return [self.smartio_path, "--state", self.state, "run", "-n", node, "--", *command]

    def start(self, node, *command, **more):
        """A command on a host, in the background."""
        child = subprocess.Popen(self.on(node, *command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 **more)
        child.what = f"{node}: {' '.join(command)}"
        self.children.append(child)
        return child

    def both(self, child, timeout=120):
        """Its standard output and its errors; AssertionError unless it ended well."""
        out, err = child.communicate(timeout=timeout)
        self.children.remove(child)
        if child.returncode != 0:
            raise AssertionError(f"{child.what}: exit {child.returncode}: {err.strip()}")
        return out, err

    def finish(self, child, timeout=120):
        """Its standard output; AssertionError unless it ended well."""
        return self.both(child, timeout)[0]

    def run(self, node, *command, timeout=120):
        return self.finish(self.start(node, *command), timeout)

    def manager(self, node="manager", device="nvme0"):
        child = self.start(node, self.nvme, "manager", device)
        line = child.stdout.readline()
        if "ready" not in line:
            raise AssertionError(f"manager: {line}{child.stderr.read()}")
        return child

    def stats(self):
        """All counters: kind ("devices", "adapters", "daemons", ...) -> name -> counter -> value."""
        found = json.loads(self.smartio("stats", "--json"))["data"]
        return {kind: {o["name"]: {k: int(v, 16) for k, v in o.get("counters", {}).items()} for o in objects}
                for kind, objects in found.items() if isinstance(objects, list)}

    def pid_of_room(self):
        with open(os.path.join(self.state, "emu.pid"), encoding="ascii") as f:
            return int(f.read())
