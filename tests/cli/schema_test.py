#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What --json prints, held against the schemas that are installed (tools/schema)."""
import json
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit
from urllib.request import urlopen
import base

NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")
HOLDER = os.path.join(base.HERE, "holder.py")

# Of these the data depends on a PCI function and the kernel modules; tests/vm runs them.
NEEDS_A_FUNCTION = {"nvme-attach", "nvme-detach", "device-add", "device-remove", "lend", "borrow", "return"}

# Of these on virtual machines; machine_test.py and tests/vm/machines.py run them.
NEEDS_A_MACHINE = {"machine-fetch", "machine-start", "machine-stop", "machine-list", "machine-demo"}

TREE = """cluster: tree
switches: [left, right]
links: [{ from: right, to: left }]
hosts:
  a: { ram: 16M, adapters: [{ to: left }], devices: { nvme0: { type: nvme, size: 16M } } }
  b: { ram: 16M, adapters: [{ to: right }] }
"""


class Json(base.CommandTest):
    seen = set()

    def setUp(self):
        if base.SCHEMAS is None:
            self.skipTest("python3-jsonschema is missing")
        super().setUp()

    def check(self, text, name):
        """It is one document of this schema, and a good one."""
        doc = json.loads(text)
        self.assertEqual(doc["schema"], "smartio/" + name, text)
        base.check_schema(doc)
        self.seen.add(name)
        return doc["data"]

    def run_json(self, name, *args, status=0, json_word=("--json",), **more):
        return self.check(self.smartio(*args, *json_word, status=status, **more).stdout, name)

    def fails_json(self, command, *args, status=1, errno=None, say="", **more):
        done = self.smartio(*args, status=status, **more)
        data = self.check(done.stdout, "error")
        self.assertEqual((data["program"], data["command"], data["exit_status"], data["errno"]),
                         ("smartio", command, status, errno), data)
        self.assertIn(say, data["messages"][0])
        self.assertIn(data["messages"][0], done.stderr)

    def nvme(self, name, *args, node="client1", status=0, **more):
        done = self.smartio("run", "-n", node, "--", NVME, *args, "--json", status=status, **more)
        return self.check(done.stdout, name)

    def test_1_commands(self):
        """Every command, on a cluster on which something is to be seen, then with parts down."""
        self.run_json("version", "--version")
        self.run_json("cluster-validate", "cluster", "validate", self.topology())
        keys = self.run_json("cluster-keys", "cluster", "keys", self.topology(), os.path.join(self.dir, "keys"))
        self.assertEqual((keys["did"], keys["certificates"]), ("made", 3))
        less = self.file("less.yaml", base.TOPOLOGY.replace("  client2: {ram: 64M}\n", "") % "test")
        for path, gone in ((self.topology(), 0), (less, 1), (less, 0)):
            done = self.run_json("cluster-keys", "cluster", "keys", "--revoke-removed", path, os.path.join(self.dir, "keys"))
            self.assertEqual((done["did"], done["certificates"]), ("revoked", gone))
        up = self.run_json("cluster-up", "cluster", "up", self.topology(), "--name", "other")
        self.assertEqual((up["name"], up["cluster"], up["hosts"]), ("other", "test", 3))
        holder = self.start("run", "-n", "client1", "--", sys.executable, HOLDER, "segment=7",
                            "lend=0x4f4093")
        self.assertEqual(holder.stdout.readline(), "ready\n")
        self.look()
        self.run_json("route", "route", "lender", "client1")
        segment = self.run_json("segment-list", "segment", "list")["segments"][0]
        self.assertGreater(int(segment["address"], 16), 2 ** 32)
        self.assertEqual(segment["memory"], "host")
        used = {(q["host"], q["quota"]): q["used"] for q in self.run_json("quota", "quota")["quotas"]}
        self.assertEqual(used[("client1", "exported")], segment["bytes"])
        self.assertIn({"host": "client2", "node": 4, "name": "lender", "quota": "dma", "used": 0, "most": None},
                      self.run_json("quota", "quota", "--all", "-n", "client2")["quotas"])
        with open(self.topology(), encoding="ascii") as f:
            stricter = self.file("stricter.yaml", f.read() + "quotas: { node: { borrows: 9 } }\n")
        done = self.run_json("cluster-reload", "cluster", "reload", "--check", stricter)
        self.assertEqual((done["applied"], done["hosts"], done["forbidden"], done["changes"]),
                         (False, [], [], [{"text": "quotas.node.borrows is 9, was without limit"}]))
        self.assertEqual(self.run_json("cluster-reload", "cluster", "reload", stricter)["hosts"],
                         ["lender", "client1", "client2"])
        counts = self.run_json("audit", "doctor", "--audit")["counts"]
        self.assertEqual(counts["client1"]["segments"], 1)
        self.assertEqual(self.run_json("fault-link", "fault", "link", "client2", "down"),
                         {"host": "client2", "node": 12, "adapter": 0, "link": "down", "re_enumerated": False, "late": [], "silent": []})
        self.assertEqual(self.run_json("fault-link", "fault", "link", "client1", "errors", "--count", "3", "--no-wait"),
                         {"host": "client1", "node": 8, "adapter": 0, "errors": 3})
        self.assertEqual(self.run_json("device-reset", "device", "reset", "--force", "nvme0")["borrows"], 1)
        self.assertEqual(self.run_json("fault-device", "fault", "device", "nvme0", "delay", "--time", "20", "--opcode",
                                       "read", "--queue", "3", "--count", "2"),
                         {"name": "nvme0", "id": 0x4f4093, "fault": "delay", "opcode": 2, "queue": 3, "after": 0,
                          "count": 2})
        self.assertEqual(self.run_json("fault-device", "fault", "device", "nvme0", "clear"),
                         {"name": "nvme0", "id": 0x4f4093, "fault": "clear"})
        self.assertEqual(self.run_json("fault-device", "fault", "device", "0x4f4093", "out"),
                         {"name": "nvme0", "id": 0x4f4093, "slot": "out", "late": [], "silent": []})
        self.look()
        self.assertEqual(self.run_json("doctor-clean", "doctor", "--clean"), {"removed": 0})
        self.assertEqual(self.run_json("fault-host", "fault", "host", "client1", "down"),
                         {"host": "client1", "node": 8, "state": "down", "other_addresses": False, "late": [], "silent": []})
        self.look()
        self.smartio("fault", "link", "client2", "up")
        self.run_json("cluster-restart-node", "cluster", "restart-node", "client1")
        self.assertEqual(self.run_json("cluster-down", "cluster", "down")["name"], "other")
        self.smartio("cluster", "up", self.file("tree.yaml", TREE))
        self.assertEqual(self.run_json("fault-switch", "fault", "switch", "left", "down"),
                         {"switch": "left", "state": "down", "late": [], "silent": []})
        self.assertEqual(self.run_json("fault-trunk", "fault", "trunk", "left", "right", "down"),
                         {"switches": ["right", "left"], "trunk": 0, "state": "down", "late": [], "silent": []})
        self.look()
        self.smartio("cluster", "down")

    def look(self):
        for words in ("cluster status", "node list", "topology", "device list", "segment list",
                      "stats"):
            self.run_json(words.replace(" ", "-"), *words.split())
        self.run_json("top", "top", "--delay", "0.1")
        self.web()
        self.assertIn("nvme0", self.run_json("complete", "complete", "devices")["names"])
        self.run_json("device-info", "device", "info", "nvme0")
        self.check(self.smartio("doctor", "--json", status=None).stdout, "doctor")

    def web(self):
        child = self.start("web", "--json")
        text = ""
        while not text.endswith("\n}\n") and (line := child.stdout.readline()):
            text += line
        if "built without libmicrohttpd" in text:
            self.seen.update(("web", "web-live"))
            return
        url = urlsplit(self.check(text, "web")["url"])
        with urlopen(url._replace(path="/live.json").geturl(), timeout=60) as reply:
            self.check(reply.read().decode(), "web-live")
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(60), 0)

    def test_2_nvme(self):
        self.check(subprocess.run([NVME, "--version", "--json"], capture_output=True, text=True,
                                  check=True).stdout, "version")
        self.up()
        manager = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0", "--json")
        text = ""
        while not text.endswith("\n}\n"):
            text += manager.stdout.readline()
        self.assertEqual(self.check(text, "nvme-manager")["queue_pairs"], 31)
        self.assertEqual(self.nvme("nvme-identify", "identify", "nvme0")["namespaces"],
                         [{"id": 1, "block_size": 512, "blocks": "0x8000"}])
        path = self.file("data", "x" * 5000)
        done = self.nvme("nvme-copy", "copy-in", "nvme0", path, "-s", "512")
        self.assertEqual((done["direction"], done["offset"], done["bytes"]), ("in", "0x200", 5000))
        self.nvme("nvme-copy", "read", "nvme0", "-o", path + "2", "-l", "5000")
        self.nvme("nvme-bench", "bench", "nvme0", "-c", "50", "--counters")
        self.assertEqual(self.nvme("nvme-smart", "smart", "nvme0")["available_spare"], 100)
        self.nvme("nvme-errors", "errors", "nvme0")
        self.assertEqual(self.nvme("nvme-disks", "disks"), {"disks": []})
        self.assertEqual(self.nvme("nvme-leases", "leases", "nvme0"), {"device": "nvme0", "leases": []})
        self.assertEqual(self.nvme("nvme-queues", "queues", "nvme0"),
                         {"device": "nvme0", "queue_pairs": 31, "taken": [], "manager": 12, "standbys": []})
        standby = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0", "--standby", "--json")
        text = ""
        while not text.endswith("\n}\n"):
            text += standby.stdout.readline()
        self.assertEqual(self.check(text, "nvme-manager")["state"], "standby")
        self.assertEqual(self.nvme("nvme-queues", "queues", "nvme0")["standbys"],
                         [{"node": 4, "program": "smartio-nvme"}])
        standby.send_signal(signal.SIGTERM)
        self.assertEqual(standby.wait(60), 0)
        self.assertEqual(self.nvme("nvme-erase", "zero", "nvme0", "-l", "1M", "--yes")["did"], "zeroed")
        for args, status, say in [
                (("bench", "nvme9"), 1, "nvme9"),
                (("bench", "nvme0", "--depth", "0"), 2, "--depth 0"),
                (("bench",), 2, "needs a DEVICE"),
                (("read", "nvme0", "-l", "1"), 1, "with --json the data cannot go to stdout")]:
            error = self.nvme("error", *args, status=status)
            self.assertEqual((error["program"], error["command"], error["exit_status"]),
                             ("smartio-nvme", args[0], status))
            self.assertIn(say, error["messages"][0])
        manager.send_signal(signal.SIGTERM)
        self.assertEqual(manager.wait(60), 0)

    def test_3_errors(self):
        self.fails_json("node list", "node", "list", "--json", errno="ENOENT",
                        say="no cluster is running")
        self.fails_json("device info", "device", "info", "--json", status=2, say="DEVICE is missing")
        self.fails_json("", "fly", "--json", status=2, say="unknown command 'fly'")
        self.fails_json("", "cluster", "fly", "--json", status=2, say="unknown subcommand")
        self.fails_json("stats", "stats", "--fly", "--json", status=2, say="unknown option '--fly'")
        self.fails_json("run", "--json", "run", "-n", "x", "--", "true", errno="ENOENT",
                        say="no cluster is running")
        self.fails_json("cluster run", "--json", "--state", "/dev/null/x", "cluster", "run",
                        self.topology(), "--", "true", errno="ENOTDIR", say="/dev/null/x")
        bad = self.file("bad.yaml", "cluster: c\nhosts:\n  a:\n    rom: 1M\n")
        self.fails_json("cluster validate", "cluster", "validate", bad, "--json", errno="EINVAL",
                        say="bad.yaml:4:5: ")
        # A name that is no text, and would be no JSON.
        done = self.smartio("--json", "cluster", "validate", b"/none\xff\xe2\x82\xac", status=1,
                            errors="replace")
        self.assertIn("/none?\u20ac", self.check(done.stdout, "error")["messages"][0])

    def test_4_a_program_has_stdout_for_itself(self):
        self.up()
        done = self.smartio("--json", "run", "-n", "client1", "--", "sh", "-c", "echo it; exit 2",
                            status=2)
        self.assertEqual(done.stdout, "it\n")
        done = self.run_json("run", "--json", "run", "-d", "-n", "client1", "--", "sleep", "100",
                             json_word=())
        base.status_of(done["process"], "State")
        self.assertTrue(os.path.exists(done["log"]))
        self.crash(os.path.join(self.base, "test"), 8)
        self.fails_json("run", "--json", "run", "-n", "client1", "--", "true", errno="ENETDOWN",
                        say="host 'client1' is down")

    def test_5_all_schemas_were_seen(self):
        """And each is a schema; a version in its title and in its text are one."""
        from jsonschema import Draft202012Validator  # pylint: disable=import-outside-toplevel
        for name, schema in base.SCHEMAS.items():
            Draft202012Validator.check_schema(schema)
            version = schema["properties"]["version"]["const"]
            self.assertEqual(schema["title"], f"smartio/{name}, version {version}")
        self.assertEqual(self.seen, set(base.SCHEMAS) - NEEDS_A_FUNCTION - NEEDS_A_MACHINE)


if __name__ == "__main__":
    base.main()
