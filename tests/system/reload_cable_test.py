#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio cluster reload moves cables, and adds and removes switches, with clients of a drive at their I/O over them.

usage: reload_cable_test.py BUILD
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reload_test  # noqa: E402
from cluster import Cluster  # noqa: E402

# Of each file: the switches, what joins them, and where the hosts' cables lead.
BASE = {"switches": ["west", "east"], "links": [("west", "east")], "lender": "west", "near": "west", "far": "east"}


def text_of(**changed):
    f = {**BASE, **changed}
    text = f"cluster: lab\nswitches: [{', '.join(f['switches'])}]\n"
    if f["links"]:
        text += "links:\n" + "".join(f"  - {{ from: {a}, to: {b}{''.join(f', {x}' for x in more)} }}\n"
                                     for a, b, *more in f["links"])
    text += "apart: on\nhosts:\n"
    for host in ("lender", "near", "far"):
        to = f[host] if isinstance(f[host], list) else [f[host]]
        adapters = ", ".join(f"{{ to: {x} }}" for x in to)
        devices = ", devices: { nvme0: { type: nvme, size: 256M }, nvme1: { type: nvme, size: 256M } }"
        text += f"  {host}: {{ ram: 256M, adapters: [{adapters}]{devices if host == 'lender' else ''} }}\n"
    return text


class Cables(reload_test.Base):
    def setUp(self):
        self.begin()
        self.files = 0

    def begin(self, **changed):
        self.c = Cluster(reload_test.BUILD, text_of(**changed))
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)

    def cable(self, *words, status=0, **changed):
        return self.reload(*words, self.write(text=text_of(**changed)), status=status)

    def passed(self):
        """Bytes that links between switches have carried, by their ends."""
        return {t["name"]: int(t["counters"]["wr_bytes"], 16) for t in
                json.loads(self.c.smartio("stats", "--json"))["data"]["trunks"]}

    def moves_on(self, link):
        """I/O goes over the link now."""
        before = self.passed()[link]
        for _ in range(200):
            if self.passed()[link] > before:
                return
        self.fail(f"nothing passes {link}")

    def lender_of(self, host):
        """The lender, as that daemon sees it."""
        peers = json.loads(self.c.run(host, self.c.smartio_path, "node", "list", "--json"))["data"]["nodes"]
        return next(n for n in peers if n["name"] == "lender")

    def test_paths_that_are_longer_or_shorter(self):
        """No I/O fails, whatever leads where, as long as something does."""
        before = self.c.audit()
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        self.moves_on("west-east")
        # A switch is put in between.
        longer = {"switches": ["west", "mid", "east"], "links": [("west", "mid"), ("mid", "east")]}
        done = self.cable("--check", **longer)
        self.assertEqual(sorted(done.stdout.splitlines()), [
            "link from switch 'mid', port 0, to 'east', port 0, width 8, generation 3 is new",
            "link from switch 'west', port 0, to 'east', port 0, width 8, generation 3 is gone",
            "link from switch 'west', port 0, to 'mid', port 0, width 8, generation 3 is new",
            "switch 'mid' is new"])
        self.assertIn("4 changes would be in force at once; nothing was changed", done.stderr)
        self.assertNotIn("mid", self.in_force())
        self.moves_on("west-east")
        self.assertIn("4 changes are in force on 3 hosts", self.cable(**longer).stderr)
        for link in ("west-mid", "mid-east"):
            self.moves_on(link)
        # The cascade in another order, and a ring; what is wider; and a shorter one again.
        self.cable(switches=["mid", "east", "west"], links=[("mid", "west"), ("east", "mid"), ("west", "east")])
        self.moves_on("west-east")
        done = self.cable(switches=["mid", "east", "west"], links=[("west", "east", "width: 16, generation: 4")])
        self.assertIn("width 16, generation 4 is new", done.stdout)
        self.moves_on("west-east")
        # Cables of hosts, also the lender's.
        done = self.cable(far="west")
        self.assertIn("host 'far', adapter 0: to is switch 'west', was switch 'east'\n", done.stdout)
        self.cable(far="west", near="east")
        self.moves_on("west-east")
        self.cable(far="west", near="east", lender="east")
        self.moves_on("west-east")
        self.all_is_well(before, manager, near, far)

    def test_any_that_joins_them(self):
        """Many clusters drawn at random, in which all three reach one another."""
        draw = random.Random(23)
        self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        for _ in range(25):
            switches = draw.sample(["s1", "s2", "s3", "s4", "s5"], draw.randint(1, 5))
            links = [(x, draw.choice(switches[:i])) for i, x in enumerate(switches) if i]
            links += [tuple(draw.sample(switches, 2)) for _ in range(draw.randint(0, 3)) if len(switches) > 1]
            draw.shuffle(links)
            draw.shuffle(switches)
            self.cable(switches=switches, links=links, **{h: draw.choice(switches) for h in ("lender", "near", "far")})
        for child in (near, far):
            self.assertIsNone(child.poll(), "a client ended")
        self.is_well(near, far)

    def loses(self, cut, mend):
        """What far's client says whose only path goes, and near's who goes on; all is there when it comes back."""
        far = self.busy("far")
        cut()
        status, _, err = self.c.end_by_itself(far)
        self.assertNotEqual(status, 0)
        state = self.lender_of("far")["state"]
        refused = self.borrow("far", "nvme1")
        self.assertNotEqual(refused.returncode, 0)
        mend()
        self.is_well(self.busy("far"))
        return re.sub(r"\d+", "N", err), state

    def test_what_loses_its_only_path(self):
        """As by smartio fault, which takes the same cable away, or the link."""
        before = self.c.audit()
        manager = self.c.manager("lender")
        near = self.busy("near")
        alone = {"switches": ["west", "east", "alone"]}
        ways = [(lambda: self.c.smartio("fault", "link", "far.0", "down"),
                 lambda: self.c.smartio("fault", "link", "far.0", "up")),
                (lambda: self.cable(links=[]), self.cable),
                (lambda: self.cable(far="alone", **alone), self.cable)]
        seen = [self.loses(*way) for way in ways]
        for other in seen[1:]:
            self.assertEqual(other, seen[0])
        self.all_is_well(before, manager, near)

    def test_faults_stay(self):
        """A link that is down is down by the next file, too, and one that is new is not."""
        self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        around = {"switches": ["top", "east", "west"], "links": [("west", "top"), ("east", "top"), ("west", "east")]}
        self.cable(**around)
        self.c.smartio("fault", "trunk", "west", "east", "down")
        for link in ("west-top", "east-top"):
            self.moves_on(link)
        self.cable(switches=["west", "top", "east"], links=[("east", "west"), ("top", "west"), ("top", "east")])
        self.assertIn("trunk east west", self.c.smartio("cluster", "status"))
        for link in ("top-west", "top-east"):
            self.moves_on(link)
        self.c.smartio("fault", "trunk", "west", "east", "up")
        self.moves_on("east-west")
        self.is_well(near, far)

    def test_two_paths(self):
        """A queue that uses both adapters of its host goes on over the other one, and home again."""
        self.c.__exit__()
        both = {"switches": ["west", "east", "alone"], "links": [], "lender": ["west", "east"], "far": ["east", "west"]}
        self.begin(**both)
        before = self.c.audit()
        manager = self.c.manager("lender")
        written = self.c.counters()["wr_bytes"]
        far = self.c.start("far", self.c.nvme, "bench", "nvme0", "--multipath", "--survive", "on", "--seconds", "3",
                           "--json")
        while self.c.counters()["wr_bytes"] < written + (1 << 20):
            self.assertIsNone(far.poll())
        near = self.busy("near")
        turn = 0
        while far.poll() is None:
            self.cable(**{**both, "far": ["alone", "west"]})
            self.assertEqual(self.lender_of("far")["state"], "up")
            self.cable(**both)
            turn += 1
        status, out, err = self.c.end(far)
        self.assertEqual(status, 0, out + err)
        self.assertGreater(turn, 2)
        self.is_well(near, self.busy("far"))
        self.assertIsNone(manager.poll())
        manager.send_signal(signal.SIGTERM)
        self.c.end(manager)
        self.c.audit_until(before)

    def test_all_or_nothing(self):
        self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        before = self.in_force()
        refused = self.reload(self.write(text=text_of(links=[]).replace("far: {", "far: { iommu: on,")), status=1)
        self.assertIn("needs a restart: host 'far': iommu is 1, was 0", refused.stdout)
        for text in (text_of(links=[]).replace("adapters: [{ to: east", "adapters: [{ window: 512M, to: east"),
                     text_of(links=[]).replace("far: { ram: 256M, adapters: [{",
                                               "far: { ram: 256M, chassis: { box: }, adapters: [{ in: box,")):
            self.assertIn("host 'far', adapter 0 is another one, and this one is in use (maps: ",
                          self.reload(self.write(text=text), status=1).stderr)
        path = self.write(text=text_of(links=[("west", "north")]))
        self.assertIn(path + ":", self.reload(path, status=1).stderr)
        self.assertEqual(self.in_force(), before)
        self.moves_on("west-east")
        self.is_well(near, far)

    def test_what_a_reload_left_in_between_is_mended(self):
        """Its command died behind each of its steps, and a daemon with it; then the room."""
        self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        in_force = os.path.join(self.c.state, "topology.yaml")
        new = self.write(text=text_of(switches=["mid", "west", "east"], links=[("mid", "west"), ("east", "mid")]))
        old = self.write(text=text_of())
        for crash in (False, True):
            for path in (new, old):
                with self.prepared(path):
                    self.moves_on("west-east" if path == new else "mid-west")
                    os.rename(in_force + ".new", in_force)
                if crash:
                    self.c.crash("near")
                    self.assertNotEqual(self.c.end_by_itself(near)[0], 0)
                    self.c.smartio("cluster", "restart-node", "near")
                    near = self.busy("near")
                self.assertRegex(self.reload().stderr, "[04] changes are in force on 3 hosts")
                self.moves_on("mid-west" if path == new else "west-east")
        # smartio-emu dies between the file's new name and its being taken: the cluster is one that crashed.
        with self.prepared(new):
            self.is_well(near, far)
            os.rename(in_force + ".new", in_force)
        os.kill(self.c.pid_of_room(), signal.SIGKILL)
        for _ in range(100):  # until the daemons have noticed
            refused = self.reload(status=1).stderr
            if "no host of the cluster is up" in refused:
                break
        self.assertIn("no host of the cluster is up; nothing was changed", refused)
        self.c.smartio("cluster", "down")
        self.c.smartio("cluster", "up", new)
        self.c.manager("lender")
        far = self.busy("far")
        self.moves_on("mid-west")
        self.is_well(far)


if __name__ == "__main__":
    reload_test.BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
