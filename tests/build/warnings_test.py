#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tools/build/warnings.py: what clang warns of in one source does not depend on those beside it, in one process."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TOOL = os.path.join(TOP, "tools", "build", "warnings.py")
OURS = ["bench", "drivers", "emu", "examples", "include", "libsmartio", "smartiod", "tests", "tools"]
GOOD = '#include "made.h"\nint main(void) { return MADE; }\n'
# What a source says of warnings is for itself alone.
QUIET = '#pragma GCC diagnostic ignored "-Wunused-variable"\n#include "made.h"\nint quiet(void);\n' \
    "int quiet(void) { int unused; return MADE; }\n"
UNUSED = '#include "made.h"\nint loud(void);\nint loud(void) { int unused; return MADE; }\n'
# Seen when code is made of it, not before.
ATOMIC = "struct s { char c; int i; } __attribute__((packed));\nint get(struct s *s);\n" \
    "int get(struct s *s) { return __atomic_load_n(&s->i, __ATOMIC_SEQ_CST); }\n"


@unittest.skipIf(shutil.which("clang") is None, "needs clang")
class Warnings(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-warnings-")
        self.addCleanup(shutil.rmtree, self.dir)

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w", encoding="ascii") as f:
            f.write(text)

    def run_tool(self, sources, *targets, option="-Wall -Wno-address-of-packed-member"):
        """A folder as meson makes it: a target's sources, and a header that is generated."""
        ninja = ["rule CUSTOM_COMMAND", " command = echo '#define MADE 0' >$out", "build made.h: CUSTOM_COMMAND",
                 "rule cc", " command = clang -o $out -c $in"]
        commands = []
        for name, text in sources.items():
            self.write(name, text)
            out = f"t.p/{name}.o"
            ninja.append(f"build {out}: cc {name}")
            commands.append({"directory": self.dir, "file": name, "output": out, "command":
                             f"clang -It.p -I. {option} -Werror -MD -MQ {out} -MF {out}.d -o {out} -c {name}"})
        self.write("build.ninja", "\n".join(ninja) + "\n")
        self.write("compile_commands.json", json.dumps(commands))
        return subprocess.run([sys.executable, TOOL, self.dir, *targets], capture_output=True, text=True, check=False)

    def test_good(self):
        done = self.run_tool({"a.c": GOOD, "b.c": QUIET})
        self.assertEqual((done.returncode, done.stdout),
                         (0, "2 sources by 2 processes, 0 left to ninja: no processes with warnings or errors\n"))

    def test_each_source_for_itself(self):
        done = self.run_tool({"a.c": GOOD, "b.c": QUIET, "c.c": UNUSED, "d.c": GOOD, "e.c": UNUSED})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for name in ("c.c", "e.c"):
            self.assertRegex(done.stdout, rf"(?m)^{name}:\d+:\d+: error: unused variable")
        for name in ("a.c", "b.c", "d.c"):
            self.assertNotIn(f"{name}:", done.stdout)

    def test_made_code(self):
        done = self.run_tool({"a.c": GOOD, "f.c": ATOMIC})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^f.c:\d+:\d+: error: misaligned atomic")

    def test_no_header_says_which(self):
        """It would count for all sources that are read after one that includes it."""
        done = subprocess.run(["grep", "-rlE", "--include=*.h", r"pragma (GCC|clang) diagnostic|_Pragma", *OURS],
                              cwd=TOP, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)

    def test_options(self):
        """Sources with other options are for other processes."""
        self.assertEqual(self.run_tool({"a.c": GOOD, "c.c": UNUSED}, option="-DX").returncode, 0)

    def test_left_to_ninja(self):
        sources = {"a.c": GOOD, "c.c": UNUSED}
        done = self.run_tool(sources, "t.p/c.c.o")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "1 sources by 1 processes, 1 left to ninja: no processes with warnings or errors\n"))
        done = self.run_tool(sources, "t.p/a.c.o")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        done = self.run_tool(sources, "t.p/a.c.o", "t.p/c.c.o")
        self.assertEqual(done.returncode, 1)
        self.assertIn("usage: warnings.py", done.stderr)


if __name__ == "__main__":
    unittest.main()
