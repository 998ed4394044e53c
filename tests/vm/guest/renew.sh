# SPDX-License-Identifier: BSD-2-Clause
# Disks of this machine go on after resets of their drive, with other queue pairs: no read fails, and no write of a disk
# whose blocks are nobody else's. Those that wait for a pair can be ended.
# modules: smartio smartio_blk nvme
# limit: 1200
. /lib.sh
bdf=$(drive_bdf)
DISK=/dev/smartio-nvme0
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"

attach() { # OPTION...
	smartio-nvme attach "$bdf" --wait=600 "$@"
}

holder_of() { # DISK
	cat "/sys/block/$(basename "$1")/smartio/holder"
}

is_gone() { # DISK
	[ ! -e "$1" ] && [ ! -e "/sys/block/$(basename "$1")" ]
}

# Does the same again and again, with the disk as descriptor 9, until that fails.
start_watch() { # DISK NAME COMMAND
	rm -f "/tmp/$2.end" "/tmp/$2.n"
	(
		exec 9<>"$1"
		name=$2
		while $3; do
			echo >>"/tmp/$2.n"
		done
		echo ended >"/tmp/$2.end"
	) &
	until_ok test -s "/tmp/$2.n"
}

watch_goes_on() { # NAME
	rm -f "/tmp/$1.n"
	until_ok test -s "/tmp/$1.n"
	[ ! -e "/tmp/$1.end" ] || fail "it has ended: $(cat "/tmp/$1.err")"
}

read_once() {
	dd if=/proc/self/fd/9 of="/tmp/$name.out" bs=65536 skip=16 count=4 iflag=direct 2>"/tmp/$name.err" && cmp /tmp/read.in "/tmp/$name.out"
}

write_once() {
	head -c 65536 /dev/urandom >/tmp/write.in
	dd if=/tmp/write.in of=/proc/self/fd/9 bs=16384 seek=1 oflag=direct 2>/tmp/write.err &&
		dd if=/proc/self/fd/9 of=/tmp/write.out bs=16384 skip=1 count=4 iflag=direct 2>/tmp/write.err &&
		cmp /tmp/write.in /tmp/write.out
}

is_waiting() { # DISK
	smartio-nvme disks | grep -q "$1 .*, waiting"
}

# The manager ends: it was told of the reset.
reset_drive() {
	smartio device reset "$bdf" --force
	wait "$manager" || :
}

echo "the drive is reset under I/O, and disks go on"
head -c 262144 /dev/urandom >/tmp/read.in
attach
dd if=/tmp/read.in of="$DISK" bs=65536 seek=16 oflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
attach --alone
attach --queues 1 --poll
start_watch "$DISK" read read_once
start_watch /dev/smartio-nvme1 write write_once
start_watch /dev/smartio-nvme2 polled read_once
kill -9 "$manager"
wait "$manager" || :
start_manager "$bdf"
for name in read write polled; do
	watch_goes_on $name
done
reset_drive
until_ok is_waiting "$DISK"
until_ok is_waiting /dev/smartio-nvme1
until_ok is_waiting /dev/smartio-nvme2
start_manager "$bdf"
for name in read write polled; do
	watch_goes_on $name
done
attach --length 1M

echo "disks that wait are detached, their holder killed, and a lease lost"
reset_drive
until_ok is_waiting "$DISK"
until_ok is_waiting /dev/smartio-nvme1
[ ! -e /tmp/read.end ] || fail "a read failed: $(cat /tmp/read.err)"
smartio-nvme detach "$DISK" --force
until_ok test -s /tmp/read.end
until_ok is_gone "$DISK"
kill -9 "$(holder_of /dev/smartio-nvme1)"
until_ok test -s /tmp/write.end
until_ok is_gone /dev/smartio-nvme1
start_manager "$bdf"
watch_goes_on polled
until_ok is_gone /dev/smartio-nvme3
smartio-nvme detach /dev/smartio-nvme2 --force
until_ok is_gone /dev/smartio-nvme2

echo "writes may fail that were under way, and their disk goes on"
attach
(
	exec 9<>"$DISK"
	until dd if=/dev/zero of=/proc/self/fd/9 bs=65536 count=16 seek=100 oflag=direct 2>/tmp/err; [ -e /tmp/stop ]; do
		echo >>/tmp/write.n
	done
	echo ended >/tmp/plain.end
) &
rm -f /tmp/write.n
until_ok test -s /tmp/write.n
reset_drive
start_manager "$bdf"
rm -f /tmp/write.n
until_ok test -s /tmp/write.n
touch /tmp/stop
until_ok test -s /tmp/plain.end
dd if="$DISK" of=/dev/null bs=65536 count=4 iflag=direct 2>/tmp/err || fail "$(cat /tmp/err)"
smartio-nvme detach "$DISK"
is_gone "$DISK" || fail "it was detached"

# Nobody else has the drive, or may still have it written to.
only_manager() {
	[ "$(smartio device list | awk -v d="$bdf" '$1 == d { print $(NF - 1), $NF }')" = "1 0" ]
}
until_ok only_manager
stop_manager
stop_daemon
take_drive "$bdf"
rmmod smartio_blk
end_world
