# SPDX-License-Identifier: BSD-2-Clause
# What is built on the driver: nbdkit serves ranges of the drive to programs that know nothing of us. A manager is killed under
# their I/O and the standby takes its place: on real hosts that resets the drive, which queues survive and leases do not. Who
# holds a lease and is killed has it no more.
# worlds: vfio module
# modules: smartio nvme
# programs: nbdkit nbdcopy drivers/nvme-nbd/nbdkit-smartio-plugin.so
# not: none
. /lib.sh
bdf=$(drive_bdf)
load_modules
until_ok test -b /dev/nvme0n1
give_drive "$bdf"
start_daemon
start_manager "$bdf"
first=$manager
: >/tmp/second
start_standby() {
	: >/tmp/second
	spawn smartio-nvme manager "$bdf" --standby >/tmp/second 2>/tmp/second.err &
	second=$!
	until_ok stands_by
}
stands_by() {
	smartio-nvme queues "$bdf" | grep 'standby: node'
}
leased() { # NAME
	smartio-nvme leases "$bdf" | grep "$1"
}
not_leased() { # NAME
	! leased "$1"
}
serve() { # NAME RANGE WORD...
	name=$1 range=$2
	shift 2
	rm -f "/tmp/$name.sock" "/tmp/$name.pid"
	spawn nbdkit -f -U "/tmp/$name.sock" -P "/tmp/$name.pid" /bin/nbdkit-smartio-plugin.so device="$bdf" range="$range" "$@" \
		2>"/tmp/$name.err" &
	server=$!
}
uri() { # NAME
	echo "nbd+unix:///?socket=/tmp/$1.sock"
}
start_standby
serve plain 8M:4M
until_ok test -e /tmp/plain.pid
plain=$server
serve one 16M:4M lease=one
until_ok leased one
one=$server
serve two 18M:4M lease=two
! wait $server || fail "two have a lease of the same blocks"
grep one /tmp/two.err || fail "the second was told: $(cat /tmp/two.err)"

echo "what a program writes to either is on the drive, and nowhere else"
head -c 4194304 /dev/urandom >/tmp/image
until_ok test -e /tmp/one.pid
as_user nbdcopy /tmp/image "$(uri plain)"
as_user nbdcopy /tmp/image "$(uri one)"
for at in 8 16; do
	[ "$(host sha256 $((at * 1048576)) 4194304)" = "$(sha256sum </tmp/image | cut -d' ' -f1)" ] ||
		fail "the drive has something else at $at MiB"
done

echo "the manager is killed under I/O, again and again; another one stands by each time"
(
	while [ ! -e /tmp/enough ]; do
		as_user nbdcopy "$(uri plain)" - | cmp - /tmp/image || {
			touch /tmp/wrong
			exit 1
		}
		echo >>/tmp/rounds
	done
) &
reader=$!
reads_on() {
	[ ! -e /tmp/wrong ] || fail "a reader has read something else, or nothing: $(cat /tmp/plain.err /tmp/second.err)"
	[ -s /tmp/rounds ]
}
until_ok reads_on
ROUNDS=${SOAK:+20}
: "${ROUNDS:=3}"
n=0
while [ $n -lt "$ROUNDS" ]; do
	kill -9 "$first"
	wait "$first" || :
	until_ok grep ready /tmp/second
	first=$second
	: >/tmp/rounds
	until_ok reads_on
	start_standby
	n=$((n + 1))
done
touch /tmp/enough
wait $reader || :
reads_on

echo "the lease has ended with the manager: its holder writes nothing any more, and is told"
not_leased one
as_user nbdcopy /tmp/image "$(uri one)" && fail "it writes without its lease"
tail -n 1 /tmp/one.err
kill $one
wait $one || :
serve one 16M:4M lease=one
until_ok leased one
one=$server
echo "who has a lease is killed"
kill -9 $one
wait $one || :
until_ok not_leased one
serve one 16M:4M lease=one
until_ok leased one
one=$server

kill $plain $one
wait_all $plain $one
kill "$second"
wait "$second" || :
manager=$first
stop_manager
stop_daemon
take_drive "$bdf"
end_world
