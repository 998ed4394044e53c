#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The programs for GPUs: what they do by processors and models, and their words where there is no GPU. No time is
judged. Where there are GPUs, they run on these, too.

usage: gpu_test.py BUILD FOLDER...
The folders are those of the toolkit's libraries.
"""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "base"))
from cluster_base import Cluster  # noqa: E402

BUILD = sys.argv[1]
# The toolkit's stub of the driver, which is there to be linked with.
STUB = next((path for path in (os.path.join(folder, "libcuda.so") for folder in sys.argv[2:]) if os.path.exists(path)), None)
PINGPONG = os.path.join(BUILD, "bench", "gpu", "gpu-pingpong")
NVME = os.path.join(BUILD, "bench", "gpu", "gpu-nvme")
ROUNDS = 500
TOPOLOGY = """
cluster: gpu
switches: [sw0]
hosts:
  one: {ram: 64M, devices: {nvme0: {type: nvme, size: 16M}, acc0: {type: accelerator, size: 1M}}}
  two: {ram: 64M, devices: {acc1: {type: accelerator, size: 1M}}}
"""


def run(program, *args, **env):
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, **env})


def gpus():
    """How many CUDA says that there are."""
    n = 0
    while run(PINGPONG, "--rounds", "1", "pair", str(n), str(n)).returncode == 0:
        n += 1
    return n


class WithoutGpu(unittest.TestCase):
    """Their words."""

    def refused(self, words, program, *args, code=1, **env):
        done = run(program, *args, **env)
        with self.subTest(args=args):
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stdout, "")

    @unittest.skipIf(gpus(), "there are GPUs")
    def test_no_driver(self):
        for mode in (["pair", "0", "0"], ["processes", "0"], ["segment", "0"], ["begin", "0", "4"]):
            # Who asks the daemon first has no words about CUDA.
            words = "SmartIO" if mode[0] in ("segment", "begin") else "no GPU: CUDA says: "
            self.refused(words, PINGPONG, *mode, SMARTIO_SOCKET="/nowhere")
        self.refused("no GPU: CUDA says: ", NVME, "0", "nvme0")
        self.refused("cudaErrorInsufficientDriver", NVME, "0", "nvme0")

    @unittest.skipIf(gpus(), "there are GPUs")
    @unittest.skipUnless(STUB, "no stub of the driver")
    def test_a_driver_that_is_none(self):
        with tempfile.TemporaryDirectory(prefix="sio-gpu-") as folder:
            os.symlink(STUB, os.path.join(folder, "libcuda.so.1"))
            self.refused("cudaErrorStubLibrary", PINGPONG, "pair", "0", "0", LD_LIBRARY_PATH=folder)

    def test_wrong_arguments(self):
        self.refused("usage:", PINGPONG, code=2)
        self.refused("usage:", PINGPONG, "pair", "cpu", code=2)
        self.refused("-1: a number", PINGPONG, "--rounds", "-1", "pair", "cpu", "cpu", code=2)
        self.refused("--rounds 0", PINGPONG, "--rounds", "0", "pair", "cpu", "cpu", code=2)
        self.refused("the number of a GPU", PINGPONG, "processes", "cpu", code=2)
        self.refused("usage:", NVME, "cpu", code=2)
        self.refused("a power of 2", NVME, "--bytes", "1000", "cpu", "nvme0", code=2)
        self.refused("in all at most", NVME, "--commands", "10000000", "cpu", "nvme0", code=2)


class Programs(unittest.TestCase):
    def rows(self, text):
        return list(csv.DictReader(text.splitlines()))

    def check_row(self, text, label):
        (row,) = self.rows(text)
        self.assertIn(label, row["label"])
        self.assertEqual(int(row["rounds"]), ROUNDS)
        self.assertTrue(0 <= int(row["least"]) <= int(row["median"]) <= int(row["p99"]) <= int(row["most"]), row)
        self.assertGreater(int(row["most"]), 0)

    def test_two_threads(self):
        with tempfile.TemporaryDirectory(prefix="sio-gpu-") as folder:
            raw = os.path.join(folder, "raw")
            done = run(PINGPONG, "--rounds", str(ROUNDS), "--raw", raw, "pair", "cpu", "cpu")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_row(done.stdout, "two threads of processors")
            with open(raw, encoding="ascii") as f:
                ticks = [int(line) for line in f]
        self.assertEqual(len(ticks), ROUNDS)
        self.assertEqual(max(ticks), int(self.rows(done.stdout)[0]["most"]))

    def test_on_gpus(self):
        n = gpus()
        if not n:
            self.skipTest("there is no GPU")
        modes = [(["processes", "0"], "one GPU; two processes")]
        if n > 1:
            modes.append((["pair", "0", "1"], "two GPUs"))
        for mode, label in modes:
            done = run(PINGPONG, "--rounds", str(ROUNDS), *mode)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_row(done.stdout, label)

    def test_on_a_cluster(self):
        with Cluster(BUILD, TOPOLOGY) as c:
            rounds = ("--rounds", str(ROUNDS))
            self.check_row(c.finish(c.start("one", PINGPONG, *rounds, "segment", "cpu")), "a segment")
            answer = c.start("two", PINGPONG, *rounds, "answer", "cpu", "4")
            self.check_row(c.finish(c.start("one", PINGPONG, *rounds, "begin", "cpu", "8")), "two hosts")
            c.finish(answer)
            self.check_row(c.finish(c.start("two", PINGPONG, *rounds, "models", "acc0", "acc1")), "models")
            for host in ("one", "two") if gpus() else ():
                self.check_row(c.finish(c.start(host, PINGPONG, *rounds, "segment", "0")), "a GPU and a processor")

    def test_a_drive(self):
        """Of this host, and of another one; by a processor, and by a GPU where there is one."""
        with Cluster(BUILD, TOPOLOGY) as c:
            c.start("one", c.nvme, "manager", "nvme0")
            for host in ("one", "two"):
                for device in ("cpu", "0")[:2 if gpus() else 1]:
                    with self.subTest(host=host, device=device):
                        done = c.finish(c.start(host, NVME, "--commands", "200", "--write", device, "nvme0"))
                        self.assertEqual([r["what"] for r in self.rows(done)], ["write", "read"])
                        done = c.finish(c.start(host, NVME, "--commands", "100", "--bytes", "8192", "--first", "8", device,
                                                "nvme0"))
                        self.assertEqual([r["what"] for r in self.rows(done)], ["read"])
            child = c.start("two", NVME, "--commands", "8000", "cpu", "nvme0")
            with self.assertRaisesRegex(AssertionError, "the drive has"):
                c.finish(child)
            child = c.start("two", NVME, "cpu", "acc0")
            with self.assertRaisesRegex(AssertionError, "acc0"):
                c.finish(child)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
