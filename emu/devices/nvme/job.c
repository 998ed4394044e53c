/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How jobs are carried out. NVMe leaves the order of commands open, yet a block is written as a
 * whole (AWUN), and what an old queue's command does must not show behind a new one's: a job waits
 * for earlier ones on the same blocks, if either changes them, also for those that nobody waits
 * for any more because their queue was deleted or the controller reset.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "emu/devices/nvme/job.h"

#define MEDIA_ERROR(name)                                                                          \
	((unsigned)NVME_SC_DNR | (unsigned)NVME_SCT_MEDIA << NVME_SCT_SHIFT |                      \
	 (unsigned)NVME_SC_##name)

struct emu_nvme_job *emu_nvme_job_new(struct emu_nvme *m, const struct emu_nvme_sqe *sqe,
				      uint32_t ns, size_t bytes)
{
	struct emu_nvme_files *f = m->files;
	uint8_t *data = bytes ? malloc(bytes) : NULL;
	struct emu_nvme_job *j = f->free;

	if (bytes && !data)
		return NULL;
	f->free = j->next;
	*j = (struct emu_nvme_job){.io.queue = &f->ended,
				   .m = m,
				   .sq = m->serving,
				   .sqe = *sqe,
				   .cid = m->reply ? m->reply->cid : sqe->cid,
				   .times = m->reply ? m->reply->times : 1,
				   .ns = ns,
				   .ns_end = ns + 1,
				   .now_ns = ns,
				   .data = data};
	f->n++;
	return j;
}

void emu_nvme_job_drop(struct emu_nvme *m, struct emu_nvme_job *j)
{
	struct emu_nvme_files *f = m->files;

	if (j->state != EMU_NVME_JOB_FREE)
		DL_DELETE(f->jobs, j);
	f->n_waiting -= j->state == EMU_NVME_JOB_WAITING;
	free(j->data);
	free(j->ranges);
	j->data = NULL;
	j->ranges = NULL;
	j->state = EMU_NVME_JOB_FREE;
	j->next = f->free;
	f->free = j;
	f->n--;
}

static bool conflict(const struct emu_nvme_job *a, const struct emu_nvme_job *b)
{
	return (a->changes || b->changes) && a->ns < b->ns_end && b->ns < a->ns_end &&
	       a->all.at < b->all.end && b->all.at < a->all.end;
}

static bool must_wait(const struct emu_nvme_files *f, const struct emu_nvme_job *j)
{
	for (const struct emu_nvme_job *i = f->jobs; i && i != j; i = i->next)
		if (i->state != EMU_NVME_JOB_ENDED && conflict(i, j))
			return true;
	return false;
}

static void end(struct emu_nvme_job *j)
{
	j->state = EMU_NVME_JOB_ENDED;
	if (j->m)
		j->m->n_ready++;
}

/* The next namespace of a job on several that is in a file. */
static bool next_ns(struct emu_nvme *m, struct emu_nvme_job *j)
{
	while (++j->now_ns < j->ns_end) {
		if (!m->ns[j->now_ns].file)
			continue;
		if (j->whole)
			j->range = (struct emu_nvme_range){.at = 0, .end = m->ns[j->now_ns].size};
		j->sync_last = true;
		return true;
	}
	return false;
}

/* Sets the job's next operation, in @io. False: there is none. */
static bool plan(struct emu_nvme *m, struct emu_nvme_job *j)
{
	do {
		if (j->sync_first) {
			j->sync_first = false;
			j->io.op = EMU_STORE_SYNC;
			return true;
		}
		while (j->range.at == j->range.end && j->next_range < j->n_ranges)
			j->range = j->ranges[j->next_range++];
		if (j->range.at < j->range.end) {
			j->io.op = j->op;
			return true;
		}
		if (j->sync_last) {
			j->sync_last = false;
			j->io.op = EMU_STORE_SYNC;
			return true;
		}
	} while (next_ns(m, j));
	return false;
}

/* Instead of a hole, a piece of zeros. False: no memory. */
static bool write_zeros(struct emu_nvme_job *j)
{
	if (!j->data)
		j->data = calloc(1, EMU_NVME_PIECE);
	j->io.op = EMU_STORE_WRITE;
	j->io.data = j->data;
	return j->data;
}

static void proceed(struct emu_nvme *m, struct emu_nvme_job *j)
{
	struct emu_nvme_files *f = m->files;

	if (!j->m || j->status || !plan(m, j)) {
		end(j);
		return;
	}
	j->state = EMU_NVME_JOB_AT_WORK;
	j->io.file = m->ns[j->now_ns].file;
	j->io.offset = j->range.at;
	j->io.length = j->range.end - j->range.at;
	j->io.durable = j->durable;
	j->io.data = j->data;
	if (j->data && !j->discard && j->op != EMU_STORE_ZERO)
		j->io.data = j->data + (j->range.at - j->all.at);
	if (j->io.op == EMU_STORE_ZERO && f->no_holes[j->now_ns] && !write_zeros(j)) {
		j->status = NVME_SC_INTERNAL;
		end(j);
		return;
	}
	if (j->io.op == EMU_STORE_SYNC)
		j->io.offset = j->io.length = 0;
	else if (j->io.op != EMU_STORE_ZERO && j->io.length > EMU_NVME_PIECE)
		j->io.length = EMU_NVME_PIECE;
	f->store->ops->start(f->store, &j->io);
}

unsigned emu_nvme_job_begin(struct emu_nvme *m, struct emu_nvme_job *j)
{
	struct emu_nvme_files *f = m->files;

	j->state = EMU_NVME_JOB_WAITING;
	f->n_waiting++;
	DL_APPEND(f->jobs, j);
	if (!must_wait(f, j)) {
		f->n_waiting--;
		proceed(m, j);
	}
	return EMU_NVME_HELD;
}

/* The status for what the file's system says (section 4.6.1.2). */
static unsigned failure(struct emu_nvme *m, enum emu_store_op op, int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return EMU_NVME_FAIL(CAP_EXCEEDED);
	default:
		m->stats.media_errors++;
		return op == EMU_STORE_READ ? MEDIA_ERROR(READ_ERROR) : MEDIA_ERROR(WRITE_FAULT);
	}
}

/* An operation has ended: the next one, or the job's end. */
static void answered(struct emu_nvme *m, struct emu_nvme_job *j)
{
	struct emu_nvme_files *f = m->files;
	int64_t result = j->io.result;
	bool moves = j->io.op == EMU_STORE_READ || j->io.op == EMU_STORE_WRITE;

	if (result == -ECANCELED && !j->m)
		; /* by emu_nvme_jobs_abort() */
	else if (result == -EOPNOTSUPP && j->io.op == EMU_STORE_ZERO)
		f->no_holes[j->now_ns] = true;
	else if (result == -EINTR || result == -EAGAIN)
		j->sync_last |= j->io.op == EMU_STORE_SYNC; /* once more */
	else if (result < 0)
		j->status = failure(j->m ? j->m : m, j->io.op, (int)-result);
	else if (moves && result == 0) /* the file is shorter than it was */
		j->status = j->io.op == EMU_STORE_READ ? EMU_NVME_FAIL(LBA_RANGE)
						       : failure(j->m ? j->m : m, j->io.op, EIO);
	else if (moves)
		j->range.at += (uint64_t)result;
	else if (j->io.op == EMU_STORE_ZERO)
		j->range.at = j->range.end;
	proceed(m, j);
}

/* Return: how many were answered, or forgotten. */
static unsigned reply_all(struct emu_nvme *m)
{
	struct emu_nvme_job *j, *tmp;
	bool failed = false;
	unsigned done = 0;

	m->n_ready = 0;
	DL_FOREACH_SAFE (m->files->jobs, j, tmp) {
		if (j->state != EMU_NVME_JOB_ENDED || (j->m && j->m != m))
			continue;
		if (j->m && !m->answers->answer(m, j, &failed))
			continue;
		emu_nvme_job_drop(m, j);
		done++;
	}
	if (done)
		m->answers->raise(m, failed);
	return done;
}

static unsigned start_waiting(struct emu_nvme *m)
{
	struct emu_nvme_files *f = m->files;
	struct emu_nvme_job *j;
	unsigned started = 0;

	DL_FOREACH (f->jobs, j) {
		if (f->n_waiting == 0)
			break;
		if (j->state != EMU_NVME_JOB_WAITING || must_wait(f, j))
			continue;
		f->n_waiting--;
		started++;
		proceed(m, j);
	}
	return started;
}

unsigned emu_nvme_jobs_run(struct emu_nvme *m)
{
	struct emu_nvme_files *f = m->files;
	struct emu_store_io *io;
	unsigned done = 0;

	if (emu_nvme_likely(f->n == 0)) {
		m->n_ready = 0; /* they were of a queue that was deleted */
		return 0;
	}
	f->store->ops->poll(f->store);
	while ((io = emu_store_take(&f->ended))) {
		answered(m, (struct emu_nvme_job *)io);
		done++;
	}
	done += reply_all(m);
	if (f->n_waiting)
		done += start_waiting(m);
	if (done) /* the store is given what began meanwhile */
		f->store->ops->poll(f->store);
	return done;
}

bool emu_nvme_jobs_idle(const struct emu_nvme *m)
{
	return !m->files || (!m->n_ready && !m->files->ended.head);
}

uint32_t emu_nvme_jobs_room(const struct emu_nvme *m)
{
	return m->files->n < EMU_NVME_JOBS - EMU_NVME_JOBS_KEPT
		       ? EMU_NVME_JOBS - EMU_NVME_JOBS_KEPT - m->files->n
		       : 0;
}

bool emu_nvme_jobs_full(const struct emu_nvme *m, uint32_t n)
{
	return m->files && n > emu_nvme_jobs_room(m);
}

void emu_nvme_jobs_end(struct emu_nvme *m, const struct emu_nvme_sq *sq)
{
	struct emu_nvme_job *j, *tmp;

	if (!m->files)
		return;
	DL_FOREACH_SAFE (m->files->jobs, j, tmp) {
		if (j->m != m || (sq && j->sq != sq))
			continue;
		if (sq)
			m->answers->abort(m, j, NVME_SC_ABORT_QUEUE);
		j->m = NULL;
		if (j->state != EMU_NVME_JOB_AT_WORK)
			emu_nvme_job_drop(m, j);
	}
	if (!sq)
		m->n_ready = 0;
}

/*
 * What the store has begun may still be done, in part; as after the deletion of a queue, nobody
 * sees that: later commands on these blocks wait for it, and the host's memory is not touched.
 */
bool emu_nvme_jobs_abort(struct emu_nvme *m, const struct emu_nvme_sq *sq, __le16 cid)
{
	struct emu_nvme_files *f = m->files;
	struct emu_nvme_job *j;

	if (!f || sq->id == 0)
		return false;
	DL_FOREACH (f->jobs, j)
		if (j->m == m && j->sq == sq && j->cid == cid && j->state != EMU_NVME_JOB_ENDED)
			break;
	if (!j || !m->answers->abort(m, j, NVME_SC_ABORT_REQ))
		return false;
	if (j->state == EMU_NVME_JOB_WAITING) {
		emu_nvme_job_drop(m, j);
		return true;
	}
	j->m = NULL;
	f->store->ops->cancel(f->store, &j->io);
	return true;
}

void emu_nvme_jobs_drain(struct emu_nvme *m)
{
	struct emu_nvme_files *f = m->files;
	struct emu_nvme_job *j, *tmp;
	struct emu_store_io *io;

	DL_FOREACH_SAFE (f->jobs, j, tmp) {
		if (j->state != EMU_NVME_JOB_AT_WORK)
			emu_nvme_job_drop(m, j);
	}
	/* Some may have ended already, in a poll of another drive on the same store. */
	while (f->n) {
		io = emu_store_take(&f->ended);
		if (io)
			emu_nvme_job_drop(m, (struct emu_nvme_job *)io);
		else
			f->store->ops->wait(f->store);
	}
}
