#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio cluster reload adds adapters to hosts that stay, removes and changes them, with clients of a drive at work.

usage: reload_adapter_test.py BUILD
"""
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reload_test  # noqa: E402
from cluster import Cluster  # noqa: E402

# What a program that was started before the reload sees of each adapter of its host: a line for each line of its input.
LOOKER = """\
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
error, sd = ctypes.c_uint(), ctypes.c_void_p()
lib.SCIInitialize(0, ctypes.byref(error))
lib.SCIOpen(ctypes.byref(sd), 0, ctypes.byref(error))
for line in sys.stdin:
    print([lib.SCIProbeNode(sd, adapter, 4, 0, ctypes.byref(error)) for adapter in range(4)], flush=True)
"""


def text_of(lender=("west",), far=("north",), near=("west",), more=None):
    """The way over far's first adapter is one switch longer than others."""
    text = "cluster: lab\nswitches: [west, east, north]\nlinks: [{ from: west, to: north }]\napart: on\nhosts:\n"
    for host, to in (("lender", lender), ("near", near), ("far", far), ("more", more)):
        adapters = ", ".join(f"{{ to: {t} }}" for t in to or ())
        devices = ", devices: { nvme0: { type: nvme, size: 256M } }" if host == "lender" else ""
        if to:
            text += f"  {host}: {{ ram: 256M, adapters: [{adapters}]{devices} }}\n"
    return text


BOTH = {"lender": ("west", "east"), "far": ("north", "east")}


class Adapters(reload_test.Base):
    def setUp(self):
        self.c = Cluster(reload_test.BUILD, text_of())
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        self.files = 0

    def change(self, *words, status=0, **changed):
        return self.reload(*words, self.write(text=text_of(**changed)), status=status)

    def written(self, adapter):
        return self.c.stats()["adapters"][adapter]["wr_bytes"]

    def spread(self):
        """A client of far's with two paths, which goes on over the one that is left."""
        return self.busy("far", how=("paths",))

    def seldom(self, host):
        """A client that leaves the processors to those with two paths, which poll."""
        return self.busy(host, how=("seldom",))

    def uses(self, child, adapter):
        before = self.written(adapter)
        while self.written(adapter) < before + (1 << 12):
            self.assertIsNone(child.poll())

    def moves_over(self, child, **changed):
        """From far's second adapter, which is nearer to the drive and goes, to the first one."""
        self.uses(child, "far.1")
        done = self.change(**changed)
        self.uses(child, "far.0")
        return done

    def test_adapters_come_and_go_under_io(self):
        before = self.c.audit()
        manager = self.c.manager("lender")
        near = self.seldom("near")
        for _ in range(2):
            done = self.change("--check", **BOTH)
            self.assertEqual(done.stdout, "host 'lender', adapter 1 is new\nhost 'far', adapter 1 is new\n")
            self.assertNotIn("far.1", self.c.stats()["adapters"])
            self.assertIn("2 changes are in force on 3 hosts", self.change(**BOTH).stderr)
            far = self.spread()
            done = self.moves_over(far)
            self.assertEqual(done.stdout, "host 'lender', adapter 1 is gone\nhost 'far', adapter 1 is gone\n")
            self.is_well(far)
        self.all_is_well(before, manager, near)

    def test_the_last_path(self):
        """Over an adapter that goes and was the only one that led there all ends, as by a pulled cable."""
        self.c.manager("lender")
        self.change(lender=("west", "east"), far=("east",), status=0)
        near, far = self.seldom("near"), self.seldom("far")
        self.change("--check", far=("east",), near=("west", "east"))
        self.change(far=("east",), near=("west", "east"))
        status, _, err = self.c.end_by_itself(far)
        self.assertNotEqual(status, 0, err)
        self.is_well(near)
        self.change()
        self.is_well(self.seldom("far"))

    def test_cables_without_a_switch(self):
        """To a host that is new, then between two that stay: each end is a new adapter."""
        manager = self.c.manager("lender")
        near = self.seldom("near")
        self.change(lender=("west", "more"), more=("lender.1",))
        self.is_well(self.seldom("more"))
        self.change(lender=("west", "far.1"), far=("north", "lender.1"))
        far = self.spread()
        self.moves_over(far)
        self.is_well(far, near)
        self.assertIsNone(manager.poll())

    def test_programs_that_run_see_it(self):
        library = os.path.join(reload_test.BUILD, "libsmartio", "libsmartio.so")
        child = self.c.start("far", sys.executable, "-c", LOOKER, library, stdin=subprocess.PIPE)
        for to in (("west",), ("west", "east"), ("west",), ("west", "east", "west")):
            self.change(lender=("west", "east"), far=to)
            want = [int(i < len(to)) for i in range(4)]
            got = None
            for _ in range(200):  # daemons of new paths meet
                child.stdin.write("\n")
                child.stdin.flush()
                got = json.loads(child.stdout.readline())
                if got == want:
                    break
            self.assertEqual(got, want)
        self.c.finish(child)

    def test_what_is_in_use_is_refused(self):
        self.c.manager("lender")
        near = self.seldom("near")
        self.change(**BOTH)
        before = self.in_force()
        with_window = text_of(**BOTH).replace("{ to: west }, { to: east }", "{ to: west }, { to: east, window: 512M }")
        first = text_of(**BOTH).replace("{ to: west }, { to: east }", "{ to: west, entries: 256 }, { to: east }")
        refused = self.reload(self.write(text=first), status=1)
        self.assertRegex(refused.stderr, "adapter 0 is another one, and this one is in use")
        self.assertEqual(self.in_force(), before)
        self.reload(self.write(text=with_window))
        other = self.spread()
        refused = self.reload(self.write(text=before), status=1)
        self.assertRegex(refused.stderr, r"adapter 1 is another one, and this one is in use \(.*\); when its programs "
                                         "have ended that is right")
        self.is_well(other)
        self.reload(self.write(text=before))
        self.is_well(near)

    def test_a_command_that_dies_is_forgotten_at_once(self):
        """What was to change is as it was, without another reload."""
        self.c.manager("lender")
        near = self.seldom("near")
        self.change(**BOTH)
        before = self.in_force()
        other = before.replace("{ to: west }, { to: east }", "{ to: west }, { to: east, window: 512M }")
        self.assertNotEqual(other, before)
        for _ in range(2):
            with self.prepared(self.write(text=other)):
                pass
            far = self.spread()
            self.uses(far, "far.1")
            self.is_well(far)
        self.assertIn("no file was prepared", self.room("reload commit"))
        self.reload(self.write(text=other))
        self.assertEqual(self.in_force(), other)
        self.is_well(near)

    def test_what_a_reload_left_in_between_is_mended(self):
        """Its command died behind each of its steps, and a daemon with it."""
        self.c.manager("lender")
        near = self.seldom("near")
        new, old = self.write(text=text_of(**BOTH)), self.write(text=text_of())
        for crash in (False, True):
            for path in (new, old):
                self.left_in_between(path)
                if crash:
                    self.c.crash("far")
                    self.c.smartio("cluster", "restart-node", "far")
                self.assertRegex(self.reload().stderr, "[02] changes are in force on 3 hosts")
                self.is_well(self.seldom("far"))
                if path == new:
                    other = self.spread()
                    self.uses(other, "far.1")
                    self.is_well(other)
        self.is_well(near)


if __name__ == "__main__":
    reload_test.BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
