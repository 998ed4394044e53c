# SPDX-License-Identifier: BSD-2-Clause
# What cluster.py and trio.py have their machines run, besides ntb-lib.sh.

# Of the cluster's keys a host has its own.
install_keys() { # HOST
	mkdir -p /etc/smartio/keys
	cp /keys/ca.pem /keys/crl.pem "/keys/$1.key" "/keys/$1.pem" /etc/smartio/keys
	chmod 600 "/etc/smartio/keys/$1.key"
	rm -rf /keys
}

# What an administrator brings there: a cluster's file, and new keys.
take_file() { # NAME
	cp "/files/$1" /etc/smartio/cluster.yaml
}

renew_keys() { # HOST
	cp /keys.new/crl.pem "/keys.new/$1.key" "/keys.new/$1.pem" /etc/smartio/keys
}

knows() { # HOST...: these are the cluster, and no others
	[ "$(smartio node list | awk 'NR > 1 { print $1 }' | sort | xargs)" = "$*" ]
}

start_daemon() { # HOST
	: >/tmp/ready
	smartiod --shim --node "$1" --ready-fd 4 4>/tmp/ready 2>>/tmp/smartiod.log &
	echo $! >/tmp/smartiod.pid
	until_ok ready_or_ended
	test -s /tmp/ready || fail "smartiod: $(tail -n 3 /tmp/smartiod.log)"
}

ready_or_ended() {
	test -s /tmp/ready || ! kill -0 "$(cat /tmp/smartiod.pid)" 2>/dev/null
}

start_host() { # HOST ADDRESS
	ip address add "$2/24" dev eth0
	ip link set eth0 up
	start_among "$1"
}

# An interface for each of the others, in their order.
start_host_of_many() { # HOST ADDRESS OTHER-ADDRESS...
	name=$1 own=$2 n=0
	shift 2
	for other; do
		ip address add "$own" peer "$other" dev "eth$n"
		ip link set "eth$n" up
		n=$((n + 1))
	done
	start_among "$name"
}

start_among() { # HOST
	hostname "$1"
	install_keys "$1"
	ip link set lo up
	start_daemon "$1"
}

has_device() { # DEVICE
	smartio device list | grep -q "^$1 "
}

start_manager() { # DEVICE
	: >/tmp/manager
	smartio-nvme manager "$1" >/tmp/manager 2>/tmp/manager.err &
	echo $! >/tmp/manager.pid
	until_ok manager_or_end
	test -s /tmp/manager || fail "manager: $(cat /tmp/manager.err)"
}

manager_or_end() {
	test -s /tmp/manager || ! kill -0 "$(cat /tmp/manager.pid)" 2>/dev/null
}

stop_manager() {
	kill "$(cat /tmp/manager.pid)"
	until_ok test ! -e "/proc/$(cat /tmp/manager.pid)"
}

# verify, until end_io: its output and how it ended are in files.
start_io() { # DEVICE FIRST-BLOCK BLOCKS [interrupt]
	rm -f /tmp/io.*
	mkfifo /tmp/io.in
	(
		verify "$@" </tmp/io.in >/tmp/io.out 2>/tmp/io.err &
		echo $! >/tmp/io.pid
		wait $! && echo 0 >/tmp/io.end || echo $? >/tmp/io.end
	) &
	sleep 100000 >/tmp/io.in &
	echo $! >/tmp/io.feeder
	until_ok io_goes_or_ended
	grep -q running /tmp/io.out || fail "verify: $(cat /tmp/io.err)"
}

io_goes_or_ended() {
	test -s /tmp/io.out || test -s /tmp/io.end
}

# I/O that begins from now on ends, too.
more_io() {
	on=$(grep -c '^on$' /tmp/io.out || true)
	kill -USR1 "$(cat /tmp/io.pid)" || fail "verify: $(cat /tmp/io.err)"
	until_ok io_went_on_or_ended
	[ ! -s /tmp/io.end ] || fail "verify: $(cat /tmp/io.err)"
}

io_went_on_or_ended() {
	test -s /tmp/io.end || [ "$(grep -c '^on$' /tmp/io.out)" != "$on" ]
}

# What it has locked is free when this comes back.
kill_daemon() {
	kill -9 "$(cat /tmp/smartiod.pid)"
	until_ok has_ended "$(cat /tmp/smartiod.pid)"
}

has_ended() { # PID
	! grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null
}

# Has the daemon of HOST met ours once more since this?
meetings() { # HOST
	grep -c "$1 is up" /tmp/smartiod.log >/tmp/meetings
}

met() { # HOST
	[ "$(grep -c "$1 is up" /tmp/smartiod.log)" -gt "$(cat /tmp/meetings)" ]
}

end_io() {
	kill "$(cat /tmp/io.feeder)"
	until_ok test -s /tmp/io.end
	[ "$(cat /tmp/io.end)" = 0 ] || fail "verify: $(cat /tmp/io.err)"
	tail -n 1 /tmp/io.out
}

# It ends by itself, and says why.
broken_io() {
	until_ok test -s /tmp/io.end
	kill "$(cat /tmp/io.feeder)"
	[ "$(cat /tmp/io.end)" != 0 ] || fail "verify noticed nothing"
	cat /tmp/io.err
}

# What smartiod and the kernel module have, to be compared with later.
remember() {
	lists >/tmp/lists.before
}

as_before() {
	for _ in $(seq 300); do
		same_lists && return
		usleep 50000
	done
	diff /tmp/lists.before /tmp/lists.now || fail "it has not what it had before"
}

same_lists() {
	lists >/tmp/lists.now && cmp -s /tmp/lists.before /tmp/lists.now
}

# Programs have nothing, nor has who died. (A daemon that is killed leaves its rows in tables of requesters.)
only_devices() {
	[ -z "$(lists | grep -v '^device \|^requester ')" ]
}

# So many borrow it, and so many that have ended may still be written to by it.
same_borrowers() { # DEVICE BORROWERS QUARANTINED
	[ "$(smartio device list | awk -v d="$1" '$1 == d { print $(NF - 1), $NF }')" = "$2 $3" ]
}

# smartiod's log has such a line.
said() { # PATTERN
	grep -q "$1" /tmp/smartiod.log
}

# A program that prints a line when it runs and ends when its input does. What it is and how it ended is in
# files with its name.
begin() { # NAME COMMAND...
	name=/tmp/p.$1
	shift
	rm -f "$name".*
	mkfifo "$name.in"
	(
		"$@" <"$name.in" >"$name.out" 2>"$name.err" &
		echo $! >"$name.pid"
		wait $! && echo 0 >"$name.end" || echo $? >"$name.end"
	) &
	sleep 100000 >"$name.in" &
	echo $! >"$name.feeder"
	until_ok test -s "$name.pid"
}

runs() { # NAME
	until_ok runs_or_ended "$1"
	[ ! -s "/tmp/p.$1.end" ] || fail "$1 ended: $(cat "/tmp/p.$1.err")"
}

runs_or_ended() {
	test -s "/tmp/p.$1.out" || test -s "/tmp/p.$1.end"
}

# What it does and begins from now on ends, too.
goes_on() { # NAME
	[ ! -s "/tmp/p.$1.end" ] || fail "$1 ended: $(cat "/tmp/p.$1.err")"
	on=$(grep -c '^on$' "/tmp/p.$1.out" || true)
	kill -USR1 "$(cat "/tmp/p.$1.pid")" || fail "$1 ended: $(cat "/tmp/p.$1.err")"
	until_ok on_or_ended "$1"
	[ ! -s "/tmp/p.$1.end" ] || fail "$1 ended: $(cat "/tmp/p.$1.err")"
}

on_or_ended() { # NAME
	test -s "/tmp/p.$1.end" || [ "$(grep -c '^on$' "/tmp/p.$1.out")" != "$on" ]
}

stop_feeder() { # NAME
	kill "$(cat "/tmp/p.$1.feeder")" 2>/dev/null || true
}

# In order, as its user ends it.
finish() { # NAME
	stop_feeder "$1"
	until_ok test -s "/tmp/p.$1.end"
	[ "$(cat "/tmp/p.$1.end")" = 0 ] || fail "$1 ended with $(cat "/tmp/p.$1.end"): $(cat "/tmp/p.$1.err")"
}
