#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio fault as a user types it, under programs that see what it does."""
import os
import signal
import sys
import time
import base

PROGRAM = os.path.abspath(sys.argv.pop(1))
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
        # On a busy machine the other one may not have had its turn.
        self.assertRegex(done.stdout, rf"\AHOST +PID +PROGRAM\n(lender .*\n)?client1 +{pid} +{NAME}\n\Z")
        self.assertRegex(done.stderr, r"\A[12] programs? ha(s|ve) not switched within 1 second: ")
        done = self.smartio("fault", "link", "client1", "up", "--wait", "0", "--json", status=3)
        self.assertIn({"host": "client1", "node": 8, "pid": pid, "name": NAME}, self.document(done.stdout)["late"])
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

    # ---- what fails ----

    def test_errors(self):
        """A sequence says once that what was stored is to be stored again; nothing else happens."""
        far, near, _ = self.pair()
        self.assertEqual(self.asked(near, "check"), "ok")
        for where, count in (("client1", ()), ("lender.0", ("--count", "4"))):
            self.smartio("fault", "link", where, "errors", *count)
            self.assertEqual(self.asked(near, "check"), "retriable")
            self.assertEqual(self.asked(near, "check"), "retriable")
            self.assertEqual(self.asked(near, "start"), "ok")
            self.assertEqual(self.asked(near, "check"), "ok")
        self.smartio("fault", "link", "client2", "errors")  # nothing of theirs goes over it
        self.assertEqual(self.asked(near, "check"), "ok")
        self.assertEqual(self.asked(near, "write 9"), "stored")
        self.assertEqual(self.asked(near, "read"), "9")
        self.end(near, far)

    def test_down_is_not_retriable(self):
        far, near, _ = self.pair()
        self.smartio("fault", "switch", "sw0", "down")
        self.assertEqual(self.heard(near), "event down")
        self.assertEqual(self.asked(near, "check"), "not retriable")
        self.assertRegex(self.asked(near, "dma"), "not copied|error")
        self.smartio("fault", "switch", "sw0", "up")
        self.assertEqual(self.heard(near), "event up")
        self.assertEqual(self.asked(near, "check"), "retriable")
        self.assertEqual(self.asked(near, "start"), "ok")
        self.assertEqual(self.asked(near, "dma"), "copied")
        self.end(near, far)

    def test_delay(self):
        """Of DMA over the link alone, and not any more when it is taken back."""
        def seconds():
            begin = time.monotonic()
            self.assertEqual(self.asked(near, "dma"), "copied")
            return time.monotonic() - begin
        far, near, _ = self.pair()
        self.smartio("fault", "link", "client2", "delay", "--time", "9000")
        self.assertLess(seconds(), 8)
        self.smartio("fault", "link", "client1", "delay", "--time", "300.5")
        self.assertGreaterEqual(seconds(), 0.3)
        self.smartio("fault", "link", "lender", "delay", "--time", "200")
        self.assertGreaterEqual(seconds(), 0.5)
        self.assertEqual(self.asked(near, "write 3"), "stored")
        self.assertEqual(self.json("fault", "link", "client1", "delay", "--time", "0")["delay_ns"], 0)
        self.smartio("fault", "link", "lender", "delay", "--time", "9000")
        self.smartio("fault", "link", "lender", "delay", "--time", "0")
        self.assertLess(seconds(), 8)
        self.end(near, far)

    def test_other_addresses_of_a_link(self):
        """Mappings are invalid; all can be mapped again; whether it was down or not."""
        far, near, _ = self.pair()
        self.assertEqual(self.asked(near, "write 5"), "stored")
        for where in ("client1", "lender"):
            self.smartio("fault", "link", where, "up", "--re-enumerate")
            events = [self.heard(near), self.heard(near)]
            self.assertEqual(events, ["event down", "event lost"])
            self.assertEqual(self.asked(near, "read"), "255")
            self.assertEqual(self.asked(near, "again"), "mapped")
            self.assertEqual(self.asked(near, "read"), "5")
        self.smartio("fault", "link", "client1", "down")
        self.smartio("fault", "link", "client1", "up", "--re-enumerate")
        self.assertEqual([self.heard(near), self.heard(near)], ["event down", "event lost"])
        self.assertEqual(self.asked(near, "again"), "mapped")
        self.assertEqual(self.asked(near, "dma"), "copied")
        self.end(near, far)

    def addresses(self):
        """Of the memory that programs of the lender offer, as its port has it."""
        return [int(s["address"], 16) for s in self.json("segment", "list")["segments"] if s["host"] == "lender"]

    def test_host(self):
        """It crashes; what others had of it is lost; it comes back elsewhere, and all is mapped again."""
        far, near, _ = self.pair()
        before = self.addresses()
        self.assertEqual(self.smartio("fault", "host", "lender", "down").stdout, "")
        self.assertEqual(far.wait(60), 137)
        event = self.heard(near)  # of the link first, or of the daemon's connection
        self.assertEqual(self.heard(near) if event == "event down" else event, "event lost")
        self.assertEqual(self.asked(near, "read"), "255")
        self.smartio("fault", "host", "lender", "down")  # it is already
        self.assertEqual(self.json("fault", "host", "lender", "up", "--other-addresses"),
                         {"host": "lender", "node": 4, "state": "up", "other_addresses": True})
        far = self.program("lender", "export")
        self.assertEqual(self.asked(near, "again"), "mapped")
        self.assertEqual(self.asked(near, "read"), "0")
        self.assertEqual(self.asked(near, "dma"), "copied")
        after = self.addresses()
        self.assertEqual((len(before), len(after)), (1, 1))
        self.assertNotEqual(before, after)
        self.smartio("fault", "host", "client1", "down")
        done = self.smartio("cluster", "reload", status=1)
        self.assertIn("node id 4 has started with other addresses than the file's", done.stderr)
        self.smartio("fault", "host", "client1", "up")
        near.wait(60)
        self.end(far)

    def test_bad_hosts(self):
        self.fails("fault", "host", "nobody", "down", say="nobody")
        self.fails("fault", "host", "client1", "up", say="host 'client1' is up")
        self.fails("fault", "host", "client1", "up", "--other-addresses",
                   say="host client1 is up, and only its next start can find other addresses")
        self.fails("fault", "host", "client1", "down", "--other-addresses", status=2,
                   say="--other-addresses is of 'up' alone")
        self.fails("fault", "host", "client1", "away", status=2, say="'down' or 'up' is right")

    def test_bad_links(self):
        for text in ("0", "x", "1000001"):
            self.fails("fault", "link", "client1", "errors", "--count", text, status=2,
                       say=f"--count {text}: 1 to 1000000 are right")
        self.fails("fault", "link", "client1", "down", "--re-enumerate", status=2, say="--re-enumerate is of 'up' alone")
        self.fails("fault", "link", "client1", "up", "--count", "2", status=2, say="--count is of 'errors' alone")
        self.fails("fault", "link", "client1", "delay", status=2, say="--time is missing: milliseconds up to 10000")
        for text in ("x", "-1", "10001", "1s", "nan"):
            self.fails("fault", "link", "client1", "delay", "--time", text, status=2, say=f"--time {text}: milliseconds")
        self.fails("fault", "link", "client1", "down", "--time", "1", status=2, say="--time is of 'delay' alone")
        self.fails("fault", "link", "client1", "slow", status=2, say="'down', 'up', 'errors' or 'delay' is right")

    def silent(self, node, *words):
        """The document of a command while the daemon of @node is stopped, and what was said."""
        daemon = self.pid_of(self.state, f"smartiod.{node}")
        os.kill(daemon, signal.SIGSTOP)
        done = self.smartio(*words, "--json", status=3, env={"SMARTIO_TIMEOUT": "1"})
        os.kill(daemon, signal.SIGCONT)
        return self.document(done.stdout), done.stderr

    def test_silent_daemon(self):
        """It alone is said not to answer, also where the others are to wait for what it sends."""
        document, said = self.silent(8, "fault", "link", "client2", "down")
        self.assertEqual((document["late"], document["silent"]), ([], ["client1"]))
        self.assertIn("host 'client1' does not answer: whether its programs have switched is not known", said)
        self.assertEqual(self.json("fault", "link", "client2", "up")["silent"], [])
        document, said = self.silent(4, "fault", "device", "nvme0", "out")
        self.assertEqual((document["late"], document["silent"]), ([], ["lender"]))
        self.assertEqual(self.json("fault", "device", "nvme0", "in")["silent"], [])

    def test_bad_waits(self):
        for text in ("x", "-1", "", "3601", "1s"):
            self.fails("fault", "link", "client1", "down", "--wait", text, status=2,
                       say=f"--wait {text}: seconds, up to 3600, are right")


if __name__ == "__main__":
    base.main()
