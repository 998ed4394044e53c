#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio-emu as a program: its command line, its state directory, its sockets, its end."""
import errno
import fcntl
import os
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

EMU = sys.argv.pop(1)
TOPOLOGY = """cluster: live
hosts:
  one: { ram: 16M, adapters: [{ to: two }] }
  two: { ram: 16M, adapters: [{ to: one }] }
"""
INFO, OWNER_NEW, ALLOC, STATUS = 1, 2, 6, 31
EV_LINK, EV_OWNER_GONE, EV_OWNER_END = 0x10001, 0x10005, 0x10006
ANY = 2**64 - 1


class Port:
    """One host's daemon, as far as the room can see."""

    def __init__(self, directory, node):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(60)
        self.sock.connect(f"{directory}/port.{node}")
        self.cookie = 0

    def send(self, op, body=b"", owner=0):
        self.cookie += 1
        self.sock.send(struct.pack("=IIIIQQ", 32 + len(body), op, 0, 0, self.cookie, owner) + body)

    def event(self):
        data, fds, _, _ = socket.recv_fds(self.sock, 4096, 4)
        if not data:
            return None
        _, op, _, error, cookie, owner = struct.unpack_from("=IIIiQQ", data)
        return op, error, cookie, owner, data[32:], fds

    def ask(self, op, body=b"", owner=0):
        self.send(op, body, owner)
        while True:
            event = self.event()
            if event[2] == self.cookie:
                assert event[1] == 0, event
                return event[4], event[5]

    def wait(self, op):
        while True:
            event = self.event()
            if event[0] == op:
                return event

    def alloc(self, size):
        body, fds = self.ask(ALLOC, struct.pack("=QQQQIIQ", size, 0, ANY, 0, 0, 3, 0))
        return body, fds[0]


class Live(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="smartio-emu-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.topology = f"{self.dir}/topology.yaml"
        with open(self.topology, "w", encoding="ascii") as f:
            f.write(TOPOLOGY)
        self.state = f"{self.dir}/state"
        os.mkdir(self.state, 0o700)

    def start(self, **more):
        r, w = os.pipe()
        room = subprocess.Popen([EMU, "--topology", self.topology, "--state", self.state,
                                 "--ready-fd", str(w)], pass_fds=[w], stderr=subprocess.PIPE,
                                **more)
        os.close(w)
        self.addCleanup(room.stderr.close)
        self.addCleanup(room.wait)
        self.addCleanup(room.kill)
        with os.fdopen(r, "rb") as ready:
            self.assertEqual(ready.read(), b"ready\n")
        return room

    def port(self, node):
        port = Port(self.state, node)
        self.addCleanup(port.sock.close)
        return port

    def end(self, room, sig=signal.SIGTERM):
        room.send_signal(sig)
        self.assertEqual(room.wait(10), 0)
        self.assertEqual(os.listdir(self.state), [])

    def refuse(self, args, status, text):
        got = subprocess.run([EMU] + args, capture_output=True, text=True, timeout=60)
        self.assertEqual(got.returncode, status, got)
        self.assertIn(text, got.stderr)
        return got.stderr

    def test_command_line(self):
        self.refuse([], 2, "--topology is missing")
        self.refuse(["--topology", self.topology], 2, "--state is missing")
        self.refuse(["--topology", self.topology, "--state", self.state, "more"], 2, "'more'")
        self.refuse(["--nonsense"], 2, "try 'smartio-emu --help'")
        self.refuse(["--topology", self.topology, "--state", self.state, "--ready-fd", "x"], 2,
                    "--ready-fd 'x'")
        for spin in ("", "x", "20:10", "-1", "100001"):
            self.refuse(["--topology", self.topology, "--state", self.state, "--spin-us", spin], 2,
                        f"--spin-us '{spin}': MIN or MIN:MAX")
        for option in ("--help", "--version"):
            self.assertEqual(subprocess.run([EMU, option], capture_output=True).returncode, 0)

    def test_spin_by_environment(self):
        with unittest.mock.patch.dict(os.environ, SMARTIO_SPIN_US="never"):
            self.refuse(["--topology", self.topology, "--state", self.state], 2,
                        "SMARTIO_SPIN_US 'never'")
        with unittest.mock.patch.dict(os.environ, SMARTIO_SPIN_US="0:50"):
            self.end(self.start())

    def test_start_errors_are_one_line(self):
        for args, text in (
                (["--topology", "/nonexistent.yaml", "--state", self.state], "/nonexistent.yaml"),
                (["--topology", self.topology, "--state", "/nonexistent"], "/nonexistent"),
                (["--topology", self.topology, "--state", "/" + "x" * 200], "107")):
            self.assertEqual(self.refuse(args, 1, text).count("\n"), 1)
        self.assertEqual(os.listdir(self.state), [])

    def test_one_room_per_directory(self):
        room = self.start()
        text = self.refuse(["--topology", self.topology, "--state", self.state], 1,
                           "runs here already")
        self.assertIn(str(room.pid), text)
        self.port(4).ask(INFO, struct.pack("=II", 1, 99))
        self.end(room, signal.SIGINT)

    def test_sockets_are_the_users_own(self):
        room = self.start()
        for node in (4, 8):
            mode = os.stat(f"{self.state}/port.{node}").st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.end(room)

    def test_stale_directory_is_taken_over(self):
        room = self.start()
        room.kill()
        room.wait()
        self.assertIn("port.4", os.listdir(self.state))
        room = self.start()
        self.port(8).ask(INFO, struct.pack("=II", 1, 99))
        self.end(room)

    def test_a_host_leaves_descriptors_to_the_others(self):
        room = self.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
        greedy, modest = self.port(4), self.port(8)
        held = [greedy.alloc(4096)]
        while True:
            greedy.send(ALLOC, struct.pack("=QQQQIIQ", 4096, 0, ANY, 0, 0, 3, 0))
            event = greedy.event()
            if event[1]:
                break
            held.append(event)
        self.assertEqual(event[1], -errno.EMFILE)
        self.assertIn(f"one holds {len(held)} of its share of {len(held)} descriptors".encode(),
                      event[4])
        self.assertGreater(len(held), 60)
        self.assertLess(len(held), 128)
        for _ in held:
            modest.alloc(4096)
        self.end(room)

    def test_connection_is_the_power(self):
        room = self.start()
        one, two = self.port(4), self.port(8)
        self.assertEqual(struct.unpack_from("=IIII", one.wait(EV_LINK)[4])[3], 1)
        one.alloc(4096)
        boot = one.ask(INFO, struct.pack("=II", 1, 99))[0]
        second = self.port(4)
        self.assertIsNone(second.event())  # turned away
        one.sock.close()
        two.wait(EV_LINK)
        self.assertEqual(struct.unpack_from("=IIII", two.wait(EV_LINK)[4])[3], 0)
        one = self.port(4)
        again = one.ask(INFO, struct.pack("=II", 1, 99))[0]
        self.assertEqual(struct.unpack_from("=Q", again, 16)[0],
                         struct.unpack_from("=Q", boot, 16)[0] + 1)
        self.assertNotEqual(again[24:40], boot[24:40])
        self.assertEqual(again[48:56], again[56:64])  # all RAM is free
        self.end(room)

    def test_the_next_daemon_is_not_turned_away_for_what_the_last_one_asked(self):
        room = self.start()
        for _ in range(3):
            one = self.port(4)
            one.ask(INFO, struct.pack("=II", 1, 99))
            room.send_signal(signal.SIGSTOP)
            for _ in range(10):
                one.send(INFO, struct.pack("=II", 1, 99))
            one.sock.close()
            one = self.port(4)
            room.send_signal(signal.SIGCONT)
            one.ask(INFO, struct.pack("=II", 1, 99))
            one.sock.close()
        self.end(room)

    def test_owner_lives_as_long_as_its_descriptor(self):
        room = self.start()
        one = self.port(4)
        body, fds = one.ask(OWNER_NEW, struct.pack("=QII", 7, os.getpid(), 0))
        owner = struct.unpack("=Q", body)[0]
        copy = os.dup(fds[0])
        os.close(fds[0])
        os.write(copy, b"noise")  # nobody listens
        one.ask(ALLOC, struct.pack("=QQQQIIQ", 4096, 0, ANY, 0, 0, 3, 0), owner)
        self.assertEqual(select.select([one.sock], [], [], 0.05)[0], [])
        os.close(copy)
        self.assertEqual(one.wait(EV_OWNER_GONE)[3], owner)
        self.assertEqual(one.wait(EV_OWNER_END)[3], owner)
        self.end(room)

    def test_memory_is_sealed(self):
        room = self.start()
        one = self.port(4)
        _, mem = one.alloc(8192)
        _, fds = one.ask(STATUS)
        self.assertEqual(os.fstat(mem).st_size, 8192)
        for size in (4096, 16384):
            with self.assertRaises(PermissionError):
                os.ftruncate(mem, size)
        for fd in (mem, fds[0]):
            with self.assertRaises(PermissionError):  # nobody can seal it further
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        os.pwrite(mem, b"x", 0)
        for flags in (os.O_RDWR, os.O_WRONLY):
            status = os.open(f"/proc/self/fd/{fds[0]}", flags)
            with self.assertRaises(PermissionError):
                os.pwrite(status, b"x", 0)
            os.close(status)
        self.end(room)

    def test_daemon_that_does_not_read_is_cut_off(self):
        room = self.start()
        lazy, other = self.port(4), self.port(8)
        lazy.sock.settimeout(60)
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            for _ in range(100000):
                lazy.send(INFO, struct.pack("=II", 1, 99))
        other.ask(INFO, struct.pack("=II", 1, 99))  # nobody else noticed
        self.end(room)
        self.assertIn(b"does not read its events", room.stderr.read())

    def test_idle_room_sleeps(self):
        room = self.start()
        self.port(4).ask(INFO, struct.pack("=II", 1, 99))

        def switches():
            with open(f"/proc/{room.pid}/status", encoding="ascii") as f:
                return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
        before = switches()
        time.sleep(0.2)
        self.assertLessEqual(switches() - before, 2)  # no device is watched: no timer at all
        self.end(room)


unittest.main(verbosity=1)
