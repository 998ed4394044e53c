#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""As cluster.py, but the adapters are smartio_ntb.ko's, on the Linux NTB API.

usage: cluster_ntb.py BUILD MACHINE [--console] [--soak]
"""
import sys

import cluster
import pair
from ntb_api import OnNtbApi


class ClusterNtb(OnNtbApi, cluster.Cluster):
    name = "cluster_ntb"
    doc = __doc__
    wakeup = ""

    def check_wakeup(self, p):
        """No doorbell is a device's: who wants to sleep is told, and polls."""
        p.b.run(f"! verify {cluster.DRIVE} 4096 64 interrupt 2>said; grep -q 'no interrupt vector: Not supported' said")
        p.step(p.b.run(f"start_io {cluster.DRIVE} 4096 64; end_io") + ", polling")

    def check_card(self, p):
        """Without an IOMMU the window leads to memory of smartio.ko alone: who wants another one's is told."""
        if p.iommu != "none":
            cluster.reach_card(p)
            return
        p.b.run(f"load smartio_card; begin card cardbuf export {cluster.SEGMENT}; runs card")
        p.a.run(f"! sharer import {cluster.NODE['b']} {cluster.SEGMENT} </dev/null 2>said; "
                "grep 'Not supported: .*a dma-buf .*lies outside of what peers reach' said || fail \"$(cat said)\"")
        p.b.run("finish card; rmmod smartio_card")
        p.step("a card's memory lies where the window does not lead, and that is said")


if __name__ == "__main__":
    sys.exit(pair.main(ClusterNtb()))
