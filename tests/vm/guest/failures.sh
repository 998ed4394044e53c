# SPDX-License-Identifier: BSD-2-Clause
# Each request of the port while the first, the second ... allocation or copy of the kernel fails: only the
# debug kernel does that.
# programs: tests/port/port_test
# modules: smartio nvme
# alone: a drive with few vectors, each of which takes allocations
# nvme: serial=SIO0,max_ioqpairs=3,msix_qsize=4
# limit: 900
. /lib.sh
bdf=$(drive_bdf)
load_module smartio.ko
give_drive "$bdf"
port_test failures /dev/smartio0 >/tmp/out || {
	grep -A1 '^not ok' /tmp/out
	fail "port_test"
}
sed -n 's/^ok [0-9]* - //p' /tmp/out
smartio device remove "$bdf"
rmmod smartio
