# SPDX-License-Identifier: BSD-2-Clause
"""An initiator of vfio-user, without QEMU: the client of one PCI function that smartio-emu serves."""
import mmap
import os
import select
import socket
import struct

(VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO, _, GET_IRQ_INFO, SET_IRQS, REGION_READ,
 REGION_WRITE, DMA_READ, DMA_WRITE, RESET) = range(1, 14)
REPLY, NO_REPLY, ERROR = 1, 0x10, 0x20
CONFIG = 7
RAM, RAM_BYTES = 0x40000000, 4 << 20
FOREIGN = 0xfe000000  # of another device: no file stands behind it
WAIT = 60  # seconds: only a broken server takes them


class Refused(Exception):
    pass


class Initiator:
    """Its messages, its memory, its interrupts."""

    def __init__(self, path, ram=True, vectors=3):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(WAIT)
        self.sock.connect(path)
        self.id = 0
        self.sent = b""
        self.dma = []  # what the server asked of us
        self.irq = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(vectors)]
        self.ram_fd = os.memfd_create("ram")
        os.ftruncate(self.ram_fd, RAM_BYTES)
        self.ram = mmap.mmap(self.ram_fd, RAM_BYTES)
        self.version = self.ask(VERSION, struct.pack("=HH", 0, 0) + b'{"capabilities":{"max_msg_fds":8}}\0')
        if ram:
            self.map(RAM, RAM_BYTES, [self.ram_fd])

    def close(self):
        self.sock.close()
        for fd in (*self.irq, self.ram_fd):
            os.close(fd)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def receive(self):
        head = self.exactly(16)
        number, command, size, flags, error = struct.unpack("=HHIII", head)
        return number, command, flags, error, self.exactly(size - 16)

    def send(self, command, body=b"", fds=(), flags=0):
        self.id = (self.id + 1) % 65536
        message = struct.pack("=HHIII", self.id, command, 16 + len(body), flags, 0) + body
        self.sent += bytes([len(fds) + 17 if fds else 0]) + message
        socket.send_fds(self.sock, [message[:1]], list(fds))
        self.sock.sendall(message[1:])

    def serve(self, number, command, body):
        """A DMA message of the server's."""
        address, count = struct.unpack_from("=QQ", body)
        self.dma.append((command, address, body[16:]))
        self.sock.sendall(struct.pack("=HHIIIQQ", number, command, 32, REPLY, 0, address, count))

    def ask(self, command, body=b"", fds=()):
        self.send(command, body, fds)
        while True:
            number, which, flags, error, reply = self.receive()
            if not flags & REPLY:
                self.serve(number, which, reply)
                continue
            assert (number, which) == (self.id, command), (number, which)
            if flags & ERROR:
                raise Refused(error)
            return reply

    def map(self, address, size, fds, flags=3):
        self.ask(DMA_MAP, struct.pack("=IIQQQ", 32, flags, 0, address, size), fds)

    def unmap(self, address, size):
        self.ask(DMA_UNMAP, struct.pack("=IIQQ", 24, 0, address, size))

    def read(self, offset, size, region=0):
        return self.ask(REGION_READ, struct.pack("=QII", offset, region, size))[16:]

    def read32(self, offset, region=0):
        return struct.unpack("=I", self.read(offset, 4, region))[0]

    def write(self, offset, data, region=0):
        self.ask(REGION_WRITE, struct.pack("=QII", offset, region, len(data)) + data)

    def write32(self, offset, value, region=0):
        self.write(offset, struct.pack("=I", value), region)

    def post32(self, offset, value):
        self.send(REGION_WRITE, struct.pack("=QIII", offset, 0, 4, value), flags=NO_REPLY)

    def set_irqs(self, fds, start=0):
        self.ask(SET_IRQS, struct.pack("=IIIII", 20, 4 | 32, 2, start, max(len(fds), 1)), fds)

    def interrupted(self, vector):
        """Wait for it; the vector has fired."""
        ready = select.select([self.irq[vector]], [], [], WAIT)[0]
        return bool(ready) and os.eventfd_read(self.irq[vector]) > 0
