#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Clusters: up, down, side by side, stale, interrupted, for one command, and hosts that crash."""
import os
import pty
import select
import signal
import stat
import subprocess
import base


class Cluster(base.CommandTest):
    def test_up_status_down(self):
        done = self.smartio("cluster", "up", self.topology())
        self.assertEqual(done.stdout, "")
        self.assertIn("cluster 'test' is up: 3 hosts, 1 device", done.stderr)
        state = os.path.join(self.base, "test")
        self.assertEqual(os.stat(state).st_mode & 0o777, 0o700)
        status = self.json("cluster", "status")["clusters"]
        self.assertEqual([(c["name"], c["state"]) for c in status], [("test", "running")])
        self.assertEqual([(n["name"], n["node"], n["state"]) for n in status[0]["nodes"]],
                         [("lender", 4, "up"), ("client1", 8, "up"), ("client2", 12, "up")])
        self.assertRegex(self.smartio("cluster", "status").stdout, r"test +running +3/3 +3/3 +1/1 +- +/")
        self.fails("cluster", "up", self.topology(), say=["running already", "cluster down"])
        self.smartio("doctor", "--audit")
        self.smartio("cluster", "down")
        self.assertFalse(os.path.exists(state))
        self.fails("cluster", "down", say="no cluster is running")

    def test_side_by_side(self):
        self.up("one")
        self.up("two")
        self.smartio("cluster", "up", self.topology("one"), "--name", "three")
        self.fails("node", "list", say=["several clusters are running (one, three, two)",
                                        "--cluster NAME"])
        self.fails("cluster", "down", say="several")
        self.assertIn("lender", self.smartio("--cluster", "two", "node", "list").stdout)
        self.assertIn("lender", self.smartio("node", "list", "--cluster", "two").stdout)
        one = os.path.join(self.base, "one")
        self.assertIn("lender", self.smartio("node", "list", env={"SMARTIO_STATE": one}).stdout)
        for name in ("one", "two", "three"):
            self.smartio("--cluster", name, "doctor", "--audit")
        self.smartio("cluster", "down", "two")
        self.smartio("cluster", "down", "three")
        self.assertIn("lender", self.smartio("node", "list").stdout)

    def test_terminal(self):
        """The cluster stays in its starter's session, and out of reach of its terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execve(base.TOOL, [base.TOOL, "cluster", "up", self.topology()], self.env)
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:  # EIO: nobody has the other end open
            pass
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        state = os.path.join(self.base, "test")
        for name in ("emu", "smartiod.4", "smartiod.8", "smartiod.12"):
            daemon = self.pid_of(state, name)
            with self.subTest(name=name), open(f"/proc/{daemon}/stat", encoding="ascii") as f:
                _, _, group, session, tty = f.read().rsplit(")", 1)[1].split()[:5]
                self.assertEqual((int(group), int(session), int(tty)), (daemon, pid, 0))
        os.close(terminal)  # hangs up
        self.smartio("doctor", "--audit")

    def test_own_directory(self):
        state = os.path.join(self.dir, "mine")
        self.smartio("--state", state, "cluster", "up", self.topology())
        self.fails("node", "list", say="no cluster is running")
        self.assertIn("lender", self.smartio("--state", state, "node", "list").stdout)
        self.assertIn("lender", self.smartio("--state", "mine", "node", "list", cwd=self.dir).stdout)
        self.smartio("--state", state, "doctor", "--audit")
        self.smartio("--state", state, "cluster", "down")
        self.assertFalse(os.path.exists(state))

    def kill_all(self, state):
        # The room last: daemons that lose it end in order, and would remove their files.
        for name in ("smartiod.4", "smartiod.8", "smartiod.12", "emu"):
            pid = self.pid_of(state, name)
            os.kill(pid, signal.SIGKILL)
            base.wait_gone(pid)

    def test_stale(self):
        state = self.up()
        self.kill_all(state)
        self.assertEqual(self.json("cluster", "status")["clusters"][0]["state"], "stale")
        self.assertRegex(self.smartio("doctor", status=1).stdout, "(?m)^WARN +stale ")
        done = self.smartio("cluster", "up", self.topology())
        self.assertIn("removed what a cluster that crashed had left", done.stderr)
        self.smartio("doctor", "--audit")
        self.kill_all(state)
        self.assertIn("did not run any more", self.smartio("cluster", "down", "test").stderr)
        self.assertFalse(os.path.exists(state))
        self.up()
        self.kill_all(state)
        self.assertIn("1 cluster", self.smartio("doctor", "--clean").stderr)
        self.assertFalse(os.path.exists(state))

    def test_machines(self):
        """A machine is no host: it has no daemon, and its devices are sockets, also after a crash."""
        topology = self.file("m.yaml", "cluster: m\nhosts:\n  a:\n"
                             "  v: { kind: machine, devices: { disk: { type: nvme, size: 1M } } }\n")
        state = os.path.join(self.base, "m")
        self.assertIn("1 host, 0 devices", self.smartio("cluster", "up", topology).stderr)
        self.assertTrue(stat.S_ISSOCK(os.stat(os.path.join(state, "vfio.disk")).st_mode))
        self.smartio("doctor", "--audit")
        for name in ("smartiod.4", "emu"):
            pid = self.pid_of(state, name)
            os.kill(pid, signal.SIGKILL)
            base.wait_gone(pid)
        self.assertEqual(self.json("cluster", "status")["clusters"][0]["state"], "stale")
        done = self.smartio("cluster", "up", topology)
        self.assertIn("removed what a cluster that crashed had left", done.stderr)
        self.smartio("cluster", "down", "m")
        self.assertFalse(os.path.exists(state))

    def test_joined_machines(self):
        """Machines with adapters: sockets, the file with their RAM, and cables that can be pulled out."""
        topology = self.file("m.yaml", "cluster: m\nswitches: [s]\nhosts:\n  a: { adapters: [] }\n"
                             "  v: { kind: machine, window: mapped, ram: 8M, adapters: [{ to: s, window: 2M }] }\n"
                             "  w: { kind: machine, window: mapped, ram: 8M, adapters: [{ to: s, window: 2M }] }\n")
        state = os.path.join(self.base, "m")
        self.smartio("cluster", "up", topology)
        for name in ("vfio.v.0", "vfio.w.0"):
            self.assertTrue(stat.S_ISSOCK(os.stat(os.path.join(state, name)).st_mode))
        self.assertEqual(os.stat(os.path.join(state, "memory")).st_size, 16 << 20)
        self.smartio("doctor", "--audit")
        self.smartio("fault", "link", "v", "down")
        self.smartio("fault", "link", "8.0", "up")
        self.fails("fault", "link", "w.1", "down", say="host 'w' has no adapter 1; it has 1 from 0 on")
        for name in ("smartiod.4", "emu"):
            pid = self.pid_of(state, name)
            os.kill(pid, signal.SIGKILL)
            base.wait_gone(pid)
        self.smartio("cluster", "up", topology)
        self.smartio("cluster", "down", "m")
        self.assertFalse(os.path.exists(state))

    def test_pid_of_another(self):
        """A pid file whose number is another process's by now is stale, and nobody is killed."""
        state = self.up()
        self.kill_all(state)
        innocent = subprocess.Popen(["sleep", "60"])
        try:
            for name in [n for n in os.listdir(state) if n.endswith(".pid")]:
                with open(os.path.join(state, name), "w", encoding="ascii") as f:
                    f.write(f"{innocent.pid}\n")
            self.assertEqual(self.json("cluster", "status")["clusters"][0]["state"], "stale")
            self.smartio("cluster", "down", "test")
            self.assertIsNone(innocent.poll())
        finally:
            innocent.kill()
            innocent.wait()

    def broken(self, daemon):
        """A directory of programs in which smartiod is this script."""
        path = os.path.join(self.dir, "bin")
        os.mkdir(path)
        room = os.path.join(os.path.dirname(os.path.realpath(base.TOOL)), "..", "emu", "smartio-emu")
        os.symlink(os.path.realpath(room), os.path.join(path, "smartio-emu"))
        script = os.path.join(path, "smartiod")
        with open(script, "w", encoding="ascii") as f:
            f.write(daemon)
        os.chmod(script, 0o755)
        return path

    def test_daemon_that_fails(self):
        path = self.broken("#!/bin/sh\necho one >&2\necho 'smartiod: the reason' >&2\nexit 1\n")
        self.fails("cluster", "up", self.topology(), env={"SMARTIO_BINDIR": path},
                   say=["smartiod.4 did not start", "the reason"])
        self.assertFalse(os.path.exists(os.path.join(self.base, "test")))
        self.assertEqual(base.processes_with("XDG_RUNTIME_DIR", self.dir), [])

    def test_interrupted(self):
        mark = os.path.join(self.dir, "started")
        os.mkfifo(mark)
        path = self.broken(f"#!/bin/sh\necho x >{mark}\nexec sleep 100\n")
        child = self.start("cluster", "up", self.topology(), env={"SMARTIO_BINDIR": path})
        fd = os.open(mark, os.O_RDONLY | os.O_NONBLOCK)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        self.assertTrue(poll.poll(60000), "smartiod was not started")
        os.close(fd)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        self.assertEqual((child.returncode, err), (1, "smartio: interrupted\n"))
        self.assertFalse(os.path.exists(os.path.join(self.base, "test")))

    def test_one_at_a_time(self):
        self.up()
        lock = os.open(os.path.join(self.base, "test"), os.O_RDONLY)
        try:
            __import__("fcntl").flock(lock, __import__("fcntl").LOCK_EX)
            self.fails("cluster", "down", say="another smartio command")
            self.fails("cluster", "restart-node", "client1", say="another smartio command")
        finally:
            os.close(lock)

    def test_restart_node(self):
        state = self.up()
        before = self.smartio("doctor", "--audit").stdout
        self.fails("cluster", "restart-node", "client1", say="host 'client1' is up")
        self.fails("cluster", "restart-node", "moon",
                   say=["no host 'moon'", "lender, client1, client2"])
        self.crash(state, 8)
        self.assertEqual(self.json("cluster", "status")["clusters"][0]["state"], "hosts down")
        self.assertRegex(self.smartio("node", "list").stdout, r"client1 +8 +host +down")
        self.fails("run", "-n", "client1", "--", "true", say="host 'client1' is down")
        self.smartio("doctor", "--audit", "--within", "10")
        self.smartio("cluster", "restart-node", "8")
        audit = os.path.join(self.dir, "before")
        with open(audit, "w", encoding="ascii") as f:
            f.write(before)
        self.smartio("doctor", "--audit", "--within", "10", "--expect", audit)
        self.crash(state, 4)
        self.smartio("cluster", "restart-node", "lender")
        self.smartio("doctor", "--audit", "--within", "10", "--expect", audit)

    def test_power_cut(self):
        state = self.up()
        daemons = [self.pid_of(state, f"smartiod.{n}") for n in (4, 8, 12)]
        room = self.pid_of(state, "emu")
        os.kill(room, signal.SIGKILL)
        for pid in [room, *daemons]:
            base.wait_gone(pid)
        self.fails("cluster", "restart-node", "lender", "--cluster", "test", say="machine room")


class ClusterRun(base.CommandTest):
    def run_command(self, *command, **more):
        return self.smartio("cluster", "run", self.topology(), "--", *command, **more)

    def test_status_and_environment(self):
        done = self.run_command("sh", "-c", f"{base.TOOL} node list; echo $SMARTIO_STATE; exit 7",
                                status=7)
        self.assertIn("client2", done.stdout)
        state = done.stdout.splitlines()[-1]
        self.assertTrue(state.startswith(self.base), state)
        self.assertFalse(os.path.exists(state))
        self.run_command("sh", "-c", "kill -9 $$", status=137)
        self.run_command("/no/such/program", status=127)
        self.run_command(base.TOOL, "doctor", "--audit")

    def test_not_the_default_for_others(self):
        self.run_command("sh", "-c", f"env -u SMARTIO_STATE {base.TOOL} node list", status=1)

    def test_what_is_left_is_killed(self):
        done = self.run_command("sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!")
        base.wait_gone(int(done.stdout), 0)

    def started(self):
        child = self.start("cluster", "run", self.topology(), "--", "sh", "-c",
                           "echo $SMARTIO_STATE $$; exec sleep 100")
        state, pid = child.stdout.readline().split()
        return child, state, int(pid)

    def test_ended_by_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            child, state, pid = self.started()
            child.send_signal(number)
            child.communicate(timeout=60)
            self.assertEqual(child.returncode, 128 + number)
            base.wait_gone(pid, 0)
            self.assertFalse(os.path.exists(state))

    def test_killed(self):
        child, state, pid = self.started()
        guards = [p for p, words in base.processes_with("XDG_RUNTIME_DIR", self.dir)
                  if " cluster run " in words and p != child.pid]
        child.kill()
        child.wait()
        for p in [pid, *guards]:
            base.wait_gone(p)
        self.assertFalse(os.path.exists(state))

    def parts(self, child):
        """The guard (a process group of its own) and the keeper of a running 'cluster run'."""
        found = [p for p, words in base.processes_with("XDG_RUNTIME_DIR", self.dir)
                 if " cluster run " in words and p != child.pid]
        guard = next(p for p in found if os.getpgid(p) == p)
        return guard, next(p for p in found if p != guard)

    def test_guard_is_killed(self):
        """The kernel ends the cluster's programs; the command clears up when its program ends."""
        child, state, pid = self.started()
        programs = [self.pid_of(state, n) for n in ("emu", "smartiod.4", "smartiod.8")]
        os.kill(self.parts(child)[0], signal.SIGKILL)
        for p in programs:
            base.wait_gone(p)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(child.wait(60), 128 + signal.SIGTERM)
        self.assertFalse(os.path.exists(state))

    def test_keeper_is_killed(self):
        child, state, pid = self.started()
        os.kill(self.parts(child)[1], signal.SIGKILL)
        base.wait_gone(pid)
        self.assertEqual(child.wait(60), 137)
        self.assertFalse(os.path.exists(state))

    def test_taken_down_from_inside(self):
        self.run_command(base.TOOL, "cluster", "down")

    def test_restarted_host(self):
        self.run_command("sh", "-e", "-c", f"""
            kill -9 $(cat $SMARTIO_STATE/smartiod.8.pid)
            while {base.TOOL} node list | grep -q 'client1.*up '; do :; done
            {base.TOOL} cluster restart-node client1
            {base.TOOL} run -n client1 -- true""")


if __name__ == "__main__":
    base.main()
