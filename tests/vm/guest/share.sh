# SPDX-License-Identifier: BSD-2-Clause
# The main job on a real kernel: a manager and three clients, members of the group, share the drive;
# files in and out at once; then the kernel's own driver finds the same bytes.
# worlds: module vfio
# modules: smartio nvme
. /lib.sh
bdf=$(drive_bdf)
check_machine
load_modules
give_drive "$bdf"
start_daemon
start_manager "$bdf"
echo "three clients copy a file each to the drive, all at once"
set -- /bin/busybox /bin/smartiod /lib/x86_64-linux-gnu/libc.so.6
n=0 jobs=
for file; do
	spawn smartio-nvme copy-in "$bdf" "$file" --offset $((n * 16777216)) &
	jobs="$jobs $!" n=$((n + 1))
done
wait_all $jobs
echo "each reads back another one's file"
n=0 jobs=
for file; do
	spawn smartio-nvme copy-out "$bdf" /tmp/out$n --offset $((n * 16777216)) \
		--length "$(stat -c %s "$file")" &
	jobs="$jobs $!" n=$((n + 1))
done
wait_all $jobs
n=0
for file; do
	cmp "$file" /tmp/out$n || fail "$file came back changed"
	sum=$(sha256sum "$file" | cut -d' ' -f1)
	[ "$(host sha256 $((n * 16777216)) "$(stat -c %s "$file")")" = "$sum" ] ||
		fail "$file is not what the drive's file holds"
	n=$((n + 1))
done
echo "who is not in the group is turned away"
! as_other smartio-nvme identify "$bdf" || fail "a stranger may use the drive"
stop_manager
stop_daemon
take_drive "$bdf"
n=0
for file; do
	size=$(stat -c %s "$file")
	dd if=/dev/nvme0n1 bs=1M skip=$((n * 16)) count=16 2>/dev/null | head -c "$size" |
		cmp - "$file" || fail "nvme.ko reads something else than $file"
	n=$((n + 1))
done
end_world
