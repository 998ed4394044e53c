# SPDX-License-Identifier: BSD-2-Clause
# Kills under I/O: clients at random instants while another must notice nothing, then managers, then the
# daemon; and after each of these the drive can be shared anew. Nothing may stay in quarantine, or leak.
# worlds: module vfio
# modules: smartio nvme
# programs: tests/system/verify
# limit: 1200
. /lib.sh
bdf=$(drive_bdf)
# Of each of three, with those of vfio.sh: a thousand instants.
case $SOAK$KERNEL in
1debug) ROUNDS=50 ;;
1*) ROUNDS=330 ;;
*) ROUNDS=6 ;;
esac
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"

random() { # LIMIT
	echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}

# What is said of those who were killed up to now; a machine that is too slow for all of them has said how many.
count() {
	n=$((n + 1))
	[ $((n % 10)) != 0 ] || echo "$n were killed"
}

settled() {
	[ "$(smartio device list --json | sed -n 's/.*"quarantined": *\([0-9]*\).*/\1/p')" = 0 ]
}

echo "clients"
start_watched verify verify "$bdf" 65536 256
n=0
while [ $n -lt "$ROUNDS" ]; do
	start_bench "$bdf"
	usleep "$(random 60000)"
	kill -9 "$bench"
	wait "$bench" || :
	until_ok settled
	count
done
end_watched verify
copy_both_ways "$bdf"

echo "managers"
n=0
while [ $n -lt "$ROUNDS" ]; do
	start_bench "$bdf"
	usleep "$(random 30000)"
	kill -9 "$manager"
	wait "$manager" || :
	[ $((n % 2)) = 0 ] || kill -9 "$bench" || : # a client that dies while nobody can settle it
	start_manager "$bdf"
	wait "$bench" || : # its queues went with the reset
	until_ok settled
	copy_both_ways "$bdf"
	count
done

echo "the daemon"
n=0
while [ $n -lt "$ROUNDS" ]; do
	start_bench "$bdf"
	usleep "$(random 30000)"
	kill -9 "$daemon"
	wait "$daemon" || :
	kill -9 "$bench" "$manager" 2>/dev/null || : # or they have ended by themselves
	wait "$bench" || :
	wait "$manager" || :
	start_daemon
	start_manager "$bdf"
	until_ok settled
	copy_both_ways "$bdf"
	count
done
stop_manager
stop_daemon
take_drive "$bdf"
dd if=/dev/nvme0n1 bs=1M skip=48 count=1 2>/dev/null | cmp - /tmp/file ||
	fail "nvme.ko reads something else than what was written"
end_world
