/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues that drives have, seen where their models make and delete them, against what manager
 * and clients are notified; the manager's records are not trusted. Two queues of a drive share no
 * memory, whatever became of those who asked for them; a submission queue goes before its
 * completion queue; a queue lies in memory that the lender holds, and is held, and in quarantine,
 * for as long as the drive has it; nothing is held for a borrower whose end its asker has heard of;
 * and the queue that a client is given is the one that was made of its memory, and nobody else
 * rings its doorbells.
 *
 * Calls are seen where the driver enters the library, commands in the drive's model (--wrap).
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include <nvme/types.h>

#include "client.h"
#include "manager.h"
#include "emu/devices/nvme/model.h"
#include "emu/device/device.h"
#include "fabric/fabric.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "run/listener.h"
#include "oracle/device.h"

#define QUEUES 64u
#define SQ_ENTRY 64u
#define CQ_ENTRY 16u

struct memory {
	uint64_t at, bytes; /* 0 bytes: there is no such queue */
};

struct drive {
	uint32_t fdid;
	uint64_t born; /* its model: each start of its host makes one */
	uint64_t resets;
	unsigned followed; /* a manager goes on where another was, or died at it */
	struct memory sq[QUEUES], cq[QUEUES];
	uint32_t given[QUEUES]; /* to the client with this pid; 0: nobody was told yet */
	struct drive *prev, *next;
};

struct hold {
	uint32_t fdid;
	uint64_t number, borrower;
	uint32_t ending; /* whose word is on its way that ends it; 0: nobody's */
	struct memory memory;
	struct hold *prev, *next;
};

/* Pages of a drive's own memory that its manager had assigned. */
struct assigned {
	uint32_t fdid;
	struct memory memory; /* as the drive has them */
	struct assigned *prev, *next;
};

/* Whoever was notified that a borrower has ended. */
struct ended {
	uint32_t pid, fdid;
	uint64_t borrower;
	struct ended *prev, *next;
};

static struct drive *drives;
static struct hold *holds;
static struct ended *ends;
static struct assigned *assigned;

/* A manager that lies makes queues where it likes, and clients that lie ask for them there. */
static bool somebody_lies(void)
{
	return sim_wild.queues + sim_wild.lies > 0;
}

static bool overlap(const struct memory *a, const struct memory *b)
{
	return a->bytes && b->bytes && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

/* ---- drives ---- */
static uint32_t fdid_of_drive(const char *name)
{
	const struct sio_topology *t = sim_cluster->topology;

	for (unsigned h = 0; h < t->n_hosts; h++)
		for (unsigned i = 0; i < t->host[h].n_devices; i++)
			if (strcmp(t->host[h].device[i].name, name) == 0)
				return t->host[h].device[i].fdid;
	assert(!"a drive of this cluster");
	return 0;
}

static struct drive *find_drive(uint32_t fdid)
{
	struct drive *d;

	DL_FOREACH (drives, d)
		if (d->fdid == fdid)
			return d;
	return NULL;
}

static struct drive *drive_of(const struct emu_nvme *m)
{
	uint32_t fdid = fdid_of_drive(m->name);
	struct drive *d = find_drive(fdid);

	if (!d) {
		d = calloc(1, sizeof(*d));
		assert(d);
		d->fdid = fdid;
		DL_APPEND(drives, d);
	}
	if (d->born != m->born) {
		d->resets++;
		memset(d->sq, 0, sizeof(d->sq));
		memset(d->cq, 0, sizeof(d->cq));
		memset(d->given, 0, sizeof(d->given));
	}
	d->born = m->born;
	return d;
}

/* Nothing else that the drive has lies there. */
static void check_alone(const struct emu_nvme *m, const struct drive *d, const struct memory *new)
{
	for (unsigned i = 0; i < QUEUES; i++)
		if (overlap(&d->sq[i], new) || overlap(&d->cq[i], new))
			sim_fail("queues",
				 "%s: a queue is made at %#llx, where it has queue %u already",
				 m->name, (unsigned long long)new->at, i);
}

/* Drives whose manager tries them, or died at it. It has queues of its own, which nobody holds. */
static uint32_t tried[SIM_HOSTS * SIM_DRIVES];

static void trial(uint32_t fdid, bool begins)
{
	uint32_t from = begins ? 0 : fdid, to = begins ? fdid : 0;
	unsigned i = 0;

	while (i < SIM_HOSTS * SIM_DRIVES && tried[i] != from)
		i++;
	if (i < SIM_HOSTS * SIM_DRIVES)
		tried[i] = to;
}

static bool is_tried(uint32_t fdid)
{
	for (unsigned i = 0; i < SIM_HOSTS * SIM_DRIVES; i++)
		if (tried[i] == fdid)
			return true;
	return false;
}

/* The drive's own memory is held by nobody, but assigned, which outlives who said so. */
static bool is_assigned(const struct drive *d, const struct memory *queue)
{
	const struct assigned *a;

	DL_FOREACH (assigned, a)
		if (a->fdid == d->fdid && queue->at >= a->memory.at &&
		    queue->at + queue->bytes <= a->memory.at + a->memory.bytes)
			return true;
	return false;
}

/*
 * A reset ends all holds; so does the death of the lender's daemon, where it takes the port along.
 */
static void check_held(const struct emu_nvme *m, const struct drive *d, const struct memory *new)
{
	const struct hold *h;

	if (is_tried(d->fdid) || is_assigned(d, new))
		return;
	DL_FOREACH (holds, h)
		if (h->fdid == d->fdid && !h->ending &&
		    new->at >= h->memory.at &&new->at + new->bytes <=
			    h->memory.at + h->memory.bytes)
			return;
	sim_fail("queues", "%s: a queue is made at %#llx, which nobody asked to be held", m->name,
		 (unsigned long long)new->at);
}

static void made(struct emu_nvme *m, struct memory *queue, const struct emu_nvme_sqe *sqe,
		 uint64_t entry)
{
	struct memory new = {le64toh(sqe->prp1), ((le32toh(sqe->cdw10) >> 16) + 1) * entry};

	if (!somebody_lies() && !sim_liars_device(drive_of(m)->fdid)) {
		check_alone(m, drive_of(m), &new);
		check_held(m, drive_of(m), &new);
	}
	*queue = new;
}

static unsigned id_of(const struct emu_nvme_sqe *sqe)
{
	unsigned id = le32toh(sqe->cdw10) & 0xffff;

	assert(id < QUEUES);
	return id;
}

/*
 * Whoever goes on where another manager was does not know how far that had come, and deletes what
 * may not be there.
 */
static void refused(const struct emu_nvme *m, const char *what, const struct emu_nvme_sqe *sqe,
		    unsigned status, const struct memory *queue)
{
	if (drive_of(m)->followed && !queue->bytes)
		return;
	if (status && !somebody_lies() && !sim_liars_device(drive_of(m)->fdid))
		sim_fail("queues", "%s is asked to delete %s queue %u, and refuses: %#x", m->name,
			 what, le32toh(sqe->cdw10) & 0xffff, status);
}

#define WRAP(type, name, params)                                                                   \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params

WRAP(unsigned, emu_nvme_create_cq, (struct emu_nvme * m, const struct emu_nvme_sqe *sqe))
{
	unsigned status = __real_emu_nvme_create_cq(m, sqe);

	if (status == 0)
		made(m, &drive_of(m)->cq[id_of(sqe)], sqe, CQ_ENTRY);
	return status;
}

WRAP(unsigned, emu_nvme_create_sq, (struct emu_nvme * m, const struct emu_nvme_sqe *sqe))
{
	unsigned status = __real_emu_nvme_create_sq(m, sqe);

	if (status == 0)
		made(m, &drive_of(m)->sq[id_of(sqe)], sqe, SQ_ENTRY);
	return status;
}

WRAP(unsigned, emu_nvme_delete_sq, (struct emu_nvme * m, const struct emu_nvme_sqe *sqe))
{
	unsigned status = __real_emu_nvme_delete_sq(m, sqe);

	refused(m, "submission", sqe, status, &drive_of(m)->sq[id_of(sqe)]);
	if (status == 0) {
		drive_of(m)->sq[id_of(sqe)].bytes = 0;
		drive_of(m)->given[id_of(sqe)] = 0;
	}
	return status;
}

WRAP(unsigned, emu_nvme_delete_cq, (struct emu_nvme * m, const struct emu_nvme_sqe *sqe))
{
	unsigned status = __real_emu_nvme_delete_cq(m, sqe);

	refused(m, "completion", sqe, status, &drive_of(m)->cq[id_of(sqe)]);
	if (status == 0)
		drive_of(m)->cq[id_of(sqe)].bytes = 0;
	return status;
}

/* By a reset of whatever kind; also as a model comes to be. */
WRAP(void, emu_nvme_queues_gone, (struct emu_nvme * m))
{
	struct drive *d;

	__real_emu_nvme_queues_gone(m);
	d = drive_of(m);
	d->resets++;
	memset(d->sq, 0, sizeof(d->sq));
	memset(d->cq, 0, sizeof(d->cq));
	memset(d->given, 0, sizeof(d->given));
}

WRAP(int, sio_nvme_manager_go_on, (struct smartio_nvme_manager * m))
{
	struct drive *d = find_drive(m->d.fdid);
	int rc;

	if (d)
		d->followed++;
	rc = __real_sio_nvme_manager_go_on(m);
	if (d)
		d->followed--;
	return rc;
}

/* ---- what managers ask for ---- */
/* An honest one: others that have the registers say what they like. */
static bool is_manager(void)
{
	const char *name = sim_self()->name;

	return !somebody_lies() &&
	       (strncmp(name, "manager@", 8) == 0 || strncmp(name, "steward@", 8) == 0);
}

static void drop(struct hold *h)
{
	DL_DELETE(holds, h);
	free(h);
}

/* Memory that may be given back from now on: the drive has no queue there. */
static void check_unused(const struct hold *h, const char *what)
{
	const struct drive *d = find_drive(h->fdid);

	for (unsigned i = 0; d && is_manager() && i < QUEUES; i++)
		if (overlap(&d->sq[i], &h->memory) || overlap(&d->cq[i], &h->memory))
			sim_fail("queues",
				 "%s %s %#llx of borrow %llu, where the drive has queue %u",
				 sim_self()->name, what, (unsigned long long)h->memory.at,
				 (unsigned long long)h->borrower, i);
}

static void settles(uint32_t fdid, uint64_t borrower, bool reset)
{
	struct hold *h;

	DL_FOREACH (holds, h) {
		if (h->fdid != fdid ||
		    (borrower != SMARTIO_ALL_BORROWERS && h->borrower != borrower))
			continue;
		if (!reset)
			check_unused(h, "settles");
		h->ending = h->ending ? h->ending : sim_self()->pid;
	}
}

/* With an error it may still be held. */
static void settled(uint32_t fdid, sci_error_t error)
{
	struct hold *h, *next;

	DL_FOREACH_SAFE (holds, h, next) {
		if (h->fdid != fdid || h->ending != sim_self()->pid)
			continue;
		h->ending = 0;
		if (error == SCI_ERR_OK)
			drop(h);
	}
}

WRAP(void, smartio_device_hold,
     (sci_smartio_device_t device, uint64_t borrower, sci_ioaddr_t ioaddr, size_t bytes,
      uint64_t *hold, sci_error_t *error))
{
	uint32_t fdid = sim_device_fdid(device);
	const struct ended *e;
	struct hold *h;

	DL_FOREACH (ends, e)
		if (e->pid == sim_self()->pid && e->fdid == fdid && e->borrower == borrower &&
		    is_manager())
			sim_fail("queues", "%s wants memory held for borrow %llu, which has ended",
				 sim_self()->name, (unsigned long long)borrower);
	__real_smartio_device_hold(device, borrower, ioaddr, bytes, hold, error);
	if (*error != SCI_ERR_OK)
		return;
	h = calloc(1, sizeof(*h));
	assert(h);
	*h = (struct hold){
		.fdid = fdid, .number = *hold, .borrower = borrower, .memory = {ioaddr, bytes}};
	DL_PREPEND(holds, h);
}

WRAP(void, smartio_device_unhold, (sci_smartio_device_t device, uint64_t hold, sci_error_t *error))
{
	uint32_t fdid = sim_device_fdid(device);
	struct hold *h;

	DL_FOREACH (holds, h)
		if (h->fdid == fdid && h->number == hold)
			break;
	if (h)
		check_unused(h, "releases");
	__real_smartio_device_unhold(device, hold, error);
	DL_FOREACH (holds, h)
		if (*error == SCI_ERR_OK && h->fdid == fdid && h->number == hold)
			break;
	if (h && *error == SCI_ERR_OK)
		drop(h);
}

/* The drive has no queue there any more, whosever it was. */
static void check_free(const struct assigned *a)
{
	const struct drive *d = find_drive(a->fdid);

	for (unsigned i = 0; d && is_manager() && i < QUEUES; i++)
		if (overlap(&d->sq[i], &a->memory))
			sim_fail("queues", "%s assigns %#llx, where the drive has queue %u",
				 sim_self()->name, (unsigned long long)a->memory.at, i);
}

WRAP(void, smartio_device_assign,
     (sci_smartio_device_t device, uint64_t borrower, unsigned int bar, size_t offset, size_t bytes,
      sci_error_t *error))
{
	struct assigned *a = calloc(1, sizeof(*a)), *other, *next;

	assert(a);
	*a = (struct assigned){.fdid = sim_device_fdid(device),
			       .memory = {SIO_NVME_CMB_BASE + offset, bytes}};
	check_free(a);
	__real_smartio_device_assign(device, borrower, bar, offset, bytes, error);
	if (*error != SCI_ERR_OK) {
		free(a);
		return;
	}
	DL_FOREACH_SAFE (assigned, other, next)
		if (other->fdid == a->fdid && overlap(&other->memory, &a->memory)) {
			DL_DELETE(assigned, other);
			free(other);
		}
	DL_PREPEND(assigned, a);
}

WRAP(void, smartio_wait_device_event,
     (sci_smartio_device_t device, struct smartio_device_event *event, unsigned timeout,
      sci_error_t *error))
{
	struct ended *e;

	__real_smartio_wait_device_event(device, event, timeout, error);
	if (*error != SCI_ERR_OK || event->kind != SMARTIO_DEVICE_BORROWER_GONE)
		return;
	e = calloc(1, sizeof(*e));
	assert(e);
	*e = (struct ended){.pid = sim_self()->pid,
			    .fdid = sim_device_fdid(device),
			    .borrower = event->borrower};
	DL_PREPEND(ends, e);
}

WRAP(void, SCITriggerDataInterrupt,
     (sci_remote_data_interrupt_t interrupt, void *data, unsigned int length, unsigned int flags,
      sci_error_t *error))
{
	struct sim_proc *p = sim_self();

	__real_SCITriggerDataInterrupt(interrupt, data, length, flags, error);
	p->triggered += *error == SCI_ERR_OK;
}

/* ---- what clients are given ---- */
static uint64_t resets(uint32_t fdid)
{
	const struct drive *d = find_drive(fdid);

	return d ? d->resets : 0;
}

static void given(uint32_t fdid, const struct smartio_nvme_queue *q, uint64_t since)
{
	struct drive *d = find_drive(fdid);

	if (somebody_lies() || !d || d->resets != since)
		return;
	if (q->id >= QUEUES || (!q->cmb && d->sq[q->id].at != q->sq_mem->ioaddr) ||
	    (q->cmb && d->sq[q->id].at < SIO_NVME_CMB_BASE) ||
	    (q->cq_mem && d->cq[q->id].at != q->cq_mem->ioaddr) || !d->sq[q->id].bytes)
		sim_fail("queues", "%s: was given queue %u, which is not of its memory",
			 sim_self()->name, q->id);
	d->given[q->id] = sim_self()->pid;
}

/* ---- doorbells ---- */
/* The drive that looks at @mem; NULL. */
static struct drive *looks_at(const struct fabric_mem *mem)
{
	const struct emu_room *r = sim_cluster->room;

	for (unsigned i = 0; i < r->n_devices; i++) {
		const struct emu_run *run = &r->device[i]->run[EMU_NVME_RUN_DOORBELLS];

		if (run->mem.data && fabric_mem_at(run->mem.data) == mem)
			return find_drive(r->device[i]->topo->fdid);
	}
	return NULL;
}

static bool is_client(const struct sim_proc *p)
{
	return !somebody_lies() &&
	       (strncmp(p->name, "nvme@", 5) == 0 || strncmp(p->name, "asker@", 6) == 0 ||
		strncmp(p->name, "joiner@", 7) == 0 || strncmp(p->name, "leaser@", 7) == 0);
}

static void rings(const struct fabric_view *v)
{
	const struct sim_proc *p = sim_self();
	const struct drive *d = is_client(p) ? looks_at(v->mem) : NULL;
	uint64_t id = v->offset / 8; /* as far apart as our drives have them */

	if (d && id < QUEUES && d->given[id] && d->given[id] != p->pid)
		sim_fail("queues", "%s rings for queue %llu, which process %u was given", p->name,
			 (unsigned long long)id, d->given[id]);
}

static void start(void)
{
	fabric_on_ring = rings;
	holds = NULL;
	assigned = NULL;
	ends = NULL;
}

static const struct sim_listener listener = {.settles = settles,
					     .settled = settled,
					     .trial = trial,
					     .resets = resets,
					     .queue_given = given};

const struct sim_oracle sim_oracle_queues = {
	.name = "queues", .start = start, .listener = &listener};
