#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# First process of a machine of pair.py: it runs the lines that come by the second serial line, one after the
# other, and says how each has ended.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
export PATH=/bin
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1 </dev/null
cd /tmp
. /lib.sh
. /ntb-lib.sh
[ ! -e /test-lib.sh ] || . /test-lib.sh
set +eu
echo "END 0"
# In a shell of its own: process 1 is told of the end of everybody's background processes, and busybox's read
# forgets the beginning of a line when that comes in the middle of it.
(
	while read -r line <&3; do
		(
			set -eu
			eval "$line"
		)
		printf '\nEND %s\n' $?
	done
)
