# SPDX-License-Identifier: BSD-2-Clause
"""A machine with a virtual NTB, without QEMU: the initiator of vfio-user with a driver of its registers."""
import struct

from initiator import CONFIG, DMA_READ, REGION_READ, REPLY, Initiator

WINDOW = 2
DEVICE, ENTRY = 0xfe000000, 4096  # of a device of each machine; what a look-up entry translates
MAGIC, NODE, ENABLE, DB_MASK, FAULT_COUNT, FAULT_REASON = 0, 8, 0x48, 0x84, 0x100, 0x11c
PIECES, STALE_READS, VECTOR_DOORBELL = 0x24, 0x50, 3
LINK, PEER = 2, 6  # reasons of faults
ONES = 0xffffffff


def peer(row, register=0):
    return 0x1000 + 0x80 * row + register


def piece(number, register=0):
    return 0x58000 + 0x20 * number + register


class Machine(Initiator):
    """With a driver of the virtual NTB."""

    def start(self):
        for first in range(0, len(self.irq), 8):
            self.set_irqs(self.irq[first:first + 8], first)
        self.map(DEVICE, 0x1000, [])
        self.write(4, struct.pack("=H", 6), CONFIG)
        assert self.read32(MAGIC) == 0x42544e56
        return self

    def read64(self, offset):
        return struct.unpack("=Q", self.read(offset, 8))[0]

    def write64(self, offset, value):
        self.write(offset, struct.pack("=Q", value))

    def grant(self, number, row, base, size):
        self.write64(0x30000 + 0x20 * number + 8, base)
        self.write64(0x30000 + 0x20 * number + 16, size)
        self.write32(0x30000 + 0x20 * number, 7 | row << 8)

    def lead(self, entry, row, address):
        self.write64(0x10000 + 0x20 * entry + 8, address)
        self.write32(0x10000 + 0x20 * entry, 1 | row << 8)

    def ask_window(self, offset):
        self.send(REGION_READ, struct.pack("=QII", offset, WINDOW, 4))

    def answered(self):
        """The reply to what was asked last: the value."""
        number, command, flags, error, reply = self.receive()
        assert (number, command, flags, error) == (self.id, REGION_READ, REPLY, 0), (number, command, flags, error)
        return struct.unpack("=I", reply[16:])[0]

    def serve_one(self, value):
        """What the server has it do on its bus. Return: command, address, data."""
        number, command, flags, _, body = self.receive()
        assert not flags & REPLY, "a reply"
        address, count = struct.unpack_from("=QQ", body)
        data = struct.pack("=I", value) if command == DMA_READ else b""
        self.sock.sendall(struct.pack("=HHIIIQQ", number, command, 32 + len(data), REPLY, 0, address, count) + data)
        return command, address, body[16:]
