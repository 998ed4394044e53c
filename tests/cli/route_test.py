#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio route: ways through the topology files that are shipped, each held against a search of the graph that
--dot draws, and its times against the formulas of docs/fidelity.md, computed anew here; what is refused; a
cluster whose links go down; the paper's figures.

usage: route_test.py EXAMPLES SCHEMA PREDICT FIDELITY
"""
import collections
import glob
import json
import os
import random
import re
import subprocess
import sys

import jsonschema

import base

EXAMPLES, SCHEMA, PREDICT, FIDELITY = (sys.argv.pop(1) for _ in range(4))
LATENCY = {"switch": 170000, "chassis": 150000, "adapter": 132000, "host": 0}
LANE = [4000000, 2000000, 1015625, 507813, 253906, 135593]  # femtoseconds of a byte
NAME = r"[A-Za-z][\w-]*(?:[.:/][\w-]+)?"


def kind_of(node, switches):
    if node in switches:
        return "switch"
    for mark, kind in ((":", "device"), ("/", "chassis"), (".", "adapter")):
        if mark in node:
            return kind
    return "host"


class Graph:
    """What smartio topology --dot draws."""
    def __init__(self, dot):
        self.switches = {n for n, label in re.findall(rf'"({NAME})" \[shape=\w+, label="([^"]+)"\]', dot)
                         if r"\nswitch" in label}
        self.peers, self.gen = collections.defaultdict(dict), {}
        for a, b, width, gen in re.findall(rf'^\t"({NAME})" -- "({NAME})" \[label="x(\d+) gen (\d)"', dot, re.M):
            self.peers[a][b] = self.peers[b][a] = (int(width), int(gen))

    def may_pass(self, node, ends):
        """No device passes anything on; a host what comes from or goes to its own."""
        kind = kind_of(node, self.switches)
        if kind == "host":
            return any(re.split("[.:/]", end)[0] == node for end in ends)
        return kind != "device"

    def hops(self, start, goal):
        """Chips between, by a search in all directions; None: nothing leads there."""
        far, todo = {start: 0}, collections.deque([start])
        while todo:
            at = todo.popleft()
            for peer in self.peers[at]:
                if peer == goal:
                    return far[at]
                if peer not in far and self.may_pass(peer, (start, goal)):
                    far[peer] = far[at] + 1
                    todo.append(peer)
        return None


def write_ps(chips, byte, size, payload=256):
    packets = -(-size // payload)
    return chips + (packets * 24 + -(-size // 4) * 4) * byte // 1000


def read_ps(chips, byte, size, tags, memory, request=512, payload=256):
    done, issue, arrived, at = collections.deque([0] * tags), 0, 0, 0
    while at < size:
        part = min(request, size - at)
        issue = max(issue, done.popleft()) + 24 * byte // 1000
        data = -(-part // payload) * 20 + -(-part // 4) * 4
        arrived = max(arrived, issue + 2 * chips + memory) + data * byte // 1000
        done.append(arrived)
        at += part
    return arrived


class Files(base.CommandTest):
    def route(self, *args):
        text = self.smartio("route", "--json", *args).stdout
        with open(os.path.join(SCHEMA, "route.json"), encoding="utf-8") as f:
            jsonschema.validate(json.loads(text), json.load(f))
        return json.loads(text)["data"]

    def check_route(self, graph, data, pair):
        nodes = [data["from"]["name"], *(c["name"] for c in data["chips"]), data["to"]["name"]]
        self.assertEqual(data["hops"], len(data["chips"]))
        self.assertEqual(data["hops"], graph.hops(nodes[0], nodes[-1]), (pair, nodes))
        self.assertEqual(len(data["links"]), len(nodes) - 1)
        for a, b, link in zip(nodes, nodes[1:], data["links"]):
            self.assertEqual((link["width"], link["generation"]), graph.peers[a][b])
        for chip in data["chips"]:
            self.assertTrue(graph.may_pass(chip["name"], (nodes[0], nodes[-1])))
            self.assertEqual(chip["kind"], kind_of(chip["name"], graph.switches))
            self.assertEqual(chip["latency_ps"], LATENCY[chip["kind"]])
        chips = sum(c["latency_ps"] for c in data["chips"])
        self.assertEqual(data["chips_ps"], chips)
        byte = max(LANE[l["generation"] - 1] // l["width"] for l in data["links"])
        for t in data["transfers"]:
            self.assertEqual(t["write_ps"], write_ps(chips, byte, t["bytes"]))
            self.assertEqual([t[k] for k in ("write_packets", "read_requests", "completions")],
                             [-(-t["bytes"] // most) for most in (256, 512, 256)])
            if t["bytes"] <= 1 << 20:
                self.assertEqual(t["read_ps"],
                                 read_ps(chips, byte, t["bytes"], data["tags"], data["memory_ps"]))

    def test_ways_of_the_examples(self):
        draw, seen = random.Random(5), 0
        for path in sorted(glob.glob(os.path.join(EXAMPLES, "topologies", "*.yaml"))):
            graph = Graph(self.smartio("topology", "--dot", path).stdout)
            nodes = [n for n in list(graph.peers) if kind_of(n, graph.switches) in ("host", "device")]
            for _ in range(12):
                a, b = draw.sample(nodes, 2)
                if graph.hops(a, b) is None:
                    done = self.smartio("route", a.split(":")[-1], b.split(":")[-1], path, status=1)
                    self.assertIn("no way leads", done.stderr)
                    continue
                tags, memory = draw.choice((1, 8, 32, 256)), draw.randrange(0, 2000)
                data = self.route("--tags", str(tags), "--memory", str(memory), a.split(":")[-1],
                                  b.split(":")[-1], path)
                self.assertEqual((data["tags"], data["memory_ps"]), (tags, memory * 1000))
                self.check_route(graph, data, (path, a, b))
                seen += 1
        self.assertGreater(seen, 50)

    def test_latency_of_the_file(self):
        path = self.file("slow.yaml", "cluster: c\nswitches: [{name: s, latency: 7}]\nhosts:\n"
                         "  a: {adapters: [{latency: 0}]}\n  b: {adapters: [{latency: 90}]}\n")
        self.assertEqual([c["latency_ps"] for c in self.route("a", "b", path)["chips"]], [0, 7000, 90000])

    def test_refuses_what_is_wrong(self):
        path = os.path.join(EXAMPLES, "topologies", "chassis.yaml")
        for args, status, say in [
                (("nvme0",), 2, "TO"),
                (("nvme0", "borower", path), 1, "'borower' is no device, and"),
                (("nvme9", "borrower", path), 1, "it has lender, borrower"),
                (("borrower", "8", path), 1, "are the same"),
                (("--tags", "0", "nvme0", "borrower", path), 2, "1 to 1024 is right"),
                (("--tags", "1025", "nvme0", "borrower", path), 2, "--tags 1025"),
                (("--tags", "-1", "nvme0", "borrower", path), 2, "--tags -1"),
                (("--memory", "1ms", "nvme0", "borrower", path), 2, "--memory 1ms"),
                (("nvme0", "borrower", "/nonexistent"), 1, "/nonexistent"),
                (("nvme0", "borrower"), 1, "no cluster is running")]:
            self.assertIn(say, self.smartio("route", *args, status=status).stderr)

    def test_text(self):
        path = os.path.join(EXAMPLES, "topologies", "chassis.yaml")
        text = self.smartio("route", "nvme0", "borrower", path).stdout
        self.assertIn("Modelled, not measured: 4 hops, 584 ns there, 1168 ns there and back.", text)
        self.assertRegex(text, r"\nlender/box +chassis +150 ns +x8 gen 3\n")
        self.assertRegex(text, r"\n +4K +1\.72 us +2\.3\d\d +2\.30 us +1\.7\d\d\n")
        self.assertIn("1 hop,", self.smartio("route", "nvme0", "nvme1", path).stdout)

    def test_what_runs(self):
        self.up()
        graph = Graph(self.smartio("topology", "--dot").stdout)
        self.check_route(graph, self.route("nvme0", "client2"), "live")
        self.smartio("fault", "link", "client2", "down")
        self.assertIn("no way leads from 'nvme0' to 'client2' now",
                      self.smartio("route", "nvme0", "client2", status=1).stderr)
        self.assertEqual(self.route("nvme0", "client1")["hops"], 4)
        self.smartio("fault", "link", "client2", "up")
        self.assertEqual(self.route("nvme0", "client2")["hops"], 4)
        self.smartio("fault", "device", "nvme0", "out")
        self.assertIn("device 'nvme0' is out of its slot",
                      self.smartio("route", "client2", "nvme0", status=1).stderr)

    def test_the_document_has_what_is_predicted(self):
        """docs/fidelity.md shows what the script prints, line by line, and says something of each figure that does
        not fit."""
        done = subprocess.run([sys.executable, "-B", PREDICT, "--tool", base.TOOL], capture_output=True, text=True,
                              check=True)
        with open(FIDELITY, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("\n" + done.stdout + "\n", text)
        rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
        self.assertGreaterEqual(int(re.search(r" of (\d+) figures", done.stdout)[1]), 20)
        for what, *_, label, fits, _source in rows:
            self.assertIn(label, ("modelled", "counted"))
            if fits == "no":
                self.assertIn(f"\n- **{what[0].upper()}{what[1:]}", text)



if __name__ == "__main__":
    base.main()
