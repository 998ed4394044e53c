#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# First process of a machine whose drive is our model, served by vfio-user: Linux's driver and file system on it.
# /modules is made by stranger.py, which waits for the last line.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
export PATH=/bin LD_LIBRARY_PATH=/lib/x86_64-linux-gnu
exec 2>&1

give_up() {
	echo "STRANGER FAILED: $*"
	poweroff -f
	sleep 100
}

until_ok() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || give_up "$*: not after $tries tries"
		usleep 50000
	done
}

step() {
	echo "STRANGER $* ($(cut -d' ' -f1 /proc/uptime) s)"
}

for m in $(cat /modules/order); do
	insmod "/modules/$m" || give_up "insmod $m"
done
until_ok test -b /dev/nvme0n1
disk=/dev/nvme0n1
function=$(basename "$(readlink -f /sys/class/nvme/nvme0/device)")
vectors=$(grep -c nvme0q /proc/interrupts)
[ "$vectors" -ge 2 ] || give_up "$vectors interrupts"
step "the drive is there"

printf 'n\np\n1\n\n+24M\nn\np\n2\n\n\nw\n' | fdisk $disk >/run/fdisk || give_up "fdisk"
until_ok test -b ${disk}p2
mkdir /a /b
for part in 1 2; do
	mkfs.ext4 -q ${disk}p$part || give_up "mkfs.ext4 ${disk}p$part"
done
mount ${disk}p1 /a && mount ${disk}p2 /b || give_up mount
step "partitions with file systems"

# Until they are full, both at once; the last file of each is cut short.
fill() { # FOLDER
	n=0
	while dd if=/dev/urandom of="$1/$n" bs=64k count=48 2>/dev/null; do
		n=$((n + 1))
	done
	mkdir -p /run/sums
	(cd "$1" && sha256sum [0-9]*) >"/run/sums$1"
	sync
}
fill /a &
fill /b
wait
[ "$(df /a | awk 'END { print $4 }')" -lt 64 ] || give_up "/a is not full"
check() {
	umount /a /b || give_up umount
	echo 3 >/proc/sys/vm/drop_caches
	for part in 1 2; do
		e2fsck -fn ${disk}p$part >/run/fsck || give_up "e2fsck: $(cat /run/fsck)"
	done
	mount ${disk}p1 /a && mount ${disk}p2 /b || give_up mount
	(cd /a && sha256sum -c /run/sums/a) >/run/check || give_up "/a: $(grep -v OK$ /run/check)"
	(cd /b && sha256sum -c /run/sums/b) >/run/check || give_up "/b: $(grep -v OK$ /run/check)"
}
check
step "full, and all is as it was written"

echo 1 >/sys/class/nvme/nvme0/reset_controller || give_up "reset of the controller"
check
echo 1 >"/sys/bus/pci/devices/$function/reset" || give_up "reset of the function"
check
step "the controller and the function were reset"

umount /a /b
echo "$function" >/sys/bus/pci/drivers/nvme/unbind
[ ! -e $disk ] || give_up "unbound, and the drive is there"
echo "$function" >/sys/bus/pci/drivers/nvme/bind
until_ok test -b ${disk}p2
mount ${disk}p1 /a && mount ${disk}p2 /b || give_up "mount after bind"
check
step "its driver was unbound and bound"

rm /a/[0-9]* && sync && fstrim /a || give_up fstrim
if [ -x /bin/nvme ]; then
	for words in id-ctrl id-ns smart-log error-log fw-log list-ns "get-feature -f 1" "get-feature -f 4" \
		"get-feature -f 7" "get-feature -f 8" "get-feature -f 11" "effects-log -c 0"; do
		set -- $words
		command=$1
		shift
		case $command in
		id-ns) target=$disk ;;
		*) target=/dev/nvme0 ;;
		esac
		nvme "$command" $target "$@" >/run/nvme 2>&1 || give_up "nvme $words: $(tail -n 1 /run/nvme)"
		[ -s /run/nvme ] || give_up "nvme $words says nothing"
	done
	nvme smart-log /dev/nvme0 | grep -q '^critical_warning[^:]*: 0$' || give_up "smart-log: $(nvme smart-log /dev/nvme0)"
	nvme id-ctrl /dev/nvme0 | grep -q '^sn *: STRANGER' || give_up "id-ctrl"
	step "nvme-cli"
fi
umount /a /b
# Whole commands on blocks, and other blocks; a compare that must fail does not disturb the kernel.
if [ -x /bin/nvme ]; then
	yes pattern | head -c 4096 >/run/block
	yes another | head -c 4096 >/run/other
	of_blocks() { # COMMAND ARGUMENT...
		nvme "$@" >/run/nvme 2>&1 || give_up "nvme $*: $(tail -n 1 /run/nvme)"
	}
	of_blocks write $disk -s 64 -c 7 -z 4096 -d /run/block
	of_blocks compare $disk -s 64 -c 7 -z 4096 -d /run/block
	nvme compare $disk -s 64 -c 7 -z 4096 -d /run/other >/run/nvme 2>&1 && give_up "nvme compare finds others equal"
	of_blocks verify $disk -s 64 -c 7
	of_blocks write-zeroes $disk -s 65 -c 6
	of_blocks dsm $disk -d -s 64 -b 1
	head -c 4096 /dev/zero >/run/zeros
	of_blocks compare $disk -s 64 -c 7 -z 4096 -d /run/zeros
	for size in 4096 512; do
		of_blocks format $disk -f -l $((size / 4096))
		[ "$(cat /sys/block/nvme0n1/queue/logical_block_size)" = $size ] || give_up "blocks are not of $size bytes"
		[ "$(dd if=$disk bs=1M 2>/dev/null | tr -d '\0' | wc -c)" = 0 ] || give_up "formatted, and not zeros"
	done
	step "compared, zeroed, deallocated, formatted"
fi
dmesg | grep -iE 'nvme.*(timeout|error|fatal|abort)|I/O error|EXT4-fs (error|warning)' && give_up "the kernel complains"
echo "STRANGER PASSED"
poweroff -f
