#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio-vfio --keep with a store of systemd that the test is: it is killed, and the next process has what it had."""
import array
import ctypes
import fcntl
import os
import platform
import resource
import select
import socket
import struct
import sys
import tempfile
import unittest

INFO, OWNER_NEW, LIST, ALLOC, FREE, IMPORT = 1, 2, 4, 6, 7, 8
KIND_MEM, IMPORT_MEMFD = 2, 1
PATIENCE = 120
SYS_KCMP, KCMP_FILE = {"x86_64": 312, "aarch64": 272}[platform.machine()], 0
MANY = 18000  # more than there is room for
MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
LIBC = ctypes.CDLL(None, use_errno=True)


def same_file(a, b):
    """As systemd asks: whether both are one open file."""
    me = os.getpid()
    return LIBC.syscall(SYS_KCMP, me, me, KCMP_FILE, a, b) == 0


class Store:
    """What systemd does with FDSTORE=1, FDSTOREREMOVE=1, READY=1."""

    def __init__(self, path):
        self.fds = {}  # name: descriptors
        self.files = {}  # (device, inode): descriptors
        self.ready = False
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)

    def close(self):
        for name in list(self.fds):
            self.remove(name)
        self.socket.close()

    def hear(self):
        """All that was said until now."""
        while select.select([self.socket], [], [], 0)[0]:
            text, rest, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4))
            fds = array.array("i")
            for _, _, data in rest:
                fds.frombytes(data)
            words = dict(line.split("=", 1) for line in text.decode().splitlines())
            self.ready |= "READY" in words
            if "FDSTORE" in words:
                self.add(words["FDNAME"], fds[0])
            elif "FDSTOREREMOVE" in words:
                self.remove(words["FDNAME"])

    @staticmethod
    def key(fd):
        st = os.fstat(fd)
        return st.st_dev, st.st_ino

    def add(self, name, fd):
        there = self.files.setdefault(self.key(fd), [])
        if any(same_file(fd, other) for other in there):
            os.close(fd)
            return
        there.append(fd)
        self.fds.setdefault(name, []).append(fd)

    def remove(self, name):
        for fd in self.fds.pop(name, []):
            self.files[self.key(fd)].remove(fd)
            os.close(fd)

    def listed(self):
        """In the order of descriptors."""
        return sorted((fd, name) for name, fds in self.fds.items() for fd in fds)


class Kept(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.store = Store(f"{self.folder}/notify")
        self.addCleanup(self.store.close)
        self.child = 0
        self.addCleanup(self.kill)
        self.cookie = 0
        self.link = None
        self.start()

    def start(self):
        listed = self.store.listed()
        environment = {"NOTIFY_SOCKET": f"{self.folder}/notify"}
        if listed:
            environment |= {"LISTEN_FDS": str(len(listed)), "LISTEN_FDNAMES": ":".join(name for _, name in listed)}
        self.store.ready = False
        self.child = os.fork()
        if self.child == 0:
            self.become(environment, [fd for fd, _ in listed])
        ended = os.pidfd_open(self.child)
        while not self.store.ready:
            now = select.select([self.store.socket, ended], [], [], PATIENCE)[0]
            self.assertEqual(now, [self.store.socket], "it does not start")
            self.store.hear()
        os.close(ended)
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.link.close)
        self.link.settimeout(PATIENCE)
        self.link.connect(f"{self.folder}/vfio.port")

    def become(self, environment, fds):
        """Never returns."""
        try:
            for i, fd in enumerate(fds, 3):  # fd is not below i
                if fd == i:
                    os.set_inheritable(fd, True)
                else:
                    os.dup2(fd, i)
            os.closerange(3 + len(fds), MOST)
            environment["LISTEN_PID"] = str(os.getpid())
            os.execve(sys.argv[1], [sys.argv[1], "--keep", "--state", self.folder], environment)
        except OSError as e:
            os.write(2, f"exec: {e}\n".encode())
        finally:
            os._exit(1)

    def kill(self):
        if self.child:
            os.kill(self.child, 9)
            os.waitpid(self.child, 0)
        self.child = 0

    def restart(self):
        self.store.hear()
        self.kill()
        self.store.hear()
        self.link.close()
        self.start()

    def ask(self, op, body, *fds, owner=0):
        """(error, what follows the head)."""
        self.cookie += 1
        head = struct.pack("=IIIIQQ", 32 + len(body), op, 0, 0, self.cookie, owner)
        socket.send_fds(self.link, [head + body], fds)
        while True:
            if self.store.socket in select.select([self.link, self.store.socket], [], [], PATIENCE)[0]:
                self.store.hear()
                continue
            answer, came, _, _ = socket.recv_fds(self.link, 8192, 4)
            for fd in came:
                if op != OWNER_NEW:
                    os.close(fd)
            _, _, _, error, cookie, _ = struct.unpack_from("=IIIiQQ", answer)
            if cookie == self.cookie:
                return error, answer[32:], came

    def good(self, op, body, *fds, owner=0):
        error, answer, came = self.ask(op, body, *fds, owner=owner)
        self.assertEqual(error, 0, answer)
        return struct.unpack_from("=Q", answer)[0], came

    def owner(self):
        number, came = self.good(OWNER_NEW, struct.pack("=QII", 0, 0, 0))
        self.addCleanup(os.close, came[0])
        return number

    def alloc(self, owner):
        return self.good(ALLOC, struct.pack("=QQQQIIQ", 4096, 0, 2**64 - 1, 0, 0, 3, 0), owner=owner)[0]

    def memories(self):
        found, after, more = [], 0, 1
        while more:
            _, answer, _ = self.ask(LIST, struct.pack("=IIQ", KIND_MEM, 0, after))
            count, more = struct.unpack_from("=II", answer)
            found += [struct.unpack_from("=Q", answer, 8 + i * 72)[0] for i in range(count)]
            after = found[-1] if found else 0
        return found

    def test_same_memory_twice(self):
        """A program that registers its memory twice, or two programs that share it."""
        fd = os.memfd_create("mine", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, 4096)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        body = struct.pack("=IIQQQ", IMPORT_MEMFD, 3, 0, 0, 0)
        ids = [self.good(IMPORT, body, fd, owner=self.owner())[0] for _ in range(2)]
        self.restart()
        self.assertEqual(self.memories(), ids)

    def test_many(self):
        """All that is kept comes to the next process, however much there is."""
        if MOST < MANY + 500:
            self.skipTest(f"{MOST} descriptors are too few (ulimit -Hn)")
        owner = self.owner()
        made = [self.alloc(owner) for _ in range(MANY)]
        self.store.hear()
        kept = len(self.store.listed()) - 2  # the records, the owner
        self.assertGreaterEqual(kept, 12000)
        self.assertLess(kept, MANY)
        self.restart()
        self.assertEqual(self.memories(), made[:kept])
        self.assertEqual(self.ask(FREE, struct.pack("=Q", made[kept - 1]), owner=owner)[0], 0)
        other = self.alloc(owner)
        self.restart()
        self.assertEqual(self.memories(), made[:kept - 1] + [other])


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, MOST))
    unittest.main(argv=sys.argv[:1])
