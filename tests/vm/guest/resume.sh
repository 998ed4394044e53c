# SPDX-License-Identifier: BSD-2-Clause
# smartiod is killed and started again under everything at once: a manager, clients that verify every
# byte, by polling and by interrupts, programs that make control calls without a pause, and one after the
# other that begin just then. No I/O and no call fails, no byte is wrong, and in the end the lists say what they said at the beginning.
# worlds: module vfio
# modules: smartio nvme
# programs: tests/system/verify tests/vm/control tests/vm/lists
# limit: 900
. /lib.sh
bdf=$(drive_bdf)
restarts=8 seconds=12
[ -z "$SOAK" ] || restarts=20 seconds=60
check_machine
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"
start_watched verify1 verify "$bdf" 0 2048
start_watched verify2 verify "$bdf" 4096 2048
start_watched verify3 verify "$bdf" 8192 2048 interrupt
lists >/tmp/before
echo "$(wc -l </tmp/before) things"
start_watched control1 control 1000
start_watched control2 control 2000

# Programs begin at any moment, also when there is no daemon.
begin_and_end() {
	begun=0
	until [ -e /tmp/enough ]; do
		as_user smartio-nvme identify "$bdf" >/tmp/identify || fail "a program ended with $?"
		begun=$((begun + 1))
	done
	echo "$begun programs began and ended"
}
begin_and_end &
beginner=$!

random() { # LIMIT
	echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}

n=0
while [ $n -lt "$restarts" ]; do
	# Every other one has come to serve somebody: where none does for 30 s calls fail, as they should, and a
	# slow machine takes long to come so far.
	[ $((n % 2)) = 0 ] || smartio device list >/dev/null
	# On the average as long as it takes to fill the time; now and then as soon as the last one is up.
	usleep $((seconds * 2000 / restarts * $(random 1000)))
	kill -9 "$daemon"
	wait "$daemon" || :
	start_daemon
	n=$((n + 1))
done
touch /tmp/enough
wait $beginner || fail "not each program could begin"
for p in control1 control2; do
	eval "kill \$feeder_$p; wait \$pid_$p" || fail "$p ended with $?"
	echo "$p: $(tail -n 1 /tmp/$p.out)"
done
! grep "is not back" /tmp/smartiod.log || fail "somebody came too late"
lists >/tmp/after
diff /tmp/before /tmp/after || fail "the lists differ after $n restarts"
for p in verify1 verify2 verify3; do
	eval "kill \$feeder_$p; wait \$pid_$p" || fail "$p ended with $?"
	echo "$p: $(tail -n 1 /tmp/$p.out)"
done

echo "a client dies while there is no daemon: the manager settles it when there is one"
start_bench "$bdf"
kill -9 "$daemon"
wait "$daemon" || :
kill -9 "$bench"
wait "$bench" || :
start_daemon
settled() {
	smartio device list --json | grep -q '"quarantined": *0'
}
until_ok settled
copy_both_ways "$bdf"
stop_manager
stop_daemon
take_drive "$bdf"
end_world
