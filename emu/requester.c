/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requester tables: an adapter lets out only what comes from a device that stands in its table.
 * The table is small and the CPUs have two entries of it. A device takes one entry however often
 * it is added; the entry is free again when its last holder is gone. A DMA mapping through a window
 * refers to the holder that it found, so that one cannot go before it.
 */
#include "emu/internal.h"

struct emu_requester_entry *emu_requester_lookup(struct emu_adapter *a, uint32_t bdf)
{
	for (unsigned i = EMU_CPU_REQUESTERS; i < a->topo->requesters; i++)
		if (a->requester[i].holders && a->requester[i].bdf == bdf)
			return &a->requester[i];
	return NULL;
}

static struct emu_requester_entry *free_entry(struct emu_adapter *a)
{
	for (unsigned i = EMU_CPU_REQUESTERS; i < a->topo->requesters; i++)
		if (a->requester[i].holders == 0)
			return &a->requester[i];
	return NULL;
}

struct emu_requester *emu_requester_of(struct emu_host *h, const struct emu_device *d,
				       unsigned adapter)
{
	struct emu_object *o, *tmp;

	HASH_ITER (hh, h->objects, o, tmp) {
		struct emu_requester *q = (struct emu_requester *)o;

		if (o->kind == SIO_KIND_REQUESTER && q->device == d && q->adapter == adapter)
			return q;
	}
	return NULL;
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
			if (rq->host->device[i].topo->bdf == m->bdf)
				*ret = &rq->host->device[i];
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

	rc = emu_adapter_get(rq, m->adapter, &a);
	if (rc == 0)
		rc = check(rq, m, &d);
	if (rc < 0)
		return rc;
	bdf = d ? d->topo->bdf : m->bdf;
	e = emu_requester_lookup(a, bdf);
	if (!e)
		e = free_entry(a);
	if (!e)
		return sio_fail(&rq->err, -ENOSPC,
				"REQUESTER_ADD: all %u requester entries of "
				"adapter %u are taken, %d of them by the CPUs",
				a->topo->requesters, a->index, EMU_CPU_REQUESTERS);
	q = emu_object_new(rq, SIO_KIND_REQUESTER, sizeof(*q), 0);
	if (!q)
		return rq->err.code;
	q->device = d;
	q->adapter = a->index;
	q->entry = (unsigned)(e - a->requester);
	rc = emu_check_requester(q, bdf);
	if (rc < 0) {
		emu_object_drop(&q->o);
		return sio_fail(&rq->err, rc, "REQUESTER_ADD: out of memory");
	}
	e->bdf = bdf;
	e->holders++;
	if (d)
		emu_object_ref(&d->opened->o);
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

void emu_requester_release(struct emu_requester *q)
{
	struct emu_host *h = q->o.host;

	h->adapter[q->adapter].requester[q->entry].holders--;
	emu_invalidate(h->room);
	if (q->device)
		emu_object_unref(&q->device->opened->o);
}
