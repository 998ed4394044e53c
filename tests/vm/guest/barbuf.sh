# SPDX-License-Identifier: BSD-2-Clause
# Pages of a BAR as a descriptor of their own (VFIO's dma-bufs), by which a kernel could isolate programs of one device
# from each other: what this kernel makes of them. One that lets programs map them makes this fail: then docs/vfio.md
# is wrong, and there is something to use.
# worlds: vfio
# modules: smartio nvme
# programs: tests/vm/barbuf
# not: none
. /lib.sh
bdf=$(drive_bdf)
load_modules
until_ok test -b /dev/nvme0n1
give_drive "$bdf"
start_daemon
start_manager "$bdf"
barbuf "$(pidof smartio-vfio)" >/tmp/said
cat /tmp/said
case $KERNEL in
backports*) printf 'exported: yes\nmapped: Invalid argument\n' ;;
*) echo 'exported: Inappropriate ioctl for device' ;;
esac >/tmp/expected
diff /tmp/expected /tmp/said || fail "this kernel's VFIO does otherwise than docs/vfio.md says"
stop_manager
stop_daemon
take_drive "$bdf"
end_world
