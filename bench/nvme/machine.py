# SPDX-License-Identifier: BSD-2-Clause
"""What is measured, as processes: a live cluster, the bare loop, and the two round trips."""
import contextlib
import json
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time

QUIET = 0.05  # a window is undisturbed if others had less of the processors' time
DISK = 64 << 20  # bytes of the drive that are read, as the bare loop's disk
TOPOLOGY = """\
cluster: bench
switches: [sw0]
hosts:
  lender:
    ram: 256M
    iommu: on
    devices:
      nvme0: {type: nvme, size: 64M, block: 512, queue_pairs: 64}
  manager: {ram: 256M}
  client1: {ram: 256M, iommu: on}
  client2: {ram: 256M}
  client3: {ram: 256M}
"""


FILED = """\
      nvme1: {type: nvme, size: 64M, block: 512, queue_pairs: 64, file: "%s"}
"""


class Failed(Exception):
    """The text is for the user."""


class Worker:
    """A process that takes a line and answers with one."""

    def __init__(self, command, what, **more):
        self.what = what
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, **more)
        line = self.process.stdout.readline().split()
        if not line or line[0] != "ready":
            self.fail()
        self.pid = int(line[1])

    def fail(self):
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        raise Failed(f"{self.what}: {self.errors.read().strip() or 'ended'}")

    def send(self, command, *numbers):
        try:
            self.process.stdin.write(" ".join([command, *map(str, numbers)]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            self.fail()
        return json.loads(line)

    def ask(self, command, *numbers):
        self.send(command, *numbers)
        return self.receive()

    def end(self):
        """At the end of its input it gives back what it has."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def pin(pid, cpu):
    """All threads of a process."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {cpu})


class Priority:
    """
    Of the measured processes, if --nice asks for one. Linux weighs sessions first (autogroup), so
    those are set too: the machine room's, and this one's, which is put back at the end.
    """

    def __init__(self, nice):
        self.nice, self.now, self.own = nice, {}, None
        if nice:
            with open("/proc/self/autogroup", encoding="ascii") as f:
                self.own = int(f.read().split()[-1])

    def set(self, pids, device, on):
        """@device: a process of another session, or None."""
        if not self.nice:
            return
        for pid in pids + [device] * (device is not None):
            if self.now.get(pid, False) != on:
                os.setpriority(os.PRIO_PROCESS, pid, self.nice if on else 0)
                self.now[pid] = on
        if device is not None and self.now.get("device") != (device, on):
            self.group(device, self.nice if on else 0)
            self.now["device"] = (device, on)
        if self.now.get("own", False) != on:
            self.group("self", self.nice if on else self.own)
            self.now["own"] = on

    def end(self):
        if self.now.get("own"):
            self.group("self", self.own)

    @staticmethod
    def group(pid, nice):
        with open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as f:
            f.write(str(nice))


def cpu_ns(pid):
    """Processor time that all threads of a process have had, exactly."""
    total = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
    except OSError:
        pass  # it ended between the look and the reading
    return total


def usage(pid):
    """How long the first thread of a process ran, and was ready to run while something else did."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        ran, waited, _ = map(int, f.read().split())
    return {"ran": ran, "waited": waited}


# Seconds before a window in which all parties run already. Who sleeps when it is sent its line, or its first command, may
# have to wait until another program's slice ends, 4 ms with a clock of 250 Hz; who polls has its processor.
WARM_UP = 0.008


class Window:
    """When to begin, what to count, when to end: the same instants for every process."""

    def __init__(self, seconds, clients, tail=0.0):
        # And what it takes to send every client its line.
        self.begin = time.monotonic_ns() + int((WARM_UP + 0.001 * clients) * 1e9)
        self.end = self.begin + int(seconds * 1e9)
        self.stop = self.end + int(tail * 1e9)
        self.seconds = seconds

    def numbers(self):
        return self.begin, self.end, self.stop


def measure(clients, emu, depth, length, cpus, seconds, disk, tail=0.0):
    """
    One window of random reads by all of @clients, workers pinned to cpus[0], out of the first @disk
    bytes of a drive; @emu, its machine room, is pinned to cpus[1].
    """
    pin(emu, cpus[1])
    for w in clients:
        pin(w.pid, cpus[0])
        w.ask("open", depth, length)
    before = usage(emu)
    window = Window(seconds, len(clients), tail)
    for w in clients:
        w.send("run", depth, length, *window.numbers(), disk)
    answers = [w.receive() for w in clients]
    after = usage(emu)
    return Result(answers, window, length, {k: after[k] - before[k] for k in after},
                  cpus[0] == cpus[1])


class Cluster:
    """
    Five hosts, a drive, its manager; clients as they are asked for. @files: and nvme1, in a file.
    @apart: the machine room is in a session of its own, which its clients are not in.
    """

    def __init__(self, build, priority, files=False, apart=False):
        self.build, self.priority = build, priority
        self.tool = os.path.join(build, "tools", "smartio")
        self.worker = os.path.join(build, "bench", "nvme", "bench-nvme-worker")
        nvme = os.path.join(build, "drivers", "nvme-user", "smartio-nvme")
        for path in (self.tool, self.worker, nvme):
            if not os.access(path, os.X_OK):
                raise Failed(f"{path} is not there: build first (make), then --build DIR")
        self.dir = tempfile.mkdtemp(prefix="sio-bench-")
        self.state = os.path.join(self.dir, "state")
        self.managers, self.emu, self.workers = [], None, []
        try:
            topology = os.path.join(self.dir, "bench.yaml")
            with open(topology, "w", encoding="ascii") as f:
                more = FILED % os.path.join(self.dir, "nvme1") if files else ""
                f.write(TOPOLOGY.replace("  manager:", more + "  manager:"))
            self.smartio("cluster", "up", topology, start_new_session=apart)
            with open(os.path.join(self.state, "emu.pid"), encoding="ascii") as f:
                self.emu = int(f.read())
            for drive in ("nvme0", "nvme1") if files else ("nvme0",):
                self.managers.append(subprocess.Popen(self.on("manager", nvme, "manager", drive),
                                                      stdout=subprocess.PIPE, text=True))
                if "ready" not in self.managers[-1].stdout.readline():
                    raise Failed("the drive's manager ended")
        except BaseException:
            self.down()
            raise

    def on(self, node, *command):
        return [self.tool, "--state", self.state, "run", "-n", node, "--", *command]

    def smartio(self, *args, check=True, **more):
        done = subprocess.run([self.tool, "--state", self.state, *args], capture_output=True,
                              text=True, check=False, **more)
        if check and done.returncode:
            raise Failed(f"smartio {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def client(self, node, wrap=(), session=False, drive="nvme0"):
        """@session: in one of its own, which the machine room is not in."""
        w = Worker(self.on(node, *wrap, self.worker, "client", drive), f"client on {node}",
                   start_new_session=session)
        self.workers.append(w)
        return w

    def end(self, workers):
        for w in workers:
            self.workers.remove(w)
            w.end()

    @contextlib.contextmanager
    def frozen(self):
        """While something else is measured the machine room does not even take naps."""
        os.kill(self.emu, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.emu, signal.SIGCONT)

    def counters(self):
        """What the fabric and the model have counted at the drive."""
        for device in json.loads(self.smartio("stats", "--json"))["data"]["devices"]:
            if device["name"] == "nvme0":
                return {k: int(v, 16) for k, v in device["counters"].items()}
        raise Failed("smartio stats does not know nvme0")

    def processes(self):
        """Every process of the cluster: its state folder is in the command line or environment."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    text = f.read()
                with open(f"/proc/{name}/environ", "rb") as f:
                    text += f.read()
            except OSError:
                continue
            if self.state.encode() in text:
                found.append(int(name))
        return found

    def measure(self, clients, depth, length, cpus, seconds, tail=0.0):
        """One window of I/O by all of @clients, pinned to cpus[0], the drive to cpus[1]."""
        self.priority.set([w.pid for w in clients], self.emu,
                          len(clients) == 1 and cpus[0] != cpus[1])
        return measure(clients, self.emu, depth, length, cpus, seconds, DISK, tail)

    def down(self):
        for w in list(self.workers):
            self.end([w])
        for manager in self.managers:
            manager.send_signal(signal.SIGTERM)
            try:
                manager.wait(timeout=10)
            except subprocess.TimeoutExpired:
                manager.kill()
                manager.wait()
            manager.stdout.close()
        if os.path.isdir(self.state):
            self.smartio("cluster", "down", check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


class Bare:
    """
    The bare loop: a device and its clients, processes too. @sessions 2: the device is in a session
    of its own. Linux divides a session's weight by how many of its threads want each processor: this
    matters where both sides share one, and where thirty clients do and the device has the other.
    """

    HEADER, CLIENT = 4096, 4096 + (2 << 20) + (256 * 64 + 256 * 16)  # as in bare.h
    LOOKS_APART, LOOKS_SHARED = 5000, 1  # empty looks before each yield; the best of those tried

    def __init__(self, build, clients, priority, sessions=1):
        worker = os.path.join(build, "bench", "nvme", "bench-nvme-worker")
        self.priority, self.sessions = priority, sessions
        size = self.HEADER + clients * self.CLIENT
        fd = os.memfd_create("bench-bare")
        os.ftruncate(fd, size)
        self.memory = mmap.mmap(fd, self.HEADER)
        self.clients, self.device = [], None
        try:
            self.device = Worker([worker, "bare-device", str(fd), str(clients)], "bare device",
                                 pass_fds=[fd], start_new_session=sessions == 2)
            for i in range(clients):
                self.clients.append(Worker([worker, "bare-client", str(fd), str(clients), str(i)],
                                           f"bare client {i}", pass_fds=[fd]))
        except BaseException:
            self.down()
            raise
        finally:
            os.close(fd)

    def measure(self, clients, depth, length, cpus, seconds, tail=0.0):
        shared = cpus[0] == cpus[1]
        looks = [self.LOOKS_SHARED if shared else self.LOOKS_APART,
                 self.LOOKS_SHARED if shared or clients > 1 else self.LOOKS_APART]
        some = self.clients[:clients]
        pin(self.device.pid, cpus[1])
        self.priority.set([w.pid for w in [self.device, *some]], None,
                          clients == 1 and not shared)
        for w in some:
            pin(w.pid, cpus[0])
        self.memory[0:12] = b"".join(n.to_bytes(4, "little") for n in [0, *looks])
        self.device.send("serve", clients)
        window = Window(seconds, clients, tail)
        for w in some:
            w.send("run", depth, length, *window.numbers())
        answers = [w.receive() for w in some]
        self.memory[0:4] = (1).to_bytes(4, "little")
        device = self.device.receive()
        return Result(answers, window, length, device, shared)

    def down(self):
        if self.device:
            self.memory[0:4] = (1).to_bytes(4, "little")
            self.device.end()
        for w in self.clients:
            w.end()
        self.memory.close()


class Result:
    """What one window gave."""

    def __init__(self, answers, window, length, device, shared):
        self.answers = answers
        self.count = sum(a["count"] for a in answers)
        self.rate = self.count / window.seconds
        self.bytes = self.rate * length
        self.buckets = {}
        for a in answers:
            for value, n in a["buckets"]:
                self.buckets[value] = self.buckets.get(value, 0) + n
        self.min = min((a["min"] for a in answers if a["count"]), default=0)
        self.max = max(a["max"] for a in answers)
        # Clients never sleep: whatever they (and the device beside them) did not have, others had.
        took = max(a["at"] + a["took"] for a in answers) - min(a["at"] for a in answers)
        lost = took - sum(a["ran"] for a in answers)
        lost += -device["ran"] if shared else device["waited"]
        self.lost = max(0.0, lost / took)
        self.disturbed = self.lost > QUIET
        shares = [a["count"] for a in answers]
        mean = self.count / len(shares)
        self.spread = max((abs(s - mean) for s in shares), default=0) / mean if mean else 1.0

    def percentile(self, share):
        return percentile(self.buckets, share)


def percentile(buckets, share):
    """The value in nanoseconds that @share of all are not above."""
    total, seen = sum(buckets.values()), 0
    for value in sorted(buckets):
        seen += buckets[value]
        if seen >= share * total:
            return value
    return 0
