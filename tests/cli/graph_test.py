#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio topology --dot, --mermaid and --svg: the same nodes and links as the topology files name, and as a cluster
that runs has; and the schema of topology files, which says of each file what the command says.

usage: graph_test.py EXAMPLES SCHEMA TOPOLOGY.MD
"""
import glob
import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree

import base

try:
    import yaml
except ImportError:  # the tests that need it say so
    yaml = None

EXAMPLES, SCHEMA, PAGE = (sys.argv.pop(1) for _ in range(3))
SOURCE = os.path.dirname(EXAMPLES)


def read(path):
    """A topology file as libsmartio/topofile reads it: numbers are decimal, all else is text."""
    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^(0|[1-9][0-9]*)$"), list("0123456789"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^(~|null|)$"), ["~", "n", ""])
    with open(path, encoding="utf-8") as f:
        return yaml.load(f, Loader)  # noqa: S506 (it is a SafeLoader)


def links_of(topology):
    """The links that a file names, each as its ends' names in order and its lanes."""
    links, cables = [], {}
    switches = [s if isinstance(s, str) else s["name"] for s in topology.get("switches", ["sw0"])]
    for l in topology.get("links", []):
        links.append((l["from"].split(".")[0], l["to"].split(".")[0], l.get("width", 8)))
    for name, host in topology["hosts"].items():
        host = host or {}

        def above(part, host=name):
            return f"{host}/{part['in']}" if "in" in part else host
        for box, part in host.get("chassis", {}).items():
            links.append((f"{name}/{box}", above(part or {}), (part or {}).get("width", 8)))
        for i, part in enumerate(host.get("adapters", [{}])):
            links.append((f"{name}.{i}", above(part), part.get("width", 8)))
            to = part.get("to", switches[0]).split(".")
            if to[0] in switches:
                links.append((f"{name}.{i}", to[0], part.get("width", 8)))
            else:  # cables of the examples name an adapter, or there is one only
                cables.setdefault(frozenset((f"{name}.{i}", ".".join(to) if len(to) > 1 else to[0] + ".0")), 8)
        for device, part in host.get("devices", {}).items():
            functions = [device] + [f"{device}-vf{i + 1}" for i in range(part.get("virtual_functions", 0))]
            links += [(f"{name}:{f}", above(part), part.get("width", 4)) for f in functions]
    links += [(*sorted(ends), width) for ends, width in cables.items()]
    return sorted((*sorted(l[:2]), int(l[2])) for l in links)


NAME = r"[A-Za-z][\w-]*(?:[.:/][\w-]+)?"


def parse_dot(text):
    """(names of nodes in order, links as links_of(), ends of those that are dashed)"""
    nodes = re.findall(rf'^\t+"({NAME})" \[shape=\w+, label="[^"]+"\];$', text, re.M)
    links = re.findall(rf'^\t"({NAME})" -- "({NAME})" \[label="x(\d+) gen \d"(, style=dashed.*)?\];$', text, re.M)
    assert len(links) == text.count(" -- "), text
    return nodes, sorted((*sorted(l[:2]), int(l[2])) for l in links), [set(l[:2]) for l in links if l[3]]


def parse_mermaid(text, names):
    """The same; its nodes are numbered in @names' order."""
    assert text.startswith("flowchart LR\n")
    nodes = re.findall(r"^ +n(\d+)[\[({]", text, re.M)
    assert nodes == [str(i) for i in range(len(names))], nodes
    links = re.findall(r'^  n(\d+) (---|-\.-)\|"x(\d+) gen \d"\| n(\d+)$', text, re.M)
    ends = [(names[int(a)], names[int(b)], int(w), how) for a, how, w, b in links]
    return sorted((*sorted(e[:2]), e[2]) for e in ends), [set(e[:2]) for e in ends if e[3] == "-.-"]


class Files(base.CommandTest):
    def examples(self):
        if yaml is None:
            self.skipTest("python3-yaml is missing")
        found = sorted(glob.glob(os.path.join(EXAMPLES, "*.yaml")) +
                       glob.glob(os.path.join(EXAMPLES, "topologies", "*.yaml")))
        self.assertGreaterEqual(len(found), 9)
        return found

    def test_draws_what_the_file_says(self):
        for path in self.examples():
            with self.subTest(path):
                topology = read(path)
                nodes, links, down = parse_dot(self.smartio("topology", "--dot", path).stdout)
                self.assertEqual(links, links_of(topology))
                self.assertEqual(len(nodes), len(set(nodes)))
                self.assertEqual({end for l in links for end in l[:2]} - set(nodes), set())
                self.assertLessEqual(set(topology["hosts"]), set(nodes))
                self.assertEqual(down, [])
                self.assertEqual(parse_mermaid(self.smartio("topology", "--mermaid", path).stdout, nodes),
                                 (links, []))

    def test_draws_a_picture(self):
        path = os.path.join(EXAMPLES, "topologies", "chassis.yaml")
        if shutil.which("dot"):
            text = self.smartio("topology", "--svg", path).stdout
            self.assertTrue(xml.etree.ElementTree.fromstring(text).tag.endswith("svg"))
            for name in ("shelf", "nvme3", "borrower"):
                self.assertIn(f">{name}<", text)
        done = self.smartio("topology", "--svg", path, status=1, env=dict(os.environ, PATH="/nonexistent"))
        self.assertIn("graphviz", done.stderr)

    def test_refuses_what_is_not_one_thing(self):
        path = os.path.join(EXAMPLES, "demo.yaml")
        self.assertIn("one or the other", self.smartio("topology", "--dot", "--svg", path, status=2).stderr)
        self.assertIn("one or the other", self.smartio("topology", "--dot", "--json", status=2).stderr)
        self.assertIn("--dot", self.smartio("topology", path, status=2).stderr)
        self.assertIn("cannot be read", self.smartio("topology", "--dot", "/nonexistent", status=1).stderr)

    def test_draws_what_runs(self):
        self.up()
        nodes, links, down = parse_dot(self.smartio("topology", "--dot").stdout)
        self.assertEqual(sorted(nodes), ["client1", "client1.0", "client2", "client2.0", "lender", "lender.0",
                                         "lender:nvme0", "sw0"])
        self.assertEqual((len(links), down), (7, []))
        self.smartio("fault", "link", "client2", "down")
        nodes, links, down = parse_dot(self.smartio("topology", "--dot").stdout)
        self.assertEqual(down, [{"client2.0", "sw0"}])
        self.assertEqual(parse_mermaid(self.smartio("topology", "--mermaid").stdout, nodes), (links, down))

    def test_the_small_ones_run(self):
        """Whoever is joined reaches each other: 'cluster up' tries each path, and says which one fails."""
        cascade = self.file("cascade.yaml", """cluster: cascade
switches: [{ name: top, ports: 8, lanes: 4 }, left, right]
links: [{ from: left, to: top, width: 16 }, { from: top, to: right }]
hosts:
  a: { ram: 16M, adapters: [{ to: left }], devices: { nvme0: { type: nvme, size: 16M } } }
  b: { ram: 16M, adapters: [{ to: right }] }
  far: { node: 500, ram: 16M, adapters: [{ to: top, width: 4 }] }
""")
        small = ["back-to-back", "one-switch", "two-paths", "chassis", "ring-of-eight"]
        for path in [*(os.path.join(EXAMPLES, "topologies", name + ".yaml") for name in small), cascade]:
            with self.subTest(path):
                self.smartio("cluster", "up", path)
                data = json.loads(self.smartio("topology", "--json").stdout)["data"]
                self.assertTrue(all(h["state"] == "up" for h in data["hosts"]))
                self.assertEqual(parse_dot(self.smartio("topology", "--dot").stdout),
                                 parse_dot(self.smartio("topology", "--dot", path).stdout))
                if path == cascade:
                    self.assertIn("lender                a (node 4)", self.smartio("device", "info", "nvme0").stdout)
                    self.assertIn("x16 gen 3 to [left]", self.smartio("topology").stdout)
                self.smartio("cluster", "down")

    # ---- the schema of topology files ----
    def schema(self):
        if yaml is None or base.SCHEMAS is None:
            self.skipTest("python3-yaml or python3-jsonschema is missing")
        from jsonschema import Draft202012Validator  # pylint: disable=import-outside-toplevel
        with open(SCHEMA, encoding="utf-8") as f:
            schema = json.load(f)
        Draft202012Validator.check_schema(schema)
        return schema, Draft202012Validator(schema)

    def test_the_schema_has_the_examples_right(self):
        _, validator = self.schema()
        for path in self.examples():
            with self.subTest(path), open(path, encoding="utf-8") as f:
                validator.validate(read(path))
                self.smartio("cluster", "validate", path)
                named = re.search(r"^# yaml-language-server: \$schema=(.*)$", f.read(), re.M)
                # That of the build that `make` makes.
                self.assertEqual(os.path.normpath(os.path.join(os.path.dirname(path), named[1])),
                                 os.path.join(SOURCE, "build/plain/libsmartio/topofile/topology.schema.json"))

    def test_the_schema_knows_the_keys(self):
        """All that the reader knows, and no other: it lists them where one is wrong."""
        schema, _ = self.schema()
        defs = schema["$defs"]
        host = "cluster: c\nhosts:\n  a:\n"
        for text, part in [
                ("cluster: c\nzz: 1\nhosts: { a: }\n", schema),
                ("cluster: c\nswitches: [{ zz: 1 }]\nhosts: { a: }\n", defs["switch"]["anyOf"][1]),
                ("cluster: c\nlinks: [{ zz: 1 }]\nhosts: { a: }\n", defs["link"]),
                ("cluster: c\nhosts: { a: }\naccess: { zz: 1 }\n", defs["access"]),
                ("cluster: c\nhosts: { a: }\naccess: { rules: [{ zz: 1 }] }\n", defs["rule"]),
                ("cluster: c\nhosts: { a: }\nquotas: { zz: 1 }\n", defs["quotas"]),
                ("cluster: c\nhosts: { a: }\nquotas: { node: { zz: 1 } }\n", defs["limits"]),
                (host + "    zz: 1\n", defs["host"]), (host + "    adapters: [{ zz: 1 }]\n", defs["adapter"]),
                *((host + f"    devices: {{ d: {{ type: {t}, zz: 1 }} }}\n", defs[f"device_{t}"])
                  for t in defs["device"]["properties"]["type"]["enum"]),
                (host + "    chassis: { d: { zz: 1 } }\n", defs["chassis"])]:
            said = self.smartio("cluster", "validate", self.file("t.yaml", text), status=1).stderr
            known = re.search(r"no such key; one of (.*) is right", said)
            self.assertEqual(sorted(known[1].split(", ")), sorted(part["properties"]))

    def test_the_page_has_the_keys_of_devices(self):
        """The tables of docs/topology.md: of each device, and of a drive."""
        schema, _ = self.schema()
        with open(PAGE, encoding="utf-8") as f:
            page = f.read()
        each = set(schema["$defs"]["each_device"]["properties"]) | {"type"}
        drive = set(schema["$defs"]["device_nvme"]["properties"]) - each
        for heading, keys in (("## Keys of a device", each), ("### Keys of an NVMe drive", drive)):
            part = re.search(rf"^{heading}\n(.*?)(?=^##)", page, re.M | re.S)[1]
            rows = re.findall(r"^\| (`.*?) \|", part, re.M)
            self.assertEqual(sorted(re.findall(r"`(\w+)`", " ".join(rows))), sorted(keys))
        for kind in schema["$defs"]["device"]["properties"]["type"]["enum"]:
            self.assertIn(f"`{kind}`", page)

    def test_the_schema_refuses_what_the_reader_refuses(self):
        _, validator = self.schema()
        for text in ["hosts: { a: }\n", "cluster: c\n", "cluster: c\nhosts: { a: { node: 252 } }\n",
                     "cluster: c\nhosts: { a: { node: 6 } }\n", "cluster: c\nhosts: { a: { node: 512 } }\n",
                     "cluster: c\nhosts: { a: { ram: 4x } }\n", "cluster: c\nhosts: { a: { iommu: maybe } }\n",
                     "cluster: c\nhosts: { a: { adapters: [{ width: 3 }] } }\n",
                     "cluster: c\nhosts: { a: { adapters: [{ to: b.c }] } }\n",
                     "cluster: c\nhosts: { a: { devices: { d: } } }\n",
                     "cluster: c\nhosts: { a: { devices: { d: { type: lamp } } } }\n",
                     "cluster: c\nhosts: { a: { devices: { d: { type: memory, block: 512 } } } }\n",
                     "cluster: c\nhosts: { a: { devices: { d: { type: nvme, block: 513 } } } }\n",
                     "cluster: c\nhosts: { a: { devices: { d: { type: nvme, namespaces: [] } } } }\n",
                     "cluster: c\nhosts: { a: { devices: { d: { type: accelerator, units: 9 } } } }\n",
                     "cluster: c\nhosts: { a: { chassis: { d: { lanes: 4 } } } }\n",
                     "cluster: c\nswitches: [{ name: s, lanes: 4 }]\nhosts: { a: }\n",
                     "cluster: c\nswitches: [s]\nlinks: [{ from: s }]\nhosts: { a: }\n",
                     "cluster: c\nhosts: { a: }\naccess: { between_machines: ajar }\n",
                     "cluster: c\nhosts: { a: }\naccess: { rules: [{ nodes: all }] }\n",
                     "cluster: c\nhosts: { a: }\naccess: { rules: [{ device: all }] }\n",
                     "cluster: c\nhosts: { a: }\naccess: { rules: [{ segments: 1-, nodes: all }] }\n",
                     "cluster: c\nhosts: { a: }\naccess: { rules: [{ segments: all, users: [-a] }] }\n",
                     "cluster: c\nhosts: { a: }\nquotas: { program: { borrows: 1G } }\n"]:
            path = self.file("t.yaml", text)
            self.assertFalse(validator.is_valid(read(path)), text)
            self.smartio("cluster", "validate", path, status=1)


if __name__ == "__main__":
    base.main()
