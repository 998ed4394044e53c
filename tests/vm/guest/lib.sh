# SPDX-License-Identifier: BSD-2-Clause
# For the scripts of test machines: `. /lib.sh`. The first command that fails ends the test.
set -eu

fail() {
	echo "FAILED: $*"
	exit 1
}

# Ask the host for something (vm.py); its answer is printed. What it refuses ends the test.
host() {
	echo "HOST $*" >&3
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

# All modules that came along, in the order they need.
load_modules() {
	for m in $(cat /modules/order); do
		insmod "/modules/$m"
	done
}

# On the debug kernel: no memory may have lost its last reference. kmemleak looks only at what is
# at least five seconds old, and takes two looks to be sure.
check_leaks() {
	[ -e /sys/kernel/debug/kmemleak ] || return 0
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	leaks=$(cat /sys/kernel/debug/kmemleak)
	[ -z "$leaks" ] || fail "kmemleak: $leaks"
}

# Run a command until it succeeds; each try takes its time by itself.
until_ok() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "$*: not after $tries tries"
		usleep 50000
	done
}
