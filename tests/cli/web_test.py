#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio web by HTTP: who may read, what, and that it is true; clients that are slow or hostile; its beginning and end."""
import base64
import hashlib
import os
import re
import signal
import socket
import threading

import base
from webserver import NVME, WebTest


def is_live(data):
    return data["state"] == "live" and data["look"] > 1


class Access(WebTest):
    def setUp(self):
        super().setUp()
        self.state = self.up()
        self.child = self.serve()

    def raw(self, text):
        """What comes back for these bytes, until the end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall(text.encode())
            got = b""
            while data := s.recv(65536):
                got += data
        return got.decode()

    def test_who_may_read(self):
        good = f"/?token={self.token}"
        host = f"127.0.0.1:{self.port}"
        other = ("0" if self.token[0] != "0" else "1") + self.token[1:]
        for path in ("/", "/live.json"):
            for query in ("", "?token=", f"?token={other}", f"?token={self.token[:-1]}", f"?token={self.token}0",
                          f"?tok={self.token}"):
                self.assertEqual(self.get(path + query)[0], 403, query)
        self.assertEqual(self.get("/favicon.ico")[0], 403)
        self.assertEqual(self.get(f"/x?token={self.token}")[0], 404)
        for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            status, headers, _ = self.get(good, method)
            self.assertEqual((status, headers["Allow"]), (405, "GET"), method)
        for name in ("evil.example", f"evil.example:{self.port}", f"127.0.0.1.evil.example:{self.port}", "[::1]"):
            self.assertEqual(self.get(good, headers={"Host": name})[0], 421, name)
        for name in ("localhost", f"localhost:{self.port}", "127.0.0.1:9", host):  # 9: a tunnel
            self.assertEqual(self.get(good, headers={"Host": name})[0], 200, name)
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://127.0.0.1:{self.port + 1}"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            status, answer, text = self.get(f"/live.json?token={self.token}", headers=headers)
            self.assertEqual(status, 403, headers)
            self.assertIn("another origin", text)
            self.assertFalse([h for h in answer if h.lower().startswith("access-control")])
        self.assertEqual(self.get(good, headers={"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"})[0], 200)
        for hosts in ("", f"Host: {host}\r\nHost: {host}\r\n", f"Host: {host}\r\nHost: evil.example\r\n"):
            self.assertRegex(self.raw(f"GET {good} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"), "^HTTP/1.1 4")
        # No token is in what is refused, nor what is wrong with one.
        for path in ("/", f"/?token={other}"):
            self.assertEqual(self.get(path)[2], self.get("/")[2])
            self.assertNotIn(self.token, self.get(path)[2])

    def test_it_listens_on_this_machine_alone(self):
        with open("/proc/net/tcp", encoding="ascii") as f:
            here = [line.split()[1] for line in f if line.split()[3] == "0A" and
                    line.split()[1].endswith(f":{self.port:04X}")]
        self.assertEqual(here, [f"0100007F:{self.port:04X}"])
        with open("/proc/net/tcp6", encoding="ascii") as f:
            self.assertNotIn(f":{self.port:04X} 0", re.sub(r"^ *\d+: [0-9A-F]+", "", f.read(), flags=re.M))

    def test_the_page_is_self_contained(self):
        status, headers, page = self.get()
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        policy = headers["Content-Security-Policy"]
        self.assertTrue(policy.startswith("default-src 'none'; "))
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("*", policy)
        for element in ("script", "style"):
            text, = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
            self.assertIn(f"{element}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'", policy)
        self.assertEqual(set(re.findall(r"[a-z]+://[^\s\"']*", page)), {"http://www.w3.org/2000/svg"})
        self.assertNotRegex(page, r"(src|href)=\"(?!data:,)")
        self.assertNotIn("innerHTML", page)
        for name, value in (("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"),
                            ("X-Frame-Options", "DENY"), ("Cache-Control", "no-store"),
                            ("Cross-Origin-Resource-Policy", "same-origin")):
            self.assertEqual(headers[name], value)
        self.assertEqual(self.get("/")[1]["Content-Security-Policy"], policy)  # of refusals, too

    def fds(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def test_clients_that_hold_it_up(self):
        """Who says nothing, half of something, or does not read costs the others nothing."""
        before = self.fds()
        held = []
        self.addCleanup(lambda: [s.close() for s in held])

        def hold(text, n):
            for _ in range(n):
                s = socket.create_connection(("127.0.0.1", self.port), timeout=60)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.sendall(text)
                held.append(s)

        path = f"GET /?token={self.token} HTTP/1.1\r\nHost: localhost\r\n"
        hold(path.encode() + b"\r\n", 20)  # and reads nothing of it
        for text in (b"", b"GET /li", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"\0\xff\r\n\r\n" * 100,
                     b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 60000):
            try:
                hold(text, 100)
            except (BrokenPipeError, ConnectionResetError):
                pass  # so much is refused at once
            self.assertEqual(self.get()[0], 200)
        self.until(is_live)
        self.assertLess(self.fds(), before + 20 + 64 + 20)
        # One that has shown the token stays, whoever comes.
        c = self.connect()
        for _ in range(3):
            hold(b"GET /", 100)
            c.request("GET", f"/live.json?token={self.token}")
            reply = c.getresponse()
            self.assertEqual(reply.status, 200)
            reply.read()
            self.assertIsNotNone(c.sock)
        c.close()

    def test_many_readers(self):
        self.until(is_live)
        wrong = []

        def read():
            for _ in range(20):
                if self.look()["state"] != "live":
                    wrong.append("not live")

        threads = [threading.Thread(target=read) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class Data(WebTest):
    def setUp(self):
        super().setUp()
        self.state = self.up()

    def test_it_is_true(self):
        self.serve()
        self.assertEqual(self.look()["state"], "looking")
        data = self.until(is_live)
        self.assertEqual(data["cluster"], "test")
        self.assertEqual(data["topology"], self.json("topology"))
        self.assertEqual([h["name"] for h in data["top"]["hosts"]], ["lender", "client1", "client2"])
        self.manage()
        bench = self.start("run", "-n", "client1", "--", NVME, "bench", "nvme0", "-t", "600", "-d", "4")
        data = self.until(lambda d: is_live(d) and d["top"]["devices"][0].get("commands_per_second", 0) > 50)
        drive, = data["top"]["devices"]
        self.assertEqual(drive["borrowed_by"], [{"host": "lender", "programs": 1}, {"host": "client1", "programs": 1}])
        self.assertEqual((drive["queue_pairs"], drive["queue_pairs_max"], drive["quarantined"]), (1, 31, 0))
        # A data write of 4 KiB and a completion for each command, at the drive and at both links.
        data = self.until(lambda d: d["look"] > data["look"])  # which the bench began before
        drive, = data["top"]["devices"]
        links = {link["name"]: link for link in data["top"]["links"]}
        for moved in (drive, links["lender.0"], links["client1.0"]):
            self.assertAlmostEqual(moved["written_bytes_per_second"] / drive["commands_per_second"] / 4112, 1, delta=0.1)
        self.assertEqual(links["client2.0"]["written_bytes_per_second"], 0)
        bench.send_signal(signal.SIGTERM)
        bench.wait(60)

    def test_it_follows_what_happens(self):
        child = self.serve()
        self.until(is_live)
        self.smartio("fault", "link", "client2", "down")
        self.until(lambda d: d["topology"]["hosts"][2]["adapters"][0]["link"] == "down" and
                   d["top"]["links"][2]["state"] == "down")
        self.smartio("fault", "link", "client2", "up")
        self.crash(self.state, 8)
        data = self.until(lambda d: d["topology"]["hosts"][1]["state"] == "down")
        self.assertNotIn("reads_per_second", data["top"]["links"][1])
        self.smartio("cluster", "down")
        self.assertIn("test", self.until(lambda d: d["state"] == "gone")["why"])
        self.up()
        data = self.until(is_live)
        self.assertEqual([h["state"] for h in data["topology"]["hosts"]], ["up"] * 3)
        self.end(child)

    def test_it_asks_for_readers_alone(self):
        """Nothing passes the fabric for it, and daemons hear of it only while somebody reads."""
        def asked():
            return [int(d["counters"]["client_messages"], 16) for d in self.json("stats")["daemons"]]

        def cost():
            before = asked()
            return [b - a for a, b in zip(before, asked())]

        def passed():
            stats = self.json("stats")
            return [t["counters"] for t in stats["adapters"] + stats["devices"]]

        alone = cost()
        self.serve()
        self.assertEqual(self.get()[0], 200)  # the page reads nothing by itself
        self.assertEqual(cost(), alone)
        before = passed()
        first = asked()
        looks = self.until(lambda d: is_live(d) and d["look"] > 2)["look"]
        self.assertGreaterEqual(asked()[0] - first[0], 3 * looks)
        self.assertEqual(before, passed())

    def test_a_daemon_is_stopped(self):
        """It waits for it; readers and Ctrl-C do not."""
        child = self.serve()
        self.until(is_live)
        pid = self.pid_of(self.state, "smartiod.8")
        os.kill(pid, signal.SIGSTOP)
        try:
            old = self.look()["look"]
            for _ in range(600):  # until what it knows grows old
                status, headers, text = self.get(f"/live.json?token={self.token}")
                self.assertEqual(status, 200)
                if int(headers["Age"]) >= 2:
                    break
                threading.Event().wait(0.05)
            self.assertGreaterEqual(int(headers["Age"]), 2)
            self.assertLessEqual(self.document(text)["look"], old + 1)
            self.end(child)
        finally:
            os.kill(pid, signal.SIGCONT)


class Command(WebTest):
    def test_begin_and_end(self):
        self.fails("web", say="no cluster is running")
        self.up()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            child = self.serve()
            first = self.token
            self.assertEqual(self.get()[0], 200)
            self.end(child, number)
            self.assertRaises(ConnectionRefusedError, self.get)
        self.fails("web", "--port", "0", say="--port 0: 1 to 65535 is right", status=2)
        for port in ("65536", "x", "", "-1", "80 ", "1e3"):
            self.fails("web", "--port", port, say="1 to 65535 is right", status=2)
        # The same port again, at once; the token is another one. Who comes second is told.
        port = str(self.port)
        child = self.start("web", "--port", port, "--json")
        text = ""
        while not text.endswith("\n}\n"):
            text += child.stdout.readline()
        data = self.document(text)
        self.assertEqual((data["cluster"], data["port"]), ("test", int(port)))
        self.token = data["url"].rsplit("=", 1)[1]
        self.assertNotEqual(self.token, first)
        self.assertEqual(self.look()["state"], "looking")
        self.fails("web", "-p", port, say=(f"cannot listen on 127.0.0.1:{port}", "without --port a free one is taken"))
        self.end(child)


if __name__ == "__main__":
    base.main()
