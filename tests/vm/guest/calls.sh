# SPDX-License-Identifier: BSD-2-Clause
# SIGKILL at system calls that a client, the manager and the daemon make: a few of them; with --soak all.
# A call is its name and how many of that name there were before it, in all threads (killat.c), from
# where the program has come to us: its connection, or the daemon's first request to the device node.
# Before that it has nothing that could be lost.
# worlds: module vfio
# modules: smartio nvme
# programs: tests/vm/killat tests/vm/lists tests/system/verify
# limit: 1500
. /lib.sh
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"

# All calls that change something. A call that only waits or looks finds what the last one has left, which the
# next one that changes something finds, too; such calls repeat themselves without end: the first 20 of
# each name.
pairs() {
	until_ok test -e /tmp/calls
	awk '
		$1 ~ /^(futex|sched_yield|poll|ppoll|epoll_wait|recvmsg|read|access)$/ && $2 > 20 { $2 = 20 }
		{ for (n = 1; n <= $2; n++) print $1, n }
	' /tmp/calls
	rm /tmp/calls
}

# Of all calls this machine has a part (vm.py --part): each N-th, from the K-th on. The debug kernel is slow: fewer there.
some_of() { # HOW-MANY
	case $SOAK$KERNEL in
	1*) awk -v k="${PART% *}" -v n="${PART#* }" 'NR % n == k % n' | shuf ;;
	debug) shuf -n $(($1 / 3)) ;;
	*) shuf -n "$1" ;;
	esac
}

# Each in turn; the script goes on with what they have left behind.
deaths() { # HOW-MANY FUNCTION
	tried=0 died=0 killed=
	pairs >/tmp/all
	some_of "$1" </tmp/all >/tmp/pairs
	echo "$(wc -l </tmp/pairs) of $(wc -l </tmp/all) system calls"
	while read -r name number <&8; do
		"$2"
	done 8</tmp/pairs
}

# Wait for a process that may have been killed; not for 139 and the like.
ended() { # PID MAY-END-WITH...
	status=0 pid=$1
	shift
	wait "$pid" 2>/dev/null || status=$?
	for may; do
		[ "$status" != "$may" ] || return 0
	done
	fail "at $name $number (of late: $killed) one ended with $status: $(tail -n 5 /tmp/said)"
}

count_death() { # STATUS
	tried=$((tried + 1))
	killed="$killed $name/$number"
	[ "$1" != 137 ] || died=$((died + 1))
	[ $((tried % 50)) != 0 ] || echo "killed at $died of $tried"
}

told() {
	echo "killed at $died of $tried system calls"
	[ $tried -gt 0 ] || fail "no call was counted"
	# How often some are made is chance, too; of a few, it may pick those.
	[ $tried -lt 6 ] || [ "$died" -gt $((tried / 2)) ] || fail "too few were killed"
}

settled() {
	[ "$(smartio device list --json | sed -n 's/.*"quarantined": *\([0-9]*\).*/\1/p')" = 0 ]
}

as_before() {
	lists >/tmp/now && cmp -s /tmp/before /tmp/now
}

# Nothing is left of them.
audit() {
	until_ok as_before
	killed=
}

client() { # COMMAND... that is put before it
	spawn "$@" smartio-nvme bench "$bdf" --write --count 20 --depth 4 --length 1M >/dev/null 2>>/tmp/said
}

# From where a daemon is counted: its first request to the port.
first_call=ioctl
[ "$WORLD" = module ] || first_call=connect

# VFIO's holder of the devices: not started by a daemon that is traced, for it would be, too.
hold_devices() {
	[ "$WORLD" = vfio ] || return 0
	! pidof smartio-vfio >/dev/null || return 0
	: >/tmp/holds
	smartio-vfio --ready-fd 4 4>/tmp/holds 2>>/tmp/smartiod.log &
	until_ok test -s /tmp/holds
}

echo "a client"
start_daemon
start_manager "$bdf"
start_watched verify verify "$bdf" 65536 256 seldom
lists >/tmp/before
name=none number=0
client killat connect list /tmp/calls &
ended $! 0
until_ok as_before
# Several at once: who dies disturbs neither them nor who verifies.
clients=
all_end() {
	for pid in $clients; do
		ended "$pid" 0 137
		count_death $status
	done
	clients=
	audit
}
a_client() {
	client killat connect "$name" "$number" &
	clients="$clients $!"
	[ "$(echo $clients | wc -w)" -lt 12 ] || all_end
}
deaths 24 a_client
all_end
told
end_watched verify
copy_both_ways "$bdf"
stop_manager

echo "the manager"
lists >/tmp/before
ready_or_dead() { # FILE PID
	[ -s "$1" ] || ! kill -0 "$2" 2>/dev/null
}
settled_or_dead() { # PID
	! kill -0 "$1" 2>/dev/null || settled
}
# Each settles what the one before it has left, or leaves it to the next. @manager_status: how it ended
manager_life() { # COMMAND... that is put before it
	: >/tmp/manager
	spawn "$@" smartio-nvme manager "$bdf" >/tmp/manager 2>>/tmp/said &
	manager=$!
	until_ok ready_or_dead /tmp/manager "$manager"
	until_ok settled_or_dead "$manager"
	if kill -0 "$manager" 2>/dev/null; then
		client &
		ended $! 0 1
		kill "$manager" 2>/dev/null || :
	fi
	ended "$manager" 0 137
}
sound_manager() {
	start_manager "$bdf" >/dev/null
	until_ok settled
	copy_both_ways "$bdf"
	stop_manager
	audit
}
name=none number=0
manager_life killat connect list /tmp/calls
a_manager() {
	manager_life killat connect "$name" "$number"
	count_death $status
	[ $((tried % 20)) != 0 ] || sound_manager
}
deaths 9 a_manager
sound_manager
told
stop_daemon

# A daemon that is killed at $name $number. It may have ended, in order or not, before it is ready.
traced_daemon() { # COMMAND... that is put before it
	hold_devices
	: >/tmp/ready
	"$@" smartiod $(world_option) --ready-fd 4 4>/tmp/ready 2>>/tmp/smartiod.log &
	daemon=$!
	until_ok ready_or_dead /tmp/ready "$daemon"
}
daemon_ends() {
	kill "$daemon" 2>/dev/null || :
	ended "$daemon" 0 137
}
# One that died is followed by another; programs at work find it.
over() { # PID
	kill -0 "$daemon" 2>/dev/null || start_daemon
	! kill -0 "$1" 2>/dev/null
}
# In the end nothing is left.
sound_daemon() {
	start_daemon
	sound_manager
	stop_daemon
}

echo "the daemon, alone"
name=none number=0
traced_daemon killat $first_call list /tmp/calls
daemon_ends
a_daemon() {
	traced_daemon killat $first_call "$name" "$number"
	daemon_ends
	count_death $status
	[ $((tried % 50)) != 0 ] || sound_daemon
}
deaths 9 a_daemon
sound_daemon
told

echo "the daemon, while it serves a manager and a client"
serving_daemon() { # COMMAND... that is put before it
	traced_daemon "$@"
	first=$daemon
	: >/tmp/manager
	spawn smartio-nvme manager "$bdf" >/tmp/manager 2>>/tmp/said &
	manager=$!
	manager_is_up() {
		[ -s /tmp/manager ] || over "$manager"
	}
	until_ok manager_is_up
	client &
	client=$!
	until_ok over "$client"
	ended "$client" 0 1
	kill "$manager" 2>/dev/null || :
	until_ok over "$manager"
	ended "$manager" 0 1
	daemon_ends
	[ "$daemon" = "$first" ] || ended "$first" 0 137
}
name=none number=0
serving_daemon killat accept4 list /tmp/calls
a_serving_daemon() {
	serving_daemon killat accept4 "$name" "$number"
	count_death $status
	[ $((tried % 20)) != 0 ] || sound_daemon
}
deaths 9 a_serving_daemon
sound_daemon
told

if [ "$WORLD" = vfio ]; then
	echo "smartio-vfio, under a daemon, a manager and a client: all are told, and the next ones begin anew"
	holder_life() { # COMMAND... that is put before it
		: >/tmp/holds
		"$@" smartio-vfio --ready-fd 4 4>/tmp/holds 2>>/tmp/smartiod.log &
		holder=$!
		until_ok ready_or_dead /tmp/holds "$holder"
		traced_daemon
		first=$daemon
		: >/tmp/manager
		spawn smartio-nvme manager "$bdf" >/tmp/manager 2>>/tmp/said &
		manager=$!
		manager_is_up() {
			[ -s /tmp/manager ] || over "$manager"
		}
		until_ok manager_is_up
		client &
		client=$!
		until_ok over "$client"
		ended "$client" 0 1
		kill "$manager" 2>/dev/null || :
		until_ok over "$manager"
		ended "$manager" 0 1
		kill "$daemon" 2>/dev/null || :
		ended "$daemon" 0 1
		[ "$daemon" = "$first" ] || ended "$first" 1
		ended "$holder" 0 137
	}
	name=none number=0
	holder_life killat accept4 list /tmp/calls
	a_holder() {
		holder_life killat accept4 "$name" "$number"
		count_death $status
		[ $((tried % 20)) != 0 ] || sound_daemon
	}
	deaths 9 a_holder
	sound_daemon
	told
fi

echo "the daemon, that finds programs at work: they notice nothing, and who begins neither"
start_daemon
start_manager "$bdf"
start_watched verify verify "$bdf" 65536 256 seldom
lists >/tmp/before
kill -9 "$daemon"
ended "$daemon" 137
finding_daemon() { # COMMAND... that is put before it
	traced_daemon "$@"
	first=$daemon dead=0
	if kill -0 "$first" 2>/dev/null; then
		client &
		client=$!
		until_ok over "$client"
		ended "$client" 0
	fi
	kill -0 "$first" 2>/dev/null || dead=137
	kill -9 "$daemon" 2>/dev/null || :
	ended "$daemon" 137
	[ "$daemon" = "$first" ] || ended "$first" 137
}
finding_daemon killat $first_call list /tmp/calls
a_finding_daemon() {
	finding_daemon killat $first_call "$name" "$number"
	count_death $dead
	[ $((tried % 20)) != 0 ] || {
		start_daemon
		audit
		kill -9 "$daemon"
		ended "$daemon" 137
	}
}
deaths 9 a_finding_daemon
start_daemon
audit
told
end_watched verify
copy_both_ways "$bdf"
stop_manager
stop_daemon
take_drive "$bdf"
dd if=/dev/nvme0n1 bs=1M skip=48 count=1 2>/dev/null | cmp - /tmp/file ||
	fail "nvme.ko reads something else than what was written"
end_world
