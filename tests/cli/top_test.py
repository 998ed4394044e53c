#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""smartio top: text of a cluster under I/O, how often it asks and whom, daemons that begin again, and the view on a
terminal that is resized, paused and ended by q."""
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import base

NVME = os.environ.get("SMARTIO_NVME", "smartio-nvme")


class Terminal:
    """What a VT100 shows of the bytes that a program sends it."""
    SEQUENCE = re.compile(rb"\x1b(?:\[(\??[0-9;]*)([A-Za-z])|[()][A-Z0-9]|[=>M78])")

    def __init__(self, argv, env, lines, columns):
        self.fd, slave = pty.openpty()
        self.resize(lines, columns)
        self.child = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env={**env, "TERM": "vt100"},
                                      start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.left = b""

    def resize(self, lines, columns):
        self.rows = [[" "] * columns for _ in range(lines)]
        self.y = self.x = 0
        self.region = (0, lines - 1)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def lines(self):
        return ["".join(row).rstrip() for row in self.rows]

    def put(self, char):
        if self.x < len(self.rows[0]):
            self.rows[self.y][self.x] = char
            self.x += 1

    def scroll(self, up):
        """The lines of the scrolling region, by one."""
        first, last = self.region
        del self.rows[first if up else last]
        self.rows.insert(last if up else first, [" "] * len(self.rows[0]))

    def index(self):
        if self.y == self.region[1]:
            self.scroll(True)
        else:
            self.move(self.y + 1, self.x)

    def move(self, y, x):
        self.y = min(max(y, 0), len(self.rows) - 1)
        self.x = min(max(x, 0), len(self.rows[0]))

    def control(self, args, what):
        numbers = [int(n or 0) for n in args.split(b";")] if args and not args.startswith(b"?") else []
        n = max(numbers[0], 1) if numbers else 1
        if what == b"H":
            self.move(n - 1, (numbers + [1, 1])[1] - 1)
        elif what in b"ABCD":
            dy, dx = {b"A": (-n, 0), b"B": (n, 0), b"C": (0, n), b"D": (0, -n)}[what]
            self.move(self.y + dy, self.x + dx)
        elif what in b"KJ":
            begin = self.x if not numbers or numbers[0] == 0 else 0
            end = self.x + 1 if numbers and numbers[0] == 1 else len(self.rows[0])
            self.rows[self.y][begin:end] = [" "] * (end - begin)
            for row in self.rows[self.y + 1:] if what == b"J" else []:
                row[:] = [" "] * len(row)
        elif what == b"r":
            self.region = (numbers[0] - 1, numbers[1] - 1) if len(numbers) == 2 else (0, len(self.rows) - 1)
            self.move(0, 0)
        elif what not in b"mhl":
            raise AssertionError(f"a control sequence that this terminal does not know: {args} {what}")

    def take(self, data):
        data, self.left = self.left + data, b""
        while data:
            match = self.SEQUENCE.match(data)
            if match:
                if match[2]:
                    self.control(match[1], match[2])
                elif match[0] == b"\x1bM" and self.y == self.region[0]:
                    self.scroll(False)
                elif match[0] == b"\x1bM":
                    self.move(self.y - 1, self.x)
                data = data[match.end():]
                continue
            if data[0] == 0x1b:
                self.left = data  # the rest is on its way
                return
            char, data = data[:1], data[1:]
            if char == b"\r":
                self.x = 0
            elif char == b"\n":
                self.index()
            elif char == b"\b":
                self.move(self.y, self.x - 1)
            elif char >= b" ":
                self.put(char.decode("ascii"))

    def read(self, seconds):
        """What came within that time. False: the other end is closed."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            data = b""
        self.take(data)
        return bool(data)

    def until(self, what, seconds=60):
        """Wait until the screen shows it."""
        end = time.monotonic() + seconds
        while not what(self.lines()):
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError("the screen shows\n" + "\n".join(self.lines()))

    def shows(self, regex):
        self.until(lambda lines: any(re.search(regex, line) for line in lines))

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self):
        while self.read(60):
            pass
        status = self.child.wait(60)
        os.close(self.fd)
        return status


def number(text):
    unit = " KMGTPE".find(text[-1])
    return float(text[:-1]) * 1024 ** unit if unit > 0 else float(text)


class Top(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.state = self.up()

    def rows(self, text):
        """Of one look {name: {column: cell}}; cells have two spaces between."""
        found, head = {}, None
        for line in text.splitlines()[1:]:
            cells = re.split(r" {2,}", line.strip())
            if not line:
                head = None
            elif head is None:
                head = cells
            elif len(cells) == len(head):
                found[cells[0], head[0]] = dict(zip(head, cells))
        return found

    def manage(self):
        manager = self.start("run", "-n", "lender", "--", NVME, "manager", "nvme0")
        self.assertIn("ready", manager.stdout.readline())
        return manager

    def quit(self, child):
        child.send_signal(signal.SIGTERM)
        child.wait(60)

    def test_under_io(self):
        manager = self.manage()
        bench = self.start("run", "-n", "client1", "--", NVME, "bench", "nvme0", "-t", "600", "-d", "4")

        def commands():
            return int(self.json("stats", "-n", "lender")["devices"][0]["counters"]["commands_read"], 16)

        begin, end = commands(), time.monotonic() + 60
        while commands() < begin + 100:  # it is under way
            self.assertLess(time.monotonic(), end)
        looks = self.smartio("top", "--batch", "-n", "2", "-d", "0.3").stdout.split("\n\ntest: ")
        self.assertEqual(len(looks), 2)
        for look in looks:
            rows = self.rows(look)
            drive = rows["nvme0", "DEVICE"]
            self.assertEqual((drive["LENDER"], drive["STATE"], drive["BORROWED BY"]),
                             ("lender", "shared", "lender, client1"))
            self.assertGreater(number(drive["COMMANDS/s"]), 0)
            for name, kind in (("nvme0", "DEVICE"), ("lender.0", "LINK"), ("client1.0", "LINK"), ("client1", "HOST")):
                self.assertGreater(number(rows[name, kind]["WRITTEN B/s"]), 4096)
                self.assertGreater(number(rows[name, kind]["WRITES/s"]), 1)
            self.assertEqual(rows["client2.0", "LINK"]["WRITES/s"], "0")
        data = self.json("top", "-d", "0.2", "--sort", "write")
        self.assertEqual(data["links"][2]["name"], "client2.0")
        drive, = data["devices"]
        self.assertEqual(drive["borrowed_by"], [{"host": "lender", "programs": 1}, {"host": "client1", "programs": 1}])
        # A data write of 4 KiB and a completion for each command.
        self.assertAlmostEqual(drive["written_bytes_per_second"] / drive["commands_per_second"], 4112, delta=64)
        self.quit(bench)
        self.quit(manager)

    def test_it_does_not_disturb(self):
        """Nothing passes the fabric for it, and daemons hear of it once a look, however many looks there are."""
        def counts():
            stats = self.json("stats")
            fabric = [t["counters"] for t in stats["adapters"] + stats["devices"]]
            return fabric, {d["name"]: int(d["counters"]["client_messages"], 16) for d in stats["daemons"]}

        def asked(looks):
            (fabric, before), _ = counts(), self.smartio("top", "--batch", "-n", str(looks), "-d", "0.1")
            again, after = counts()
            self.assertEqual(fabric, again)
            return [after[name] - before[name] for name in before]

        one, four = asked(1), asked(4)
        each = [(b - a) // 3 for a, b in zip(one, four)]
        self.assertEqual([a + 3 * e for a, e in zip(one, each)], four)
        self.assertLess(max(each), 10)
        # The stretch of time between two looks is slept.
        begin = time.monotonic()
        self.smartio("top", "--batch", "-n", "4", "-d", "0.2")
        self.assertGreater(time.monotonic() - begin, 0.8)

    def test_a_host_begins_again(self):
        child = self.start("top", "--batch", "-d", "0.1")

        def look():
            lines = []
            while not (lines and lines[-1].startswith("nvme0 ")):
                lines.append(child.stdout.readline())
                self.assertTrue(lines[-1])
            return self.rows("".join(lines).lstrip("\n"))

        def until(state, reads):
            for _ in range(600):
                rows = look()
                for (name, kind), row in rows.items():
                    for column in [c for c in row if c.endswith("/s")] if kind != "NODE" else []:
                        if row[column] != "-":
                            self.assertLess(number(row[column]), 1e9, (name, row))  # no 2^64 of a counter that fell
                if (rows["lender", "HOST"]["STATE"], rows["nvme0", "DEVICE"]["READS/s"]) == (state, reads):
                    return
            self.fail(f"the lender is never {state} with {reads}")

        until("up", "0")
        self.crash(self.state, 4)
        until("down", "-")
        self.smartio("cluster", "restart-node", "lender")
        until("up", "0")
        child.kill()

    def test_a_link_between_switches_is_one_of_the_links(self):
        self.smartio("cluster", "down")
        self.smartio("cluster", "up", self.file("tree.yaml", """\
cluster: tree
switches: [s0, s1]
links: [{ from: s0, to: s1 }]
hosts: { a: { ram: 16M, adapters: [{ to: s0 }] }, b: { ram: 16M, adapters: [{ to: s1 }] } }
"""))
        for state, up in (("up", 3), ("down", 2)):
            self.smartio("fault", "trunk", "s0", "s1", state)
            text = self.smartio("top", "--once").stdout
            self.assertIn(f"tree: hosts 2/2 up, links {up}/3 up,", text)
            self.assertRegex(text, rf"(?m)^s0-s1 +{state}\b")

    def test_wrong(self):
        for words, say in [(("--delay", "0.01"), "--delay 0.01: 0.1 to 3600 seconds are right"),
                           (("--delay", "soon"), "0.1 to 3600"), (("--count", "0"), "--count 0: 1 to"),
                           (("--sort", "x"), "name|read|write|faults is right"),
                           (("--once", "-n", "2"), "--count 1 is right"), ((), "is no terminal")]:
            self.fails("top", *words, say=say, status=2)

    def test_on_a_terminal(self):
        built = "built without ncurses" not in self.on(24, 80, "-n", "1", "-d", "0.1", read=True)
        if not built:
            self.skipTest("this smartio has no ncurses")
        screen = self.on(24, 110, "-d", "0.1")
        screen.shows(r"^test: hosts 3/3 up, links 3/3 up, devices 1/1 in")
        screen.until(lambda lines: "every 0.1 s, by name   q end" in lines[23] and
                     any(re.match(r"lender +4  host +up +1/1 up +0 ", line) for line in lines))
        screen.resize(6, 50)
        screen.until(lambda lines: "every 0.1 s, by name   q end" in lines[5] and lines[0].startswith("test: hosts 3/3"))
        screen.type(b"s")
        screen.shows("every 0.1 s, by read")
        screen.type(b"\x1bOB")  # down
        screen.until(lambda lines: lines[1].startswith("HOST "))
        screen.type(b"h")
        screen.shows("^q            end")
        screen.type(b"x")
        screen.until(lambda lines: lines[1].startswith("HOST "))
        screen.resize(24, 110)
        screen.shows(r"^client2 .* 1/1 up")
        # It follows what happens; paused, it does not.
        self.smartio("fault", "link", "client2", "down")
        screen.shows(r"^client2 .* 0/1 up")
        screen.type(b"p")
        screen.shows("^PAUSED  every 0.1 s")
        self.smartio("fault", "link", "client2", "up")
        self.assertFalse(any(re.match("client2 .* 1/1 up", line) for line in screen.lines()))
        screen.type(b"p")
        screen.shows(r"^client2 .* 1/1 up")
        screen.type(b"q")
        self.assertEqual(screen.end(), 0)

    def test_it_ends_with_its_cluster_and_while_a_daemon_is_stopped(self):
        if "built without ncurses" in self.on(24, 80, "-n", "1", "-d", "0.1", read=True):
            self.skipTest("this smartio has no ncurses")
        pid = self.pid_of(self.state, "smartiod.8")
        screen = self.on(24, 110, "-d", "0.1")
        screen.shows(r"^lender +4  host +up +1/1 up +0 ")
        os.kill(pid, signal.SIGSTOP)
        try:
            screen.type(b"s")
            screen.shows("by read")
            screen.type(b"q")  # now, though nobody answers
            self.assertEqual(screen.end(), 0)
        finally:
            os.kill(pid, signal.SIGCONT)
        screen = self.on(24, 110, "-d", "0.1")
        screen.shows("^lender +4  host +up")
        self.smartio("cluster", "down")
        self.assertEqual(screen.end(), 1)

    def on(self, lines, columns, *words, read=False):
        """On a terminal of that size; @read: to its end, and what it then shows."""
        screen = Terminal([base.TOOL, "top", *words], self.env, lines, columns)
        self.addCleanup(lambda: screen.child.poll() is None and screen.child.kill())
        if not read:
            return screen
        screen.end()
        return "\n".join(screen.lines())


if __name__ == "__main__":
    base.main()
