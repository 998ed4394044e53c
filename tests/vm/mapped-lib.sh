# SPDX-License-Identifier: BSD-2-Clause
# What mapped.py has its machines run, besides cluster-lib.sh.
. /cluster-lib.sh

# What the daemon has sent to others, and heard of them.
peer_messages() {
	smartio stats --node "$(hostname)" | awk -v host="$(hostname)" '$2 == host && /peer_messages/ { print $3, $4 }'
}

# iopath: it has opened the drive; its reads are done; it has ended.
start_path() { # DEVICE READS DEPTH
	begin path iopath "$@"
	until_ok said_or_ended open
}

said_or_ended() { # WORD
	grep -q "^$1" /tmp/p.path.out || test -s /tmp/p.path.end
}

next_of_path() { # WORD
	[ ! -s /tmp/p.path.end ] || fail "iopath: $(cat /tmp/p.path.err)"
	echo >/tmp/p.path.in
	until_ok said_or_ended "$1"
	grep -q "^$1" /tmp/p.path.out || fail "iopath: $(cat /tmp/p.path.err)"
}

end_path() {
	echo >/tmp/p.path.in
	finish path
}

# Of a client's calls, by callgrind. Whoever finds a completion missing when all should be there (exit status 3) has counted too
# much.
instructions() { # DEVICE READS DEPTH
	tries=0
	while :; do
		printf '\n\n' >/tmp/lines
		rc=0
		VALGRIND_LIB=/bin SMARTIO_WAKE=timer valgrind.bin -q --tool=callgrind --collect-atstart=no --callgrind-out-file=/tmp/counted \
			iopath "$@" calm </tmp/lines >/dev/null 2>/tmp/said || rc=$?
		[ $rc != 0 ] || break
		tries=$((tries + 1))
		[ $rc = 3 ] && [ $tries -lt 5 ] || fail "iopath ended with $rc: $(cat /tmp/said)"
	done
	sed -n 's/^totals: //p' /tmp/counted
	rm -f /tmp/counted
}
