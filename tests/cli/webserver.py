# SPDX-License-Identifier: BSD-2-Clause
"""What tests of smartio web need: one that runs, and requests to it."""
import http.client
import json
import os
import re
import select
import signal
import time
import unittest
from urllib.parse import urlsplit

import base

NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})\n")


class WebTest(base.CommandTest):
    def serve(self, *words):
        """Start it; what it listens on is its first line."""
        child = self.start(*words, "web")
        self.address = child.stdout.readline()
        if not self.address:
            said = child.stderr.read()
            if "built without libmicrohttpd" in said:
                raise unittest.SkipTest("this smartio has no libmicrohttpd: no smartio web")
            self.fail(said)
        self.port, self.token = ADDRESS.fullmatch(self.address).groups()
        self.port = int(self.port)
        self.url = self.address.strip()
        return child

    def end(self, child, number=signal.SIGINT):
        child.send_signal(number)
        self.assertEqual(child.wait(60), 0)
        self.assertEqual(child.stderr.read(), "")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path=None, method="GET", headers=None):
        """(status, headers, text)"""
        c = self.connect()
        try:
            c.request(method, path if path is not None else f"/?{urlsplit(self.url).query}", headers=headers or {})
            reply = c.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()
        finally:
            c.close()

    def look(self):
        """The document, as its schema says, with parts as theirs say."""
        status, headers, text = self.get(f"/live.json?token={self.token}")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        data = self.document(text)
        for name in ("topology", "top"):
            if name in data:
                part = {**data[name], "delay": 1} if name == "top" else data[name]
                base.check_schema({"schema": f"smartio/{name}", "version": 1, "data": part})
        return data

    def until(self, what, seconds=60):
        """Look, as the page does, until it is so."""
        end = time.monotonic() + seconds
        while not what(data := self.look()):
            self.assertLess(time.monotonic(), end, json.dumps(data, indent=1))
            select.select([], [], [], 0.1)
        return data

    def manage(self, host="lender"):
        manager = self.start("run", "-n", host, "--", NVME, "manager", "nvme0")
        self.assertIn("ready", manager.stdout.readline())
        return manager
