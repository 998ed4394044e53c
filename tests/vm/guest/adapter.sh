# SPDX-License-Identifier: BSD-2-Clause
# The table of the port where there are adapters, and what goes through them: a bridge from this host to
# itself.
# programs: tests/port/port_test
# modules: smartio smartio_loop smartio_card smartio_blk nvme
# alone: a function that the bridge uses the bus as
# limit: 900
# nvme: serial=SIO0,cmb_size_mb=1
# qemu: -device pci-testdev,addr=b
. /lib.sh
bdf=$(drive_bdf)
insmod /modules/smartio_card.ko
insmod /modules/smartio.ko memory_limit=16777216
insmod /modules/smartio_blk.ko
insmod /modules/smartio_loop.ko
echo smartio >"/sys/bus/pci/devices/$bdf/driver_override"
echo "$bdf" >/sys/bus/pci/drivers/smartio/bind
port_test loop /dev/smartio0 >/tmp/out || {
	grep -A1 '^not ok' /tmp/out
	fail "port_test"
}
grep "# SKIP" /tmp/out || true
tail -1 /tmp/out
rmmod smartio_blk
# It comes again, and goes again with nobody there.
insmod /modules/smartio_loop.ko
! rmmod smartio 2>/dev/null || fail "smartio.ko went before its bridge"
rmmod smartio_loop
echo "$bdf" >/sys/bus/pci/drivers/smartio/unbind
echo >"/sys/bus/pci/devices/$bdf/driver_override"
rmmod smartio
rmmod smartio_card
