#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A command that is advised works as it is printed, pasted into a shell. Two clusters run, so that
one that does not name its cluster fails."""
import os
import re
import signal
import subprocess
import base


class Hints(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.up("first")

    def advice(self, *args, **more):
        """The command at the end of an error."""
        line = self.smartio(*args, status=1, **more).stderr.splitlines()[-1]
        match = re.search(r" with: (.*)$", line)
        self.assertIsNotNone(match, line)
        return match.group(1)

    def paste(self, command, status=0):
        done = subprocess.run(command, shell=True, executable="/bin/bash", env=self.env,
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}{done.stderr}")
        return done

    def follow(self, *where):
        """Bring a cluster up at this place, and follow each hint that it gives."""
        up = ("cluster", "up", self.topology(), *where)
        self.smartio(*up)
        status = next(c for c in self.json("cluster", "status", *self.named(where))["clusters"]
                      if c["cluster"] == "test")
        state, where = status["directory"], self.named(where)
        for words in (("run", *where, "-n", "client1", "--", "true"),
                      ("stats", *where, "-n", "client1")):
            self.crash(state, 8)
            self.paste(self.advice(*words))
            self.smartio(*words)
        self.paste(self.advice(*up))
        self.assertFalse(os.path.exists(state))
        self.smartio(*up)
        pid = self.pid_of(state, "emu")
        self.crash(state, 8)
        os.kill(pid, signal.SIGKILL)
        base.wait_gone(pid)
        self.paste(self.advice("cluster", "restart-node", *where, "client1"))
        self.assertFalse(os.path.exists(state))

    @staticmethod
    def named(where):
        """As a command other than "cluster up" names the cluster that was brought up there."""
        return ("--cluster", where[1]) if where[:1] == ("--name",) else where or ("--cluster", "test")

    def test_by_its_file(self):
        self.follow()

    def test_by_name(self):
        self.follow("--name", "other")

    def test_by_a_name_that_a_shell_would_take_apart(self):
        self.follow("--name", "it's $(two) words")

    def test_by_directory(self):
        self.follow("--state", os.path.join(self.dir, "a place"))

    def test_status_and_the_first_words(self):
        done = self.smartio("cluster", "up", self.topology(), "--name", "other")
        self.assertIn("cluster 'other' is up", done.stderr)
        self.assertRegex(self.smartio("cluster", "status").stdout, "(?m)^other +running")
        self.assertEqual([c["name"] for c in self.json("cluster", "status")["clusters"]],
                         ["first", "other"])
        self.paste(self.smartio("cluster", "status", "other").args[0] + " cluster status other")

    def test_below_the_cluster_nothing_names_it(self):
        """SMARTIO_STATE does."""
        self.up("second")
        self.crash(os.path.join(self.base, "second"), 8)
        done = self.smartio("--cluster", "second", "run", "-n", "lender", "--", base.TOOL, "stats",
                            "-n", "client1", status=1)
        self.assertIn(f"with: {base.TOOL} cluster restart-node client1\n", done.stderr)

    def test_with_a_link_that_was_pulled(self):
        """Of another host, and of the one that is started: it is up, without its link."""
        for pulled in ("client2", "client1"):
            self.smartio("fault", "link", pulled, "down")
            self.crash(os.path.join(self.base, "first"), 8)
            self.paste(self.advice("stats", "-n", "client1"))
            states = {n["name"]: (n["state"], n["adapters"][0]["link"])
                      for n in self.json("node", "list")["nodes"]}
            self.assertEqual(states["client1"], ("up", "down" if pulled == "client1" else "up"))
            self.smartio("fault", "link", pulled, "up")

    def test_no_cluster(self):
        self.smartio("cluster", "down", "first")
        self.paste(self.advice("node", "list").replace("TOPOLOGY", self.topology()))
        self.json("node", "list")

    def test_usage(self):
        for args in ((), ("fly",), ("cluster", "fly"), ("stats", "--fly")):
            line = self.smartio(*args, status=2).stderr.splitlines()[-1]
            self.assertIn("usage: smartio", self.paste(re.search("^Try '(.*)'[.]$", line)[1]).stdout)

    def test_by_the_name_of_the_command(self):
        """Found in PATH: so is what is advised."""
        self.env["PATH"] = os.path.dirname(base.TOOL) + ":" + self.env["PATH"]
        self.crash(os.path.join(self.base, "first"), 8)
        done = subprocess.run(["smartio", "stats", "-n", "client1"], env=self.env, check=False,
                              capture_output=True, text=True)
        self.assertIn("with: smartio --cluster first cluster restart-node client1\n", done.stderr)


if __name__ == "__main__":
    base.main()
