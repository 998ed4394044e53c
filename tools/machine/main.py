#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `smartio machine` has done by a script: fetch what machines need, start one, connect to its console.

usage: smartio-machine fetch|start|console|demo JSON

It is run by smartio (tools/machine/helper.c), which says what is in JSON. Lines of output are progress, or begin with
"error: " or "result: ".
"""
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import tty

import cache
import qemu
from demo import demo
from fetch import fetch, fetched
from guest_image import AGENT_ADDRESS, AGENT_PORT, DRIVE_PLACE, SLOT_AGENT, SLOT_DRIVE, SLOT_PEER, build_initrd, ether
from report import Failed, say

START_SECONDS = 300  # until smartiod answers
LEAVE = b"\x1d"  # Ctrl-]


# ---- QEMU ----

def networks(asks, prefix):
    """To us, for the agent; and to each peer. What comes from the machine to us leads nowhere else, unless there are emulated
    hosts, whose daemons it has to find.
    """
    node = asks["node"]
    run = f"{prefix}.run"
    if os.path.exists(run):
        os.unlink(run)
    words = ["-netdev", f"user,id=agent,restrict={'off' if asks.get('hosts') else 'on'},ipv6=off,hostfwd=unix:{run}-{AGENT_ADDRESS}:{AGENT_PORT}",
             "-device", f"e1000e,netdev=agent,mac={ether(node, 0)},romfile=,addr={SLOT_AGENT:x}"]
    for slot, peer in enumerate(asks["peers"], SLOT_PEER):
        other = peer["node"]
        own_path = f"{prefix}.ether.{other}"
        other_path = f"{asks['directory']}/machine.{other}.ether.{node}"
        words += ["-netdev", f"dgram,id=peer{other},local.type=unix,local.path={own_path},"
                  f"remote.type=unix,remote.path={other_path}",
                  "-device", f"e1000e,netdev=peer{other},mac={ether(node, other)},romfile=,addr={slot:x}"]
    return words


def functions(asks):
    words = []
    for slot, path in enumerate(asks["adapters"], qemu.FIRST_SLOT):
        words += qemu.vfio_user(slot, path)
    for slot, path in enumerate(asks["devices"], SLOT_DRIVE + 1):
        words += qemu.vfio_user(slot, path)
    if "drive" in asks:
        words += ["-blockdev", json.dumps({"driver": "raw", "node-name": "disk0",
                                           "file": {"driver": "file", "filename": asks["drive"]}}),
                  # No doorbell buffers: docs/device-lending.md.
                  "-device", f"nvme,serial=SIO{asks['node']},drive=disk0,addr={SLOT_DRIVE:x},dbcs=off"]
    return words


def command(asks, accel, kernel, initrd, prefix, control):
    append = "loglevel=5" if accel is qemu.KVM else f"loglevel=5 tsc_early_khz={asks['tsc_khz']}"
    backend, shown = qemu.private_memory(asks["memory"]), ()
    if "ram_offset" in asks:
        memory = f"{asks['directory']}/memory"
        backend, shown = qemu.part_of(memory, asks["memory"], asks["ram_offset"]), qemu.shown(memory, *asks["pools"])
    return [*qemu.words(kernel, initrd, asks["memory"], backend, accel, append), *shown,
            "-name", asks["name"], "-pidfile", f"{prefix}.pid",
            "-chardev", f"socket,id=console,path={prefix}.console,server=on,wait=off,logfile={prefix}.log",
            "-serial", "chardev:console",
            "-chardev", f"socket,id=control,fd={control}", "-serial", "chardev:control",
            *qemu.IOMMU[asks["iommu"]], *networks(asks, prefix), *functions(asks)]


def last_line(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = [line.strip() for line in f if line.strip()]
    except OSError:
        lines = []
    return lines[-1] if lines else "it said nothing"


def wait_ready(asks, control, prefix):
    """Until the machine says that it is, or why not."""
    said = b""
    control.settimeout(START_SECONDS)
    while b"\n" not in said:
        try:
            data = control.recv(4096)
        except socket.timeout:
            raise Failed(f"machine '{asks['name']}' was not ready in {START_SECONDS} s; its console says: "
                         f"{last_line(prefix + '.log')}") from None
        except ConnectionResetError:
            data = b""
        if not data:
            complaint = last_line(prefix + ".qemu.log")
            if complaint == "it said nothing":
                complaint = f"its console says: {last_line(prefix + '.log')}"
            raise Failed(f"machine '{asks['name']}' ended while it started: {complaint}")
        said += data
    line = said.decode(errors="replace").strip()
    if line != "READY":
        raise Failed(f"machine '{asks['name']}': {line.removeprefix('FAILED ')}")


def end(process):
    """A machine that did not become ready."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start(asks):
    kernel, ntb, modules, busybox = fetched(asks)
    prefix = f"{asks['directory']}/machine.{asks['node']}"
    initrd = f"{prefix}.initrd"
    accel = qemu.KVM if qemu.has_kvm() and not asks["emulated"] else qemu.TCG
    if accel is qemu.TCG and not asks["emulated"]:
        say("there is no /dev/kvm that could be used: the machine's processors are emulated, and slow")
    os.umask(0o077)
    build_initrd(asks, kernel, ntb, modules, busybox, initrd)
    ours, theirs = socket.socketpair()
    with open(f"{prefix}.qemu.log", "wb") as log:
        process = subprocess.Popen(command(asks, accel, kernel, initrd, prefix, theirs.fileno()), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, pass_fds=[theirs.fileno()], start_new_session=True,
                                   cwd="/")
    theirs.close()
    try:
        wait_ready(asks, ours, prefix)
    except BaseException:
        end(process)
        raise
    finally:
        os.unlink(initrd)  # it has the key of the machine
    say(f"machine '{asks['name']}' is up: {asks['memory']} MB, Linux {kernel.release}"
        + ("" if asks["iommu"] == "none" else f", an IOMMU like {asks['iommu']}'s")
        + (f", drive {asks['name']}/{DRIVE_PLACE}" if "drive" in asks else ""))
    return {"name": asks["name"], "node": asks["node"], "pid": process.pid, "address": asks["address"],
            "device": f"{asks['name']}/{DRIVE_PLACE}" if "drive" in asks else None, "console": f"{prefix}.log"}


# ---- its console ----

def talk(line, typed, shown):
    """Between the terminal and the machine, until one of them ends, or the user leaves."""
    open_input = True
    while True:
        ready = select.select([line, *([typed] if open_input else [])], [], [])[0]
        if line in ready:
            data = line.recv(4096)
            if not data:
                return False
            os.write(shown, data)
        if typed in ready:
            data = os.read(typed, 4096)
            if not data or LEAVE in data:
                return True
            line.sendall(data)


def console(asks):
    line = socket.socket(socket.AF_UNIX)
    line.connect(f"{asks['directory']}/machine.{asks['node']}.console")
    terminal = os.isatty(0) and termios.tcgetattr(0)
    if terminal:
        sys.stderr.write(f"machine '{asks['name']}': Ctrl-] leaves\n")
        tty.setraw(0)
    try:
        line.sendall(b"\n")  # a prompt
        stays = talk(line, 0, 1)
    finally:
        if terminal:
            termios.tcsetattr(0, termios.TCSADRAIN, terminal)
    if not stays:
        sys.stderr.write(f"machine '{asks['name']}' has ended, or another console took its place\n")
    return 0 if stays else 1


def stop_for(number, _frame):
    raise Failed(f"ended by {signal.Signals(number).name}")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("fetch", "start", "console", "demo"):
        sys.exit(__doc__.strip())
    asks = json.loads(sys.argv[2])
    signal.signal(signal.SIGTERM, stop_for)
    signal.signal(signal.SIGINT, stop_for)
    if sys.argv[1] == "console":
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(console(asks))
    try:
        result = {"fetch": fetch, "start": start, "demo": demo}[sys.argv[1]](asks)
    except (Failed, cache.Unavailable, RuntimeError, OSError) as e:
        # What compilers say has many lines; the last ones tell most.
        *before, last = str(e).strip().splitlines() or ["failed"]
        for line in before[-20:]:
            say(line)
        say(f"error: {last}")
        sys.exit(1)
    say("result: " + json.dumps(result))


if __name__ == "__main__":
    main()
