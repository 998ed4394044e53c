# SPDX-License-Identifier: BSD-2-Clause
# What installed.py has its machines run, besides guest/lib.sh.

# As an installed machine comes up: modules of the kernel that match what is there.
start_machine() { # HOST ADDRESS
	echo "$1" >/etc/hostname
	hostname "$1"
	depmod -a 2>/dev/null # it misses lists of what the kernel has built in
	systemctl restart systemd-udevd # which has read the lists before they were there
	udevadm trigger --action=add
	udevadm settle
	until_ok ethernet
	ip address add "$2/24" dev "$(ethernet)"
	ip link set "$(ethernet)" up
}

ethernet() {
	ls /sys/class/net | grep -vx lo
}

# Of the cluster's keys a host has its own.
join_cluster() { # HOST
	install -d -m 700 /etc/smartio/keys
	cp /opt/test/keys/ca.pem /opt/test/keys/crl.pem "/opt/test/keys/$1.key" "/opt/test/keys/$1.pem" /etc/smartio/keys
	chmod 600 "/etc/smartio/keys/$1.key"
	cp /opt/test/cluster.yaml /etc/smartio
}

# As at a boot after the installation of smartio-dkms; udev has the daemon started.
load_modules_now() {
	systemctl restart systemd-modules-load
	modprobe ntb_hw_smartio
	until_ok serves_or_failed
	serves || fail "smartiod: $(journalctl -q -u smartiod -o cat | tail -n 3)"
}

install_packages() {
	dpkg -i /opt/test/debs/*.deb >/tmp/dpkg.log 2>&1 || fail "dpkg: $(tail -n 5 /tmp/dpkg.log)"
}

serves_or_failed() {
	state=$(systemctl show -P ActiveState smartiod)
	[ "$state" = active ] || [ "$state" = failed ]
}

serves() { # [UNIT]
	[ "$(systemctl show -P ActiveState "${1:-smartiod}")" = active ]
}

main_pid() { # [UNIT]
	systemctl show -P MainPID "${1:-smartiod}"
}

has_device() { # DEVICE
	smartio device list | grep -q "^$1 "
}

said() { # PATTERN
	journalctl -q -u smartiod -o cat | grep -q "$1"
}

# Random bytes, by a client, there and back.
copy() { # DEVICE
	head -c 65536 /dev/urandom >/tmp/file
	smartio-nvme copy-in "$1" /tmp/file --offset 1M
	rm -f /tmp/back
	smartio-nvme copy-out "$1" /tmp/back --offset 1M --length 64K
	cmp /tmp/file /tmp/back
}

start_io() { # DEVICE
	systemd-run -q --unit=io smartio-nvme bench "$1" --write --random --depth 4 --seconds 600 --offset 4M --length 4M
	until_ok queue_pairs "$1" 2
}

queue_pairs() { # DEVICE AT-LEAST
	[ "$(smartio-nvme queues "$1" | grep -c '^ *[0-9]')" -ge "$2" ]
}

goes_on() { # UNIT
	[ "$(systemctl show -P ActiveState "$1")" = active ] || fail "$1: $(journalctl -q -u "$1" -o cat | tail -n 3)"
}
