# SPDX-License-Identifier: BSD-2-Clause
# Function resets that the lender does by itself, and by hand: a drive of which the last borrower was
# killed is clean again with nobody's help, one that others have is left alone, also by a smartiod
# that was started again.
# worlds: module vfio
# modules: smartio nvme
. /lib.sh
bdf=$(drive_bdf)
check_machine
load_modules
give_drive "$bdf"
start_daemon

value() { # NAME
	smartio device info "$bdf" --json | sed -n "s/^ *\"$1\": *\"\\{0,1\\}\\([^\",]*\\).*/\\1/p"
}
is() { # NAME VALUE
	[ "$(value "$1")" = "$2" ]
}
must() { # NAME VALUE
	is "$1" "$2" || fail "$1 is $(value "$1"), not $2: $(cat /tmp/smartiod.log)"
}

must reset function
until_ok is reset_state clean
grep -q "function reset in" /tmp/smartiod.log || fail "no reset when it came: $(cat /tmp/smartiod.log)"
first=$(value generation)
start_manager "$bdf" # by itself alone: the first borrow finds the drive as the reset left it
begun=$(value generation)
[ "$begun" -eq $((first + 2)) ] || fail "a reset before the first exclusive borrow: $first, $begun"
stop_manager
until_ok is reset_state clean
smartio device reset "$bdf" | tee /tmp/said
grep -q "function reset in " /tmp/said || fail "what was done is not said"
first=$(value generation)

start_manager "$bdf" # by itself alone: nobody has had the drive since
begun=$(value generation)
[ "$begun" -eq $((first + 2)) ] || fail "a reset before an exclusive borrow of a clean drive: $first, $begun"
must reset_state used
copy_both_ways "$bdf"
start_bench "$bdf"
if smartio device reset "$bdf" >/tmp/said 2>&1; then fail "a drive in use was reset"; fi
grep -q "in use: 2 borrows live" /tmp/said || fail "said: $(cat /tmp/said)"

# The manager dies, then smartiod, under running I/O: a client has the drive, and nothing resets it.
kill -9 "$manager"
wait "$manager" || :
kill -9 "$daemon"
wait "$daemon" || :
start_daemon
is generation "$begun" || fail "reset under I/O: $begun, $(value generation)"
kill -0 "$bench" || fail "the client is gone"
must quarantined 1

# The last one dies: nobody lives who could settle.
kill -9 "$bench"
wait "$bench" || :
until_ok is reset_state clean
must quarantined 0
must borrowers 0
must generation $((begun + 2))
smartio segment list --quarantined --json | grep -q '"id"' && fail "memory is in quarantine"
grep "function reset in" /tmp/smartiod.log # how long each took

start_manager "$bdf"
copy_both_ways "$bdf"
smartio device reset --force "$bdf" --json | tee /tmp/said
grep -q '"borrows": 1' /tmp/said || fail "forced, and nobody had it"
wait "$manager" && fail "the manager did not notice"
until_ok is reset_state clean
stop_daemon
take_drive "$bdf"
end_world
