# SPDX-License-Identifier: BSD-2-Clause
"""The files that a machine starts from, and what its parts are called."""
import os

from initrd import Initrd

HERE = os.path.dirname(os.path.realpath(__file__))
SLOT_DRIVE, SLOT_AGENT, SLOT_PEER = 0x08, 0x14, 0x15  # as in config.h
DRIVE_PLACE = f"0000:00:{SLOT_DRIVE:02x}.0"
AGENT_ADDRESS, AGENT_PORT, GATEWAY = "10.0.2.15", 7471, "10.0.2.2"  # QEMU's user network

# A leader of a session would make the second serial line its own, and with its end what was still to be sent there
# would be lost: /etc/rc is none.
BOOT = """#!/bin/sh
/etc/rc
exit $?
"""
INITTAB = """::sysinit:/etc/boot
ttyS0::respawn:/bin/cttyhack /bin/sh -l
::shutdown:/etc/rc.shutdown
"""
# smartiod is there as long as the machine is. Who reads what it says of its start has gone by the second one.
KEEP = """#!/bin/sh
exec 5<>/run/ready
while [ ! -e /run/stopping ]; do
	smartiod --shim --node "$(hostname)" --ready-fd 4 4>/run/ready 5<&- 2>>/run/smartiod.log </dev/null
	echo "smartiod ended with $?; it is started again" >>/run/smartiod.log
	echo ended >/run/ready
	sleep 1
done
"""
SHUTDOWN = """#!/bin/sh
: >/run/stopping
killall smartiod
sync
"""
PROFILE = """export PATH=/bin HOME=/root PS1="$(hostname)# "
cd
"""


def ether(own, other):
    """The Ethernet address of one machine's function towards another; 0: towards us."""
    return f"52:54:{own >> 8:02x}:{own & 255:02x}:{other >> 8:02x}:{other & 255:02x}"


def settings(asks, modules, late):
    """/etc/machine."""
    peers = " ".join(f"{ether(asks['node'], p['node'])}={p['address']}" for p in asks["peers"])
    values = {"NAME": asks["name"], "ADDRESS": asks["address"], "PEERS": peers,
              "AGENT_ETHER": ether(asks["node"], 0), "AGENT_ADDRESS": AGENT_ADDRESS, "AGENT_PORT": str(AGENT_PORT),
              "GATEWAY": GATEWAY, "HOSTS": " ".join(asks.get("hosts", [])),
              "DRIVE": DRIVE_PLACE if "drive" in asks else "", "MODULES": " ".join(modules),
              "MODULES_LATE": " ".join(late)}
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def add_modules(image, paths):
    """Their names, in the order to load them."""
    for path in paths:
        image.add_file("/modules/" + os.path.basename(path), path)
    return [os.path.basename(path) for path in paths]


def build_initrd(asks, kernel, ntb, folder, busybox, into):
    image = Initrd()
    image.add_base("/root", "/var", busybox=busybox)
    for path in asks["programs"]:
        image.add_program(path)
    first = add_modules(image, [*kernel.modules("e1000e"), f"{folder}/smartio.ko", f"{ntb}/ntb.ko",
                                f"{folder}/ntb_hw_smartio.ko"])
    # Drives that the topology gives it are its kernel's own.
    late = add_modules(image, kernel.modules("nvme")) if asks["devices"] else []
    image.add_data("/etc/machine", settings(asks, first, late))
    image.add_data("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    image.add_data("/etc/group", "root:x:0:\nsmartio:x:900:\n")
    image.add_data("/etc/inittab", INITTAB)
    image.add_data("/etc/profile", PROFILE)
    image.add_data("/etc/boot", BOOT, 0o755)
    image.add_data("/etc/keep", KEEP, 0o755)
    image.add_data("/etc/rc.shutdown", SHUTDOWN, 0o755)
    with open(os.path.join(HERE, "guest_rc.sh"), encoding="utf-8") as f:
        image.add_data("/etc/rc", f.read(), 0o755)
    image.add_link("/init", "bin/busybox")
    image.add_file("/etc/smartio/cluster.yaml", asks["cluster"])
    keys = asks["keys"]
    for name in ("ca.pem", "crl.pem", f"{asks['name']}.pem"):
        image.add_file(f"/etc/smartio/keys/{name}", f"{keys}/{name}")
    with open(f"{keys}/{asks['name']}.key", "rb") as f:
        image.add_data(f"/etc/smartio/keys/{asks['name']}.key", f.read(), 0o600)
    image.write(into)
