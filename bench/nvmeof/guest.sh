# SPDX-License-Identifier: BSD-2-Clause
# What bench.py has its machines run, besides lend-lib.sh.
. /lend-lib.sh

# Of all processors since the boot: interrupts of devices, switches between threads, clock ticks with work, packets.
counters() {
	interrupts=$(awk '$1 ~ /^[0-9]+:$/ { for (i = 2; i <= 3; i++) n += $i } END { print n + 0 }' /proc/interrupts)
	packets=$(cat /sys/class/net/eth0/statistics/rx_packets /sys/class/net/eth0/statistics/tx_packets | awk '{ n += $1 } END { print n }')
	awk -v i="$interrupts" -v p="$packets" \
		'$1 == "cpu" { busy = $2 + $3 + $4 + $7 + $8 } $1 == "ctxt" { print i, $2, busy, p }' /proc/stat
}

# The drive's block device, which each driver names as it likes.
disk() {
	basename "$(find /dev -name 'nvme[0-9]n1' | head -n 1)"
}

has_disk() {
	test -n "$(disk)"
}

has_no_disk() {
	test -z "$(disk)"
}

read_blocks() { # COUNT
	dd if="/dev/$(disk)" of=/dev/null bs=4096 count="$1" iflag=direct 2>/dev/null
}

# The drive, for who comes by @transport.
serve() { # TRANSPORT
	grep -q "^configfs" /proc/mounts || mount -t configfs configfs /sys/kernel/config
	cd /sys/kernel/config/nvmet
	mkdir -p subsystems/drive/namespaces/1 ports/1
	echo 1 >subsystems/drive/attr_allow_any_host
	echo "/dev/$(disk)" >subsystems/drive/namespaces/1/device_path
	echo 1 >subsystems/drive/namespaces/1/enable
	echo ipv4 >ports/1/addr_adrfam
	echo 10.0.0.1 >ports/1/addr_traddr
	echo 4420 >ports/1/addr_trsvcid
	echo "$1" >ports/1/addr_trtype
	ln -s /sys/kernel/config/nvmet/subsystems/drive ports/1/subsystems/drive
}

serve_no_more() {
	cd /sys/kernel/config/nvmet
	rm ports/1/subsystems/drive
	rmdir ports/1
	echo 0 >subsystems/drive/namespaces/1/enable
	rmdir subsystems/drive/namespaces/1 subsystems/drive
}

join() { # TRANSPORT
	echo "nqn=drive,transport=$1,traddr=10.0.0.1,trsvcid=4420,nr_io_queues=1" >/dev/nvme-fabrics
	until_ok has_disk
}

leave() {
	for c in /sys/class/nvme/nvme*; do
		echo 1 >"$c/delete_controller"
	done
	until_ok has_no_disk
}

# RDMA over the Ethernet that there is, by software.
add_rdma() {
	rdma link add rxe0 type rxe netdev eth0
	until_ok grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
}
