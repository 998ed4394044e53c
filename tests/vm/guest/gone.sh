# SPDX-License-Identifier: BSD-2-Clause
# The drive goes away under I/O: its driver is unbound, it is removed through sysfs, it is pulled out.
# Programs get errors, none hangs or is killed; where the drive comes back it can be shared anew.
# modules: smartio nvme
# limit: 900
. /lib.sh
bdf=$(drive_bdf)
device=/sys/bus/pci/devices/$bdf
load_modules
give_drive "$bdf"
start_daemon

begin() {
	start_manager "$bdf"
	start_bench "$bdf"
}

# Both notice by themselves, and end with an error; a signal would be above 128.
all_end() {
	wait "$bench" && fail "the client did not notice"
	status=$?
	[ $status -lt 128 ] || fail "the client was killed: $status"
	wait "$manager" && fail "the manager did not notice"
	status=$?
	[ $status -lt 128 ] || fail "the manager was killed: $status"
}

back() {
	until_ok test -e "/sys/bus/pci/drivers/smartio/$bdf"
	start_manager "$bdf"
	copy_both_ways "$bdf"
	stop_manager
}

n=0
while [ $n -lt 3 ]; do
	echo "unbind"
	begin
	echo "$bdf" >"$device/driver/unbind"
	all_end
	echo "$bdf" >/sys/bus/pci/drivers/smartio/bind
	back
	n=$((n + 1))
done
echo "remove through sysfs"
begin
echo 1 >"$device/remove"
all_end
echo 1 >/sys/bus/pci/rescan
until_ok test -e "$device"
until_ok test -e "$device/driver" # nvme.ko, for the override is gone, too
give_drive "$bdf"
back
if [ "$IOMMU" != amd ]; then
	echo "pull it out"
	begin
	host device_del
	all_end
	until_ok test ! -e "$device"
fi
stop_daemon
rmmod smartio
check_leaks
