#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""no_io_uring.py starts what it is told, for which io_uring is not there and all else is.

usage: no_io_uring_test.py
"""
import errno
import os
import platform
import subprocess
import sys
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "machine", "no_io_uring.py")
# Its parameters make no sense: where there is io_uring it says so.
ASK = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(425, 0, None)
os.getpid()
print(ctypes.get_errno(), *sys.argv[1:])
sys.exit(7)
"""


def run(*words):
    return subprocess.run([sys.executable, "-IB", *words], check=False, capture_output=True, text=True)


class NoIoUring(unittest.TestCase):
    @unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "it knows no other processors")
    def test_it_is_not_there(self):
        done = run(TOOL, sys.executable, "-c", ASK, "a b", "c")
        self.assertEqual(done.stdout, f"{errno.ENOSYS} a b c\n", done.stderr)
        self.assertEqual(done.returncode, 7)

    def test_what_cannot_be_started_is_named(self):
        done = run(TOOL, "no-such-command")
        self.assertEqual((done.returncode, done.stderr),
                         (1, "no_io_uring.py: no-such-command: No such file or directory\n"))

    def test_usage(self):
        self.assertIn("usage", run(TOOL, "--help").stdout)
        self.assertEqual(run(TOOL).returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
