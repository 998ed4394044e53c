# SPDX-License-Identifier: BSD-2-Clause
"""In a machine of passthrough_two.py: the virtual machine that a relay there gives the drives of two others to.

usage: relay_two.py SOCKET work | hold
work: each drive writes to the other's memory, where the machine has it, and reads from there. hold: the first one does until
its standard input ends; it says "runs" at first, "on" after each SIGUSR1, and when the second one is gone.
"""
import os
import select
import signal
import struct
import sys

import initiator
from initiator import CONFIG, DMA_MAP, RAM
from mapped_drive import BACK, DATA, MappedDrive

# Each page of both is a range of this machine's IOMMU, and a virtual NTB takes 1,024 of them.
initiator.RAM_BYTES = 1 << 19
MEMORY, MEMORY_BYTES, MEMORY_AT = 2, 1 << 20, 0x18  # the BAR with the drive's memory, and its register
PLACES = (0xc0000000, 0x4000000000)
MOVED = 0xd0000000
OFFSET, BYTES = 0x2000, 4096
LAST = BYTES // 512 - 1


class Drive(MappedDrive):
    def place(self, at):
        """The machine gives its memory an address, and lets the drive send."""
        self.write(4, struct.pack("=H", 4), CONFIG)
        self.write(MEMORY_AT, struct.pack("=Q", at), CONFIG)
        self.write(4, struct.pack("=H", 6), CONFIG)

    def hear(self, at):
        """As the emulator announces another device's BAR: a range without a file."""
        self.ask(DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, at, MEMORY_BYTES))


def crosses(one, other, at, block):
    """From the blocks of @one to the memory of @other, which is at @at, and back."""
    data = os.urandom(BYTES)
    one.ram[DATA:DATA + BYTES] = data
    assert one.do(1, 1, RAM + DATA, 1, (block, 0, LAST)) == 0
    assert one.do(1, 2, at + OFFSET, 1, (block, 0, LAST)) == 0
    got = other.read(OFFSET, BYTES, MEMORY)
    assert got == data, f"{got[:32].hex()} of {data[:32].hex()} has arrived"
    assert one.do(1, 1, at + OFFSET, 1, (block + 64, 0, LAST)) == 0
    assert one.do(1, 2, RAM + BACK, 1, (block + 64, 0, LAST)) == 0
    assert one.ram[BACK:BACK + BYTES] == data, "it has read something else there"


def misses(one, other, at):
    """The other one's memory is not there."""
    before = other.read(OFFSET, BYTES, MEMORY)
    one.ram[DATA:DATA + BYTES] = os.urandom(BYTES)
    assert one.do(1, 1, RAM + DATA, 1, (0, 0, LAST)) == 0
    one.do(1, 2, at + OFFSET, 1, (0, 0, LAST))
    assert other.read(OFFSET, BYTES, MEMORY) == before, "it was reached where it is not"


def both(path):
    drives = [Drive(path), Drive(path + ".2")]
    for m, at in zip(drives, PLACES):
        m.start()
        m.place(at)
    for m, at in zip(drives, reversed(PLACES)):
        m.hear(at)
    return drives


def work(path):
    one, two = both(path)
    crosses(one, two, PLACES[1], 0)
    crosses(two, one, PLACES[0], 0)
    # Before the emulator says so, and after.
    two.place(MOVED)
    misses(one, two, PLACES[1])
    misses(one, two, MOVED)
    one.unmap(PLACES[1], MEMORY_BYTES)
    one.hear(MOVED)
    crosses(one, two, MOVED, 128)
    misses(one, two, PLACES[1])
    misses(two, one, PLACES[1])
    crosses(two, one, PLACES[0], 128)
    one.use(1024, 2)
    two.use(1024, 2)
    print("worked")


def hold(path):
    asked = []
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    one, two = both(path)
    crosses(one, two, PLACES[1], 0)
    print("runs", flush=True)
    gone = False
    while True:
        if not gone and two.dead():
            gone = True
            print("the other drive is gone", flush=True)
        if not gone:
            one.do(1, 2, PLACES[1] + OFFSET, 1, (0, 0, LAST))
        one.use(1024, 1)
        if select.select([sys.stdin], [], [], 0)[0]:
            return
        if not asked:
            continue
        asked.pop()
        if not gone:
            crosses(one, two, PLACES[1], 0)
        print("on", flush=True)


if __name__ == "__main__":
    if sys.argv[2] == "work":
        work(sys.argv[1])
    else:
        hold(sys.argv[1])
