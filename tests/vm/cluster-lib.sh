# SPDX-License-Identifier: BSD-2-Clause
# What cluster.py has its machines run, besides ntb-lib.sh.

# Of the cluster's keys a host has its own.
install_keys() { # HOST
	mkdir -p /etc/smartio/keys
	cp /keys/ca.pem /keys/crl.pem "/keys/$1.key" "/keys/$1.pem" /etc/smartio/keys
	chmod 600 "/etc/smartio/keys/$1.key"
	rm -rf /keys
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
	hostname "$1"
	install_keys "$1"
	ip link set lo up
	ip address add "$2/24" dev eth0
	ip link set eth0 up
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
		verify "$@" </tmp/io.in >/tmp/io.out 2>/tmp/io.err && echo 0 >/tmp/io.end || echo $? >/tmp/io.end
	) &
	sleep 100000 >/tmp/io.in &
	echo $! >/tmp/io.feeder
	until_ok io_goes_or_ended
	grep -q running /tmp/io.out || fail "verify: $(cat /tmp/io.err)"
}

io_goes_or_ended() {
	test -s /tmp/io.out || test -s /tmp/io.end
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
