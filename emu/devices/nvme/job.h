/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands whose blocks are in a file: jobs, which end some steps after they were fetched. One is
 * carried out as a sequence of operations of the store, and answered when the last has ended.
 */
#ifndef EMU_DEVICES_NVME_JOB_H
#define EMU_DEVICES_NVME_JOB_H

#include "emu/devices/nvme/model.h"
#include "emu/devices/store.h"

#define EMU_NVME_JOBS_KEPT 8u /* for shutdowns of its controllers */
#define EMU_NVME_JOBS                                                                              \
	(128u + EMU_NVME_JOBS_KEPT) /* of a drive, at once; more commands wait in their queues */
#define EMU_NVME_PIECE (1u << 20)   /* most bytes that a job holds */

enum emu_nvme_job_state {
	EMU_NVME_JOB_FREE,
	EMU_NVME_JOB_WAITING, /* for an earlier one on the same blocks */
	EMU_NVME_JOB_AT_WORK, /* an operation is under way */
	EMU_NVME_JOB_ENDED,   /* for room in the completion queue */
};

struct emu_nvme_range {
	uint64_t at, end; /* bytes of the namespace */
};

struct emu_nvme_job {
	struct emu_store_io io;		  /* first: what the store gives back */
	struct emu_nvme_job *prev, *next; /* in the order in which they were fetched */
	enum emu_nvme_job_state state;
	struct emu_nvme *m;	/* who answers; NULL: nobody, its queue is gone */
	struct emu_nvme_sq *sq; /* NULL: it is the flush of a shutdown */
	struct emu_nvme_sqe sqe;
	__le16 cid;
	unsigned times;	 /* completions, see emu_nvme_complete */
	unsigned status; /* so far */
	/* What it works on: namespaces [@ns, @ns_end), in each of them @all. For conflicts. */
	uint32_t ns, ns_end;
	struct emu_nvme_range all;
	bool changes;
	/* What is left to do, in this order, and then for the next namespace. */
	uint32_t now_ns;
	bool sync_first;
	enum emu_store_op op; /* on these: */
	struct emu_nvme_range range;
	struct emu_nvme_range *ranges; /* and then on these */
	unsigned n_ranges, next_range;
	bool sync_last;
	bool whole;    /* in each namespace all of it */
	bool durable;  /* no write stays in the system's cache */
	bool discard;  /* what is read is not looked at */
	uint8_t *data; /* of @all, or of a piece */
};

/* Of a drive, shared by its controllers. */
struct emu_nvme_files {
	struct emu_store *store;
	struct emu_store_queue ended;
	struct emu_nvme_job *jobs; /* all but the free ones */
	struct emu_nvme_job *free;
	unsigned n, n_waiting;
	bool no_holes[EMU_NVME_NAMESPACES]; /* the file system cannot punch them: zeros are written
					     */
	struct emu_nvme_job job[EMU_NVME_JOBS];
};

/* How jobs are answered: answer.c. A table, because its files call those that call job.c. */
struct emu_nvme_answers {
	/* False: the completion queue has no room, or the controller does not run. */
	bool (*answer)(struct emu_nvme *m, struct emu_nvme_job *j, bool *failed);
	/* Ends it with @status before its work is. False: the completion queue has no room. */
	bool (*abort)(struct emu_nvme *m, const struct emu_nvme_job *j, unsigned status);
	/* After some were answered: their interrupts. */
	void (*raise)(struct emu_nvme *m, bool failed);
};

/* job.c */
/*
 * A job for command @sqe, which is being carried out, on namespaces from @ns on; NULL: no memory
 * for @bytes of data. There must be a free one: emu_nvme_files_full().
 */
struct emu_nvme_job *emu_nvme_job_new(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
				      uint32_t ns, size_t bytes);
void emu_nvme_job_drop(struct emu_nvme *m, struct emu_nvme_job *j);
/* Its fields are set: begins, or lets it wait. Return: EMU_NVME_HELD. */
unsigned emu_nvme_job_begin(struct emu_nvme *m, struct emu_nvme_job *j);

#endif
