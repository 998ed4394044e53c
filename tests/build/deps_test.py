#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What tools/build/deps.sh says on systems other than this one: by what is in PATH and in os-release."""
import os
import shutil
import subprocess
import tempfile
import unittest

import programs

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "build", "deps.sh")
SYSTEMS = {
    "debian": ("ID=debian\n", "sudo apt-get install"),
    "mint": ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt-get install"),
    "fedora": ("ID=fedora\n", "sudo dnf install"),
    "rocky": ("ID=rocky\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf install"),
    "arch": ("ID=arch\n", "sudo pacman -S --needed"),
    "suse": ("ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\n", "sudo zypper install"),
}


class Deps(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-deps-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.bin = os.path.join(self.dir, "bin")
        programs.link_all(self.bin)
        self.replace("apt-get", "echo apt-get was called; exit 9")
        self.replace("id", "echo 1000")

    def replace(self, name, text):
        path = os.path.join(self.bin, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def without(self, *names):
        for name in names:
            path = os.path.join(self.bin, name)
            if os.path.lexists(path):
                os.unlink(path)

    def deps(self, system, target):
        release = os.path.join(self.dir, "os-release")
        with open(release, "w", encoding="ascii") as f:
            f.write(SYSTEMS[system][0] if system else "ID=plan9\n")
        return subprocess.run(["sh", SCRIPT, target], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": self.bin, "SMARTIO_OS_RELEASE": release})

    def test_goes_on_where_all_is_there(self):
        for system in (*SYSTEMS, None):
            for target in ("demo", "check"):
                with self.subTest(system=system, target=target):
                    done = self.deps(system, target)
                    self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_names_the_packages_of_each_system(self):
        self.without("ninja", "g++", "scdoc")
        expect = {"debian": "g++ ninja-build", "fedora": "gcc-c++ ninja-build", "arch": "gcc ninja",
                  "suse": "gcc-c++ ninja"}
        expect["mint"], expect["rocky"] = expect["debian"], expect["fedora"]
        for system, packages in expect.items():
            with self.subTest(system=system):
                done = self.deps(system, "demo")
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, f"{SYSTEMS[system][1]} {packages}\n")
                self.assertEqual(self.deps(system, "check").stdout,
                                 f"{SYSTEMS[system][1]} {packages} scdoc\n")

    def test_names_what_is_missing_where_it_knows_no_names(self):
        self.without("ninja", "g++")
        done = self.deps(None, "demo")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("cmd:g++ cmd:ninja", done.stderr)

    def test_names_libraries_and_headers(self):
        self.replace("pkg-config", "exit 1")
        self.replace("gcc", "exit 1")
        line = self.deps("fedora", "demo").stdout
        for package in ("libyaml-devel", "systemd-devel", "json-c-devel", "pciutils-devel",
                        "uthash-devel", "libnvme-devel"):
            self.assertIn(package, line)

    def test_machines_are_optional(self):
        self.without("qemu-system-x86_64", "bison")
        done = self.deps("fedora", "check")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("sudo dnf install qemu-system-x86 bison", done.stderr)
        self.assertEqual(self.deps("fedora", "demo").stderr, "")

    def test_root_of_debian_has_it_installed(self):
        self.replace("id", "echo 0")
        self.replace("apt-get", 'echo "$@" >>"$CALLS"')
        self.without("scdoc", "bison")
        calls = os.path.join(self.dir, "calls")
        os.environ["CALLS"] = calls
        done = self.deps("debian", "check")
        self.assertEqual((done.returncode, done.stdout), (0, "installing: scdoc bison\n"), done.stderr)
        with open(calls, encoding="ascii") as f:
            lines = f.read().splitlines()
        self.assertEqual(lines[0], "update -q")
        self.assertEqual([line.split()[-1] for line in lines[1:]], ["scdoc", "bison"])

    def test_wrong_use(self):
        done = self.deps("debian", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: deps.sh", done.stderr)


if __name__ == "__main__":
    unittest.main()
