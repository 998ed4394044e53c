#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is installed: each header compiles alone in C and in C++, a program builds with pkg-config,
the library exports the declared functions and nothing else.

usage: install_test.py BUILD CC CXX
"""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, CC, CXX = sys.argv[1:4]
DEBIAN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools/debian")
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
# Names that programs define themselves.
TAKEN = """NO_FLAGS NO_CALLBACK NO_ARG NO_OFFSET SCI_NO_FLAGS SCI_NO_CALLBACK ADAPTER_NO
NO_CALLBACK_ARG TRUE FALSE boolean SISCI_CHECK SEOE""".split()
PROGRAM = r"""
#include <sisci_api.h>
#include <smartio/ext.h>
#include <smartio/guest.h>
#include <dis/dis_types.h>
int main(void)
{
	sci_error_t error = SCI_ERR_OK;
	void IN *nothing = NULL;
	SCIInitialize(0, &error);
	switch (error) {
	case SCI_ERR_NO_SUCH_INTNO: case SCI_ERR_REMOTE_BUSY: case SCI_ERR_OK: return 1;
	default: return error != SCI_ERR_NOT_INITIALIZED || nothing != NULL;
	}
}
"""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory(prefix="sio-install-")
        cls.root = os.path.join(cls.dir.name, "root")
        run("meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", cls.root)
        cls.pc = next(os.path.join(d, f) for d, _, files in os.walk(cls.root) for f in files
                      if f == "smartio.pc")
        cls.include = cls.variable("includedir")
        cls.lib = cls.variable("libdir")

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    @classmethod
    def variable(cls, name):
        return os.path.normpath(run("pkg-config", f"--variable={name}", cls.pc).strip())

    def test_packages_have_all(self):
        """Each file that is installed is in a Debian package, and in one."""
        patterns = {}
        for path in glob.glob(os.path.join(DEBIAN, "*.install")):
            with open(path, encoding="ascii") as f:
                patterns[os.path.basename(path)] = [line.split()[0] for line in f if line.startswith("usr/")]
        prefix = run("pkg-config", "--variable=prefix", self.pc).strip()
        for folder, _, files in os.walk(prefix):
            for name in files:
                path = re.sub("/lib(64)?/(?!x86_64|systemd)", "/lib/any/", "/usr/" + os.path.relpath(os.path.join(folder, name), prefix))[1:]
                path = path.replace("lib/x86_64-linux-gnu/", "lib/any/")
                if name == "accel-kernels.ptx" or "accelgpu" in name or "/bench/gpu" in folder or name == "fio-smartio.so":
                    # packages are built without CUDA, and without fio's source
                    continue
                has = [p for p, list_ in patterns.items() for w in list_
                       if fnmatch.fnmatch(path, w) or path.startswith(w + "/")]
                self.assertEqual(len(has), 1, f"{path} is in {has or 'no'} of tools/debian/*.install")

    def headers(self):
        return [os.path.relpath(os.path.join(d, f), self.include)
                for d, _, files in os.walk(self.include) for f in files]

    def compile(self, text, *command):
        return run(*command, "-", "-o", os.path.join(self.dir.name, "a.out"), input=text)

    def test_headers_compile_alone(self):
        headers = self.headers()
        for name in ("sisci_api.h", "sisci_types.h", "sisci_error.h", "dis/dis_types.h",
                     "smartio/ext.h", "smartio/gpu.h", "smartio/guest.h", "smartio/io.h", "smartio/nvme.h",
                     "smartio/uapi.h"):
            self.assertIn(name, headers)
        for name in headers:
            text = f"#include <{name}>\n#include <{name}>\nextern int something;\n"
            for command in ([CC, "-std=c11", "-xc"], [CXX, "-std=c++11", "-xc++"]):
                with self.subTest(header=name, command=command):
                    self.compile(text, *command, *STRICT, f"-I{self.include}", "-c")

    def test_programs_of_the_oldest_api_compile(self):
        """As C90, by names of that time."""
        text = """#include <sisci_api.h>
int main(void)
{
	struct sci_query_adapter query;
	query.localAdapterNo = 0;
	return (int)query.localAdapterNo;
}
"""
        self.compile(text, CC, "-ansi", "-xc", "-Wall", "-Wextra", "-Werror", f"-I{self.include}",
                     "-c")

    def test_headers_leave_names_alone(self):
        text = "".join(f"#include <{h}>\n" for h in self.headers())
        macros = run(CC, "-xc", "-dM", "-E", f"-I{self.include}", "-", input=text)
        defined = set(re.findall(r"^#define (\w+)", macros, re.M))
        self.assertEqual(defined & set(TAKEN), set())

    def test_types_come_without_flags(self):
        text = "#include <sisci_types.h>\n"
        macros = run(CC, "-xc", "-dM", "-E", f"-I{self.include}", "-", input=text)
        self.assertNotRegex(macros, r"#define (SCI_FLAG_|SCI_INFINITE|DIS_BROADCAST)")

    def test_a_program_builds_and_runs(self):
        """From where the files lie, which is not where they were installed to."""
        env = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.pc)}
        flags = run("pkg-config", "--cflags", "--libs", "smartio", env=env).split()
        self.build_and_run(PROGRAM, flags)
        flags = run("pkg-config", "--cflags", "--libs", "sisci", env=env).split()
        self.assertIn("-lsisci", flags)
        self.build_and_run(PROGRAM.replace("<dis/dis_types.h>", "<dis_types.h>"), flags)

    def test_the_layout_of_a_prefix_serves_makefiles(self):
        """What programs' Makefiles say, with one variable for the prefix."""
        prefix = self.variable("prefix")
        self.assertTrue(self.lib.startswith(prefix + "/"), self.lib)
        self.build_and_run(PROGRAM.replace("<dis/dis_types.h>", "<dis_types.h>"),
                           ["-D_REENTRANT", f"-I{prefix}/include", f"-I{prefix}/include/dis",
                            f"-L{self.lib}", "-lsisci"])

    def build_and_run(self, text, flags):
        flags = list(flags)
        sanitize = os.environ.get("SMARTIO_TEST_SANITIZE", "none")
        if sanitize != "none":
            flags.append(f"-fsanitize={sanitize}")
        program = os.path.join(self.dir.name, "program")
        for command in ([CC, "-xc"], [CXX, "-xc++"]):
            run(*command, *STRICT, "-", "-xnone", *flags, "-o", program, input=text)
            env = {**os.environ, "LD_LIBRARY_PATH": self.lib}
            env.pop("SMARTIO_SOCKET", None)
            run(program, env=env)

    @unittest.skipUnless(shutil.which("scdoc"), "scdoc is not installed")
    def test_each_function_has_a_manual_page(self):
        folder = next(os.path.join(d, "man3") for d, folders, _ in os.walk(self.root)
                      if "man3" in folders)
        with open(os.path.join(self.include, "sisci_api.h"), encoding="ascii") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        for name in sorted(set(re.findall(r"\b(SCI\w+)\(", text))):
            with self.subTest(function=name):
                with open(os.path.join(folder, name + ".3"), encoding="ascii") as f:
                    page = re.fullmatch(r"\.so man3/(\w+\.3)\n", f.read()).group(1)
                with open(os.path.join(folder, page), encoding="utf-8") as f:
                    self.assertIn(f"\\fB{name}\\fR()", f.read())

    def test_the_benchmark_runs(self):
        """From where the files lie, by the link in bin/: modelled, measured on a cluster, and by each program."""
        program = os.path.join(self.variable("prefix"), "bin", "smartio-bench")
        if not os.path.exists(program):
            self.skipTest("built without smartiod")
        out = os.path.join(self.dir.name, "results")
        env = {**os.environ, "LD_LIBRARY_PATH": self.lib}
        self.assertIn("default: what is installed", " ".join(run(program, "--help", env=env).split()))
        done = run(program, "--smoke", "--out", out, "fidelity", "training", "functions", "sisci", env=env, cwd="/")
        self.assertIn("two lenders", done)
        self.assertIn("two functions, two hosts", done)
        with open(os.path.join(out, "results.json"), encoding="utf-8") as f:
            results = json.load(f)
        self.assertEqual([e.get("failed") for e in results["experiments"]], [None] * 4)
        self.assertIn("smartio", results["about"]["commit"])

    def test_exports_are_what_is_declared(self):
        text = ""
        for name in ("sisci_api.h", "smartio/ext.h", "smartio/gpu.h", "smartio/guest.h"):
            with open(os.path.join(self.include, name), encoding="ascii") as f:
                text += re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        declared = set(re.findall(r"\b((?:SCI|SetSci|smartio_)\w+)\(", text))
        symbols = run("nm", "-D", "--defined-only",
                      os.path.join(self.lib, "libsmartio.so.0"))
        exported = {line.split()[2] for line in symbols.splitlines()}
        versions = {s for s in exported if "@" not in s and s.startswith("SMARTIO_")}
        names = {s.split("@")[0] for s in exported - versions}
        decorated = {n for n in names if n.startswith("_SISCI_PUBLIC_")}
        self.assertEqual(names - decorated, declared)
        functions = {n for n in declared if n.startswith("SCI")}
        self.assertEqual({n for n in decorated if "_FUNC_" in n},
                         {f"_SISCI_PUBLIC_FUNC_{kind}_{n}" for n in functions
                          for kind in ("ST", "MT")})
        constants = {n for n in decorated if "_CONST_" in n}
        for name in ("SCI_FLAG_AUTO_ID", "SCI_INFINITE_TIMEOUT", "SCI_Q_ADAPTER_NODEID"):
            self.assertIn("_SISCI_PUBLIC_CONST_" + name, constants)
        self.assertEqual(decorated, {n for n in decorated if "_FUNC_" in n} | constants)
        self.assertEqual({s.split("@@")[1] for s in exported - versions}, {"SMARTIO_0.1"})
        header = run("readelf", "-d", os.path.join(self.lib, "libsmartio.so.0"))
        self.assertIn("[libsmartio.so.0]", header)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
