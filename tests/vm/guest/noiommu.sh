# SPDX-License-Identifier: BSD-2-Clause
# VFIO's mode without an IOMMU is refused, whoever allows it, and whoever has bound the drive so.
# worlds: vfio
# modules: smartio nvme
# not: intel amd
. /lib.sh
bdf=$(drive_bdf)
unsafe=/sys/module/vfio/parameters/enable_unsafe_noiommu_mode
refused() {
	smartio device add "$bdf" --vfio >/tmp/said 2>&1 && fail "it was added"
	grep "$bdf has no IOMMU.*mode without one.*is refused" /tmp/said || fail "it said: $(cat /tmp/said)"
}
load_modules
until_ok test -b /dev/nvme0n1
refused
if [ ! -e $unsafe ]; then
	echo "this kernel has no such mode"
	exit 0
fi
echo "it is allowed, and refused still"
echo Y >$unsafe
refused
[ -e "/sys/bus/pci/drivers/nvme/$bdf" ] || fail "nvme.ko has lost it all the same"
echo "somebody has bound the drive so"
device=/sys/bus/pci/devices/$bdf
echo "$bdf" >"$device/driver/unbind"
echo vfio-pci >"$device/driver_override"
echo "$bdf" >/sys/bus/pci/drivers_probe
ls /dev/vfio
[ -e "/dev/vfio/noiommu-$(basename "$(readlink "$device/iommu_group")")" ] || fail "the kernel did not do it"
refused
echo "and has left a note that it is ours"
mkdir -p /run/smartiod/vfio
echo drive >"/run/smartiod/vfio/$bdf"
start_daemon
until_ok grep "$bdf: has no IOMMU, and VFIO's mode without one is refused" /tmp/smartiod.log
! as_user smartio-nvme identify "$bdf" || fail "the drive is lent"
smartio doctor >/tmp/said && fail "doctor finds nothing"
grep 'BAD.*vfio-unsafe' /tmp/said || fail "doctor said: $(cat /tmp/said)"
rm "/run/smartiod/vfio/$bdf"
stop_daemon
echo N >$unsafe
echo "$bdf" >"$device/driver/unbind"
echo >"$device/driver_override"
echo "$bdf" >/sys/bus/pci/drivers_probe
until_ok test -b /dev/nvme0n1
