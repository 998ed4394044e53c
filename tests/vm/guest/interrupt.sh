# SPDX-License-Identifier: BSD-2-Clause
# Clients that sleep until the drive's MSI-X wakes them: three at once, each with a vector of its own,
# one of which is killed in its sleep.
# worlds: module vfio
# modules: smartio nvme
. /lib.sh
bdf=$(drive_bdf)
check_machine
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"

bench() { # MIB COMMANDS OPTION...
	local offset=$(($1 * 1048576)) count=$2

	shift 2
	spawn smartio-nvme bench "$bdf" --interrupt --json --count "$count" --warmup 0 \
		--offset $offset --length 1048576 "$@"
}

interrupts() { # FILE
	grep -o '"interrupts": *[0-9]*' "$1" | grep -o '[0-9]*$'
}

bench 48 1000000000 >/tmp/endless &
endless=$!
bench 0 200 >/tmp/one &
jobs=$!
bench 16 200 >/tmp/two &
wait_all $jobs $!
kill -9 $endless
wait $endless || :
for f in /tmp/one /tmp/two; do
	n=$(interrupts $f)
	[ -n "$n" ] && [ "$n" -le 200 ] || fail "$n interrupts for 200 commands"
done
# A completion may be there before its waiter sleeps, on a slow processor each time: larger ones are later.
tries=0
until [ "$(interrupts /tmp/one)" -gt 0 ]; do
	tries=$((tries + 1))
	[ $tries -lt 20 ] || fail "no interrupt for $tries times 200 commands"
	bench 0 200 --size 128K >/tmp/one
done
cat /tmp/one
echo "the dead one's vector is free again: so are all"
bench 48 100 | grep -o '"interrupts": *[0-9]*'
stop_manager
stop_daemon
take_drive "$bdf"
end_world
