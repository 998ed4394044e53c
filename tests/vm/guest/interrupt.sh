# SPDX-License-Identifier: BSD-2-Clause
# Clients that sleep until the drive's MSI-X wakes them: three at once, each with a vector of its own,
# one of which is killed in its sleep.
# modules: smartio nvme
. /lib.sh
bdf=$(drive_bdf)
check_machine
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"

bench() { # MIB COMMANDS
	spawn smartio-nvme bench "$bdf" --interrupt --json --count "$2" --warmup 0 \
		--offset $(($1 * 1048576)) --length 1048576
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
	cat $f
	n=$(grep -o '"interrupts": *[0-9]*' $f | grep -o '[0-9]*$')
	# Each command was waited for; a completion may be there before its waiter sleeps.
	[ "$n" -gt 0 ] && [ "$n" -le 200 ] || fail "$n interrupts for 200 commands"
done
echo "the dead one's vector is free again: so are all"
bench 48 100 | grep -o '"interrupts": *[0-9]*'
stop_manager
stop_daemon
take_drive "$bdf"
rmmod smartio
check_leaks
