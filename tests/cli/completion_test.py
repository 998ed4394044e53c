#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Completion by bash, of every option and argument that takes a name."""
import os
import re
import shlex
import subprocess
import sys
import base

SCRIPT = os.path.join(base.HERE, "..", "..", "tools", "completion", "smartio")
HOLDER = os.path.join(base.HERE, "holder.py")
NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")
TWO_LINKS = """\
cluster: wide
hosts:
  left: {ram: 64M, adapters: [{}, {}], devices: {drive: {type: nvme, size: 16M}}}
  right: {ram: 64M}
"""


class Completion(base.CommandTest):
    def complete(self, line, program="smartio", function="_smartio", cwd=None):
        """The words that may stand at the end of a line, which readline has split as it does."""
        words = [w for w in re.findall(r"'[^']*'|[^\s=]+|=", line)]
        if not line or line[-1] == " ":
            words.append("")
        words = [program, *words]
        listed = " ".join(shlex.quote(w) for w in words)
        done = subprocess.run(
            ["bash", "--norc", "-c", f"""
                smartio() {{ "{base.TOOL}" "$@"; }}
                smartio-nvme() {{ "{NVME}" "$@"; }}
                source "{SCRIPT}"
                COMP_WORDS=({listed}) COMP_CWORD={len(words) - 1}
                {function}
                printf '%s\\n' "${{COMPREPLY[@]}}" """],
            env=self.env, capture_output=True, text=True, check=True, cwd=cwd)
        self.assertEqual(done.stderr, "")
        return sorted(done.stdout.split())

    def check(self, table, **more):
        for line, want in table:
            with self.subTest(line=line):
                self.assertEqual(self.complete(line, **more), sorted(want))

    def wide(self):
        """A cluster of another name, with a link more."""
        self.smartio("cluster", "up", self.file("wide.yaml", TWO_LINKS), "--name", "big")

    def test_words(self):
        self.assertIn("cluster", self.complete("cl"))
        self.check([("cluster rest", ["restart-node"]), ("doctor --au", ["--audit"]),
                    ("cluster up --na", ["--name"]), ("--ver", ["--version"]),
                    ("fault link x ", ["delay", "down", "errors", "up"]), ("fault host x ", ["down", "up"]),
                    ("fault host x up --o", ["--other-addresses"]), ("fault link x up --re", ["--re-enumerate"]),
                    ("fault switch x up --no", ["--no-wait"]), ("fault link x up ", []),
                    ("fault switch x ", ["down", "up"]), ("fault trunk x y ", ["down", "up"]),
                    ("fault device x ", ["clear", "delay", "doorbell", "drop", "error", "fatal", "functions", "in", "out", "twice",
                                         "wrong-id"]),
                    ("fault device x i", ["in"]), ("node ", ["list"]),
                    ("device --json in", ["info"]), ("run --det", ["--detach"]),
                    ("complete n", ["nodes"]), ("stats --no", ["--node"]),
                    ("device list --class ", ["accelerator", "memory", "nvme"]), ("device list --class=n", ["nvme"]),
                    ("top --sort ", ["faults", "name", "read", "write"]), ("top --on", ["--once"])])
        self.assertIn("bash", self.complete("run -n x -- bas"))

    def test_commands_are_all_there(self):
        """What --help lists can be completed, word by word; so can each option."""
        for line in self.smartio("--help").stdout.splitlines():
            match = re.match(r"  ([a-z-]+(?: [a-z-]+)*)  ", line)
            if not match:
                continue
            words = match.group(1).split()
            for n, word in enumerate(words):
                self.assertIn(word, self.complete(" ".join(words[:n] + [word])), line)
            options = re.findall(r"--[a-z-]+", self.smartio(*words, "--help").stdout)
            self.assertLessEqual(set(options) - {"--shim"}, set(self.complete(
                " ".join(words) + " --")), words)

    def test_clusters(self):
        names = ["big", "test"]
        self.check([("--cluster ", [])])
        self.up()
        self.wide()
        self.check([("--cluster ", names), ("--cluster=", names), ("--cluster b", ["big"]),
                    ("--cluster=t", ["test"]), ("node list --cluster ", names),
                    ("node list --cluster=b", ["big"]), ("cluster down ", names),
                    ("cluster down b", ["big"]), ("cluster status t", ["test"])])
        # Not the file's name for it, and one that crashed can still be taken down.
        self.crash(os.path.join(self.base, "big"), 4)
        self.check([("cluster down ", names)])

    def test_machines(self):
        """They have cables, and no smartiod on this machine."""
        self.smartio("cluster", "up", self.file("m.yaml", "cluster: m\nswitches: [s, t]\nhosts:\n"
                                                "  a: { adapters: [{ to: t }] }\n"
                                                "  v: { kind: machine, adapters: [{ to: s }] }\n"))
        self.check([("fault link ", ["a", "v"]), ("run -n ", ["a", "v"]), ("machine start ", ["v"]), ("cluster restart-node ", ["a"]), ("fault switch ", ["s", "t"]),
                    ("fault trunk s ", ["s", "t"]), ("complete sw", ["switches"])])

    def test_nodes(self):
        self.up()
        one, all_of_it = ["client1", "client2"], ["client1", "client2", "lender"]
        self.check([("run -n cl", one), ("run -n ", all_of_it), ("run --node cl", one),
                    ("run --node=cl", one), ("run --node=", all_of_it), ("stats -n cl", one),
                    ("stats --node cl", one), ("segment list -n l", ["lender"]),
                    ("segment list --node=l", ["lender"]), ("device list --near cl", one), ("cluster restart-node cl", one),
                    ("fault link cl", one)])
        # Of the cluster that is named, wherever it is; by its directory, too.
        self.wide()
        where = os.path.join(self.base, "big")
        self.check([("run -n ", []), ("--cluster big run -n ", ["left", "right"]),
                    ("--cluster=big run -n ", ["left", "right"]),
                    ("run --cluster big -n ", ["left", "right"]),
                    (f"--state {where} run -n r", ["right"]),
                    (f"--state={where} run -n r", ["right"]),
                    (f"--state '{where}' run -n r", ["right"]),
                    ("--cluster test run -n le", ["lender"]),
                    ("fault link --cluster big ", ["left", "left.0", "left.1", "right"])])
        # Also of a host that is down: so it can be restarted.
        self.crash(where, 4)
        self.check([("--cluster big cluster restart-node ", ["left", "right"])])

    def test_devices(self):
        self.up()
        self.wide()
        for command in ("device info", "fault device"):
            self.check([(f"{command} n", []), (f"{command} --cluster test ", ["nvme0"]),
                        (f"--cluster=big {command} d", ["drive"])])
        self.assertEqual(self.complete("device add 0"), self.complete("device remove 0"))
        self.env["SMARTIO_STATE"] = os.path.join(self.base, "test")
        self.check([("device info n", ["nvme0"])])
        self.check([("identify ", ["nvme0"]), ("bench n", ["nvme0"]), ("man", ["manager"]),
                    ("copy", ["copy-in", "copy-out"]), ("bench --ran", ["--random"]),
                    ("bench -d 4 n", ["nvme0"]), ("bench --depth 4 n", ["nvme0"]), ("bench --depth ", []),
                    ("identify nvme0 ", []), ("detach n", [])], program="smartio-nvme", function="_smartio_nvme")
        del self.env["SMARTIO_STATE"]

    def test_segments(self):
        self.up()
        child = self.start("run", "-n", "client1", "--", sys.executable, HOLDER, "segment=0x77")
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.check([("segment list ", ["0x77"]), ("segment list 0x7", ["0x77"]),
                    ("segment list 0x8", [])])

    def test_files(self):
        folder = os.path.join(self.dir, "files")
        os.makedirs(os.path.join(folder, "below"))
        for name in ("one.yaml", "two.yml", "three.txt"):
            with open(os.path.join(folder, name), "w", encoding="ascii"):
                pass
        files = ["below", "one.yaml", "three.txt", "two.yml"]
        topologies = ["below", "one.yaml", "two.yml"]
        self.check([("cluster up ", topologies), ("cluster validate o", ["one.yaml"]),
                    ("cluster run ", topologies), ("cluster up --name x t", ["two.yml"]),
                    ("doctor --audit --expect ", files), ("doctor --audit --expect=th", ["three.txt"]),
                    ("--state ", ["below"]), ("--state=b", ["below"]),
                    ("run -n x -- cat th", ["three.txt"])], cwd=folder)
        self.check([("copy-in nvme0 th", ["three.txt"]), ("copy-out nvme0 ", files),
                    ("read nvme0 -o th", ["three.txt"]), ("read nvme0 --output t",
                                                          ["three.txt", "two.yml"]),
                    ("write nvme0 -i o", ["one.yaml"])], program="smartio-nvme",
                   function="_smartio_nvme", cwd=folder)

    def test_each_option_and_place_that_takes_a_name(self):
        """By what --help says that they take: none is left out, nor will be."""
        self.up()
        folder = os.path.join(self.dir, "files")
        os.makedirs(os.path.join(folder, "below"))
        with open(os.path.join(folder, "one.yaml"), "w", encoding="ascii") as f:
            f.write(TWO_LINKS)
        hosts = ["client1", "client2", "lender"]
        names = {"NODE": hosts, "HOST": hosts, "HOST[.ADAPTER]": hosts, "DEVICE": ["nvme0"], "ID": [],
                 "FROM": [*hosts, "nvme0"], "TO": [*hosts, "nvme0"], "SWITCH": ["sw0"], "SWITCH[.PORT]": ["sw0"],
                 "TOPOLOGY": ["below", "one.yaml"], "FOLDER": ["below"], "DIR": ["below"],
                 "FILE": ["below", "one.yaml"], "PATH": ["below", "one.yaml"],
                 "FUNCTION": self.complete("device add ")}
        other = {"SECONDS", "N", "NS", "MS", "SIZE", "PORT", "CODE"}
        seen = set()
        for name in re.findall(r"(?m)^  ([a-z-]+(?: [a-z-]+)*)  ", self.smartio("--help").stdout):
            text = self.smartio(*name.split(), "--help").stdout
            places = [(f"{name} --{option} ", option, word) for option, word in
                      re.findall(r"(?m)^  (?:-., |    )?--([a-z-]+) ([^ a-z]\S*)", text)]
            line, usage = f"{name} ", text.splitlines()[0].partition(f"smartio {name}")[2]
            if "|" not in usage.replace("down|up", ""):  # more than one form
                for word in re.sub(r"\[?-[^\]]*\]|--\w+ \S+", "", usage).split():
                    if word == "--":
                        break
                    places.append((line, None, word.strip("[]") if word[0] == "[" else word))
                    line += "x "
            for line, option, word in places:
                if word in other or option in ("opcode", "queue") or "|" in word:
                    continue
                with self.subTest(line=line, word=word):
                    if word == "NAME":
                        want = [] if name == "cluster up" and option == "name" else ["test"]
                    elif (name, word) in (("machine start", "NODE"), ("machine stop", "NODE"),
                                          ("machine console", "NODE")):
                        want = []  # it has no machines: test_machines
                    else:
                        want = names[word]
                    self.assertEqual(self.complete(line, cwd=folder), sorted(want))
                    seen.add(word)
        self.assertLessEqual({"NODE", "HOST", "NAME", "DEVICE", "FROM", "TO", "SWITCH", "TOPOLOGY", "FOLDER", "DIR",
                              "FILE", "PATH", "FUNCTION"}, {w.partition("[")[0] for w in seen})
        # Of the file that stands on the line.
        for line in ("cluster keys one.yaml keys --renew ", "cluster keys one.yaml --revoke="):
            self.assertEqual(self.complete(line, cwd=folder), ["left", "right"])
        self.assertEqual(self.complete("cluster keys none.yaml keys --renew ", cwd=folder), [])

    def test_a_name_is_not_run(self):
        """Names may have what a shell would run."""
        name = "$(touch ran)"
        self.smartio("cluster", "up", self.topology(), "--name", name)
        out = " ".join(self.complete("cluster down ", cwd=self.dir))
        self.assertEqual(out, r"\$\(touch\ ran\)")
        self.assertEqual(self.complete(f"--cluster '{name}' run -n l", cwd=self.dir), ["lender"])
        self.assertFalse(os.path.exists(os.path.join(self.dir, "ran")))


if __name__ == "__main__":
    base.main()
