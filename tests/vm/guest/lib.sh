# SPDX-License-Identifier: BSD-2-Clause
# For the scripts of test machines: `. /lib.sh`. The first command that fails ends the test.
set -eu

fail() {
	[ ! -s /tmp/smartiod.log ] || tail -n 5 /tmp/smartiod.log >&2
	echo "FAILED: $*" >&2
	exit 1
}

# Ask the host for something (vm.py); its answer is printed. What it refuses ends the test.
host() {
	printf '\nHOST %s\n' "$*" >&3
	read -r answer <&3
	case $answer in
	ok*) ;;
	*) fail "host: $answer" ;;
	esac
	answer=${answer#ok}
	echo "${answer# }"
}

# PCI address of the test drive, as the kernel writes it.
drive_bdf() {
	for d in /sys/bus/pci/devices/*; do
		[ "$(cat "$d/class")" = 0x010802 ] && basename "$d" && return
	done
	fail "no NVMe drive on the PCI bus"
}

# The other NVMe controller of a machine that has two.
other_bdf() { # BDF
	for d in /sys/bus/pci/devices/*; do
		[ "$(cat "$d/class")" = 0x010802 ] && [ "$(basename "$d")" != "$1" ] &&
			basename "$d" && return
	done
	fail "no second NVMe controller on the PCI bus"
}

# The machine is what its name says: IOMMU and interrupt remapping, or none; the debug kernel's checks.
check_machine() {
	groups=$(ls /sys/kernel/iommu_groups 2>/dev/null | wc -l)
	case $IOMMU in
	none) [ "$groups" = 0 ] || fail "$groups IOMMU groups without an IOMMU" ;;
	*)
		[ -e "/sys/bus/pci/devices/$(drive_bdf)/iommu_group" ] ||
			fail "the drive is in no IOMMU group"
		grep -iE 'enabled irq remapping|interrupt remapping enabled' /run/boot.log ||
			fail "no interrupt remapping"
		;;
	esac
	[ "$KERNEL" = debug ] || return 0
	[ -e /sys/kernel/debug/kmemleak ] || fail "no kmemleak"
	grep -q 'KernelAddressSanitizer initialized' /run/boot.log || fail "no KASAN"
}

# A module that came along, unless it is there.
load_module() { # NAME.ko
	name=${1%.ko}
	grep -q "^$name " /proc/modules || insmod "/modules/$1"
}

# All that the test asks for, in the order they need.
load_modules() {
	for m in $MODULES; do
		load_module "$m"
	done
}

# Lines for the file of this name beside vm.py: --record writes them.
record() { # NAME
	sed "s/^/RECORD $1 /"
}

# Run a command until it succeeds, for two minutes and a half at least: this machine may get little time.
until_ok() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 3000 ] || fail "$*: not after $tries tries"
		usleep 50000
	done
}

# ---- what the machine holds, before and after ----

number_of() { # COUNTER, in /tmp/counters
	value=$(sed -n "s/^\"$1\":\"\(0x[0-9a-f]*\)\"$/\1/p" /tmp/counters | head -n 1)
	[ -n "$value" ] || fail "smartio stats has no counter $1"
	echo $((value))
}

# Without what ends and comes with each command. The ring of a data interrupt's sender is a memory that
# stays until the receiver's library has seen that the sender has gone: some rounds have one, some none.
holds() {
	smartio stats --json | tr ',' '\n' | tr -d ' {}' >/tmp/counters
	mems=$(number_of mems)
	rings=$(number_of rings)
	echo "memories $((mems - rings))"
	for counter in bars dmamaps irqs owners; do
		number=$(number_of $counter)
		echo "$counter $number"
	done
}

remember() {
	holds >/tmp/held
}

as_before() {
	holds | cmp -s - /tmp/held
}

# ---- SmartIO on this machine: by smartio.ko, or by VFIO ($WORLD; pairs of machines do not say) ----

: "${WORLD:=module}"
case $WORLD in
vfio) DRIVER=vfio-pci ;;
*) DRIVER=smartio ;;
esac

give_drive() { # BDF
	case $WORLD in
	vfio) smartio device add "$1" --vfio ;;
	*) smartio device add "$1" ;;
	esac
	[ -e "/sys/bus/pci/drivers/$DRIVER/$1" ] || fail "$1 is not bound"
}

world_option() {
	case $WORLD in
	vfio) echo --vfio ;;
	*) echo --shim ;;
	esac
}

take_drive() { # BDF
	smartio device remove "$1"
	until_ok test -b /dev/nvme0n1
}

# Files, not pipes: the shell gives up opening a pipe when a child of it ends meanwhile.
start_daemon() { # OPTION...
	: >/tmp/ready
	"${SMARTIOD:-smartiod}" $(world_option) --ready-fd 4 "$@" 4>/tmp/ready 2>>/tmp/smartiod.log &
	daemon=$!
	until_ok test -s /tmp/ready
}

stop_daemon() {
	kill "$daemon"
	wait "$daemon" || fail "smartiod ended with $?"
}

# Nothing of ours is left in the kernel, or beside it.
end_world() {
	case $WORLD in
	vfio) ! pidof smartio-vfio || fail "smartio-vfio did not end" ;;
	*) rmmod smartio ;;
	esac
}

start_manager() { # DEVICE
	: >/tmp/manager
	spawn smartio-nvme manager "$1" >/tmp/manager &
	manager=$!
	until_ok test -s /tmp/manager
	cat /tmp/manager
}

stop_manager() {
	kill "$manager"
	wait "$manager" || fail "the manager ended with $?"
}

# As a member of the group; as one who is not.
as_user() {
	/bin/setpriv --reuid 1000 --regid 1000 --groups 900 "$@"
}

as_other() {
	/bin/setpriv --reuid 1001 --regid 1001 --clear-groups "$@"
}

# `spawn COMMAND &`: as a member of the group; $! is the program's own process.
spawn() {
	exec /bin/setpriv --reuid 1000 --regid 1000 --groups 900 "$@"
}

wait_all() { # PID...
	for pid; do
		wait "$pid" || fail "a program ended with $?"
	done
}

# Or it has ended without a word.
watched_began() {
	[ -s "/tmp/$watched.out" ] || eval "[ ! -e /proc/\$pid_$watched/exe ]"
}

# A program that says a line when it has begun and ends well when its input ends.
start_watched() { # NAME COMMAND...
	watched=$1
	shift
	mkfifo "/tmp/$watched.in"
	spawn "$@" <"/tmp/$watched.in" >"/tmp/$watched.out" 2>"/tmp/$watched.err" &
	eval "pid_$watched=$!"
	# Its input is open as long as this lives, which does nothing else.
	sleep 100000 >"/tmp/$watched.in" &
	eval "feeder_$watched=$!"
	until_ok watched_began
	[ -s "/tmp/$watched.out" ] || fail "$watched ended: $(cat "/tmp/$watched.err")"
	echo "$watched: $(head -n 1 "/tmp/$watched.out")"
}

end_watched() { # NAME
	eval "kill \$feeder_$1; wait \$pid_$1" || fail "$1 ended with $?: $(cat "/tmp/$1.err")"
	rm "/tmp/$1.in" "/tmp/$1.out" "/tmp/$1.err"
}

# I/O all over the drive's first 16 MB, until somebody ends it.
start_bench() { # DEVICE
	: >/tmp/progress
	spawn smartio-nvme bench "$1" --write --random --depth 16 --seconds 600 --progress \
		--length 16M 2>/tmp/progress >/tmp/bench.out &
	bench=$!
	until_ok test -s /tmp/progress
}

# A file of random bytes to the drive and back.
copy_both_ways() { # DEVICE
	head -c 1048576 /dev/urandom >/tmp/file
	as_user smartio-nvme copy-in "$1" /tmp/file --offset 48M 2>/dev/null
	rm -f /tmp/back
	as_user smartio-nvme copy-out "$1" /tmp/back --offset 48M --length 1M 2>/dev/null
	cmp /tmp/file /tmp/back || fail "a file came back changed"
}
