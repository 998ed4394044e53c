#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""As bridge.py, but the adapters are smartio_ntb.ko's, on the Linux NTB API.

usage: bridge_ntb.py BUILD MACHINE [--console]
"""
import sys

import bridge
import pair
from machine import Failed
from ntb_api import OnNtbApi, WINDOW


def check_reach(p):
    """What peers reach: behind an IOMMU what was granted, else what lies in the window's memory."""
    if p.iommu == "none":
        said = p.a.run(f"! peer grant {p.nodes[p.b]} {WINDOW} 2>&1")
        if "outside of what peers reach" not in said:
            raise Failed(f"memory that lies elsewhere: {said}")
        p.step("memory outside of the window's is refused")
        return
    _, bus, *way = bridge.last_line(p.a.run(f"peer grant {p.nodes[p.b]} {WINDOW // 2}")).split()
    for at, right in ((int(bus), 4711), (int(bus) - 4096, 2**32 - 1), (4096, 2**32 - 1)):
        seen = bridge.last_line(p.b.run(f"peer map {p.nodes[p.a]} {at} {' '.join(way)} 4711"))
        if int(seen) != right:
            raise Failed(f"a peer reads {seen} at {at:#x}, {right} is right")
    said = p.b.run(f"! peer map {p.nodes[p.a]} {WINDOW} {' '.join(way)} 1 2>&1")
    if "granted us nothing" not in said:
        raise Failed(f"behind the window: {said}")
    p.step("pages that were not granted read as ones")


def check_reload(p):
    """The module goes and comes: what was granted before is of another start."""
    _, *way = bridge.last_line(p.a.run(f"peer grant {p.nodes[p.b]}")).split()
    p.a.run("rmmod smartio_ntb")
    p.b.run("until_ok logged 'adapter 0 of node 4 is down'")
    p.a.run("load smartio_ntb node=4 device_reads=1")
    p.both("until_ok is_up")
    said = p.b.run(f"! peer map {p.nodes[p.a]} {' '.join(way)} 1 2>&1")
    if "granted in start" not in said:
        raise Failed(f"a grant of before: {said}")
    p.step("the module was loaded anew")


def check_left(p):
    """The module goes while nobody is there: the peer of the NTB's next client does not reach what was its."""
    p.b.kill()
    p.a.run("until_ok is_down; rmmod smartio_ntb; load ntb_pingpong delay_ms=5")
    p.restart_b()
    p.b.run(f"load ntb; load ntb_hw_smartio bridge=0 window={WINDOW}; load ntb_pingpong delay_ms=5")
    p.both("until_ok at_least 1 $(debug ntb_pingpong)/count")
    for at in (0, 8, 4096):
        seen = bridge.last_line(p.b.run(f"devmem $(($(window) + {at})) 64"))
        if int(seen, 0) != 2**64 - 1:
            raise Failed(f"a peer reads {seen} at {at} of a window that nobody has")
    p.step("no window is left open")


class BridgeNtb(OnNtbApi, bridge.Bridge):
    name = "bridge_ntb"
    doc = __doc__
    checks = (*bridge.Bridge.checks[:-1], check_reach, check_reload, bridge.check_memory, bridge.Bridge.checks[-1],
              check_left)
    drivers = (*bridge.Bridge.drivers, "ntb_pingpong")


if __name__ == "__main__":
    sys.exit(pair.main(BridgeNtb()))
