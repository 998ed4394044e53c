# SPDX-License-Identifier: BSD-2-Clause
# The table of the port on smartio-vfio and a drive; then what the kernel must have made of it.
# worlds: vfio
# programs: tests/port/port_test
# modules: smartio nvme
. /lib.sh
load_modules
bdf=$(drive_bdf)
until_ok test -b /dev/nvme0n1
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
tail -1 /tmp/out
# Nobody needs it any more.
wait $holder || fail "smartio-vfio ended with $?"
echo 0 >/proc/sys/vm/nr_hugepages
take_drive "$bdf"
end_world
