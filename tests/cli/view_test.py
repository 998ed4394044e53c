#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every view shows what is, now: a link, a device, a daemon and the machine room are pulled."""
import os
import signal
import base

TOPOLOGY = """\
cluster: view
switches: [sw0]
hosts:
  lender:
    ram: 64M
    adapters: [{to: sw0}, {to: twin}]
    devices: {nvme0: {type: nvme, size: 16M}}
  twin: {ram: 64M, adapters: [{to: lender}]}
  plain: {ram: 64M}
"""


class View(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.smartio("cluster", "up", self.file("view.yaml", TOPOLOGY), "--name", "now")
        self.state = os.path.join(self.base, "now")

    def says(self, table):
        """Each view, as words and as a regular expression of a line."""
        for view, *lines in table:
            text = self.smartio("--cluster", "now", *view.split()).stdout
            for line in lines:
                self.assertRegex(text, f"(?m)^{line}$", view)

    def look(self, *words):
        return self.json("--cluster", "now", *words)

    def status(self):
        status, = self.look("cluster", "status")["clusters"]
        return status

    def hosts(self):
        """State, links and device states of each host, as all documents have them."""
        found = {}
        for h in self.look("topology")["hosts"]:
            found[h["name"]] = (h["state"], [a["link"] for a in h["adapters"]],
                                [d["state"] for d in h["devices"]])
        status = {n["name"]: (n["state"], n["links"], [d["state"] for d in n["devices"]])
                  for n in self.status()["nodes"]}
        nodes = {n["name"]: (n["state"], [a["link"] for a in n["adapters"]])
                 for n in self.look("node", "list")["nodes"]}
        stats = self.look("stats")
        segments = {h["name"]: h["state"] for h in self.look("segment", "list")["hosts"]}
        devices = {d["name"]: (d["state"], d["host_state"]) for d in
                   self.look("device", "list")["devices"]}
        self.assertEqual(found, status)
        self.assertEqual({n: f[:2] for n, f in found.items()}, nodes)
        self.assertEqual({n: f[0] for n, f in found.items()}, segments)
        for kind in ("hosts", "daemons"):
            self.assertEqual({h["name"]: h["state"] for h in stats[kind]}, segments)
        self.assertEqual({a["name"]: a["state"] for a in stats["adapters"]},
                         {f"{n}.{i}": link for n, f in found.items() for i, link in
                          enumerate(f[1])})
        self.assertEqual(devices, {"nvme0": (found["lender"][2][0], found["lender"][0])})
        self.assertEqual(stats["devices"][0]["state"], devices["nvme0"][0])
        return found

    def test_all_is_well(self):
        self.assertEqual(self.hosts(), {"lender": ("up", ["up", "up"], ["free"]),
                                        "twin": ("up", ["up"], []), "plain": ("up", ["up"], [])})
        self.assertEqual(self.status()["state"], "running")
        self.says([("topology", ".*lender .*, up", ".*plain .*, up", ".*nvme0.*, not lent"),
                   ("cluster status", "now +running +3/3 +4/4 +1/1 +- +/.*"),
                   ("node list", "lender .* 2/2 up .*"),
                   ("device list", "nvme0 .* lender +2/2 up +free .*"),
                   ("stats", r"adapter +twin\.0 +\(state\) +up")])
        self.assertNotIn("DOWN", self.smartio("topology").stdout)
        # By the name that --cluster takes, which is not the file's.
        for words in ("node list", "device list", "segment list", "stats", "topology"):
            self.assertEqual(self.look(*words.split())["cluster"], "now", words)
        self.fails("device", "info", "moon", say="cluster 'now' has no device 'moon'")
        self.fails("run", "-n", "moon", "--", "true", say="cluster 'now' has no host 'moon'")

    def test_a_link_is_pulled(self):
        self.smartio("fault", "link", "plain", "down")
        self.assertEqual(self.hosts()["plain"], ("up", ["down"], []))
        self.assertEqual(self.hosts()["lender"], ("up", ["up", "up"], ["free"]))
        self.assertEqual(self.status()["state"], "links down")
        self.says([("topology", ".*plain .*, link DOWN", ".*lender .*, up"),
                   ("cluster status", r"now +links down +3/3 +3/4 +1/1 +link plain\.0 +/.*"),
                   ("node list", "plain .* up .* 0/1 up .*"),
                   ("stats", r"adapter +plain\.0 +\(state\) +down")])
        # One of two, and at both ends of a cable.
        self.smartio("fault", "link", "plain", "up")
        self.smartio("fault", "link", "lender.1", "down")
        self.assertEqual(self.hosts(), {"lender": ("up", ["up", "down"], ["free"]),
                                        "twin": ("up", ["down"], []), "plain": ("up", ["up"], [])})
        self.says([("topology", r".*lender .*adapter 0 .*, up",
                    r".*lender .*adapter 1 .*\(drawn above\), link DOWN", ".*twin .*, link DOWN"),
                   ("device list", "nvme0 .* lender +1/2 up +free .*"),
                   ("device info nvme0", "lender's links +1/2 up")])
        self.smartio("fault", "link", "lender.0", "down")
        self.says([("device list", "nvme0 .* lender +0/2 up +free .*")])
        for link in ("lender.0", "lender.1"):
            self.smartio("fault", "link", link, "up")
        self.assertEqual(self.status()["state"], "running")

    def test_switches_and_what_joins_them(self):
        self.smartio("cluster", "up", "--name", "tree", self.file("tree.yaml", """\
cluster: tree
switches: [{ name: top, ports: 8, lanes: 4 }, { name: left, ports: 16, lanes: 4 }, right]
links:
  - { from: left.4, to: top.4, width: 4 }
  - { from: left.5, to: top.5, width: 4 }
  - { from: top, to: right }
hosts: { a: { ram: 16M, adapters: [{ to: left }] }, b: { ram: 16M, adapters: [{ to: right }] } }
"""))

        def tree(*words, **more):
            return self.smartio("--cluster", "tree", *words, **more)

        def trunks():
            data = self.json("--cluster", "tree", "topology")
            return [s["state"] for s in data["switches"]], [t["link"] for t in data["trunks"]]

        def refuses(*words, say):
            self.assertIn(say, tree("fault", *words, status=1).stderr)

        refuses("switch", "sw0", "down", say="cluster 'tree' has no switch 'sw0'")
        refuses("trunk", "left", "right", "down", say="no link from left to right")
        refuses("trunk", "right.1", "top", "down", say="the ports of switch 'right' have no numbers")
        refuses("trunk", "left.x", "top", "down", say="number of a port is right")
        refuses("trunk", "top", "left", "down", say="2 links lead from top to left; SWITCH.PORT")
        self.assertEqual(trunks(), (["up"] * 3, ["up"] * 3))
        tree("fault", "trunk", "left.4", "top", "down")
        self.assertEqual(trunks(), (["up"] * 3, ["down", "up", "up"]))
        self.assertRegex(tree("cluster", "status").stdout, r"(?m)^tree +links down +2/2 +4/5 .* trunk left top ")
        self.assertRegex(tree("doctor", "--verbose", status=2).stdout,
                         r"switch-down +the link between left\.4 and top\.4 is out\n(.*\n)*? +mend: .* fault trunk "
                         r"left\.4 top\.4 up\n")
        self.assertRegex(tree("topology").stdout, r"\[left\]  x4 gen 3 to \[top\] DOWN  x4 gen 3 to \[top\]\n")
        # Host b is cut off; a host that starts does not wait for what cannot come.
        tree("fault", "switch", "top", "down")
        self.assertEqual(trunks(), (["down", "up", "up"], ["down"] * 3))
        self.assertRegex(tree("topology").stdout, r"(?m)^  \[top\] DOWN  ")
        self.assertRegex(tree("topology", "--dot").stdout, r'"top" -- "right" \[.*style=dashed')
        self.crash(os.path.join(self.base, "tree"), 4)
        tree("cluster", "restart-node", "a")
        tree("fault", "switch", "top", "up")
        tree("fault", "trunk", "top.4", "left", "up")
        self.assertEqual(trunks(), (["up"] * 3, ["up"] * 3))
        self.assertRegex(tree("cluster", "status").stdout, r"(?m)^tree +running +2/2 +5/5 ")

    def test_devices_by_hops(self):
        self.smartio("cluster", "up", "--name", "tree", self.file("tree.yaml", """\
cluster: tree
switches: [left, top, right]
links: [{ from: left, to: top }, { from: top, to: right }, { from: left, to: right }]
hosts:
  a: { ram: 16M, adapters: [{ to: left }], devices: { a0: { type: memory, size: 1M } } }
  b: { ram: 16M, adapters: [{ to: right }, { to: left }], devices: { b0: { type: nvme, size: 1M } } }
  c:
    ram: 16M
    adapters: [{ to: right }]
    chassis: { box: {} }
    devices: { c0: { type: nvme, size: 1M, in: box }, c1: { type: nvme, size: 1M } }
"""))

        def near(node, *words):
            data = self.json("--cluster", "tree", "device", "list", "--near", node, *words)
            self.assertEqual(data["near"], node)
            for d in data["devices"]:
                self.assertEqual(d["reachable"], "hops" in d)
                if "hops" in d:
                    way = self.json("--cluster", "tree", "route", node, d["name"])
                    self.assertEqual(d["hops"], way["hops"])
                    through = [n["name"] for n in way["chips"] if n["name"].startswith(f"{node}.")]
                    self.assertEqual([f"{node}.{d['adapter']}"] if "adapter" in d else [], through)
            return [(d["name"], d.get("hops"), d.get("adapter")) for d in data["devices"]]

        def trunk(name, state):
            self.smartio("--cluster", "tree", "fault", "trunk", *name.split(), state)

        # Adapters, switches, the lender's root and its chassis.
        self.assertEqual(near("a"), [("a0", 0, None), ("b0", 4, 0), ("c1", 5, 0), ("c0", 6, 0)])
        self.assertEqual(near("b"), [("b0", 0, None), ("a0", 4, 1), ("c1", 4, 0), ("c0", 5, 0)])
        self.assertEqual(near("a", "--class", "nvme"), near("a")[1:])
        self.assertRegex(self.smartio("--cluster", "tree", "device", "list", "--near", "b").stdout,
                         r"(?m)^b0 .* 0  the same host\na0 .* 4  adapter 1\n")
        info = self.json("--cluster", "tree", "device", "info", "c0")
        self.assertEqual((info["in"], info["memory_hops"]), ("box", 1))
        self.assertRegex(self.smartio("--cluster", "tree", "device", "info", "c0").stdout, r"(?m)^in +box$")
        host = self.json("--cluster", "tree", "topology")["hosts"][2]
        self.assertEqual([c["name"] for c in host["chassis"]], ["box"])
        box = host["chassis"][0]
        self.assertEqual(int(box["range_base"], 16) % (1 << 20), 0)
        self.assertGreaterEqual(box["range_size"], sum(int(b, 16) for b in info["bar_sizes"]))
        self.assertIn(f'label="box\\nchassis\\n{box["range_base"]} + ', self.smartio("--cluster", "tree", "topology",
                                                                                  "--dot").stdout)
        trunk("left right", "down")
        self.assertEqual(near("a"), [("a0", 0, None), ("b0", 4, 0), ("c1", 6, 0), ("c0", 7, 0)])
        trunk("top right", "down")
        self.assertEqual(near("a"), [("a0", 0, None), ("b0", 4, 0), ("c0", None, None), ("c1", None, None)])
        self.assertRegex(self.smartio("--cluster", "tree", "device", "list", "--near", "a").stdout,
                         r"(?m)^c0 .* -  no way leads there$")
        self.assertIn("no host 'x'", self.smartio("--cluster", "tree", "device", "list", "--near", "x", status=1).stderr)
        self.assertNotIn("hops", self.json("--cluster", "tree", "device", "list", "--class", "nvme")["devices"][0])

    def test_a_segment_of_a_host_without_a_link(self):
        child = self.start("run", "-n", "plain", "--", base.sys.executable,
                           os.path.join(base.HERE, "holder.py"), "segment=7")
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.says([("segment list", "plain +1/1 up +0x7 .* available .* host +segment")])
        self.smartio("fault", "link", "plain", "down")
        self.says([("segment list", "plain +0/1 up +0x7 .* available .*")])
        host = next(h for h in self.json("segment", "list")["hosts"] if h["name"] == "plain")
        self.assertEqual((host["links_up"], host["links"]), (0, 1))

    def test_a_device_is_pulled(self):
        self.smartio("fault", "device", "nvme0", "out")
        for _ in range(200):  # its host hears of it
            if self.json("device", "list")["devices"][0]["state"] == "out":
                break
        self.assertEqual(self.hosts()["lender"], ("up", ["up", "up"], ["out"]))
        self.assertEqual(self.status()["state"], "devices out")
        self.says([("topology", ".*nvme0.*, OUT of its slot"),
                   ("cluster status", "now +devices out +3/3 +4/4 +0/1 +device nvme0 +/.*"),
                   ("device list", "nvme0 .* lender +2/2 up +out +- +-"),
                   ("device info nvme0", "state +out"),
                   ("stats", r"device +nvme0 +\(state\) +out")])

    def test_a_daemon_is_killed(self):
        self.crash(self.state, 4)
        self.assertEqual(self.hosts()["lender"], ("down", ["unknown", "unknown"], ["host down"]))
        self.assertEqual(self.hosts()["plain"], ("up", ["up"], []))
        # Its links went down with it, so the other end of its cable has none.
        self.assertEqual(self.hosts()["twin"], ("up", ["down"], []))
        self.assertEqual(self.status()["state"], "hosts down")
        self.says([("topology", ".*lender .*, host DOWN", ".*nvme0.*, its host is DOWN"),
                   ("cluster status", r"now +hosts down +2/3 +1/4 +0/1 +lender, link twin\.0 +/.*"),
                   ("node list", "lender +4 +host +down .*"),
                   ("device list", "nvme0 .* lender +- +host down +- +-"),
                   ("segment list", "lender +- +- +- +host: down +- +- +- +-"),
                   ("stats", r"daemon +lender +\(state\) +down", r"device +nvme0 +\(state\) +host down")])

    def test_a_daemon_is_stopped(self):
        pid = self.pid_of(self.state, "smartiod.4")
        self.env["SMARTIO_TIMEOUT"] = "1"
        os.kill(pid, signal.SIGSTOP)
        try:
            self.assertEqual(self.hosts()["lender"], ("no answer", ["unknown"] * 2, ["unknown"]))
            self.says([("topology", ".*lender .*, host gives NO ANSWER",
                        ".*nvme0.*, state unknown")])
        finally:
            os.kill(pid, signal.SIGCONT)

    def test_the_room_is_killed(self):
        pids = [self.pid_of(self.state, f"smartiod.{n}") for n in (4, 8, 12)]
        emu = self.pid_of(self.state, "emu")
        os.kill(emu, signal.SIGKILL)
        for pid in (emu, *pids):
            base.wait_gone(pid)
        self.assertEqual({h[0] for h in self.hosts().values()}, {"down"})
        self.assertEqual(self.status()["state"], "stale")
        self.assertEqual(self.look("topology")["machine_room"], "down")
        self.says([("topology", "  the machine room is DOWN"),
                   ("cluster status", "now +stale +0/3 +.*")])


if __name__ == "__main__":
    base.main()
