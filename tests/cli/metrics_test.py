#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio stats --openmetrics, read strictly, beside --json: the same numbers, before and after I/O; what is down;
each family stands in docs/views.md."""
import os
import re
import signal
import unittest

import base
import openmetrics

NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")
PAGE = os.path.join(base.HERE, "..", "..", "docs", "views.md")
KINDS = {"daemon": "daemons", "host": "hosts", "adapter": "adapters", "device": "devices", "engine": "engines",
         "chassis": "chassis", "trunk": "trunks", "machine": "machines"}
MACHINES = """cluster: machines
hosts:
  v: { kind: machine, adapters: [{ window: 1M, entries: 256 }], devices: { disk: { type: nvme, size: 1M } } }
  w: { kind: machine, adapters: [{ window: 1M, entries: 256 }] }
"""
TREE = """cluster: tree
switches: [left, right]
links: [{ from: right, to: left }]
hosts:
  a:
    ram: 64M
    adapters: [{ to: left }]
    chassis: { box: {} }
    devices: { m0: { type: memory, size: 1M, in: box }, x0: { type: accelerator, size: 1M } }
  b: { ram: 64M, adapters: [{ to: right }] }
"""


def rows_of_page():
    """{(kind, counter): (family, type)} of the tables in docs/views.md."""
    rows, kind = {}, None
    with open(PAGE, encoding="utf-8") as f:
        for line in f:
            head = re.match(r"\| `smartio_(\w+?)_\.\.\.`", line)
            kind = head[1] if head else kind
            row = re.fullmatch(r"\| `(\w+)` \| `(\w+)` \| (\w+) \|.*\n", line)
            if row:
                rows[kind, row[1]] = (f"smartio_{kind}_{row[2]}", row[3])
    return rows


class Reader(unittest.TestCase):
    """The reader of the tests refuses what a scraper would."""

    def test_good(self):
        f = openmetrics.parse('# TYPE a counter\n# HELP a b\na_total{x="1\\"\\\\\\n"} 7\n# EOF\n')["a"]
        self.assertEqual(f.samples, {(("x", '1"\\\n'),): 7})

    def test_bad(self):
        head = "# TYPE a counter\n"
        for bad in ["", head, head + "a 1\n# EOF\n", head + "a_total 1\n\n# EOF\n", head + "a_total -1\n# EOF\n",
                    head + "a_total 0x1\n# EOF\n", head + 'a_total{x="1",x="2"} 1\n# EOF\n',
                    head + 'a_total{x="1} 1\n# EOF\n', head + "a_total 1\na_total 1\n# EOF\n",
                    head + "# TYPE b gauge\nb 1\na_total 1\n# EOF\n", "# UNIT a bytes\n# EOF\n",
                    head + "# TYPE a_total gauge\n# EOF\n", "a_total 1\n# EOF\n", head + "# EOF\nx 1\n"]:
            with self.assertRaises(ValueError, msg=bad):
                openmetrics.parse(bad)


class Metrics(base.CommandTest):
    def metrics(self, *words):
        done = self.smartio(*words, "stats", "--openmetrics")
        self.assertEqual(done.stderr, "")
        return openmetrics.parse(done.stdout)

    def labels(self, data, kind, thing):
        node = [("node", str(thing["node"]))]
        if kind == "trunk":
            ends = thing["name"].split("-")
            return tuple(sorted([("cluster", data["cluster"]), ("from", ends[0]), ("to", ends[1]),
                                 ("trunk", str(thing["id"]))]))
        if kind == "chassis":
            host, chassis = thing["name"].split("/")
            node.append(("chassis", chassis))
        elif kind in ("adapter", "engine"):
            host, adapter = thing["name"].rsplit(".", 1)
            node.append(("adapter", adapter))
        elif kind == "device":
            host = next(h["name"] for h in data["hosts"] + data["machines"] if h["node"] == thing["node"])
            node.append(("device", thing["name"]))
        else:
            host = thing["name"]
        return tuple(sorted([("cluster", data["cluster"]), ("host", host), *node]))

    def compare(self, *where):
        """Each counter of --json is there by the name and type that the page tells, with its value if it rests."""
        before, found, after = (self.json(*where, "stats"), self.metrics(*where), self.json(*where, "stats"))
        page, seen = rows_of_page(), set()
        for kind, plural in KINDS.items():
            for old, new in zip(before[plural], after[plural], strict=True):
                key = self.labels(before, kind, old)
                self.assertEqual(old["counters"].keys(), new["counters"].keys())
                for counter, value in old["counters"].items():
                    self.assertIn((kind, counter), page)
                    name, its_type = page[kind, counter]
                    family = found[name.removesuffix("_total")]
                    self.assertEqual(family.type, its_type, name)
                    self.assertEqual(name.endswith("_total"), its_type == "counter", name)
                    if family.unit is None:
                        self.assertNotRegex(name, "_bytes(_total)?$")
                    low, high = sorted((int(value, 16), int(new["counters"][counter], 16)))
                    if name != "smartio_daemon_heap_bytes":
                        self.assertTrue(low <= family.samples[key] <= high, (name, key))
                    self.assertTrue(family.help)
                    seen.add(family.name)
        self.others(found, seen)
        return found, before

    def others(self, found, seen):
        """What is no counter is what the page lists as such."""
        with open(PAGE, encoding="utf-8") as f:
            page = f.read()
        for name, family in found.items():
            if name not in seen:
                self.assertIn(family.type, ("gauge", "info"))
                self.assertIn(f"| `{name}{'_info' if family.type == 'info' else ''}` |", page)

    def value(self, families, name, **labels):
        found = [n for key, n in families[name].samples.items() if labels.items() <= dict(key).items()]
        self.assertEqual(len(found), 1, (name, labels))
        return found[0]

    def test_known_io(self):
        self.up()
        manager = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0")
        self.assertIn("ready", manager.stdout.readline())
        old, _ = self.compare()
        self.smartio("run", "-n", "client1", "--", NVME, "bench", "nvme0", "-c", "64", "-b", "4K", "--warmup", "0")
        new, _ = self.compare()

        def grew(name, **labels):
            return self.value(new, name, **labels) - self.value(old, name, **labels)

        self.assertEqual(grew("smartio_device_commands_read", device="nvme0"), 64)
        self.assertEqual(grew("smartio_device_read_bytes", device="nvme0"), 64 * 4096)
        # Data and completions, at the drive and at both links that they cross; what the client asked before is more.
        for labels in ({"device": "nvme0"}, {"host": "lender", "adapter": "0"}, {"host": "client1", "adapter": "0"}):
            name = "smartio_device" if "device" in labels else "smartio_adapter"
            self.assertGreaterEqual(grew(name + "_pcie_written_bytes", **labels), 64 * (4096 + 16))
            self.assertGreaterEqual(grew(name + "_pcie_writes", **labels), 64 * 17)
        self.assertGreaterEqual(grew("smartio_device_pcie_read_requests", device="nvme0"), 64)  # submission entries
        for name in ("pcie_writes", "pcie_written_bytes", "pcie_read_requests"):
            self.assertEqual(*(grew(f"smartio_adapter_{name}", host=host) for host in ("lender", "client1")), name)
        self.assertEqual(grew("smartio_adapter_pcie_writes", host="client2"), 0)
        self.assertEqual(self.value(new, "smartio_device_borrowers", device="nvme0"), 1)
        manager.send_signal(signal.SIGTERM)
        self.assertEqual(manager.wait(60), 0)

    def test_machines(self):
        self.smartio("cluster", "up", self.file("machines.yaml", MACHINES))
        found, data = self.compare()
        self.assertEqual([m["name"] for m in data["machines"]], ["v", "w"])
        self.assertEqual(self.value(found, "smartio_adapter_starts", host="v"), 1)

    def test_other_devices_and_what_is_down(self):
        self.smartio("cluster", "up", self.file("tree.yaml", TREE), "--name", 'a "quoted" one')
        found, _ = self.compare()
        up = {"smartio_host_up": {1}, "smartio_adapter_link_up": {1}, "smartio_trunk_up": {1},
              "smartio_device_present": {1}}
        for name, values in up.items():
            self.assertEqual(set(found[name].samples.values()), values, name)
        self.assertEqual({dict(key)["cluster"] for f in found.values() for key in f.samples}, {'a "quoted" one'})
        self.assertEqual({(dict(k)["device"], dict(k)["type"], dict(k)["id"]) for k in
                          found["smartio_device"].samples}, {("m0", "memory", "0x463996"), ("x0", "accelerator", "0x4608e2")})
        self.smartio("fault", "trunk", "left", "right", "down")
        self.smartio("fault", "link", "b", "down")
        found, _ = self.compare()
        self.assertEqual(self.value(found, "smartio_trunk_up", **{"from": "right", "to": "left", "trunk": "0"}), 0)
        self.assertEqual(self.value(found, "smartio_adapter_link_up", host="b", node="8", adapter="0"), 0)
        self.crash(os.path.join(self.base, 'a "quoted" one'), 4)
        found, _ = self.compare()
        self.assertEqual(self.value(found, "smartio_host_up", host="a"), 0)
        self.assertEqual(self.value(found, "smartio_device_present", device="m0"), 0)
        # No samples of what cannot be asked: a gap, and no counter that begins again.
        self.assertNotIn("a", {dict(k)["host"] for k in found["smartio_adapter_pcie_writes"].samples})

    def test_one_host(self):
        self.up()
        found = self.metrics("--cluster", "test")
        one = openmetrics.parse(self.smartio("stats", "--openmetrics", "-n", "client1").stdout)
        self.assertEqual({dict(k)["host"] for f in one.values() for k in f.samples if "host" in dict(k)}, {"client1"})
        for name in ("smartio_adapter_pcie_writes", "smartio_host_memory_bytes"):
            self.assertEqual(len(found[name].samples), 3)
            self.assertLessEqual(one[name].samples.items(), found[name].samples.items())
        self.assertIn("one of them is right", self.smartio("stats", "--openmetrics", "--json", status=2).stderr)


if __name__ == "__main__":
    base.main()
