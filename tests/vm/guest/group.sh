# SPDX-License-Identifier: BSD-2-Clause
# The drive shares its slot, and so its IOMMU group, with a network card. While that is in use the group
# stays as it is: not translated (iommu=pt) or lazily flushed, and `device add` says what follows. A card
# whose interface is up is refused; alone in its group the drive is translated whatever the kernel's default.
# modules: smartio nvme e1000e
# programs: tests/vm/wild
# not: none amd
# alone: a second function in the drive's slot, and another default of the kernel
# nvme: serial=SIO0,multifunction=on
# qemu: -device e1000e,bus=rp0,addr=0.1
# append: iommu=pt
. /lib.sh
if [ "$KERNEL" = debug ]; then
	echo "the debug kernel has no driver for the card: nothing to be seen here"
	exit 0
fi
bdf=$(drive_bdf)
card=${bdf%.0}.1
type=$(readlink -f "/sys/bus/pci/devices/$bdf/iommu_group")/type
[ "$(readlink -f "/sys/bus/pci/devices/$card/iommu_group")/type" = "$type" ] || fail "two groups"
load_modules
until_ok test -e "/sys/bus/pci/devices/$card/net"
interface=$(ls "/sys/bus/pci/devices/$card/net")

said() { # TEXT
	grep -q "$1" /tmp/said || fail "not said, '$1': $(cat /tmp/said)"
}
is_kind() { # TYPE
	[ "$(cat "$type")" = "$1" ] || fail "the group is $(cat "$type"), not $1"
}
add_drive() {
	smartio device add "$bdf" >/tmp/said 2>&1 || fail "$(cat /tmp/said)"
	cat /tmp/said
}
doctor_says() {
	smartio doctor >/tmp/said 2>&1 || :
	said "$1"
}
drive_works() {
	start_daemon
	start_manager "$bdf"
	copy_both_ways "$bdf"
	stop_manager
	stop_daemon
}
unbind() { # BDF
	echo "$1" >"/sys/bus/pci/devices/$1/driver/unbind"
}
# The kernel's default for the group, as if it had been so from the start.
set_kind() { # TYPE
	unbind "$bdf"
	unbind "$card"
	echo "$1" >"$type"
	echo "$bdf" >/sys/bus/pci/drivers_probe
	echo "$card" >/sys/bus/pci/drivers_probe
	until_ok test -b /dev/nvme0n1
}

echo "an interface that is up"
ip link set "$interface" up
! smartio device add "$card" >/tmp/said 2>&1 || fail "an interface that is up was taken"
said "$card is in use: network interface $interface is up"
[ "$(ip -o link show "$interface" | grep -c '[<,]UP[,>]')" = 1 ] || fail "it is down now"

echo "not translated, and the card is in use"
is_kind identity
add_drive
said "shares IOMMU group .* with $card"
said "stays identity .*: the device reaches all memory"
is_kind identity
doctor_says "BAD.*iommu-passthrough.*$bdf: IOMMU group .* is of type identity"
doctor_says "WARN.*iommu-shared.*$bdf is in one IOMMU group with $card"
drive_works
take_drive "$bdf"

# 6.1 changes the type of no group that has more than one function.
if [ "$KERNEL" != 6.1 ]; then
	echo "lazily flushed, and the card is in use"
	set_kind DMA-FQ
	add_drive
	said "stays DMA-FQ .*: the module flushes by itself"
	is_kind DMA-FQ
	drive_works
	take_drive "$bdf"
	is_kind DMA-FQ
fi

echo "by force, and back"
ip link set "$interface" up
smartio device add --force "$card"
[ -e "/sys/bus/pci/drivers/smartio/$card" ] || fail "the card was not taken"
[ ! -e "/sys/class/net/$interface" ] || fail "its interface is still there"
smartio device remove "$card" 2>&1 | grep -q "is with driver e1000e again" || fail "remove"
until_ok test -e "/sys/bus/pci/devices/$card/net"

if [ "$KERNEL" = 6.1 ]; then
	rmmod smartio
	exit 0
fi
echo "not translated by default, but nobody else is in the group"
set_kind identity
unbind "$card"
add_drive
is_kind DMA
start_daemon
start_manager "$bdf"
as_user wild "$bdf" 0x13370000 read >/tmp/wild || fail "wild: $(cat /tmp/wild)"
stopped() {
	grep -i "$bdf: .*write.* at 0x13370000 failed" /tmp/smartiod.log
}
until_ok stopped
stop_manager
stop_daemon
take_drive "$bdf"
is_kind identity
rmmod smartio
