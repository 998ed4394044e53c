#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio-nvme as a user types it, on a cluster of three hosts."""
import json
import os
import random
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "cli"))
import base  # noqa: E402

NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")


class Usage(base.CommandTest):
    def nvme(self, *args, status):
        done = subprocess.run([NVME, *args], capture_output=True, text=True, timeout=60,
                              env=self.env, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def refuses(self, *args, say, status=2):
        done = self.nvme(*args, status=status)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("smartio-nvme: "), done.stderr)
        self.assertIn(say, done.stderr)

    def test_help(self):
        text = self.nvme("--help", status=0).stdout
        for command in ("manager", "identify", "read", "write", "copy-in", "copy-out", "bench", "smart",
                        "errors", "queues", "leases", "zero", "trim", "verify", "format"):
            self.assertIn(f"\n  {command} ", text)
            own = self.nvme(command, "--help", status=0).stdout
            self.assertIn(f"usage: smartio-nvme {command} DEVICE", own)
        self.assertIn("smartio-nvme ", self.nvme("--version", status=0).stdout)

    def test_usage(self):
        self.refuses(say="a command is missing")
        self.refuses("frobnicate", say="there is no command frobnicate")
        self.refuses("identify", say="identify needs a DEVICE")
        self.refuses("identify", "a", "b", say="b is one argument too many")
        self.refuses("identify", "nvme0", "--depth", "3", say="does not know the option --depth")
        self.refuses("bench", "nvme0", "--depth", say="--depth needs a value")
        for wrong in ("4x", "256Mb", "-1", "", "1.5K", "99999999999999999999", "20000000T", "0"):
            self.refuses("bench", "nvme0", "--count", wrong, say=f"--count {wrong}:")
        self.refuses("bench", "nvme0", "--depth", "70000", say="a number from 1 to 65534")
        self.refuses("bench", "nvme0", "--seconds", "0", say="--seconds 0")
        self.refuses("bench", "nvme0", "--hybrid=0", say="--hybrid 0: a number from 1 to 4294967295")
        self.refuses("bench", "nvme0", "--queues", "65", say="--queues 65: a number from 1 to 64")
        self.refuses("bench", "nvme0", "--survive", "perhaps", say="--survive perhaps: on or off")
        self.refuses("copy-in", "nvme0", say="copy-in needs a FILE")
        self.refuses("copy-out", "nvme0", "x", say="copy-out needs --length BYTES")

        for wrong in ("x", "-1", "", "1e9"):
            self.refuses("identify", "nvme0", f"--wait={wrong}", say=f"--wait={wrong}: seconds")

    def test_no_cluster(self):
        for args in (["identify", "nvme0"], ["manager", "nvme0"], ["bench", "nvme0"],
                     ["manager", "nvme0", "--background"]):
            self.refuses(*args, status=1, say="no connection to this host's smartiod")


TWO = """cluster: two
hosts:
  lender: {devices: {nvme0: {type: nvme, namespaces: [{size: 1M}, {size: 2M, block: 4096}]}}}
  client1:
"""


class Namespaces(base.CommandTest):
    """Of a drive with several, one is chosen by --namespace."""

    def nvme(self, *args, **more):
        return self.smartio("run", "-n", "client1", "--", NVME, *args, **more)

    def test_two(self):
        self.smartio("cluster", "up", self.file("two.yaml", TWO))
        self.nvme("manager", "nvme0", "--background")
        data = json.loads(self.nvme("identify", "nvme0", "--json").stdout)["data"]
        self.assertEqual(data["namespaces"], [{"id": 1, "block_size": 512, "blocks": "0x800"},
                                              {"id": 2, "block_size": 4096, "blocks": "0x200"}])
        self.assertIn("namespace 2     512 blocks of 4096 bytes, 2.0 MiB\n", self.nvme("identify", "nvme0").stdout)
        for nsid, text in (("1", "one"), ("2", "two")):
            name = self.file(text, text * 1000)
            self.nvme("copy-in", "nvme0", name, "--namespace", nsid)
        for nsid, text in (("1", "one"), ("2", "two")):
            done = self.nvme("read", "nvme0", "-n", nsid, "--length", "3000")
            self.assertEqual(done.stdout, text * 1000)
        self.nvme("zero", "nvme0", "-n", "2", "--length", "4096", "--yes")
        self.assertEqual(self.nvme("read", "nvme0", "-n", "1", "--length", "3").stdout, "one")
        self.assertEqual(self.nvme("read", "nvme0", "-n", "2", "--length", "3").stdout, "\0" * 3)
        done = self.nvme("read", "nvme0", "-n", "2", "--length", "3M", status=1)
        self.assertIn("ends at 2097152", done.stderr)
        self.nvme("bench", "nvme0", "-n", "2", "-c", "100", "--timeout", "5000")


PATHS = """cluster: paths
switches: [red, blue]
hosts:
  lender: {adapters: [{to: red}, {to: blue}], devices: {nvme0: {type: nvme, size: 1M}}}
  client1: {adapters: [{to: red}, {to: blue}]}
"""


class Paths(base.CommandTest):
    def test_a_manager_says_that_it_has_come_back(self):
        self.smartio("cluster", "up", self.file("paths.yaml", PATHS))
        manager = self.start("run", "-n", "client1", "--", NVME, "manager", "nvme0")
        ready = "ready: nvme0 has 31 queue pairs for clients\n"
        self.assertEqual(manager.stdout.readline(), ready)
        self.smartio("fault", "link", "client1.0", "down")
        # Nobody else has borrowed the drive: its lender may have reset it by then.
        self.assertRegex(manager.stdout.readline(),
                         "^lost its path to nvme0, and came back over another, (clients keep|after a reset)")
        self.assertEqual(manager.stdout.readline(), ready)
        self.smartio("run", "-n", "lender", "--", NVME, "bench", "nvme0", "-c", "10")


class Live(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.state = self.up()
        self.manager = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0")
        line = self.manager.stdout.readline()
        self.assertEqual(line, "ready: nvme0 has 31 queue pairs for clients\n")

    def nvme(self, *args, node="client1", status=0, **more):
        return self.smartio("run", "-n", node, "--", NVME, *args, status=status, **more)

    def nvme_json(self, *args, **more):
        return json.loads(self.nvme(*args, **more).stdout)["data"]

    def refuses(self, *args, say, **more):
        done = self.nvme(*args, status=1, **more)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("smartio-nvme: "), done.stderr)
        self.assertIn(say, done.stderr)

    def test_identify(self):
        text = self.nvme("identify", "nvme0").stdout
        self.assertIn("lender          node 4\nmanager         node 12\n", text)
        info = self.nvme_json("identify", "0x4f4093", "--json", node="lender")
        self.assertEqual(info["queue_pairs"], 31)
        self.assertEqual(info["namespaces"],
                         [{"id": 1, "block_size": 512, "blocks": "0x8000"}])

    def test_copies(self):
        data = random.Random(1).randbytes(3_000_001)
        with open(os.path.join(self.dir, "in"), "wb") as f:
            f.write(data)
        out = os.path.join(self.dir, "out")
        # The bytes around a copy stay: the drive is full of 0xff before.
        fill = os.path.join(self.dir, "fill")
        with open(fill, "wb") as f:
            f.write(b"\xff" * 4_000_256)
        self.nvme("copy-in", "nvme0", fill, "--offset", "1M")
        self.nvme("copy-in", "nvme0", f.name.replace("fill", "in"), "--offset", "1M")
        self.nvme("copy-out", "nvme0", out, "--offset", "1M", "--length", "3000200",
                  node="lender")
        with open(out, "rb") as f:
            self.assertTrue(f.read() == data + b"\xff" * 199)
        # As streams, with one chunk in flight, and a part of the file.
        state = ["run", "-n", "client1", "--", NVME]
        with open(os.path.join(self.dir, "in"), "rb") as f:
            subprocess.run([base.TOOL, *state, "write", "nvme0", "-d1", "-s", "512", "-l", "777777"],
                           stdin=f, env=self.env, check=True, timeout=60)
        done = subprocess.run([base.TOOL, *state, "read", "nvme0", "-s", "512", "-l", "777777"],
                              env=self.env, check=True, timeout=60, capture_output=True)
        self.assertTrue(done.stdout == data[:777777])

    def test_copies_refuse(self):
        short = self.file("short", "x" * 1000)
        self.refuses("copy-in", "nvme0", "/no/such", say="cannot open /no/such: No such file")
        self.refuses("copy-in", "nvme0", short, "-s", "100", say="not a multiple of the block size")
        self.refuses("copy-in", "nvme0", short, "-s", "16776704", say="there is room for 512")
        self.refuses("copy-in", "nvme0", short, "-l", "2000", say="has only 1000 of 2000 bytes")
        self.refuses("copy-in", "nvme0", short, "-d", "65", say="1 to 64")
        self.refuses("copy-out", "nvme0", "/no/such/x", "-l", "1", say="cannot open /no/such/x")
        self.refuses("copy-out", "nvme0", "/dev/full", "-l", "1", say="No space left on device")
        self.refuses("read", "nvme0", "-l", "17M", say="ends at 16777216")
        self.refuses("read", "nvme0", "-n", "2", "-l", "1", say="nvme0 has no namespace 2")
        self.refuses("identify", "nvme1", say="nvme1")

    def test_bench(self):
        for more in ([], ["--random"], ["--write"], ["--random", "--write"]):
            r = self.nvme_json("bench", "nvme0", "-c", "2000", "-d", "8", "--json",
                                     "--counters", *more)
            self.assertEqual(r["completed"], 2000)
            self.assertEqual(r["fabric"]["commands_write" if "--write" in more
                                         else "commands_read"], hex(2000))
            self.assertGreater(r["iops"], 0)
            order = [r["latency_ns"][k] for k in ("min", "p50", "p99", "p99.9", "max")]
            self.assertEqual(order, sorted(order))
        # What the fabric carries for one aligned 4 KiB read alone, from near and from far.
        for node in ("lender", "client1"):
            r = self.nvme_json("bench", "nvme0", "-c", "500", "--random", "--json",
                                     "--counters", node=node)
            f = {k: int(v, 16) for k, v in r["fabric"].items()}
            self.assertEqual([f["rd_req"], f["rd_cpl"], f["rd_bytes"]], [500, 500, 500 * 64])
            self.assertEqual([f["wr_tlp"], f["wr_bytes"]], [500 * 17, 500 * 4112])
            self.assertEqual(f["faults"], 0)
        # The same by interrupt: one message for each command, 4 bytes more; nothing is polled.
        for node in ("lender", "client1"):
            r = self.nvme_json("bench", "nvme0", "-c", "500", "--interrupt", "--json",
                                     "--counters", node=node)
            f = {k: int(v, 16) for k, v in r["fabric"].items()}
            self.assertEqual([r["completed"], f["commands_read"], f["msg"]], [500, 500, 500])
            self.assertEqual([f["wr_tlp"], f["wr_bytes"], f["faults"]], [500 * 18, 500 * 4116, 0])
            self.assertLessEqual(r["driver"]["interrupts"], 501)  # one may be of the warm-up
            self.assertGreater(r["driver"]["interrupts"], 0)
            self.assertLessEqual(r["driver"]["empty_polls"], 1002)
        r = self.nvme_json("bench", "nvme0", "-c", "5000", "-d", "32", "--interrupt",
                                 "--random", "--json")
        self.assertEqual(r["completed"], 5000)
        self.hybrid()
        r = self.nvme_json("bench", "nvme0", "-c", "2000", "-d", "8", "--survive", "on", "--write", "--json")
        self.assertEqual([r["driver"][k] for k in ("renewals", "resent", "unsure")], [0, 0, 0])
        self.assertEqual(r["completed"], 2000)
        r = self.nvme_json("bench", "nvme0", "-c", "2000", "-d", "8", "--share", "--random", "--json")
        self.assertEqual(r["completed"], 2000)
        r = self.nvme_json("bench", "nvme0", "-c", "200", "-d", "8", "--share", "--interrupt", "--json")
        self.assertEqual(r["completed"], 200)
        self.assertGreater(r["driver"]["interrupts"], 0)
        self.refuses("bench", "nvme0", "--multipath", say="is the only one that leads to nvme0")
        # Several submission queues of one completion queue: each command is told of once, by one vector.
        for more in ([], ["--interrupt"]):
            r = self.nvme_json("bench", "nvme0", "-c", "2000", "-d", "10", "--queues", "4", "--warmup", "0", "--random",
                               "--json", "--counters", *more)
            self.assertEqual([r["queues"], r["completed"], r["driver"]["submitted"], r["driver"]["completed"]],
                             [4, 2000, 2000, 2000])
            f = {k: int(v, 16) for k, v in r["fabric"].items()}
            self.assertEqual([f["commands_read"], f["rd_bytes"], f["faults"]], [2000, 2000 * 64, 0])
            self.assertLessEqual(r["driver"]["doorbells_cq"], 2000)
        self.assertIn("  in 3 submission queues, which complete in one completion queue\n",
                      self.nvme("bench", "nvme0", "-c", "10", "-d", "3", "--queues", "3").stdout)
        self.refuses("bench", "nvme0", "--queues", "2", say="2 submission queues need a depth of as many commands, not 1")
        self.refuses("bench", "nvme0", "--queues", "2", "-d", "2", "--survive", "on", say="a queue that survives")
        self.refuses("bench", "nvme0", "--queues", "32", "-d", "32", say="no queue pairs left")
        text = self.nvme("bench", "nvme0", "-t", "0.1").stdout
        self.assertIn("longest time without a completion: ", text)
        self.assertIn("sequential reads, 4096 bytes, depth 1", text)
        self.refuses("bench", "nvme0", "-b", "1000", say="not a multiple of the block size")
        self.refuses("bench", "nvme0", "-b", "2M", say="in one command")
        self.refuses("bench", "nvme0", "-s", "16M", say="have no room for one command")

    def test_looks(self):
        text = self.nvme("smart", "nvme0").stdout
        self.assertIn("temperature       40 C\n", text)
        self.assertIn("spare             100 %, at least 10 %\n", text)
        self.assertEqual(self.nvme("errors", "nvme0").stdout, "no command has failed\n")
        self.assertEqual(self.nvme("leases", "nvme0").stdout, "nobody has a lease\n")
        self.assertEqual(self.nvme("queues", "nvme0").stdout,
                         "0 of 31 queue pairs are taken\nmanager: node 12; no standby\n")
        child = self.start("run", "-n", "client2", "--", NVME, "bench", "nvme0", "-t", "60", "--progress")
        child.stderr.readline()
        self.assertEqual(self.nvme("queues", "nvme0").stdout,
                         "1 of 31 queue pairs are taken\n    1  node 12   smartio-nvme\n"
                         "manager: node 12; no standby\n")
        self.refuses("format", "nvme0", "--yes", say="and clients have queue pairs of nvme0: node 12: 1 (smartio-nvme)")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(60), 0)
        child = self.start("run", "-n", "client2", "--", NVME, "bench", "nvme0", "-t", "60", "-d", "3", "--queues", "3",
                           "--progress")
        child.stderr.readline()
        self.assertEqual(self.nvme("queues", "nvme0").stdout,
                         "3 of 31 queue pairs are taken\n    1  node 12   smartio-nvme\n"
                         "    2  node 12   smartio-nvme, completes in the queue of 1\n"
                         "    3  node 12   smartio-nvme, completes in the queue of 1\n"
                         "manager: node 12; no standby\n")
        self.assertEqual([e["completion_queue"] for e in self.nvme_json("queues", "nvme0", "--json")["taken"]], [1, 1, 1])
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(60), 0)

    def test_erasing(self):
        """Nothing is destroyed that was not meant; and nothing but what was."""
        path = self.file("in", "x" * 8192)
        out = os.path.join(self.dir, "out")
        self.nvme("copy-in", "nvme0", path, "-s", "1M")
        for command in ("zero", "trim"):
            self.refuses(command, "nvme0", "-s", "1M", "-l", "4K", stdin=subprocess.DEVNULL,
                         say="this destroys 4096 bytes from 1048576 on of namespace 1 of nvme0: give --yes")
        self.refuses("format", "nvme0", stdin=subprocess.DEVNULL, say="this destroys all of namespace 1")
        self.nvme("verify", "nvme0", "-l", "16M")
        self.nvme("copy-out", "nvme0", out, "-s", "1M", "-l", "8K")
        with open(out, encoding="ascii") as f:
            self.assertEqual(f.read(), "x" * 8192)
        self.assertEqual(self.nvme("zero", "nvme0", "-s", "1M", "-l", "1K", "--yes").stdout,
                         "zeroed: 1024 bytes of namespace 1 of nvme0\n")
        self.nvme("trim", "nvme0", "-s", "1050624", "-l", "512", "-y")
        self.nvme("copy-out", "nvme0", out, "-s", "1M", "-l", "8K")
        with open(out, encoding="ascii") as f:
            self.assertEqual(f.read(), "\0" * 1024 + "x" * 1024 + "\0" * 512 + "x" * 5632)
        self.refuses("format", "nvme0", "--yes", "-f", "7", say="invalid format")
        error = self.nvme_json("errors", "nvme0", "--json")["errors"][0]
        self.assertEqual((error["queue"], error["text"]), (0, "invalid format"))
        self.nvme("format", "nvme0", "--yes", "-f", "1")
        self.assertEqual(self.nvme_json("identify", "nvme0", "--json")["namespaces"],
                         [{"id": 1, "block_size": 4096, "blocks": "0x1000"}])

    def test_pairs_are_waited_for(self):
        """31 benchmarks hold all pairs: who holds them is said, and one that ends lets another in."""
        holders = [self.start("run", "-n", "lender", "--", NVME, "bench", "nvme0", "-t", "60", "--progress")
                   for _ in range(31)]
        for h in holders:
            h.stderr.readline()  # I/O runs
        self.refuses("bench", "nvme0", "-c", "1",
                     say="no queue pairs left: the 31 of nvme0 are held by node 4: 31 (smartio-nvme)")
        waiter = self.start("run", "-n", "client1", "--", NVME, "bench", "nvme0", "-c", "1", "--wait=60", "--json")
        self.assertIn("waiting for a queue pair for up to 60 s", waiter.stderr.readline())
        holders[7].send_signal(signal.SIGINT)
        out, err = waiter.communicate(timeout=60)
        self.assertEqual((waiter.returncode, err), (0, ""))
        self.assertEqual(json.loads(out)["data"]["completed"], 1)
        for h in holders:
            h.send_signal(signal.SIGINT)
        for h in holders:
            self.assertEqual(h.wait(60), 0)

    def hybrid(self):
        """Waits that poll first, and sleep then: by what they measure, and for a given time."""
        for more in ([], ["-d", "8", "--queues", "2"], ["--share"]):
            r = self.nvme_json("bench", "nvme0", "-c", "2000", "--hybrid", "--warmup", "0", "--json", *more)
            self.assertEqual(r["completed"], 2000)
            self.assertGreater(r["driver"]["waits_slept"], 0)  # to measure
            self.assertGreater(r["driver"]["waits_polled"], 0)
        # A second that a wait polls: none sleeps, and all interrupts are left.
        r = self.nvme_json("bench", "nvme0", "-c", "500", "--hybrid=1000000", "--json", "--counters")
        self.assertEqual([r["completed"], r["driver"]["waits_slept"], r["driver"]["interrupts"]], [500, 0, 0])
        self.assertEqual(int(r["fabric"]["msg"], 16), 500)
        self.assertIn("  waits: ", self.nvme("bench", "nvme0", "-c", "10", "--hybrid=1").stdout)

    def test_bench_is_interrupted(self):
        child = self.start("run", "-n", "client1", "--", NVME, "bench", "nvme0", "-t", "60",
                           "--progress", "--json")
        child.stderr.readline()  # I/O runs
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0)
        self.assertGreater(json.loads(out)["data"]["completed"], 0)

    def test_standby(self):
        """The manager is killed: the standby serves, and another can stand by for it."""
        standby = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0", "--standby")
        self.assertEqual(standby.stdout.readline(), "standby: the manager of nvme0 is on node 12\n")
        said = self.nvme_json("manager", "nvme0", "--standby", "--background", "--json")
        self.assertEqual((said["state"], said["queue_pairs"], said["manager"]), ("standby", 0, 12))
        self.assertEqual(self.nvme_json("queues", "nvme0", "--json")["standbys"],
                         [{"node": node, "program": "smartio-nvme"} for node in (4, 8)])
        os.kill(said["process"], signal.SIGKILL)
        base.wait_gone(said["process"])
        self.assertIn("standby: node 4 (smartio-nvme)\n", self.nvme("queues", "nvme0").stdout)
        self.kill_manager()
        self.assertRegex(standby.stdout.readline(), r"^took over nvme0 from node 12 in [0-9.]+ ms, "
                         r"clients keep their queues\n$")
        self.assertEqual(standby.stdout.readline(), "ready: nvme0 has 31 queue pairs for clients\n")
        self.assertIn("manager: node 4; no standby\n", self.nvme("queues", "nvme0", "--wait=0").stdout)
        self.nvme("bench", "nvme0", "-c", "10")
        # The same by SIGTERM, which leaves the drive to the next one as it is.
        third = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0", "--standby")
        self.assertEqual(third.stdout.readline(), "standby: the manager of nvme0 is on node 4\n")
        standby.send_signal(signal.SIGTERM)
        self.assertEqual(standby.wait(60), 0)
        self.assertEqual(standby.stdout.readline(), "nvme0 is left to the standby manager\n")
        self.assertRegex(third.stdout.readline(), "^took over nvme0 from node 4 in [0-9.]+ ms, clients keep their queues\n$")
        third.send_signal(signal.SIGTERM)
        self.assertEqual(third.wait(60), 0)

    def counter(self, name):
        rows = json.loads(self.smartio("stats", "--json").stdout)["data"]["devices"]
        return int(rows[0]["counters"][name], 16)

    def test_others_are_served_beside_a_format(self):
        """The drive takes minutes; the manager hears requests, and SIGTERM, meanwhile."""
        self.smartio("fault", "device", "nvme0", "delay", "--queue", "0", "--opcode", "0x80", "--time", "600000")
        format_ = self.start("run", "-n", "client1", "--", NVME, "format", "nvme0", "--yes", "--format=1")
        while self.counter("faults_asked_for") == 0:
            self.assertIsNone(format_.poll())
        done = self.nvme("read", "nvme0", "--length", "512", node="client2", status=1)
        self.assertRegex(done.stderr, "nvme0 carries out admin command 0x80 of node [0-9]+: clients can have "
                         "queue pairs and leases when it is done")
        self.assertIn("manager: node 12", self.nvme("queues", "nvme0", node="client2").stdout)
        self.assertIn("temperature", self.nvme("smart", "nvme0", node="client2").stdout)
        self.manager.send_signal(signal.SIGTERM)
        self.assertEqual(self.manager.wait(60), 0)
        self.assertEqual(format_.wait(60), 1)
        self.assertRegex(format_.stderr.read(), "no manager serves nvme0|ended before it answered")

    def kill_manager(self):
        """The program itself: what it was started by ends with it."""
        for pid, words in base.processes_with("XDG_RUNTIME_DIR", self.dir):
            if words.startswith(NVME) and words.strip().endswith("manager nvme0"):
                os.kill(pid, signal.SIGKILL)
        self.manager.wait(60)

    def test_manager_ends(self):
        self.refuses("manager", "nvme0", say="another manager (node 12) serves nvme0")
        self.manager.send_signal(signal.SIGTERM)
        self.assertEqual(self.manager.wait(60), 0)
        # What is advised works where the client was started, among other clusters, too.
        self.up("other")
        done = self.smartio("--cluster", "test", "run", "-n", "client1", "--", NVME, "identify",
                            "nvme0", "--wait=0", status=1)
        said, hint = done.stderr.strip().split(" with: ")
        self.assertEqual(said, "smartio-nvme: no manager serves nvme0; start one")
        done = subprocess.run(hint, shell=True, env=self.env, check=True, stdout=subprocess.PIPE,
                              text=True)
        pid = int(done.stdout.split("process ")[1])
        self.smartio("--cluster", "test", "run", "-n", "client1", "--", NVME, "identify", "nvme0")
        os.kill(pid, signal.SIGTERM)
        base.wait_gone(pid)
        self.smartio("cluster", "down", "other")
        once = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0", "--once")
        self.assertIn("ready", once.stdout.readline())
        self.nvme("bench", "nvme0", "-c", "10")
        self.assertEqual(once.wait(60), 0)


class Waiting(base.CommandTest):
    """A client need not be started after its manager."""
    def setUp(self):
        super().setUp()
        self.state = self.up()

    def nvme(self, *args, node="client1", status=0):
        return self.smartio("run", "-n", node, "--", NVME, *args, status=status)

    def test_one_comes(self):
        """The client that has waited for a second says so; then the manager is started."""
        client = self.start("run", "-n", "client1", "--", NVME, "identify", "nvme0", "--wait=60")
        line = client.stderr.readline()
        hint = re.fullmatch("smartio-nvme: waiting for a manager for up to 59 s more "
                            r"\(no manager serves nvme0; start one with: (.*)\)\n", line).group(1)
        self.assertEqual(hint, f"{base.TOOL} --cluster test run -n client1 -- {NVME} manager "
                         "nvme0 --background")
        # As pasted.
        subprocess.run(["bash", "-c", hint], env=self.env, check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        out, err = client.communicate(timeout=60)
        self.assertEqual((client.returncode, err), (0, ""))
        self.assertIn("manager         node 8\n", out)

    def test_the_hint_of_a_program_with_a_strange_name(self):
        """In a folder whose name a shell would take apart."""
        folder = os.path.join(self.dir, "it's $(a) place")
        os.mkdir(folder)
        program = os.path.join(folder, "smartio-nvme")
        os.symlink(os.path.abspath(NVME), program)
        done = self.smartio("run", "-n", "client1", "--", program, "identify", "nvme0", "--wait=0", status=1)
        hint = re.search(r"start one with: (.*)\n", done.stderr).group(1)
        subprocess.run(["bash", "-c", hint], env=self.env, check=True, timeout=60, stdout=subprocess.DEVNULL)
        self.nvme("identify", "nvme0")

    def test_a_name_that_no_device_has(self):
        """The names that there are now stand beside it: nvme0 is none while it is out of its slot."""
        error = "smartio-nvme: no device is called \"{}\" in cluster test now; {}\n"
        self.assertEqual(self.nvme("identify", "nvme9", status=1).stderr, error.format("nvme9", "there are: nvme0"))
        self.smartio("fault", "device", "nvme0", "out")
        self.assertEqual(self.nvme("identify", "nvme0", status=1).stderr, error.format("nvme0", "there is none"))

    def test_many_names(self):
        """Of more than fit in the text the first ones."""
        names = [f"{i:02}".replace("0", "o") for i in range(20)]
        devices = ", ".join(f"d{'x' * 20}{n}: {{ type: nvme, size: 1M }}" for n in names)
        self.smartio("cluster", "down")
        self.smartio("cluster", "up", self.file("many.yaml", "cluster: many\nhosts:\n  client1: { ram: 16M, devices: "
                                                             f"{{ {devices} }} }}\n"))
        error = self.nvme("identify", "nvme9", status=1).stderr
        self.assertRegex(error, r"there are: d[x\w]{22}(, d[x\w]{22}){9}, \.\.\.\n$")

    def test_seconds_behind_a_blank(self):
        for args in (("nvme0", "--wait", "10"), ("--wait", "10", "nvme0")):
            done = self.nvme("identify", *args, status=2)
            self.assertIn("one argument too many; seconds stand behind a '=', as --wait=10", done.stderr)

    def test_side_by_side(self):
        """As a shell starts them, `manager &` and at once a client; again and again, for it is a race."""
        for _ in range(5):
            manager = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0", "--once")
            self.assertEqual(self.nvme("bench", "nvme0", "-c", "1").stderr, "")
            self.assertEqual(manager.wait(60), 0)

    def test_none_comes(self):
        done = self.nvme("identify", "nvme0", "--wait=0.1", status=1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = self.nvme("identify", "nvme0", "--wait=1.1", status=1)
        self.assertRegex(done.stderr, r"^smartio-nvme: waiting for .*\nsmartio-nvme: no manager.*\n$")

    def background(self, *more):
        done = self.nvme("manager", "nvme0", "--background", *more, node="client2")
        self.assertRegex(done.stdout, r"^ready: nvme0 has 31 queue pairs for clients; process \d+\n$")
        self.assertEqual(done.stderr, "")
        return int(done.stdout.split()[-1])

    def test_background(self):
        """The command ends when it serves; without a word to wait for, a client is served."""
        pid = self.background()
        self.assertEqual(os.getsid(pid), pid)
        self.assertEqual([os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)],
                         ["/dev/null"] + 2 * [f"{self.state}/nvme-manager.nvme0.log"])
        self.nvme("bench", "nvme0", "-c", "10", "--wait=0")
        done = self.nvme("manager", "nvme0", "--background", status=1)
        self.assertEqual(done.stderr, "smartio-nvme: another manager (node 12) serves nvme0\n")
        # In order: the drive is shut down, and its memory is not left to the next manager.
        os.kill(pid, signal.SIGTERM)
        base.wait_gone(pid)
        self.assertEqual(self.json("device", "list")["devices"][0]["quarantined"], 0)
        self.nvme("identify", "nvme0", "--wait=0", status=1)
        done = json.loads(self.nvme("manager", "nvme0", "--background", "--json", node="client2").stdout)
        self.assertEqual((done["schema"], done["data"]["queue_pairs"]), ("smartio/nvme-manager", 31))
        failed = json.loads(self.nvme("manager", "nvme0", "--background", "--json", status=1).stdout)
        self.assertEqual(failed["schema"], "smartio/error")
        os.kill(done["data"]["process"], signal.SIGTERM)
        base.wait_gone(done["data"]["process"])
        pid = self.background("--once")
        self.nvme("bench", "nvme0", "-c", "10", "--wait=0")
        base.wait_gone(pid)

    def test_background_logs(self):
        pid = self.background()
        self.smartio("fault", "device", "nvme0", "out")
        base.wait_gone(pid)
        with open(f"{self.state}/nvme-manager.nvme0.log", encoding="utf-8") as f:
            self.assertIn("smartio-nvme: nvme0 or its host is gone", f.read())
        self.smartio("fault", "device", "nvme0", "in")

    def test_background_ends_with_the_cluster(self):
        pid = self.background()
        self.smartio("cluster", "down")
        base.wait_gone(pid, 0)

    def managers(self):
        """Processes of smartio-nvme itself, by their parents'."""
        return {int(base.status_of(pid, "PPid")): pid
                for pid, words in base.processes_with("XDG_RUNTIME_DIR", self.dir) if words.startswith(NVME)}

    def test_nobody_waits_for_the_background(self):
        """Whose command is killed before the manager serves wants no manager: it ends."""
        lender = self.pid_of(self.state, "smartiod.4")
        os.kill(lender, signal.SIGSTOP)  # so it cannot serve yet
        command = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0", "--background")
        while len(found := self.managers()) < 2:
            os.sched_yield()
        (parent, child), = ((parent, pid) for parent, pid in found.items() if parent in found.values())
        os.kill(parent, signal.SIGKILL)
        base.wait_gone(parent)
        os.kill(lender, signal.SIGCONT)
        base.wait_gone(child)
        self.assertEqual(command.wait(60), 128 + signal.SIGKILL)
        self.nvme("identify", "nvme0", "--wait=0", status=1)


if __name__ == "__main__":
    base.main()
