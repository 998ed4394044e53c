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
	[ -b "$1" ] || { # it went before dd opened it, which made a file in its place
		rm -f "$1"
		return 1
	}
	dd if="$1" of=/tmp/raw.out bs=$(($3 * 512)) skip=$(($2 / $3)) count=1 iflag=direct 2>/dev/null
	cmp /tmp/raw.in /tmp/raw.out
}

# A disk that is there, and does I/O.
works() { # DEVICE
	test -b "$1" && raw_copy "$1" 24576 64
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

# Random bytes there and back, so many, in a block of its own, until it is told to end: a line for each, and how it ended, are in files.
start_checked_io() { # NAME DEVICE BYTES BLOCK
	checked_bytes=$3
	rm -f /tmp/checked.$1.*
	(
		while [ ! -e /tmp/checked.$1.stop ] && checked_copy "$1" "$2" "$4"; do
			echo >>/tmp/checked.$1.n
		done
		[ -e /tmp/checked.$1.stop ] && echo good >/tmp/checked.$1.end || echo bad >/tmp/checked.$1.end
	) &
	until_ok test -s /tmp/checked.$1.n
}

checked_copy() { # NAME DEVICE BLOCK
	head -c $checked_bytes /dev/urandom >/tmp/checked.$1.in
	test -b "$2" && dd if=/tmp/checked.$1.in of="$2" bs=$checked_bytes seek="$3" oflag=direct 2>>/tmp/checked.$1.err &&
		dd if="$2" of=/tmp/checked.$1.out bs=$checked_bytes skip="$3" count=1 iflag=direct 2>>/tmp/checked.$1.err &&
		cmp /tmp/checked.$1.in /tmp/checked.$1.out 2>>/tmp/checked.$1.err
}

# What begins from now on ends well, too.
checked_goes_on() { # NAME...
	for name; do
		n=$(wc -l </tmp/checked.$name.n)
		until_ok checked_went_on $name $((n + 2))
		[ ! -e /tmp/checked.$name.end ] || fail "I/O $name: $(tail -n 3 /tmp/checked.$name.err)"
	done
}

checked_went_on() { # NAME LINES
	[ -e /tmp/checked.$1.end ] || [ "$(wc -l </tmp/checked.$1.n)" -ge "$2" ]
}

end_checked_io() { # NAME...
	for name; do
		touch /tmp/checked.$name.stop
		until_ok test -s /tmp/checked.$name.end
		same "I/O $name" "$(cat /tmp/checked.$name.end)" good
	done
}

# What the driver of a shadow has: the node of its disk, and what the kernel has said of it.
disk_and_log() { # PLACE
	stat -c '%i %t %T' /dev/nvme0n1
	stat -c %i "/sys/bus/pci/devices/$1/"
	dmesg | grep -c "nvme\|$1\|smartio"
}

remember_disk() { # PLACE
	disk_and_log "$1" >/tmp/disk
}

same_disk() { # PLACE
	disk_and_log "$1" | cmp -s - /tmp/disk || fail "the disk is another, or its driver has noticed: $(dmesg | tail -n 5)"
}

# Our daemon has lost that of HOST once more since meetings().
partings() { # HOST
	grep -c "$1 is down" /tmp/smartiod.log >/tmp/partings || true
}

parted() { # HOST
	[ "$(grep -c "$1 is down" /tmp/smartiod.log)" -gt "$(cat /tmp/partings)" ]
}

# Of all processors.
interrupts_of() { # NAME
	awk -v name="^$1q" '$NF ~ name { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# At the adapter, from other hosts.
interrupts_of_peers() {
	awk '/smartio peers/ { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

more_from_peers() {
	[ "$(interrupts_of_peers)" -gt "$(cat /tmp/peers)" ]
}

# How it ended is in a file.
start_one_read() { # DEVICE [COMMAND...], which dd is run by
	rm -f /tmp/one.end
	device=$1
	shift
	(
		"$@" dd if="$device" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null && echo good >/tmp/one.end || echo bad >/tmp/one.end
	) &
}

# The kernel's number of an interrupt.
irq_of() { # NAME
	awk -v name="$1" '$NF == name { sub(":", "", $1); print $1 }' /proc/interrupts
}

told() { # NAME
	awk -v name="$1" '$NF == name { print $2 + $3 }' /proc/interrupts
}

# The processor whose reads that queue does, of two.
cpu_of_queue() { # DEVICE QUEUE
	for cpu in 0 1; do
		before=$(told "$2")
		taskset -c $cpu dd if="$1" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null
		[ "$(told "$2")" = "$before" ] || {
			echo $cpu
			return
		}
	done
	fail "no processor reads by $2: $(cat /proc/interrupts)"
}

# Rubbish over the interrupt table that a shadow shows: a BAR of one page.
spoil_table() { # PLACE
	while read -r start end _; do
		[ $((end - start)) = 4095 ] || continue
		for i in 0 4 8 16 20 24 32 36 40; do
			devmem $((start + i)) 32 0x5A5A5A5A
		done
		[ "$(devmem $((start + 4)) 32)" = 0x5A5A5A5A ] || fail "the table is no memory"
		return
	done <"/sys/bus/pci/devices/$1/resource"
	fail "no BAR is a page"
}

# What the daemon has sent to others, and had of them.
peer_messages() {
	smartio stats --node "$(hostname)" | awk -v host="$(hostname)" '$2 == host && /peer_messages/ { print $3, $4 }'
}

# Of the device, as it is smartio.ko's, and of the adapter.
lender_interrupts() {
	awk '$NF ~ /^smartio/ { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# The process that holds what smartio borrow took.
holder() { # [DEVICE]
	for p in /proc/[0-9]*; do
		tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q "^smartio borrow ${1:-}" && basename "$p" && return
	done
	fail "nobody holds a borrow"
}

# The process that holds what --keep borrowed: its parent is one of smartio borrow, too.
kept_by() {
	for p in $(pidof smartio); do
		parent=$(awk '/^PPid/ { print $2 }' "/proc/$p/status")
		tr '\0' ' ' <"/proc/$parent/cmdline" | grep -q '^smartio borrow' && echo "$p" && return
	done
	fail "no process holds for --keep"
}

nobody_holds() {
	! (holder) >/dev/null 2>&1
}

nobody_has() { # MODULE
	[ "$(cat "/sys/module/$1/refcnt")" = 0 ]
}

# The command register of a function, as its own configuration space says.
command_of() { # PLACE
	dd if="/sys/bus/pci/devices/$1/config" bs=2 skip=2 count=1 2>/dev/null | hexdump -e '1/2 "%d"'
}

# May it send: 1, 0.
is_master() { # PLACE 0|1
	[ $(($(command_of "$1") >> 2 & 1)) = "$2" ]
}

# What setpci would do, with interrupts off: it does not wait for the lender.
write_byte() { # PLACE OFFSET VALUE
	printf "\\x$3" | dd of="/sys/bus/pci/devices/$1/config" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# Its driver goes, in the background; the process and its end are in files.
start_unbind() { # PLACE
	rm -f /tmp/unbind.end
	(
		echo "$1" >/sys/bus/pci/drivers/nvme/unbind
		echo ended >/tmp/unbind.end
	) &
	echo $! >/tmp/unbind.pid
}

asks_lender() { # PID
	grep -q smartio_shadow_ask "/proc/$1/stack"
}

# Where a map of so many bytes lies in this machine.
map_at() { # BYTES
	lists | awk -v bytes="$1" '$1 == "map" && $6 == bytes { print "0x" $8 }'
}

# A word of physical memory is there, or reads as ones.
is_there() { # ADDRESS
	[ "$(devmem "$1" 32)" != 0xFFFFFFFF ]
}

# Of the range's pages, every so many of them.
count_there() { # ADDRESS BYTES STEP
	n=0
	for at in $(seq $(($1)) "$3" $(($1 + $2 - 1))); do
		is_there "$at" && n=$((n + 1))
	done
	echo $n
}

# What IOMMUs map from now on.
start_trace_maps() {
	mkdir -p /tmp/trace
	mount -t tracefs none /tmp/trace
	echo 1 >/tmp/trace/events/iommu/map/enable
}

# Coherent memory of so many bytes, queues of a drive, was mapped at multiples of its size: the DMA API says so.
aligned_maps() { # BYTES
	echo 0 >/tmp/trace/events/iommu/map/enable
	grep "size=$1\b" /tmp/trace/trace >/tmp/maps || fail "nothing of $1 bytes was mapped: $(tail -n 3 /tmp/trace/trace)"
	umount /tmp/trace
	for at in $(sed 's/.*iova=\(0x[0-9a-f]*\).*/\1/' /tmp/maps); do
		[ $((at % $1)) = 0 ] || fail "$1 bytes were mapped at $at"
	done
}

# More at a time than a small window has room for.
flood() { # DEVICE
	for i in 0 1 2 3; do
		(
			head -c 1048576 /dev/urandom >/tmp/flood.in.$i
			dd if=/tmp/flood.in.$i of="$1" bs=1M seek=$((8 + i)) oflag=direct 2>/dev/null
			dd if="$1" of=/tmp/flood.out.$i bs=1M skip=$((8 + i)) count=1 iflag=direct 2>/dev/null
			cmp /tmp/flood.in.$i /tmp/flood.out.$i && echo good >/tmp/flood.$i
		) &
	done
	for i in 0 1 2 3; do
		until_ok test -s /tmp/flood.$i
	done
	rm /tmp/flood.*
}

# One after the other, until one is lost or a file says so.
start_pings() { # ADDRESS
	rm -f /tmp/pings.*
	(
		while [ ! -e /tmp/pings.stop ] && ping -c 1 -W 20 "$1" >/dev/null; do
			echo >>/tmp/pings.n
		done
		[ -e /tmp/pings.stop ] && echo good >/tmp/pings.end || echo bad >/tmp/pings.end
	) &
	until_ok test -s /tmp/pings.n
}

pings_went_on() { # LINES
	[ -e /tmp/pings.end ] || [ "$(wc -l </tmp/pings.n)" -ge "$1" ]
}

pings_go_on() {
	until_ok pings_went_on $(($(wc -l </tmp/pings.n) + 3))
	[ ! -e /tmp/pings.end ] || fail "a ping was lost"
}

end_pings() {
	touch /tmp/pings.stop
	until_ok test -s /tmp/pings.end
	same pings "$(cat /tmp/pings.end)" good
}

# The network interface of a function.
card_of() { # PLACE
	ls "/sys/bus/pci/devices/$1/net" 2>/dev/null | grep .
}

# The network interface whose address ends so.
card_with() { # BYTE
	for d in /sys/class/net/*; do
		grep -q "^52:54:00:00:01:$1\$" "$d/address" && basename "$d" && return
	done
	return 1
}

has_card() { # BYTE
	card_with "$1" >/dev/null
}

# It is up, and has found the other end.
carries() { # INTERFACE
	[ "$(cat "/sys/class/net/$1/carrier")" = 1 ]
}

# Where a BAR lies.
bar_of() { # PLACE BAR
	sed -n "$(($2 + 1))s/ .*//p" "/sys/bus/pci/devices/$1/resource"
}

# The driver of an edu device maps so many bytes of a BAR for it.
map_bar() { # PLACE-OF-EDU PLACE BAR BYTES
	echo "$(bar_of "$2" "$3") $4" >"/sys/bus/pci/devices/$1/map"
}
