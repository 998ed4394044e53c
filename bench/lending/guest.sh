# SPDX-License-Identifier: BSD-2-Clause
# What the benchmarks have their machines run, besides what tests/vm has.

# The paper's fio job (7.1.1): one read of 4 KiB after the other, past the page cache, each a system call.
count_reads() { # DEVICE COUNT
	mark begin >/dev/null
	fio --name=read --filename="$1" --rw=randread --randseed=1 --bs=4k --direct=1 --ioengine=psync --thread \
		--number_ios="$2" --size=32M --output-format=terse >/tmp/fio.out 2>&1 || fail "$(cat /tmp/fio.out)"
	mark end >/dev/null
	# Microseconds: the median of the time of a read. Of reads it comes first in fio's line.
	tr ';' '\n' </tmp/fio.out | grep '^50\.000000%=' | head -n 1 | cut -d = -f 2
}

# Where the kernel's functions lie.
symbols() {
	grep -E -A 1 ' (blkdev_.*|__blkdev_.*|.*io_schedule(_timeout)?|handle_edge_irq|.*common_interrupt|.*irq_exit_rcu|.*dma_(un)?map.*|iommu_(un)?map.*)$|\[(smartio_lend|nvme|nvme_core)\]$' \
		/proc/kallsyms | grep -v '^--'
}

# Nanoseconds from the command's start until the disk is there.
until_disk() { # DEVICE COMMAND...
	device=$1
	shift
	begin=$(mark now)
	"$@"
	until [ -b "$device" ]; do
		:
	done
	echo $(($(mark now) - begin))
}

# The driver lets the function go, and gets it again.
bind_again() { # FUNCTION
	echo "$1" >/sys/bus/pci/drivers/nvme/unbind
	until_ok test ! -b /dev/nvme0n1
	until_disk /dev/nvme0n1 bind "$1"
}

bind() { # FUNCTION
	echo "$1" >/sys/bus/pci/drivers/nvme/bind
}
