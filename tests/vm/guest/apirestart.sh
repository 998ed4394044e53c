# SPDX-License-Identifier: BSD-2-Clause
# The tests of the API while smartiod is killed and started again all the time, at random moments: no test
# may notice. Afterwards nothing is left.
# worlds: module vfio
# as: api
# not: none amd
. /lib.sh
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"

random() { # LIMIT
	echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}

now_ms() {
	read -r up _ </proc/uptime
	echo "$(echo "$up" | tr -d .)0"
}
# The daemons are children of this function's shell. One that took long to start, on a busy machine,
# lives as much longer: who talks to it takes as long, and must get somewhere.
kill_and_start() {
	restarts=0 took=0
	start_daemon
	until [ -e /tmp/enough ]; do
		usleep $((1000 * $(random $((1500 + 8 * took)))))
		kill -9 "$daemon"
		wait "$daemon" || :
		took=$(now_ms)
		start_daemon
		took=$(($(now_ms) - took))
		restarts=$((restarts + 1))
	done
	echo "$restarts restarts"
	stop_daemon
}
# The tool does not wait for a daemon; here it has to.
cat >/tmp/tool <<'TOOL'
#!/bin/sh
until smartio "$@" >/tmp/tool.out.$$ 2>/tmp/tool.err.$$; do
	grep -qE "refused|reset by peer|Broken pipe|closed the" /tmp/tool.err.$$ || {
		cat /tmp/tool.out.$$
		cat /tmp/tool.err.$$ >&2
		exit 1
	}
	usleep 20000
done
cat /tmp/tool.out.$$
rm /tmp/tool.out.$$ /tmp/tool.err.$$
TOOL
chmod +x /tmp/tool
kill_and_start &
killer=$!
until_ok test -S /run/smartiod/local
for program in $PROGRAMS; do
	name=${program%_api_test}
	export SMARTIO_TEST_MACHINE="$bdf" SMARTIO_TEST_TOOL=/tmp/tool
	export SMARTIO_TEST_USER=1000 SMARTIO_TEST_GROUP=900
	if timeout 1200 "$program" >/tmp/out 2>&1; then
		echo "$name: as ever"
	else
		cat /tmp/out
		bad="${bad:-} $name"
	fi
done
touch /tmp/enough
wait $killer || fail "smartiod could not be started, or not ended"
[ -z "${bad:-}" ] || fail "these tests failed:$bad"
! grep "is not back" /tmp/smartiod.log || fail "somebody came too late"
take_drive "$bdf"
end_world
