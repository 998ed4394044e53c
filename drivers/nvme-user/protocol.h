/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between a manager and its clients.
 *
 * The manager describes itself in a shared segment of the device: every borrower of the drive finds
 * it by the well-known id. A client sends a request to the manager's data interrupt, with the
 * number of a data interrupt of its own, to which the reply is sent. Hosts may differ in byte
 * order: messages are little-endian. Both sides check every field; the other side may have another
 * version, or be broken or hostile.
 */
#ifndef NVME_USER_PROTOCOL_H
#define NVME_USER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define SIO_NVME_VERSION 15u
#define SIO_NVME_SEGMENT 0x53494f4eu /* id of the manager's shared segment */
#define SIO_NVME_META_MAGIC 0x4d4e4953u
#define SIO_NVME_REQ_MAGIC 0x514e4953u
#define SIO_NVME_REP_MAGIC 0x504e4953u
#define SIO_NVME_NAMESPACES 1024u /* as many as one active-namespace list has */
#define SIO_NVME_IDENTIFY 4096u
#define SIO_NVME_TEXT 2048u	    /* of an error, with the holders of what ran out */
#define SIO_NVME_PROGRAM 16u	    /* bytes of a program's name, with its end */
#define SIO_NVME_LARGEST (2u << 20) /* transfer: what one page of PRP entries reaches */
#define SIO_NVME_SHARERS 8u	    /* programs of a host that share a queue pair, at most */
#define SIO_NVME_SHARED_DEPTH 1024u /* commands in flight of each, at most */

#define SIO_NVME_CMB_BAR 2u /* that the controller memory buffer is in */

#define SIO_NVME_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has a hole")

struct sio_nvme_wire_ns {
	uint32_t id, block_size; /* block_size 0: a format that this driver cannot use */
	uint64_t blocks;
};
SIO_NVME_SIZE(struct sio_nvme_wire_ns, 16);

/*
 * The shared segment. @magic is written last when the segment is created, and cleared first when it
 * ends.
 */
struct sio_nvme_meta {
	uint32_t magic, version;
	uint64_t instance; /* of this manager; a random number */
	uint32_t node, interrupt;
	uint32_t generation; /* of the device, since the manager's reset */
	uint32_t queue_pairs, max_entries, max_transfer;
	uint32_t doorbell_stride; /* bytes */
	uint32_t spec_version, vendor, namespaces;
	char serial[20], model[40], firmware[8];
	uint32_t formats;  /* a hash of what the namespaces are like, the same with each manager */
	uint32_t sgls;	   /* bits 1:0 of Identify's SGLS: 0: none; 1: any; 2: of dwords */
	uint32_t features; /* SMARTIO_NVME_HAS_* */
	uint8_t reserved[4096 - 64 - 72];
	struct sio_nvme_wire_ns ns[SIO_NVME_NAMESPACES];
};
SIO_NVME_SIZE(struct sio_nvme_meta, 4096 + 16 * SIO_NVME_NAMESPACES);

/*
 * A standby manager publishes itself in a shared segment of its own, with one of the ids from
 * SIO_NVME_STANDBY_SEGMENT on. @magic is written last.
 */
#define SIO_NVME_STANDBYS 4u
#define SIO_NVME_STANDBY_SEGMENT 0x53494f50u
#define SIO_NVME_STANDBY_MAGIC 0x424e4953u
struct sio_nvme_wire_standby {
	uint32_t magic, version, node, reserved;
	char program[SIO_NVME_PROGRAM];
};
SIO_NVME_SIZE(struct sio_nvme_wire_standby, 32);

/*
 * The segment by which a manager that is reached over a second path says that it will be back, if
 * it is not found: hold.h. It has no contents.
 */
#define SIO_NVME_HOLD_SEGMENT 0x53494f58u

/*
 * Segments that outlive a manager: record.h, and the memory of the admin queue, which that names.
 */
#define SIO_NVME_RECORD_SEGMENT 0x53494f60u
#define SIO_NVME_ADMIN_SEGMENT 0x53494f70u
#define SIO_NVME_ADMIN_SEGMENTS 16u

enum {
	SIO_NVME_OP_CREATE = 1, /* a queue pair */
	SIO_NVME_OP_DELETE,
	SIO_NVME_OP_IDENTIFY,
	SIO_NVME_OP_PAIRS, /* lists which borrower has which queue pair */
	SIO_NVME_OP_ADMIN, /* a command for the admin queue; its data behind the request */
	/*
	 * Notification: a queue pair is free; sent to clients that were refused one and named an
	 * interrupt.
	 */
	SIO_NVME_OP_FREED,
	SIO_NVME_OP_LEASE,   /* takes a range of blocks for the borrower alone */
	SIO_NVME_OP_UNLEASE, /* gives it back */
	SIO_NVME_OP_LEASES,  /* lists which borrower has which range */
	SIO_NVME_OP_ABORT,   /* aborts a command that does not complete */
	/*
	 * Notification: a queue pair that programs share was deleted, because one of them has
	 * ended.
	 */
	SIO_NVME_OP_ENDED,
	/*
	 * Takes back what an earlier request of the borrower was given, a queue pair, a place in
	 * one or a lease, whose answer has not come. That request is before this one in the ring.
	 */
	SIO_NVME_OP_CANCEL,
	/*
	 * The borrower has a lease that another borrow of the same client was given: it is the
	 * client's until both have given it back, or have ended.
	 */
	SIO_NVME_OP_JOIN,
};

struct sio_nvme_req {
	uint32_t magic, version, op, reply_node;
	uint64_t instance; /* of the manager that is meant */
	uint64_t sequence;
	uint64_t borrower;
	uint32_t reply_interrupt;
	uint32_t vector; /* create: the drive's, that its completions raise; 0: none. Else 0 */
	union {
		struct {
			uint64_t sq, cq; /* as the drive addresses them */
			uint32_t sq_entries, cq_entries;
			/*
			 * If all pairs are in use: this data interrupt is notified when one is
			 * free.
			 */
			uint32_t notify, notice;	/* notify: 0 or 1 */
			char program[SIO_NVME_PROGRAM]; /* for display; terminated */
			/* sio_nvme_meta's as the client knows them; 0: unknown */
			uint32_t formats;
			/* A pair that is deleted first, by its key, if it still exists; 0: none. */
			uint32_t old_qid;
			uint64_t old_key;
			/*
			 * For a pair that other programs of the host may join: the segment that
			 * they attach to (0: not shared); a data interrupt that is notified when
			 * the pair ends; how many commands each of how many programs may have in
			 * flight; the adapter over which all use the pair, because doorbell writes
			 * of one queue by two paths may overtake each other. The program that has
			 * closed the lock of a shared pair names it as the old one: then nobody
			 * rings its doorbells any more.
			 */
			uint32_t share, share_notice, share_depth, share_most, share_over;
			uint32_t cmb; /* 1: sq is 0, the manager places it in the drive's memory */
			/*
			 * For a submission queue alone: the pair of this borrower, with its key, in
			 * whose completion queue its commands complete; then cq, cq_entries and the
			 * vector are 0. 0: it gets a completion queue.
			 */
			uint32_t cq_of;
			/*
			 * Of a shared pair: 1: the program sleeps for its completions, so rather
			 * one that raises a vector of the drive. A vector of 0 means then that the
			 * drive had none left: the program can join others, but have no pair of its
			 * own.
			 */
			uint32_t share_raises;
			uint64_t cq_key;
		} create;
		struct {
			uint32_t qid, flags;
			uint64_t key;	/* of create's reply */
			uint32_t place; /* the same */
			/*
			 * For a shared pair: the lower half of create's sequence number. Another
			 * queue of the same borrow, which has the same key, may have the place by
			 * now.
			 */
			uint32_t sequence;
		} del;
		struct {
			uint64_t sequence; /* of the request that is taken back */
		} cancel;
		struct {
			uint32_t qid, cid; /* the command's id in its entry */
			uint64_t key;
		} abort;
		struct {
			uint32_t cns, nsid;
		} identify;
		struct {
			uint32_t after, reserved; /* the first told is after this queue id */
		} pairs;
		struct sio_nvme_wire_admin {
			uint32_t opcode, flags, nsid, cdw2, cdw3, cdw[6]; /* cdw: 10 to 15 */
			uint32_t bytes, timeout_ms; /* timeout_ms: of the drive; 0: 10 s */
		} admin;
		struct {
			uint64_t lba, blocks; /* lba: UINT64_MAX: anywhere */
			uint64_t key;	      /* of the client's choice; it alone knows it */
			uint32_t nsid, formats;
			char name[SIO_NVME_PROGRAM], program[SIO_NVME_PROGRAM];
		} lease;
		struct {
			uint64_t id, key; /* id: of lease's reply; key: of lease */
		} unlease, join;
		struct {
			uint64_t after; /* the first told has a larger id */
		} leases;
		uint8_t bytes[104];
	};
};
SIO_NVME_SIZE(struct sio_nvme_req, 152);
/*
 * Flag of a deletion: the pair ends for all programs that share it. The sender has closed its lock.
 */
#define SIO_NVME_DEL_ENDS 1u
#define SIO_NVME_ADMIN_BYTES 4096u  /* of data, at most */
#define SIO_NVME_ADMIN_CONFIRMED 1u /* flags */
#define SIO_NVME_ADMIN_TO_DRIVE 2u  /* @bytes of data stand behind the request */
#define SIO_NVME_ADMIN_MS_MOST 600000u
/*
 * The time limit of a command that names none, and the longest time that the manager waits for one
 * while it serves nothing else.
 */
#define SIO_NVME_ADMIN_MS 10000u
#define SIO_NVME_REQ_LARGEST (sizeof(struct sio_nvme_req) + SIO_NVME_ADMIN_BYTES)

struct sio_nvme_rep_head {
	uint32_t magic, version, op, error; /* error: errno, 0: success */
	uint64_t instance, sequence;
	uint32_t reason; /* of an error: what ran out, SIO_OUT_OF_* of smartio/uapi.h */
	uint32_t reserved;
};
SIO_NVME_SIZE(struct sio_nvme_rep_head, 40);

struct sio_nvme_rep_pair {
	uint32_t qid, place; /* place: among those that share it */
	uint64_t key;
	uint32_t share, depth, most; /* as its maker asked for it */
	uint32_t cmb; /* its submission queue is in the drive, from page cmb - 1 on; 0: it is not */
};
SIO_NVME_SIZE(struct sio_nvme_rep_pair, 32);

struct sio_nvme_rep_ended {
	uint32_t qid, dead; /* dead: bits: places of the programs that ended */
	uint64_t key;
};
SIO_NVME_SIZE(struct sio_nvme_rep_ended, 16);

struct sio_nvme_wire_pair {
	uint32_t qid, node; /* qid 0: no more */
	uint64_t borrower;
	char program[SIO_NVME_PROGRAM];
	uint32_t cq_of, reserved; /* cq_of: as of the request that made it */
};
SIO_NVME_SIZE(struct sio_nvme_wire_pair, 40);
#define SIO_NVME_PAIRS_A_REPLY (SIO_NVME_IDENTIFY / sizeof(struct sio_nvme_wire_pair))

struct sio_nvme_wire_lease {
	uint64_t id, lba, blocks; /* id 0: no more */
	uint32_t nsid, node;
	char name[SIO_NVME_PROGRAM], program[SIO_NVME_PROGRAM];
};
SIO_NVME_SIZE(struct sio_nvme_wire_lease, 64);
#define SIO_NVME_LEASES_A_REPLY (SIO_NVME_IDENTIFY / sizeof(struct sio_nvme_wire_lease))

struct sio_nvme_rep_admin {
	uint32_t result, status; /* dword 0; SCT << 8 | SC */
	uint8_t data[SIO_NVME_ADMIN_BYTES];
};

struct sio_nvme_rep {
	struct sio_nvme_rep_head h;
	union {
		struct sio_nvme_rep_admin admin;
		struct sio_nvme_wire_lease lease, leases[SIO_NVME_LEASES_A_REPLY];
		struct sio_nvme_rep_pair create;
		struct sio_nvme_rep_ended ended;
		char text[SIO_NVME_TEXT];	 /* of an error */
		uint8_t data[SIO_NVME_IDENTIFY]; /* of identify */
		struct sio_nvme_wire_pair pairs[SIO_NVME_PAIRS_A_REPLY];
	};
};

/*
 * Decodes a message that arrived, into the host's byte order.
 * 0: @ret is set; -EPROTO: not a request at all (there is nobody to answer); -EPROTONOSUPPORT:
 * another version, but the fields that an answer needs are set.
 */
int sio_nvme_req_decode(const void *data, size_t len, struct sio_nvme_req *ret);
/* The number of bytes that follow the request. */
size_t sio_nvme_req_data(const struct sio_nvme_req *req);
void sio_nvme_req_encode(const struct sio_nvme_req *req, void *data);

/* The number of bytes of a reply with this head. */
size_t sio_nvme_rep_size(uint32_t op, uint32_t error);
void sio_nvme_rep_encode(const struct sio_nvme_rep *rep, void *data);
/* -EPROTO: not a reply. A text in it is terminated. */
int sio_nvme_rep_decode(const void *data, size_t len, struct sio_nvme_rep *ret);

/* Encodes into @data, which may be the source. */
void sio_nvme_standby_encode(const struct sio_nvme_wire_standby *standby, void *data);
/* 0; -EAGAIN: not written (yet); -EPROTONOSUPPORT; -EPROTO. The program's name is terminated. */
int sio_nvme_standby_decode(const void *data, struct sio_nvme_wire_standby *ret);

void sio_nvme_meta_encode(const struct sio_nvme_meta *meta, void *data);
/*
 * Decodes the head (first 4 KiB) of @data. 0; -EAGAIN: not written (yet); -EPROTONOSUPPORT;
 * -EPROTO.
 */
int sio_nvme_meta_decode(const void *data, struct sio_nvme_meta *ret);
void sio_nvme_ns_decode(const struct sio_nvme_wire_ns *wire, struct sio_nvme_wire_ns *ret);

#endif
