# SPDX-License-Identifier: BSD-2-Clause
# One machine and one drive, by smartio.ko and by VFIO in turn: an I/O costs a client the same instructions, and no
# system call. Counted by callgrind, which does as if each were alone; what is between the calls of the driver is not counted.
# worlds: module
# modules: smartio nvme vfio_iommu_type1 vfio_pci
# programs: tests/system/iopath tests/vm/killat valgrind.bin
# programs: /usr/libexec/valgrind/callgrind-amd64-linux /usr/libexec/valgrind/vgpreload_core-amd64-linux.so
# not: none amd
. /lib.sh
READS=1920
DEPTH=32
bdf=$(drive_bdf)
load_modules
until_ok test -b /dev/nvme0n1

# Whoever finds a completion missing when all should be there (exit status 3) has counted too much.
instructions() { # FILE
	tries=0
	while :; do
		printf '\n\n' >/tmp/lines
		rc=0
		(
			export VALGRIND_LIB=/bin SMARTIO_WAKE=timer
			spawn valgrind.bin -q --tool=callgrind --collect-atstart=no --callgrind-out-file=/tmp/counted \
				iopath "$bdf" $READS $DEPTH calm </tmp/lines >/dev/null 2>/tmp/said
		) || rc=$?
		[ $rc != 0 ] || break
		tries=$((tries + 1))
		[ $rc = 3 ] && [ $tries -lt 5 ] || fail "iopath ended with $rc: $(cat /tmp/said)"
	done
	sed -n 's/^totals: //p' /tmp/counted >"$1"
	rm -f /tmp/counted
}
calls_of() { # COMMANDS
	rm -f /tmp/calls
	spawn killat connect list /tmp/calls smartio-nvme bench "$bdf" --count "$1" --warmup 0 --length 1M >/dev/null &
	wait_all $!
	until_ok test -e /tmp/calls
	# A poller that finds nothing yields; reading the clock may be a call on such a machine.
	awk '$1 != "sched_yield" && $1 != "clock_gettime" { n += $2 } END { print n }' /tmp/calls
}

for round in 1 2 3; do
	for WORLD in module vfio; do
		case $WORLD in
		vfio) DRIVER=vfio-pci ;;
		*) DRIVER=smartio ;;
		esac
		give_drive "$bdf" 2>/dev/null
		start_daemon
		start_manager "$bdf" >/dev/null
		instructions /tmp/total.$WORLD.$round
		echo "round $round, $WORLD: $(awk "{ printf \"%.2f\", \$1 / $READS }" /tmp/total.$WORLD.$round) instructions per I/O at depth $DEPTH"
		if [ $round = 1 ]; then
			few=$(calls_of 100)
			many=$(calls_of 5100)
			echo "$WORLD: $few system calls with 100 commands, $many with 5100"
			[ "$few" -gt 100 ] && [ "$many" -lt $((few + 500)) ] || fail "I/O makes system calls: $(cat /tmp/calls)"
		fi
		stop_manager
		stop_daemon
		take_drive "$bdf" 2>/dev/null
	done
done
for round in 1 2 3; do
	for world in module vfio; do
		cmp /tmp/total.module.1 /tmp/total.$world.$round || fail "the worlds differ"
	done
done
[ "$(cat /tmp/total.module.1)" -gt $((READS * 20)) ] || fail "nothing was counted"
rmmod smartio
! pidof smartio-vfio || fail "smartio-vfio did not end"
