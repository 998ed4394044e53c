#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Starts a command that finds no io_uring, as on a kernel without it.

usage: no_io_uring.py COMMAND [ARGUMENT...]

QEMU 11.1 may wait for ever when it waits for one request of a drive while it handles another event (its NVMe drive ends
the commands of a queue that is deleted): with io_uring the event that ends the request may have been taken already.
Without it QEMU waits by epoll, which reports that event again.
"""
import ctypes
import errno
import os
import platform
import sys

SETUP = 425  # io_uring_setup, on all architectures of this century
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06  # of the classic packet filter
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000
NUMBER_AT, ARCHITECTURE_AT = 0, 4  # in struct seccomp_data
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction))]


def refuse(architecture):
    code = (Instruction * 6)(
        (LOAD_WORD, 0, 0, ARCHITECTURE_AT), (JUMP_EQUAL, 0, 3, architecture), (LOAD_WORD, 0, 0, NUMBER_AT),
        (JUMP_EQUAL, 0, 1, SETUP), (RETURN, 0, 0, RET_ERRNO | errno.ENOSYS), (RETURN, 0, 0, RET_ALLOW))
    program = Program(len(code), code)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    if prctl(PR_SET_NO_NEW_PRIVS, 1, None, 0, 0) or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                                                          ctypes.addressof(program), 0, 0):
        # It is started as it is: most never meet what this is for.
        print(f"no_io_uring.py: no filter: {os.strerror(ctypes.get_errno())}", file=sys.stderr)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("--help", "-h"):
        print(__doc__.strip())
        sys.exit(len(sys.argv) < 2)
    if platform.machine() in ARCHITECTURE:
        refuse(ARCHITECTURE[platform.machine()])
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as e:
        sys.exit(f"no_io_uring.py: {sys.argv[1]}: {e.strerror}")


if __name__ == "__main__":
    main()
