# SPDX-License-Identifier: BSD-2-Clause
# The drive goes away under I/O: its driver is unbound, it is removed through sysfs, it is pulled out.
# Programs get errors, none hangs, is killed or reads a wrong byte; the drive comes back, can be shared anew,
# and holds what was written.
# worlds: module vfio
# modules: smartio nvme
# programs: tests/system/verify
# alone: the kernel's own hot-plug ends the work of its lock checker (machine.py)
. /lib.sh
bdf=$(drive_bdf)
device=/sys/bus/pci/devices/$bdf
load_modules
give_drive "$bdf"
start_daemon

begin() {
	start_manager "$bdf"
	start_bench "$bdf"
	start_watched verify verify "$bdf" 65536 256
}

# All notice by themselves, and end with an error; a signal would be above 128.
all_end() {
	wait "$bench" && fail "the client did not notice"
	status=$?
	[ $status -lt 128 ] || fail "the client was killed: $status"
	wait "$manager" && fail "the manager did not notice"
	status=$?
	[ $status -lt 128 ] || fail "the manager was killed: $status"
	wait "$pid_verify" && fail "the client that compares did not notice"
	status=$?
	[ $status -lt 128 ] || fail "the client that compares was killed: $status"
	! grep 'wrong byte' /tmp/verify.err || fail "a wrong byte"
	kill "$feeder_verify"
	rm /tmp/verify.*
	[ -z "$taking" ] || wait "$taking" || fail "the kernel could not take it away"
	taking=
}

# By VFIO the kernel waits until all who have it have ended.
take_away() { # FILE WORD
	taking=
	if [ "$WORLD" = vfio ]; then
		echo "$2" >"$1" &
		taking=$!
	else
		echo "$2" >"$1"
	fi
}

back() {
	until_ok test -e "/sys/bus/pci/drivers/$DRIVER/$bdf"
	start_manager "$bdf"
	copy_both_ways "$bdf"
	stop_manager
}

taking=
n=0
while [ $n -lt $((SOAK ? 20 : 3)) ]; do
	echo "unbind"
	begin
	take_away "$device/driver/unbind" "$bdf"
	all_end
	echo "$bdf" >/sys/bus/pci/drivers/$DRIVER/bind
	back
	n=$((n + 1))
done
echo "remove through sysfs"
begin
take_away "$device/remove" 1
all_end
echo 1 >/sys/bus/pci/rescan
until_ok test -e "$device"
until_ok test -e "$device/driver" # nvme.ko, for the override is gone, too
give_drive "$bdf"
back
if [ "$IOMMU" != amd ]; then
	echo "pull it out"
	begin
	host pull_out >/dev/null
	all_end
	until_ok test ! -e "$device"
	kept=$(host put_in)
	[ -z "$kept" ] || echo "QEMU has kept the drive that was pulled out: this is another, with the same file"
	until_ok test -e "$device/driver"
	give_drive "$bdf"
	back
fi
stop_daemon
take_drive "$bdf"
dd if=/dev/nvme0n1 bs=1M skip=48 count=1 2>/dev/null | cmp - /tmp/file ||
	fail "nvme.ko reads something else than what was written"
end_world
