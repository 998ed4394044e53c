/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of drives (edge/trouble.h). Queues are followed by the admin commands that make and delete
 * them. Completions are put where the host expects the next one, with the phase that is right
 * there; where nothing goes wrong that is where the model put them.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nvme/types.h>

#include "emu/devices/nvme/entry.h"
#include "fabric/fabric.h"
#include "base/sim.h"
#include "smartio/io.h"
#include "edge/trouble.h"

#define DRIVES 1024u
#define QUEUES 64u
#define IEN 2u
#define PLANS 64u /* more of a kind than that are forgotten */

struct queue {
	uint64_t base;
	uint32_t size; /* entries; 0: there is none */
	uint16_t last; /* command id that was completed last */
};

struct cq {
	struct queue q;
	uint32_t tail;
	uint16_t phase;
	unsigned vector;
	bool interrupts;
	bool crowded; /* more came than the model knows of: look whether there is room */
};

struct late {
	struct late *next;
	uint64_t due;
	unsigned cq;
	struct emu_nvme_cqe cqe;
};

struct trouble {
	struct emu_dev *real;
	const struct sio_topo_device *topo;
	bool enabled;
	bool formats;	    /* it has fetched a Format */
	uint16_t format;    /* id of the last one */
	unsigned doorbells; /* index of their run of pages */
	struct queue sq[QUEUES];
	struct cq cq[QUEUES];
	struct late *late;
};

/* What waits for something to hit, of each kind one after the other. */
struct plan {
	unsigned in;
	uint64_t ns;
	bool gap;
};

static struct {
	struct plan plan[PLANS];
	unsigned n;
} waiting[TROUBLES];

bool trouble_wanted;
uint64_t trouble_count[TROUBLES];
static struct trouble *drives[DRIVES];

static const char *const kinds[TROUBLES] = {"lost",	   "late",
					    "doubled",	   "in the wrong phase",
					    "not fetched", "of nothing that was asked for"};

void trouble_plan(enum trouble_kind kind, unsigned in, uint64_t ns, bool gap)
{
	if (waiting[kind].n < PLANS)
		waiting[kind].plan[waiting[kind].n++] = (struct plan){in, ns, gap};
}

void trouble_heal(void)
{
	memset(waiting, 0, sizeof(waiting));
}

/* The first that waits happens now. */
static struct plan take(enum trouble_kind kind)
{
	struct plan p = waiting[kind].plan[0];

	memmove(waiting[kind].plan, waiting[kind].plan + 1, --waiting[kind].n * sizeof(p));
	return p;
}

/* Something came by that it could befall. Return: it is its turn. */
static bool is_due(enum trouble_kind kind)
{
	struct plan *p = &waiting[kind].plan[0];

	if (waiting[kind].n == 0)
		return false;
	if (p->in > 1)
		p->in--;
	else
		return true;
	return false;
}

struct trouble *trouble_new(struct emu_dev *real, const struct sio_topo_device *topo, unsigned n)
{
	struct trouble *t = calloc(1, sizeof(*t));

	assert(t && n < DRIVES);
	t->real = real;
	t->topo = topo;
	drives[n] = t;
	return t;
}

void trouble_free(struct trouble *t)
{
	trouble_forget(t);
	for (unsigned i = 0; i < DRIVES; i++)
		if (drives[i] == t)
			drives[i] = NULL;
	free(t);
}

/* ---- queues ---- */
static void late_drop(struct trouble *t, unsigned cq, int sq)
{
	struct late **at = &t->late, *l;

	while ((l = *at)) {
		if (l->cq != cq || (sq >= 0 && le16toh(l->cqe.sq_id) != sq)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l);
	}
}

void trouble_forget(struct trouble *t)
{
	for (unsigned i = 0; i < QUEUES; i++)
		late_drop(t, i, -1);
	memset(t->sq, 0, sizeof(t->sq));
	memset(t->cq, 0, sizeof(t->cq));
	t->enabled = false;
	t->formats = false;
}

static void cq_begins(struct trouble *t, unsigned id, uint64_t base, uint32_t size, uint32_t cdw11)
{
	assert(id < QUEUES);
	late_drop(t, id, -1);
	t->cq[id] = (struct cq){
		.q = {base, size, 0}, .phase = 1, .vector = cdw11 >> 16, .interrupts = cdw11 & IEN};
}

static void admin_queues_begin(struct trouble *t, const volatile uint8_t *registers)
{
	uint32_t aqa = sio_read32(registers + NVME_REG_AQA);

	t->sq[0] = (struct queue){sio_read64(registers + NVME_REG_ASQ), (aqa & 0xfff) + 1, 0};
	cq_begins(t, 0, sio_read64(registers + NVME_REG_ACQ), (aqa >> 16 & 0xfff) + 1, 0);
}

static void admin_command(struct trouble *t, const struct emu_nvme_sqe *e)
{
	uint32_t cdw10 = le32toh(e->cdw10), size = (cdw10 >> 16) + 1;
	unsigned id = cdw10 & 0xffff;

	t->formats |= e->opcode == nvme_admin_format_nvm;
	if (e->opcode == nvme_admin_format_nvm)
		t->format = e->cid;
	if (id == 0 || id >= QUEUES)
		return;
	switch (e->opcode) {
	case nvme_admin_create_cq:
		cq_begins(t, id, le64toh(e->prp1), size, le32toh(e->cdw11));
		break;
	case nvme_admin_create_sq:
		t->sq[id] = (struct queue){le64toh(e->prp1), size, 0};
		break;
	case nvme_admin_delete_sq:
		/* What it did not complete so far, it does not complete any more. */
		for (unsigned i = 0; i < QUEUES; i++)
			late_drop(t, i, (int)id);
		t->sq[id].size = 0;
		break;
	case nvme_admin_delete_cq:
		t->cq[id].q.size = 0;
		break;
	default:
		break;
	}
}

static bool lies_in(const struct queue *q, uint64_t addr, size_t entry)
{
	return q->size && addr >= q->base && addr < q->base + q->size * entry;
}

bool trouble_fails(struct trouble *t, uint64_t addr, size_t len)
{
	for (unsigned i = 0; len % 64 == 0 && i < QUEUES; i++) {
		if (!lies_in(&t->sq[i], addr, 64))
			continue;
		if (!is_due(TROUBLE_FETCH))
			return false;
		take(TROUBLE_FETCH);
		trouble_count[TROUBLE_FETCH]++;
		sim_trace("trouble: submission queue %u of %s is not fetched", i, t->topo->name);
		return true;
	}
	return false;
}

void trouble_saw(struct trouble *t, uint64_t addr, const void *buf, size_t len)
{
	const struct emu_nvme_sqe *e = buf;

	if (len % 64 || !lies_in(&t->sq[0], addr, 64))
		return;
	for (size_t i = 0; i < len / 64; i++)
		admin_command(t, &e[i]);
}

/* ---- completions ---- */
static bool has_room(struct trouble *t, unsigned id)
{
	const struct cq *q = &t->cq[id];
	const volatile uint8_t *doorbells = t->real->view(t->real, t->doorbells);
	bool far = fabric_actor.far;
	uint32_t head;

	if (!q->crowded)
		return true;
	fabric_actor.far = false;
	head = sio_read32(doorbells + 4 * (2 * id + 1));
	fabric_actor.far = far;
	return head < q->q.size && (q->tail + q->q.size - head) % q->q.size < q->q.size - 1;
}

static void hold(struct trouble *t, unsigned id, const struct emu_nvme_cqe *cqe, uint64_t ns)
{
	struct late *l = malloc(sizeof(*l)), **at = &t->late;

	assert(l);
	*l = (struct late){.due = sim_now() + ns, .cq = id, .cqe = *cqe};
	while (*at && (*at)->due <= l->due)
		at = &(*at)->next;
	l->next = *at;
	*at = l;
	fabric_access->look(l->due);
}

static void advance(struct cq *q)
{
	if (++q->tail < q->q.size)
		return;
	q->tail = 0;
	q->phase ^= 1;
}

/* At the next place. */
static int put(struct trouble *t, unsigned id, const struct emu_nvme_cqe *cqe, bool wrong)
{
	struct cq *q = &t->cq[id];
	struct emu_nvme_cqe e __attribute__((aligned(16))) = *cqe;

	e.status = htole16((uint16_t)((le16toh(e.status) & ~1u) | (q->phase ^ wrong)));
	return fabric_dev_write(t->real, t->topo, q->q.base + q->tail * sizeof(e), &e, sizeof(e));
}

static int post(struct trouble *t, unsigned id, const struct emu_nvme_cqe *cqe)
{
	int rc;

	if (!has_room(t, id)) {
		hold(t, id, cqe, SIM_MS);
		return 0;
	}
	rc = put(t, id, cqe, false);
	advance(&t->cq[id]);
	return rc;
}

/*
 * A Format's completion arrives: what may take as long as that a manager awaits for 610 s, and its
 * successor, whose first command a drive may carry out behind it, does nothing else meanwhile
 * (SLOW_MS in drivers/nvme-user/admin.c, docs/nvme-driver.md). A run gives a call 60 s.
 */
static bool is_spared(const struct trouble *t, const struct emu_nvme_cqe *cqe, enum trouble_kind k)
{
	return (k == TROUBLE_LOST || k == TROUBLE_PHASE) && t->formats && cqe->sq_id == 0 &&
	       cqe->cid == t->format;
}

/* Which one befalls this completion; TROUBLES: none. Others that are due befall the next. */
static enum trouble_kind choose(const struct trouble *t, const struct emu_nvme_cqe *cqe)
{
	enum trouble_kind found = TROUBLES;

	for (enum trouble_kind k = TROUBLE_LOST; k <= TROUBLE_PHASE; k++)
		if (is_due(k) && found == TROUBLES && !is_spared(t, cqe, k))
			found = k;
	return found;
}

static int go_wrong(struct trouble *t, unsigned id, const struct emu_nvme_cqe *cqe,
		    enum trouble_kind k)
{
	struct plan p = take(k);
	int rc = 0;

	trouble_count[k]++;
	sim_trace("trouble: completion of command %u of queue %u of %s is %s", le16toh(cqe->cid),
		  le16toh(cqe->sq_id), t->topo->name, kinds[k]);
	switch (k) {
	case TROUBLE_LATE:
		hold(t, id, cqe, p.ns);
		return 0;
	case TROUBLE_DOUBLED:
		rc = post(t, id, cqe);
		t->cq[id].crowded = true;
		hold(t, id, cqe, p.ns);
		return rc;
	case TROUBLE_PHASE:
		rc = put(t, id, cqe, true);
		break;
	default:
		break;
	}
	if (p.gap)
		advance(&t->cq[id]);
	return rc;
}

int trouble_complete(struct trouble *t, uint64_t addr, const void *cqe)
{
	enum trouble_kind k;
	unsigned id = 0;

	while (id < QUEUES && !lies_in(&t->cq[id].q, addr, sizeof(struct emu_nvme_cqe)))
		id++;
	if (id == QUEUES)
		return fabric_dev_write(t->real, t->topo, addr, cqe, sizeof(struct emu_nvme_cqe));
	t->sq[le16toh(((const struct emu_nvme_cqe *)cqe)->sq_id) % QUEUES].last =
		le16toh(((const struct emu_nvme_cqe *)cqe)->cid);
	k = choose(t, cqe);
	return k == TROUBLES ? post(t, id, cqe) : go_wrong(t, id, cqe, k);
}

bool trouble_stray(unsigned drive, unsigned id, uint16_t which)
{
	struct trouble *t = drives[drive];
	struct emu_nvme_cqe e = {.sq_id = htole16((uint16_t)id)};
	uint32_t slots = 1;

	if (!t || id >= QUEUES || !t->cq[id].q.size || !t->sq[id].size ||
	    waiting[TROUBLE_STRAY].n == 0)
		return false;
	take(TROUBLE_STRAY);
	while (slots < t->sq[id].size)
		slots *= 2;
	e.cid = htole16((uint16_t)(which ? which : t->sq[id].last + slots));
	e.sq_head = 0;
	trouble_count[TROUBLE_STRAY]++;
	sim_trace("trouble: completion of command %u of queue %u of %s is %s", le16toh(e.cid), id,
		  t->topo->name, kinds[TROUBLE_STRAY]);
	hold(t, id, &e, 0);
	t->cq[id].crowded = true;
	return true;
}

void trouble_look(struct trouble *t, const volatile uint8_t *registers, unsigned doorbells)
{
	bool enabled = registers && sio_read32(registers + NVME_REG_CC) & 1;

	t->doorbells = doorbells;
	if (t->enabled && !enabled)
		trouble_forget(t);
	if (!t->enabled && enabled)
		admin_queues_begin(t, registers);
	t->enabled = enabled;
}

bool trouble_is_late(const struct trouble *t)
{
	return t->late;
}

void trouble_due(struct trouble *t)
{
	struct late *l;

	while ((l = t->late) && l->due <= sim_now()) {
		const struct cq *q = &t->cq[l->cq];

		t->late = l->next;
		post(t, l->cq, &l->cqe);
		if (q->interrupts)
			t->real->interrupt(t->real, q->vector);
		free(l);
	}
}
