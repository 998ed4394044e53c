#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Listings, counters and the audit of a cluster on which programs hold things."""
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import base

HOLDER = os.path.join(base.HERE, "holder.py")
NVME = 0x4f4093


class Listing(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.state = self.up()

    def hold(self, node, *words):
        child = self.start("run", "-n", node, "--", sys.executable, HOLDER, *words)
        line = child.stdout.readline()
        if line != "ready\n":
            self.fail(f"holder on {node}: {line}{child.communicate()[1]}")
        return child

    def release(self, child):
        child.stdin.close()
        self.assertEqual(child.wait(60), 0)

    def audit_file(self, *options):
        path = os.path.join(self.dir, "audit")
        with open(path, "w", encoding="ascii") as f:
            f.write(self.smartio("doctor", "--audit", *options).stdout)
        return path

    def counts(self):
        return self.json("doctor", "--audit")["counts"]

    def test_links(self):
        def up(node):
            return [n for n in self.json("node", "list")["nodes"] if n["name"] == node][0]["adapters"][0]
        for bad, say in [("client1.1", "'client1' has no adapter 1; it has 1"),
                         ("client1.x", "the number of an adapter is right"),
                         ("nobody", "nobody")]:
            self.fails("fault", "link", bad, "down", say=say)
        for _ in range(2):
            self.smartio("fault", "link", "client1", "down")
            self.assertEqual(up("client1")["link"], "down")
            self.assertEqual(up("client2")["link"], "up")
            self.smartio("fault", "link", "8.0", "up")
            self.assertEqual(up("client1")["link"], "up")

    def test_device_pulled_out(self):
        """All hosts know of it when the command returns, but those whose cable is out."""
        def borrows(host):
            done = self.smartio("run", "-n", host, "--", sys.executable, HOLDER, f"borrow={NVME}", status=None,
                                stdin=subprocess.DEVNULL)
            return done.returncode == 0

        def has(out, hosts):
            self.assertEqual(self.json("device", "list")["devices"][0]["state"] == "out", out)
            self.assertEqual([borrows(h) for h in hosts], [not out] * len(hosts))
        name = self.json("device", "list")["devices"][0]["name"]
        self.fails("fault", "device", "nobody", "out", say="has no device 'nobody'")
        for word in (name, hex(NVME), str(NVME)):
            self.smartio("fault", "device", word, "out")
            self.smartio("fault", "device", word, "out")
            has(True, ["client1"])
            self.smartio("stats")
            self.smartio("topology")
            self.smartio("fault", "device", word, "in")
            has(False, ["client1"])
        self.smartio("fault", "link", "client1", "down")
        for state in ("out", "in"):
            self.assertEqual(self.smartio("fault", "device", name, state).stderr, "")
            has(state == "out", ["client2"])
        self.assertFalse(borrows("client1"))
        for host in ("client2", "lender"):
            daemon = self.pid_of(self.state, f"smartiod.{self.node(host)}")
            os.kill(daemon, signal.SIGSTOP)
            done = self.smartio("fault", "device", name, "out", status=3, env={"SMARTIO_TIMEOUT": "1"})
            os.kill(daemon, signal.SIGCONT)
            self.assertIn(f"host '{host}' does not answer: whether it knows which devices are there is not known",
                          done.stderr)

    def test_nodes(self):
        nodes = self.json("node", "list")["nodes"]
        self.assertEqual([(n["name"], n["node"], n["state"], n["ram"], n["iommu"], n["devices"])
                          for n in nodes],
                         [("lender", 4, "up", 64 << 20, True, 1),
                          ("client1", 8, "up", 64 << 20, False, 0),
                          ("client2", 12, "up", 64 << 20, False, 0)])
        for n in nodes:
            a = n["adapters"][0]
            self.assertEqual(a["link"], "up")
            self.assertEqual(a["entries_free"], a["entries_total"])
            self.assertEqual(a["requesters_total"] - a["requesters_free"], 2)
        self.hold("client1", "segment=7")
        held = self.hold("client2", "connect=8:7")
        nodes = self.json("node", "list")["nodes"]
        self.assertEqual([n["programs"] for n in nodes], [0, 1, 1])
        a = nodes[2]["adapters"][0]
        self.assertLess(a["entries_free"], a["entries_total"])
        used = a["entries_total"] - a["entries_free"]
        self.assertRegex(self.smartio("node", "list").stdout,
                         rf"(?m)^client2 +12 +host +up +64M +off +1/1 up +2/2 +{used} of {a['entries_total']} +0 +1$")
        self.release(held)

    def test_aligned(self):
        lines = self.smartio("node", "list").stdout.splitlines()
        column = lines[0].index("STATE")
        self.assertEqual({line[column:column + 2] for line in lines[1:]}, {"up"})

    def test_topology(self):
        text = self.smartio("topology").stdout
        for word in ("[sw0]", "lender", "client2", "nvme0", "not lent"):
            self.assertIn(word, text)
        self.crash(self.state, 12)
        self.assertRegex(self.smartio("topology").stdout, "client2 .*DOWN")

    def test_devices(self):
        device = self.json("device", "list")["devices"][0]
        self.assertEqual((device["name"], device["id"], device["host"], device["state"],
                          device["size"], device["class"]),
                         ("nvme0", NVME, "lender", "free", 16 << 20, 0x010802))
        self.assertRegex(self.smartio("device", "list").stdout,
                         r"nvme0 +0x4f4093 +nvme +16M +lender +1/1 up +free +0 +0")
        for name in ("nvme0", "0x4f4093", "5193875"):
            self.assertEqual(self.json("device", "info", name)["id"], NVME)
        self.assertRegex(self.smartio("device", "info", "nvme0").stdout, "class +010802")
        self.fails("device", "info", "nvme1", say=["no device 'nvme1'", "nvme0"])
        self.hold("client1", "segment=7", f"lend={NVME}")
        device = self.json("device", "list")["devices"][0]
        self.assertEqual((device["state"], device["borrowers"]), ("shared", 1))
        self.crash(self.state, 4)
        self.assertRegex(self.smartio("device", "list").stdout, r"lender +- +host down")

    def test_segments(self):
        self.assertEqual(self.json("segment", "list")["segments"], [])
        child = self.hold("client1", "segment=0x77")
        segment = self.json("segment", "list")["segments"][0]
        self.assertEqual((segment["host"], segment["id"], segment["bytes"], segment["available"],
                          segment["quarantined"]), ("client1", 0x77, 65536, True, False))
        self.assertRegex(self.smartio("segment", "list").stdout,
                         r"client1 +1/1 up +0x77 +64K +available +0 +\d+ +host +segment")
        self.assertEqual(len(self.smartio("segment", "list", "-q").stdout.splitlines()), 1)
        self.release(child)
        self.smartio("doctor", "--audit", "--within", "10")

    def test_quarantine(self):
        """Killed with its memory mapped for a drive that another has, too: kept until it is reset."""
        other = self.hold("client2", "segment=8", f"lend={NVME}")
        child = self.hold("client1", "segment=7", f"lend={NVME}")
        child.kill()
        child.wait()
        child.communicate()
        self.smartio("doctor", "--audit", "--within", "10")
        deadline = 200
        while not self.json("device", "list")["devices"][0]["quarantined"] and deadline:
            deadline -= 1
        self.assertEqual(self.json("device", "list")["devices"][0]["quarantined"], 1)
        quarantined = [s for s in self.json("segment", "list")["segments"] if s["quarantined"]]
        self.assertEqual([(s["host"], s["id"]) for s in quarantined], [("client1", 7)])
        self.assertRegex(self.smartio("segment", "list", "--quarantined").stdout,
                         r"client1 +1/1 up +0x7 +64K +quarantined")
        counts = self.counts()
        self.assertEqual(counts["lender"]["DMA maps"], 2)
        self.assertEqual(counts["lender"]["DMA maps quarantined"], 1)
        self.assertEqual(counts["lender"]["borrows quarantined"], 1)
        # The last borrow ends: nobody lives who could settle, so the lender does.
        resets = self.json("device", "info", "nvme0")["generation"]
        self.release(other)
        self.until_clean()
        self.smartio("doctor", "--audit", "--within", "10")
        self.assertEqual(self.json("device", "info", "nvme0")["generation"], resets + 2)
        self.assertEqual(self.json("segment", "list")["segments"], [])

    def until_clean(self):
        """The lender hears of an end a little later than we do."""
        for _ in range(200):
            device = self.json("device", "info", "nvme0")
            if (device["borrowers"], device["quarantined"], device["reset_state"]) == (0, 0, "clean"):
                return
        self.fail(device)

    def test_reset(self):
        """By hand; refused while somebody has the device, but by force."""
        done = self.smartio("device", "reset", "nvme0")
        self.assertRegex(done.stdout, r"^nvme0: function reset in \d+\.\d{3} ms\n$")
        before = self.json("device", "info", "nvme0")
        self.assertEqual((before["reset"], before["reset_state"]), ("function", "clean"))
        child = self.hold("client2", "segment=8", f"lend={NVME}")
        self.assertEqual(self.json("device", "info", "nvme0")["reset_state"], "used")
        self.fails("device", "reset", "nvme0", say=["--force", "nvme0 is in use: 1 borrow lives"])
        self.assertEqual(self.json("device", "info", "nvme0")["generation"], before["generation"])
        reset = self.json("device", "reset", "--force", "0x4f4093")
        self.assertEqual((reset["name"], reset["reset"], reset["borrows"], reset["settled"],
                          reset["generation"]), ("nvme0", "function", 1, 0, before["generation"] + 2))
        self.assertEqual(self.json("device", "info", "nvme0")["reset_state"], "used")
        done = self.smartio("device", "reset", "nvme0", "--force")
        self.assertIn("1 borrow lives: its queues are gone", done.stdout)
        # What lives is not settled by that.
        self.assertEqual(self.counts()["lender"]["DMA maps"], 1)
        dead = self.hold("client1", "segment=7", f"lend={NVME}")
        dead.kill()
        dead.wait()
        dead.communicate()
        while not self.json("device", "list")["devices"][0]["quarantined"]:
            pass
        done = self.smartio("device", "reset", "nvme0", "--force")
        self.assertIn("the quarantine of 1 dead borrow ended: 1 mapping", done.stdout)
        self.release(child)
        self.until_clean()
        self.fails("device", "reset", "nvme7", say=["no device 'nvme7'", "nvme0"])
        self.fails("device", "reset", status=2, say="")
        self.crash(self.state, 4)
        self.fails("device", "reset", "nvme0", say="'lender', which lends nvme0: down")

    def test_device_without_reset(self):
        """Its lender says so, and what the dead had stays for who has the registers."""
        self.smartio("cluster", "down")
        with open(self.topology("none"), "r+", encoding="ascii") as f:
            text = f.read().replace("block: 512", "block: 512, reset: none")
            f.seek(0)
            f.write(text)
        self.smartio("cluster", "up", f.name)
        state = os.path.join(self.base, "none")
        with open(os.path.join(state, "smartiod.4.log"), encoding="utf-8") as log:
            self.assertIn("nvme0 has no function reset", log.read())
        self.assertEqual(self.json("device", "info", "nvme0")["reset"], "none")
        self.fails("device", "reset", "nvme0", say="has no function reset")
        child = self.hold("client1", "segment=7", f"lend={NVME}")
        child.kill()
        child.wait()
        child.communicate()
        while not self.json("device", "list")["devices"][0]["quarantined"]:
            pass
        self.fails("device", "reset", "--force", "nvme0", say="has no function reset")
        self.assertEqual(self.counts()["lender"]["DMA maps quarantined"], 1)
        # The lender's crash resets the drive: nobody can reach the memory any more.
        self.crash(state, 4)
        self.smartio("cluster", "restart-node", "lender")
        self.smartio("doctor", "--audit", "--within", "10")
        self.assertEqual(self.json("segment", "list")["segments"], [])

    def test_stats(self):
        stats = self.json("stats")
        self.assertEqual([d["name"] for d in stats["daemons"]], ["lender", "client1", "client2"])
        self.assertEqual([d["name"] for d in stats["adapters"]],
                         ["lender.0", "client1.0", "client2.0"])
        self.assertEqual([d["name"] for d in stats["devices"]], ["nvme0"])
        self.assertEqual(stats["devices"][0]["counters"]["rd_req"], "0x0")
        self.assertGreater(int(stats["daemons"][0]["counters"]["client_messages"], 16), 0)
        only = self.json("stats", "-n", "client1")
        self.assertEqual([d["name"] for d in only["daemons"]], ["client1"])
        self.assertRegex(self.smartio("stats").stdout, r"(?m)^device +nvme0 +rd_req +0$")
        self.fails("stats", "-n", "moon", say="no host 'moon'")
        self.crash(self.state, 8)
        self.fails("stats", "-n", "client1", say=["host 'client1' is down", "restart-node client1"])

    def test_audit_comes_back_to_what_it_was(self):
        before = self.audit_file()
        one = self.hold("client1", "segment=7", "interrupt")
        two = self.hold("client2", "connect=8:7", "trigger=8:1", "segment=7")
        counts = self.counts()
        self.assertEqual(counts["client1"]["segments"], 1)
        self.assertEqual(counts["client1"]["segments bytes"], 65536)
        self.assertEqual(counts["client2"]["connections"], 1)
        self.assertEqual(counts["client1"]["data interrupts"], 1)
        self.assertEqual(counts["client2"]["port windows"], 3)  # segment, ring, trigger
        done = self.smartio("doctor", "--audit", "--expect", before, status=1)
        self.assertIn("expected 'client1: segments 0', found 'client1: segments 1'", done.stderr)
        self.release(two)
        self.release(one)
        self.smartio("doctor", "--audit", "--expect", before, "--within", "10")
        # The same with JSON, and killed instead of ended; without a device nothing stays.
        before = self.audit_file("--json")
        self.hold("client1", "segment=7", "interrupt").kill()
        self.smartio("doctor", "--audit", "--json", "--expect", before, "--within", "10")

    def test_audit_finds_an_orphan(self):
        """A program tied to a host whose keeper is gone."""
        orphan = subprocess.Popen(["sleep", "100"], env={
            **self.env, "SMARTIO_STATE": self.state, "SMARTIO_KEEPER": str(os.getpid() + 1)})
        try:
            done = self.smartio("doctor", "--audit", status=1)
            self.assertIn("1 program outlived the keeper", done.stderr)
            self.assertIn("system: orphaned programs 1\n", done.stdout)
        finally:
            orphan.kill()
            orphan.wait()

    def test_audit_finds_a_strange_file(self):
        path = os.path.join(self.state, "letter")
        with open(path, "w", encoding="ascii") as f:
            f.write("dear")
        self.assertIn("1 file in the state directory", self.smartio(
            "doctor", "--audit", status=1).stderr)
        os.unlink(path)

    def test_audit_finds_a_missing_socket(self):
        path = os.path.join(self.state, "peer.4")
        os.rename(path, path + ".away")
        self.assertIn("lender: node.4 or peer.4 is missing", self.smartio(
            "doctor", "--audit", status=1).stderr)
        os.rename(path + ".away", path)

    def test_audit_of_a_crashed_host(self):
        self.hold("client1", "segment=7", "interrupt")
        self.hold("client2", "connect=8:7", "segment=9", f"lend={NVME}")
        self.crash(self.state, 8)
        self.smartio("doctor", "--audit", "--within", "10")
        self.assertEqual(self.counts()["client1"]["up"], 0)
        self.crash(self.state, 4)
        self.smartio("doctor", "--audit", "--within", "10")
        for node in ("client1", "lender"):
            self.smartio("cluster", "restart-node", node)
        self.smartio("doctor", "--audit", "--within", "10")

    def test_daemon_that_does_not_answer(self):
        """Stopped, not dead: said in time, no hang; the other hosts are shown."""
        pid = self.pid_of(self.state, "smartiod.8")
        os.kill(pid, signal.SIGSTOP)
        try:
            done = self.smartio("node", "list", env={"SMARTIO_TIMEOUT": "1"})
            self.assertIn("smartiod of node 8 has not answered for 1 second", done.stderr)
            self.assertRegex(done.stdout, "(?m)^client1 +8 +host +no answer")
            self.assertRegex(done.stdout, "(?m)^client2 +12 +host +up")
            done = self.smartio("stats", "-n", "client1", env={"SMARTIO_TIMEOUT": "1"}, status=1)
            self.assertEqual(done.stderr, "smartio: note: smartiod of node 8 has not answered for 1 "
                             "second\nsmartio: host 'client1' cannot be asked\n")
        finally:
            os.kill(pid, signal.SIGCONT)
        self.smartio("doctor", "--audit", "--within", "10")


class Limits(base.CommandTest):
    def test_more_clients_than_descriptors(self):
        """A daemon that has 1,024 descriptors, and more clients than that: it refuses, and lives."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 2048:
            self.skipTest(f"this test needs 2048 descriptors, the limit is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.smartio("cluster", "up", self.topology(), preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (1024, 1024)))
        path = os.path.join(self.base, "test", "node.8")
        before = os.path.join(self.dir, "audit")
        with open(before, "w", encoding="ascii") as f:
            f.write(self.smartio("doctor", "--audit").stdout)
        clients = []
        try:
            for _ in range(1200):
                client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                clients.append(client)
                client.connect(path)
            # The last ones found no room: their connection is closed, not left waiting.
            clients[-1].settimeout(60)
            self.assertEqual(clients[-1].recv(1), b"")
            done = self.smartio("node", "list")
            self.assertRegex(done.stdout, "(?m)^client1 +8 +host +no answer")
            self.assertIn("smartiod of host 'client1' runs, but takes no more", done.stderr)
            self.assertIn("smartiod.8.log", done.stderr)
        finally:
            for client in clients:
                client.close()
        self.smartio("doctor", "--audit", "--within", "10", "--expect", before)


if __name__ == "__main__":
    base.main()
