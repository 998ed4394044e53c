#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each state of clusters that `smartio doctor` knows, brought about on a live one: programs are killed, parts pulled
out, tables filled. What mends it is typed as printed."""
import errno
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest
import base
from doctor import BAD, OK, WARNING, Examined

sys.path.append(os.path.join(base.HERE, "..", "emu"))
from ntb_machine import Machine  # noqa: E402

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


HOLDER = os.path.join(base.HERE, "holder.py")
NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")
DRIVE = 0x4f4093

# Small tables, so that they can be filled.
SMALL = """\
cluster: small
switches: [sw0]
hosts:
  lender:
    ram: 64M
    iommu: on
    adapters: [{to: sw0, requesters: 3}]
    devices:
      nvme0: {type: nvme, size: 16M, block: 512, queue_pairs: 1}
  client1: {ram: 256M}
  client2:
    ram: 64M
    adapters: [{to: sw0, window: 32M, entries: 32}]
"""


CAP_SYS_RESOURCE = 24


def capable(bit):
    return int(base.status_of(os.getpid(), "CapEff"), 16) >> bit & 1


class Mended(Examined):
    """States that are brought about, and end by what is printed to mend them."""

    def until(self, wanted, *options):
        """The findings, when @wanted is among them: what is told to daemons takes a moment."""
        for _ in range(1000):
            found = self.findings(*options)
            if wanted is None and not found or wanted in found:
                return found
        self.fail(f"not found: {wanted}, but {found}")

    def paste(self, finding):
        """What mends it, as printed, in the user's shell. Who is root needs no sudo."""
        mend = finding["mend"] if os.geteuid() else finding["mend"].replace("sudo ", "")
        path = os.pathsep.join([os.path.dirname(NVME), os.path.dirname(base.TOOL),
                                self.env.get("PATH", "")])
        done = subprocess.run(mend, shell=True, env={**self.env, "PATH": path}, check=False,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, f"{mend}: {done.stdout}{done.stderr}")

    def mended(self, finding):
        """Pasted, it helps: nothing is wrong any more."""
        self.paste(finding)
        self.until(None)

    def hold(self, node, *words, before=()):
        child = self.start("run", "-n", node, "--", *before, sys.executable, HOLDER, *words)
        line = child.stdout.readline()
        if line != "ready\n":
            self.fail(f"holder on {node}: {line}{child.communicate()[1]}")
        return child

    def pid_below(self, child, word):
        """The process with @word among its words that `smartio run` started."""
        return next(pid for pid, words in base.processes_with("XDG_RUNTIME_DIR", self.dir)
                    if word in words and " run " not in words and pid != child.pid)


class VirtualMachines(Mended):
    def test_machine_killed(self):
        """What mends it wants a QEMU: tests/vm/machines.py has that."""
        self.smartio("cluster", "up", self.file("m.yaml", "cluster: m\nhosts:\n  v: { kind: machine }\n"))
        self.assertEqual(self.findings(), {})
        child = subprocess.Popen(["true"])
        child.wait()
        with open(os.path.join(self.base, "m", "machine.4.pid"), "w", encoding="ascii") as f:
            f.write(f"{child.pid}\n")
        found = self.only("machine-killed")
        self.assertIn("machine.4.log", found["evidence"])
        self.assertTrue(found["mend"].endswith("machine start v"), found["mend"])
        self.smartio("machine", "stop", "v")
        self.assertEqual(self.findings(), {})

    def test_machine_off_and_unlinked(self):
        """A machine that nobody has started is a note; one whose cable is out is not."""
        self.smartio("cluster", "up", self.file("m.yaml", "cluster: m\nhosts:\n  v: { kind: machine, adapters: [{}] }\n"
                                                "  w: { kind: machine, devices: { disk: { type: nvme, size: 1M } } }\n"))
        notes = [f["evidence"] for f in self.json("doctor")["findings"] if f["state"] == "machine-off"]
        self.assertEqual([re.match(r"machine '(\w)' \(node (\d)\) is not running: .*/(vfio\.[\w.]+)$", n).groups()
                          for n in notes], [("v", "4", "vfio.v.0"), ("w", "8", "vfio.disk")])
        self.assertEqual(self.findings(status=OK), {})
        m = Machine(f"{self.base}/m/vfio.v.0").start()
        self.addCleanup(m.close)
        self.assertIn("note  machine-off        machine 'w'", self.smartio("doctor").stdout)
        self.assertNotIn("machine 'v'", self.smartio("doctor").stdout)
        self.smartio("fault", "link", "v", "down")
        found = self.only("machine-unlinked")
        self.assertEqual(found["evidence"], "v.0: adapter 0 of machine v has no link")
        self.mended(found)


    def test_machine_mapped(self):
        """Whose memory is open to others, and whose is not."""
        self.smartio("cluster", "up", self.file("m.yaml", "cluster: m\nhosts:\n"
                                                "  v: { kind: machine, window: mapped, ram: 4M, adapters: [{ to: w }] }\n"
                                                "  w: { kind: machine, adapters: [{ to: v }] }\n"))
        notes = [f["evidence"] for f in self.json("doctor")["findings"] if f["state"] == "machine-mapped"]
        self.assertEqual([re.match(r"machine '(\w)' has 'window: mapped'", n)[1] for n in notes], ["v"])
        self.assertEqual(self.findings(status=OK), {})

    def test_host_pooled(self):
        """Whose segments lie in one file, and whose do not."""
        a, b = free_port(), free_port()
        self.smartio("cluster", "up", self.file("m.yaml", f"cluster: m\nhosts:\n  a: {{ address: 127.0.0.1:{a}, pool: 3M }}\n"
                                                f"  b: {{ address: 127.0.0.1:{b}, iommu: on }}\n"
                                                "  v: { kind: machine, address: 10.0.0.1:7, window: mapped, ram: 4M, adapters: [{}] }\n"))
        notes = [f["evidence"] for f in self.json("doctor")["findings"] if f["state"] == "host-pooled"]
        self.assertEqual([re.match(r"host '(\w)' has a pool of (\w+), .*/m/memory\.a: ", n).groups() for n in notes], [("a", "3M")])
        self.assertEqual(self.findings(status=OK), {})


class OneCluster(Mended):
    def setUp(self):
        super().setUp()
        # Under another name than the file's: commands must say it.
        self.smartio("cluster", "up", "--name", "other", self.topology())
        self.state = os.path.join(self.base, "other")

    def kill(self, program, number=signal.SIGKILL):
        pid = self.pid_of(self.state, program)
        os.kill(pid, number)
        base.wait_gone(pid)


class Clusters(OneCluster):
    def test_healthy(self):
        done = self.smartio("doctor", status=OK)
        self.assertRegex(done.stdout, r"\Aok: \d+ states looked for on this machine and 1 cluster, .*\n\Z")
        self.hold("client1", "segment=7", f"lend={DRIVE}")
        self.hold("client2", "connect=8:7")
        self.assertEqual(self.findings("--cluster", "other", status=OK), {})
        lines = self.smartio("doctor", "--verbose", status=OK).stdout
        self.assertRegex(lines, r"(?m)^ok +link-down +3 links are up$")
        self.assertRegex(lines, r"(?m)^ok +device-gone +1 devices are there$")
        self.assertRegex(lines, r"(?m)^n/a +iommu-off +of real devices")
        self.assertRegex(lines, r"(?m)^n/a +frequency +of measurements: with --measure$")

    def test_link_down(self):
        self.smartio("fault", "link", "client1", "down")
        found = self.only("link-down")
        self.assertIn("adapter 0 of client1", found["evidence"])
        self.assertRegex(found["mend"], r"smartio --cluster other fault link client1.0 up$")
        self.assertRegex(self.smartio("doctor", status=BAD).stdout,
                         r"(?m)^BAD +link-down +client1\.0.*\n.* the cable is pulled.*\n +mend: ")
        self.mended(found)

    def test_switch_down(self):
        self.smartio("fault", "switch", "sw0", "down")
        found = self.only("switch-down") # of the links that end at it nothing more is said
        self.assertIn("switch sw0 has no power", found["evidence"])
        self.assertRegex(found["mend"], r"smartio --cluster other fault switch sw0 up$")
        self.mended(found)

    def test_device_gone(self):
        self.smartio("fault", "device", "nvme0", "out")
        self.until("device-gone")
        found = self.only("device-gone")
        self.assertIn("nvme0 is not in slot", found["evidence"])
        self.mended(found)

    def test_daemon_dead(self):
        self.kill("smartiod.8")
        found = self.only("daemon-dead")
        self.assertRegex(found["evidence"], r"client1 \(node 8\).*/smartiod\.8\.log")
        self.mended(found)

    def test_host_down(self):
        self.kill("smartiod.8", signal.SIGTERM)
        found = self.only("host-down")
        self.assertIn("client1 (node 8)", found["evidence"])
        self.mended(found)

    def test_host_silent(self):
        pid = self.pid_of(self.state, "smartiod.8")
        os.kill(pid, signal.SIGSTOP)
        found = self.until("host-silent")["host-silent"]
        self.assertIn(f"client1: process {pid} is stopped", found["evidence"])
        self.mended(found)

    def test_room_dead(self):
        daemons = [self.pid_of(self.state, f"smartiod.{n}") for n in (4, 8, 12)]
        self.kill("emu")
        for pid in daemons:
            base.wait_gone(pid)
        found = self.only("room-dead")
        self.assertIn("emu.log", found["evidence"])
        self.mended(found)

    def test_cluster_file(self):
        with open(os.path.join(self.state, "topology.yaml"), "a", encoding="ascii") as f:
            f.write("# changed\n")
        self.kill("smartiod.12")
        self.smartio("cluster", "restart-node", "client2")
        found = self.only("cluster-file", status=WARNING)
        self.assertRegex(found["evidence"], r"^client2 has another file in force than lender: client2 line \d+: # changed$")
        self.mended(found)

    def test_stale(self):
        for name in ("smartiod.4", "smartiod.8", "smartiod.12", "emu"):
            self.kill(name)
        found = self.only("stale", status=WARNING)
        self.assertIn(self.state, found["evidence"])
        self.mended(found)
        self.assertFalse(os.path.exists(self.state))

    def test_socket_missing(self):
        for name in ("peer.8", "node.8"):
            path = os.path.join(self.state, name)
            os.rename(path, path + "x")
            found = self.only("socket-missing")
            self.assertIn(f"{path} is missing", found["evidence"])
            os.rename(path + "x", path)
        self.assertEqual(self.findings(), {})
        os.unlink(path)
        self.mended(self.only("socket-missing"))

    def test_no_cluster(self):
        self.assertIn("moon: No such file",
                      self.only("no-cluster", "--cluster", "moon")["evidence"])
        foreign = os.path.join(self.dir, "foreign")
        os.mkdir(foreign)
        with open(os.path.join(foreign, "letter"), "w", encoding="ascii") as f:
            f.write("dear")
        self.assertIn("other files", self.only("no-cluster", "--state", foreign)["evidence"])
        self.assertIn("is no name", self.only("no-cluster", "--cluster", "../x")["evidence"])

    def test_library_version(self):
        """One that is too old to be served, and one that is served but older."""
        def hello(version):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.addCleanup(s.close)
            s.connect(os.path.join(self.state, "node.8"))
            s.send(struct.pack("<8I", 32, 1, 1, 0, version, 0, os.getpid(), 1))
            # Its owner lives as long as we keep the descriptors.
            data, fds, _, _ = socket.recv_fds(s, 8192, 16)
            for fd in fds:
                self.addCleanup(os.close, fd)
            return struct.unpack_from("<IIII", data)[3]
        with open(os.path.join(base.HERE, "../../libsmartio/wire/client.h"), encoding="utf-8") as f:
            text = f.read()
        served = {int(n) for n in re.findall(r"^#define SIO_CLIENT_VERSION(?:_MIN)? (\d+)", text, re.M)}
        self.assertEqual(hello(max(served)), 0)
        self.assertEqual(self.findings(), {})
        for version in served - {max(served)}:
            self.assertEqual(hello(version), 0)
            self.assertIn(f"process {os.getpid()} speaks version {version} of",
                          self.only("library-version")["evidence"])
        self.assertNotEqual(hello(1), 0)
        self.assertIn("it speaks version 1,", self.findings()["library-version"]["evidence"])

    @unittest.skipUnless(shutil.which("setpriv") or os.geteuid(), "no setpriv")
    def test_no_permission(self):
        if os.geteuid():
            path = os.path.join(self.state, "node.8")
            os.chmod(path, 0)
            found = self.only("no-permission")
            self.assertIn(f"{path}: Permission denied", found["evidence"])
            self.mended(found)
            return
        other = ["setpriv", "--reuid", "65534", "--clear-groups", base.TOOL]
        if subprocess.run([*other, "--version"], check=False, capture_output=True).returncode:
            self.skipTest("another user may not run the command")
        place = os.path.join(self.dir, "theirs")
        os.chmod(self.dir, 0o755)
        os.mkdir(place)
        os.chown(place, 65534, 65534)
        done = subprocess.run([*other, "--state", self.state, "doctor"], check=False, text=True,
                              env={**self.env, "XDG_RUNTIME_DIR": place}, capture_output=True)
        self.assertEqual(done.returncode, BAD, done.stdout + done.stderr)
        self.assertRegex(done.stdout, f"(?m)^BAD +no-permission +{self.state}: Permission denied; "
                                      "its owner is user 0, we are user 65534$")
        self.assertIn("mend: sudo -u '#0' ", done.stdout)


class Impostor(OneCluster):
    """A smartiod of another kind: this process has its pid file, and its sockets."""

    def setUp(self):
        super().setUp()
        self.kill("smartiod.8")
        for name in ("node.8", "peer.8"):
            if os.path.exists(os.path.join(self.state, name)):
                os.unlink(os.path.join(self.state, name))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(os.path.join(self.state, "node.8"))
        self.socket.listen()
        os.link(os.path.join(self.state, "node.8"), os.path.join(self.state, "peer.8"))
        path = os.path.join(self.state, "smartiod.8.pid")
        self.pid_file = open(path, "w", encoding="ascii")  # to be ours it must be open
        print(os.getpid(), file=self.pid_file, flush=True)
        # Or "cluster down" would end us.
        self.addCleanup(self.pid_file.close)
        self.addCleanup(os.unlink, path)
        self.addCleanup(self.socket.close)

    def serve(self, answer):
        def run():
            client, _ = self.socket.accept()
            with client:
                header = struct.unpack_from("<IIII", client.recv(8192))
                if answer:
                    client.send(answer(*header))
                client.recv(8192)  # until it hangs up
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)

    def test_command_too_old(self):
        text = b"the program's library speaks version 6 of the protocol, smartiod 9: the library is older"
        self.serve(lambda size, kind, number, error:
                   struct.pack("<6I192s", 216, kind, number, errno.EPROTO, 0, 0, text))
        found = self.only("library-version", status=WARNING)
        self.assertEqual(found["evidence"], f"this command at client1: {text.decode()}")

    def test_hangs(self):
        self.serve(None)
        found = self.only("host-silent", env={"SMARTIO_TIMEOUT": "1"})
        self.assertIn("has not answered for 1 second", found["evidence"])
        self.assertRegex(found["mend"], rf"^kill -KILL {os.getpid()}; .* cluster restart-node client1$")

    def test_takes_no_clients(self):
        """It hangs up, as one without descriptors does."""
        self.serve(lambda *_: b"")
        self.assertIn("closed the connection", self.only("host-silent")["evidence"])


class Quarantine(OneCluster):
    """A borrower is killed while another one lives: nobody may reset the device for it."""

    def test_orphaned(self):
        self.hold("client2", "segment=9", f"lend={DRIVE}")
        killed = self.hold("client1", "segment=7", f"lend={DRIVE}")
        pid = self.pid_below(killed, "segment=7")
        os.kill(pid, signal.SIGKILL)
        killed.wait(60)
        self.until("quarantine-orphaned")
        found = self.only("quarantine-orphaned")
        self.assertIn(f"nvme0: 64K in 1 mapping, left by process {pid} of client1; nobody has",
                      found["evidence"])
        self.mended(found)

    def test_not_settled(self):
        """The manager is stopped: it has the registers, and could settle it."""
        manager = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0")
        self.assertIn("ready", manager.stdout.readline())
        held = self.pid_below(manager, "manager nvme0")
        killed = self.hold("client1", "segment=7", f"lend={DRIVE}")
        os.kill(held, signal.SIGSTOP)
        killed.kill()
        self.until("quarantine")
        found = self.only("quarantine", status=WARNING)
        self.assertRegex(found["evidence"], f"left by .* of client1; process {held} of lender has")
        self.assertEqual(found["mend"], f"kill -CONT {held}")
        self.mended(found)


class Resources(Mended):
    def setUp(self):
        super().setUp()
        self.smartio("cluster", "up", self.file("small.yaml", SMALL))
        self.state = os.path.join(self.base, "small")
        self.assertEqual(self.findings(), {})

    def test_windows_and_entries(self):
        self.hold("client1", "segment=1:0x1e00000", "segment=2:0x200000")
        self.hold("client2", "connect=8:1:0x1e00000")
        found = self.only("windows-full")
        self.assertRegex(found["evidence"],
                         r"client2\.0: the largest window .* is 2M, of 32M in all \(2 of 32 ")
        last = self.hold("client2", "connect=8:2:0x200000")
        found = self.only("entries-full")
        pid = self.pid_below(self.children[1], "connect=8:1:")
        self.assertEqual(found["evidence"],
                         f"client2.0: all 32 entries are in use; process {pid} has most")
        last.stdin.close()
        last.wait(60)
        self.until("windows-full")
        self.mended(found)

    def test_requesters(self):
        self.hold("client1", "segment=7", f"lend={DRIVE}")
        pid = self.pid_below(self.children[0], "segment=7")
        found = self.only("requesters-full")
        self.assertEqual(found["evidence"],
                         f"lender.0: all 3 entries are in use; process {pid} has most")
        self.mended(found)

    def test_queue_pairs(self):
        manager = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0")
        self.assertIn("ready", manager.stdout.readline())
        self.assertEqual(self.findings(), {})
        client = self.start("run", "-n", "lender", "--", NVME, "bench", "nvme0", "-t", "100")
        self.until("queue-pairs-full")
        found = self.only("queue-pairs-full")
        pid = self.pid_below(client, "bench nvme0")
        self.assertEqual(found["evidence"],
                         f"nvme0: all 1 I/O queue pairs are in use; process {pid} has most")
        self.mended(found)

    def test_memory(self):
        self.hold("client2", "segment=1:0x3c00000")
        found = self.only("memory-full")
        self.assertRegex(found["evidence"], r"^client2: [\d.]+M of 64M are free; process \d+ has most$")
        self.mended(found)

    def test_descriptors(self):
        pid = self.pid_of(self.state, "smartiod.8")
        used = len(os.listdir(f"/proc/{pid}/fd"))
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 8, hard))
        found = self.only("descriptors-full")
        self.assertIn(f"smartiod of client1 (process {pid}) has", found["evidence"])
        self.assertIn(f"may have {used + 8}", found["evidence"])
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 100, hard))
        self.assertEqual(self.findings(), {})

    @unittest.skipUnless(shutil.which("setpriv") or os.geteuid(), "no setpriv")
    def test_locked_memory(self):
        # Who may lock any memory is not limited.
        less = [] if os.geteuid() else ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
        less += ["prlimit", "--memlock=131072:131072"]
        child = self.hold("client1", "lock=65536", before=less)
        self.assertEqual(self.findings(), {})
        child.stdin.close()
        child.wait(60)
        child = self.hold("client1", "lock=131072", before=less)
        pid = self.pid_below(child, "holder.py")
        found = self.only("locked-memory-full")
        self.assertEqual(found["evidence"],
                         f"a program of client1 (process {pid}) has 128K locked, and may have 128K")
        if capable(CAP_SYS_RESOURCE):
            self.mended(found)


if __name__ == "__main__":
    base.main()
