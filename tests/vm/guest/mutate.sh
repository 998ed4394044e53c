# SPDX-License-Identifier: BSD-2-Clause
# Random and mutated requests as root, random uses of descriptors as a member of the group, for 20 s:
# the kernel has nothing to report, memory of others and the drive's blocks are what they were.
# programs: tests/vm/mutate tests/vm/canary
# modules: smartio nvme
. /lib.sh
bdf=$(drive_bdf)
before=$(host sha256 0 67108864)
insmod /modules/smartio.ko memory_limit=268435456
give_drive "$bdf"
start_watched canary canary 64
seconds=$((SOAK ? 300 : 20))
seed=$(od -An -N4 -tu4 /dev/urandom)
# Each daemon that opens the node finds what the one before left.
for part in 1 2; do
	mutate /dev/smartio0 $((seconds / 2)) $((seed + part)) 1000 192 || fail "mutate, seed $((seed + part))"
done
end_watched canary
smartio device remove --force "$bdf"
[ "$(host sha256 0 67108864)" = "$before" ] || fail "the drive's blocks have changed"
rmmod smartio
