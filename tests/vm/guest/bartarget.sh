# SPDX-License-Identifier: BSD-2-Clause
# The memory of one device as the target of another one, for programs: the drive reads blocks out of it and writes
# others into it, also while smartiod is killed and started again. What nobody gets; what a reset and the end of the
# borrow take away. Without an IOMMU it is refused, and the message says what would be right.
# worlds: module vfio
# modules: smartio nvme
# programs: tests/vm/bartarget tests/vm/keepone
# qemu: -device pcie-root-port,id=memory,chassis=9,slot=9,bus=pcie.0,addr=d
# qemu: -object memory-backend-ram,id=shared,size=64K,share=on -device ivshmem-plain,memdev=shared,bus=memory
. /lib.sh
memory_bdf() {
	for d in /sys/bus/pci/devices/*; do
		[ "$(cat "$d/vendor") $(cat "$d/device")" = "0x1af4 0x1110" ] && basename "$d" && return
	done
	fail "no ivshmem on the PCI bus"
}
# iommufd maps BARs where VFIO exports them as dma-bufs; on other kernels it refuses them (vfiopeer).
world_option() {
	case $WORLD-$KERNEL in
	vfio-backports-iommufd) echo --vfio=iommufd ;;
	vfio-*) echo --vfio=group ;;
	*) echo --shim ;;
	esac
}

bdf=$(drive_bdf)
memory=$(memory_bdf)
load_modules
give_drive "$bdf"
give_drive "$memory"
start_daemon
start_manager "$bdf"
translated=iommu
[ "$IOMMU" != none ] || translated=
as_user bartarget refused "$bdf" "$memory" $translated >/tmp/said || fail "$(cat /tmp/said)"
cat /tmp/said
as_user bartarget nomember "$bdf" alone >/tmp/alone || fail "$(cat /tmp/alone)"
if [ "$IOMMU" = none ]; then
	grep "an IOMMU that is on" /tmp/said || fail "nothing says what would be right"
else
	echo "the daemon dies under a drive that reads and writes the other device's memory"
	start_watched work bartarget work "$bdf" "$memory"
	kill -9 "$daemon"
	wait "$daemon" || :
	start_daemon
	smartio device list
	goes_on() {
		kill -USR1 "$pid_work" && grep -x on /tmp/work.out
	}
	until_ok goes_on
	end_watched work
	echo "a reset of that device, by force"
	start_watched reset bartarget reset "$bdf" "$memory"
	smartio device reset "$memory" --force
	kill "$feeder_reset"
	wait "$pid_reset" || fail "reset ended with $?: $(cat /tmp/reset.err)"
	# VFIO's container follows no BAR: smartio-vfio takes all of it away before. Here it is registers to smartio.ko.
	case $WORLD in
	vfio) right=cut ;;
	*) right=kept ;;
	esac
	[ "$(tail -n 1 /tmp/reset.out)" = "$right" ] || fail "the reset: $(cat /tmp/reset.out), not $right"
	echo "killed in its work: the next one's memory is its alone"
	start_watched dies bartarget work "$bdf" "$memory"
	kill -9 "$pid_dies"
	wait "$pid_dies" || :
	kill "$feeder_dies"
	start_watched still bartarget still "$memory"
	copy_both_ways "$bdf"
	end_watched still
	copy_both_ways "$bdf"
fi
# By a process that has the drive alone, and ends only when it is killed.
keep_drive() {
	: >/tmp/keepone.out
	keepone "$(pidof smartio-vfio)" >/tmp/keepone.out &
	keepone=$!
	until_ok test -s /tmp/keepone.out
}
# The kernel keeps the mapping of the BAR as long as somebody has the drive: so long nobody gets the other device.
if [ "$(world_option)" = --vfio=group ]; then
	echo "smartio-vfio is killed, and somebody keeps the drive that reaches the other device's memory"
	start_watched keeps bartarget work "$bdf" "$memory"
	keep_drive
	kill -9 "$(pidof smartio-vfio)"
	wait "$daemon" && fail "smartiod goes on without its port"
	start_daemon
	kill -9 "$pid_keeps" "$feeder_keeps" 2>/dev/null || : # or it has ended by itself
	wait "$pid_keeps" || :
	wait "$manager" || :
	until_ok grep "$memory: programs whose smartio-vfio was killed still have $bdf" /tmp/smartiod.log
	is_free() {
		smartio device list | grep -q "^$1 .*free"
	}
	! is_free "$memory" || fail "$memory is lent, and the drive reaches it"
	stop_daemon
	! smartio device remove "$memory" 2>/tmp/said || fail "$memory was taken, and the drive reaches it"
	grep "programs still have $bdf, whose reads and writes reach $memory" /tmp/said || fail "$(cat /tmp/said)"
	start_daemon
	kill -9 "$keepone"
	until_ok is_free "$memory"
	until_ok is_free "$bdf"
	ls -A /run/smartiod/vfio
	! ls -A /run/smartiod/vfio | grep reaches || fail "a note is left"
	start_manager "$bdf"
	start_watched again bartarget work "$bdf" "$memory"
	end_watched again
	echo "who ends a moment later than smartiod is waited for, as smartio-vfio may be"
	keep_drive
	stop_manager
	stop_daemon
	smartio device remove "$memory" 2>/tmp/said &
	removes=$!
	# With the note it has begun; or it has ended, too early.
	waits() {
		[ ! -e "/run/smartiod/vfio/$memory" ] || ! kill -0 "$removes" 2>/dev/null
	}
	until_ok waits
	kill -9 "$keepone"
	wait "$removes" || fail "device remove did not wait: $(cat /tmp/said)"
	[ ! -e "/sys/bus/pci/drivers/$DRIVER/$memory" ] || fail "$memory was not removed"
else
	stop_manager
	stop_daemon
	smartio device remove "$memory"
fi
take_drive "$bdf"
end_world
