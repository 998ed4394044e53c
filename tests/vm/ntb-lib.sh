# SPDX-License-Identifier: BSD-2-Clause
# What pair.py has its machines run, besides lib.sh.

# Modules that came along.
load() { # NAME [PARAMETER...]
	name=$1
	shift
	insmod "/modules/$name.ko" "$@" || fail "insmod $name"
}

# The virtual NTB, as the kernel writes its address.
bdf() {
	for d in /sys/bus/pci/devices/*; do
		[ "$(cat "$d/vendor")$(cat "$d/device")" = 0x1af40x10f0 ] && basename "$d" && return
	done
	fail "no virtual NTB on the PCI bus"
}

# Whose IOMMU the virtual NTB is behind: "intel", "amd", or "none".
iommu() {
	[ -e "/sys/bus/pci/devices/$(bdf)/iommu_group" ] || { echo none && return; }
	[ -e /sys/class/iommu/ivhd0 ] && echo amd || echo intel
}

# A client's folder in debugfs.
debug() { # CLIENT
	echo "/sys/kernel/debug/$1/$(bdf)"
}

at_least() { # NUMBER FILE
	[ "$(cat "$2")" -ge "$1" ]
}

at_most() { # NUMBER FILE
	[ "$(cat "$2")" -le "$1" ]
}

same() { # WHAT GOT WANTED
	[ "$2" = "$3" ] || fail "$1 is $2, $3 is right"
}

logged() { # PATTERN
	dmesg | grep -q "$1"
}

# What smartio_ntb.ko said last of its peer.
is_up() {
	dmesg | grep 'ntb.*adapter 0 of node . is' | tail -n 1 | grep -q 'is up'
}

is_down() {
	! is_up
}

# Where the virtual NTB's window begins: its longest BAR.
window() {
	while read -r start end _; do
		echo "$((end - start)) $start"
	done <"/sys/bus/pci/devices/$(bdf)/resource" | sort -n | tail -n 1 | cut -d ' ' -f 2
}

# Eight, in hexadecimal, by one read.
first_bytes() { # FILE
	dd if="$1" bs=8 count=1 2>/dev/null | od -A n -t x1 | tr -d ' \n'
}

# How many of the driver's interrupts of one kind there were.
interrupts() { # KIND
	awk -v kind="smartio-$1" '$NF == kind { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

more_interrupts() { # NUMBER KIND
	[ "$(interrupts "$2")" -gt "$1" ]
}
