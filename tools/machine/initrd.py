# SPDX-License-Identifier: BSD-2-Clause
"""A file system image for a test machine: an archive in cpio's "newc" format, uncompressed."""
import os
import re
import shutil
import stat
import subprocess

import cache


class Initrd:
    """Files by their path in the machine. Everything belongs to root."""

    def __init__(self):
        self.entries = {}

    def add_folder(self, path):
        parent = os.path.dirname(path)
        if parent not in ("", "/") and parent not in self.entries:
            self.add_folder(parent)
        self.entries.setdefault(path, (stat.S_IFDIR | 0o755, b"", (0, 0)))

    def _add(self, path, mode, data, device=(0, 0)):
        self.add_folder(os.path.dirname(path))
        self.entries[path] = (mode, data, device)

    def add_data(self, path, data, mode=0o644):
        self._add(path, stat.S_IFREG | mode, data.encode() if isinstance(data, str) else data)

    def add_link(self, path, target):
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def add_device(self, path, major, minor):
        self._add(path, stat.S_IFCHR | 0o600, b"", (major, minor))

    def add_file(self, path, source):
        with open(source, "rb") as f:
            self.add_data(path, f.read(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def add_program(self, source, path=None):
        """A program in /bin, and the libraries that it is linked with."""
        self.add_file(path or "/bin/" + os.path.basename(source), source)
        done = subprocess.run(["ldd", source], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            found = re.match(r"\s*(?:(\S+) => )?(/\S+) \(0x", line)
            if "not found" in line:
                raise RuntimeError(f"{source}: {line.strip()}")
            if not found:
                continue
            name, library = found.groups()
            # The loader by its own path, all others where it looks for them.
            target = "/lib/x86_64-linux-gnu/" + name if name else library
            if target not in self.entries:
                self.add_file(target, library)

    def add_base(self, *folders, busybox=None):
        """busybox under all its names, a console, and folders to mount something on."""
        busybox = busybox or shutil.which("busybox")
        if not busybox or subprocess.run(["ldd", busybox], capture_output=True).returncode == 0:
            raise cache.Unavailable("no static busybox: apt-get install busybox-static")
        self.add_file("/bin/busybox", busybox)
        for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split():
            if applet != "busybox":
                self.add_link("/bin/" + applet, "busybox")
        for folder in ("/dev", "/proc", "/sys", "/tmp", "/run", *folders):
            self.add_folder(folder)
        self.add_device("/dev/console", 5, 1)

    def write(self, path):
        with open(path, "wb") as f:
            for number, name in enumerate(sorted(self.entries), 1):
                mode, data, (major, minor) = self.entries[name]
                self._write_entry(f, name.lstrip("/"), data, number, mode, major, minor)
            self._write_entry(f, "TRAILER!!!", b"", 0, 0, 0, 0)

    @staticmethod
    def _write_entry(f, name, data, number, mode, major, minor):
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, major, minor, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % v for v in fields) + name.encode() + b"\0"
        f.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
