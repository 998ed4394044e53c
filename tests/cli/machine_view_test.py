#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hosts of kind machine in every view: off, on, cut off, with traffic that is known to the byte, and with a mapped window,
whose traffic nobody counts. Each machine is an initiator of vfio-user of our own, without QEMU."""
import os
import re
import socket
import struct
import sys
import time

import base
import openmetrics
from webserver import WebTest

sys.path.append(os.path.join(base.HERE, "..", "emu"))
from initiator import RAM, Initiator  # noqa: E402
from ntb_machine import DB_MASK, DEVICE, ENABLE, ENTRY, ONES, WINDOW, Machine, peer  # noqa: E402

EXACT = """cluster: exact
switches: [s, t]
hosts:
  one: { ram: 64M, adapters: [{ to: t }] }
  a: { kind: machine, adapters: [{ to: s, window: 1M, entries: 256 }], devices: { disk: { type: nvme, size: 1M } } }
  b: { kind: machine, adapters: [{ to: s, window: 1M, entries: 256 }] }
"""
MAPPED = """cluster: mapped
hosts:
  a: { kind: machine, window: mapped, ram: 4M, adapters: [{ window: 1M, entries: 256 }] }
  b: { kind: machine, window: mapped, ram: 4M, adapters: [{ window: 1M, entries: 256 }] }
"""
TRAFFIC = ("rd_req", "rd_cpl", "rd_bytes", "wr_tlp", "wr_bytes", "msg")


class Views(WebTest):
    def up_with(self, text):
        name = re.match(r"cluster: (\w+)", text)[1]
        self.smartio("cluster", "up", self.file(f"{name}.yaml", text))
        self.state = os.path.join(self.base, name)

    def machine(self, name):
        m = Machine(f"{self.state}/vfio.{name}.0", vectors=40)
        self.addCleanup(m.close)
        m.start()
        m.write32(ENABLE, 1)
        return m

    def nodes(self):
        return {n["name"]: n for n in self.json("node", "list")["nodes"]}

    def counters(self, kind="adapters"):
        return {a["name"]: {name: int(v, 16) for name, v in a["counters"].items()} for a in self.json("stats")[kind]}

    def metric(self, name, **labels):
        families = openmetrics.parse(self.smartio("stats", "--openmetrics").stdout)
        return {dict(key)["host"]: value for key, value in families[name].samples.items()
                if labels.items() <= dict(key).items()}

    def until_state(self, name, state):
        """Its end comes by another socket than what we ask."""
        end = time.monotonic() + 60
        while self.nodes()[name]["state"] != state:
            self.assertLess(time.monotonic(), end)

    def shows(self, *words, lines):
        text = self.smartio(*words).stdout
        for line in lines:
            self.assertRegex(text, f"(?m)^{line}$")

    def topology_hosts(self):
        return {h["name"]: h for h in self.json("topology")["hosts"]}

    def test_off(self):
        self.up_with(EXACT)
        nodes = self.nodes()
        self.assertEqual([(n["kind"], n["state"]) for n in nodes.values()],
                         [("host", "up"), ("machine", "down"), ("machine", "down")])
        adapter, = nodes["a"]["adapters"]
        self.assertEqual((adapter["link"], adapter["attached"], adapter["link_enabled"], adapter["traffic_counted"]),
                         ("down", False, False, True))
        self.assertEqual((nodes["a"]["window"], nodes["a"]["devices"]), ("exact", 1))
        self.assertNotIn("ram", nodes["a"])
        hosts = self.topology_hosts()
        self.assertEqual({n: (h["kind"], h["state"]) for n, h in hosts.items()},
                         {n: (h["kind"], h["state"]) for n, h in nodes.items()})
        self.assertEqual(hosts["a"]["adapters"][0]["switch"], "s")
        self.assertEqual([(d["name"], d["state"]) for d in hosts["a"]["devices"]], [("disk", "detached")])
        self.shows("node", "list", lines=["one +4 +host +up +64M .*", "a +8 +machine +down +- +- +0/1 up +- +0 of 256 +1 +-"])
        self.shows("topology", lines=[".*-- a .* adapter 0 of a machine, exact window 1M in 256 entries, off"])
        self.shows("top", "--once", "--delay", "0.1", lines=[
            "exact: hosts 1/1 up, machines 0/2 up, links 1/1 up, devices 0/0 in, faults 0 .*", "a +8 +machine +down .*",
            r"a\.0 +down +0 of 256 .*", "disk +a +detached .*"])
        self.shows("stats", lines=["machine +a +.state. +down", r"adapter +b\.0 +stale_reads +0"])
        self.assertEqual(self.metric("smartio_machine_up"), {"a": 0, "b": 0})
        self.assertEqual(self.metric("smartio_host_up"), {"one": 1})
        self.assertEqual(self.metric("smartio_device_attached", device="disk"), {"a": 0})
        self.assertNotIn("a", self.metric("smartio_device_present"))
        # No cable is pulled, and the picture does not say so.
        self.assertNotIn("dashed", self.smartio("topology", "--dot").stdout)
        self.assertEqual(self.json("cluster", "status")["clusters"][0]["state"], "running")

    def test_on_and_cut_off(self):
        self.up_with(EXACT)
        self.machine("a")
        node = self.nodes()["a"]
        self.assertEqual((node["state"], node["adapters"][0]["link"]), ("up", "up"))
        self.assertTrue(node["adapters"][0]["attached"] and node["adapters"][0]["link_enabled"])
        self.assertEqual(self.nodes()["b"]["state"], "down")
        self.shows("topology", lines=[".*-- a .*, up", ".*-- b .*, off"])
        self.assertEqual(self.metric("smartio_adapter_link_up"), {"one": 1, "a": 1, "b": 0})
        self.assertEqual(self.metric("smartio_adapter_attached"), {"a": 1, "b": 0})
        self.smartio("fault", "link", "a", "down")
        node = self.nodes()["a"]
        self.assertEqual((node["state"], node["adapters"][0]["link"]), ("up", "down"))
        self.shows("topology", lines=[".*-- a .*, link DOWN"])
        self.shows("top", "--once", "--delay", "0.1", lines=[".*machines 1/2 up, links 1/2 up.*"])
        self.assertRegex(self.smartio("topology", "--dot").stdout, r'"a.0" -- "s" \[.*style=dashed')
        self.smartio("fault", "link", "a", "up")
        self.smartio("fault", "switch", "s", "down")
        self.assertEqual(self.nodes()["a"]["adapters"][0]["link"], "down")
        self.smartio("fault", "switch", "s", "up")
        self.assertEqual(self.nodes()["a"]["adapters"][0]["link"], "up")

    def test_who_has_a_device_alone(self):
        self.up_with(EXACT)
        drive = Initiator(f"{self.state}/vfio.disk")
        self.addCleanup(drive.close)
        drive.ask(4, struct.pack("=IIII", 16, 0, 0, 0))  # it is served, so it is attached
        host = self.topology_hosts()["a"]
        self.assertEqual((host["state"], host["devices"][0]["state"], host["devices"][0]["host_state"]),
                         ("up", "attached", "up"))
        self.assertEqual(self.metric("smartio_device_attached", device="disk"), {"a": 1})
        self.assertEqual(self.counters("devices")["disk"]["commands_read"], 0)

    def test_what_passes_is_counted_at_both_ends(self):
        self.up_with(EXACT)
        a, b = self.machine("a"), self.machine("b")
        a.grant(0, 0, RAM, 0x1000)
        b.lead(0, 0, RAM)
        b.lead(1, 0, RAM + 0x100000)  # which nobody has granted
        before, looks = self.counters(), []
        for at in range(3):
            b.write32(4 * at, at, WINDOW)
        self.assertEqual(b.read32(8, WINDOW), 2)
        self.assertEqual(b.read32(ENTRY, WINDOW), ONES)
        a.write32(DB_MASK, 0)
        b.write32(peer(0, 0x20), 0b101)
        looks.append(self.counters())
        for end in ("a.0", "b.0"):
            grew = {name: looks[0][end][name] - before[end][name] for name in before[end]}
            self.assertEqual({name: grew[name] for name in TRAFFIC},
                             {"rd_req": 2, "rd_cpl": 2, "rd_bytes": 4, "wr_tlp": 3, "wr_bytes": 12, "msg": 0})
            self.assertEqual(grew["faults"], 1)
            self.assertEqual(grew["doorbells"], 2 if end == "a.0" else 0)
            self.assertEqual(grew["interrupts"], 3 if end == "a.0" else 1)  # of the fault, one each
        self.assertEqual((looks[0]["a.0"]["grants"], looks[0]["b.0"]["lut_used"]), (1, 2))
        self.assertEqual(self.counters("machines"), {"a": {"faults": 1}, "b": {"faults": 1}})
        self.assertEqual(self.metric("smartio_adapter_pcie_written_bytes"), {"one": 0, "a": 12, "b": 12})
        self.assertEqual(self.metric("smartio_adapter_doorbells"), {"a": 2, "b": 0})
        # One alone may be asked for, and what it counted stays when it goes.
        b.sock.shutdown(socket.SHUT_RDWR)
        self.until_state("b", "down")
        stats = self.json("stats", "--node", "b")
        self.assertEqual([h["name"] for h in stats["machines"]], ["b"])
        self.assertEqual((stats["hosts"], [x["name"] for x in stats["adapters"]]), ([], ["b.0"]))
        self.assertEqual(int(stats["adapters"][0]["counters"]["wr_bytes"], 16), 12)

    def test_stale_reads(self):
        self.up_with(EXACT)
        a, b = self.machine("a"), self.machine("b")
        for one, other in ((a, b), (b, a)):
            one.grant(0, 0, DEVICE, 0x1000)
            other.lead(0, 0, DEVICE)
        a.ask_window(0)
        b.receive()  # it is asked, and asks meanwhile
        b.ask_window(0)
        self.assertEqual(b.answered(), ONES)
        self.shows("stats", lines=[r"adapter +b\.0 +stale_reads +1", r"adapter +a\.0 +stale_reads +0"])
        self.assertEqual(self.metric("smartio_adapter_stale_reads"), {"a": 0, "b": 1})

    def test_rates(self):
        self.up_with(EXACT)
        a, b = self.machine("a"), self.machine("b")
        a.grant(0, 0, RAM, 0x1000)
        b.lead(0, 0, RAM)
        top = self.start("top", "--json", "--delay", "0.5")
        while top.poll() is None:
            b.write32(0, 1, WINDOW)
        data = self.document(top.communicate()[0])
        links = {row["name"]: row for row in data["links"]}
        hosts = {row["name"]: row for row in data["hosts"]}
        for name in ("a", "b"):
            self.assertEqual(hosts[name]["kind"], "machine")
            self.assertTrue(links[f"{name}.0"]["traffic_counted"])
            self.assertGreater(links[f"{name}.0"]["writes_per_second"], 0)
            self.assertAlmostEqual(links[f"{name}.0"]["written_bytes_per_second"],
                                   4 * links[f"{name}.0"]["writes_per_second"])
            self.assertEqual(hosts[name]["writes_per_second"], links[f"{name}.0"]["writes_per_second"])

    def test_mapped_windows_are_not_counted(self):
        self.up_with(MAPPED)
        self.machine("a")
        self.machine("b")
        stats = self.json("stats")
        for adapter in stats["adapters"]:
            self.assertIs(adapter["traffic_counted"], False)
            self.assertFalse(set(TRAFFIC) & set(adapter["counters"]))
            self.assertIn("doorbells", adapter["counters"])
        node = self.nodes()["a"]
        self.assertEqual((node["window"], node["ram"], node["adapters"][0]["traffic_counted"]), ("mapped", 4 << 20, False))
        self.shows("stats", lines=[r"adapter +a\.0 +.traffic. +not counted: windows are mapped"])
        self.shows("top", "--once", "--delay", "0.1", lines=[r"a\.0 +up, not counted +0 of 256 +- +- +- +- +- +0",
                                                             "a +8? *4? +machine +up +1/1 up +- +- +- +- +- +0"])
        families = openmetrics.parse(self.smartio("stats", "--openmetrics").stdout)
        self.assertNotIn("smartio_adapter_pcie_writes", families)

    def test_nobody_knows_without_the_room(self):
        self.up_with(EXACT)
        self.addCleanup(os.rename, f"{self.state}/aside", f"{self.state}/room")
        os.rename(f"{self.state}/room", f"{self.state}/aside")  # its socket
        nodes = self.nodes()
        self.assertEqual((nodes["a"]["state"], nodes["a"]["adapters"][0]["link"]), ("unknown", "unknown"))
        self.assertNotIn("attached", nodes["a"]["adapters"][0])
        self.assertEqual(self.topology_hosts()["a"]["devices"][0]["state"], "unknown")
        self.shows("topology", lines=[".*-- a .*, state unknown"])
        self.assertEqual(self.metric("smartio_machine_up"), {})
        self.assertEqual(self.counters()["a.0"], {})

    def test_the_page_has_them(self):
        self.up_with(EXACT)
        self.machine("a")
        child = self.serve()
        data = self.until(lambda d: d["state"] == "live" and d["look"] > 1)
        hosts = {h["name"]: h for h in data["topology"]["hosts"]}
        self.assertEqual((hosts["a"]["kind"], hosts["a"]["state"], hosts["b"]["state"]), ("machine", "up", "down"))
        self.assertEqual({row["name"]: row["kind"] for row in data["top"]["hosts"]},
                         {"one": "host", "a": "machine", "b": "machine"})
        self.end(child)


if __name__ == "__main__":
    base.main()
