# SPDX-License-Identifier: BSD-2-Clause
# SIGKILL at every system call that a client, the manager and the daemon make (a few of them, but for
# --soak), while another client must notice nothing as long as manager and daemon live. strace counts
# the calls of one name, so name and number are tried, pair by pair.
# modules: smartio nvme
# programs: strace tests/system/verify
# limit: 1500
. /lib.sh
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"

# Pairs of what a trace shows, from where the program has come to us: its connection, or the daemon's
# device node; before that it has nothing that could be lost. For each name as many as one thread made.
# How often threads meet in a lock or a poller yields is chance: the first few of those.
pairs() { # TRACE
	awk '
		match($2, /^[a-z0-9_]+\(/) {
			name = substr($2, 1, RLENGTH - 1)
			if (++seen[$1 " " name] > most[name]) {
				n = ++most[name]
				if (come && (n <= 5 || name !~ /^(sched_yield|futex)$/)) print name, n
			}
		}
		/connect\(.*smartiod|open.*smartio0/ { come = 1 }
	' "$1"
}

# The debug kernel is slow: fewer there.
some_of() { # HOW-MANY
	case $SOAK$KERNEL in
	1*) cat ;;
	debug) shuf -n $(($1 / 3)) ;;
	*) shuf -n "$1" ;;
	esac
}

settled() {
	[ "$(smartio device list --json | sed -n 's/.*"quarantined": *\([0-9]*\).*/\1/p')" = 0 ]
}

client() { # COMMAND... that is put before it
	spawn "$@" smartio-nvme bench "$bdf" --write --count 20 --depth 4 --length 1M
}

# Wait for a process that may have been killed, or have met one that was; not for 139 and the like.
ended() { # PID
	status=0
	wait "$1" 2>/dev/null || status=$?
	case $status in
	0 | 1 | 137) ;;
	*) fail "at $name $number a program ended with $status" ;;
	esac
}

# What became of one.
count_death() {
	tried=$((tried + 1))
	[ "$status" != 137 ] || died=$((died + 1))
	[ $((tried % 50)) != 0 ] || echo "killed at $died of $tried system calls until now"
}

told() {
	echo "killed at $died of $tried system calls"
	[ $tried -gt 0 ] || fail "the trace shows no call"
	# A call may come once more or less often; of a few, chance may pick those.
	[ $tried -lt 6 ] || [ "$died" -gt $((tried / 20)) ] || fail "too few were killed"
}

deaths() { # TRACE HOW-MANY COMMAND...
	tried=0 died=0
	pairs "$1" | some_of "$2" >/tmp/pairs
	shift 2
	while read -r name number <&8; do
		"$@"
		count_death
	done 8</tmp/pairs
	told
}

echo "a client"
start_daemon
start_manager "$bdf"
start_watched verify verify "$bdf" 65536 256
client strace -f -qq -o /tmp/trace >/dev/null &
wait $! || fail "the client does not work under strace"
# Several at once: who dies disturbs neither them nor who verifies.
clients=
all_end() {
	for pid in $clients; do
		ended "$pid"
		count_death
	done
	clients=
	until_ok settled
}
client_deaths() { # HOW-MANY
	tried=0 died=0
	pairs /tmp/trace | some_of "$1" >/tmp/pairs
	while read -r name number <&8; do
		spawn strace -f -qq -o /dev/null -e "inject=$name:signal=KILL:when=$number" \
			smartio-nvme bench "$bdf" --write --count 20 --depth 4 --length 1M >/dev/null 2>&1 &
		clients="$clients $!"
		[ "$(echo $clients | wc -w)" -lt 8 ] || all_end
	done 8</tmp/pairs
	all_end
	told
}
client_deaths 8
end_watched verify
copy_both_ways "$bdf"
stop_manager

echo "the manager"
# Ready, or dead: whichever comes first. Then a client, and the end.
manager_life() { # COMMAND... that is put before it
	: >/tmp/manager
	spawn "$@" smartio-nvme manager "$bdf" >/tmp/manager 2>/dev/null &
	manager=$!
	ready_or_dead() {
		[ -s /tmp/manager ] || ! kill -0 "$manager" 2>/dev/null
	}
	until_ok ready_or_dead
	client >/dev/null 2>&1 &
	client=$!
	wait "$client" || :
	pid=$(pidof smartio-nvme) || :
	[ -z "$pid" ] || kill $pid
}
manager_life strace -f -qq -o /tmp/trace
wait "$manager" || fail "the manager does not work under strace"
one_manager() {
	manager_life strace -f -qq -o /dev/null -e "inject=$name:signal=KILL:when=$number"
	ended "$manager"
	died_so=$status
	start_manager "$bdf" >/dev/null
	until_ok settled
	stop_manager
	status=$died_so
}
deaths /tmp/trace 6 one_manager
start_manager "$bdf"
copy_both_ways "$bdf"
stop_manager
stop_daemon

echo "the daemon"
# One that died is followed by another; programs at work find it.
nurse() {
	kill -0 "$daemon" 2>/dev/null || start_daemon
}
over() { # PID
	nurse
	! kill -0 "$1" 2>/dev/null
}
manager_is_up() {
	[ -s /tmp/manager ] || over "$manager"
}
daemon_life() { # COMMAND... that is put before it
	: >/tmp/ready
	"$@" smartiod --shim --ready-fd 4 4>/tmp/ready 2>>/tmp/smartiod.log &
	daemon=$!
	first=$daemon
	daemon_is_up() {
		[ -s /tmp/ready ] || ! kill -0 "$daemon" 2>/dev/null
	}
	until_ok daemon_is_up
	: >/tmp/manager
	spawn smartio-nvme manager "$bdf" >/tmp/manager 2>/dev/null &
	manager=$!
	until_ok manager_is_up
	client >/dev/null 2>&1 &
	client=$!
	until_ok over "$client"
	ended "$client"
	kill "$manager" 2>/dev/null || :
	until_ok over "$manager"
	ended "$manager"
	pid=$(pidof smartiod) || :
	[ -z "$pid" ] || kill $pid
	[ "$daemon" = "$first" ] || wait "$daemon" || fail "smartiod ended with $?"
}
name=none number=0
daemon_life strace -f -qq -o /tmp/trace
wait "$first" || fail "the daemon does not work under strace"
one_daemon() {
	daemon_life strace -f -qq -o /dev/null -e "inject=$name:signal=KILL:when=$number"
	ended "$first"
	died_so=$status
	start_daemon
	start_manager "$bdf" >/dev/null
	until_ok settled
	stop_manager
	stop_daemon
	status=$died_so
}
deaths /tmp/trace 6 one_daemon
start_daemon
start_manager "$bdf"
copy_both_ways "$bdf"
stop_manager
stop_daemon
take_drive "$bdf"
dd if=/dev/nvme0n1 bs=1M skip=48 count=1 2>/dev/null | cmp - /tmp/file ||
	fail "nvme.ko reads something else than what was written"
rmmod smartio
