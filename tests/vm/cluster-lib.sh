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

# smartiod's log has such a line.
said() { # PATTERN
	grep -q "$1" /tmp/smartiod.log
}
