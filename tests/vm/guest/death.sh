# SPDX-License-Identifier: BSD-2-Clause
# Kills under I/O: clients at random instants while another must notice nothing, then managers, then the
# daemon; and after each of these the drive can be shared anew. Nothing may stay in quarantine, or leak.
# worlds: module vfio
# modules: smartio nvme
# programs: tests/system/verify
# limit: 1200
. /lib.sh
bdf=$(drive_bdf)
# Of each of three, with those of vfio.sh: a thousand instants. In several passes, so that a machine that is too slow for
# all of them has killed some of each.
case $SOAK$KERNEL in
1debug) PASSES=5 ROUNDS=10 ;;
1*) PASSES=11 ROUNDS=30 ;;
*) PASSES=1 ROUNDS=6 ;;
esac
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"

random() { # LIMIT
	echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}

settled() {
	[ "$(smartio device list --json | sed -n 's/.*"quarantined": *\([0-9]*\).*/\1/p')" = 0 ]
}

clients() {
	start_watched verify verify "$bdf" 65536 256
	n=0
	while [ $n -lt "$ROUNDS" ]; do
		start_bench "$bdf"
		usleep "$(random 60000)"
		kill -9 "$bench"
		wait "$bench" || :
		until_ok settled
		n=$((n + 1))
	done
	end_watched verify
	copy_both_ways "$bdf"
}

managers() {
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
		n=$((n + 1))
	done
}

# With all others, and the next ones begin anew.
daemons() { # HOW-MANY
	n=0
	while [ $n -lt "$1" ]; do
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
		n=$((n + 1))
	done
}

goes_on() {
	[ "$(stat -c %s /tmp/progress)" -gt "$said" ]
}

# The manager and a client go on, whom the next daemon may just be finding when it is killed itself.
daemons_of_living() { # HOW-MANY
	start_bench "$bdf"
	n=0
	while [ $n -lt "$1" ]; do
		usleep "$(random 60000)"
		kill -9 "$daemon"
		wait "$daemon" || :
		start_daemon
		n=$((n + 1))
	done
	kill -0 "$bench" || fail "the client has ended"
	kill -0 "$manager" || fail "the manager has ended"
	said=$(stat -c %s /tmp/progress)
	until_ok goes_on
	kill -9 "$bench"
	wait "$bench" || :
	until_ok settled
	copy_both_ways "$bdf"
}

pass=0
while [ $pass -lt "$PASSES" ]; do
	clients
	managers
	daemons $((ROUNDS / 2))
	daemons_of_living $((ROUNDS - ROUNDS / 2))
	pass=$((pass + 1))
	echo "killed: $((pass * ROUNDS)) clients, as many managers, as many daemons"
done
stop_manager
stop_daemon
take_drive "$bdf"
dd if=/dev/nvme0n1 bs=1M skip=48 count=1 2>/dev/null | cmp - /tmp/file ||
	fail "nvme.ko reads something else than what was written"
end_world
