#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fio's engine: fio verifies what it wrote to a drive of another host, and the drive has what fio says that it did."""
import json
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "cli"))
import base  # noqa: E402

NVME = os.environ["SMARTIO_NVME"]
ENGINE = os.environ["SMARTIO_FIO_ENGINE"]
JOBS = os.path.join(HERE, "..", "..", "..", "examples", "fio")
MIB = 1 << 20

TOPOLOGY = """cluster: test
switches: [sw0]
hosts:
  lender:
    iommu: on
    devices:
      nvme0: {type: nvme, namespaces: [{size: 64M}, {size: 16M, block: 4096}], cmb: 1M}
      mem0: {type: memory, size: 1M}
  client1: {ram: 128M}
  client2: {ram: 64M}
"""


class Fio(base.CommandTest):
    def setUp(self):
        super().setUp()
        self.env["ENGINE"] = ENGINE
        self.smartio("cluster", "up", self.file("test.yaml", TOPOLOGY))
        self.manager = self.manage()

    def manage(self):
        manager = self.start("run", "-n", "client2", "--", NVME, "manager", "nvme0")
        said = manager.stdout.readline()
        if "ready" not in said:
            self.fail(f"no manager: {said}{manager.communicate(timeout=60)}")
        return manager

    def fio(self, *options, status=0, engine=ENGINE, node="client1", words=("--name=job", "--filename=nvme0")):
        """A job of options. Return: its results, and what fio said besides."""
        out = os.path.join(self.dir, "out.json")
        if os.path.exists(out):
            os.unlink(out)
        done = self.smartio("run", "-n", node, "--", "fio", "--output-format=json", f"--output={out}",
                            f"--ioengine=external:{engine}", *words, *options, status=None, cwd=self.dir)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        jobs = []
        with open(out, encoding="utf-8") as f:
            text = f.read()
        if "{\n" in text:
            jobs = json.loads(text[text.index("{\n"):])["jobs"]
        return jobs, done.stdout + done.stderr + text

    def file_of_jobs(self, name, *options):
        done = self.smartio("run", "-n", "client1", "--", "fio", "--output-format=json", os.path.join(JOBS, name), *options,
                            cwd=self.dir)
        (job,) = json.loads(done.stdout[done.stdout.index("{\n"):])["jobs"]
        self.assertEqual(job["error"], 0)
        return job

    def blocks(self, offset, length, *options):
        """What the drive has there, by the driver's own tool on its own host."""
        out = os.path.join(self.dir, "blocks")
        self.smartio("run", "-n", "lender", "--", NVME, "copy-out", "nvme0", out, "-s", str(offset), "-l", str(length),
                     *options)
        with open(out, "rb") as f:
            return f.read()

    def counted(self):
        drive = next(d for d in self.json("stats")["devices"] if d["name"] == "nvme0")
        return {name: int(value, 0) for name, value in drive["counters"].items()}


class Jobs(Fio):
    def test_examples(self):
        """As users copy them."""
        job = self.file_of_jobs("verify.fio")
        self.assertGreater(job["write"]["total_ios"], 0)
        # Written blocks are read a second time, to be checked.
        self.assertGreater(job["read"]["io_bytes"], job["write"]["io_bytes"])
        for part in range(4):
            self.assertTrue(any(self.blocks(part * 8 * MIB, 8 * MIB)), part)
        self.assertFalse(any(self.blocks(32 * MIB, 32 * MIB)))
        job = self.file_of_jobs("latency.fio", "--runtime=0.2")
        self.assertGreater(job["read"]["clat_ns"]["percentile"]["50.000000"], 0)
        self.assertGreater(job["iodepth_level"]["1"], 99)
        job = self.file_of_jobs("depth32.fio", "--runtime=0.2")
        self.assertGreater(job["iodepth_level"]["32"] + job["iodepth_level"]["16"] + job["iodepth_level"]["8"], 50)

    def test_data_and_places(self):
        """The bytes are fio's, for processes and threads, wherever the queues lie; several jobs share what may be."""
        for i, options in enumerate((["--thread"], ["--interrupt=1"], ["--sq=local", "--cq=lender"], ["--sq=cmb"],
                                     ["--sq=device:mem0"], ["--survive=1", "--share=1", "--iodepth=8"],
                                     ["--thread", "--numjobs=3", "--offset_increment=64k", "--group_reporting"],
                                     ["--iomem_align=512", "--bs=512"], ["--writefua=1", "--readfua=1"],
                                     ["--cmd_timeout=1000"])):
            with self.subTest(options=options):
                byte = i + 1
                (job,), _ = self.fio("--rw=write", "--bs=4k", "--iodepth=4", "--size=64k", f"--buffer_pattern={byte:#04x}",
                                     f"--offset={i}m", *options)
                n = 3 if "--numjobs=3" in options else 1
                self.assertEqual(job["write"]["io_bytes"], n * 65536)
                self.assertEqual(self.blocks(i * MIB, MIB), bytes([byte]) * n * 65536 + bytes(MIB - n * 65536))

    def test_other_namespace(self):
        self.fio("--nsid=2", "--rw=randrw", "--bs=4k", "--verify=crc32c", "--verify_state_save=0", "--size=1m")
        self.assertTrue(any(self.blocks(0, MIB, "-n", "2")))
        self.assertFalse(any(self.blocks(0, MIB)))
        _, said = self.fio("--nsid=2", "--rw=read", "--bs=512", "--size=1m", status=1)
        self.assertIn("bs=512: multiples of the namespace's block, 4096 bytes, are right", said)

    def test_other_commands(self):
        """Trim, zeroes, Verify and flushes are the drive's own."""
        before = self.counted()
        self.fio("--rw=write", "--bs=64k", "--size=1m", "--buffer_pattern=0xff")
        self.fio("--rw=trim", "--bs=4k", "--size=64k", "--offset=64k", "--iodepth=8")
        self.fio("--rw=write", "--write_mode=zeroes", "--bs=64k", "--size=128k", "--offset=512k", "--fsync=1")
        self.fio("--rw=write", "--write_mode=verify", "--bs=4m", "--size=4m", "--iodepth=2")
        want = bytearray(b"\xff" * MIB)
        want[65536:131072] = bytes(65536)
        want[524288:655360] = bytes(131072)
        self.assertEqual(self.blocks(0, MIB), bytes(want))
        after = self.counted()
        self.assertEqual([after[f"commands_{name}"] - before[f"commands_{name}"]
                          for name in ("deallocate", "write_zeroes", "verify", "flush")], [16, 2, 1, 1])


class Wrong(Fio):
    def refuses(self, say, *options, **more):
        _, said = self.fio("--rw=randrw", "--size=1m", *options, status=1, **more)
        self.assertIn(f"smartio: {say}", said)
        self.assertNotIn("got signal", said)

    def test_options(self):
        self.refuses("filename=NAME is wanted", words=["--name=job"])
        self.refuses("filename=NAME is wanted", words=["--name=job", "--filename=nvme0:nvme1"])
        self.refuses('no device is called "nvme9"', words=["--name=job", "--filename=nvme9"])
        self.refuses("bs=1000: multiples of the namespace's block, 512 bytes, are right", "--bs=1000")
        self.refuses("bs=2000: multiples", "--bsrange=512-2000")
        self.refuses("offset=100: multiples", "--offset=100")
        self.refuses("bs=2097152: up to 1048576 bytes", "--bs=2m", "--size=4m")
        self.refuses("bs=67108864: up to 65536 blocks of 512 bytes", "--bs=1m,64m", "--write_mode=zeroes", "--size=64m")
        self.refuses("nsid=3: nvme0 has no such namespace", "--nsid=3")
        self.refuses("sq=here: one of auto, local, lender, cmb, device:NAME is right", "--sq=here")
        self.refuses("alone=1 means something with survive=1 alone", "--alone=1")
        self.refuses("share=1 means something with survive=1 alone", "--share=1")
        self.refuses("wait=4294968: 0 to 4294967 seconds are right", "--wait=4294968")
        self.refuses("mem= cannot be chosen", "--mem=mmap")
        self.refuses("depth 2000:", "--iodepth=2000")
        self.refuses("no memory of", "--bs=1m", "--iodepth=200", "--size=200m")
        self.refuses("no memory of", "--bs=1m", "--iodepth=200", "--size=200m", "--thread")
        self.refuses("adapter 0 of this host is the only one", "--multipath=1")
        done = subprocess.run(["fio", f"--ioengine=external:{ENGINE}", "--name=job", "--filename=nvme0", "--size=1m"],
                              env=self.env, capture_output=True, text=True, timeout=60, check=False, cwd=self.dir)
        self.assertEqual(done.returncode, 1)
        self.assertIn("smartio: no connection to this host's smartiod", done.stdout + done.stderr)

    def test_offsets_of_a_log(self):
        """What only the job itself shows to be no multiple of a block."""
        log = self.file("log", "fio version 2 iolog\nnvme0 add\nnvme0 open\nnvme0 read 100 512\nnvme0 close\n")
        self.refuses("nvme0: the offset or length is no multiple of its blocks", f"--read_iolog={log}")

    def test_another_fio(self):
        """Structures differ between versions of fio whose interface has the same number."""
        version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
        other = version[:-1] + "x"
        with open(ENGINE, "rb") as f:
            data = f.read()
        self.assertIn(version.encode() + b"\0", data)
        path = os.path.join(self.dir, "other.so")
        with open(path, "wb") as f:
            f.write(data.replace(version.encode() + b"\0", other.encode() + b"\0"))
        libraries = os.path.dirname(os.path.dirname(ENGINE))
        self.env["LD_LIBRARY_PATH"] = f"{libraries}/nvme-user:{os.path.dirname(libraries)}/libsmartio"
        self.refuses(f"this engine was compiled for {other}, and this is {version}", engine=path)

    def test_status_of_the_drive(self):
        """It is named, and a job that may go on does."""
        self.smartio("fault", "device", "nvme0", "error", "--status", "0x281", "--opcode", "read")
        jobs, said = self.fio("--rw=read", "--bs=4k", "--size=64k", status=1)
        self.assertIn("io_u error on file nvme0: Input/output error: read offset=0, buflen=4096", said)
        self.assertIn("smartio: status 0x281: ", said)
        self.assertEqual(jobs[0]["error"], 5)
        self.smartio("fault", "device", "nvme0", "error", "--status", "0x281", "--opcode", "read", "--count", "3")
        jobs, _ = self.fio("--rw=read", "--bs=4k", "--size=64k", "--continue_on_error=io")
        self.assertEqual(jobs[0]["total_err"], 3)
        self.assertEqual(jobs[0]["read"]["total_ios"], 16)


class Deaths(Fio):
    def running(self, offset, *options):
        """A job that goes on until it is ended, once it has written something. Nothing tells when: look."""
        child = self.start("run", "-n", "client1", "--", "fio", f"--ioengine=external:{ENGINE}", "--name=job", "--filename=nvme0",
                           "--rw=randrw", "--bs=4k", "--iodepth=8", f"--offset={offset}", "--size=1m", "--time_based",
                           "--runtime=600", *options, cwd=self.dir)
        while not any(self.blocks(offset, MIB)):
            self.assertIsNone(child.poll())
        return child

    def wait_writes(self):
        """Until more is written than now."""
        begin = self.counted()["commands_write"]
        while self.counted()["commands_write"] < begin + 20:
            os.sched_yield()

    def kill_manager(self):
        self.manager.send_signal(signal.SIGKILL)
        self.manager.wait(60)

    def test_another_manager(self):
        """Its reset ends a job, unless its queue survives."""
        ends = self.running(0)
        goes_on = self.running(2 * MIB, "--survive=1", "--alone=1", "--wait=60")
        self.kill_manager()
        self.manager = self.manage()
        out, err = ends.communicate(timeout=60)
        self.assertNotEqual(ends.returncode, 0, out + err)
        self.assertIn("smartio: ", out + err)
        self.assertIn("Connection reset by peer", out + err)
        self.wait_writes()
        goes_on.send_signal(signal.SIGINT)
        out, err = goes_on.communicate(timeout=60)
        self.assertIn("err= 0", out + err)

    def test_no_manager(self):
        self.kill_manager()
        _, said = self.fio("--rw=read", "--size=1m", "--wait=0", status=1)
        self.assertIn("smartio: no manager serves nvme0", said)


if __name__ == "__main__":
    if not ENGINE:
        print("skipped: this build has no fio engine; meson's option fio_source gives it one")
        sys.exit(77)
    if not shutil.which("fio"):
        print("skipped: fio is missing")
        sys.exit(77)
    base.main()
