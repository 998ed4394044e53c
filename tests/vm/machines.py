#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What docs/machines.md tells a reader to type, who has virtual machines by `smartio machine`.

usage: machines.py BUILD

Exit status 77, and a line that says why, if what machines need cannot be fetched.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import paths
import cache

sys.path.insert(1, os.path.join(paths.ROOT, "tests", "docs"))
sys.path.insert(1, os.path.join(paths.ROOT, "tests", "cli"))
import base  # noqa: E402
import blocks  # noqa: E402

SKIP = 77
DOCUMENT = "docs/machines.md"
LIMIT = 800  # seconds
# As tests/docs types: what fails ends it, with its line.
TYPE = """
set -eE -o pipefail
trap 'echo "$DOCUMENT:$LINENO: failed: $BASH_COMMAND" >&2' ERR
source "$1"
"""


def environment(build, folder):
    """A built tree, and a place where clusters and the folder at hand are new."""
    tools = [f"{build}/{name}" for name in ("tools", "drivers/nvme-user")]
    env = {k: v for k, v in os.environ.items() if not k.startswith("SMARTIO_")}
    return {**env, "PATH": ":".join([*tools, env["PATH"]]), "XDG_RUNTIME_DIR": folder, "SMARTIO_VM_CACHE": cache.folder(),
            "DOCUMENT": DOCUMENT}


def script():
    """The commands, each at its line of the document."""
    with open(os.path.join(paths.ROOT, DOCUMENT), encoding="utf-8") as f:
        found = [b for b in blocks.of(DOCUMENT, f.read()) if b.kind == "sh"]
    lines = []
    for block in found:
        lines += [""] * (block.line - 1 - len(lines)) + block.lines
    return "\n".join(lines) + "\n"


def fetch(env):
    """False: it cannot be had here."""
    done = subprocess.run(["smartio", "machine", "fetch"], env=env, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode == 0:
        return True
    print(done.stderr.strip())
    return False


def type_all(env, folder):
    """Exit status, and what was said."""
    place = f"{folder}/place"
    os.makedirs(f"{place}/build")
    os.symlink(f"{paths.ROOT}/examples", f"{place}/examples")
    os.symlink(env["BUILD"], f"{place}/build/plain")
    with open(f"{folder}/typed", "w", encoding="utf-8") as f:
        f.write(script())
    done = subprocess.run(["bash", "-c", TYPE, "bash", f"{folder}/typed"], cwd=place, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
    return done.returncode, done.stdout.decode(errors="replace")


# In this order.
SAID = ("they are in the file that is a's drive, and b reads them", "all is taken down", "machine 'b' is up", "-amd64",
        "a/0000:00:08.0", "has 64 queue pairs", "from b to a's drive", "from b to a's drive", "hello", "machine killed",
        "machine b was killed", "machine-killed", "machine start b", "machine 'b' is off", "is down", "machine 'vm' is up", "nvme0",
        "shared", "from a machine", "lender   4  host     up       256M", "is down")


def check_documents(said):
    """What was printed with --json is as its schema says. Return: the schemas' names."""
    decoder, names = json.JSONDecoder(), []
    for found in re.finditer(r"^\{$", said, re.M):
        document, _ = decoder.raw_decode(said, found.start())
        base.check_schema(document)
        names.append(document["schema"])
    return names


def missing(said):
    """The first of SAID that was not said behind those before; None: all were."""
    at = 0
    for words in SAID:
        at = said.find(words, at)
        if at < 0:
            return words
        at += len(words)
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="sio-vm-") as folder:
        env = {**environment(build, folder), "BUILD": build}
        if not shutil.which("mmdebstrap") or not fetch(env):
            print("machines: skipped: what they need cannot be fetched")
            return SKIP
        try:
            status, said = type_all(env, folder)
        finally:
            left = subprocess.run(["smartio", "cluster", "down"], env=env, capture_output=True, text=True)
        print(said)
        wrong = (f"ended with {status}" if status else None) or \
            ("a cluster was left" if left.returncode == 0 else None)
        lacks = missing(said)
        if not wrong and check_documents(said) != ["smartio/machine-start"]:
            wrong = "machine start printed no document"
        wrong = wrong or (f"it did not say, in its place: {lacks}" if lacks else None)
        print(f"machines: {'FAILED: ' + wrong if wrong else 'passed'}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
