# SPDX-License-Identifier: BSD-2-Clause
# smartiod is killed and started again while programs have the drive. Who lives keeps it, whoever asks, and
# goes on; what the dead leave is settled by the next manager.
# worlds: module vfio
# programs: tests/vm/smartiod-older tests/vm/smartiod-newer
# modules: smartio nvme
. /lib.sh
bdf=$(drive_bdf)
check_machine
load_modules
give_drive "$bdf"

kill_daemon() {
	kill -9 "$daemon"
	wait "$daemon" || :
}

start_daemon
start_manager "$bdf"
echo "the daemon dies; the manager, which cannot know, keeps the drive"
kill -STOP "$manager"
kill_daemon
start_daemon
smartio device list | grep -q ' exclusive *1 *0$' || fail "the drive seems free"
! as_user smartio-nvme manager "$bdf" || fail "two managers have one drive"
! as_user smartio-nvme identify "$bdf" || fail "the drive was lent as if it were free"
echo "the manager dies, and the next one finds what it left"
kill -9 "$manager"
wait "$manager" || :
exec 5<&-
start_manager "$bdf"
as_user smartio-nvme copy-in "$bdf" /bin/busybox

echo "the manager dies while there is no daemon"
kill -STOP "$manager"
kill_daemon
kill -9 "$manager"
wait "$manager" || :
exec 5<&-
start_daemon
start_manager "$bdf"
as_user smartio-nvme copy-out "$bdf" /tmp/out --length "$(stat -c %s /bin/busybox)"
cmp /bin/busybox /tmp/out || fail "busybox came back changed"

echo "the daemon dies under a manager and two clients that work: they notice nothing"
ios=3000 # some seconds, longer than a restart takes
[ "$KERNEL" != debug ] || ios=1000
bench() {
	spawn smartio-nvme bench "$bdf" --count $ios --progress "$@"
}
mkfifo /tmp/polls /tmp/sleeps
bench 2>/tmp/polls &
polls=$!
bench --interrupt 2>/tmp/sleeps &
sleeps=$!
exec 6</tmp/polls 7</tmp/sleeps
head -c 20 <&6 >/dev/null # each has done something
head -c 20 <&7 >/dev/null
kill_daemon
start_daemon
cat <&6 >/tmp/polls.said &
cat <&7 >/tmp/sleeps.said
wait $polls || fail "a client ended with $?: $(tail -c 300 /tmp/polls.said)"
wait $sleeps || fail "a client ended with $?: $(tail -c 300 /tmp/sleeps.said)"
exec 6<&- 7<&-
echo "without a daemon who begins and who is about to end waits for one"
mkfifo /tmp/last
bench 2>/tmp/last &
polls=$!
exec 6</tmp/last
head -c 20 <&6 >/dev/null
kill_daemon
spawn smartio-nvme identify "$bdf" >/tmp/identify &
begins=$!
cat <&6 >/tmp/polls.said &
start_daemon
wait $polls || fail "a client ended with $?: $(tail -c 300 /tmp/polls.said; tail -n 3 /tmp/smartiod.log)"
wait $begins || fail "a program that began without a daemon ended with $?"
exec 6<&-
echo "it ends in order, while programs are connected: for who begins it is the same"
kill "$daemon"
wait "$daemon" || fail "smartiod ended with $?"
spawn smartio-nvme identify "$bdf" >/tmp/identify &
begins=$!
start_daemon
wait $begins || fail "a program that began without a daemon ended with $?"
said_more() { # BYTES
	[ -e "/proc/$polls/exe" ] || fail "the client ended: $(tail -c 300 /tmp/goes_on.said; tail -n 5 /tmp/smartiod.log)"
	[ "$(stat -c %s /tmp/goes_on.said)" -gt "$1" ]
}

# A debug kernel takes long for this, and decides nothing of it.
[ "$KERNEL" = debug ] || {
	echo "one comes that speaks another version: who is here goes on, who begins is told who is older"
	# Empty now: until the client has opened it, what another one said would pass for this one's.
	: >/tmp/goes_on.said
	spawn smartio-nvme bench "$bdf" --seconds 600 --progress 2>/tmp/goes_on.said &
	polls=$!
	until_ok said_more 20
	for age in older newer; do
		kill_daemon
		SMARTIOD=smartiod-$age start_daemon
		said=$(stat -c %s /tmp/goes_on.said)
		until_ok said_more "$said"
		! as_user smartio-nvme identify "$bdf" 2>/tmp/err || fail "it was served by another version"
		case $age in older) who=smartiod ;; *) who="the library" ;; esac
		grep "$who is older" /tmp/err || fail "$(cat /tmp/err)"
	done
	kill_daemon
	start_daemon
	as_user smartio-nvme identify "$bdf"
	kill -INT $polls
	wait $polls || fail "a client ended with $?: $(tail -c 300 /tmp/goes_on.said)"
}
copy_both_ways "$bdf"
stop_manager
stop_daemon
! as_user smartio-nvme identify "$bdf" 2>/tmp/err || fail "a program began, but nobody was there"
grep "no smartiod runs" /tmp/err || fail "$(cat /tmp/err)"
take_drive "$bdf"
end_world
