#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio fault as a user types it, under programs that see what it does."""
import os
import signal
import sys
import base

PROGRAM = sys.argv.pop(1)
NAME = os.path.basename(PROGRAM)[:15]  # as the kernel has it


class Fault(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.state = self.up()

    def program(self, host, *words):
        """A program on a host, that is ready."""
        child = self.start("run", "-n", host, "--", PROGRAM, *words)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def pair(self):
        """One offers memory on the lender, the other one has it mapped on client1. Its process, too."""
        far = self.program("lender", "export")
        near = self.program("client1", "import", "4")
        pids = [pid for pid, words in base.processes_with("XDG_RUNTIME_DIR", self.dir)
                if words.startswith(f"{PROGRAM} import ")]
        self.assertEqual(len(pids), 1)
        return far, near, pids[0]

    def tell(self, child, line):
        child.stdin.write(line + "\n")
        child.stdin.flush()

    def asked(self, child, line):
        self.tell(child, line)
        return child.stdout.readline().strip()

    def heard(self, child):
        return child.stdout.readline().strip()

    def end(self, *children):
        for child in children:
            child.stdin.close()
            self.assertEqual(child.wait(60), 0)

    # ---- waiting for programs ----

    def test_it_waits_for_programs(self):
        """When the command returns, mappings read as ones, or as what there is."""
        far, near, _ = self.pair()
        self.assertEqual(self.asked(near, "write 7"), "stored")
        for _ in range(3):
            done = self.smartio("fault", "link", "client1", "down")
            self.assertEqual((done.stdout, done.stderr), ("", ""))
            self.assertEqual(self.heard(near), "event down")
            self.assertEqual(self.asked(near, "read"), "255")
            self.assertEqual(self.json("fault", "link", "client1", "up")["late"], [])
            self.assertEqual(self.heard(near), "event up")
            self.assertEqual(self.asked(near, "read"), "7")
        self.end(near, far)

    def test_stopped_program(self):
        """It is named, and after it goes on it is not."""
        far, near, pid = self.pair()
        os.kill(pid, signal.SIGSTOP)
        done = self.smartio("fault", "link", "client1", "down", "--wait", "1", status=3)
        self.assertRegex(done.stdout, rf"\AHOST +PID +PROGRAM\nclient1 +{pid} +{NAME}\n\Z")
        self.assertRegex(done.stderr, r"\A1 program has not switched within 1 second: ")
        done = self.smartio("fault", "link", "client1", "up", "--wait", "0", "--json", status=3)
        self.assertEqual(self.document(done.stdout)["late"],
                         [{"host": "client1", "node": 8, "pid": pid, "name": NAME}])
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.smartio("fault", "link", "client1", "up").stdout, "")
        self.assertEqual([self.heard(near), self.heard(near)], ["event down", "event up"])
        self.assertEqual(self.asked(near, "read"), "0")
        self.end(near, far)

    def test_what_ends_the_wait(self):
        """A program that goes on, or dies, is waited for no longer."""
        far, near, pid = self.pair()
        for number, state in ((signal.SIGCONT, "down"), (signal.SIGKILL, "up")):
            os.kill(pid, signal.SIGSTOP)
            waits = self.start("fault", "link", "client1", state, "--wait", "50")
            with self.assertRaises(base.subprocess.TimeoutExpired):
                waits.wait(0.5)
            os.kill(pid, number)
            self.assertEqual(waits.wait(40), 0)
            self.assertEqual(waits.stdout.read(), "")
        near.wait(60)
        self.end(far)

    def test_no_wait(self):
        far, near, pid = self.pair()
        os.kill(pid, signal.SIGSTOP)
        done = self.smartio("fault", "switch", "sw0", "down", "--no-wait")
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        self.assertNotIn("late", self.json("fault", "switch", "sw0", "up", "--no-wait"))
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.smartio("fault", "switch", "sw0", "up").stdout, "")
        self.end(near, far)

    def test_device_waits(self):
        """Programs of other hosts know of a device's end by its host's daemon."""
        far = self.program("lender", "export")
        holder = self.start("run", "-n", "client1", "--", sys.executable,
                            os.path.join(base.HERE, "holder.py"), "borrow=0x4f4093")
        self.assertEqual(holder.stdout.readline(), "ready\n")
        self.assertEqual(self.smartio("fault", "device", "nvme0", "out").stdout, "")
        self.assertEqual(self.json("fault", "device", "nvme0", "in")["late"], [])
        self.end(holder, far)

    def test_silent_daemon(self):
        daemon = self.pid_of(self.state, "smartiod.8")
        os.kill(daemon, signal.SIGSTOP)
        done = self.smartio("fault", "link", "client2", "down", status=3, env={"SMARTIO_TIMEOUT": "1"})
        os.kill(daemon, signal.SIGCONT)
        self.assertIn("host 'client1' does not answer: whether its programs have switched is not known", done.stderr)
        self.smartio("fault", "link", "client2", "up")

    def test_bad_waits(self):
        for text in ("x", "-1", "", "3601", "1s"):
            self.fails("fault", "link", "client1", "down", "--wait", text, status=2,
                       say=f"--wait {text}: seconds, up to 3600, are right")


if __name__ == "__main__":
    base.main()
