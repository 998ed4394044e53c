/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a manager and its clients tell each other.
 *
 * The manager describes itself in a shared segment of the device: whoever has borrowed the drive
 * finds it by the well-known id. A client sends a request to the manager's data interrupt, with the
 * number of a data interrupt of its own, where the reply comes. Hosts may differ: little-endian.
 * Both sides check every field; the other side may be of another version, broken or hostile.
 */
#ifndef NVME_USER_PROTOCOL_H
#define NVME_USER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define SIO_NVME_VERSION 3u
#define SIO_NVME_SEGMENT 0x53494f4eu /* id of the manager's shared segment */
#define SIO_NVME_META_MAGIC 0x4d4e4953u
#define SIO_NVME_REQ_MAGIC 0x514e4953u
#define SIO_NVME_REP_MAGIC 0x504e4953u
#define SIO_NVME_NAMESPACES 1024u /* as many as one active-namespace list has */
#define SIO_NVME_IDENTIFY 4096u
#define SIO_NVME_TEXT 2048u	    /* of an error, with the holders of what ran out */
#define SIO_NVME_PROGRAM 16u	    /* bytes of a program's name, with its end */
#define SIO_NVME_LARGEST (2u << 20) /* transfer: what one page of PRP entries reaches */

#define SIO_NVME_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has a hole")

struct sio_nvme_wire_ns {
	uint32_t id, block_size; /* block_size 0: a format that this driver cannot use */
	uint64_t blocks;
};
SIO_NVME_SIZE(struct sio_nvme_wire_ns, 16);

/* The shared segment. @magic is written last when it comes to be and first when it ends. */
struct sio_nvme_meta {
	uint32_t magic, version;
	uint64_t instance; /* of this manager; a random number */
	uint32_t node, interrupt;
	uint32_t generation; /* of the device, since the manager's reset */
	uint32_t queue_pairs, max_entries, max_transfer;
	uint32_t doorbell_stride; /* bytes */
	uint32_t spec_version, vendor, namespaces;
	char serial[20], model[40], firmware[8];
	uint32_t formats; /* a hash of what the namespaces are like, the same with each manager */
	uint8_t reserved[4096 - 60 - 68];
	struct sio_nvme_wire_ns ns[SIO_NVME_NAMESPACES];
};
SIO_NVME_SIZE(struct sio_nvme_meta, 4096 + 16 * SIO_NVME_NAMESPACES);

/*
 * A standby manager tells of itself in a shared segment of its own, with one of the ids from
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

/* Segments that outlive a manager: book.h, and the memory of the admin queue, which that names. */
#define SIO_NVME_BOOK_SEGMENT 0x53494f60u
#define SIO_NVME_ADMIN_SEGMENT 0x53494f70u
#define SIO_NVME_ADMIN_SEGMENTS 16u

enum {
	SIO_NVME_OP_CREATE = 1, /* a queue pair */
	SIO_NVME_OP_DELETE,
	SIO_NVME_OP_IDENTIFY,
	SIO_NVME_OP_PAIRS, /* who has which queue pair */
	SIO_NVME_OP_ADMIN, /* a command for the admin queue; its data behind the request */
	/* Not asked: a queue pair came free, to whoever was refused one and named an interrupt. */
	SIO_NVME_OP_FREED,
	SIO_NVME_OP_LEASE,   /* a range of blocks for oneself */
	SIO_NVME_OP_UNLEASE, /* give it back */
	SIO_NVME_OP_LEASES,  /* who has which */
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
			/* If all are taken: this data interrupt is told when one is not. */
			uint32_t notify, notice;	/* notify: 0 or 1 */
			char program[SIO_NVME_PROGRAM]; /* for people; terminated */
			uint32_t formats, reserved; /* as the client knows them; 0: it does not */
		} create;
		struct {
			uint32_t qid, reserved;
			uint64_t key; /* what create's reply told */
		} del;
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
			uint32_t nsid, formats;
			char name[SIO_NVME_PROGRAM], program[SIO_NVME_PROGRAM];
		} lease;
		struct {
			uint64_t id; /* what lease's reply told */
		} unlease;
		struct {
			uint64_t after; /* the first told has a larger id */
		} leases;
		uint8_t bytes[64];
	};
};
SIO_NVME_SIZE(struct sio_nvme_req, 112);
#define SIO_NVME_ADMIN_BYTES 4096u  /* of data, at most */
#define SIO_NVME_ADMIN_CONFIRMED 1u /* flags */
#define SIO_NVME_ADMIN_TO_DRIVE 2u  /* @bytes of data stand behind the request */
#define SIO_NVME_ADMIN_MS_MOST 600000u
#define SIO_NVME_REQ_LARGEST (sizeof(struct sio_nvme_req) + SIO_NVME_ADMIN_BYTES)

struct sio_nvme_rep_head {
	uint32_t magic, version, op, error; /* error: errno, 0: success */
	uint64_t instance, sequence;
	uint32_t reason; /* of an error: what ran out, SIO_OUT_OF_* of smartio/uapi.h */
	uint32_t reserved;
};
SIO_NVME_SIZE(struct sio_nvme_rep_head, 40);

struct sio_nvme_rep_pair {
	uint32_t qid, reserved;
	uint64_t key;
};
SIO_NVME_SIZE(struct sio_nvme_rep_pair, 16);

struct sio_nvme_wire_pair {
	uint32_t qid, node; /* qid 0: no more */
	uint64_t borrower;
	char program[SIO_NVME_PROGRAM];
};
SIO_NVME_SIZE(struct sio_nvme_wire_pair, 32);
#define SIO_NVME_PAIRS_TOLD (SIO_NVME_IDENTIFY / sizeof(struct sio_nvme_wire_pair))

struct sio_nvme_wire_lease {
	uint64_t id, lba, blocks; /* id 0: no more */
	uint32_t nsid, node;
	char name[SIO_NVME_PROGRAM], program[SIO_NVME_PROGRAM];
};
SIO_NVME_SIZE(struct sio_nvme_wire_lease, 64);
#define SIO_NVME_LEASES_TOLD (SIO_NVME_IDENTIFY / sizeof(struct sio_nvme_wire_lease))

struct sio_nvme_rep_admin {
	uint32_t result, status; /* dword 0; SCT << 8 | SC */
	uint8_t data[SIO_NVME_ADMIN_BYTES];
};

struct sio_nvme_rep {
	struct sio_nvme_rep_head h;
	union {
		struct sio_nvme_rep_admin admin;
		struct sio_nvme_wire_lease lease, leases[SIO_NVME_LEASES_TOLD];
		struct sio_nvme_rep_pair create;
		char text[SIO_NVME_TEXT];	 /* of an error */
		uint8_t data[SIO_NVME_IDENTIFY]; /* of identify */
		struct sio_nvme_wire_pair pairs[SIO_NVME_PAIRS_TOLD];
	};
};

/*
 * Turn a message that came into the host's byte order.
 * 0: @ret is set; -EPROTO: not a request at all (nobody to answer); -EPROTONOSUPPORT: of another
 * version, but what is needed to answer is set.
 */
int sio_nvme_req_decode(const void *data, size_t len, struct sio_nvme_req *ret);
/* Bytes behind the request. */
size_t sio_nvme_req_data(const struct sio_nvme_req *req);
void sio_nvme_req_encode(const struct sio_nvme_req *req, void *data);

/* Bytes of a reply with this head. */
size_t sio_nvme_rep_size(uint32_t op, uint32_t error);
void sio_nvme_rep_encode(const struct sio_nvme_rep *rep, void *data);
/* -EPROTO: not a reply. A text that came is terminated. */
int sio_nvme_rep_decode(const void *data, size_t len, struct sio_nvme_rep *ret);

/* Into @data; the same @data is fine. */
void sio_nvme_standby_encode(const struct sio_nvme_wire_standby *standby, void *data);
/* 0; -EAGAIN: not written (yet); -EPROTONOSUPPORT; -EPROTO. The program is terminated. */
int sio_nvme_standby_decode(const void *data, struct sio_nvme_wire_standby *ret);

void sio_nvme_meta_encode(const struct sio_nvme_meta *meta, void *data);
/* The head (first 4 KiB) of @data; 0: good; -EAGAIN: not written (yet); -EPROTONOSUPPORT; -EPROTO.
 */
int sio_nvme_meta_decode(const void *data, struct sio_nvme_meta *ret);
void sio_nvme_ns_decode(const struct sio_nvme_wire_ns *wire, struct sio_nvme_wire_ns *ret);

#endif
