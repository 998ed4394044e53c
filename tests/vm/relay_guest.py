# SPDX-License-Identifier: BSD-2-Clause
"""In a machine of passthrough.py: the virtual machine that a relay there gives another machine's drive to.

usage: relay_guest.py SOCKET work [WORDS...] | hold
work: what a driver does, and what a hostile one would. WORDS are a command that tells what must not change while it
does I/O. hold: I/O until the relay or the drive is gone, which it says. After SIGUSR1 it plugs memory in and out, does
I/O with it, and says "on".
"""
import os
import random
import select
import signal
import sys

import initiator
from initiator import CC, CONFIG, RAM, RESET
from mapped_drive import BACK, BYTES, DATA, MappedDrive

# Each page is a range of this machine's IOMMU, and a virtual NTB takes 1,024 of them.
RAM_BYTES = initiator.RAM_BYTES = 1 << 20

STRAY = 60  # addresses that are not the machine's


def told(words):
    """What a command says."""
    ours, theirs = os.pipe()
    child = os.posix_spawnp(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
    os.close(theirs)
    with os.fdopen(ours) as f:
        text = f.read()
    assert os.waitpid(child, 0)[1] == 0, words
    return text


def stray(m):
    """The drive is sent where nothing of the machine's is. What was not its own stays as it was."""
    before = bytes(m.ram[0x40000:])
    for n in range(STRAY):
        at = RAM
        while RAM - BYTES < at < RAM + RAM_BYTES or at >> 20 == 0xfee:
            at = random.getrandbits(random.choice((30, 32, 36, 38))) & ~0xfff
        m.do(0, 6, at, 0, (1,))  # Identify
        m.do(1, 2, at, 1, (4096, 0, 7))
        if m.do(1, 1, at, 1, (4096 + 8 * n, 0, 7)):
            continue  # it says that it could not read
        # What it took for the contents of that address: nothing of anybody's memory.
        assert m.do(1, 2, RAM + BACK, 1, (4096 + 8 * n, 0, 7)) == 0
        got = m.ram[BACK:BACK + 4096]
        assert got in (bytes(4096), b"\xff" * 4096), f"at {at:#x} it has read {got[:64].hex()}"
    assert bytes(m.ram[0x40000:]) == before, "the drive wrote to pages that it was not sent to"


def start(m):
    m.start()
    assert m.do(0, 6, RAM + 0x10000, 0, (1,)) == 0
    assert m.ram[0x10004:0x10018] == b"SIO0".ljust(20), m.ram[0x10004:0x10018]


def work(path, words):
    m = MappedDrive(path)
    assert m.read(9, 3, CONFIG) == b"\x02\x08\x01", "no drive"
    start(m)
    before, sent = words and told(words), len(m.sent)
    m.use(0, 50)
    assert len(m.sent) == sent, "a message of the machine's while it works"
    after = words and told(words)
    assert after == before, f"{before} before, {after} after"
    stray(m)
    m.use(0, 2)
    # It starts again: the drive is reset, its doorbells still lead to it.
    m.ask(RESET)
    assert m.read32(CC) == 0, "it was not reset"
    start(m)
    m.use(1024)
    # What is unplugged is out of reach, and what is plugged in is not.
    m.map(RAM + (1 << 30), RAM_BYTES, [m.ram_fd])
    assert m.do(1, 2, RAM + (1 << 30) + 0x50000, 1, (1024, 0, 15)) == 0
    assert m.ram[0x50000:0x50000 + BYTES] == m.ram[DATA:DATA + BYTES]
    m.unmap(RAM + (1 << 30), RAM_BYTES)
    m.ram[0x50000:0x50000 + BYTES] = bytes(BYTES)
    m.do(1, 2, RAM + (1 << 30) + 0x50000, 1, (1024, 0, 15))
    assert m.ram[0x50000:0x50000 + BYTES] == bytes(BYTES), "it reaches what was unplugged"
    m.use(0, 2)
    print("worked")


def go_on(m):
    """By the relay and the daemons: what is plugged in now is reached."""
    m.map(RAM + (1 << 30), RAM_BYTES, [m.ram_fd])
    assert m.do(1, 2, RAM + (1 << 30) + 0x50000, 1, (0, 0, 15)) == 0
    assert m.ram[0x50000:0x50000 + BYTES] == m.ram[DATA:DATA + BYTES]
    m.unmap(RAM + (1 << 30), RAM_BYTES)
    m.ram[0x50000:0x50000 + BYTES] = bytes(BYTES)
    print("on", flush=True)


def hold(path):
    asked = []
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    m = MappedDrive(path)
    start(m)
    m.ram[DATA:DATA + BYTES] = os.urandom(BYTES)
    print("runs", flush=True)
    while True:
        m.submit(1, 1, RAM + DATA, 1, (0, 0, 15))
        ready = []
        while m.irq[1] not in ready:
            ready = select.select([m.irq[1], m.sock], [], [], 1)[0]
            if m.sock in ready:
                try:
                    m.read32(CC)
                except (EOFError, ConnectionError):
                    print("the relay is gone")
                    return
            if not ready and m.dead():
                print("the drive is gone", flush=True)
                sys.stdin.read()
                return
        os.eventfd_read(m.irq[1])
        assert m.completed(1) == 0
        if asked:
            asked.pop()
            go_on(m)


if __name__ == "__main__":
    if sys.argv[2] == "work":
        work(sys.argv[1], sys.argv[3:])
    else:
        hold(sys.argv[1])
