/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accelerator of the emulated cluster (`type: accelerator` in a topology file): a compute
 * device whose memory is a BAR, with a DMA engine and several compute units. It takes commands from
 * queues: rings of commands in memory, a doorbell each, and completions that it writes. The device
 * is this project's own; docs/accelerator.md explains it. smartio/accel.h is a driver for it.
 *
 * Registers are of 4 bytes, or (marked u64) two of 4, little endian and aligned. Who has the
 * registers writes them; the others read. A word that is not said to be writable is put right.
 * @thread-safety: a register, a command and a doorbell have one writer at a time.
 */
#ifndef SMARTIO_ACCELDEV_H
#define SMARTIO_ACCELDEV_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ids of PCI. The vendor's is Red Hat's, as of all that emulated machines have. */
#define SIO_ACCEL_VENDOR 0x1b36
#define SIO_ACCEL_DEVICE 0x11f1
#define SIO_ACCEL_CLASS 0x120000 /* processing accelerator */

#define SIO_ACCEL_BAR_REGISTERS 0 /* a page of registers, one of doorbells, MSI-X behind */
#define SIO_ACCEL_BAR_MEMORY 2	  /* SIO_ACCEL_MEMORY_BYTES; a function reset zeroes it */
/* In BAR 0, of 4 bytes: commands written to the ring of @queue so far; it wraps. */
#define SIO_ACCEL_DOORBELL(queue) (0x1000 + 64 * (queue))

/* What it is; they do not change. */
#define SIO_ACCEL_MAGIC 0x00 /* SIO_ACCEL_MAGIC_VALUE */
#define SIO_ACCEL_MAGIC_VALUE 0x41454d53
#define SIO_ACCEL_VERSION 0x04	    /* 1 */
#define SIO_ACCEL_MEMORY_BYTES 0x08 /* u64 */
#define SIO_ACCEL_VECTORS 0x10	    /* interrupt vectors; 0: it has none */
#define SIO_ACCEL_QUEUES 0x14	    /* all of them */
/* The first so many are rings of the DMA engine; of the others each is a compute unit's. */
#define SIO_ACCEL_DMA_QUEUES 0x18
#define SIO_ACCEL_MOST_QUEUES 10

/*
 * Of each queue. CONTROL, writable: SIO_ACCEL_ENABLE starts it with the ring that RING_BASE (u64,
 * writable, an address; 64-byte aligned) and RING_ENTRIES (writable; a power of 2, 2 to
 * SIO_ACCEL_MOST_ENTRIES) name then, its doorbell at 0, and the interrupt VECTOR (writable) for the
 * commands that ask for one; without it the queue stands, what was under way is given up, and
 * errors are forgotten; so it is when nobody has the registers any more. STATUS: SIO_ACCEL_RUNNING,
 * or why it is not. DONE: commands that are done since it was started, as of when the queue last
 * rested or raised its interrupt; it wraps.
 */
#define SIO_ACCEL_QUEUE(queue) (0x40 + 0x20 * (queue))
#define SIO_ACCEL_CONTROL 0x00
#define SIO_ACCEL_STATUS 0x04
#define SIO_ACCEL_RING_BASE 0x08
#define SIO_ACCEL_RING_ENTRIES 0x10
#define SIO_ACCEL_VECTOR 0x14
#define SIO_ACCEL_DONE 0x18
/* Bytes; what follows in the page is not looked at. */
#define SIO_ACCEL_REGISTERS SIO_ACCEL_QUEUE(SIO_ACCEL_MOST_QUEUES)

#define SIO_ACCEL_ENABLE 1
#define SIO_ACCEL_RUNNING 1
#define SIO_ACCEL_BAD_RING 2	 /* RING_BASE or RING_ENTRIES is none */
#define SIO_ACCEL_BAD_DOORBELL 3 /* more commands than the ring has */
#define SIO_ACCEL_RING_LOST 4	 /* the ring could not be read */

#define SIO_ACCEL_MOST_ENTRIES 4096

/*
 * An address, in commands and kernels: of its own memory with this bit set, an offset beside it;
 * else as the device addresses the fabric (SCIMap...SegmentForDevice()).
 */
#define SIO_ACCEL_LOCAL (1ull << 63)

/*
 * 64 bytes; command n lies at n % RING_ENTRIES. Commands of a queue are done in order, one after
 * the other, those of different queues side by side. What one wrote is there before its completion,
 * and that before its interrupt.
 */
struct sio_accel_command {
	uint32_t operation;  /* DMA: SIO_ACCEL_TRANSFER; compute unit: enum sio_accel_kernel */
	uint32_t flags;	     /* SIO_ACCEL_INTERRUPT: raise VECTOR when it is done; or 0 */
	uint64_t completion; /* where struct sio_accel_completion is written; 16-byte aligned; 0:
				nowhere */
	uint64_t argument[6];
};
#define SIO_ACCEL_INTERRUPT 1

/* Copy: argument 0: from where, 1: to where, 2: bytes, 1 at least. The two must not overlap. */
#define SIO_ACCEL_TRANSFER 1

/*
 * What compute units run; the arguments are in docs/accelerator.md. They are written once, in
 * drivers/accel/kernels, for the model and for GPUs.
 */
enum sio_accel_kernel {
	SIO_ACCEL_COPY = 1,
	SIO_ACCEL_FILL,
	SIO_ACCEL_CHECKSUM,
	SIO_ACCEL_REDUCE,
	SIO_ACCEL_WAIT,
	SIO_ACCEL_PING_PONG,
	SIO_ACCEL_NVME,
	SIO_ACCEL_TRAIN,
};

/*
 * What SIO_ACCEL_NVME does: @commands commands of @opcode, each of @blocks blocks, the first from
 * @lba on, the next behind it, @depth in flight at most. Lies in memory that the accelerator
 * reaches, and stays as it is meanwhile. One job after the other may use the same queue pair: the
 * kernel begins where @tail, @head and @round say, which are 0 for a new one, and tells there where
 * it ended.
 *
 * A job that ends with SIO_ACCEL_READ_FAILED or SIO_ACCEL_WRITE_FAILED does not tell that: its
 * commands may be in flight, and the drive may still use their data. The queue pair is of no use
 * any more: close it, which ends them, before the data's memory is used for something else. The
 * same holds for a job that was given up, by a reset or the end of its queue. One that ends with
 * SIO_ACCEL_FAILED has taken all its completions, and the pair may be used on.
 */
struct sio_accel_nvme_job {
	uint64_t sq, cq;		   /* as the accelerator addresses them */
	uint64_t entries;		   /* of each of the two */
	uint64_t sq_doorbell, cq_doorbell; /* as the accelerator addresses them */
	uint64_t data;	/* as the drive addresses it; whole pages; @bytes of each command */
	uint64_t bytes; /* @blocks blocks: a power of 2 from 512 to 8192 */
	uint64_t lba, blocks;
	uint64_t commands; /* 1 at least */
	uint64_t namespace_id;
	uint64_t opcode;     /* 1: write, 2: read */
	uint64_t depth;	     /* less than @entries, 32767 at most */
	uint64_t tail, head; /* entries of the queues that are next */
	uint64_t round;	     /* how often @head went round */
};

/* 16 bytes, written by one transaction, the last word last. */
struct sio_accel_completion {
	uint64_t result; /* of a kernel; a transfer: the bytes copied */
	uint32_t status; /* SIO_ACCEL_OK, ... */
	uint32_t number; /* commands of the queue done with this one: the first one's is 1 */
};
#define SIO_ACCEL_OK 0
#define SIO_ACCEL_INVALID 1	 /* no such operation, flags or arguments */
#define SIO_ACCEL_READ_FAILED 2	 /* something could not be read; what lies before may be done */
#define SIO_ACCEL_WRITE_FAILED 3 /* something could not be written; the rest may have been */
#define SIO_ACCEL_FAILED 4	 /* the kernel says so; the result tells why */

/*
 * A step of SIO_ACCEL_TRAIN: a network of one hidden layer (h = max(x v, 0), outputs h w) learns
 * from @n samples at once. Matrices of single precision, in rows, 4-byte aligned, as the
 * accelerator addresses them; each dimension is 1 to 65536. Lies in memory that the accelerator
 * reaches, and stays as it is meanwhile.
 */
struct sio_accel_train_job {
	uint64_t x, y;	  /* samples, n by inputs; what they are to give, n by outputs */
	uint64_t v, w;	  /* weights, inputs by hidden, hidden by outputs: changed */
	uint64_t h, e, d; /* scratch: n by hidden, n by outputs, n by hidden */
	uint64_t n, inputs, hidden, outputs; /* of samples, and of each layer */
	uint64_t rate; /* the bits of a float: weights move by it times the gradient */
};

#ifdef __cplusplus
}
#endif
#endif
