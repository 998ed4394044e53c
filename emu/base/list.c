/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST: the objects of one kind, in ascending order of id. */
#include "emu/base/state.h"

void emu_object_row(const struct emu_object *o, struct sio_list_entry *e)
{
	memset(e, 0, sizeof(*e));
	e->id = o->id;
	e->owner = o->owner->o.id; /* of an owner: its parent */
	e->kind = o->kind;
	e->state = o->state;
	e->refs = o->refs;
	emu_kind_of(o)->row(o, e);
}

/* Keep the lowest SIO_LIST_MAX ids, in order. The table is nearly in order, so this is short. */
static void keep_lowest(const struct emu_object **best, unsigned *n, uint32_t *more,
			const struct emu_object *o)
{
	unsigned at = *n;

	while (at > 0 && best[at - 1]->id > o->id)
		at--;
	if (*n == SIO_LIST_MAX) {
		*more = 1;
		if (at == SIO_LIST_MAX)
			return;
	} else {
		(*n)++;
	}
	memmove(&best[at + 1], &best[at], (*n - 1 - at) * sizeof(*best));
	best[at] = o;
}

int emu_op_list(struct emu_request *rq, const void *msg)
{
	const struct emu_object *best[SIO_LIST_MAX];
	const struct sio_req_list *m = msg;
	struct emu_object *o, *tmp;
	struct sio_evt_list evt;
	unsigned n = 0;

	if ((m->kind < SIO_KIND_OWNER || m->kind > SIO_KIND_IRQ) &&
	    (m->kind < SIO_KIND_WATCH || m->kind > SIO_KIND_SHADOW))
		return sio_fail(&rq->err, -EINVAL, "LIST: kind %u, %d to %d and %d to %d are right",
				m->kind, SIO_KIND_OWNER, SIO_KIND_IRQ, SIO_KIND_WATCH,
				SIO_KIND_SHADOW);
	memset(&evt, 0, sizeof(evt));
	HASH_ITER (hh, rq->host->objects, o, tmp) {
		if (o->kind == m->kind && o->id > m->after)
			keep_lowest(best, &n, &evt.more, o);
	}
	evt.count = n;
	for (unsigned i = 0; i < n; i++)
		emu_object_row(best[i], &evt.entry[i]);
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}
