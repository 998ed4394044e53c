#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio cluster reload on a cluster that runs, with clients of a drive at their I/O all the time.

usage: reload_test.py BUILD
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402
from tls_test import free_ports  # noqa: E402

BUILD = None
TOPOLOGY = """\
cluster: lab
hosts:
  lender: {{ ram: 256M, devices: {{ nvme0: {{ type: nvme, size: 256M }}, nvme1: {{ type: nvme, size: 256M }} }} }}
  near: {{ ram: 256M }}
  far: {{ ram: {ram} }}
{rest}"""
ONLY_NEAR = "access: { rules: [{ device: nvme0, nodes: [near] }] }\n"


class Base(unittest.TestCase):
    def setUp(self):
        self.c = Cluster(BUILD, TOPOLOGY.format(ram="256M", rest=""))
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        self.files = 0

    def apart(self):
        """The same hosts, each on a machine of its own."""
        self.c.__exit__()
        text = TOPOLOGY.format(ram="256M", rest="access: { between_machines: open }\n")
        for i, (host, port) in enumerate(zip(("lender", "near", "far"), free_ports(3)), 1):
            text = text.replace(f"  {host}: {{ ", f"  {host}: {{ address: '127.0.0.{i}:{port}', ")
        self.c = Cluster(BUILD, text)
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        return text

    def write(self, rest="", ram="256M", text=None):
        self.files += 1
        path = os.path.join(self.c.dir, f"new{self.files}.yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write(text or TOPOLOGY.format(ram=ram, rest=rest))
        return path

    def reload(self, *words, status=0):
        done = subprocess.run([self.c.smartio_path, "--state", self.c.state, "cluster", "reload", *words],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def borrow(self, host, device):
        """As a drive's manager."""
        return subprocess.run(self.c.on(host, self.c.nvme, "manager", device, "--background"), capture_output=True,
                              text=True, timeout=120, check=False)

    def busy(self, host, device="nvme0", how=()):
        """A client that checks what it reads, until its input ends."""
        at = {"near": "0", "far": "1024", "lender": "2048", "more": "3072"}[host]
        child = self.c.start(host, os.path.join(BUILD, "tests", "system", "verify"), device, at, "1024",
                             *how, stdin=subprocess.PIPE)
        self.assertIn("running", child.stdout.readline())
        return child

    def is_well(self, *children):
        for child in children:
            self.assertIsNone(child.poll(), "a client ended")
            self.assertIn("rounds", self.c.finish(child))

    def all_is_well(self, before, manager, *children):
        """Nobody has noticed anything, and nothing is left when they have ended. @before: the audit before they began."""
        self.is_well(*children)
        self.assertIsNone(manager.poll())
        self.assertIn("ok", self.c.smartio("doctor"))
        manager.send_signal(signal.SIGTERM)
        self.c.end(manager)
        self.c.audit_until(before)

    def in_force(self):
        with open(os.path.join(self.c.state, "topology.yaml"), encoding="ascii") as f:
            return f.read()

    def devices(self, host):
        """As that host's daemon lists them."""
        names = self.c.run(host, self.c.smartio_path, "device", "list", "--json")
        return sorted(d["name"] for d in json.loads(names)["data"]["devices"] if d["state"] != "out")

    def devices_until(self, host, want):
        """Who mends what another command began does not know what is new to whom."""
        for _ in range(200):
            got = self.devices(host)
            if got == want:
                return
        self.fail(f"{host} lists {got} and not {want}")

    def ends_by_loss(self, child):
        status, _, err = self.c.end_by_itself(child)
        self.assertNotEqual(status, 0)
        self.assertRegex(err, "lost|gone")

    def room(self, request):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(60)
            s.connect(os.path.join(self.c.state, "room"))
            s.send(request.encode())
            return s.recv(8192).decode()

    @contextlib.contextmanager
    def prepared(self, new):
        """As behind the command's first step: the room has prepared file NEW. Then the command dies, or asks for more."""
        shutil.copy(new, os.path.join(self.c.state, "topology.yaml.new"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(60)
            s.connect(os.path.join(self.c.state, "room"))
            s.send(b"reload prepare new")
            self.assertEqual(s.recv(8192).decode(), "ok")
            yield s

    def left_in_between(self, new):
        """As behind its second step: the file has its new name, and daemons that start go by that."""
        with self.prepared(new):
            os.rename(os.path.join(self.c.state, "topology.yaml.new"), os.path.join(self.c.state, "topology.yaml"))


class Reload(Base):
    def test_rules_and_quotas_under_io(self):
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        new = self.write(ONLY_NEAR + "quotas: { node: { borrows: 1 } }\n")
        done = self.reload("--check", new)
        self.assertIn("line 6: rule is new: device nvme0: nodes 8\nquotas.node.borrows is 1, was without limit\n",
                      done.stdout)
        self.assertRegex(done.stdout, r"(?m)^lender: stays: borrow of process \d+: node 12 may not borrow device "
                                      r"lender/nvme0: allowed: nodes 8; see line 6")
        self.assertNotIn("access", self.in_force())
        self.assertEqual(self.borrow("far", "nvme1").returncode, 0)
        self.assertEqual(self.reload(new).stdout.count("\n"), 3)
        self.assertIn(ONLY_NEAR, self.in_force())
        # Who has it goes on; who comes now is refused, by the rule and by the quota.
        for host, device, why in (("far", "nvme0", "node 12 may not borrow device lender/nvme0"),
                                  ("far", "nvme1", "node 12 (far) may have 1 (quotas.node.borrows")):
            refused = self.borrow(host, device)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(why, refused.stderr)
        with open(os.path.join(self.c.state, "smartiod.4.log"), encoding="utf-8") as f:
            self.assertIn("what it no longer allows and stays: 1, and ends: 0", f.read())
        # Fifty times there and back, while both are at work.
        for i in range(50):
            self.reload(self.write(ONLY_NEAR if i % 2 else ""))
        self.is_well(near, far)
        self.assertIsNone(manager.poll())

    def test_what_is_no_longer_allowed_ends(self):
        before = self.c.audit()
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        done = self.reload("--json", "--enforce", self.write(ONLY_NEAR))
        data = json.loads(done.stdout)["data"]
        self.assertTrue(data["applied"])
        self.assertEqual(data["hosts"], ["lender", "near", "far"])
        self.assertEqual([(f["host"], f["ends"]) for f in data["forbidden"]], [("lender", True)])
        status, _, err = self.c.end_by_itself(far)
        self.assertNotEqual(status, 0)
        self.assertRegex(err, "lost|gone")
        self.is_well(near)
        self.reload(self.write(""))
        self.is_well(self.busy("far"))
        manager.send_signal(signal.SIGTERM)
        self.c.end(manager)
        self.c.audit_until(before)

    def test_all_or_nothing(self):
        self.c.manager("lender")
        near = self.busy("near")
        before = self.in_force()
        done = self.reload(self.write(ONLY_NEAR, ram="128M"), status=1)
        self.assertIn("needs a restart: host 'far': ram is 134217728, was 268435456; or one reload removes it, and the "
                      "next adds it\n", done.stdout)
        self.assertIn("nothing was changed", done.stderr)
        for words in ((), ("--check",)):
            done = self.reload("--json", *words, self.write(ONLY_NEAR, ram="128M"), status=1)
            self.assertEqual(json.loads(done.stdout)["data"]["messages"][0],
                             "needs a restart: host 'far': ram is 134217728, was 268435456; or one reload removes it, "
                             "and the next adds it")
        text = TOPOLOGY.format(ram="256M", rest=ONLY_NEAR)
        for words, said in ((re.sub("size: 256M }}", "size: 128M }}", text.replace("} }", "}}")),
                             "device lender/nvme1: size is 134217728, was 268435456"),
                            (text.replace("near: {", "near: { iommu: on,"), "host 'near': iommu is 1, was 0")):
            said += "; or one reload removes it, and the next adds it"
            self.assertIn(f"needs a restart: {said}\n", self.reload(self.write(text=words), status=1).stdout)
        for rest, said in (("access: { rules: [{ device: nvme7, nodes: [near] }] }\n", ":6:29: "),
                           ("quotas: { node: { borrows: many } }\n", ":6:28: "),
                           ("quotas: [\n", ":6:10: "), ("no such key: 1\n", ":6:1: ")):
            path = self.write(rest)
            self.assertIn(path + said, self.reload(path, status=1).stderr)
        self.reload(os.path.join(self.c.dir, "missing"), status=1)
        self.assertEqual(self.in_force(), before)
        self.assertFalse(os.path.exists(os.path.join(self.c.state, "topology.yaml.new")))
        self.assertEqual(self.borrow("far", "nvme1").returncode, 0)
        self.is_well(near)

    def test_who_was_down_reads_it_when_it_starts(self):
        self.c.crash("near")
        done = self.reload(self.write("access: { rules: [{ segments: all, users: [4242] }] }\n"))
        self.assertIn("1 host is not up", done.stderr)
        self.c.smartio("cluster", "restart-node", "near")
        refused = self.c.start("near", os.path.join(BUILD, "examples", "example-pingpong"), "12", "first", "10")
        self.assertIn("No access", self.c.end(refused)[2])
        before = self.in_force()
        for host in ("lender", "near", "far"):
            self.c.crash(host)
        self.assertIn("no host of the cluster is up; nothing was changed", self.reload(self.write(), status=1).stderr)
        self.assertEqual(self.in_force(), before)
        for host in ("lender", "near", "far"):
            self.c.smartio("cluster", "restart-node", host)

    def test_all_or_none_are_told(self):
        """One that lives, and does not answer, would go on by the file of before."""
        before = self.in_force()
        daemons = []
        for node in (4, 8, 12):
            with open(os.path.join(self.c.state, f"smartiod.{node}.pid"), encoding="ascii") as f:
                daemons.append(int(f.read()))
            self.addCleanup(os.kill, daemons[-1], signal.SIGCONT)
        far = daemons[-1]
        os.kill(far, signal.SIGSTOP)
        with unittest.mock.patch.dict(os.environ, SMARTIO_TIMEOUT="1"):
            refused = self.reload(self.write(ONLY_NEAR), status=1)
        self.assertIn("smartiod of host 'far' runs, but does not answer", refused.stderr)
        self.assertEqual(self.in_force(), before)
        for daemon in daemons:
            os.kill(daemon, signal.SIGSTOP)
        with unittest.mock.patch.dict(os.environ, SMARTIO_TIMEOUT="1"):
            self.assertIn("does not answer", self.reload(status=1).stderr)
        for daemon in daemons:
            os.kill(daemon, signal.SIGCONT)
        self.reload(self.write(ONLY_NEAR))
        self.assertIn("node 12 may not borrow", self.borrow("far", "nvme0").stderr)

    def test_a_daemon_that_goes_by_another_file_is_found(self):
        with open(os.path.join(self.c.state, "topology.yaml"), "a", encoding="ascii") as f:
            f.write("quotas: { node: { windows: 7 } }\n")
        self.c.crash("far")
        self.c.smartio("cluster", "restart-node", "far")
        found = subprocess.run([self.c.smartio_path, "--state", self.c.state, "doctor"], capture_output=True, text=True,
                               timeout=60, check=False).stdout
        self.assertIn("far has another file in force than lender: far line 6: quotas: { node: { windows: 7 } }", found)
        self.reload()
        self.assertNotIn("another file", self.c.smartio("doctor"))

    def test_between_machines(self):
        """The daemons go on by what they read anew, also who meets them later."""
        text = self.apart()
        self.c.manager("lender")
        near = self.busy("near")
        stricter = text.replace("access: { between_machines: open",
                                "access: { between_machines: open, rules: [{ device: nvme1, nodes: [far] }]")
        for i in range(10):
            self.reload(self.write(text=text if i % 2 else stricter))
        self.reload(self.write(text=stricter))
        self.c.crash("far")
        self.c.smartio("cluster", "restart-node", "far")
        self.assertEqual(self.borrow("far", "nvme1").returncode, 0)
        self.assertIn("node 8 may not borrow device lender/nvme1", self.borrow("near", "nvme1").stderr)
        for node in (4, 8, 12):
            with open(os.path.join(self.c.state, f"smartiod.{node}.log"), encoding="utf-8") as f:
                self.assertNotIn("another cluster file", f.read())
        self.is_well(near)

    # Devices: with_device() adds some to the lender, before those that it has.
    MORE = "more: {{ type: nvme, size: 64M, virtual_functions: 2 }}, mem: {{ type: memory, size: 4M }}, "

    def with_devices(self, more=MORE, fewer=None):
        text = TOPOLOGY.replace("nvme0: {{", more + "nvme0: {{").format(ram="256M", rest="")
        return self.write(text=re.sub(fewer + ": {[^}]*},? *", "", text) if fewer else text)

    def test_devices_come_and_go_under_io(self):
        before = self.c.audit()
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        for turn in range(2):
            self.assertIn("device lender/more is new\n", self.reload("--check", self.with_devices()).stdout)
            self.assertEqual(self.devices("far"), ["nvme0", "nvme1"])
            done = self.reload(self.with_devices())
            self.assertEqual(done.stdout, "device lender/more is new\ndevice lender/mem is new\n")
            for host in ("lender", "near", "far"):
                self.assertEqual(self.devices(host), ["mem", "more", "more-vf1", "more-vf2", "nvme0", "nvme1"])
            other = self.c.manager("far", "more")
            user = self.busy("near", "more")
            if turn:  # also one that nobody looks after
                other.kill()
                self.c.end(other)
            done = self.reload(self.write())
            self.assertEqual(done.stdout, "device lender/more is gone\ndevice lender/mem is gone\n")
            for child in [user] + ([other] if not turn else []):
                self.ends_by_loss(child)
            for host in ("lender", "near", "far"):
                self.assertEqual(self.devices(host), ["nvme0", "nvme1"])
        # The one that is listed before goes: nothing moves for those that stay.
        self.reload(self.with_devices(more="", fewer="nvme1"))
        self.assertEqual(self.devices("far"), ["nvme0"])
        self.reload(self.write())
        self.all_is_well(before, manager, near, far)

    def test_a_drive_with_a_file(self):
        path = os.path.join(self.c.dir, "blocks")
        drive = f"more: {{{{ type: nvme, size: 64M, file: {path} }}}}, "
        self.reload("--check", self.with_devices(drive))
        self.assertFalse(os.path.exists(path))
        with open(path, "wb") as f:
            f.write(b"too short")
        refused = self.reload(self.with_devices(drive), status=1)
        self.assertIn("it has 9 bytes, and the topology says size 67108864", refused.stderr)
        self.assertEqual(self.devices("far"), ["nvme0", "nvme1"])
        self.assertNotIn("more", self.in_force())
        os.unlink(path)
        for _ in range(2):
            self.reload(self.with_devices(drive))
            manager = self.c.manager("far", "more")
            self.is_well(self.busy("near", "more"))
            self.assertEqual(os.path.getsize(path), 64 << 20)
            self.reload(self.write())
            self.ends_by_loss(manager)

    def test_what_a_reload_left_in_between_is_mended(self):
        """Its command died behind each of its steps; a daemon died, too, and the room."""
        self.c.manager("lender")
        near = self.busy("near")
        old, new = self.write(), self.with_devices()
        self.assertIn("no file was prepared", self.room("reload commit"))
        self.assertIn("is right", self.room("reload now"))
        # Behind "prepare", and behind the file's new name: a daemon that starts now goes by that.
        for crash in (False, True):
            self.left_in_between(new)
            if crash:
                self.c.crash("far")
                self.c.smartio("cluster", "restart-node", "far")
            self.assertEqual(self.devices("far"), ["nvme0", "nvme1"])
            self.assertIn("devices out", self.c.smartio("cluster", "status"))
            self.assertIn("2 changes are in force", self.reload(*(() if crash else (new,))).stderr)
            for host in ("near", "far"):
                self.devices_until(host, ["mem", "more", "more-vf1", "more-vf2", "nvme0", "nvme1"])
            self.assertIn("0 changes are in force", self.reload(new).stderr)
            self.is_well(self.busy("far"))
            self.reload(old)
        # The lender's daemon starts with a file whose devices are not the room's, in other slots.
        self.is_well(near)
        shutil.copy(self.with_devices("", fewer="nvme0"), os.path.join(self.c.state, "topology.yaml"))
        self.c.crash("lender")
        self.c.smartio("cluster", "restart-node", "lender")
        self.assertEqual(self.devices("lender"), ["nvme1"])
        self.reload(old)
        self.devices_until("far", ["nvme0", "nvme1"])
        self.reload(self.with_devices("", fewer="nvme0"))
        for host in ("lender", "near", "far"):
            self.assertEqual(self.devices(host), ["nvme1"])
        # Without the room nothing is changed.
        os.kill(self.c.pid_of_room(), signal.SIGKILL)
        self.reload(old, status=1)
        self.assertNotIn("nvme0", self.in_force())

    def test_a_host_that_is_down_has_new_devices_when_it_starts(self):
        self.c.crash("lender")
        self.reload(self.with_devices(fewer="nvme1"))
        self.c.smartio("cluster", "restart-node", "lender")
        for host in ("lender", "far"):
            self.assertEqual(self.devices(host), ["mem", "more", "more-vf1", "more-vf2", "nvme0"])
        self.assertEqual(self.borrow("far", "more").returncode, 0)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
