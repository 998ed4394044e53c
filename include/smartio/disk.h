/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only WITH Linux-syscall-note */
/*
 * Disks that are queue pairs of a shared NVMe drive: what a program asks of smartio_blk.ko
 * (docs/shared-disk.md). The program has the queue pairs, by smartio_nvme_queue_hand_over(), and
 * all memory that they need; the module does the I/O. Source: our own.
 *
 * Opening SIO_DISK_NODE needs CAP_SYS_ADMIN. One open descriptor has one disk at most, which goes
 * with the last close of it: what is on its way by then is completed, or given up with an error.
 * The descriptor polls readable (POLLIN) when somebody wants the disk to go (SIO_DISK_DETACH), as
 * exceptional (POLLPRI) while the disk waits for other queue pairs (SIO_DISK_RENEW), and as hung up
 * (POLLHUP) when it is dead: then it fails all I/O until it is closed.
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
/*
 * A reset of the drive, or the loss of the way there, does not end the disk: its requests wait for
 * SIO_DISK_RENEW, or for the end of the descriptor, which fails them.
 */
#define SIO_DISK_SURVIVE 16u
/* Nobody else writes to the blocks of the disk: writes, too, are sent again then. */
#define SIO_DISK_ALONE 32u
#define SIO_DISK_FLAGS 0x3fu

#define SIO_DISK_DEPTH 1024u		   /* commands in flight, at most */
#define SIO_DISK_SLOT (1024u * 1024u)	   /* bytes of one command, at most */
#define SIO_DISK_LIST(slot) ((slot) / 512) /* bytes of a command's PRP list: 8 for each page */

#define SIO_DISK_PAIRS 64u /* queue pairs of a disk, at most */

/*
 * A queue pair, of one hardware queue of the disk. Addresses of the program are of what it has
 * mapped of descriptors of smartio.ko, writable. Both queues are empty, tail and head 0, and the
 * first completions have phase 1.
 */
struct sio_disk_pair {
	/* Of the program, on a multiple of 64; the completion queue is in its host. */
	__u64 sq, cq;
	__u64 sq_doorbell, cq_doorbell; /* of the program, on a multiple of 4 */
	/*
	 * Depth times slot bytes for data, and behind them depth * SIO_DISK_LIST(slot) for lists:
	 * as the program has them, in memory of this host, and as the drive has them, in one piece.
	 */
	__u64 memory, memory_address;
	__u32 id;
	/*
	 * A descriptor that can be read when something was completed; -1: the drive does not
	 * interrupt, and the module looks every 100 us while a command is in flight.
	 */
	__s32 interrupt;
};

struct sio_disk_attach {
	__u32 size; /* sizeof(struct sio_disk_attach) */
	__u32 flags;
	__u64 pairs; /* address of @n_pairs struct sio_disk_pair */
	__u32 n_pairs;
	__u32 entries;	     /* of each queue of a pair, 2 to 65,536 */
	__u32 depth;	     /* commands of each pair, up to entries - 1 */
	__u32 slot;	     /* bytes of one command: a power of 2, a page at least */
	__u32 timeout_ms;    /* after which a command is given up, and the disk; to 3,600,000 */
	__u32 nsid;	     /* the namespace */
	__u32 block_shift;   /* log2 of the bytes of a block: 9 to 12 */
	__u32 index;	     /* stored: of which number the disk is */
	__u64 first, blocks; /* the blocks that are the disk: @blocks from @first on */
	char source[64];     /* what the disk is of, for whoever looks at it; ends with a 0 */
};

struct sio_disk_renew {
	__u32 size;    /* sizeof(struct sio_disk_renew) */
	__u32 n_pairs; /* as before; 0: none yet, but those before are not used any more */
	__u64 pairs;   /* of each the memory is what it was before */
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
/*
 * The drive has deleted the disk's queue pairs, as each reset does, and has these instead. Of what
 * was in flight reads, flushes, and what was not announced by a doorbell are sent again; writes,
 * discards and write zeroes fail, unless the disk has SIO_DISK_ALONE: they may have been done in
 * whole or in part, and another host may have written there since. Then the disk goes on.
 * -EINVAL: a field is wrong, or the descriptor has no disk with SIO_DISK_SURVIVE; -EFAULT; -ENODEV:
 * the drive was reset once more, or is lost, or the disk is dead; -ENOMEM.
 */
#define SIO_DISK_RENEW _IOW('S', 0x42, struct sio_disk_renew)

#endif
