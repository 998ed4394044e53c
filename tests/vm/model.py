#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The drive of one of two machines is our NVMe model, which smartio-emu serves as a PCI function of that machine.

usage: model.py BUILD MACHINE [--console] [--soak]

As cluster.py, whose checks of QEMU's drive these are. MACHINE is none-6.1 or none-6.12: behind an IOMMU the model does not
reach the other machine's memory (docs/vfio-user.md).
"""
import json
import subprocess
import sys

import cluster
import pair
import qemu
from machine import Failed

DRIVE = "disk: { type: nvme, size: 64M, queue_pairs: 8, vectors: 9, serial: MODEL }"


def counters(p):
    """What the model has counted."""
    said = subprocess.run([f"{p.build}/tools/smartio", "--state", f"{p.folder}/state", "stats", "--json"], check=True,
                          capture_output=True, text=True).stdout
    (drive,) = [d for d in json.loads(said)["data"]["devices"] if d["name"] == "disk"]
    return {name: int(value, 16) for name, value in drive["counters"].items()}


def check_faults(p):
    """Clients of both have used it, and nothing that it did was refused."""
    found = counters(p)
    if found["faults"]:
        raise Failed(f"the drive has counted {found}")
    p.step(f"the drive was refused nothing: {found}")


def check_more(p):
    """What of that is in `make soak` alone."""
    if p.soak:
        for check in (cluster.check_link, cluster.check_restart, cluster.check_death):
            check(p)


class Model(cluster.Cluster):
    name = "model"
    doc = __doc__
    topology = pair.TOPOLOGY.replace("    kind: machine\n", f"    kind: machine\n    devices: {{ {DRIVE} }}\n", 1)
    checks = (cluster.start, cluster.give_drive, cluster.check_drive, check_faults, check_more)

    def qemu(self, host, folder):
        drive = qemu.vfio_user(cluster.DRIVE_SLOT, f"{folder}/state/vfio.disk") if host == self.drive_host else ()
        return (*drive, *self.network(host, folder))


if __name__ == "__main__":
    sys.exit(pair.main(Model()))
