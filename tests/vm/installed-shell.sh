#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A service of a machine of installed.py: it runs the lines that come by the second serial line, one after the other,
# and says how each has ended.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/opt/test
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1 </dev/null
cd /tmp
usleep() {
	sleep "0.$(printf %06d "$1")"
}
. /opt/test/lib.sh
. /opt/test/installed-lib.sh
set +eu
echo "END 0"
while read -r line <&3; do
	(
		set -eu
		eval "$line"
	)
	printf '\nEND %s\n' $?
done
