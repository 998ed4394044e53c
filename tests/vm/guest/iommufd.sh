# SPDX-License-Identifier: BSD-2-Clause
# VFIO's other way to a device: its own node, and iommufd. Both ways on one kernel, each forced and each
# chosen by itself; smartio-vfio killed and restarted under I/O with what it keeps; a program that cuts its device
# off from memory. Debian's kernels have the other way alone, and say so.
# worlds: vfio
# modules: smartio nvme
# programs: tests/vm/keeper tests/vm/cutoff
# not: none
. /lib.sh
bdf=$(drive_bdf)
load_modules
until_ok test -b /dev/nvme0n1
give_drive "$bdf"

start_by() { # BACKEND
	: >/tmp/ready
	smartiod --vfio="$1" --ready-fd 4 4>/tmp/ready 2>>/tmp/smartiod.log &
	daemon=$!
	until_ok test -s /tmp/ready
}

open_of() { # NAME: what of VFIO it has open
	ls -l "/proc/$(pidof "$1")/fd" | sed 's/.* -> //' | grep -e '^/dev/vfio/[0-9d]' -e '^/dev/iommu' | sort -u
}

is_by() { # BACKEND
	smartio device info "$bdf" | grep "had of VFIO by *$1\$" || fail "not by $1: $(smartio device info "$bdf")"
	open_of smartio-vfio >/tmp/open
	cat /tmp/open
	case $1 in
	iommufd) ! grep '/dev/vfio/[0-9]' /tmp/open && grep /dev/iommu /tmp/open && grep /dev/vfio/devices/ /tmp/open ;;
	group) grep '/dev/vfio/[0-9]' /tmp/open && ! grep -e iommu -e devices /tmp/open ;;
	esac || fail "that is not what makes $1"
}

nobody_holds() {
	! pidof smartio-vfio
}

use_drive() {
	start_manager "$bdf"
	copy_both_ways "$bdf"
}

if [ ! -e /dev/vfio/devices ]; then
	echo "this kernel has no iommufd: who insists on it is told so"
	start_by iommufd
	until_ok grep "$bdf: this kernel has no iommufd with devices of VFIO" /tmp/smartiod.log
	! as_user smartio-nvme identify "$bdf" || fail "the drive is lent"
	stop_daemon
	until_ok nobody_holds
	! smartiod --vfio=other 2>/tmp/said || fail "there is no such backend"
	grep "iommufd or group is right" /tmp/said
	start_daemon
	is_by group
	smartio doctor --verbose | grep "vfio-backend.*its IOMMU group; this kernel has no"
	stop_daemon
	take_drive "$bdf"
	end_world
	exit 0
fi

echo "either way, as it is forced"
for backend in group iommufd; do
	start_by $backend
	is_by $backend
	use_drive
	echo "a smartiod that wants the other finds what is there, and says so"
	stop_daemon
	other=group
	[ $backend = iommufd ] || other=iommufd
	start_by $other
	until_ok grep "served by $backend and not by $other" /tmp/smartiod.log
	copy_both_ways "$bdf"
	stop_manager
	stop_daemon
	until_ok nobody_holds
done
smartio doctor --verbose | grep "vfio-backend.*iommufd, which this kernel has"

echo "by itself iommufd; a client is killed under I/O, then the manager, then smartio-vfio"
start_daemon
is_by iommufd
start_manager "$bdf"
start_bench "$bdf"
kill -9 "$bench"
wait "$bench" || :
copy_both_ways "$bdf"
start_bench "$bdf"
kill -9 "$manager"
wait "$manager" || :
kill -9 "$bench"
wait "$bench" || :
use_drive
start_bench "$bdf"
kill -STOP "$bench"
kill -9 "$(pidof smartio-vfio)"
wait "$daemon" && fail "smartiod goes on without its port"
echo "a client that has not heard of it keeps the drive until it ends"
start_daemon
wait "$manager" || :
until_ok grep "$bdf: another process has IOMMU group" /tmp/smartiod.log
stop_daemon
smartio device remove "$bdf" 2>/tmp/said && fail "the drive was taken from a program"
grep "VFIO takes it from nobody.*(fuser /dev/vfio/[0-9]* /dev/vfio/devices/vfio" /tmp/said || fail "device remove said: $(cat /tmp/said)"
echo "so it does where the kernel has no groups, and with them no such node"
group=$(basename "$(readlink "/sys/bus/pci/devices/$bdf/iommu_group")")
mv "/dev/vfio/$group" /dev/vfio-group
smartio device remove "$bdf" 2>/tmp/said && fail "the drive was taken from a program"
grep "VFIO takes it from nobody" /tmp/said || fail "device remove said: $(cat /tmp/said)"
mv /dev/vfio-group "/dev/vfio/$group"
start_daemon
kill -9 "$bench"
wait "$bench" || :
drive_is_free() {
	smartio device list | grep -q "^$bdf .*free"
}
until_ok drive_is_free
use_drive

echo "a program that cuts its device off from memory, and has it again, finds no other memory there"
cutoff "$(pidof smartio-vfio)" >/tmp/cutoff || fail "the device stays cut off: $(cat /tmp/cutoff)"
cat /tmp/cutoff
[ "$(grep -c attached /tmp/cutoff)" = 2 ] || fail "an address space and its page table are all there is"
copy_both_ways "$bdf"
echo "and one that leaves it cut off: the reset at its end mends it"
cutoff "$(pidof smartio-vfio)" leave || fail "it is not cut off"
kill -9 "$manager"
wait "$manager" || :
use_drive
stop_manager
stop_daemon
until_ok nobody_holds

echo "smartio-vfio keeps its descriptors elsewhere, and is killed under I/O"
mkdir -p /run/smartiod
keeper /tmp/lives smartio-vfio --keep 2>/tmp/keeper.log &
keeper=$!
lives() {
	[ "$(cat /tmp/lives 2>/dev/null)" = "$1" ]
}
until_ok lives 1
start_daemon
is_by iommufd
start_manager "$bdf"
echo "the next one attaches a device that a program has cut off"
cutoff "$(pidof smartio-vfio)" leave || fail "it is not cut off"
kill -9 "$(pidof smartio-vfio)"
wait "$daemon" && fail "smartiod goes on without its port"
until_ok lives 2
start_daemon
copy_both_ways "$bdf"
stop_manager
start_manager "$bdf"
start_bench "$bdf"
remember
cat /tmp/held
ROUNDS=${SOAK:+20}
: "${ROUNDS:=3}"
n=2
while [ $n -le $((ROUNDS + 1)) ]; do
	kill -9 "$(pidof smartio-vfio)"
	wait "$daemon" && fail "smartiod goes on without its port"
	n=$((n + 1))
	until_ok lives $n
	start_daemon
	until_ok as_before
	: >/tmp/progress
	until_ok test -s /tmp/progress
	copy_both_ways "$bdf"
done
grep "is here still" /tmp/keeper.log
kill -0 "$bench" || fail "the client has ended"
echo "it is killed again, and a client, while it is dead"
kill -STOP "$keeper"
kill -9 "$(pidof smartio-vfio)" "$bench"
wait "$daemon" && fail "smartiod goes on without its port"
wait "$bench" || :
kill -CONT "$keeper"
until_ok lives $((n + 1))
start_daemon
copy_both_ways "$bdf"
start_bench "$bdf"
until_ok as_before
kill -9 "$bench"
wait "$bench" || :
stop_manager
stop_daemon
wait "$keeper" || fail "smartio-vfio ended with $?: $(cat /tmp/keeper.log)"
take_drive "$bdf"
end_world
