# SPDX-License-Identifier: BSD-2-Clause
# The table of the port on smartio-vfio with two functions: the drive reads and writes the buffer of another one, until that is
# reset. By iommufd it is refused, but where the kernel exports BARs as dma-bufs.
# worlds: vfio
# programs: tests/port/port_test
# modules: smartio nvme
# alone: a second function with a memory buffer
# not: none amd
# qemu: -device pcie-root-port,id=rp1,chassis=2,slot=2,bus=pcie.0,addr=a
# qemu: -device nvme,serial=PEER,cmb_size_mb=4,id=peer,bus=rp1
. /lib.sh
load_modules
bdf=$(drive_bdf)
PORT_PEER=$(other_bdf "$bdf")
export PORT_PEER
case $KERNEL in
backports*) export PORT_DMABUFS=1 ;; # by which iommufd maps BARs
esac
has_disk() {
	ls /dev/nvme?n1
}
until_ok has_disk
give_drive "$bdf"
echo 2 >/proc/sys/vm/nr_hugepages
: >/tmp/ready
smartio-vfio --memory-limit 16777216 --ready-fd 4 4>/tmp/ready &
holder=$!
until_ok test -s /tmp/ready
port_test vfio /run/smartiod >/tmp/out || {
	grep -A1 '^not ok' /tmp/out
	fail "port_test"
}
grep "by VFIO" /tmp/out
grep "by VFIO # SKIP" /tmp/out && fail "there are two"
tail -1 /tmp/out
wait $holder || fail "smartio-vfio ended with $?"
echo 0 >/proc/sys/vm/nr_hugepages
smartio device remove "$PORT_PEER"
smartio device remove "$bdf"
until_ok has_disk
end_world
