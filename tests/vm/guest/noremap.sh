# SPDX-License-Identifier: BSD-2-Clause
# Without interrupt remapping VFIO gives no device away, and the daemon says what would be right.
# worlds: vfio
# modules: smartio nvme
# not: none
# alone: its kernel is told to remap no interrupts
# append: intremap=off
. /lib.sh
bdf=$(drive_bdf)
[ -e "/sys/bus/pci/devices/$bdf/iommu_group" ] || fail "the drive is in no IOMMU group"
load_modules
until_ok test -b /dev/nvme0n1
give_drive "$bdf"
start_daemon --vfio=group
until_ok grep "$bdf: VFIO may not give it away.*enable interrupt remapping" /tmp/smartiod.log
! as_user smartio-nvme identify "$bdf" || fail "the drive is lent"
stop_daemon
take_drive "$bdf"
end_world
