# SPDX-License-Identifier: BSD-2-Clause
# What disk.py has its machines run, besides lend-lib.sh.
. /lend-lib.sh

DISK=/dev/smartio-nvme0

# Random bytes of this machine, where the other one will look for them. What they are.
write_own() { # DISK MEGABYTE
	head -c 262144 /dev/urandom >/tmp/own
	dd if=/tmp/own of="$1" bs=32768 seek=$(($2 * 32)) oflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
	sha256sum </tmp/own | cut -d ' ' -f 1
}

# What the other one wrote.
read_other() { # DISK MEGABYTE
	dd if="$1" bs=32768 skip=$(($2 * 32)) count=8 iflag=direct 2>/tmp/err | sha256sum | cut -d ' ' -f 1
}

disk_holder() {
	cat /sys/block/smartio-nvme0/smartio/holder
}

disk_is_gone() {
	[ ! -e "$DISK" ] && [ ! -e /sys/block/smartio-nvme0 ]
}

# Writes until one fails, to the drive's last bytes; how that ended is in a file.
start_raw_io() { # DISK
	rm -f /tmp/raw.end /tmp/raw.n
	(
		exec 9<>"$1"
		while dd if=/dev/zero of=/proc/self/fd/9 bs=16384 count=1 seek=1000 oflag=direct 2>/tmp/raw.err; do
			echo >>/tmp/raw.n
		done
		echo ended >/tmp/raw.end
	) &
	until_ok test -s /tmp/raw.n
}

# I/O has ended with an error, and the disk with it.
disk_has_ended() {
	until_ok test -s /tmp/raw.end
	until_ok disk_is_gone
}

raw_io_goes_on() {
	rm -f /tmp/raw.n
	until_ok test -s /tmp/raw.n
	[ ! -e /tmp/raw.end ] || fail "I/O has ended"
}

# It was to be ended by us.
stop_raw_io() {
	smartio-nvme detach "$DISK" --force
	disk_has_ended
}

kill_manager() {
	kill -9 "$(cat /tmp/manager.pid)"
	until_ok test ! -e "/proc/$(cat /tmp/manager.pid)"
}

# Writes, reads and compares, each machine in a place of its own, until that fails.
start_own_io() { # DISK PLACE
	rm -f /tmp/own.end /tmp/own.n
	place=$(($2 * 16))
	(
		exec 9<>"$1"
		while head -c 65536 /dev/urandom >/tmp/own.in &&
			dd if=/tmp/own.in of=/proc/self/fd/9 bs=16384 seek=$place oflag=direct 2>/tmp/own.err &&
			dd if=/proc/self/fd/9 of=/tmp/own.out bs=16384 skip=$place count=4 iflag=direct 2>/tmp/own.err &&
			cmp /tmp/own.in /tmp/own.out; do
			echo >>/tmp/own.n
		done
		echo ended >/tmp/own.end
	) &
	until_ok test -s /tmp/own.n
}

own_io_goes_on() {
	rm -f /tmp/own.n
	until_ok test -s /tmp/own.n
	[ ! -e /tmp/own.end ] || fail "I/O has ended: $(cat /tmp/own.err)"
}

stop_own_io() {
	smartio-nvme detach "$DISK" --force
	until_ok test -s /tmp/own.end
	until_ok disk_is_gone
}
