#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Daemons that speak TLS over TCP: what programs have over it, and those who are no daemons.

usage: tls_test.py BUILD

An emulated cluster of four hosts with addresses of 127.0.0.1. Strangers are sockets of this program,
with keys that smartio cluster keys makes.
"""
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster  # noqa: E402

BUILD = None
HOSTS = {"lender": 4, "manager": 8, "client": 12, "spare": 16}
DEVICES = "devices: {nvme0: {type: nvme, size: 256M}}"
MAGIC = 0x72656570


def free_ports(n):
    """Ports of 127.0.0.1 that nobody has at this moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def frame(data, length=None, reserved=0):
    return struct.pack("<II", len(data) if length is None else length, reserved) + data


def hello(of, to="lender"):
    return frame(struct.pack("<IIII32x", MAGIC, 1, HOSTS[of], HOSTS[to]))


def until_end(s):
    """Wait until the other end has hung up."""
    try:
        while s.recv(65536):
            pass
    except OSError:
        pass
    s.close()


class Tls(unittest.TestCase):
    def setUp(self):
        self.port = dict(zip(HOSTS, free_ports(len(HOSTS))))
        hosts = "".join(f"  {name}: {{ram: 64M, address: '127.0.0.1:{port}'"
                        f"{', ' + DEVICES if name == 'lender' else ''}}}\n"
                        for name, port in self.port.items())
        self.c = Cluster(BUILD, f"cluster: lab\nhosts:\n{hosts}")
        self.c.__enter__()
        self.addCleanup(self.c.__exit__)
        self.keys = os.path.join(self.c.state, "keys")

    # ---- what there is to see ----

    def log(self, host="lender"):
        path = os.path.join(self.c.state, f"smartiod.{HOSTS[host]}.log")
        with open(path, encoding="utf-8") as f:
            return f.read()

    def logged(self, text, host="lender", times=1):
        """The daemon has said it; each look is a round through its loop."""
        for _ in range(400):
            if self.log(host).count(text) >= times:
                return
            self.c.smartio("node", "list", check=False)
        self.fail(f"smartiod of {host} did not log {text!r} {times} times:\n{self.log(host)}")

    def connections(self):
        """Established TCP connections between daemons, each seen from the end that accepted."""
        with open("/proc/net/tcp", encoding="ascii") as f:
            rows = [line.split() for line in f.readlines()[1:]]
        ports = {f"0100007F:{p:04X}" for p in self.port.values()}
        return sum(r[1] in ports and r[3] == "01" for r in rows)

    def busy(self):
        self.c.manager()
        child = self.c.start("client", os.path.join(BUILD, "tests", "system", "verify"), "nvme0",
                             "0", "1024", stdin=subprocess.PIPE)
        self.assertIn("running", child.stdout.readline())
        return child

    def is_well(self, child):
        self.assertIsNone(child.poll(), "the client ended")
        self.assertIn("rounds", self.c.finish(child))

    def pingpong(self):
        program = os.path.join(BUILD, "examples", "example-pingpong")
        first = self.c.start("manager", program, str(HOSTS["client"]), "first", "1000")
        second = self.c.start("client", program, str(HOSTS["manager"]), "second", "1000")
        self.c.finish(second)
        self.c.finish(first)

    def everybody_answers(self):
        """The probe of restart-node: every host answers every other one."""
        self.c.crash("spare")
        self.c.smartio("cluster", "restart-node", "spare")

    # ---- strangers ----

    def make_keys(self, *args, folder=None, check=True):
        """smartio cluster keys, of this cluster's file."""
        done = subprocess.run([self.c.smartio_path, "cluster", "keys", *args, self.c.file,
                               folder or self.keys], capture_output=True, text=True, timeout=60)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def connect(self, keys=None, host=None, version=ssl.TLSVersion.TLSv1_3, source="127.0.0.1"):
        """A TLS client at lender's daemon, with the keys of @host."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        if keys:
            context.load_cert_chain(f"{keys}/{host}.pem", f"{keys}/{host}.key")
        plain = self.plain(source)
        return context.wrap_socket(plain)

    def half_handshake(self, host):
        """All but the last flight of it; the answer sends that, and data, and waits for the end."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(f"{self.keys}/{host}.pem", f"{self.keys}/{host}.key")
        come, go, s = ssl.MemoryBIO(), ssl.MemoryBIO(), self.plain()
        tls = context.wrap_bio(come, go)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                s.sendall(go.read())
                come.write(s.recv(65536))

        def rest(data):
            tls.write(data)
            try:
                s.sendall(go.read())
            except OSError:
                pass  # cut off already
            until_end(s)
        return rest

    def plain(self, source="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", self.port["lender"]), timeout=60,
                                        source_address=(source, 0))

    # ---- tests ----

    def test_all_that_a_cluster_does(self):
        self.assertEqual([n for n in os.listdir(self.c.state) if n.startswith("peer.")], [])
        with open("/proc/net/unix", encoding="ascii") as f:
            self.assertNotIn(f"{self.c.state}/peer.", f.read())
        self.assertEqual(self.connections(), 6)
        before = self.c.audit()
        self.pingpong()
        busy = self.busy()
        # A link that is pulled ends what is lent over it; the connections of the daemons stay.
        self.c.smartio("fault", "link", "spare", "down")
        self.assertEqual(self.connections(), 6)
        self.c.smartio("fault", "link", "spare", "up")
        self.assertIsNone(busy.poll(), "the client ended by another host's link")
        self.c.smartio("fault", "link", "client", "down")
        code, _, err = self.c.end_by_itself(busy)
        self.assertEqual(code, 1)
        self.assertIn("nvme0", err)
        self.assertEqual(self.connections(), 6)
        self.c.smartio("fault", "link", "client", "up")
        self.pingpong()
        for child in list(self.c.children):
            child.send_signal(signal.SIGTERM)
            self.c.finish(child)
        self.c.audit_until(before)
        # A daemon is killed under I/O of others, and comes again.
        busy = self.busy()
        self.everybody_answers()
        self.assertEqual(self.connections(), 6)
        self.is_well(busy)
        self.pingpong()

    def test_strangers(self):
        busy = self.busy()
        other = os.path.join(self.c.dir, "other")
        self.make_keys(folder=other)
        cases = [
            (lambda: self.connect(), "it shows no certificate"),
            (lambda: self.connect(other, "manager"), "not by the CA of cluster 'lab'"),
            (lambda: self.connect(self.keys, "manager", ssl.TLSVersion.TLSv1_2),
             "no handshake of TLS 1.3"),
        ]
        for attack, want in cases:
            with self.subTest(want=want):
                try:
                    until_end(attack())
                except OSError:
                    pass  # refused within its own handshake
                self.logged(want)
        # The certificate of another host: it may not choose which node it is.
        s = self.connect(self.keys, "spare")
        s.sendall(hello("manager"))
        until_end(s)
        self.logged("it says that it is host 'manager', and its certificate that it is 'spare'")
        # No daemon at all.
        for garbage in (os.urandom(600), bytes(600), b"GET / HTTP/1.1\r\n\r\n"):
            before = self.log().count(": cut off")
            s = self.plain()
            s.sendall(garbage)
            until_end(s)
            self.logged(": cut off", times=before + 1)
        self.logged("no handshake of TLS 1.3: ", times=2)
        # Half a handshake, then silence.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        out = ssl.MemoryBIO()
        tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="lender")
        with self.assertRaises(ssl.SSLWantReadError):
            tls.do_handshake()
        s = self.plain()
        s.sendall(out.read()[:100])
        until_end(s)
        self.logged("peer 127.0.0.1: connected, but did not say which node: cut off")
        # Somebody who has the keys of a host can harm that host alone.
        for data, want in ((frame(b"x", length=8193), "a message of 8193 bytes; 1 to 8192 is right"),
                           (frame(b"x" * 16, reserved=1), "reserved word 0x1; 0 is right"),
                           (frame(b"x" * 16), "smartiod of spare is cut off")):
            s = self.connect(self.keys, "spare")
            s.sendall(hello("spare") + data)
            until_end(s)
            self.logged(want)
        self.is_well(busy)
        self.everybody_answers()

    def test_who_connects_without_end_keeps_himself_out(self):
        busy = self.busy()
        silent = [self.plain("127.0.0.2") for _ in range(300)]
        self.everybody_answers()
        self.assertIn("peer 127.0.0.2: 128 are connected and did not say which node", self.log())
        self.is_well(busy)
        for s in silent:
            s.close()

    def test_another_cluster_file_is_told(self):
        for host in ("lender", "spare"):
            self.assertNotIn("another cluster file", self.log(host))
        with open(os.path.join(self.c.state, "topology.yaml"), "a", encoding="ascii") as f:
            f.write("# changed on one host\n")
        self.everybody_answers()
        self.logged("node 16 has another cluster file than this host (sha256 ")
        self.logged("node 4 has another cluster file than this host (sha256 ", host="spare")
        self.assertNotIn("node 8 has another cluster file", self.log("lender"))

    def test_keys_are_renewed_and_revoked_under_io(self):
        busy = self.busy()
        self.assertEqual(os.stat(f"{self.keys}/spare.key").st_mode & 0o7777, 0o600)
        self.assertEqual(os.stat(f"{self.keys}/ca.key").st_mode & 0o7777, 0o600)
        done = self.make_keys(check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is there already and is not overwritten", done.stderr)
        self.make_keys("--renew", "client")
        self.logged("keys read anew", host="client")
        half = self.half_handshake("spare")
        self.make_keys("--revoke", "spare")
        self.logged("peer node 16: its certificate was revoked: cut off")
        self.logged("spare is down")
        # It learns of it, too, and who else was revoked is news for it all the same.
        self.logged("spare.pem: its certificate was revoked: other hosts refuse it; mend: smartio cluster keys "
                    "--renew spare", host="spare")
        # Who was in the middle of his handshake then is refused, too; a slow machine cut him off before.
        up = self.log().count("spare is up")
        half(hello("spare"))
        self.assertRegex(self.log(), "its certificate was revoked: refused|did not say which node: cut off")
        self.assertEqual(self.log().count("spare is up"), up)
        done = self.make_keys("--revoke", "spare", check=False)
        self.assertIn("has no certificate that is not revoked already", done.stderr)
        self.assertIsNone(busy.poll(), "the client ended")
        # Revoked for good; with a new key it is a host again.
        before = self.log().count("spare is up")
        self.make_keys("--renew", "spare")
        self.logged("spare is up", times=before + 1)
        self.everybody_answers()
        self.is_well(busy)
        # Another cluster's list of revoked certificates would revoke nobody here.
        other = os.path.join(self.c.dir, "other")
        self.make_keys(folder=other)
        with open(f"{self.keys}/crl.pem", "rb") as f:
            own = f.read()
        shutil.copy(f"{other}/crl.pem", self.keys)
        self.logged(f"{self.keys}/crl.pem: is not by the CA in {self.keys}/ca.pem")
        with open(f"{self.keys}/crl.pem", "wb") as f:
            f.write(own)
        # A key that others may read is none.
        os.chmod(f"{self.keys}/spare.key", 0o644)
        self.c.crash("spare")
        with self.assertRaisesRegex(AssertionError, "mode 0644, so others may read"):
            self.c.smartio("cluster", "restart-node", "spare")


class Start(unittest.TestCase):
    """Daemons that cannot start say what is wrong, and what would be right."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.smartio = os.path.join(BUILD, "tools", "smartio")
        self.port, = free_ports(1)
        self.keys = os.path.join(self.dir, "keys")

    def file(self, hosts):
        path = os.path.join(self.dir, "cluster.yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"cluster: lab\nhosts:\n  a: {{ address: '127.0.0.1:{self.port}'{hosts} }}\n"
                    "  b: { address: '127.0.0.2:1' }\n")
        return path

    def run_smartiod(self, *args, status=1):
        done = subprocess.run([os.path.join(BUILD, "smartiod", "smartiod"), "--state", self.dir,
                               *args], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def make_keys(self, path, *args, status=0):
        done = subprocess.run([self.smartio, "cluster", "keys", *args, path, self.keys],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_emulated(self):
        path = self.file("")
        start = ("--topology", path, "--node", "a")
        self.assertIn(f"{self.keys}: No such file or directory; keys are made by: smartio "
                      "cluster keys", self.run_smartiod(*start))
        self.make_keys(path)
        self.assertIn("port.4", self.run_smartiod(*start))  # all is well but that no emulator runs
        with socket.create_server(("127.0.0.1", self.port)):
            self.assertIn(f"address 127.0.0.1:{self.port} of host 'a': Address already in use",
                          self.run_smartiod(*start))
        for name, want in (("crl.pem", "crl.pem: cannot be read"),
                           ("a.key", "a.key: No such file"), ("ca.pem", "ca.pem: cannot be read"),
                           ("a.pem", "a.pem: cannot be read")):
            os.rename(f"{self.keys}/{name}", f"{self.dir}/away")
            self.assertIn(want, self.run_smartiod(*start))
            os.rename(f"{self.dir}/away", f"{self.keys}/{name}")
        for end in ("key", "pem"):
            shutil.copy(f"{self.keys}/b.{end}", f"{self.keys}/a.{end}")
        self.assertIn("a.pem: the certificate is of host 'b'; that of 'a' is right",
                      self.run_smartiod(*start))
        self.make_keys(path, "--renew", "a")
        self.make_keys(path, "--revoke", "a")
        self.assertIn("a.pem: its certificate was revoked", self.run_smartiod(*start))
        self.make_keys(path, "--renew", "a", "--days", "3")
        self.assertRegex(self.run_smartiod(*start),
                         r"a\.pem expires in [23] days; mend: smartio cluster keys --renew a")
        self.assertIn("no host 'c'", self.make_keys(path, "--renew", "c", status=1))
        # Those at once wait for each other: each certificate can be revoked later.
        def issued():
            with open(f"{self.keys}/issued.pem", encoding="ascii") as f:
                return f.read().count("BEGIN CERTIFICATE")
        before = issued()
        children = [subprocess.Popen([self.smartio, "cluster", "keys", path, self.keys, "--renew", "ab"[i % 2]],
                                     stderr=subprocess.DEVNULL) for i in range(8)]
        self.assertEqual([c.wait() for c in children], [0] * 8)
        self.assertEqual(issued(), before + 8)

    def test_real(self):
        path = self.file(", adapters: [{ pci: '00ff:ff:1f.7' }]")
        shim = "--shim=" + os.path.join(self.dir, "nothing")
        self.make_keys(path)
        self.assertIn("--node a: a real host", self.run_smartiod("--topology", path, "--node", "a"))
        self.assertIn("--node b: an emulated host", self.run_smartiod(
            shim, "--topology", path, "--node", "b"))
        self.assertIn("is said by --node", self.run_smartiod(shim, "--topology", path, status=2))
        said = self.run_smartiod(shim, "--topology", path, "--node", "a", "--keys", self.keys,
                                 "--group", "root")
        self.assertIn("adapter 0 of host 'a' is said to be at PCI address 00ff:ff:1f.7, where this "
                      "machine has nothing", said)
        self.assertIn(f"{self.dir}/nothing", said)
        state = os.path.join(self.dir, "state")
        done = subprocess.run([self.smartio, "--state", state, "cluster", "up", path],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("host 'a' is a real one", done.stderr)
        self.assertFalse(os.path.exists(state))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
