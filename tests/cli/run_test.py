#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs on hosts: as if the command were not there, until the host, or the command, dies."""
import os
import pty
import re
import resource
import select
import signal
import sys
import base

# A daemon made by the book: double fork, new session, all of its parents gone.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sys.stdout.write(f"{os.getpid()}\\n")
        sys.stdout.flush()
        for fd in (0, 1, 2):
            os.close(fd)
        time.sleep(1000)
    os._exit(0)
os.wait()
"""

# A signal that comes just before it waits for input must not wait for that, as a handler of Python's would.
TERMINAL = """
import os, select, signal, sys
def interrupted(*_):
    print("interrupt", flush=True)
signal.signal(signal.SIGINT, interrupted)
told, tell = os.pipe()
os.set_blocking(tell, False)
signal.set_wakeup_fd(tell)
print("tty", sys.stdin.isatty(), "foreground", os.tcgetpgrp(0) == os.getpgrp(), "ready", flush=True)
while 0 not in (ready := select.select([0, told], [], [])[0]):
    os.read(told, 1)
print("read", sys.stdin.readline(), "end", flush=True)
sys.exit(3)
"""


class Run(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.state = self.up()

    def run_on(self, *command, node="client1", **more):
        return self.smartio("run", "-n", node, "--", *command, **more)

    def test_as_without(self):
        self.assertEqual(self.run_on("cat", input="some words").stdout, "some words")
        done = self.run_on("sh", "-c", "echo out; echo err >&2; exit 42", status=42)
        self.assertEqual((done.stdout, done.stderr), ("out\n", "err\n"))
        self.assertEqual(self.run_on("pwd", cwd="/usr").stdout, "/usr\n")
        self.assertEqual(self.run_on("sh", "-c", "echo $0", "a b").stdout, "a b\n")
        self.assertEqual(self.smartio("run", "-n", "client1", "echo", "-n", "x").stdout, "x")
        self.run_on("sh", "-c", "kill -TERM $$", status=128 + signal.SIGTERM)
        self.run_on("sh", "-c", "kill -SEGV $$", status=128 + signal.SIGSEGV)

    def test_has_all_descriptors_that_it_may(self):
        soft, hard = 256, 1024
        done = self.run_on("sh", "-c", "ulimit -n", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (soft, hard)))
        self.assertEqual(done.stdout, f"{hard}\n")

    def test_environment(self):
        out = self.run_on("sh", "-c", "echo $SMARTIO_STATE; echo $SMARTIO_SOCKET; echo $SMARTIO_NODE",
                          node="12").stdout
        self.assertEqual(out.splitlines(), [self.state, f"{self.state}/node.12", "client2"])

    def test_cannot_be_run(self):
        self.assertIn("'/no/such' cannot be run: No such file", self.run_on(
            "/no/such", status=127).stderr)
        self.assertIn("cannot be run: Permission denied", self.run_on("/etc", status=126).stderr)
        self.fails("run", "-n", "moon", "--", "true", say=["no host 'moon'", "client1"])
        self.fails("run", "-n", "5", "--", "true", say="no host '5'")

    def test_ends_when_the_program_closes_its_pipe(self):
        child = self.start("run", "-n", "client1", "--", "sh", "-c",
                           "exec >/dev/null; echo closed >&2; read x")
        child.stderr.readline()
        # Nobody but the program held our pipe.
        self.assertEqual(child.stdout.read(), "")
        child.stdin.write("\n")
        child.stdin.flush()
        self.assertEqual(child.wait(60), 0)

    def test_holds_no_descriptor_of_others(self):
        """A descriptor goes to the program; neither command nor keeper nor daemon holds it."""
        end, mine = os.pipe()
        child = self.start("run", "-n", "client1", "--", "sh", "-c",
                           f"echo word >&{mine}; exec {mine}>&-; echo closed >&2; read x",
                           pass_fds=[mine])
        os.close(mine)
        child.stderr.readline()
        with open(end, encoding="ascii") as f:
            self.assertEqual(f.read(), "word\n")
        child.stdin.write("\n")
        child.stdin.flush()
        self.assertEqual(child.wait(60), 0)
        end, mine = os.pipe()
        self.smartio("cluster", "up", self.topology("other"), pass_fds=[mine])
        os.close(mine)
        with open(end, encoding="ascii") as f:
            self.assertEqual(f.read(), "")
        self.smartio("cluster", "down", "other")

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                       signal.SIGUSR2, signal.SIGQUIT):
            child = self.start("run", "-n", "client1", "--", "sh", "-c",
                               f"trap 'echo got; exit 5' {number}; echo ready; read x")
            child.stdout.readline()
            child.send_signal(number)
            self.assertEqual(child.stdout.readline(), "got\n", number)
            self.assertEqual(child.wait(60), 5)

    def test_a_signal_as_the_program_ends(self):
        """The keeper leaves with a signal untaken: the program's exit status comes all the same."""
        child = self.start("run", "-n", "client1", "--", "sh", "-c",
                           "echo $$; read x; exit 5")
        program = int(child.stdout.readline())
        keeper = self.keeper_of(program)
        os.kill(keeper, signal.SIGSTOP)
        child.send_signal(signal.SIGUSR1)
        while base.status_of(child.pid, "ShdPnd") != "0" * 16 or \
                not base.status_of(child.pid, "State").startswith("S"):
            os.sched_yield()  # the signal is not passed on yet
        child.stdin.write("\n")
        child.stdin.flush()
        while not base.status_of(program, "State").startswith("Z"):
            os.sched_yield()
        os.kill(keeper, signal.SIGCONT)
        self.assertEqual(child.wait(60), 5)

    def test_stop_and_go_on(self):
        child = self.start("run", "-n", "client1", "--", "sh", "-c",
                           "trap 'echo stop' TSTP; echo ready; read x || read x; echo $x")
        child.stdout.readline()
        child.send_signal(signal.SIGTSTP)
        # As for a shell: the command itself stops.
        pid, status = os.waitpid(child.pid, os.WUNTRACED)
        self.assertTrue(pid == child.pid and os.WIFSTOPPED(status))
        # Only now: to go on discards a stop that was not taken yet.
        self.assertEqual(child.stdout.readline(), "stop\n")
        child.send_signal(signal.SIGCONT)
        pid, status = os.waitpid(child.pid, os.WCONTINUED)
        self.assertTrue(os.WIFCONTINUED(status))
        child.stdin.write("on\n")
        child.stdin.flush()
        self.assertEqual(child.stdout.readline(), "on\n")
        self.assertEqual(child.wait(60), 0)

    def test_terminal(self):
        """^C reaches the program once, ^Z stops command and program, and the terminal is theirs."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(base.TOOL, [base.TOOL, "run", "-n", "client1", "--", sys.executable, "-c",
                                  TERMINAL], self.env)
        try:
            text = self.until(fd, b"ready")
            self.assertIn(b"tty True foreground True", text)
            os.write(fd, b"\x03")
            self.until(fd, b"interrupt")
            os.write(fd, b"\x1a")
            self.assertTrue(os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]))
            os.killpg(pid, signal.SIGCONT)
            os.write(fd, b"a line\n")
            text = self.until(fd, b"end")
            self.assertIn(b"read a line", text)
            self.assertNotIn(b"interrupt", text)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 3)
        finally:
            os.close(fd)

    def until(self, fd, word):
        text = b""
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while word not in text:
            self.assertTrue(poll.poll(60000), text)
            text += os.read(fd, 1024)
        return text

    def family(self, node="client1"):
        """A program, its child, and a daemon: the command, and the three process numbers."""
        child = self.start("run", "-n", node, "--", "sh", "-c",
                           f"echo $$; sleep 1000 & echo $!; python3 -c '{DAEMON}'; echo; wait")
        # The empty one, before or after the daemon's, is said when who started that has ended.
        lines = [child.stdout.readline().strip() for _ in range(4)]
        return child, [int(line) for line in lines if line]

    def test_host_crashes(self):
        child, pids = self.family()
        other, others = self.family("client2")
        self.crash(self.state, 8)
        for pid in pids:
            base.wait_gone(pid)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 137)
        self.assertRegex(err, r"(?m)^smartio: host client1 is down; killed 3 processes$")
        self.assertIsNone(other.poll())
        for pid in others:
            os.kill(pid, 0)
        other.kill()
        for pid in others:
            base.wait_gone(pid)
        self.smartio("cluster", "restart-node", "client1")

    def test_command_is_killed(self):
        child, pids = self.family()
        child.kill()
        for pid in pids:
            base.wait_gone(pid)

    def keeper_of(self, pid):
        with open(f"/proc/{pid}/environ", encoding="ascii") as f:
            return int(re.search(r"(?:^|\0)SMARTIO_KEEPER=(\d+)", f.read()).group(1))

    def test_keeper_is_killed(self):
        child, pids = self.family()
        os.kill(self.keeper_of(pids[0]), signal.SIGKILL)
        for pid in pids:
            base.wait_gone(pid)
        _, err = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 137)
        self.assertIn("keeper of this program was killed", err)

    def test_what_stays_is_tied_to_the_host(self):
        done = self.run_on("python3", "-c", DAEMON)
        pid = int(done.stdout)
        os.kill(pid, 0)
        keeper = self.keeper_of(pid)
        self.crash(self.state, 8)
        base.wait_gone(pid)
        base.wait_gone(keeper)
        self.smartio("cluster", "restart-node", "client1")

    def test_down_takes_all_along(self):
        child, pids = self.family()
        stays = int(self.run_on("python3", "-c", DAEMON, node="client2").stdout)
        self.smartio("cluster", "down")
        for pid in [*pids, stays]:
            base.wait_gone(pid, 0)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, 137)

    def detach(self, *command, node="client1", log_node=8):
        done = self.smartio("run", "-d", "-n", node, "--", *command)
        pid = int(done.stdout)
        log = f"{self.state}/run.{log_node}.{pid}.log"
        self.assertEqual(done.stderr, f"the output of process {pid} goes to {log}\n")
        return pid, log

    def read(self, path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def test_detached(self):
        """The command returns at once; the program has neither terminal nor input, and a log."""
        os.mkfifo(f"{self.dir}/go")
        pid, log = self.detach("sh", "-c", f"cat; echo out; echo err >&2; read x <{self.dir}/go; exit 3",
                               node="client2", log_node=12)
        self.assertNotEqual(os.getsid(pid), os.getsid(0))
        keeper = self.keeper_of(pid)
        with open(f"{self.dir}/go", "w", encoding="ascii") as f:
            f.write("on\n")
        base.wait_gone(pid)
        base.wait_gone(keeper)
        self.assertEqual(self.read(log), "out\nerr\n"
                         f"smartio: 'sh' (process {pid}) ended with exit status 3\n")

    def test_detached_tells_programs(self):
        said = self.document(self.smartio("--json", "run", "-d", "-n", "client1", "--", "true").stdout)
        self.assertEqual(said["log"], f"{self.state}/run.8.{said['process']}.log")

    def test_the_cluster_is_taken_down_meanwhile(self):
        """Nothing crashed, and nothing says so."""
        child, pids = self.family()
        self.smartio("cluster", "down")
        for pid in pids:
            base.wait_gone(pid)
        _, err = child.communicate(timeout=60)
        self.assertEqual((child.returncode, err), (137, "smartio: host client1 is down; killed 3 processes\n"))

    def test_detached_cannot_be_run(self):
        self.assertIn("'/no/such' cannot be run: No such file", self.smartio(
            "run", "-d", "-n", "client1", "--", "/no/such", status=127).stderr)
        self.assertEqual([f for f in os.listdir(self.state) if f.startswith("run.")], [])
        self.crash(self.state, 8)
        self.assertIn("host 'client1' is down", self.smartio(
            "run", "-d", "-n", "client1", "--", "true", status=1).stderr)

    def test_detached_dies_with_the_host(self):
        pid, log = self.detach("sleep", "1000")
        keeper = self.keeper_of(pid)
        self.crash(self.state, 8)
        base.wait_gone(pid)
        base.wait_gone(keeper)
        self.assertEqual(self.read(log), "smartio: host client1 is down; killed 1 process\n")
        self.smartio("cluster", "restart-node", "client1")
        pid, _ = self.detach("sh", "-c", "trap '' TERM; sleep 1000 & wait")
        self.smartio("cluster", "down")
        base.wait_gone(pid, 0)

    def test_down_from_inside(self):
        done = self.run_on(base.TOOL, "cluster", "down", status=1)
        self.assertIn("from outside", done.stderr)


if __name__ == "__main__":
    base.main()
