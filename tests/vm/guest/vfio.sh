# SPDX-License-Identifier: BSD-2-Clause
# A stock kernel alone: no module of ours. The drive goes to vfio-pci and back; a manager and three
# clients share it, by polling and by interrupts; who is killed leaves nothing.
# worlds: vfio
# modules: smartio nvme
# programs: tests/vm/killat
# not: none
. /lib.sh
bdf=$(drive_bdf)
check_machine
[ ! -e /sys/module/smartio ] || fail "smartio.ko is loaded"
refused() { # TEXT COMMAND...
	text=$1
	shift
	"$@" >/tmp/said 2>&1 && fail "$* was not refused"
	grep -q "$text" /tmp/said || fail "$* said: $(cat /tmp/said)"
	echo "refused, as it should be: $(tail -n 1 /tmp/said)"
}
[ -e /sys/bus/pci/drivers/vfio-pci ] || refused 'vfio-pci is not loaded' smartio device add "$bdf" --vfio
load_modules
until_ok test -b /dev/nvme0n1
refused 'the kernel module is not loaded' smartio device add "$bdf"
refused "was not added: driver nvme has it" smartio device remove "$bdf"
mkswap /dev/nvme0n1 >/dev/null && swapon /dev/nvme0n1 && {
	refused "this machine swaps to disk nvme0n1" smartio device add "$bdf" --vfio
	swapoff /dev/nvme0n1
}
give_drive "$bdf"
start_daemon
smartio device list
start_manager "$bdf"
echo "three clients copy a file each to the drive, all at once"
set -- /bin/busybox /bin/smartiod /lib/x86_64-linux-gnu/libc.so.6
n=0 jobs=
for file; do
	spawn smartio-nvme copy-in "$bdf" "$file" --offset $((n * 16777216)) &
	jobs="$jobs $!" n=$((n + 1))
done
wait_all $jobs
n=0 jobs=
for file; do
	spawn smartio-nvme copy-out "$bdf" /tmp/out$n --offset $((n * 16777216)) \
		--length "$(stat -c %s "$file")" &
	jobs="$jobs $!" n=$((n + 1))
done
wait_all $jobs
n=0
for file; do
	cmp "$file" /tmp/out$n || fail "$file came back changed"
	sum=$(sha256sum "$file" | cut -d' ' -f1)
	[ "$(host sha256 $((n * 16777216)) "$(stat -c %s "$file")")" = "$sum" ] ||
		fail "$file is not what the drive's file holds"
	n=$((n + 1))
done
refused "and VFIO takes it from nobody" smartio device remove "$bdf"
echo "clients that sleep until the drive's MSI-X wakes them"
bench() { # MIB COMMANDS OPTION...
	local offset=$(($1 * 1048576)) count=$2

	shift 2
	spawn smartio-nvme bench "$bdf" --interrupt --json --count "$count" --warmup 0 \
		--offset $offset --length 1048576 "$@"
}
interrupts() { # FILE
	grep -o '"interrupts": *[0-9]*' "$1" | grep -o '[0-9]*$'
}
bench 48 1000000000 >/tmp/endless &
endless=$!
bench 0 200 >/tmp/one &
jobs=$!
bench 16 200 >/tmp/two &
wait_all $jobs $!
kill -9 $endless
wait $endless || :
tries=0
until [ "$(interrupts /tmp/one)" -gt 0 ]; do
	tries=$((tries + 1))
	[ $tries -lt 20 ] || fail "no interrupt for $tries times 200 commands"
	bench 0 200 --size 128K >/tmp/one
done
cat /tmp/one
echo "who is not in the group is turned away"
! as_other smartio-nvme identify "$bdf" || fail "a stranger may use the drive"
stop_manager
stop_daemon
take_drive "$bdf"
[ ! -e "/run/smartiod/vfio/$bdf" ] || fail "a note is left"
n=0
for file; do
	size=$(stat -c %s "$file")
	dd if=/dev/nvme0n1 bs=1M skip=$((n * 16)) count=16 2>/dev/null | head -c "$size" |
		cmp - "$file" || fail "nvme.ko reads something else than $file"
	n=$((n + 1))
done
echo "I/O makes no system call: 5000 commands more cost no 500 calls more"
calls_of() { # COMMANDS
	rm -f /tmp/calls
	spawn killat connect list /tmp/calls smartio-nvme bench "$bdf" --count "$1" --warmup 0 --length 1M \
		>/dev/null &
	wait_all $!
	until_ok test -e /tmp/calls
	# A poller that finds nothing yields; reading the clock may be a call on such a machine.
	awk '$1 != "sched_yield" && $1 != "clock_gettime" { n += $2 } END { print n }' /tmp/calls
}
give_drive "$bdf"
start_daemon
start_manager "$bdf"
few=$(calls_of 100)
many=$(calls_of 5100)
echo "system calls, counted: $few with 100 commands, $many with 5100"
[ "$few" -gt 100 ] && [ "$many" -lt $((few + 500)) ] || fail "I/O makes system calls: $(cat /tmp/calls)"

device_is_free() {
	smartio device list | grep -q "^$bdf .*free"
}
random() { # LIMIT
	echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}
kill_holder() {
	kill -9 "$(pidof smartio-vfio)"
	wait "$daemon" && fail "smartiod goes on without its port"
	start_daemon
}
echo "smartio-vfio is killed under I/O, as if the power were cut: all are told, and the next ones begin anew"
ROUNDS=${SOAK:+30}
: "${ROUNDS:=2}"
n=0
while [ $n -lt "$ROUNDS" ]; do
	start_bench "$bdf"
	usleep "$(random 60000)"
	kill_holder
	wait "$bench" && fail "a client goes on without its drive"
	wait "$manager" || :
	until_ok device_is_free
	start_manager "$bdf"
	copy_both_ways "$bdf"
	n=$((n + 1))
done
smartio device info "$bdf" | grep "none among its borrowers"
smartio doctor --verbose >/tmp/said || :
grep BAD /tmp/said | grep -v smartio-emu && fail "doctor finds trouble where there is none"
grep 'world.*VFIO: smartio.ko is not loaded' /tmp/said || fail "doctor: $(cat /tmp/said)"

echo "who does not hear of it keeps the drive until it ends; then it can be lent again"
start_bench "$bdf"
kill -STOP "$bench"
kill_holder
wait "$manager" || :
! device_is_free || fail "the drive is lent although a program has it"
grep "another process has IOMMU group" /tmp/smartiod.log || fail "smartiod does not say who has it"
stop_daemon
refused "VFIO takes it from nobody" smartio device remove "$bdf"
[ -e "/run/smartiod/vfio/$bdf" ] || fail "the note is lost"
start_daemon
kill -9 "$bench"
wait "$bench" || :
until_ok device_is_free
start_manager "$bdf"
copy_both_ways "$bdf"
stop_manager
stop_daemon
take_drive "$bdf"
end_world
