#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The parts that may be left out (meson_options.txt), the tree of --dis_tree, packages that come late.

usage: options_test.py CC
Builds in folders of its own. Optimization and debugging are off: it is compiled and linked, not run for its speed.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import programs

SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CC = sys.argv[1]
QUICK = ["-Dbuildtype=plain", "-Dwarning_level=0"]


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr}")
    return done.stdout


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sio-options-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.build = os.path.join(self.dir, "build")
        self.root = os.path.join(self.dir, "root")

    def setup(self, *options, **more):
        return run("meson", "setup", *QUICK, *options, self.build, SOURCE, **more)

    def install(self, *options):
        run("ninja", "-C", self.build)
        run("meson", "install", "--no-rebuild", "-C", self.build, "--destdir", self.root, *options)
        return {os.path.relpath(os.path.join(d, f), self.root)
                for d, _, files in os.walk(self.root) for f in files}


class Options(Folder):
    def test_library_and_driver_alone(self):
        """Without daemon, tests, manual pages, libpci, sd-event: as in a container that uses a cluster."""
        self.setup("-Dauto_features=disabled", "--prefix=/opt/DIS", "-Ddis_tree=true")
        files = {os.path.basename(f) for f in self.install()}
        for name in ("libsmartio.so.0.1.0", "libsmartio-nvme.so.0.1.0", "smartio.pc", "smartio-nvme"):
            self.assertIn(name, files)
        for name in ("smartiod", "smartio", "smartio-emu", "smartio.1", "SCIOpen.3", "cluster_test"):
            self.assertNotIn(name, files)
        self.the_tree_serves_programs(os.path.join(self.root, "opt", "DIS"))
        self.the_daemon_joins()

    def the_tree_serves_programs(self, dis):
        program = os.path.join(self.dir, "program")
        text = ("#include <sisci_api.h>\nint main(void) { sci_error_t e; SCIInitialize(0, &e);\n"
                "return e != SCI_ERR_OK && e != SCI_ERR_NOT_INITIALIZED; }\n")
        for include in ("include", "src/include"):
            run(CC, "-xc", "-", "-xnone", f"-I{dis}/{include}", f"-I{dis}/{include}/dis", f"-L{dis}/lib64",
                "-lsisci", "-o", program, input=text)
            run(program, env={**os.environ, "LD_LIBRARY_PATH": f"{dis}/lib64", "SMARTIO_SOCKET": "/nowhere"})

    def the_daemon_joins(self):
        """Without names of PCI functions and TLS; in the same folder, for what both have is not compiled again."""
        self.setup("--reconfigure", "-Dauto_features=auto", "-Dpci=disabled", "-Dtls=disabled", "-Dcurses=disabled",
                   "-Dweb=disabled", "-During=disabled", "-Ddocs=disabled", "-Dtests=disabled", "-Dprobes=disabled",
                   "-Dcuda=disabled", "-Ddaemon=enabled")
        run("ninja", "-C", self.build, "tools/smartio", "smartiod/smartiod", "emu/smartio-emu")
        for library in ("libpci", "libncurses", "libtinfo", "libmicrohttpd"):
            self.assertNotIn(library, run("ldd", os.path.join(self.build, "tools", "smartio")))
        for program in ("tools/smartio", "smartiod/smartiod"):
            self.assertNotIn("libgnutls", run("ldd", os.path.join(self.build, program)))
        run(os.path.join(self.build, "tools", "smartio"), "--version")

    @staticmethod
    def has_elogind():
        return subprocess.run(["pkg-config", "--exists", "libelogind"], check=False).returncode == 0

    def test_what_is_asked_for_and_cannot_be_had_is_named(self):
        for options, words in (
                (["-Ddaemon=disabled", "-Dtests=enabled"], "the tests need cmocka, and smartiod (option daemon)"),
                (["-Dsystemd=disabled", "-Ddaemon=enabled"], "libelogind"),
                (["-Ddis_tree=true", "--prefix=/usr"], "such as /opt/DIS")):
            with self.subTest(options=options), self.assertRaisesRegex(AssertionError, "(?s)"):
                try:
                    self.setup(*options, env={**os.environ, "PKG_CONFIG_PATH": ""})
                except AssertionError as e:
                    self.assertIn(words, str(e))
                    raise
                finally:
                    shutil.rmtree(self.build, ignore_errors=True)

    def test_fio_source(self):
        """An engine for fio is for that whose source is given; a folder that is none is refused."""
        version = os.path.join(SOURCE, "tools", "build", "fio_version.sh")
        folder = os.path.join(self.dir, "fio")
        os.mkdir(folder)
        with self.assertRaises(AssertionError) as failed:
            self.setup("-Dauto_features=disabled", f"-Dfio_source={folder}")
        self.assertIn("there is no fio.h; the folder of fio's source is right", str(failed.exception))
        shutil.rmtree(self.build)
        for name, say in (("fio.h", "there is no fio.h"), ("optgroup.h", "there is no optgroup.h"),
                          ("FIO-VERSION-GEN", "there is no FIO-VERSION-GEN"),
                          ("config-host.h", "./configure in that folder makes it")):
            with self.assertRaises(AssertionError) as failed:
                run("sh", version, folder)
            self.assertIn(say, str(failed.exception))
            with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                f.write("DEF_VER=fio-0.1\n" if name == "FIO-VERSION-GEN" else "")
        self.assertRegex(self.setup("-Dauto_features=disabled", f"-Dfio_source={folder}"), r"fio engine +: fio-0\.1\n")
        with open(os.path.join(folder, "FIO-VERSION-FILE"), "w", encoding="ascii") as f:
            f.write("FIO_VERSION = fio-0.1-3-gabc\n")
        self.assertEqual(run("sh", version, folder), "fio-0.1-3-gabc\n")

    def test_options_configure(self):
        """Compiled above, most of them at once; that each takes its own parts and no others is seen here."""
        daemon = {"daemon", "daemons over TLS", "drives in files", "live view in browsers", "live view on terminals",
                  "names of PCI functions", "tests"}
        # What is in a line is disabled together: parts that have nothing to do with one another. One folder, whose
        # checks of the compiler are not made again.
        done = set()
        for parts in ({"docs": {"manual pages"}, "pci": {"names of PCI functions"}, "nbdkit": {"nbdkit plugin"}},
                      {"tests": {"tests"}, "tls": {"daemons over TLS"}, "cuda": {"kernels and programs for CUDA"}},
                      {"uring": {"drives in files"}, "curses": {"live view on terminals"}},
                      {"web": {"live view in browsers"}, "probes": {"static probes"}},
                      {"systemd": set() if self.has_elogind() else daemon},
                      {"daemon": daemon}):
            with self.subTest(options=list(parts)):
                off = set()
                again = ["--reconfigure"] if done else []
                again += [f"-D{option}=auto" for option in done]
                done.update(parts)
                said = self.setup(*again, *(f"-D{option}=disabled" for option in parts))
                self.assertRegex(said, r"fio engine +: not built \(give -Dfio_source=FOLDER\)")
                for line in said.splitlines():
                    name, _, value = line.partition(":")
                    if value.strip() == "NO":
                        off.add(name.strip())
                if "cuda" not in parts:
                    off.discard("kernels and programs for CUDA")  # no package of a distribution: few have it
                self.assertEqual(off, set().union(*parts.values()))


class Late(Folder):
    def test_packages_that_come_after_the_first_build_are_seen(self):
        """What make demo, then make check do in one clone, with scdoc installed in between."""
        bin_dir = os.path.join(self.dir, "bin")
        programs.link_all(bin_dir, without=["scdoc"])
        configure = [os.path.join(SOURCE, "tools", "build", "configure.sh"), self.build, *QUICK, "-Dtests=disabled"]
        run("sh", *configure, cwd=SOURCE, env={**os.environ, "PATH": bin_dir})
        self.assertFalse(self.pages())
        run("sh", *configure, cwd=SOURCE)
        run("ninja", "-C", self.build, "docs/man/smartiod.8")
        self.assertIn("smartiod.8", self.pages())

    def pages(self):
        files = json.loads(run("meson", "introspect", "--installed", self.build))
        return {os.path.basename(f) for f in files if "/man/" in f}


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
