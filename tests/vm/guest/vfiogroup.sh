# SPDX-License-Identifier: BSD-2-Clause
# Two drives in one slot share an IOMMU group, which VFIO gives as a whole: who is in the way is named; both are lent, with
# one address space; each is reset, removed and added while the other is used; who keeps one keeps that one alone.
# worlds: vfio
# modules: smartio nvme
# programs: tests/vm/keeper
# not: none
# alone: a second drive in the first one's slot
# nvme: serial=SIO0,multifunction=on
# qemu: -blockdev raw,node-name=disk1,file.driver=file,file.filename=SECOND,cache.no-flush=on
# qemu: -device nvme,serial=SIO1,drive=disk1,bus=rp0,addr=0.1
# qemu-amd: -blockdev raw,node-name=disk1,file.driver=file,file.filename=SECOND,cache.no-flush=on
# qemu-amd: -device nvme,serial=SIO1,drive=disk1,bus=pcie.0,addr=9.1
. /lib.sh
bdf=$(drive_bdf)
bdf=${bdf%.?}.0
other=${bdf%.0}.1
refused() { # TEXT COMMAND...
	text=$1
	shift
	"$@" >/tmp/said 2>&1 && fail "$* was not refused"
	grep -q "$text" /tmp/said || fail "$* said: $(cat /tmp/said)"
	echo "refused, as it should be: $(tail -n 1 /tmp/said)"
}
driver_of() { # BDF
	basename "$(readlink "/sys/bus/pci/devices/$1/driver" || echo none)"
}
load_modules
until_ok test -b /dev/nvme0n1
until_ok test -b /dev/nvme1n1
refused "with $other, which driver nvme has" smartio device add "$bdf" --vfio
[ "$(driver_of "$bdf")" = nvme ] || fail "nvme.ko has lost it all the same"
sed 's/.*(\(echo .*unbind\);.*/\1/; s/sudo //' /tmp/said >/tmp/mend
cat /tmp/mend
sh /tmp/mend || fail "what mends it does not"

start_second() {
	first=$manager
	start_manager "$other"
	second=$manager manager=$first
}
end_managers() {
	kill "$manager" "$second"
	wait "$manager" || fail "the manager ended with $?"
	wait "$second" || fail "the other's manager ended with $?"
}
goes_on() {
	: >/tmp/progress
	until_ok test -s /tmp/progress
	kill -0 "$bench" || fail "the client has ended"
}
drive_is() { # BDF STATE
	smartio device list | grep -q "^$1 .*$2"
}
both_are_free() {
	drive_is "$bdf" free && drive_is "$other" free
}

smartio device add "$bdf" --vfio
smartio device add "$other" --vfio
start_daemon
until_ok both_are_free
start_manager "$bdf"
start_second
copy_both_ways "$bdf"
copy_both_ways "$other"
echo "both are used at once, and what is written to one is not on the other"
for d in "$bdf" "$other"; do
	head -c 1048576 /dev/urandom >"/tmp/of.$d"
	spawn smartio-nvme copy-in "$d" "/tmp/of.$d" --offset 48M 2>/dev/null &
	eval "job_${d##*.}=$!"
done
wait_all "$job_0" "$job_1"
for d in "$bdf" "$other"; do
	rm -f /tmp/back
	as_user smartio-nvme copy-out "$d" /tmp/back --offset 48M --length 1M 2>/dev/null
	cmp "/tmp/of.$d" /tmp/back || fail "$d has something else"
done

echo "one is reset again and again under the other's I/O"
start_bench "$bdf"
n=0
while [ $n -lt 5 ]; do
	kill -9 "$second"
	wait "$second" || :
	start_second
	copy_both_ways "$other"
	n=$((n + 1))
done
goes_on

echo "one is removed, and comes back, under the other's I/O"
kill "$second"
wait "$second" || :
n=0
while [ $n -lt 3 ]; do
	smartio device remove "$other" 2>/tmp/said
	grep "has no driver until the others of IOMMU group" /tmp/said || fail "device remove said: $(cat /tmp/said)"
	[ "$(driver_of "$other")" = none ] || fail "$other is with $(driver_of "$other")"
	goes_on
	smartio device add "$other" --vfio
	until_ok drive_is "$other" free
	start_second
	copy_both_ways "$other"
	kill "$second"
	wait "$second" || :
	n=$((n + 1))
done
start_second

echo "smartio-vfio is killed; a program keeps one of them that has not heard of it"
kill -STOP "$bench"
kill -9 "$(pidof smartio-vfio)"
wait "$daemon" && fail "smartiod goes on without its port"
start_daemon
wait "$manager" || :
wait "$second" || :
until_ok grep "another process has IOMMU group" /tmp/smartiod.log
stop_daemon
refused "VFIO takes it from nobody" smartio device remove "$bdf"
start_daemon
kill -9 "$bench"
wait "$bench" || :
until_ok both_are_free
start_manager "$bdf"
start_second
copy_both_ways "$bdf"
copy_both_ways "$other"

echo "who keeps one that is lent keeps the other from nobody"
end_managers
smartio device remove "$other"
stop_daemon
smartio device remove "$bdf"
until_ok test -b /dev/nvme0n1
until_ok test -b /dev/nvme1n1
[ "$(driver_of "$other")" = nvme ] || fail "$other was removed first, and has no driver yet"

echo "what is kept elsewhere goes on for both when smartio-vfio is killed"
! pidof smartio-vfio || fail "smartio-vfio did not end"
for d in "$bdf" "$other"; do
	echo "$d" >"/sys/bus/pci/devices/$d/driver/unbind"
done
smartio device add "$bdf" --vfio
smartio device add "$other" --vfio
lives() {
	[ "$(cat /tmp/lives 2>/dev/null)" = "$1" ]
}
mkdir -p /run/smartiod
keeper /tmp/lives smartio-vfio --keep 2>/tmp/keeper.log &
keeper=$!
until_ok lives 1
start_daemon
until_ok both_are_free
start_manager "$bdf"
start_second
start_bench "$bdf"
n=1
while [ $n -le 4 ]; do
	kill -9 "$(pidof smartio-vfio)"
	wait "$daemon" && fail "smartiod goes on without its port"
	n=$((n + 1))
	until_ok lives $n
	start_daemon
	goes_on
	copy_both_ways "$other"
done
grep "$bdf is here still" /tmp/keeper.log
grep "$other is here still" /tmp/keeper.log
kill -9 "$bench"
wait "$bench" || :
end_managers
stop_daemon
wait "$keeper" || fail "smartio-vfio ended with $?: $(cat /tmp/keeper.log)"
smartio device remove "$other"
smartio device remove "$bdf"
until_ok test -b /dev/nvme0n1
until_ok test -b /dev/nvme1n1
end_world
