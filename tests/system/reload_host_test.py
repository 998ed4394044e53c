#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio cluster reload adds hosts to a cluster that runs, and removes some, with clients of a drive at their I/O.

usage: reload_host_test.py BUILD
"""
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reload_test  # noqa: E402
from tls_test import free_ports  # noqa: E402

ALL = ("lender", "near", "far", "more")
MORE = "  more: { ram: 64M, devices: { extra: { type: nvme, size: 64M } } }\n"


class Hosts(reload_test.Base):
    def with_more(self, more=MORE):
        return self.write(more)

    def is_up(self, *hosts):
        """As each one's daemon says, and these alone."""
        for host in hosts:
            nodes = json.loads(self.c.run(host, self.c.smartio_path, "node", "list", "--json"))["data"]["nodes"]
            self.assertEqual([n["name"] for n in nodes if n["state"] == "up"], list(hosts))

    def pings(self, a, b):
        """Programs of the two hosts share memory."""
        self.both("pingpong", (a, "%d", "first", "100"), (b, "%d", "second", "100"))

    def sends(self, a, b):
        """The same by a DMA engine of the one."""
        self.both("dma_vector", (b, "show"), (a, "send", "%d"))

    def both(self, name, *words):
        node = {h["name"]: str(h["node"]) for h in
                json.loads(self.c.smartio("node", "list", "--json"))["data"]["nodes"]}
        path = os.path.join(reload_test.BUILD, "examples", "example-" + name)
        children = []
        for (host, *rest), (other, *_) in zip(words, reversed(words)):
            children.append(self.c.start(host, path, *(node[other] if w == "%d" else w for w in rest)))
        for child in children:
            status, out, err = self.c.end(child)
            self.assertEqual(status, 0, out + err)

    def test_hosts_come_and_go_under_io(self):
        before = self.c.audit()
        manager = self.c.manager("lender")
        near, far = self.busy("near"), self.busy("far")
        for turn in range(2):
            done = self.reload("--check", self.with_more())
            self.assertEqual(done.stdout, "host 'more' is new\n")
            self.assertFalse(os.path.exists(os.path.join(self.c.state, "port.16")))
            done = self.reload("--json", self.with_more())
            self.assertEqual(json.loads(done.stdout)["data"]["hosts"], list(ALL))
            self.is_up(*ALL)
            for host in ALL:
                self.assertEqual(self.devices(host), ["extra", "nvme0", "nvme1"])
            # It borrows of those that were there, they borrow of it, and both share memory.
            guest = self.busy("more")
            other = self.c.manager("far", "extra")
            user = self.busy("near", "extra")
            self.pings("far", "more")
            if turn:  # its daemon is dead already
                self.c.crash("more")
            done = self.reload(self.write())
            self.assertEqual(done.stdout, "host 'more' is gone\n")
            self.assertIn("1 change is in force on 3 hosts", done.stderr)
            self.assertNotEqual(self.c.end_by_itself(guest)[0], 0)
            for child in (user, other):
                self.ends_by_loss(child)
            for host in ALL[:3]:
                self.assertEqual(self.devices(host), ["nvme0", "nvme1"])
            self.is_up(*ALL[:3])
            for name in ("port.16", "node.16"):
                self.assertFalse(os.path.exists(os.path.join(self.c.state, name)), name)
        self.all_is_well(before, manager, near, far)

    def test_many_times(self):
        """Also several in one reload, others than before, and of the same node ids."""
        before = self.c.audit()
        manager = self.c.manager("lender")
        near = self.busy("near")
        texts = [MORE, "  more: { ram: 64M }\n  most: { ram: 64M }\n", "", "  most: { ram: 64M, node: 24 }\n" + MORE,
                 "  other: { ram: 64M, adapters: [{ window: 512M }] }\n", ""]
        for turn in range(12):  # each text twice
            text = texts[turn % len(texts)]
            if text.startswith("  other"):
                self.reload(self.write())
            self.reload(self.write(text))
            if turn % 6 == 4:
                self.pings("other", "far")
                self.sends("other", "far")
        self.all_is_well(before, manager, near)

    def test_what_takes_a_restart_is_named(self):
        self.c.manager("lender")
        near = self.busy("near")
        before = self.in_force()
        text = reload_test.TOPOLOGY.format(ram="256M", rest="")
        for new, said in (
                # Ids that follow from places in the file shift.
                (text.replace("  near: { ram: 256M }\n", ""),
                 "host 'far': node is 8, was 12; with 'node: 12' in the file it keeps it"),
                (text.replace("  far:", "  more: { ram: 64M }\n  far:"),
                 "host 'far': node is 16, was 12; with 'node: 12' in the file it keeps it"),
                (text.replace("far: {", "far: { iommu: on,"),
                 "host 'far': iommu is 1, was 0; or one reload removes it, and the next adds it")):
            done = self.reload(self.write(text=new), status=1)
            self.assertIn(f"needs a restart: {said}\n", done.stdout)
        done = self.reload(self.write(text=text.replace("far:", "another:")), status=1)
        self.assertIn("needs a restart: host 'another' has node id 12, which is that of host 'far'; another one is "
                      "right, or one reload removes this, and the next adds that", done.stderr)
        done = self.reload(self.write("  vm: { kind: machine }\n"), status=1)
        self.assertIn("needs a restart: host 'vm' is new\n", done.stdout)
        self.assertEqual(self.in_force(), before)
        self.is_up(*ALL[:3])
        # The file that keeps it.
        self.reload(self.write(text=text.replace("  near: { ram: 256M }\n", "").replace("far: {", "far: { node: 12,")))
        self.assertNotEqual(self.c.end_by_itself(near)[0], 0)
        self.is_up("lender", "far")
        self.is_well(self.busy("far"))
        self.c.crash("lender")
        self.c.crash("far")
        self.assertIn("no host of the cluster is up", self.reload(self.write(), status=1).stderr)

    def test_what_a_reload_left_in_between_is_mended(self):
        """Its command died behind each of its steps: hosts come, then they go."""
        self.c.manager("lender")
        near = self.busy("near")
        in_force = os.path.join(self.c.state, "topology.yaml")
        new, old = self.with_more(), self.write()
        for crash in (False, True):
            for path in (new, old):
                self.left_in_between(path)
                if crash:
                    self.c.crash("far")
                    self.c.smartio("cluster", "restart-node", "far")
                if path == new:  # nobody can start it before the room has it
                    refused = subprocess.run([self.c.smartio_path, "--state", self.c.state, "cluster", "restart-node",
                                              "more"], capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual(refused.returncode, 1, refused.stdout)
                self.assertIn("1 change is in force", self.reload().stderr)
                self.is_up(*(ALL if path == new else ALL[:3]))
        # Behind "commit": the room has it, and it is a host that is down.
        with self.prepared(new) as room:
            os.rename(in_force + ".new", in_force)
            room.send(b"reload commit")
            self.assertRegex(room.recv(8192).decode(), r"^ok host 16 new \d+$")
        self.assertIn("1 host is not up", self.reload().stderr)
        self.c.smartio("cluster", "restart-node", "more")
        self.is_up(*ALL)
        self.is_well(near, self.busy("more"))

    def test_one_whose_daemon_cannot_start(self):
        """All others go by the new file; what is left to do is said."""
        self.c.manager("lender")
        near = self.busy("near")
        os.makedirs(os.path.join(self.c.state, "node.16", "in the way"))
        done = self.reload(self.with_more(), status=1)
        self.assertIn("smartiod.16 did not start: ", done.stderr)
        self.assertIn("cluster restart-node HOST", done.stderr)
        shutil.rmtree(os.path.join(self.c.state, "node.16"))
        self.c.smartio("cluster", "restart-node", "more")
        self.is_up(*ALL)
        self.assertIsNone(near.poll())

    def test_without_the_room(self):
        """smartio-emu dies between the file's new name and its being taken: the cluster is one that crashed."""
        self.left_in_between(self.with_more())
        os.kill(self.c.pid_of_room(), signal.SIGKILL)
        for _ in range(100):  # until the daemons have noticed
            refused = self.reload(status=1).stderr
            if "no host of the cluster is up" in refused:
                break
        self.assertIn("no host of the cluster is up; nothing was changed", refused)
        new = self.with_more()
        self.c.smartio("cluster", "down")
        self.c.smartio("cluster", "up", new)
        self.is_up(*ALL)

    def test_between_machines(self):
        """A host with an address gets its key before its daemon starts."""
        text = self.apart()
        self.c.manager("lender")
        near = self.busy("near")
        port, = free_ports(1)
        more = text.replace("access:", f"  more: {{ address: '127.0.0.4:{port}', ram: 64M }}\naccess:")
        self.lender = ("127.0.0.1", int(re.search(r"127\.0\.0\.1:(\d+)", text)[1]))
        kept = os.path.join(self.c.dir, "kept")
        os.mkdir(kept)
        for turn in range(2):
            self.reload(self.write(text=more))
            self.is_up(*ALL)
            self.is_well(self.busy("more"))
            if turn:  # it is a host of the cluster again, and the key that it had before is not
                self.shows_key_of_more(kept)
            for end in ("pem", "key"):
                shutil.copy(f"{self.c.state}/keys/more.{end}", kept)
            done = self.reload(self.write(text=text))
            self.assertIn("1 certificate of hosts that are gone is revoked\n", done.stderr)
            self.is_up(*ALL[:3])
            self.shows_key_of_more(kept)
        # Who is in the file keeps its key.
        self.assertNotIn("revoked", self.reload().stderr)
        self.is_well(near)

    def shows_key_of_more(self, folder):
        """To lender's daemon, which ends the connection because of that: whom it takes it waits for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(f"{folder}/more.pem", f"{folder}/more.key")
        with socket.create_connection(self.lender, timeout=60) as plain:
            try:
                with context.wrap_socket(plain) as s:
                    while s.recv(4096):
                        pass
            except OSError:
                pass
        self.assertIn("its certificate was revoked", self.log())
        self.assertNotIn("did not say which node", self.log())

    def log(self):
        with open(os.path.join(self.c.state, "smartiod.4.log"), encoding="utf-8") as f:
            return f.read()


if __name__ == "__main__":
    reload_test.BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
