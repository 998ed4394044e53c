#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What README.md, docs/ and the man pages tell a reader to type is typed, in order, as printed; their C
compiles, their topology files are right, and no block is without a kind (docs/documents.md).

usage: docs_test.py BUILD [UNITTEST-OPTION...]
"""
import contextlib
import glob
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import blocks

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests", "cli"))
from base import processes_with  # noqa: E402

BUILD = None
DOCUMENTS = ["README.md", "docs/*.md", "docs/man/*.scd", "drivers/nvme-user/*.scd", "drivers/accel/*.scd"]
SECONDS = 120  # for one document; a command that hangs is to fail
# Whatever fails ends the document, with the line that it has there; so do programs in the background.
TYPE = """
set -eET -o pipefail
jobs=() last=
trap 'echo "$DOCUMENT:$LINENO: failed: $BASH_COMMAND" >&2' ERR
trap '[ "$!" = "$last" ] || { last=$!; jobs+=("$last"); }' DEBUG
source "$1"
true
trap - DEBUG ERR
for job in "${jobs[@]}"; do
	wait "$job" || { rc=$?; echo "$DOCUMENT: a command in the background failed: $rc" >&2; exit $rc; }
done
"""


def documents():
    for pattern in DOCUMENTS:
        for path in sorted(glob.glob(os.path.join(SOURCE, pattern))):
            yield os.path.relpath(path, SOURCE)


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def script(found):
    """The commands, each at its document's line."""
    lines = []
    for block in found:
        lines += [""] * (block.line - 1 - len(lines)) + block.lines
    return "\n".join(lines) + "\n"


class Installed:
    """What `make install` installs, for all documents."""

    def __init__(self, folder):
        subprocess.run(["meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", folder],
                       check=True, capture_output=True)
        found = {f: d for d, _, files in os.walk(folder) for f in files}
        self.env = {"PATH": f"{found['smartio-nvme']}:{os.environ['PATH']}", "LD_LIBRARY_PATH": found["libsisci.so"],
                    "PKG_CONFIG_PATH": found["sisci.pc"]}
        # Where the .pc files name the prefix that they were configured for, and not what is beside them.
        prefix = subprocess.run(["pkg-config", "--variable=prefix", "sisci"], env={**os.environ, **self.env},
                                capture_output=True, text=True, check=True).stdout
        if not prefix.startswith(folder):
            self.env["PKG_CONFIG_SYSROOT_DIR"] = folder


class Place:
    """A clone as a reader has it, built, and nothing of this session's around it."""

    def __init__(self, installed):
        self.dir = tempfile.mkdtemp(prefix="sio-docs-")
        self.clone = os.path.join(self.dir, "clone")
        os.makedirs(os.path.join(self.clone, "build"))
        for name in os.listdir(SOURCE):
            if name not in (".git", "build"):
                os.symlink(os.path.join(SOURCE, name), os.path.join(self.clone, name))
        os.symlink(BUILD, os.path.join(self.clone, "build", "plain"))
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SMARTIO_", "MESON", "MALLOC_PERTURB_"))}
        self.env.update(installed.env, HOME=self.dir, XDG_RUNTIME_DIR=self.dir, LC_ALL="C.UTF-8")

    def type(self, path, found):
        """All that is to be typed. Return: what was wrong, or None."""
        name = os.path.join(self.dir, os.path.basename(path))
        with open(name, "w", encoding="utf-8") as f:
            f.write(script(found))
        with open(os.path.join(self.dir, "said"), "w+", encoding="utf-8", errors="replace") as said:
            child = subprocess.Popen(["bash", "-c", TYPE, "bash", name], cwd=self.clone, stdin=subprocess.DEVNULL,
                                     env={**self.env, "DOCUMENT": path}, stdout=said, stderr=said,
                                     start_new_session=True)
            try:
                status = child.wait(SECONDS)
            except subprocess.TimeoutExpired:
                status = f"nothing after {SECONDS} s"
                child.kill()
                child.wait()
            said.seek(0)
            text = said.read()
        left = processes_with("XDG_RUNTIME_DIR", self.dir)
        for pid, _ in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        runtime = os.path.join(self.dir, "smartio")
        clusters = os.listdir(runtime) if os.path.isdir(runtime) else []
        for cluster in clusters:
            subprocess.run(["smartio", "--state", os.path.join(runtime, cluster), "cluster", "down"],
                           env=self.env, check=False, capture_output=True)
        if status == 0 and not left and not clusters:
            return None
        return f"{path}: ended with {status}; clusters left: {clusters}, processes left: {left}\n{text}"

    def close(self):
        shutil.rmtree(self.dir)


class Documents(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.found = {path: blocks.of(path, read(path)) for path in documents()}
        cls.folder = tempfile.mkdtemp(prefix="sio-docs-install-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.installed = Installed(cls.folder)
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
            cls.commands = json.load(f)

    def every(self, kind):
        return [b for found in self.found.values() for b in found if b.kind == kind]

    def test_every_block_has_a_kind(self):
        wrong = [f"{b.where()}: {blocks.complaint(b)}" for found in self.found.values() for b in found
                 if blocks.complaint(b)]
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertGreater(len(self.every("sh")), 10)

    def test_commands(self):
        for path, found in self.found.items():
            found = [b for b in found if b.runs]
            if not found:
                continue
            with self.subTest(path):
                place = Place(self.installed)
                try:
                    wrong = place.type(path, found)
                finally:
                    place.close()
                self.assertIsNone(wrong, wrong)

    def test_c(self):
        """An example compiles as if it stood in the file that its block names; else as a program does."""
        for block in self.every("c"):
            with self.subTest(block.where()), tempfile.NamedTemporaryFile(
                    "w", suffix=".c", encoding="utf-8") as f:
                f.write(f'#line {block.line} "{block.path}"\n{block.text}')
                f.flush()
                done = subprocess.run(self.compiler(block, f.name), capture_output=True, text=True,
                                      cwd=BUILD, check=False)
                self.assertEqual(done.returncode, 0, f"{block.where()}:\n{done.stderr}")

    def compiler(self, block, path):
        like = block.rest or "examples/pingpong.c"
        entry = next((e for e in self.commands if os.path.realpath(os.path.join(e["directory"], e["file"]))
                      == os.path.realpath(os.path.join(SOURCE, like))), None)
        self.assertIsNotNone(entry, f"{block.where()}: the build has no {like}")
        words = shlex.split(entry["command"])
        words = words[:words.index("-MD")] if "-MD" in words else words[:words.index("-o")]
        # A part of a program may have a function that its other files call.
        return [*words, "-Wno-missing-prototypes", "-iquote", os.path.dirname(os.path.join(SOURCE, like)), "-fsyntax-only",
                path]

    def test_topology_files(self):
        for block in self.every("yaml"):
            with self.subTest(block.where()), tempfile.NamedTemporaryFile(
                    "w", suffix=".yaml", encoding="utf-8") as f:
                f.write(block.text)
                f.flush()
                done = subprocess.run(["smartio", "cluster", "validate", f.name], capture_output=True, text=True,
                                      env={**os.environ, **self.installed.env}, check=False)
                self.assertEqual(done.returncode, 0, f"{block.where()}: {done.stderr}")


class Checks(unittest.TestCase):
    """That the above can fail."""

    def complaints(self, text, path="x.md"):
        return [(b.line, blocks.complaint(b)) for b in blocks.of(path, text) if blocks.complaint(b)]

    def test_blocks(self):
        self.assertEqual(self.complaints("a\n\n```sh\nmake\n```\n\n```sh takes long\nmake\n```\n"), [])
        for text, line, say in (("a\n\n    make demo\n", 3, "without a kind"),
                                ("```\nmake\n```\n", 2, "without a kind"),
                                ("```shell\nmake\n```\n", 2, "no kind of block"),
                                ("```sh because\nmake\n```\n", 2, "no reason"),
                                ("```text\nx\nsudo make\n```\n", 2, "line 3 is a command")):
            (at, said), = self.complaints(text)
            self.assertEqual(at, line)
            self.assertIn(say, said)
        self.assertEqual(self.complaints("- a list\n\n    goes on\n"), [])
        self.assertEqual(self.complaints("# EXAMPLES\n\n\tsmartio\n", "x.scd")[0][0], 3)
        known, = blocks.of("x.scd", "# EXAMPLES\n; needs root\n```\nmake\n```\n")
        self.assertEqual((known.kind, known.runs), ("sh", False))
        self.assertEqual(self.complaints("# FILES\n```\nmake\n```\n", "x.scd")[0][0], 3)

    def test_what_fails_is_told(self):
        class Nothing:
            env = {"PATH": f"{BUILD}/tools:{os.environ['PATH']}"}
        for text, say in (("true\nfalse\n", "x.md:3: failed: false"), ("false | true\n", "x.md:2: failed"),
                          ("(exit 3) &\n", "ended with 3"), ("(exit 3) &\nsleep 0.1\ntrue\n", "ended with 3"),
                          ("(exit 3) &\ntrue &\nwait $!\n", "ended with 3"), ("sleep 1000 & disown\n", "processes left: [("),
                          ("mkdir -p $XDG_RUNTIME_DIR/smartio/c\n", "clusters left: ['c']")):
            place = Place(Nothing)
            try:
                wrong = place.type("x.md", blocks.of("x.md", f"```sh\n{text}```\n"))
            finally:
                place.close()
            self.assertIn(say, wrong or "nothing was wrong")


if __name__ == "__main__":
    BUILD = os.path.realpath(sys.argv.pop(1))
    if os.path.exists(os.path.join(BUILD, "bench", "gpu", "gpu-pingpong")):
        blocks.BUILT.add("needs CUDA")
    if os.path.exists(os.path.join(BUILD, "drivers", "nvme-fio", "fio-smartio.so")) and shutil.which("fio"):
        blocks.BUILT.add("needs fio")
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
