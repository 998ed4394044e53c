# SPDX-License-Identifier: BSD-2-Clause
"""The command line of a QEMU whose machine is a host with functions served by vfio-user."""
import fcntl
import json
import os
import re

import vfio_qemu

FIRST_SLOT = 0x10  # of bus 0, where the first adapter is; tools/machine/config.h has all slots
MEMORY_SLOT = 0x07  # the functions that show the memory of all mapped machines, and pools; more of them are in slots below
KVM_GET_API_VERSION = 0xAE00
# A timer that is late because this machine is busy is not a broken one, nor is a processor that does nothing for half a
# minute.
APPEND = ("console=ttyS0 panic=-1 oops=panic no_timer_check random.trust_cpu=on watchdog_thresh=60 "
          "rcupdate.rcu_cpu_stall_timeout=150")
# Both processors in one thread: Debian's kernels patch their code at any time. Without an instruction for random
# numbers kernels measure jitter for a second or more of each start.
TCG = ("-accel", "tcg,thread=single", "-cpu", "qemu64,+rdrand")
KVM = ("-accel", "kvm", "-cpu", "host")
# QEMU wants to hear of every mapping that the kernel makes. AMD's model takes an interrupt message that comes by vfio-user for the
# I/O APIC's, since no requester id is with it, and refuses it where it remaps interrupts.
IOMMU = {"none": (), "intel": ("-device", "intel-iommu,intremap=on,caching-mode=on"),
         "amd": ("-device", "amd-iommu,intremap=off,dma-remap=on")}


def has_kvm():
    """Whether this machine's processors can run the other's kernel. A device without processors that can is of no
    use: what is started there does nothing."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            if not re.search(r"^flags\b.*\b(vmx|svm)\b", f.read(), re.M):
                return False
        fd = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return fcntl.ioctl(fd, KVM_GET_API_VERSION) == 12
    except OSError:
        return False
    finally:
        os.close(fd)


def vfio_user(slot, path):
    """A function of bus 0, served at that socket."""
    return ("-device", json.dumps({"driver": "vfio-user-pci", "socket": {"type": "unix", "path": path}, "rombar": 0,
                                   "addr": f"{slot:x}"}))


def private_memory(megabytes):
    """Of this machine alone, and of who serves its functions."""
    return f"memory-backend-memfd,id=ram0,size={megabytes}M,share=on"


def part_of(path, megabytes, offset):
    """A part of the file that the machines with mapped windows share."""
    return f"memory-backend-file,id=ram0,size={megabytes}M,mem-path={path},offset={offset},share=on"


def shown(*paths):
    """Functions whose BARs are all of these files, plain memory for QEMU's own devices, too: what the machines with mapped
    windows share, and the pools of emulated hosts."""
    words = []
    for i, path in enumerate(paths):
        words += ["-object", f"memory-backend-file,id=shared{i},size={os.path.getsize(path)},mem-path={path},share=on", "-device",
                  f"ivshmem-plain,memdev=shared{i},addr={MEMORY_SLOT - i // 8:x}.{i % 8},multifunction=on"]
    return words


def words(kernel, initrd, memory, backend, accel=TCG, append="", processors=2):
    """Without serial lines, networks and devices: those are the caller's."""
    # With KVM's own interrupt controllers no IOMMU can remap interrupts.
    split = ",kernel-irqchip=split" if accel is KVM else ""
    return [*vfio_qemu.command(), *accel, "-M", f"q35,memory-backend=ram0{split}", "-smp", str(processors), "-m", str(memory),
            "-object", backend, "-display", "none", "-vga", "none", "-nic", "none", "-nodefaults", "-no-reboot",
            "-kernel", kernel.image, "-initrd", initrd, "-append", f"{APPEND} {append}".strip()]
