# SPDX-License-Identifier: BSD-2-Clause
# A client puts an address that was not mapped for the drive into a command. The IOMMU stops it, the
# kernel's log and smartiod say so, nobody's memory has changed, and all others work on.
# worlds: module vfio
# modules: smartio
# not: none
# programs: tests/vm/wild tests/vm/canary tests/system/verify
. /lib.sh
[ "$IOMMU" != none ] || fail "this test needs an IOMMU"
address=0x13370000 # RAM of this machine, which the drive could write to without an IOMMU
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"
start_watched canary canary 64
start_watched verify verify "$bdf" 65536 256
# A command that reads makes the drive write. The kernel limits how often it says so: one entry for each way.
does() {
	if [ "$way" = read ]; then echo write; else echo read; fi
}
in_log() {
	dmesg | grep -i "DMAR: \[DMA $(does) " | grep 1337
}
in_daemon() {
	grep -i "$bdf: .*$(does).* at $address failed" /tmp/smartiod.log
}
for way in read write; do
	echo "a $way with a wild address"
	as_user wild "$bdf" $address $way >/tmp/wild || fail "wild: $(cat /tmp/wild)"
	cat /tmp/wild
	grep -q good /tmp/wild || fail "the client's queue works no more"
	if [ "$IOMMU" = intel ]; then
		until_ok in_log
		until_ok in_daemon
	fi
done
# AMD's: QEMU 7.2 stops the access, but says nothing where a page table entry is empty. Newer ones do,
# with another address; the kernel says ten of them, and then nothing for seconds.
amd_in_log() {
	dmesg | grep "$DRIVER $bdf: AMD-Vi: Event logged .IO_PAGE_FAULT"
}
amd_in_daemon() {
	grep "$bdf: .* failed: .*IO_PAGE_FAULT" /tmp/smartiod.log
}
if [ "$IOMMU" = amd ] && [ "$TELLS" ]; then
	until_ok amd_in_log
	until_ok amd_in_daemon
fi
end_watched verify
end_watched canary
as_user smartio-nvme copy-out "$bdf" /tmp/back --length 1M
[ "$(sha256sum </tmp/back | cut -d' ' -f1)" = "$(host sha256 0 1048576)" ] || fail "the drive lies now"
stop_manager
stop_daemon
smartio device remove "$bdf"
end_world
