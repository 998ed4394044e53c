#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""nbdkit's smartio plugin: hosts of a cluster serve ranges of one drive to the programs of Linux."""
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "cli"))
import base  # noqa: E402

NVME = os.environ["SMARTIO_NVME"]
PLUGIN = os.environ["SMARTIO_NBD_PLUGIN"]
JOB = os.path.join(HERE, "..", "..", "..", "examples", "nbd", "shared-drive.fio")
MIB = 1 << 20


def needs(*programs):
    missing = [p for p in programs if not shutil.which(p) and not os.path.exists(f"/usr/sbin/{p}")]
    return unittest.skipIf(missing, f"{', '.join(missing)} is missing")


@needs("nbdkit")
class Nbd(base.CommandTest):
    def setUp(self):
        super().setUp()
        # The system's python3 has the modules of the system's packages, which nbdsh needs.
        self.env["PATH"] = "/usr/bin:/usr/sbin:/bin:/sbin:" + self.env["PATH"]
        self.up()
        self.manager = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0")
        self.assertIn("ready", self.manager.stdout.readline())

    def serve(self, node, *parameters):
        """The URI of a server on a host; it is there once its pid file is."""
        name = os.path.join(self.dir, f"{node}-{len(self.children)}")
        os.mkfifo(name + ".pid")
        server = self.start("run", "-n", node, "--", "nbdkit", "-f", "-U", name, "-P", name + ".pid", PLUGIN,
                            "device=nvme0", *parameters)
        self.assertTrue(self.first_words(name + ".pid", server).strip().isdigit())
        return f"nbd+unix:///?socket={name}"

    def first_words(self, fifo, server):
        """What the server writes there; one that ends, or hangs, before it does is not waited for."""
        # Open for writing, too: then there is no end of file while the server has not opened it.
        words, end = os.open(fifo, os.O_RDWR), os.pidfd_open(server.pid)
        try:
            ready = select.select([words, end], [], [], 60)[0]
            if words not in ready:
                server.kill()
                self.fail(f"no pid file of {server.args}: {''.join(server.communicate(timeout=60))}")
            return os.read(words, 64).decode("ascii")
        finally:
            os.close(words)
            os.close(end)

    def refuses(self, *parameters, say, node="client1"):
        name = os.path.join(self.dir, "none")
        done = self.smartio("run", "-n", node, "--", "nbdkit", "-f", "-U", name, PLUGIN, *parameters, status=1)
        if os.path.exists(name):
            os.unlink(name)
        self.assertIn(say, done.stderr)

    def run_there(self, *args, **more):
        done = subprocess.run(args, env=self.env, capture_output=True, text=True, timeout=120, check=False, **more)
        self.assertEqual(done.returncode, 0, f"{args}: {done.stdout}{done.stderr}")
        return done.stdout

    def blocks(self, offset, length):
        """What the drive has there, by the driver's own tool on another host."""
        out = os.path.join(self.dir, "blocks")
        self.smartio("run", "-n", "lender", "--", NVME, "copy-out", "nvme0", out, "-s", str(offset), "-l", str(length))
        with open(out, "rb") as f:
            return f.read()

    @needs("nbdsh")
    def test_requests(self):
        """Each request does what it says within the range, and nothing beside it."""
        uri = self.serve("client1", "range=1M:2M")
        path = os.path.join(self.dir, "data")
        data = random.Random(1).randbytes(300 * 1024)
        with open(path, "wb") as f:
            f.write(data)
        self.run_there("nbdsh", "-u", uri, "-c", f"""
with open({path!r}, "rb") as f:
    data = f.read()
assert h.get_size() == 2 << 20 and h.get_block_size(nbd.SIZE_MINIMUM) == 512
for can in (h.can_multi_conn, h.can_flush, h.can_fua, h.can_trim, h.can_zero):
    assert can(), can
h.pwrite(data, 4096, nbd.CMD_FLAG_FUA)
other = nbd.NBD()
other.connect_uri({uri!r})
assert bytes(other.pread(len(data), 4096)) == data
h.flush()
h.zero(8192, 8192)
h.trim(4096, 32768, nbd.CMD_FLAG_FUA)
h.zero(512, 512 * 1024 - 512, nbd.CMD_FLAG_NO_HOLE)
h.set_strict_mode(0)
for act in (lambda: h.pread(512, 2 << 20), lambda: h.pwrite(b"x" * 512, 2 << 20)):
    try:
        act()
    except nbd.Error:
        continue
    raise AssertionError("past the range")
""")
        want = bytearray(2 * MIB)
        want[4096:4096 + len(data)] = data
        want[8192:16384] = bytes(8192)
        want[32768:36864] = bytes(4096)
        self.assertTrue(self.blocks(MIB, 2 * MIB) == bytes(want))
        self.assertFalse(any(self.blocks(0, MIB)) or any(self.blocks(3 * MIB, MIB)))

    @needs("nbdcopy", "qemu-io", "qemu-img")
    def test_copies(self):
        """By many connections; two hosts have ranges side by side."""
        image = os.path.join(self.dir, "image")
        back = os.path.join(self.dir, "back")
        with open(image, "wb") as f:
            f.write(random.Random(2).randbytes(4 * MIB))
        one, two = self.serve("client1", "range=0:4M"), self.serve("client2", "range=4M:4M", "queues=2")
        self.run_there("nbdcopy", "--connections=4", image, one)
        self.run_there("nbdcopy", one, two)
        self.run_there("qemu-img", "convert", "-f", "raw", "-O", "raw", two, back)
        self.run_there("cmp", image, back)
        self.run_there("qemu-io", "-f", "raw", "-c", "write -P 7 1M 64k", "-c", "write -z 2M 64k",
                       "-c", "discard 3M 64k", "-c", "flush", "-c", "read -P 7 1M 64k", "-c", "read -P 0 2M 64k", two)
        self.assertEqual(self.blocks(5 * MIB, 65536), b"\7" * 65536)
        with open(image, "rb") as f:
            self.assertTrue(self.blocks(0, 4 * MIB) == f.read())

    @needs("nbdcopy", "mke2fs", "e2fsck", "debugfs")
    def test_file_system(self):
        """Made and filled on one host's range, read and checked on another's."""
        image = os.path.join(self.dir, "ext4")
        folder = os.path.join(self.dir, "files")
        os.makedirs(os.path.join(folder, "below"))
        files = {f"below/{i}": random.Random(i).randbytes(1000 * i) for i in range(1, 40)}
        for name, data in files.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        self.run_there("mke2fs", "-q", "-t", "ext4", "-d", folder, image, "8M")
        self.run_there("nbdcopy", "--flush", image, self.serve("client1", "range=8M:8M"))
        self.run_there("nbdcopy", self.serve("lender", "range=8M:8M"), image)
        self.run_there("e2fsck", "-f", "-n", image)
        self.run_there("debugfs", "-R", f"rdump below {self.dir}", image)
        for name, data in files.items():
            with open(os.path.join(self.dir, name), "rb") as f:
                self.assertTrue(f.read() == data, name)

    @needs("fio")
    def test_fio_job(self):
        """The job file of the examples, as it is; fio checks what it wrote."""
        if "nbd" not in self.run_there("fio", "--enghelp").split():
            self.skipTest("this fio has no nbd engine")
        uri = self.serve("client1", "range=0:8M")
        self.env.update(SOCKET=uri.split("=")[1], SIZE="1m")
        self.assertIn("err= 0", self.run_there("fio", JOB, cwd=self.dir))

    @needs("nbdsh")
    def test_more_servers_than_pairs(self):
        """
        Nine servers of four queues each share 31 pairs; one is killed, and the others go on. Their leases say that
        their blocks are theirs alone: only then is a write sent again that was under way when the pair ended.
        """
        uris = [self.serve("client1", "share=yes", "timeout=60000", f"range={i}M:1M", f"lease=server{i}") for i in range(9)]
        write = "h.pwrite(bytes([{0}]) * 4096, {1})\nassert bytes(h.pread(4096, {1})) == bytes([{0}]) * 4096\n"
        for i, uri in enumerate(uris):
            self.run_there("nbdsh", "-u", uri, "-c", write.format(i + 1, 0))
        self.assertIn("31 of 31", self.smartio("run", "-n", "client2", "--", NVME, "queues", "nvme0").stdout)
        self.children[-1].kill()
        self.children[-1].wait(60)
        for i, uri in enumerate(uris[:-1]):
            self.run_there("nbdsh", "-u", uri, "-c", write.format(i + 10, 8192))
        out = os.path.join(self.dir, "blocks")
        for i in range(8):
            self.smartio("run", "-n", "client1", "--", NVME, "copy-out", "nvme0", out, "--share", "-s", f"{i}M", "-l", "12K")
            with open(out, "rb") as f:
                self.assertEqual(f.read()[::4096], bytes([i + 1, 0, i + 10]))

    @needs("nbdsh")
    def test_another_manager(self):
        """A reset of the drive: who reads meanwhile waits for the manager that comes, and writes go on after it."""
        uri = self.serve("client1", "queues=1", "wait=60")
        code = ("h.pwrite(b'x' * 512, 0)\nprint('written', flush=True)\ninput()\n"
                "assert bytes(h.pread(512, 0)) == b'x' * 512\nh.pwrite(b'y' * 512, 512)\n")
        with subprocess.Popen(["nbdsh", "-u", uri, "-c", code], env=self.env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as client:
            self.assertEqual(client.stdout.readline(), "written\n")
            self.manager.send_signal(signal.SIGKILL)
            self.manager.wait(60)
            client.stdin.write("\n")
            client.stdin.flush()
            again = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0")
            self.assertIn("ready", again.stdout.readline())
            client.communicate(timeout=60)
            self.assertEqual(client.returncode, 0)
        self.assertEqual(self.blocks(0, 1024), b"x" * 512 + b"y" * 512)

    @needs("nbdsh")
    def test_many_wait_as_long_as_one(self):
        """A request of a lost drive waits, and ends with an error; those that wait with it end then, too."""
        uri = self.serve("client1", "queues=2", "wait=1")
        code = ("import time\n"
                "def ask(n):\n"
                "    begun, errors = time.monotonic(), 0\n"
                "    buffers = [nbd.Buffer(512) for _ in range(n)]\n"
                "    asked = [h.aio_pread(b, 0) for b in buffers]\n"
                "    while h.aio_in_flight():\n"
                "        h.poll(-1)\n"
                "    for one in asked:\n"
                "        try:\n"
                "            h.aio_command_completed(one)\n"
                "        except nbd.Error:\n"
                "            errors += 1\n"
                "    assert errors == n, errors\n"
                "    return time.monotonic() - begun\n"
                "h.pread(512, 0)\nprint('read', flush=True)\ninput()\nask(1)\nprint(ask(1), ask(32), flush=True)\n"
                "input()\nh.pread(512, 0)\n")
        with subprocess.Popen(["nbdsh", "-u", uri, "-c", code], env=self.env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as client:
            self.assertEqual(client.stdout.readline(), "read\n")
            self.smartio("fault", "link", "client1", "down")
            client.stdin.write("\n")
            client.stdin.flush()
            one, many = (float(word) for word in client.stdout.readline().split())
            # In nbdkit's 16 threads they are two generations; each by itself they took 32 times as long.
            self.assertLess(many, 10 * one)
            self.smartio("fault", "link", "client1", "up")
            client.stdin.write("\n")
            client.stdin.flush()
            client.communicate(timeout=60)
            self.assertEqual(client.returncode, 0)

    def lost_and_found(self, read, lose, find):
        """A client writes an x, and reads when @lose has taken its drive away, until @find brings it back; then it
        gets what @read asserts, and goes on. One that does not wait gets errors meanwhile, and has its drive then.
        """
        uri = self.serve("client1", "queues=2", "wait=60")
        short = self.serve("client1", "queues=1", "wait=0")
        code = (f"h.pwrite(b'x' * 512, 0)\nprint('written', flush=True)\ninput()\nassert bytes(h.pread(512, 0)) == "
                f"{read} * 512\nh.pwrite(b'y' * 512, 512)\nassert bytes(h.pread(512, 512)) == b'y' * 512\n")
        with subprocess.Popen(["nbdsh", "-u", uri, "-c", code], env=self.env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as client:
            self.assertEqual(client.stdout.readline(), "written\n")
            self.run_there("nbdsh", "-u", short, "-c", "h.pread(512, 0)")  # its pid file is older than its drive
            lose()
            done = subprocess.run(["nbdsh", "-u", short, "-c", "h.pread(512, 0)"], env=self.env, capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("Input/output error", done.stderr)
            client.stdin.write("\n")
            client.stdin.flush()
            find()
            client.communicate(timeout=60)
            self.assertEqual(client.returncode, 0)
        self.assertEqual(self.blocks(512, 512), b"y" * 512)
        self.run_there("nbdsh", "-u", short, "-c", "assert bytes(h.pread(512, 512)) == b'y' * 512")

    def test_a_link_comes_back(self):
        self.lost_and_found("b'x'", lambda: self.smartio("fault", "link", "client1", "down"),
                            lambda: self.smartio("fault", "link", "client1", "up"))

    def test_the_lender_comes_back(self):
        """And its drive, whose medium goes with its host here."""
        def lose():
            self.crash(os.path.join(self.base, "test"), self.node("lender"))
            self.manager.wait(60)

        def find():
            self.smartio("cluster", "restart-node", "lender")
            again = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0")
            self.assertIn("ready", again.stdout.readline())
        self.lost_and_found(r"b'\0'", lose, find)

    def test_a_lease_is_not_taken_anew(self):
        uri = self.serve("client1", "range=1M:1M", "lease=one", "queues=1", "wait=60")
        self.run_there("nbdsh", "-u", uri, "-c", "h.pread(512, 0)")
        self.smartio("fault", "link", "client1", "down")
        self.smartio("fault", "link", "client1", "up")
        for _ in range(2):
            done = subprocess.run(["nbdsh", "-u", uri, "-c", "h.pread(512, 0)"], env=self.env, capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertIn("Input/output error", done.stderr)

    @needs("nbdcopy")
    def test_leases(self):
        """Two hosts' ranges cannot overlap by mistake; the lease of one that is killed is free."""
        image = os.path.join(self.dir, "image")
        with open(image, "wb") as f:
            f.write(random.Random(3).randbytes(MIB))
        self.run_there("nbdcopy", image, self.serve("client1", "range=4M:1M", "lease=one"))
        self.assertRegex(self.smartio("run", "-n", "lender", "--", NVME, "leases", "nvme0").stdout,
                         r"^one +namespace 1, blocks 8192 \+ 2048, node 8 +nbdkit\n$")
        self.refuses("device=nvme0", "range=5119K:1M", "lease=two", node="client2",
                     say="the range is taken: lease one of node 8 (nbdkit) has blocks 8192 + 2048")
        self.refuses("device=nvme0", "range=8M:1M", "lease=one", node="client2", say="the name is taken")
        with open(image, "rb") as f:
            self.assertTrue(self.blocks(4 * MIB, MIB) == f.read())
        server = next(pid for pid, words in base.processes_with("XDG_RUNTIME_DIR", self.dir)
                      if words.startswith("nbdkit") and "lease=one" in words)
        os.kill(server, signal.SIGKILL)
        base.wait_gone(server)
        # The lender's daemon tells the manager; nobody tells us.
        while self.smartio("run", "-n", "lender", "--", NVME, "leases", "nvme0").stdout != "nobody has a lease\n":
            os.sched_yield()
        self.serve("client2", "range=4M:1M", "lease=two")

    def test_refuses(self):
        self.refuses("range=1M:1M", say="device=NAME is missing")
        for wrong in ("1M", "x:1M", "1M:0", ":"):
            self.refuses("device=nvme0", f"range={wrong}", say=f"range={wrong}: OFFSET:BYTES is wanted")
        self.refuses("device=nvme0", "range=100:512", say="not multiples of the block size, 512")
        self.refuses("device=nvme0", "range=15M:2M", say="namespace 1 of nvme0 ends at 16777216")
        self.refuses("device=nvme0", "queues=65", say="1 to 64 are possible")
        self.refuses("device=nvme0", "wait=4294968", say="0 to 4294967 seconds are possible")
        self.refuses("device=nvme0", "namespace=2", say="there is no index 1")
        self.refuses("device=nvme9", say="nvme9")
        self.refuses("nvme0", "depth=3", say="there is no parameter depth")
        done = subprocess.run(["nbdkit", "-f", "-U", os.path.join(self.dir, "none"), PLUGIN, "nvme0"], env=self.env,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no connection to this host's smartiod", done.stderr)


if __name__ == "__main__":
    base.main()
