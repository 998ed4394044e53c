#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A smartiod that was killed with requests under way does not keep the next one from smartio-vfio."""
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

REQUESTS = 150  # more than are served before the listener has its turn
PATIENCE = 60


def request(cookie):
    """Its form is wrong, and that is answered."""
    return struct.pack("=IIIIQQ", 32, 1, 0, 0, cookie, 0)


class Successor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "vfio.port")
        ready, write = os.pipe()
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.argv[1], "--state", folder.name, "--ready-fd", str(write)], pass_fds=[write])
        self.addCleanup(self.child.wait)
        self.addCleanup(self.child.kill)
        os.close(write)
        with os.fdopen(ready, "rb") as f:
            self.assertEqual(f.readline(), b"ready\n")

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(PATIENCE)
        s.connect(self.path)
        self.addCleanup(s.close)
        return s

    def ask(self, s, cookie):
        s.send(request(cookie))
        return struct.unpack_from("=Q", s.recv(8192), 16)[0]

    def test_requests_of_the_dead(self):
        old = self.connect()
        self.assertEqual(self.ask(old, 1), 1)
        self.child.send_signal(signal.SIGSTOP)
        os.waitpid(self.child.pid, os.WUNTRACED)
        old.setblocking(False)
        for n in range(REQUESTS):
            old.send(request(n))
        new = self.connect()
        old.close()
        self.child.send_signal(signal.SIGCONT)
        self.assertEqual(self.ask(new, 1000), 1000)

    def test_a_second_one(self):
        """One that lives keeps its place, with requests under way, too."""
        old = self.connect()
        self.assertEqual(self.ask(old, 1), 1)
        new = self.connect()
        self.assertEqual(new.recv(8192), b"")
        self.assertEqual(self.ask(old, 2), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
