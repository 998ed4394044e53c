#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Help, wrong usage and bad input: one line that says what is wrong, status 1 or 2, nothing left."""
import os
import re
import subprocess
import unittest
import base

MANUAL = os.path.join(base.HERE, "..", "..", "docs", "man")
NOT_OF_A_COMMAND = {"error", "version"}  # and nvme-...: smartio-nvme's


class Usage(base.CommandTest):
    def commands(self):
        """Of each subcommand what the table has of its manual page and schemas: {name: (page, [schema])}."""
        found = {}
        for page, schemas, name in re.findall(r"(?m)^; page (.*)\n; schemas ?(.*)\n\*([a-z -]+)\*",
                                              self.smartio("--help=manual").stdout):
            found[name] = (page, schemas.split())
        self.assertGreater(len(found), 15)
        return found

    def test_help(self):
        overview = self.smartio("--help").stdout
        for command in self.commands():
            self.assertRegex(overview, rf"(?m)^  {command} ")
            text = self.smartio(*command.split(), "--help").stdout
            self.assertTrue(text.startswith(f"usage: smartio {command}"), text)
            self.assertIn("--json", text)
        self.assertIn("validate", self.smartio("cluster", "--help").stdout)

    def test_manual(self):
        """Commands with a page of their own stand there, with each option; smartio(1) is made from the table."""
        said = self.smartio("--help=manual").stdout
        for command, (page, _) in self.commands().items():
            with open(os.path.join(MANUAL, f"{page}.1.scd"), encoding="utf-8") as f:
                text = f.read()
            self.assertIn("@COMMANDS@" if page == "smartio" else "smartio " + command.split()[0], text)
            for option in re.findall(r"(?m)^  .*?(--[a-z-]+)", self.smartio(*command.split(), "--help").stdout):
                if option not in ("--state", "--cluster", "--json", "--help"):
                    self.assertIn(option, said if page == "smartio" else text, command)

    def test_schemas(self):
        """What a command may print with --json has a schema, and no schema is nobody's."""
        schemas = {name.removesuffix(".json") for name in os.listdir(os.path.join(base.HERE, "..", "..", "tools", "schema"))}
        of_commands = {schema for _, some in self.commands().values() for schema in some}
        self.assertEqual(of_commands | NOT_OF_A_COMMAND, {s for s in schemas if not s.startswith("nvme-")})

    def test_version(self):
        self.assertRegex(self.smartio("--version").stdout, r"^smartio \d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        for args, say in [
                ((), "a command is missing"),
                (("fly",), "unknown command 'fly'"),
                (("cluster",), "a subcommand is missing"),
                (("cluster", "fly"), "unknown subcommand 'fly'"),
                (("--fly",), "unknown option '--fly'"),
                (("--state",), "--state needs a value"),
                (("cluster", "up"), "TOPOLOGY is missing"),
                (("cluster", "up", "a", "b"), "'b' is one word too many"),
                (("cluster", "up", "--fly", "a"), "unknown option '--fly'"),
                (("cluster", "up", "a", "--name"), "--name needs a value"),
                (("cluster", "down", "a", "b"), "'b' is one word too many"),
                (("cluster", "run"), "TOPOLOGY is missing"),
                (("cluster", "run", "a"), "the command is missing"),
                (("cluster", "run", "a", "--"), "the command is missing"),
                (("cluster", "run", "a", "--fly"), "the command after '--'"),
                (("cluster", "restart-node"), "NODE is missing"),
                (("cluster", "keys", "a"), "FOLDER is missing"),
                (("cluster", "keys", "--renew", "a", "--revoke", "a", "a", "b"), "one at a time"),
                (("cluster", "keys", "--revoke-removed", "--revoke", "a", "a", "b"), "one at a time"),
                (("cluster", "keys", "--days", "0", "a", "b"), "--days 0: 1 to 3650 is right"),
                (("run", "--", "true"), "-n NODE is missing"),
                (("run", "-n"), "-n needs a value"),
                (("run", "-n", "x"), "the command is missing"),
                (("run", "-x"), "unknown option '-x'"),
                (("node", "list", "x"), "'x' is one word too many"),
                (("device", "info"), "DEVICE is missing"),
                (("device", "list", "--class", "nvm"), "--class nvm: nvme|accelerator|memory is right"),
                (("device", "add"), "FUNCTION is missing"),
                (("device", "remove"), "is missing"),
                (("doctor", "--within", "3"), "belong to --audit"),
                (("doctor", "--audit", "--within", "soon"), "--within soon: wanted seconds"),
                (("doctor", "--audit", "--clean"), "not both"),
                (("doctor", "--audit", "--measure"), "stand alone"),
                (("doctor", "--clean", "--verbose"), "stand alone"),
                (("doctor", "--root", "tree"), "--root tree: wanted is an absolute path"),
                (("fault",), "a subcommand is missing"),
                (("fault", "link", "x"), "missing"),
                (("fault", "link", "x", "sideways"), "'down', 'up', 'errors' or 'delay' is right"),
                (("fault", "host", "x"), "missing"),
                (("fault", "switch", "x"), "missing"),
                (("fault", "switch", "x", "out"), "'down' or 'up' is right"),
                (("fault", "trunk", "x", "down"), "missing"),
                (("fault", "trunk", "x", "y", "out"), "'down' or 'up' is right"),
                (("fault", "trunk", "x", "y", "up", "z"), "one word too many"),
                (("fault", "device", "x"), "missing"),
                (("fault", "device", "x", "up"), "one of out|in|functions|delay|drop|error|wrong-id|twice|doorbell|fatal|clear "
                                                   "is right"),
                (("fault", "device", "x", "functions"), "'functions': how many is missing"),
                (("fault", "device", "x", "functions", "two"), "functions two: a number up to 255 is right"),
                (("fault", "device", "x", "functions", "1", "--time", "5"), "'functions' takes no options"),
                (("fault", "device", "x", "out", "1"), "'out' takes no number"),
                (("fault", "device", "x", "delay"), "--time is missing"),
                (("fault", "device", "x", "delay", "--time", "5", "--status", "2"), "delay: --status is of error alone"),
                (("fault", "device", "x", "drop", "--time", "5"), "drop: --time is of delay alone"),
                (("fault", "device", "x", "error"), "--status is missing"),
                (("fault", "device", "x", "out", "--count", "2"), "'out' takes no options"),
                (("fault", "device", "x", "drop", "--opcode", "reed"), "--opcode reed: flush, write, read"),
                (("fault", "device", "x", "drop", "--queue", "65536"), "a number up to 65535 is right")]:
            with self.subTest(args=args):
                self.fails(*args, say=say, status=2)

    def test_lend_undo_of_no_function(self):
        self.fails("lend", "somewhere", "--undo", say="'somewhere' is no PCI function")

    @unittest.skipIf(os.geteuid(), "root alone mounts")
    def test_lend_undo_of_a_function_that_has_gone(self):
        """Its line on the list of what is lent goes, and the others' stay."""
        other = "abcd:00:01.0 1b36:0010\n"
        for words, status, say, left in (((), 0, "its line in /etc/smartio/lent is taken away", other),
                                         (("abcd:00:02.0",), 1, "there is no PCI function abcd:00:02.0", None)):
            place = words[0] if words else "abcd:00:00.0"
            script = ("mount -t tmpfs none /etc && mkdir /etc/smartio && "
                      f"printf 'abcd:00:00.0 8086:10d3\\n{other.strip()}\\n' >/etc/smartio/lent && "
                      f"{base.TOOL} lend {place} --undo --json; status=$?; cat /etc/smartio/lent >&2; exit $status")
            done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=self.env, capture_output=True, text=True,
                                  check=False)
            if "unshare:" in done.stderr or "mount:" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(say, done.stderr)
            self.assertEqual("abcd:00:00.0 8086:10d3\n" in done.stderr, left is None)
            self.assertIn(other, done.stderr)
            if left:
                function, = self.document(done.stdout)["functions"]
                self.assertEqual((function["function"], function["driver"]), ("abcd:00:00.0", None))

    def test_no_cluster(self):
        for args in [("node", "list"), ("device", "list"), ("segment", "list"), ("stats",),
                     ("topology",), ("doctor", "--audit"), ("run", "-n", "x", "--", "true"),
                     ("cluster", "down"), ("cluster", "restart-node", "x")]:
            with self.subTest(args=args):
                self.fails(*args, say=["no cluster is running", "smartio cluster up"])
        self.fails("--state", "/nowhere", "node", "list", say="there is no cluster in /nowhere")
        self.fails("--cluster", "x", "node", "list", say="there is no cluster in")
        self.fails("cluster", "down", "../x", say="'../x' is no name for a cluster")
        self.assertEqual(self.json("cluster", "status")["clusters"], [])

    def test_bad_topologies(self):
        junk = os.path.join(self.dir, "junk")
        with open(junk, "wb") as f:
            f.write(os.urandom(4096))
        for path, say in [
                (os.path.join(self.dir, "none.yaml"), "No such file"),
                (self.dir, "Is a directory"),
                (junk, "junk"),
                (self.file("empty.yaml", ""), "empty.yaml"),
                (self.file("ram.yaml", base.TOPOLOGY.replace("64M", "256Mb", 1) % "x"),
                 ["ram.yaml:5", "ram", "256Mb"]),
                (self.file("node.yaml", (base.TOPOLOGY % "x").replace(
                    "client1: {ram", "client1: {node: 4, ram")), ["node.yaml:9", "node"]),
                (self.file("key.yaml", (base.TOPOLOGY % "x").replace("iommu", "iomu")),
                 ["key.yaml:6", "iomu"])]:
            for command in ("up", "validate"):
                with self.subTest(path=path, command=command):
                    self.fails("cluster", command, path, say=say)
            with self.subTest(path=path, command="run"):
                self.fails("cluster", "run", path, "--", "true", say=say)
        good = self.topology()
        self.assertIn("3 hosts, 1 device: correct", self.smartio("cluster", "validate", good).stderr)
        self.assertEqual(self.json("cluster", "validate", good)["devices"], 1)

    def test_bad_places(self):
        good = self.topology()
        long_name = os.path.join(self.dir, "x" * 100)
        self.fails("--state", long_name, "cluster", "up", good,
                   say=[f"{long_name}/node.12: ", "a socket's path holds 107", "--state"])
        self.assertFalse(os.path.exists(long_name))
        self.fails("--state", os.path.join(self.dir, "a", "b"), "cluster", "up", good,
                   say="cannot be made: No such file")
        foreign = os.path.join(self.dir, "foreign")
        os.mkdir(foreign, 0o700)
        with open(os.path.join(foreign, "letter"), "w", encoding="ascii") as f:
            f.write("dear")
        self.fails("--state", foreign, "cluster", "up", good, say="files that are no cluster's")
        self.assertEqual(os.listdir(foreign), ["letter"])
        self.fails("--state", good, "cluster", "up", good, say="not a directory")
        self.smartio("cluster", "status")
        os.chmod(self.base, 0o777)
        self.fails("cluster", "up", good, say=["can be written to by others", "chmod 700"])
        os.chmod(self.base, 0o700)

    def test_lost_output(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            for args in [("cluster", "status"), ("cluster", "status", "--json"), ("--help",),
                         ("doctor",)]:
                done = subprocess.run([base.TOOL, *args], stdout=full, stderr=subprocess.PIPE,
                                      text=True, env=self.env, check=False)
                self.assertEqual(done.returncode, 1, args)
                self.assertIn("cannot write to standard output", done.stderr)

    def test_doctor(self):
        done = self.smartio("doctor", "--verbose", status=None)
        self.assertRegex(done.stdout, r"(?m)^ok +no-program +.*smartio-emu \d")
        self.assertTrue(all(f["mend"] for f in self.json("doctor")["findings"]
                            if f["verdict"] in ("warning", "bad")))
        broken = self.smartio("doctor", status=2, env={"SMARTIO_BINDIR": "/nowhere"}).stdout
        self.assertRegex(broken, r"(?m)^BAD +no-program +SMARTIO_BINDIR=/nowhere holds no program")

    def test_limit_of_files(self):
        done = self.smartio("doctor", status=2, preexec_fn=lambda: __import__("resource").setrlimit(
            __import__("resource").RLIMIT_NOFILE, (256, 256)))
        self.assertRegex(done.stdout, r"(?m)^BAD +few-descriptors +256 ")
        self.assertIn("limits.d", done.stdout)


if __name__ == "__main__":
    base.main()
