# SPDX-License-Identifier: BSD-2-Clause
# What ocfs2.py has its machines run, besides disk-lib.sh.
. /disk-lib.sh
PATH=$PATH:/sbin

# The drive that QEMU shares, nvme.ko's on both machines.
SHARED=/dev/nvme0n1

load_ocfs2() {
	for m in configfs ocfs2_stackglue ocfs2_nodemanager ocfs2_dlm ocfs2_stack_o2cb jbd2 quota_tree \
		crc32c_generic ocfs2; do
		[ ! -e "/modules/$m.ko" ] || load_module "$m.ko"
	done
	mkdir -p /sys/kernel/config
	mount -t configfs none /sys/kernel/config
	echo o2cb >/sys/fs/ocfs2/cluster_stack
	ln -sf /proc/mounts /etc/mtab
}

mount_ocfs2() { # DISK FOLDER
	mkdir -p "$2"
	/sbin/mount.ocfs2 -n "$1" "$2"
}

# For begin: appends each line that it reads to a file that it keeps open, by one write, and says when.
cat >/bin/appender <<'END'
#!/bin/sh
exec 9>>"$1"
echo opened
while read -r line; do
	echo "$line" >&9
	echo written
done
END
chmod +x /bin/appender

# A line for a program of begin, which then has said N.
say_to() { # NAME N LINE
	echo "$3" >"/tmp/p.$1.in"
	until_ok has_said "$1" "$2"
}

has_said() { # NAME N
	[ -s "/tmp/p.$1.end" ] || [ "$(wc -l <"/tmp/p.$1.out")" -ge "$2" ]
}

# Lines of one length, each by a write of its own to a file that is kept open.
append_records() { # FILE NUMBER LENGTH FLAGS
	seq "$2" | awk -v host="$(hostname)" -v format="%-$(($3 - 1))s\\n" '{ printf format, host " " $1 }' >/tmp/records
	dd if=/tmp/records of="$1" bs="$3" conv=notrunc oflag="append${4-}" 2>/tmp/err || fail "$(cat /tmp/err)"
}

# One of both appends at a time, and looks at the file before: docs/shared-disk.md says why.
cat >/bin/add_line <<'END'
#!/bin/sh
n=$(wc -l </tmp/mnt/both/lines)
echo "$1 $n" >>/tmp/mnt/both/lines
END
chmod +x /bin/add_line

KEPT=200 # files of each, of 20 KiB at most

# Removes a file, if it is what its name says.
remove_file() { # PATH
	[ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$(basename "$1")" ] || fail "$1 is not what was written"
	rm "$1"
}

# Files in a folder of one's own, some of which go again, so that the drive never fills, and lines of a file of both. How many
# rounds and lines.
stress_files() { # OWN SECONDS
	end=$(($(cut -d. -f1 /proc/uptime) + $2)) round=0
	while [ "$(cut -d. -f1 /proc/uptime)" -lt $end ]; do
		head -c $((round % 7 * 3000 + 100)) /dev/urandom >/tmp/mnt/$1/new
		sum=$(sha256sum </tmp/mnt/$1/new | cut -d' ' -f1)
		mv /tmp/mnt/$1/new /tmp/mnt/$1/$sum
		if [ $((round % 3)) = 2 ]; then
			remove_file "/tmp/mnt/$1/$(ls /tmp/mnt/$1 | head -n 1)"
		fi
		if [ $((round % 100)) = 99 ]; then
			for old in $(ls /tmp/mnt/$1 | head -n -$KEPT); do remove_file "/tmp/mnt/$1/$old"; done
		fi
		flock /tmp/mnt/both/lock -c "add_line $1"
		round=$((round + 1))
	done
	sync
	echo $round $round
}

# Each file is what its name says.
check_files() { # WHOSE
	n=0
	for f in /tmp/mnt/$1/*; do
		[ "$(sha256sum <"$f" | cut -d' ' -f1)" = "$(basename "$f")" ] || fail "$f is not what was written"
		n=$((n + 1))
	done
	[ $n -gt 0 ] || fail "there are no files of $1"
}
