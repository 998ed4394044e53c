#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# In a machine of `smartio machine`, the first thing that its init runs: all until smartiod answers. It tells its end on
# the second serial line. /etc/machine says what this machine is (main.py).
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
. /etc/machine

fail() {
	echo "FAILED $*" >&3
	exit 1
}

# The network function of this Ethernet address.
interface() { # ADDRESS
	for d in /sys/class/net/*; do
		[ "$(cat "$d/address")" = "$1" ] && basename "$d" && return
	done
	return 1
}

load() { # MODULE...
	for m; do
		insmod "/modules/$m" 2>/run/insmod || fail "insmod $m: $(cat /run/insmod)"
	done
}

hostname "$NAME"
load $MODULES
ip link set lo up
for peer in $PEERS; do # ETHERNET-ADDRESS=IP-ADDRESS
	eth=$(interface "${peer%=*}") || fail "no network function has the address ${peer%=*}"
	ip address add "$ADDRESS/32" dev "$eth"
	ip link set "$eth" up
	ip route add "${peer#*=}/32" dev "$eth" src "$ADDRESS"
done
eth=$(interface "$AGENT_ETHER") || fail "no network function has the address $AGENT_ETHER"
ip address add "$AGENT_ADDRESS/24" dev "$eth"
ip link set "$eth" up
[ -n "$PEERS" ] || ip address add "$ADDRESS/32" dev lo
for host in $HOSTS; do
	# Emulated hosts at the loopback address are those of the computer outside, where QEMU connects to it.
	if [ "$host" = 127.0.0.1 ]; then
		echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
		ip address del 127.0.0.1/8 dev lo
	fi
	ip route add "$host/32" via "$GATEWAY" dev "$eth" src "$AGENT_ADDRESS" || fail "no way to $host"
done

# In sessions of their own: when this one ends, all in it are hung up.
mkfifo /run/ready
setsid /etc/keep >/dev/null 2>&1 3>&- &
read -r answer </run/ready
[ "$answer" = ready ] || fail "smartiod: $(tail -n 1 /run/smartiod.log)"
if [ -n "$DRIVE" ]; then
	smartio device add "$DRIVE" >/dev/null 2>/run/add || fail "smartio device add $DRIVE: $(cat /run/add)"
fi
load $MODULES_LATE
cd /root
smartio-agent "$eth" "$AGENT_ADDRESS" "$AGENT_PORT" 2>/run/agent || fail "$(cat /run/agent)"
echo READY >&3
