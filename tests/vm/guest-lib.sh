# SPDX-License-Identifier: BSD-2-Clause
# What guest.py has its machines run, besides lib.sh.

load_all() { # SECONDS: after which nvme.ko gives an I/O up
	for m in $(cat /modules/order); do
		case $m in
		nvme_core.ko) insmod "/modules/$m" io_timeout="$1" admin_timeout="$1" ;;
		*) insmod "/modules/$m" ;;
		esac
	done
}

# Files of random bytes on the file system of a device.
fill() { # DEVICE
	mkdir -p /tmp/mnt
	mount -t ext4 "$1" /tmp/mnt
	for i in 1 2 3 4 5 6 7 8; do
		head -c 1000000 /dev/urandom >/tmp/mnt/$i
	done
	sha256sum /tmp/mnt/? >/tmp/sums
	umount /tmp/mnt
	echo 3 >/proc/sys/vm/drop_caches
	mount -t ext4 "$1" /tmp/mnt
	sha256sum -c /tmp/sums >/tmp/check || fail "$(grep -v OK$ /tmp/check)"
	umount /tmp/mnt
}

sum_of() { # DEVICE
	mkdir -p /tmp/mnt
	mount -t ext4 -o ro "$1" /tmp/mnt
	cat /tmp/mnt/? | sha256sum | cut -d ' ' -f 1
	umount /tmp/mnt
}

# Reads until one fails; how they ended is in a file.
start_raw_io() { # DEVICE
	rm -f /tmp/raw.end /tmp/raw.n
	(
		while dd if="$1" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null; do
			echo >>/tmp/raw.n
		done
		echo ended >/tmp/raw.end
	) &
	until_ok test -s /tmp/raw.n
}

# The drive whose serial number is this; fails without a word if there is none.
drive_with() { # SERIAL
	for c in /sys/class/nvme/nvme*; do
		[ "$(tr -d ' ' <"$c/serial" 2>/dev/null)" = "$1" ] || continue
		for n in "$c"/nvme*n1; do
			[ -b "/dev/$(basename "$n")" ] && echo "/dev/$(basename "$n")" && return
		done
	done
	return 1
}

no_drive() { # SERIAL
	! drive_with "$1" >/dev/null
}

# Its driver lets go of it.
take_out() { # SERIAL
	name=$(basename "$(drive_with "$1")" n1)
	echo 1 >"/sys/class/nvme/$name/device/remove"
}
