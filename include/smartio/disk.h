/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only WITH Linux-syscall-note */
/*
 * Disks that are queue pairs of a shared NVMe drive: what a program asks of smartio_blk.ko
 * (docs/shared-disk.md). The program has the queue pair, by smartio_nvme_queue_hand_over(), and all
 * memory that it needs; the module does the I/O. Source: our own.
 *
 * Opening SIO_DISK_NODE needs CAP_SYS_ADMIN. One open descriptor has one disk at most, which goes
 * with the last close of it: what is on its way by then is completed, or given up with an error.
 * The descriptor polls readable (POLLIN) when somebody wants the disk to go (SIO_DISK_DETACH), and
 * as hung up (POLLHUP) when its queue pair is dead: then it fails all I/O until it is closed.
 */
#ifndef SMARTIO_DISK_H
#define SMARTIO_DISK_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define SIO_DISK_NODE "/dev/smartio-disk"
/* Of the name of disk 0, 1, ... in /dev and /sys/block. */
#define SIO_DISK_NAME "smartio-nvme"

/* What the drive can do, and what may be done with it. */
#define SIO_DISK_READ_ONLY 1u
#define SIO_DISK_CACHE 2u   /* it has a volatile write cache: flushes, and writes that pass it */
#define SIO_DISK_DISCARD 4u /* it knows Dataset Management */
#define SIO_DISK_ZEROES 8u  /* it knows Write Zeroes */
#define SIO_DISK_FLAGS 0xfu

#define SIO_DISK_DEPTH 1024u		   /* commands in flight, at most */
#define SIO_DISK_SLOT (1024u * 1024u)	   /* bytes of one command, at most */
#define SIO_DISK_LIST(slot) ((slot) / 512) /* bytes of a command's PRP list: 8 for each page */

/*
 * Addresses of the program are of what it has mapped of descriptors of smartio.ko, writable. Both
 * queues are empty, tail and head 0, and the first completions have phase 1.
 */
struct sio_disk_attach {
	__u32 size; /* sizeof(struct sio_disk_attach) */
	__u32 flags;
	/* Of the program, on a multiple of 64; the completion queue is in its host. */
	__u64 sq, cq;
	__u64 sq_doorbell, cq_doorbell; /* of the program, on a multiple of 4 */
	__u32 id, entries;		/* of the queue pair; entries of each queue, 2 to 65,536 */
	__u32 depth;			/* up to entries - 1 */
	__u32 slot;			/* bytes of one command: a power of 2, a page at least */
	/*
	 * @depth times @slot bytes for data, and behind them depth * SIO_DISK_LIST(slot) for lists:
	 * as the program has them, in memory of this host, and as the drive has them, in one piece.
	 */
	__u64 memory, memory_address;
	__s32 interrupt;     /* a descriptor that can be read when something was completed */
	__u32 timeout_ms;    /* after which a command is given up, and the disk; to 3,600,000 */
	__u32 nsid;	     /* the namespace */
	__u32 block_shift;   /* log2 of the bytes of a block: 9 to 12 */
	__u64 first, blocks; /* the blocks that are the disk: @blocks from @first on */
	char source[64];     /* what the disk is of, for whoever looks at it; ends with a 0 */
	__u32 index;	     /* stored: of which number the disk is */
	__u32 reserved;	     /* 0 */
};

struct sio_disk_detach {
	__u32 size; /* sizeof(struct sio_disk_detach) */
	__u32 flags;
	__u32 index;
	__u32 reserved; /* 0 */
};

/* Although it is open; its I/O fails from then on. */
#define SIO_DISK_FORCE 1u

/*
 * -EINVAL: a field is wrong, or an address is of nothing that smartio.ko gave out; -EFAULT; -EBUSY:
 * the descriptor has a disk; -ENODEV: the drive was reset, or is lost; -ENOMEM.
 */
#define SIO_DISK_ATTACH _IOWR('S', 0x40, struct sio_disk_attach)
/*
 * Ask whoever has disk @index to release it. -ENOENT: there is none; -EBUSY: it is open (mounted,
 * say), and SIO_DISK_FORCE is not set.
 */
#define SIO_DISK_DETACH _IOW('S', 0x41, struct sio_disk_detach)

#endif
