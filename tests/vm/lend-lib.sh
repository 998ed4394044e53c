# SPDX-License-Identifier: BSD-2-Clause
# What lend.py has its machines run, besides cluster-lib.sh.
. /cluster-lib.sh

# It fails, and says so.
refused() { # PATTERN COMMAND...
	pattern=$1
	shift
	! "$@" >/tmp/refused 2>&1 || fail "$* was not refused"
	grep -q "$pattern" /tmp/refused || fail "$*: $(cat /tmp/refused)"
}

# What smartiod and the kernel module have is what it was.
as_remembered() {
	same_lists
}

# Files of random bytes on the file system of a device.
fill() { # DEVICE
	mkdir -p /tmp/mnt
	mount -t ext4 "$1" /tmp/mnt
	for i in 1 2 3; do
		head -c 40000 /dev/urandom >/tmp/mnt/$i
	done
	umount /tmp/mnt
}

sum_of() { # DEVICE
	mkdir -p /tmp/mnt
	mount -t ext4 -o ro "$1" /tmp/mnt
	cat /tmp/mnt/1 /tmp/mnt/2 /tmp/mnt/3 | sha256sum | cut -d ' ' -f 1
	umount /tmp/mnt
}

# Random bytes there and back, past the page cache.
raw_copy() { # DEVICE BLOCK BLOCKS
	head -c $(($3 * 512)) /dev/urandom >/tmp/raw.in
	dd if=/tmp/raw.in of="$1" bs=$(($3 * 512)) seek=$(($2 / $3)) oflag=direct 2>/dev/null
	dd if="$1" of=/tmp/raw.out bs=$(($3 * 512)) skip=$(($2 / $3)) count=1 iflag=direct 2>/dev/null
	cmp /tmp/raw.in /tmp/raw.out
}

# Reads until one fails; how they ended is in a file.
start_raw_io() { # DEVICE
	rm -f /tmp/raw.end /tmp/raw.n
	(
		while dd if="$1" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null; do
			echo >>/tmp/raw.n
		done
		echo ended >/tmp/raw.end
	) &
	until_ok test -s /tmp/raw.n
}

# Of all processors.
interrupts_of() { # NAME
	awk -v name="^$1q" '$NF ~ name { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# What the daemon has sent to others, and had of them.
peer_messages() {
	smartio stats | awk -v host="$(hostname)" '$2 == host && /peer_messages/ { print $3, $4 }'
}

# Of the device, as it is smartio.ko's, and of the adapter.
lender_interrupts() {
	awk '$NF ~ /^smartio/ { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# The process that holds what smartio borrow took.
holder() {
	for p in /proc/[0-9]*; do
		tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q "^smartio borrow" && basename "$p" && return
	done
	fail "nobody holds a borrow"
}

nobody_has() { # MODULE
	[ "$(cat "/sys/module/$1/refcnt")" = 0 ]
}
