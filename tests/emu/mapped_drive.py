# SPDX-License-Identifier: BSD-2-Clause
"""A machine that a relay (smartio passthrough) gives a borrowed drive to: the initiator of vfio-user in QEMU's place."""
import mmap
import os
import socket
import struct
import time

from initiator import CSTS, GET_REGION_INFO, WAIT, RAM, Drive

ONES = 0xffffffff
DATA, BACK, BYTES = 0x20000, 0x30000, 8192  # in its memory


class MappedDrive(Drive):
    """With the doorbells mapped, as QEMU maps them: stores there are no messages."""

    def __init__(self, path, **more):
        super().__init__(path, sealed=True, **more)
        self.send(GET_REGION_INFO, struct.pack("=IIIIQQ", 256, 0, 0, 0, 0, 0))
        first, fds, _, _ = socket.recv_fds(self.sock, 4096, 4)  # the first bytes of the reply
        number, _, size, flags, _ = struct.unpack_from("=HHIII", first)
        assert number == self.id and flags == 1
        reply = first[16:] + self.exactly(size - len(first))
        self.info = struct.unpack_from("=IIIIQQ", reply)
        n, = struct.unpack_from("=I", reply, 40)
        self.area = struct.unpack_from("=QQ", reply, 48)
        assert n == 1 and len(fds) == 1
        mapped = mmap.mmap(fds[0], self.area[1], offset=(self.info[5] + self.area[0]) % 2**64)
        self.doorbells = memoryview(mapped).cast("I")  # a store to it is one, of 32 bits
        os.close(fds[0])

    def post32(self, offset, value):
        assert self.area[0] <= offset < sum(self.area)
        self.doorbells[(offset - self.area[0]) // 4] = value

    def set_irqs(self, fds, start=0):
        """Where they are set again, each fires once for what may have come meanwhile."""
        super().set_irqs(fds, start)
        for fd in fds:
            try:
                os.eventfd_read(fd)
            except BlockingIOError:
                pass

    def is_ready(self):
        """A borrowed drive looks at its registers by itself."""
        end = time.monotonic() + WAIT
        while not self.read32(CSTS) & 1 and time.monotonic() < end:
            pass
        return self.read32(CSTS) & 1

    def dead(self):
        """Its driver reads the controller's status."""
        return self.read32(CSTS) == ONES

    def use(self, first, count=20):
        """What was written there, and read again."""
        data = os.urandom(BYTES)
        self.ram[DATA:DATA + BYTES] = data
        for block in range(first, first + 16 * count, 16):
            for opcode, at in ((1, DATA), (2, BACK)):
                status = self.do(1, opcode, RAM + at, 1, (block, 0, 15))
                assert status == 0, f"status {status:#x} of command {opcode} at block {block}"
            assert self.ram[BACK:BACK + BYTES] == data, f"block {block} is another one"
            self.ram[BACK:BACK + BYTES] = bytes(BYTES)
        return data
