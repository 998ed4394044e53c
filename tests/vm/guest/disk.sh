# SPDX-License-Identifier: BSD-2-Clause
# A queue pair as a disk of this machine, beside clients of the same drive: what either writes the other
# reads; a file system; ranges; and the disk goes, with errors, when its holder, the drive or a manager goes.
# modules: smartio smartio_blk nvme crc32c_generic ext4
# programs: tests/system/verify tests/vm/lists mke2fs e2fsck blkdiscard fallocate
# limit: 1200
. /lib.sh
bdf=$(drive_bdf)
DISK=/dev/smartio-nvme0
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"

refused() { # PATTERN COMMAND...
	pattern=$1
	shift
	! "$@" >/tmp/refused 2>&1 || fail "$* was not refused"
	grep -q "$pattern" /tmp/refused || fail "$*: $(cat /tmp/refused)"
}

# What goes on after a reset is tested in renew.sh.
attach() { # OPTION...
	smartio-nvme attach "$bdf" --survive off "$@"
}

holder_of() { # DISK
	cat "/sys/block/$(basename "$1")/smartio/holder"
}

remember() {
	lists >/tmp/lists.before
}

same_lists() {
	lists >/tmp/lists.now && cmp -s /tmp/lists.before /tmp/lists.now
}

as_before() {
	for _ in $(seq 300); do
		same_lists && return
		usleep 50000
	done
	diff /tmp/lists.before /tmp/lists.now || fail "it has not what it had before"
}

# Nothing is left of a disk.
is_gone() { # DISK
	[ ! -e "$1" ] && [ ! -e "/sys/block/$(basename "$1")" ]
}

# Nobody else has the drive, or may still have it written to.
only_manager() {
	[ "$(smartio device list | awk -v d="$bdf" '$1 == d { print $(NF - 1), $NF }')" = "1 0" ]
}

no_holder() {
	! pidof smartio-nvme >/dev/null
}

# Both directions, past the page cache, in pieces of all sizes.
compare() { # DISK BYTES-OF-ITS-START
	head -c 3145728 /dev/urandom >/tmp/in
	for size in 512 4096 65536 1048576; do
		dd if=/tmp/in of="$1" bs=$size count=$((size * 8 < 3145728 ? 8 : 3)) oflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
		smartio-nvme copy-out "$bdf" /tmp/out --offset "$2" --length $((size * 3)) 2>/tmp/err || fail "$(cat /tmp/err)"
		head -c $((size * 3)) /tmp/in | cmp - /tmp/out || fail "the client reads something else ($size)"
		head -c $((size * 2)) /dev/urandom >/tmp/in2
		smartio-nvme copy-in "$bdf" /tmp/in2 --offset "$2" 2>/tmp/err || fail "$(cat /tmp/err)"
		dd if="$1" of=/tmp/out bs=$size count=2 iflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
		cmp /tmp/in2 /tmp/out || fail "the disk reads something else ($size)"
	done
	dd if=/tmp/in of="$1" bs=1000 seek=1024 conv=fsync 2>/tmp/err || fail "$(cat /tmp/err)"
	smartio-nvme copy-out "$bdf" /tmp/out --offset $(($2 + 1024000)) --length 3145728 2>/tmp/err || fail "$(cat /tmp/err)"
	cmp /tmp/in /tmp/out || fail "the client does not read what the page cache wrote"
}

# Writes until one fails; how that ended is in a file. By a descriptor: there may be no disk of that name any more.
start_raw_io() { # DISK
	rm -f /tmp/raw.end /tmp/raw.n
	(
		exec 9<>"$1"
		while dd if=/dev/zero of=/proc/self/fd/9 bs=65536 count=4 seek=100 oflag=direct 2>/tmp/raw.err; do
			echo >>/tmp/raw.n
		done
		echo ended >/tmp/raw.end
	) &
	until_ok test -s /tmp/raw.n
}

goes_on() {
	rm -f /tmp/raw.n
	until_ok test -s /tmp/raw.n
	[ ! -e /tmp/raw.end ] || fail "I/O has ended"
}

has_ended() {
	until_ok test -s /tmp/raw.end
	until_ok is_gone "$DISK"
}

echo "what is refused leaves nothing"
remember
refused 'root alone' as_user smartio-nvme attach "$bdf"
refused 'needs --length' attach --offset 1M
refused 'multiples' attach --length 1000
refused 'blocks, not' attach --offset 1M --length 1T
refused 'up to 1024' attach --depth 1025
refused 'which are 2 here, not 3' attach --queues 3
rmmod smartio_blk
refused 'modprobe smartio_blk' attach
load_module smartio_blk.ko
refused 'no disk' smartio-nvme detach "$DISK"
smartio-nvme disks | grep -q 'no disks'
as_before

# Of a disk.
queues() {
	ls /sys/block/smartio-nvme0/mq | wc -l
}

echo "the disk and clients"
attach
smartio-nvme disks
[ "$(queues)" = 2 ] || fail "$(queues) queues, on two processors"
[ "$(blockdev --getsize64 "$DISK")" = "$(stat -c %s /dev/null >/dev/null; echo $((64 << 20)))" ] || fail "its size"
# QEMU's drive has a cache: what is to last has to be flushed.
queue=/sys/block/smartio-nvme0/queue
[ "$(cat $queue/write_cache) $(cat $queue/fua)" = "write back 1" ] || fail "its cache is $(cat $queue/write_cache), FUA $(cat $queue/fua)"
compare "$DISK" 0
start_watched verify verify "$bdf" 65536 256
taskset 1 true || fail "no taskset"
for processor in 1 2; do # of each queue
	head -c 1048576 /dev/urandom >/tmp/in
	taskset $processor dd if=/tmp/in of="$DISK" bs=4096 seek=$((processor * 1024)) oflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
	taskset $((3 - processor)) dd if="$DISK" of=/tmp/out bs=4096 skip=$((processor * 1024)) count=256 iflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
	cmp /tmp/in /tmp/out || fail "other bytes through queue $processor"
done
end_watched verify
refused 'unavailable' rmmod smartio_blk
refused 'unavailable' rmmod smartio

echo "a file system"
if grep -q ext4 /proc/filesystems; then
	/bin/mke2fs -q -t ext4 -b 4096 "$DISK" 8192
	mkdir -p /tmp/mnt
	mount -t ext4 -o discard "$DISK" /tmp/mnt
	for i in 1 2 3; do
		head -c 1000000 /dev/urandom >/tmp/mnt/$i
	done
	rm /tmp/mnt/2
	sync
	refused 'is open' smartio-nvme detach "$DISK"
	sum=$(cat /tmp/mnt/1 /tmp/mnt/3 | sha256sum)
	umount /tmp/mnt
	e2fsck -fn "$DISK" >/tmp/fsck || fail "$(cat /tmp/fsck)"
	smartio-nvme detach "$DISK"
	is_gone "$DISK" || fail "it was detached"
	attach --read-only
	mount -t ext4 -o ro,noload "$DISK" /tmp/mnt
	[ "$(cat /tmp/mnt/1 /tmp/mnt/3 | sha256sum)" = "$sum" ] || fail "other files"
	umount /tmp/mnt
	refused . dd if=/dev/zero of="$DISK" bs=4096 count=1 oflag=direct
fi
smartio-nvme detach "$DISK"
as_before

echo "blocks that are not needed, and zeros"
attach
head -c 1048576 /dev/urandom | dd of="$DISK" bs=65536 oflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
/bin/blkdiscard -o 0 -l 524288 "$DISK"
# The kernel writes no zeros in its place here, as it would for blkdiscard -z.
/bin/fallocate -p -o 524288 -l 524288 "$DISK"
[ "$(host sha256 524288 524288)" = "$(head -c 524288 /dev/zero | sha256sum | cut -d' ' -f1)" ] || fail "no zeros"
smartio-nvme detach "$DISK"

echo "one queue, and a drive that does not interrupt"
attach --queues 1 --poll
[ "$(queues)" = 1 ] || fail "$(queues) queues"
compare "$DISK" 0
smartio-nvme detach "$DISK"
as_before

echo "two ranges"
attach --offset 8M --length 4M --lease first
refused 'first' attach --offset 10M --length 4M --lease other
attach --length 4M --lease second --depth 3
smartio-nvme leases "$bdf"
smartio-nvme disks
[ "$(cat /sys/block/smartio-nvme0/size)" = 8192 ] || fail "the size of a range"
head -c 4194304 /dev/urandom >/tmp/in
dd if=/tmp/in of="$DISK" bs=1M oflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
dd if=/tmp/in of=/dev/smartio-nvme1 bs=1M oflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
refused . dd if=/tmp/in of="$DISK" bs=1M seek=4 count=1 oflag=direct
smartio-nvme copy-out "$bdf" /tmp/out --offset 8M --length 4M 2>/tmp/err || fail "$(cat /tmp/err)"
cmp /tmp/in /tmp/out || fail "the range is elsewhere"
smartio-nvme copy-out "$bdf" /tmp/out --offset "$(($(cat /sys/block/smartio-nvme1/smartio/first) * 512))" --length 4M 2>/tmp/err || fail "$(cat /tmp/err)"
cmp /tmp/in /tmp/out || fail "the second range is elsewhere"
smartio-nvme detach /dev/smartio-nvme1
smartio-nvme detach "$DISK"
as_before

echo "the holder is killed under I/O"
attach
start_raw_io "$DISK"
kill -9 "$(holder_of "$DISK")"
has_ended
as_before

if grep -q ext4 /proc/filesystems; then
	echo "the holder is killed under a file system"
	attach
	/bin/mke2fs -q -t ext4 -b 4096 "$DISK" 8192
	mount -t ext4 "$DISK" /tmp/mnt
	echo not yet on the drive >/tmp/mnt/file
	kill -9 "$(holder_of "$DISK")"
	until_ok is_gone "$DISK"
	refused . dd if=/dev/zero of=/tmp/mnt/other bs=4096 count=1 conv=fsync
	umount /tmp/mnt
	as_before
fi

echo "it is detached by force under I/O"
attach
start_raw_io "$DISK"
smartio-nvme detach "$DISK" --force
has_ended
as_before

echo "the daemon is killed under I/O, and comes back"
attach
start_raw_io "$DISK"
kill -9 "$daemon"
wait "$daemon" || :
goes_on
start_daemon
goes_on

# Of disks, mapped for the drive: of each queue 31 slots of 64 KiB and their lists.
slots() {
	lists | grep -c '^dmamap .* bytes 1f1000 ' || :
}

echo "the manager is killed under I/O, and the next one resets the drive"
attach --length 4M
mapped=$(slots)
[ "$mapped" = 4 ] || fail "$mapped queues of two disks have slots"
kill -9 "$manager"
wait "$manager" || :
goes_on
# Nobody deletes its queue now: the drive may still write to its slots.
smartio-nvme detach /dev/smartio-nvme1 --force
is_gone /dev/smartio-nvme1 || fail "it was detached by force"
[ "$(slots)" = 4 ] || fail "$(slots) queues have slots, without a manager"
goes_on
start_manager "$bdf"
has_ended
until_ok only_manager

# May the drive send? The lower byte of its command register, memory space beside.
set_master() { # 2 (no) or 6 (yes), octal
	printf "\\$1" | dd of="/sys/bus/pci/devices/$bdf/config" bs=1 seek=4 conv=notrunc 2>/tmp/err || fail "$(cat /tmp/err)"
}

echo "a command does not come back: it is given up, and the disk with it"
attach --timeout 2000
start_raw_io "$DISK"
kill -9 "$manager" # it would see that the drive has failed
wait "$manager" || :
goes_on
set_master 2
has_ended
dmesg | grep -q "$(basename "$DISK"): .* dead: a command did not come back" || fail "it ended otherwise: $(dmesg | tail -n 3)"
until_ok no_holder
smartio device list
set_master 6
start_manager "$bdf"
until_ok only_manager

echo "the drive is reset by its lender under I/O"
attach
start_raw_io "$DISK"
smartio device reset "$bdf" --force
has_ended
wait "$manager" || : # it was told of the reset
until_ok no_holder
stop_daemon
take_drive "$bdf"
rmmod smartio_blk
end_world
