#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each state of machines that `smartio doctor` knows, brought about: of real devices and figures in a made tree of /proc
and /sys; of this machine by taking system calls, limits and mounts from the command."""
import ctypes
import errno
import os
import re
import resource
import shutil
import struct
import subprocess
import unittest
import base
from doctor import BAD, Examined

# System calls of x86-64.
SYSINFO, PRCTL, SECCOMP, MEMFD_CREATE, USERFAULTFD, PIDFD_OPEN = 99, 157, 317, 319, 323, 434
PR_SET_NO_NEW_PRIVS, SECCOMP_SET_MODE_FILTER = 38, 1


def forbid(calls):
    """From now on these fail with EPERM, here and in what is executed."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, equal, give = 0x20, 0x15, 0x06  # BPF: LD|W|ABS, JMP|JEQ|K, RET|K
    code = [(load, 0, 0, 0)]
    code += [(equal, len(calls) - i, 0, call) for i, call in enumerate(calls)]
    code += [(give, 0, 0, 0x7fff0000), (give, 0, 0, 0x00050000 | errno.EPERM)]
    text = b"".join(struct.pack("<HBBI", *c) for c in code)
    place = ctypes.create_string_buffer(text)
    program = struct.pack("<H6xQ", len(code), ctypes.addressof(place))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(SECCOMP, SECCOMP_SET_MODE_FILTER, 0, program):
        raise OSError(ctypes.get_errno(), "seccomp")


class Machines(Examined):
    """Real devices and figures, in a made tree. In it nothing is wrong, until something is."""

    BDF = "0000:05:00.0"
    OTHER = "0000:05:00.1"
    DEVICE = f"sys/bus/pci/devices/{BDF}"
    CPU = "sys/devices/system/cpu"
    CLOCK = "sys/devices/system/clocksource/clocksource0"
    THP = "sys/kernel/mm/transparent_hugepage"

    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.dir, "root")
        version = self.smartio("--version").stdout.split()[1]
        files = {
            "etc/group": f"root:x:0:\nsmartio:x:{os.getegid()}:\n",
            "dev/smartio0": "",
            "proc/cmdline": "quiet ro root=/dev/sda1\n",
            "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme constant_tsc\n",
            "proc/meminfo": "MemTotal: 8000000 kB\nHugePages_Total:       0\nHugePages_Free:        0\n",
            "proc/stat": "cpu  1000 0 1000 100000 0 0 0 10 0 0\ncpu0 1000 0 1000 100000 0 0 0 10 0 0\n",
            "sys/module/smartio/version": f"{version}\n",
            "sys/module/smartio/parameters/pool": "(null)\n",
            f"{self.DEVICE}/class": "0x010802\n",
            f"{self.DEVICE}/driver_override": "smartio\n",
            "sys/bus/pci/drivers/smartio/bind": "",
            "sys/bus/pci/drivers/nvme/bind": "",
            "sys/kernel/iommu_groups/3/type": "DMA\n",
            f"sys/kernel/iommu_groups/3/devices/{self.BDF}": "",
            f"{self.CLOCK}/current_clocksource": "tsc\n",
            f"{self.CLOCK}/available_clocksource": "tsc hpet acpi_pm \n",
            f"{self.CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
            f"{self.CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
            f"{self.CPU}/intel_pstate/no_turbo": "1\n",
            f"{self.THP}/enabled": "always [madvise] never\n",
            f"{self.THP}/shmem_enabled": "always within_size [advise] never deny force\n",
        }
        for path, text in files.items():
            self.put(path, text)
        self.link(f"{self.DEVICE}/driver", "../../drivers/smartio")
        self.link(f"{self.DEVICE}/iommu_group", "../../../../kernel/iommu_groups/3")

    def put(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)

    def link(self, path, target):
        path = os.path.join(self.root, path)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(target, path)

    def remove(self, path):
        path = os.path.join(self.root, path)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def look(self):
        return self.findings("--root", self.root, "--hardware", "--measure")

    def is_only(self, state, evidence, mend):
        found = self.look()
        self.assertEqual(list(found), [state], found)
        self.assertIn(evidence, found[state]["evidence"])
        self.assertIn(mend, found[state]["mend"])

    def test_healthy(self):
        self.assertEqual(self.look(), {})
        self.put("proc/cpuinfo", "flags : fpu hypervisor\n")
        self.assertEqual(self.findings("--root", self.root), {}, "figures were not asked for")

    def test_nothing_is_meant(self):
        """A machine without the module and devices for it: none of its states applies."""
        self.remove("sys/module")
        self.remove("sys/kernel/iommu_groups")
        self.put(f"{self.DEVICE}/driver_override", "(null)\n")
        self.assertEqual(self.findings("--root", self.root), {})
        self.assertIn("module-missing", self.look())

    def test_module_missing(self):
        self.remove("sys/module")
        self.is_only("module-missing", "no /sys/module/smartio", "sudo modprobe smartio")

    def test_module_version(self):
        self.put("sys/module/smartio/version", "0.0.9\n")
        self.is_only("module-version", "smartio.ko is 0.0.9, this is smartio ", "sudo rmmod smartio")
        self.remove("sys/module/smartio/version")
        self.is_only("module-version", "tells no version", "make -C shim clean modules")
        # The package's is compiled already.
        self.put("proc/sys/kernel/osrelease", "6.1.0-44-amd64\n")
        for end in ("", ".xz"):
            self.put(f"lib/modules/6.1.0-44-amd64/updates/dkms/smartio.ko{end}", "")
            self.assertEqual(self.look()["module-version"]["mend"], "sudo rmmod smartio && sudo modprobe smartio")
            self.remove("lib/modules")

    def test_node_missing(self):
        self.remove("dev/smartio0")
        self.is_only("node-missing", "there is no /dev/smartio0", "udevadm trigger")

    def test_group(self):
        self.put("etc/group", "root:x:0:\nsmart:x:7:\n")
        self.is_only("no-group", "there is no group smartio", "sudo groupadd --system smartio")

    @unittest.skipIf(os.geteuid() == 0, "root needs no group")
    def test_not_a_member(self):
        self.put("etc/group", "smartio:x:12345:\n")
        self.is_only("no-group", "are not in group smartio", "sudo usermod -a -G smartio $USER")

    def test_iommu_off(self):
        self.remove("sys/kernel/iommu_groups")
        self.remove(f"{self.DEVICE}/iommu_group")
        self.put("proc/meminfo", "HugePages_Total: 512\nHugePages_Free: 500\n")
        self.is_only("iommu-off", "/sys/kernel/iommu_groups is empty", "intel_iommu=on")
        self.put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: constant_tsc\n")
        self.is_only("iommu-off", "/sys/kernel/iommu_groups is empty", "reboot --firmware-setup")

    def test_iommu_passthrough(self):
        self.put("sys/kernel/iommu_groups/3/type", "identity\n")
        self.is_only("iommu-passthrough", f"{self.BDF}: IOMMU group 3 is of type identity",
                     f"device add {self.BDF}")
        # Before a device is given to the module, its kernel's default tells.
        self.put("sys/kernel/iommu_groups/3/type", "DMA\n")
        self.put("proc/cmdline", "ro iommu=pt quiet\n")
        self.assertEqual(self.look(), {}, "the group of its device is translated")
        self.put(f"{self.DEVICE}/driver_override", "(null)\n")
        self.link(f"{self.DEVICE}/driver", "../../drivers/nvme")
        found = self.look()
        self.assertEqual(sorted(found), ["iommu-passthrough", "no-device"])
        self.assertIn("iommu=pt", found["iommu-passthrough"]["evidence"])

    def test_iommu_shared(self):
        self.put(f"sys/kernel/iommu_groups/3/devices/{self.OTHER}", "")
        self.is_only("iommu-shared", f"{self.BDF} is in one IOMMU group with {self.OTHER}",
                     f"lspci -D -s {self.BDF}")

    def test_other_driver(self):
        self.link(f"{self.DEVICE}/driver", "../../drivers/nvme")
        self.is_only("other-driver", f"{self.BDF} is meant for smartio, and driver nvme has it",
                     f"smartio device add {self.BDF}")
        self.remove(f"{self.DEVICE}/driver")
        self.is_only("other-driver", "no driver has it", f"smartio device add {self.BDF}")

    def test_unfinished(self):
        self.put(f"run/smartiod/device-{self.BDF}", "DMA-FQ\n")
        self.put(f"run/smartiod/device-{self.BDF}.underway.new", "")
        self.assertEqual(self.look(), {}, "none of these is a change that was begun")
        self.put(f"run/smartiod/device-{self.BDF}.underway", "smartio\n")
        self.is_only("unfinished", f"the driver of {self.BDF} has begun and not ended",
                     f"smartio device remove {self.BDF}")

    def test_no_device(self):
        self.put(f"{self.DEVICE}/driver_override", "(null)\n")
        self.link(f"{self.DEVICE}/driver", "../../drivers/nvme")
        self.is_only("no-device", f"drive {self.BDF}", f"smartio device add {self.BDF}")
        self.put(f"{self.DEVICE}/class", "0x020000\n")
        self.is_only("no-device", "the module has no device", "lspci -D")

    def test_no_hugepages(self):
        self.put("proc/meminfo", "HugePages_Total: 512\nHugePages_Free: 0\n")
        self.is_only("no-hugepages", "all 512 huge pages are in use", "sysctl vm.nr_hugepages=")
        self.remove("sys/kernel/iommu_groups")
        self.put("proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\n")
        self.assertEqual(sorted(self.look()), ["iommu-off", "no-hugepages"])
        self.put("sys/module/smartio/parameters/pool", "0x40000000@0x100000000\n")
        self.assertEqual(sorted(self.look()), ["iommu-off"])

    def vfio(self):
        """The same machine without the module, whose drive was added with --vfio."""
        self.remove("sys/module")
        self.remove("dev/smartio0")
        self.put(f"run/smartiod/vfio/{self.BDF}", "a drive\n")
        self.put(f"{self.DEVICE}/driver_override", "vfio-pci\n")
        self.put("sys/bus/pci/drivers/vfio-pci/bind", "")
        self.link(f"{self.DEVICE}/driver", "../../drivers/vfio-pci")

    def said(self, state):
        """(verdict, evidence) of a state that is no trouble."""
        done = self.smartio("doctor", "--json", "--root", self.root, "--hardware", status=None)
        return next((f["verdict"], f["evidence"]) for f in self.document(done.stdout)["findings"]
                    if f["state"] == state)

    def world(self):
        return self.said("world")[1]

    def test_world(self):
        self.assertIn("smartio.ko: it is loaded", self.world())
        self.vfio()
        self.assertIn("VFIO: smartio.ko is not loaded", self.world())
        self.remove("run/smartiod/vfio")
        self.assertIn("none: smartio.ko is not loaded", self.world())

    def test_vfio(self):
        self.vfio()
        self.assertEqual(self.look(), {})
        verdict, evidence = self.said("vfio-trust")
        self.assertEqual(verdict, "note")
        self.assertIn(f"{self.BDF}: a program that has borrowed it can reach all", evidence)
        self.assertIn(f"{self.BDF}: its IOMMU group", self.said("vfio-backend")[1])
        self.put("dev/iommu", "")
        self.put("dev/vfio/devices/vfio3", "")
        self.assertIn(f"{self.BDF}: its IOMMU group", self.said("vfio-backend")[1], "the node is another's")
        self.put(f"{self.DEVICE}/vfio-dev/vfio3/uevent", "")
        self.assertIn(f"{self.BDF}: iommufd", self.said("vfio-backend")[1])
        self.put("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n")
        self.is_only("vfio-unsafe", "is Y", "echo N | sudo tee /sys/module/vfio/parameters/")
        self.put("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n")
        self.link(f"{self.DEVICE}/driver", "../../drivers/nvme")
        self.is_only("vfio-driver", "driver nvme has it", f"device add {self.BDF} --vfio")
        self.remove("sys/bus/pci/drivers/vfio-pci")
        self.assertIn("vfio-missing", self.look())

    def test_clocksource(self):
        self.put(f"{self.CLOCK}/current_clocksource", "hpet\n")
        self.is_only("clocksource", "hpet; there are tsc hpet acpi_pm",
                     "echo tsc | sudo tee /sys/devices/system/clocksource/")
        self.put(f"{self.CLOCK}/available_clocksource", "hpet acpi_pm \n")
        self.is_only("clocksource", "hpet", "tsc=reliable")

    def test_frequency(self):
        self.put(f"{self.CPU}/cpu1/cpufreq/scaling_governor", "powersave\n")
        self.is_only("frequency", "1 of 2 processors change their frequency (governor powersave of cpu1)",
                     "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq")

    def test_turbo(self):
        self.put(f"{self.CPU}/intel_pstate/no_turbo", "0\n")
        self.is_only("turbo", "no_turbo is 0", "echo 1 | sudo tee")
        self.remove(f"{self.CPU}/intel_pstate")
        self.put(f"{self.CPU}/cpufreq/boost", "1\n")
        self.is_only("turbo", "boost is 1", "echo 0 | sudo tee")

    def test_shared_processors(self):
        self.put("proc/stat", "cpu  1000 0 1000 100000 0 0 0 1000 0 0\n")
        self.is_only("stolen-time", "1000 of 103000 ticks since boot were stolen", "vmstat")
        self.put("proc/stat", "cpu  1000 0 1000 100000 0 0 0 1 0 0\n")
        self.put("proc/cpuinfo", "flags : fpu hypervisor\n")
        self.is_only("shared-processors", "flag 'hypervisor'", "systemd-detect-virt")
        self.put("sys/hypervisor/type", "xen\n")
        self.is_only("shared-processors", "hypervisor xen", "systemd-detect-virt")

    def test_small_pages(self):
        self.put(f"{self.THP}/shmem_enabled", "always within_size advise [never] deny force\n")
        self.is_only("small-pages", "[never]", "shmem_enabled")


class ThisMachine(Examined):
    def test_module_has_our_version(self):
        with open(os.path.join(base.HERE, "../../shim/port.c"), encoding="utf-8") as f:
            self.assertEqual(re.search(r'^MODULE_VERSION\("(.*?)"\)', f.read(), re.M)[1],
                             self.smartio("--version").stdout.split()[1])

    @unittest.skipIf(os.path.exists("/sys/module/smartio"), "real devices are used here")
    def test_hardware_without_module(self):
        found = self.findings("--hardware", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_MEMLOCK, (65536, 65536)))
        self.assertLessEqual({"module-missing", "few-locked-memory", "daemon-dead"}, set(found))
        self.assertIn("64K a program", found["few-locked-memory"]["evidence"])
        self.assertIn(found["daemon-dead"]["mend"], ("sudo smartiod --shim", "sudo systemctl restart smartiod"))

    @unittest.skipIf(os.geteuid() or os.path.exists("/sys/module/smartio"), "root alone mounts, and no real devices")
    def test_the_service_is_started_where_there_is_one(self):
        script = ("mount -t tmpfs none /etc/systemd && mkdir /etc/systemd/system && "
                  f"touch /etc/systemd/system/smartiod.service && exec {base.TOOL} doctor --hardware")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=self.env, capture_output=True, text=True,
                              check=False)
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            self.skipTest(done.stderr)
        self.assertRegex(done.stdout, r"(?m)^BAD +daemon-dead .*\n.*\n +mend: sudo systemctl restart smartiod$")

    def test_each_state_has_its_test(self):
        known = {f["state"] for f in self.json("doctor")["findings"]}
        text = ""
        for name in ("doctor_cluster_test.py", "doctor_machine_test.py", "usage_test.py", "../system/wake_test.py"):
            with open(os.path.join(base.HERE, name), encoding="utf-8") as f:
                text += f.read()
        self.assertEqual([s for s in sorted(known) if not re.search(rf"[\"+ ]{s}[\" ]", text)], [])

    def test_long_path(self):
        path = os.path.join(self.dir, "x" * 80)
        os.mkdir(path, 0o700)
        found = self.only("long-path", env={"XDG_RUNTIME_DIR": path})
        self.assertIn("a socket's path may have 107", found["evidence"])

    def forbidden(self, *calls):
        """What is found where the kernel has not these system calls, as in some containers."""
        return self.findings(preexec_fn=lambda: forbid(calls))

    @unittest.skipUnless(os.uname().machine == "x86_64", "numbers of system calls")
    def test_containers(self):
        for state, call, say in [("no-sealing", MEMFD_CREATE, "not permitted"),
                                 ("no-pidfd", PIDFD_OPEN, "pidfd_open: "),
                                 ("no-subreaper", PRCTL, "PR_SET_CHILD_SUBREAPER: "),
                                 ("little-memory", SYSINFO, "0, 0 of it free")]:
            with self.subTest(state=state):
                found = self.forbidden(call)
                self.assertEqual(list(found), [state])
                self.assertIn(say, found[state]["evidence"])
        done = self.smartio("doctor", preexec_fn=lambda: forbid([USERFAULTFD]))
        self.assertRegex(done.stdout, r"\Anote +no-faults +userfaultfd: ")

    @unittest.skipIf(os.geteuid(), "root alone unmounts")
    def test_no_proc(self):
        # A sanitizer reads its options there, and looks for leaks by what else is there.
        script = ("mount -t tmpfs none /proc && mkdir /proc/self && "
                  f"printf 'ASAN_OPTIONS=detect_leaks=0\\0' >/proc/self/environ && exec {base.TOOL} doctor")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script],
                              env=self.env, capture_output=True, text=True, check=False)
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, BAD, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^BAD +no-proc +/proc does not show our processes$")

    def test_place_of_another(self):
        os.mkdir(self.base, 0o700)
        os.chmod(self.base, 0o777)
        self.assertIn("can be written to by others", self.only("no-permission")["evidence"])
        os.chmod(self.base, 0o700)


if __name__ == "__main__":
    base.main()
