# SPDX-License-Identifier: BSD-2-Clause
# The table of the port, on the device node of smartio.ko; afterwards nvme.ko has its drive back.
# programs: tests/port/port_test
# modules: smartio nvme
. /lib.sh
insmod /modules/smartio.ko memory_limit=16777216
bdf=$(drive_bdf)
echo smartio >"/sys/bus/pci/devices/$bdf/driver_override"
echo "$bdf" >/sys/bus/pci/drivers/smartio/bind
port_test shim /dev/smartio0 >/tmp/out || {
	grep -A1 '^not ok' /tmp/out
	fail "port_test"
}
grep "# SKIP" /tmp/out || true
tail -1 /tmp/out
echo "$bdf" >/sys/bus/pci/drivers/smartio/unbind
echo >"/sys/bus/pci/devices/$bdf/driver_override"
rmmod smartio
check_leaks
