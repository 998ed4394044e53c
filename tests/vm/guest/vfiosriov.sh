# SPDX-License-Identifier: BSD-2-Clause
# One drive by its virtual functions: the drive itself stays nvme.ko's, two of its functions are lent, each with a manager and
# programs of its own, at once; one is reset under the other's I/O.
# worlds: vfio
# modules: smartio nvme
# programs: tests/vm/secondary
# not: none
# alone: a drive with SR-IOV
# qemu: -device pcie-root-port,id=rp1,chassis=2,slot=2,bus=pcie.0,addr=a
# qemu: -device nvme-subsys,id=sub0
# qemu: -blockdev raw,node-name=disk1,file.driver=file,file.filename=SECOND,cache.no-flush=on
# qemu: -device nvme,serial=SRIOV,id=pf,bus=rp1,subsys=sub0,max_ioqpairs=16,msix_qsize=17,sriov_max_vfs=2,sriov_vq_flexible=8,sriov_vi_flexible=6
# qemu: -device nvme-ns,drive=disk1,bus=pf,shared=on
. /lib.sh
if [ "$IOMMU" = amd ] && [ ! "$TELLS" ]; then
	# Behind a port it drops their interrupts, and in front of them it knows of no function that comes later.
	echo "QEMU 7.2's AMD IOMMU has no virtual functions: SMARTIO_VM_QEMU=PATH, of QEMU 11.1 or later, shows them"
	exit 0
fi
load_modules
until_ok test -b /dev/nvme0n1
until_ok test -b /dev/nvme1n1
controller=
for c in /sys/class/nvme/nvme*; do
	[ "$(tr -d ' ' <"$c/serial")" != SRIOV ] || controller=$(basename "$c")
done
physical=$(basename "$(readlink "/sys/class/nvme/$controller/device")")
place=/sys/bus/pci/devices/$physical
echo "$physical is $controller"
secondary "/dev/$controller" release
is_live() {
	[ "$(cat "/sys/class/nvme/$controller/state")" = live ]
}
until_ok is_live
echo 0 >"$place/sriov_drivers_autoprobe"
echo 2 >"$place/sriov_numvfs"
secondary "/dev/$controller" online 4 3
first=$(basename "$(readlink "$place/virtfn0")")
second=$(basename "$(readlink "$place/virtfn1")")
for f in "$first" "$second"; do
	echo "$f in IOMMU group $(basename "$(readlink "/sys/bus/pci/devices/$f/iommu_group")")"
	smartio device add "$f" --vfio
done
start_daemon
both_are_free() {
	[ "$(smartio device list | grep -c "^0000:.*free")" = 2 ]
}
until_ok both_are_free
start_manager "$first"
manager_of_first=$manager
start_manager "$second"
echo "two programs at once, each by a function of its own"
n=0 jobs=
for f in "$first" "$second"; do
	head -c 1048576 /dev/urandom >/tmp/of.$n
	spawn smartio-nvme copy-in "$f" /tmp/of.$n --offset $((n * 16 + 16))M 2>/dev/null &
	jobs="$jobs $!" n=$((n + 1))
done
wait_all $jobs
echo "it is one drive: what was written by one function is read by the other"
n=0
for f in "$second" "$first"; do
	rm -f /tmp/back
	as_user smartio-nvme copy-out "$f" /tmp/back --offset $((n * 16 + 16))M --length 1M 2>/dev/null
	cmp /tmp/of.$n /tmp/back || fail "function $f has read something else"
	n=$((n + 1))
done
echo "one function is reset under the other's I/O"
start_bench "$first"
n=0
while [ $n -lt 3 ]; do
	kill -9 "$manager"
	wait "$manager" || :
	start_manager "$second"
	copy_both_ways "$second"
	n=$((n + 1))
done
: >/tmp/progress
until_ok test -s /tmp/progress
kill -0 "$bench" || fail "the client has ended"
spawn smartio-nvme bench "$second" --interrupt --count 200 --warmup 0 --offset 40M --length 1M --json >/tmp/out &
wait_all $!
grep -o '"interrupts": *[0-9]*' /tmp/out
kill -9 "$bench"
wait "$bench" || :
kill "$manager" "$manager_of_first"
wait_all "$manager" "$manager_of_first"
smartio device remove "$second"
stop_daemon
smartio device remove "$first"
dd if="/dev/${controller}n1" bs=1M skip=16 count=1 2>/dev/null | cmp - /tmp/of.0 ||
	fail "nvme.ko reads something else by the physical function"
echo 0 >"$place/sriov_numvfs"
end_world
