# SPDX-License-Identifier: BSD-2-Clause
# Files of a program as memory for a device, by each way that the kernel's VFIO has: memfds of ordinary and of huge
# pages, and, on a kernel of Debian's backports, a device of /dev/dax, for which memory is kept back.
# worlds: vfio
# modules: smartio nvme device_dax dax_hmem
# programs: tests/api/guest_api_test
# not: none
# alone: memory that is kept back for /dev/dax
# append: memmap=64M%0x20000000-0x1+0xefffffff
. /lib.sh
bdf=$(drive_bdf)
load_modules
until_ok test -b /dev/nvme0n1
give_drive "$bdf"
export SMARTIO_TEST_MACHINE="$bdf" SMARTIO_TEST_TOOL=/bin/smartio
export SMARTIO_TEST_WORLD="$WORLD"
echo 4 >/proc/sys/vm/nr_hugepages
if [ -e /modules/device_dax.ko ]; then # with newer kernels alone
	until_ok test -e /sys/bus/dax/devices/dax0.0
	echo dax0.0 >/sys/bus/dax/drivers/device_dax/new_id # else it would be ordinary memory's driver's
	until_ok test -c /dev/dax0.0
fi
backends=group
[ ! -e /dev/vfio/devices ] || backends="group iommufd"
nobody_holds() {
	! pidof smartio-vfio
}
for backend in $backends; do
	: >/tmp/ready
	smartiod --vfio=$backend --ready-fd 4 4>/tmp/ready 2>>/tmp/smartiod.log &
	daemon=$!
	until_ok test -s /tmp/ready
	smartio device info "$bdf" | grep "had of VFIO by *$backend\$"
	guest_api_test >/tmp/out 2>&1 || {
		cat /tmp/out
		fail "by $backend"
	}
	cat /tmp/out
	grep 'OK.*files_of_the_program' /tmp/out
	grep 'huge pages of the program' /tmp/out || fail "no huge pages"
	[ ! -e /dev/dax0.0 ] || grep 'pages of /dev/dax0.0' /tmp/out || fail "no pages of /dev/dax"
	stop_daemon
	until_ok nobody_holds
done
echo 0 >/proc/sys/vm/nr_hugepages
take_drive "$bdf"
end_world
