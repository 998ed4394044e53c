# SPDX-License-Identifier: BSD-2-Clause
# Last in a machine with the debug kernel: no memory may have lost its last reference. kmemleak looks only
# at what is at least five seconds old, and takes two looks to be sure.
. /lib.sh
[ -e /sys/kernel/debug/kmemleak ] || fail "no kmemleak"
! grep '^smartio ' /proc/modules || fail "smartio.ko is still loaded"
sleep 6
echo scan >/sys/kernel/debug/kmemleak
echo scan >/sys/kernel/debug/kmemleak
leaks=$(cat /sys/kernel/debug/kmemleak)
[ -z "$leaks" ] || fail "kmemleak: $leaks"
