# SPDX-License-Identifier: BSD-2-Clause
# The table of the port, on the device node of smartio.ko; afterwards nvme.ko has its drive back.
# programs: tests/port/port_test
# modules: smartio smartio_card nvme
# alone: memory of its own is kept back for a pool
# limit: 900
# append: memmap=16M$0x10000000
# qemu: -device pcie-root-port,id=rp1,chassis=2,slot=2,bus=pcie.0,addr=a
# qemu: -device nvme,serial=PEER,cmb_size_mb=4,id=peer,bus=rp1
. /lib.sh
! insmod /modules/smartio.ko pool=16M@0x8000000 || fail "memory of the kernel's as a pool"
! insmod /modules/smartio.ko pool=16M@0x10000001 || fail "a pool of half pages"
insmod /modules/smartio_card.ko
insmod /modules/smartio.ko memory_limit=16777216 pool=8M@0x10000000
bdf=$(drive_bdf)
echo smartio >"/sys/bus/pci/devices/$bdf/driver_override"
echo "$bdf" >/sys/bus/pci/drivers/smartio/bind
PORT_PEER=$(other_bdf "$bdf")
export PORT_PEER
port_test shim /dev/smartio0 >/tmp/out || {
	grep -A1 '^not ok' /tmp/out
	fail "port_test"
}
grep "# SKIP" /tmp/out || true
tail -1 /tmp/out
echo "$bdf" >/sys/bus/pci/drivers/smartio/unbind
echo >"/sys/bus/pci/devices/$bdf/driver_override"
rmmod smartio
rmmod smartio_card
