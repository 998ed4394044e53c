#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio cluster reload adds, removes and changes chassis, with clients of drives in them and beside them at work.

usage: reload_chassis_test.py BUILD
"""
import json
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reload_test  # noqa: E402
from cluster import Cluster  # noqa: E402

# Of the lender: its chassis, and which of its drives is where. The adapter is in one of its own.
CHASSIS = {"card": "", "box": "aperture: 64M"}
DRIVES = {"nvme0": "box", "nvme1": ""}


def text_of(chassis=None, drives=None, adapter="card"):
    boxes = ", ".join(f"{name}: {{ {keys} }}" for name, keys in (CHASSIS if chassis is None else chassis).items())
    devices = ", ".join(f"{name}: {{ type: nvme, size: {'256M' if name < 'nvme2' else '64M'}"
                        f"{f', in: {box}' if box else ''} }}"
                        for name, box in (DRIVES if drives is None else drives).items())
    adapters = f"adapters: [{{ in: {adapter} }}]" if adapter else "adapters: [{}]"
    return (f"cluster: lab\nhosts:\n  lender: {{ ram: 256M, chassis: {{ {boxes} }}, {adapters},\n"
            f"            devices: {{ {devices} }} }}\n  near: {{ ram: 256M }}\n  far: {{ ram: 256M }}\n")


class Chassis(reload_test.Base):
    def setUp(self):
        self.c = Cluster(reload_test.BUILD, text_of())
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        self.files = 0

    def change(self, *words, status=0, **changed):
        return self.reload(*words, self.write(text=text_of(**changed)), status=status)

    def passed(self):
        """Bytes that each chassis has passed on, by its name."""
        return {c["name"].split("/")[1]: int(c["counters"]["wr_bytes"], 16) + int(c["counters"]["rd_bytes"], 16)
                for c in json.loads(self.c.smartio("stats", "--json"))["data"]["chassis"]}

    def moves_on(self, *boxes):
        """I/O goes over each of them now, and none has forgotten what it had counted."""
        before = self.passed()
        for _ in range(200):
            now = self.passed()
            if all(now[box] > before[box] for box in boxes):
                return now
        self.fail(f"nothing passes one of {boxes}: {before}, then {now}")

    def test_chassis_come_and_go_under_io(self):
        before = self.c.audit()
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        # In another order, one in another that stays, and one that nothing is in.
        more = {"empty": "aperture: 1M", **CHASSIS, "shelf": "in: box, aperture: 16M, width: 16, generation: 4"}
        for turn in range(2):
            counted = self.moves_on("box", "card")
            done = self.change("--check", chassis=more)
            self.assertEqual(done.stdout, "chassis 'empty' of host 'lender' is new\n"
                                          "chassis 'shelf' of host 'lender' is new\n")
            self.assertNotIn("shelf", self.passed())
            drives = {**DRIVES, "nvme2": "shelf"}
            done = self.change(chassis=more, drives=drives)
            self.assertIn("3 changes are in force on 3 hosts", done.stderr)
            for host in ("lender", "near", "far"):
                self.assertEqual(self.devices(host), ["nvme0", "nvme1", "nvme2"])
            other = self.c.manager("far", "nvme2")
            user = self.busy("near", "nvme2")
            now = self.moves_on("box", "card", "shelf")
            for box in CHASSIS:
                self.assertGreaterEqual(now[box], counted[box])
            self.assertEqual(now["empty"], 0)
            if turn:  # also one that nobody looks after
                other.kill()
                self.c.end(other)
            done = self.change(chassis=dict(reversed(CHASSIS.items())))
            self.assertEqual(done.stdout, "chassis 'empty' of host 'lender' is gone\n"
                                          "chassis 'shelf' of host 'lender' is gone\n"
                                          "device lender/nvme2 is gone\n")
            for child in [user] + ([other] if not turn else []):
                self.ends_by_loss(child)
            after = self.moves_on("box", "card")
            self.assertEqual(sorted(after), sorted(CHASSIS))
            for box in CHASSIS:
                self.assertGreaterEqual(after[box], now[box])
            self.change()
        self.all_is_well(before, manager, near, far)

    def test_any_order(self):
        """Many lists of chassis, drawn at random; what is in those that stay does not notice."""
        draw = random.Random(23)
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        counted = self.moves_on("box", "card")
        for _ in range(20):
            more = draw.sample(["c1", "c2", "c3", "c4"], draw.randint(0, 4))
            names = list(CHASSIS) + more
            draw.shuffle(names)
            chassis = {n: CHASSIS.get(n, f"width: {draw.choice([4, 8])}") for n in names}
            drives = {"nvme1": "", "nvme0": "box"} if draw.random() < 0.5 else dict(DRIVES)
            if more:
                drives[f"nvme{draw.randint(2, 9)}"] = draw.choice(more)
            # One reload cannot change what a chassis or a drive is in: all others go first.
            self.change()
            self.change(chassis=chassis, drives=drives)
            now = self.passed()
            for box in CHASSIS:
                self.assertGreaterEqual(now[box], counted[box])
            counted = now
        self.moves_on("box", "card")
        self.assertIsNone(manager.poll())
        self.is_well(near, far)

    def test_a_drive_moves_into_a_chassis_and_out_of_it(self):
        """By two reloads: one cannot."""
        before = self.c.audit()
        manager = self.c.manager("lender")
        near = self.busy("near")
        for old, new, text in ((DRIVES, {**DRIVES, "nvme1": "box"}, "in is box, was a slot of the host"),
                               ({**DRIVES, "nvme1": "box"}, DRIVES, "in is a slot of the host, was box")):
            self.change(drives=old)
            other = self.c.manager("far", "nvme1")
            user = self.busy("far", "nvme1")
            refused = self.change(drives=new, status=1)
            self.assertIn(f"needs a restart: device lender/nvme1: {text}; or one reload removes it, and the next adds "
                          "it\n", refused.stdout)
            self.change(drives={"nvme0": "box"})
            for child in (user, other):
                self.ends_by_loss(child)
            self.change(drives=new)
            other = self.c.manager("far", "nvme1")
            self.is_well(self.busy("far", "nvme1"))
            self.change(drives={"nvme0": "box"})
            self.ends_by_loss(other)
        self.change()
        self.all_is_well(before, manager, near)

    def test_another_aperture(self):
        """One that is full has room for more when it passes on more, around what is there; and less again."""
        before = self.c.audit()
        full = {"card": "", "box": "aperture: 32M"}
        more = {**DRIVES, "nvme2": "box", "nvme3": "box"}
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        for _ in range(3):
            done = self.change(chassis=full)
            self.assertEqual(done.stdout, "chassis 'box' of host 'lender': aperture is 33554432, was 67108864\n")
            refused = self.change(chassis=full, drives=more, status=1)
            self.assertIn("'hosts.lender.chassis.box.aperture': value '32M': too little: the BARs behind it, windows "
                          "of adapters among them, take 48M; that at least is right", refused.stderr)
            self.moves_on("box")
            done = self.change(drives=more)
            self.assertIn("3 changes are in force on 3 hosts", done.stderr)
            other = self.c.manager("far", "nvme3")
            self.is_well(self.busy("near", "nvme3"))
            self.change()
            self.ends_by_loss(other)
        self.all_is_well(before, manager, near, far)

    def test_all_or_nothing(self):
        self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        before = self.in_force()
        instead = "; or one reload removes it, and the next adds it"
        for changed, said in (
                ({"chassis": {"card": "", "box": "in: card, aperture: 64M"}},
                 f"chassis 'box' of host 'lender': in is card, was a slot of the host{instead}"),
                ({"chassis": {"card": ""}, "drives": {"nvme0": "", "nvme1": ""}},
                 f"device lender/nvme0: in is a slot of the host, was box{instead}")):
            refused = self.change(status=1, **changed)
            self.assertIn(f"needs a restart: {said}\n", refused.stdout)
            self.assertIn("nothing was changed", refused.stderr)
        refused = self.change(status=1, chassis={**CHASSIS, "more": ""}, adapter="more")
        self.assertIn("host 'lender', adapter 0 is another one, and this one is in use (", refused.stderr)
        for chassis, said in (({"card": ""}, "chassis.box"), ({"card": "", "box": "ports: 2, lanes: 1"}, "lanes")):
            path = self.write(text=text_of(chassis=chassis))
            self.assertIn(path + ":", self.reload(path, status=1).stderr, said)
        self.assertEqual(self.in_force(), before)
        self.moves_on("box", "card")
        self.is_well(near, far)

    def test_what_a_reload_left_in_between_is_mended(self):
        """Its command died behind each of its steps, and a daemon with it."""
        self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        new = self.write(text=text_of(chassis={"more": "aperture: 32M", **CHASSIS, "box": "aperture: 128M"}))
        old = self.write(text=text_of())
        for crash in (False, True):
            for path in (new, old):
                self.left_in_between(path)
                if crash:
                    self.c.crash("far")
                    self.assertNotEqual(self.c.end_by_itself(far)[0], 0)
                    self.c.smartio("cluster", "restart-node", "far")
                    far = self.busy("far")
                self.assertRegex(self.reload().stderr, "[02] changes are in force on 3 hosts")
                self.assertEqual("more" in self.passed(), path == new)
                self.moves_on("box", "card")
        self.is_well(near, far)


if __name__ == "__main__":
    reload_test.BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
