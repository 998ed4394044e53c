# SPDX-License-Identifier: BSD-2-Clause
# smartio device add, remove and list, and what doctor says of this machine, step by step.
# modules: smartio nvme crc32c_generic ext4 dm-mod vfio_iommu_type1 vfio_pci
# programs: dmsetup
. /lib.sh
bdf=$(drive_bdf)
group=/sys/kernel/iommu_groups/$(basename "$(readlink "/sys/bus/pci/devices/$bdf/iommu_group" || echo none)")
kind() {
	[ "$IOMMU" = none ] || cat "$group/type"
}
refused() { # TEXT COMMAND...
	text=$1
	shift
	"$@" >/tmp/said 2>&1 && fail "$* was not refused"
	grep -q "$text" /tmp/said || fail "$* said: $(cat /tmp/said)"
	echo "refused, as it should be: $(tail -n 1 /tmp/said)"
}
# doctor names what is missing, and the commands that mend it
says() { # TEXT
	smartio doctor --verbose --hardware >/tmp/said 2>&1 || :
	grep -q "$1" /tmp/said || fail "doctor does not say '$1': $(cat /tmp/said)"
}
says 'smartio.ko is not loaded'
for m in $MODULES; do [ "$m" = smartio.ko ] || load_module "$m"; done
until_ok test -b /dev/nvme0n1
refused 'the kernel module is not loaded' smartio device add "$bdf"
# The debug kernel has no VFIO.
[ "$IOMMU" != none ] || refused "is in no IOMMU group\|vfio-pci is not loaded" smartio device add "$bdf" --vfio
load_module smartio.ko
says "device add $bdf"
says 'sudo smartiod --shim'
refused "is no PCI function" smartio device add rubbish
refused "there is no PCI function" smartio device add 00:1e.7
refused "was not added: driver nvme has it" smartio device remove "$bdf"
bridge=$(for d in /sys/bus/pci/devices/*; do grep -q ^0x0604 "$d/class" && basename "$d" && break; done)
refused "is a bridge" smartio device add "$bridge"
before=$(kind)

if [ "$KERNEL" != debug ]; then # which has no file system for disks
	mke2fs /dev/nvme0n1 >/dev/null
	mkdir /tmp/disk
	mount -t ext4 -o ro /dev/nvme0n1 /tmp/disk
	refused "is in use: disk nvme0n1 is mounted at /tmp/disk" smartio device add "$bdf"
	[ -e "/sys/bus/pci/drivers/nvme/$bdf" ] || fail "nvme.ko has lost it all the same"
	smartio device add --force "$bdf"
	[ ! -e /dev/nvme0n1 ] || fail "the disk is still there"
	# nvme.ko of 6.1 unmaps its last memory when the file system is unmounted: in the same addresses still.
	[ "$(kind)" = "$before" ] || fail "the IOMMU group was $before and is $(kind)"
	umount /tmp/disk
	take_drive "$bdf"
	# As in a container: our /proc/self/mountinfo knows nothing of it.
	mkfifo /tmp/inside
	unshare -m sh -c 'mount -t ext4 -o ro /dev/nvme0n1 /tmp/disk && echo mounted && read -r _ </tmp/inside' >/tmp/container &
	container=$!
	until_ok grep -q mounted /tmp/container
	! grep nvme0n1 /proc/self/mountinfo || fail "the mount is no secret"
	refused "disk nvme0n1 is claimed" smartio device add "$bdf"
	echo end >/tmp/inside
	wait $container || fail "the container ended with $?"
	# As LVM and encryption do.
	dmsetup --noudevsync create vg0-data --table "0 2048 linear /dev/nvme0n1 0"
	refused "dm-0 (vg0-data) lies upon disk nvme0n1" smartio device add "$bdf"
	dmsetup --noudevsync remove vg0-data
fi
mkswap /dev/nvme0n1 >/dev/null && swapon /dev/nvme0n1 2>/dev/null && {
	refused "this machine swaps to disk nvme0n1" smartio device add "$bdf"
	swapoff /dev/nvme0n1
}
refused 'drivers are changed by root alone' as_user smartio device add "$bdf"
smartio device add "$bdf"
[ "$IOMMU" = none ] || [ "$(kind)" = DMA ] || fail "the IOMMU group is $(kind), not strict"
smartio device add "$bdf" 2>&1 | grep -q 'added already' || fail "added twice"
start_daemon
says "members of group smartio"
says "ok.*daemon-dead"
case $IOMMU in
none) says 'BAD.*iommu-off' ;;
*) says 'ok.*iommu-off.*on, ' ;;
esac
smartio device list | tee /tmp/list
grep -q "^$bdf .*nvme.*free" /tmp/list || fail "device list"
as_user smartio device list --json | grep -q "\"name\": *\"$bdf\"" || fail "device list --json"
start_manager "$bdf"
refused "1 program has borrowed $bdf" smartio device remove "$bdf"
stop_manager
smartio device remove "$bdf"
until_ok test -b /dev/nvme0n1
[ "$(kind)" = "$before" ] || fail "the IOMMU group was $before and is $(kind)"
echo "and in again, while smartiod runs"
smartio device add "$bdf"
start_manager "$bdf"
as_user smartio-nvme identify "$bdf" >/tmp/said || fail "identify"
stop_manager
stop_daemon
take_drive "$bdf"
rmmod smartio
