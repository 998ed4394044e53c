# SPDX-License-Identifier: BSD-2-Clause
# An ext4 file system on a range of the drive, which nbdkit serves and this machine's kernel mounts over nbd, by four
# connections: what is written there is on the drive, within the range, without an error for fsck, and found again by
# another server and another mount.
# worlds: vfio module
# modules: smartio nvme nbd crc32c_generic ext4
# programs: nbdkit nbd-client mke2fs e2fsck drivers/nvme-nbd/nbdkit-smartio-plugin.so
# not: none debug debug-vfio 6.12-iommufd backports backports-iommufd
. /lib.sh
bdf=$(drive_bdf)
RANGE=33554432 # bytes, as many from the start on
load_modules
until_ok test -b /dev/nvme0n1
give_drive "$bdf"
start_daemon
start_manager "$bdf"

serve() { # NBDKIT'S WORDS...
	rm -f /tmp/nbd.sock /tmp/nbd.pid
	spawn nbdkit -f "$@" -U /tmp/nbd.sock -P /tmp/nbd.pid /bin/nbdkit-smartio-plugin.so device="$bdf" \
		range=$RANGE:$RANGE lease=ext4 2>/tmp/nbd.err &
	server=$!
	until_ok test -e /tmp/nbd.pid
}

attach() {
	nbd-client -unix /tmp/nbd.sock /dev/nbd0 -nonetlink -connections 4 >/tmp/attach 2>&1 || fail "$(cat /tmp/attach)"
	until_ok grep -qx $((RANGE / 512)) /sys/block/nbd0/size
}

detach() {
	nbd-client -d /dev/nbd0 >/tmp/attach 2>&1 || fail "$(cat /tmp/attach)"
	until_ok test ! -e /sys/block/nbd0/pid
	kill $server
	wait_all $server
}

check() { # DISK OR IMAGE
	/bin/e2fsck -fn "$1" >/tmp/fsck 2>&1 || fail "e2fsck of $1: $(cat /tmp/fsck)"
}

before=$(host sha256 0 $RANGE)
serve
attach
echo "a file system is made, mounted and filled"
/bin/mke2fs -q -t ext4 /dev/nbd0 >/tmp/mke2fs 2>&1 || fail "$(cat /tmp/mke2fs)"
mkdir -p /tmp/mnt
mount -t ext4 /dev/nbd0 /tmp/mnt
mkdir /tmp/mnt/many
n=0
while [ $n -lt 200 ]; do
	head -c $((n * 97 + 1)) /dev/urandom >/tmp/mnt/many/$n
	n=$((n + 1))
done
head -c 8388608 /dev/urandom >/tmp/mnt/large
rm /tmp/mnt/many/?
sync
(cd /tmp/mnt && find . -type f -exec sha256sum {} +) | sort >/tmp/sums
umount /tmp/mnt
check /dev/nbd0
detach
[ "$(wc -l </tmp/sums)" = 191 ] || fail "$(wc -l </tmp/sums) files"

echo "the drive has it, in the range and nowhere else"
smartio-nvme copy-out "$bdf" /tmp/image --offset $RANGE --length $RANGE 2>/tmp/err || fail "$(cat /tmp/err)"
check /tmp/image
[ "$(host sha256 $RANGE $RANGE)" = "$(sha256sum </tmp/image | cut -d' ' -f1)" ] || fail "the drive's file has something else"
[ "$(host sha256 0 $RANGE)" = "$before" ] || fail "something was written before the range"

echo "another server, which only reads, and another mount"
serve -r
attach
mount -t ext4 -o ro /dev/nbd0 /tmp/mnt
(cd /tmp/mnt && find . -type f -exec sha256sum {} +) | sort | cmp - /tmp/sums || fail "the files have changed"
umount /tmp/mnt
detach
stop_manager
stop_daemon
take_drive "$bdf"
end_world
