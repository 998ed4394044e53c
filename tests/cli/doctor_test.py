#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each state that `smartio doctor` knows, brought about: of clusters on a live one, whose programs are
killed and whose parts are pulled out; of machines in a made tree of /proc and /sys."""
import ctypes
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

HOLDER = os.path.join(base.HERE, "holder.py")
NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")
DRIVE = 0x401
OK, WARNING, BAD = 0, 1, 2

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


# System calls of x86-64.
SYSINFO, PRCTL, SECCOMP, MEMFD_CREATE, USERFAULTFD, PIDFD_OPEN = 99, 157, 317, 319, 323, 434
PR_SET_NO_NEW_PRIVS, SECCOMP_SET_MODE_FILTER = 38, 1


def forbid(calls):
    """From now on these fail with EPERM, here and in what is executed."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, equal, give = 0x20, 0x15, 0x06  # BPF: LD|W|ABS, JMP|JEQ|K, RET|K
    code = [(load, 0, 0, 0)]
    code += [(equal, len(calls) - i, 0, call) for i, call in enumerate(calls)]
    code += [(give, 0, 0, 0x7fff0000), (give, 0, 0, 0x00050000 | errno.EPERM)]
    text = b"".join(struct.pack("<HBBI", *c) for c in code)
    place = ctypes.create_string_buffer(text)
    program = struct.pack("<H6xQ", len(code), ctypes.addressof(place))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(SECCOMP, SECCOMP_SET_MODE_FILTER, 0, program):
        raise OSError(ctypes.get_errno(), "seccomp")


class Examined(base.CommandTest):
    def findings(self, *options, status=None, **more):
        """What is wrong, or to be noted: by state. Each has cause, evidence and what mends it."""
        done = self.smartio("doctor", "--json", *options, status=status, **more)
        data = self.document(done.stdout)
        wrong = [f for f in data["findings"] if f["verdict"] in ("warning", "bad")]
        for f in wrong:
            for key in ("title", "cause", "evidence", "mend"):
                self.assertTrue(f[key], f)
            self.assertNotRegex(f["mend"], r"\{[\w-]+\}", f)
            self.assertEqual(subprocess.run(["sh", "-n", "-c", f["mend"]], check=False).returncode, 0, f)
        expected = {f["verdict"] for f in wrong}
        self.assertEqual(data["verdict"], "bad" if "bad" in expected else
                         "warning" if "warning" in expected else "ok")
        self.assertEqual(done.returncode, BAD if "bad" in expected else
                         WARNING if "warning" in expected else OK)
        return {f["state"]: f for f in wrong}

    def only(self, state, *options, **more):
        """Exactly this is wrong: its finding."""
        found = self.findings(*options, **more)
        self.assertEqual(list(found), [state], found)
        return found[state]

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


class OneCluster(Examined):
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
            s.send(struct.pack("<8I", 32, 1, 1, 0, version, version, os.getpid(), 1))
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


class Resources(Examined):
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


class Machines(Examined):
    """Real devices and figures, in a made tree. In it nothing is wrong, until something is."""

    BDF = "0000:05:00.0"
    OTHER = "0000:05:00.1"
    DEVICE = f"sys/bus/pci/devices/{BDF}"
    CPU = "sys/devices/system/cpu"
    CLOCK = "sys/devices/system/clocksource/clocksource0"
    THP = "sys/kernel/mm/transparent_hugepage"

    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.dir, "root")
        version = self.smartio("--version").stdout.split()[1]
        files = {
            "etc/group": f"root:x:0:\nsmartio:x:{os.getegid()}:\n",
            "dev/smartio0": "",
            "proc/cmdline": "quiet ro root=/dev/sda1\n",
            "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme constant_tsc\n",
            "proc/meminfo": "MemTotal: 8000000 kB\nHugePages_Total:       0\nHugePages_Free:        0\n",
            "proc/stat": "cpu  1000 0 1000 100000 0 0 0 10 0 0\ncpu0 1000 0 1000 100000 0 0 0 10 0 0\n",
            "sys/module/smartio/version": f"{version}\n",
            "sys/module/smartio/parameters/pool": "(null)\n",
            f"{self.DEVICE}/class": "0x010802\n",
            f"{self.DEVICE}/driver_override": "smartio\n",
            "sys/bus/pci/drivers/smartio/bind": "",
            "sys/bus/pci/drivers/nvme/bind": "",
            "sys/kernel/iommu_groups/3/type": "DMA\n",
            f"sys/kernel/iommu_groups/3/devices/{self.BDF}": "",
            f"{self.CLOCK}/current_clocksource": "tsc\n",
            f"{self.CLOCK}/available_clocksource": "tsc hpet acpi_pm \n",
            f"{self.CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
            f"{self.CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
            f"{self.CPU}/intel_pstate/no_turbo": "1\n",
            f"{self.THP}/enabled": "always [madvise] never\n",
            f"{self.THP}/shmem_enabled": "always within_size [advise] never deny force\n",
        }
        for path, text in files.items():
            self.put(path, text)
        self.link(f"{self.DEVICE}/driver", "../../drivers/smartio")
        self.link(f"{self.DEVICE}/iommu_group", "../../../../kernel/iommu_groups/3")

    def put(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)

    def link(self, path, target):
        path = os.path.join(self.root, path)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(target, path)

    def remove(self, path):
        path = os.path.join(self.root, path)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def look(self):
        return self.findings("--root", self.root, "--hardware", "--measure")

    def is_only(self, state, evidence, mend):
        found = self.look()
        self.assertEqual(list(found), [state], found)
        self.assertIn(evidence, found[state]["evidence"])
        self.assertIn(mend, found[state]["mend"])

    def test_healthy(self):
        self.assertEqual(self.look(), {})
        self.put("proc/cpuinfo", "flags : fpu hypervisor\n")
        self.assertEqual(self.findings("--root", self.root), {}, "figures were not asked for")

    def test_nothing_is_meant(self):
        """A machine without the module and devices for it: none of its states applies."""
        self.remove("sys/module")
        self.remove("sys/kernel/iommu_groups")
        self.put(f"{self.DEVICE}/driver_override", "(null)\n")
        self.assertEqual(self.findings("--root", self.root), {})
        self.assertIn("module-missing", self.look())

    def test_module_missing(self):
        self.remove("sys/module")
        self.is_only("module-missing", "no /sys/module/smartio", "sudo modprobe smartio")

    def test_module_version(self):
        self.put("sys/module/smartio/version", "0.0.9\n")
        self.is_only("module-version", "smartio.ko is 0.0.9, this is smartio ", "sudo rmmod smartio")
        self.remove("sys/module/smartio/version")
        self.is_only("module-version", "tells no version", "sudo rmmod smartio")

    def test_node_missing(self):
        self.remove("dev/smartio0")
        self.is_only("node-missing", "there is no /dev/smartio0", "udevadm trigger")

    def test_group(self):
        self.put("etc/group", "root:x:0:\nsmart:x:7:\n")
        self.is_only("no-group", "there is no group smartio", "sudo groupadd --system smartio")

    @unittest.skipIf(os.geteuid() == 0, "root needs no group")
    def test_not_a_member(self):
        self.put("etc/group", "smartio:x:12345:\n")
        self.is_only("no-group", "are not in group smartio", "sudo usermod -a -G smartio $USER")

    def test_iommu_off(self):
        self.remove("sys/kernel/iommu_groups")
        self.remove(f"{self.DEVICE}/iommu_group")
        self.put("proc/meminfo", "HugePages_Total: 512\nHugePages_Free: 500\n")
        self.is_only("iommu-off", "/sys/kernel/iommu_groups is empty", "intel_iommu=on")

    def test_iommu_passthrough(self):
        self.put("sys/kernel/iommu_groups/3/type", "identity\n")
        self.is_only("iommu-passthrough", f"{self.BDF}: IOMMU group 3 is of type identity",
                     f"device add {self.BDF}")
        # Before a device is given to the module, its kernel's default tells.
        self.put("sys/kernel/iommu_groups/3/type", "DMA\n")
        self.put("proc/cmdline", "ro iommu=pt quiet\n")
        self.assertEqual(self.look(), {}, "the group of its device is translated")
        self.put(f"{self.DEVICE}/driver_override", "(null)\n")
        self.link(f"{self.DEVICE}/driver", "../../drivers/nvme")
        found = self.look()
        self.assertEqual(sorted(found), ["iommu-passthrough", "no-device"])
        self.assertIn("iommu=pt", found["iommu-passthrough"]["evidence"])

    def test_iommu_shared(self):
        self.put(f"sys/kernel/iommu_groups/3/devices/{self.OTHER}", "")
        self.is_only("iommu-shared", f"{self.BDF} is in one IOMMU group with {self.OTHER}",
                     f"lspci -D -s {self.BDF}")

    def test_other_driver(self):
        self.link(f"{self.DEVICE}/driver", "../../drivers/nvme")
        self.is_only("other-driver", f"{self.BDF} is meant for smartio, and driver nvme has it",
                     f"smartio device add {self.BDF}")
        self.remove(f"{self.DEVICE}/driver")
        self.is_only("other-driver", "no driver has it", f"smartio device add {self.BDF}")

    def test_no_device(self):
        self.put(f"{self.DEVICE}/driver_override", "(null)\n")
        self.link(f"{self.DEVICE}/driver", "../../drivers/nvme")
        self.is_only("no-device", f"drive {self.BDF}", f"smartio device add {self.BDF}")
        self.put(f"{self.DEVICE}/class", "0x020000\n")
        self.is_only("no-device", "the module has no device", "lspci -D")

    def test_no_hugepages(self):
        self.put("proc/meminfo", "HugePages_Total: 512\nHugePages_Free: 0\n")
        self.is_only("no-hugepages", "all 512 huge pages are in use", "sysctl vm.nr_hugepages=")
        self.remove("sys/kernel/iommu_groups")
        self.put("proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\n")
        self.assertEqual(sorted(self.look()), ["iommu-off", "no-hugepages"])
        self.put("sys/module/smartio/parameters/pool", "0x40000000@0x100000000\n")
        self.assertEqual(sorted(self.look()), ["iommu-off"])

    def test_clocksource(self):
        self.put(f"{self.CLOCK}/current_clocksource", "hpet\n")
        self.is_only("clocksource", "hpet; there are tsc hpet acpi_pm",
                     "echo tsc | sudo tee /sys/devices/system/clocksource/")
        self.put(f"{self.CLOCK}/available_clocksource", "hpet acpi_pm \n")
        self.is_only("clocksource", "hpet", "tsc=reliable")

    def test_frequency(self):
        self.put(f"{self.CPU}/cpu1/cpufreq/scaling_governor", "powersave\n")
        self.is_only("frequency", "1 of 2 processors change their frequency (governor powersave of cpu1)",
                     "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq")

    def test_turbo(self):
        self.put(f"{self.CPU}/intel_pstate/no_turbo", "0\n")
        self.is_only("turbo", "no_turbo is 0", "echo 1 | sudo tee")
        self.remove(f"{self.CPU}/intel_pstate")
        self.put(f"{self.CPU}/cpufreq/boost", "1\n")
        self.is_only("turbo", "boost is 1", "echo 0 | sudo tee")

    def test_shared_processors(self):
        self.put("proc/stat", "cpu  1000 0 1000 100000 0 0 0 1000 0 0\n")
        self.is_only("stolen-time", "1000 of 103000 ticks since boot were stolen", "vmstat")
        self.put("proc/stat", "cpu  1000 0 1000 100000 0 0 0 1 0 0\n")
        self.put("proc/cpuinfo", "flags : fpu hypervisor\n")
        self.is_only("shared-processors", "flag 'hypervisor'", "systemd-detect-virt")
        self.put("sys/hypervisor/type", "xen\n")
        self.is_only("shared-processors", "hypervisor xen", "systemd-detect-virt")

    def test_small_pages(self):
        self.put(f"{self.THP}/shmem_enabled", "always within_size advise [never] deny force\n")
        self.is_only("small-pages", "[never]", "shmem_enabled")


class ThisMachine(Examined):
    def test_module_has_our_version(self):
        with open(os.path.join(base.HERE, "../../shim/port.c"), encoding="utf-8") as f:
            self.assertEqual(re.search(r'^MODULE_VERSION\("(.*?)"\)', f.read(), re.M)[1],
                             self.smartio("--version").stdout.split()[1])

    @unittest.skipIf(os.path.exists("/sys/module/smartio"), "real devices are used here")
    def test_hardware_without_module(self):
        found = self.findings("--hardware", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_MEMLOCK, (65536, 65536)))
        self.assertLessEqual({"module-missing", "few-locked-memory", "daemon-dead"}, set(found))
        self.assertIn("64K a program", found["few-locked-memory"]["evidence"])
        self.assertEqual(found["daemon-dead"]["mend"], "sudo smartiod --shim")

    def test_each_state_has_its_test(self):
        known = {f["state"] for f in self.json("doctor")["findings"]}
        text = ""
        for name in ("doctor_test.py", "usage_test.py", "../system/wake_test.py"):
            with open(os.path.join(base.HERE, name), encoding="utf-8") as f:
                text += f.read()
        self.assertEqual([s for s in sorted(known) if not re.search(rf"[\"+ ]{s}[\" ]", text)], [])

    def test_long_path(self):
        path = os.path.join(self.dir, "x" * 80)
        os.mkdir(path, 0o700)
        found = self.only("long-path", env={"XDG_RUNTIME_DIR": path})
        self.assertIn("a socket's path may have 107", found["evidence"])

    def forbidden(self, *calls):
        """What is found where the kernel has not these system calls, as in some containers."""
        return self.findings(preexec_fn=lambda: forbid(calls))

    @unittest.skipUnless(os.uname().machine == "x86_64", "numbers of system calls")
    def test_containers(self):
        for state, call, say in [("no-sealing", MEMFD_CREATE, "not permitted"),
                                 ("no-pidfd", PIDFD_OPEN, "pidfd_open: "),
                                 ("no-subreaper", PRCTL, "PR_SET_CHILD_SUBREAPER: "),
                                 ("little-memory", SYSINFO, "0, 0 of it free")]:
            with self.subTest(state=state):
                found = self.forbidden(call)
                self.assertEqual(list(found), [state])
                self.assertIn(say, found[state]["evidence"])
        done = self.smartio("doctor", preexec_fn=lambda: forbid([USERFAULTFD]))
        self.assertRegex(done.stdout, r"\Anote +no-faults +userfaultfd: ")

    @unittest.skipIf(os.geteuid(), "root alone unmounts")
    def test_no_proc(self):
        # A sanitizer reads its options there, and looks for leaks by what else is there.
        script = ("mount -t tmpfs none /proc && mkdir /proc/self && "
                  f"printf 'ASAN_OPTIONS=detect_leaks=0\\0' >/proc/self/environ && exec {base.TOOL} doctor")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script],
                              env=self.env, capture_output=True, text=True, check=False)
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, BAD, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^BAD +no-proc +/proc does not show our processes$")

    def test_place_of_another(self):
        os.mkdir(self.base, 0o700)
        os.chmod(self.base, 0o777)
        self.assertIn("can be written to by others", self.only("no-permission")["evidence"])
        os.chmod(self.base, 0o700)


if __name__ == "__main__":
    base.main()
