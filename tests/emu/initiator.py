# SPDX-License-Identifier: BSD-2-Clause
"""An initiator of vfio-user, without QEMU: the client of one PCI function that smartio-emu serves."""
import fcntl
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

    journal = None  # a list: who sends what, of all initiators

    def __init__(self, path, ram=True, vectors=3, sealed=False):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(WAIT)
        self.sock.connect(path)
        self.id = 0
        self.sent = b""
        self.dma = []  # what the server asked of us
        self.irq = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(vectors)]
        self.ram_fd = os.memfd_create("ram", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.ram_fd, RAM_BYTES)
        if sealed:
            fcntl.fcntl(self.ram_fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
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
        if self.journal is not None:
            self.journal.append((self, command, len(fds), message))
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


CC, CSTS, AQA, ASQ, ACQ = 0x14, 0x1c, 0x24, 0x28, 0x30


class Drive(Initiator):
    """With an NVMe driver of one I/O queue pair."""

    # ---- a driver: admin queues at RAM, I/O queues behind, data from 64K on ----

    def enable(self, master=True):
        self.ram[:0x4000] = bytes(0x4000)
        self.tail, self.head, self.phase = [0, 0], [0, 0], [1, 1]
        self.write(4, struct.pack("=H", 6 if master else 2), CONFIG)
        self.write32(AQA, 0xf000f)
        self.write(ASQ, struct.pack("=QQ", RAM, RAM + 0x1000))
        self.write32(CC, 0x460001)
        assert self.is_ready()
        assert self.read32(AQA) == 0xf000f

    def is_ready(self):
        """A store to a register takes effect before its reply."""
        return self.read32(CSTS) & 1

    def submit(self, queue, opcode, prp1, nsid=0, dwords=()):
        dwords = (*dwords, *[0] * (6 - len(dwords)))
        entry = struct.pack("=BBHIQQQQIIIIII", opcode, 0, self.tail[queue], nsid, 0, 0, prp1,
                            (prp1 + 4096) % 2**64, *dwords)
        at = queue * 0x2000 + self.tail[queue] * 64
        self.ram[at:at + 64] = entry
        self.tail[queue] = (self.tail[queue] + 1) % 16
        self.post32(0x1000 + 8 * queue, self.tail[queue])

    def completed(self, queue):
        """Its status. The interrupt has told of it: it is in memory."""
        at = queue * 0x2000 + 0x1000 + self.head[queue] * 16
        status = struct.unpack_from("=H", self.ram, at + 14)[0]
        assert status & 1 == self.phase[queue], "interrupt without a completion"
        self.head[queue] = (self.head[queue] + 1) % 16
        if self.head[queue] == 0:
            self.phase[queue] ^= 1
        self.post32(0x1004 + 8 * queue, self.head[queue])
        return status >> 1

    def do(self, queue, opcode, prp1=0, nsid=0, dwords=()):
        self.submit(queue, opcode, prp1, nsid, dwords)
        assert self.interrupted(queue), "no interrupt"
        return self.completed(queue)

    def start(self):
        self.set_irqs(self.irq)
        self.enable()
        assert self.do(0, 5, RAM + 0x3000, 0, (15 << 16 | 1, 1 << 16 | 3)) == 0
        assert self.do(0, 1, RAM + 0x2000, 0, (15 << 16 | 1, 1 << 16 | 1)) == 0
