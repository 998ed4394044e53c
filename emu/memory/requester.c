/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requester tables: an adapter lets out only what comes from a device that stands in its table. The
 * table is small, and the CPUs have two of its entries. A device takes one entry, which is
 * reference-counted, and which is free again when its last reference is gone. A DMA mapping through
 * a window refers to the entry that it found, so that the entry cannot end before it.
 */
#include <stdio.h>

#include "emu/memory/memory.h"

struct emu_requester_entry *emu_requester_lookup(struct emu_adapter *a, uint32_t bdf)
{
	struct emu_requester_entry *e;

	HASH_FIND(hh, a->by_bdf, &bdf, sizeof(bdf), e);
	return e;
}

struct emu_requester *emu_requester_of(const struct emu_device *d, unsigned adapter)
{
	return d->requesters[adapter];
}

void emu_requesters_power_on(struct emu_adapter *a)
{
	unsigned n = a->topo->requesters;

	memset(a->requester, 0, n * sizeof(*a->requester));
	a->by_bdf = NULL;
	a->free_requesters = NULL;
	a->requesters_used = n < EMU_CPU_REQUESTERS ? n : EMU_CPU_REQUESTERS;
	while (n-- > EMU_CPU_REQUESTERS)
		LL_PREPEND2(a->free_requesters, &a->requester[n], next_free);
}

/* ", nvme0, 4 other functions": what has the entries that the CPUs have not. */
static void holders_of(const struct emu_adapter *a, char *text, size_t size)
{
	const struct emu_host *h = a->host;
	unsigned others = a->requesters_used - EMU_CPU_REQUESTERS;
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < h->n_devices && len < size; i++) {
		if (!h->device[i]->requesters[a->index])
			continue;
		others--;
		len += (size_t)snprintf(text + len, size - len, ", %s", h->device[i]->topo->name);
	}
	if (others && len < size)
		snprintf(text + len, size - len, ", %u other functions", others);
}

static void full(struct emu_request *rq, const struct emu_adapter *a)
{
	char holders[64];

	holders_of(a, holders, sizeof(holders));
	sio_fail_exhausted(
		&rq->err, -ENOSPC, SIO_OUT_OF_REQUESTERS,
		"requesters of adapter %u, node %u: %u of %u entries in use (CPUs: %d%s)", a->index,
		a->host->topo->node, a->requesters_used, a->topo->requesters, EMU_CPU_REQUESTERS,
		holders);
}

/* The entry of @bdf, once more held. NULL: rq->err says why not. */
static struct emu_requester_entry *hold(struct emu_request *rq, struct emu_adapter *a, uint32_t bdf)
{
	struct emu_requester_entry *e = emu_requester_lookup(a, bdf);

	if (!e) {
		e = a->free_requesters;
		if (!e) {
			full(rq, a);
			return NULL;
		}
		e->bdf = bdf;
		HASH_ADD(hh, a->by_bdf, bdf, sizeof(e->bdf), e);
		if (!e->hh.tbl) {
			sio_fail(&rq->err, -ENOMEM,
				 "REQUESTER_ADD: out of memory: " SIO_MORE_MEMORY);
			return NULL;
		}
		LL_DELETE2(a->free_requesters, e, next_free);
		a->requesters_used++;
	}
	e->holders++;
	return e;
}

static void release_entry(struct emu_adapter *a, struct emu_requester_entry *e)
{
	if (--e->holders > 0)
		return;
	HASH_DEL(a->by_bdf, e);
	LL_PREPEND2(a->free_requesters, e, next_free);
	a->requesters_used--;
}

static int check(struct emu_request *rq, const struct sio_req_requester_add *m,
		 struct emu_device **ret)
{
	*ret = NULL;
	if (m->direction == SIO_REQUESTER_IN)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"REQUESTER_ADD: this adapter checks requests "
				"that go out only");
	if (m->direction != SIO_REQUESTER_OUT)
		return sio_fail(&rq->err, -EINVAL, "REQUESTER_ADD: direction %u, %d (out) is right",
				m->direction, SIO_REQUESTER_OUT);
	if (m->device == 0) {
		if (m->bdf > UINT16_MAX)
			return sio_fail(&rq->err, -EINVAL,
					"REQUESTER_ADD: bdf %#x, 16 bits are "
					"right",
					m->bdf);
		for (unsigned i = 0; i < rq->host->n_devices; i++)
			if (rq->host->device[i]->topo->bdf == m->bdf)
				*ret = rq->host->device[i];
		if (*ret && !(*ret)->opened)
			*ret = NULL;
		return 0;
	}
	if (m->bdf != 0)
		return sio_fail(&rq->err, -EINVAL,
				"REQUESTER_ADD: name a device or a bdf, not both");
	return emu_device_get(rq, m->device, ret);
}

int emu_op_requester_add(struct emu_request *rq, const void *msg)
{
	const struct sio_req_requester_add *m = msg;
	struct emu_requester_entry *e;
	struct sio_evt_requester_add evt;
	struct emu_device *d = NULL;
	struct emu_requester *q = NULL;
	struct emu_adapter *a = NULL;
	uint32_t bdf;
	int rc;

	rc = emu_adapter_use(rq, m->adapter, &a);
	if (rc == 0)
		rc = check(rq, m, &d);
	if (rc < 0)
		return rc;
	bdf = d ? d->topo->bdf : m->bdf;
	q = emu_object_new(rq, SIO_KIND_REQUESTER, sizeof(*q), 0);
	if (!q)
		return rq->err.code;
	e = hold(rq, a, bdf);
	if (!e) {
		emu_object_drop(&q->o);
		return rq->err.code;
	}
	q->device = d;
	q->adapter = a->index;
	q->entry = (unsigned)(e - a->requester);
	rc = emu_check_requester(q, bdf);
	if (rc < 0) {
		release_entry(a, e);
		emu_object_drop(&q->o);
		return sio_fail(&rq->err, rc, "REQUESTER_ADD: out of memory: " SIO_MORE_MEMORY);
	}
	if (d) {
		DL_APPEND(d->requesters[a->index], q);
		emu_object_ref(d->opened);
	}
	memset(&evt, 0, sizeof(evt));
	evt.id = q->o.id;
	evt.entry = q->entry;
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}

int emu_op_requester_del(struct emu_request *rq, const void *msg)
{
	const struct sio_req_requester_del *m = msg;
	struct emu_requester *q = emu_object_find(rq, SIO_KIND_REQUESTER, m->id);

	if (!q)
		return rq->err.code;
	if (q->o.refs)
		return sio_fail(&rq->err, -EBUSY,
				"REQUESTER_DEL: %u DMA mappings and vectors go through entry "
				"%u of adapter %u",
				q->o.refs, q->entry, q->adapter);
	emu_object_free(&q->o);
	emu_answer_ok(rq);
	return 0;
}

static void release(struct emu_object *o)
{
	struct emu_requester *q = (struct emu_requester *)o;
	struct emu_adapter *a = &o->host->adapter[q->adapter];

	release_entry(a, &a->requester[q->entry]);
	emu_invalidate(q->o.host->room);
	if (q->device)
		emu_requester_cut(q);
	emu_check_forget(o->host, o->kind, o->id);
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_requester *q = (const struct emu_requester *)o;

	e->device = q->device ? q->device->topo->fdid : 0;
	e->length = q->adapter;
}

const struct emu_kind emu_kind_requester = {
	.name = "requester entry", .rank = EMU_RANK_REQUESTER, .release = release, .row = row};

/* The entry stays its holder's. */
void emu_requester_cut(struct emu_requester *q)
{
	DL_DELETE(q->device->requesters[q->adapter], q);
	emu_object_unref(q->device->opened);
	q->device = NULL;
}
