#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program that holds things at its host's daemon until its standard input ends.

usage: holder.py WORD...
  segment=ID[:BYTES]  create a segment, of 64 KiB, and offer it
  connect=NODE:ID[:BYTES]  connect to one, and map it
  lock=BYTES     lock memory
  interrupt      create a data interrupt
  trigger=NODE:NUMBER  connect to one
  borrow=ID      borrow a device
  lend=ID        borrow a device, and map the segment made last for it
It speaks the daemon's protocol itself (libsmartio/wire/client.h), so that the command's tests need
no library. Prints "ready".
"""
import array
import ctypes
import mmap
import os
import re
import select
import socket
import struct
import sys

HELLO, SEG_CREATE, SEG_PREPARE, SEG_AVAILABLE, SEG_CONNECT, SEG_MAP = 1, 16, 17, 18, 21, 23
DINT_CREATE, DINT_CONNECT, DEV_BORROW, DMA_MAP = 32, 34, 49, 54
EVENTS_TAKEN, FENCE = 8, 262
HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../libsmartio/wire/client.h")


def version():
    with open(HEADER, encoding="utf-8") as f:
        return int(re.search(r"^#define SIO_CLIENT_VERSION (\d+)", f.read(), re.M)[1])


class Daemon:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(os.environ["SMARTIO_SOCKET"])
        self.id = 0
        self.kept = []
        self.call(HELLO, struct.pack("<IIII", version(), 0, os.getpid(), 1))

    def call(self, kind, body):
        self.id += 1
        self.socket.send(struct.pack("<IIII", 16 + len(body), kind, self.id, 0) + body)
        while True:
            data = self.receive()
            _, _, number, error = struct.unpack_from("<IIII", data)
            if number != self.id:
                continue
            if error:
                text = data[16:].split(b"\0")[0].decode()
                sys.exit(f"holder: message {kind}: {os.strerror(error)}: {text}")
            return data[16:]

    def receive(self):
        """The next message. Of events only fences are answered."""
        fds = array.array("i")
        data, extra, _, _ = self.socket.recvmsg(8192, socket.CMSG_SPACE(16 * 4))
        for level, what, content in extra:
            if level == socket.SOL_SOCKET and what == socket.SCM_RIGHTS:
                fds.frombytes(content[:len(content) // 4 * 4])
        self.kept += fds
        if data and struct.unpack_from("<II", data)[1] == FENCE:
            self.socket.send(struct.pack("<IIII", 24, EVENTS_TAKEN, 0xffffffff, 0) + data[16:24])
        return data

    def hold(self):
        """Until standard input ends."""
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        ready.register(sys.stdin, select.POLLIN)
        while True:
            for fd, _ in ready.poll():
                if fd != self.socket.fileno():
                    if not os.read(fd, 4096):
                        return
                elif not self.received():
                    ready.unregister(self.socket)

    def received(self):
        try:
            return self.receive()
        except ConnectionError:
            return b""

    def segment(self, number, size=65536):
        reply = self.call(SEG_CREATE, struct.pack("<IIQQ", number, 0, size, 0))
        handle = struct.unpack_from("<I", reply)[0]
        for kind in (SEG_PREPARE, SEG_AVAILABLE):
            self.call(kind, struct.pack("<IIII", handle, 0, 0, 0))
        return handle

    def connect(self, node, number, size=65536):
        reply = self.call(SEG_CONNECT, struct.pack("<IIII", node, number, 0, 0))
        handle = struct.unpack_from("<I", reply)[0]
        self.call(SEG_MAP, struct.pack("<IIQQ", handle, 0, 0, size))

    def borrow(self, device):
        return struct.unpack_from("<I", self.call(DEV_BORROW, struct.pack("<IIII", device, 0, 0, 0)))[0]

    def lend(self, device, segment):
        handle = self.borrow(device)
        self.call(DMA_MAP, struct.pack("<IIIIQQQII", handle, segment, 0, 0, 0, 65536, 0, 0, 0))


def lock(size):
    memory = mmap.mmap(-1, size)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlock(ctypes.byref(ctypes.c_char.from_buffer(memory)), ctypes.c_size_t(size)):
        sys.exit(f"holder: mlock: {os.strerror(ctypes.get_errno())}")
    return memory


def main():
    daemon = Daemon()
    segment = 0
    for word in sys.argv[1:]:
        what, _, value = word.partition("=")
        if what == "segment":
            segment = daemon.segment(*[int(v, 0) for v in value.split(":")])
        elif what == "connect":
            daemon.connect(*[int(v, 0) for v in value.split(":")])
        elif what == "lock":
            daemon.kept.append(lock(int(value, 0)))
        elif what == "interrupt":
            daemon.call(DINT_CREATE, struct.pack("<IIII", 0, 0, 0, 0))
        elif what == "trigger":
            node, number = [int(v, 0) for v in value.split(":")]
            daemon.call(DINT_CONNECT, struct.pack("<IIII", node, 0, number, 0))
        elif what == "borrow":
            daemon.borrow(int(value, 0))
        elif what == "lend":
            daemon.lend(int(value, 0), segment)
        else:
            sys.exit(f"holder: what is '{word}'?")
    print("ready", flush=True)
    daemon.hold()


if __name__ == "__main__":
    main()
