/* SPDX-License-Identifier: BSD-2-Clause */
/* restore_world.h: made, compared, given back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "restore_world.h"
#include "smartiod/restart/restore.h"
#include "wire/check.h"

/* ---- programs at work ---- */

void start_programs(struct world *w, struct programs *p)
{
	memset(p, 0, sizeof(*p));
	p->a.c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	p->b.c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	p->c.c = world_client(w, 0, SIO_CLIENT_LIBRARY);
}

static void export_things(struct world *w, struct programs *p)
{
	struct world_client *a = p->a.c;

	OK(call_seg_export(w, a, 5, 8192, &p->a.segment));
	OK(call_handle(w, a, SIO_MSG_SEG_SHARE, p->a.segment, 0));
	OK(call_seg_create(w, a, GROUP, 8192, SCI_FLAG_BROADCAST | SCI_FLAG_ALLOW_UNICAST,
			   &p->member, NULL));
	OK(call_seg_adapter(w, a, SIO_MSG_SEG_PREPARE, p->member, 0, 0));
	OK(call_seg_adapter(w, a, SIO_MSG_SEG_AVAILABLE, p->member, 0, 0));
	OK(call_seg_create(w, a, 6, 4096, SCI_FLAG_EMPTY, &p->empty, NULL));
	OK(call_handle(w, a, SIO_MSG_SEG_FILL, p->empty, SIO_MEMORY_PINNED));
	OK(call_dint_create(w, a, 3, SCI_FLAG_FIXED_INTNO, &p->data, &p->data_number));
	OK(call_dint_create(w, a, SHARED_NUMBER,
			    SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN,
			    &p->shared[0], &p->a.number));
	OK(call_dint_create(w, p->b.c, SHARED_NUMBER,
			    SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN,
			    &p->shared[1], &p->a.number));
}

/* A connection to the group, of which nothing can be reached but to write, by engine and device. */
static void use_group(struct world *w, struct programs *p, struct handles *h)
{
	uint64_t ioaddr;
	uint32_t slot;

	OK(call_group_connect(w, h->c, GROUP, &h->group));
	OK(call_group_map(w, h->c, h->group, &h->group_map));
	OK(call_queue_attach(w, h->c, h->queue, h->group, true, &slot, &h->range[2]));
	OK(call_dma_map_at(w, h->c, h->b.handle, h->group, 1, 0, 4096, &h->group_dma, &ioaddr));
}

/* A DMA queue that reaches its own segment and the exporter's. */
static void use_engine(struct world *w, struct programs *p, struct handles *h)
{
	uint32_t slot;

	OK(call_seg_adapter(w, h->c, SIO_MSG_SEG_PREPARE, h->segment, 0, 0));
	OK(call_queue_create(w, h->c, 0, &h->queue));
	OK(call_queue_attach(w, h->c, h->queue, h->segment, false, &slot, &h->range[0]));
	OK(call_queue_attach(w, h->c, h->queue, h->connection, true, &slot, &h->range[1]));
}

static void use_device(struct world *w, struct programs *p, struct handles *h, uint32_t flags)
{
	OK(call_borrow(w, h->c, FDID, flags, &h->b));
	OK(call_dev_seg_connect(w, h->c, h->b.handle, 0, SCI_MEMTYPE_BAR, &h->bar, NULL));
	OK(call_bar_map(w, h->c, h->bar, 0, &h->bar_map, h->access));
	if (flags)
		OK(call_handle(w, h->c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, h->b.handle, 0));
	OK(call_seg_create(w, h->c, 100 + (uint32_t)flags, 65536, SCI_FLAG_AUTO_ID, &h->segment,
			   NULL));
	OK(call_dma_map_at(w, h->c, h->b.handle, h->segment, 0, 0, 65536, &h->dma, &h->ioaddr));
	OK(call_seg_connect(w, h->c, NODE, 5, &h->connection));
	OK(call_seg_map(w, h->c, h->connection, 0, 8192, &h->map));
	OK(call_dma_map_at(w, h->c, h->b.handle, h->connection, 1, 0, 8192, &h->remote_dma,
			   &h->remote_ioaddr));
	use_engine(w, p, h);
	use_group(w, p, h);
	OK(call_plain_create(w, h->c, &h->interrupt, &h->number));
	OK(call_plain_connect(w, h->c, NODE, h->number, &h->link));
	h->vector = SIO_VECTOR_ANY;
	OK(call_vector(w, h->c, h->b.handle, &h->vector, h->link));
	if (flags) /* the vector does not need it any more */
		return;
	OK(call_handle(w, h->c, SIO_MSG_DINT_DISCONNECT, h->link, 0));
	h->link = 0;
}

/* A segment of @b, who releases it while @c has it. */
static void given(struct world *w, struct programs *p)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(8)};
	const struct world_message *m;

	OK(call_seg_create(w, p->b.c, 8, 4096, 0, &p->release_it, NULL));
	OK(call_handle(w, p->b.c, SIO_MSG_SEG_SHARE, p->release_it, 0));
	m = world_call(w, p->c.c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	OK(m ? (int)m->error : -1);
	p->given = sio_from_le32(((const struct sio_rep_seg_attach *)m->data)->handle);
	OK(call_seg_remove(w, p->b.c, p->release_it));
}

/* A segment of @a, who removes it while @b has it mapped. */
static void kept(struct world *w, struct programs *p)
{
	uint32_t segment;

	OK(call_seg_export(w, p->a.c, 9, 4096, &segment));
	OK(call_seg_connect(w, p->b.c, NODE, 9, &p->kept));
	OK(call_seg_map(w, p->b.c, p->kept, 0, 4096, &p->kept_map));
	OK(call_seg_remove(w, p->a.c, segment));
}

static void tie_together(struct world *w, struct programs *p)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	const struct world_message *m;
	uint32_t node;

	OK(call_dint_connect(w, p->c.c, NODE, p->data_number, &p->data_link));
	OK(call_plain_connect(w, p->c.c, NODE, SHARED_NUMBER, &p->shared_link));
	OK(call_dev_seg_create(w, p->b.c, p->b.b.handle, 1, 4096, SCI_MEMTYPE_SHARED,
			       SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE, 0));
	OK(call_dev_seg_connect(w, p->c.c, p->c.b.handle, 1, SCI_MEMTYPE_SHARED, &p->c.dev_segment,
				&node));
	OK(call_hold(w, p->b.c, p->b.b.handle, p->c.b.id, p->c.ioaddr, 4096, &p->b.hold));
	given(w, p);
	kept(w, p);
	m = world_call(w, p->c.c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	OK(m ? (int)m->error : -1);
	p->attached = sio_from_le32(((const struct sio_rep_seg_attach *)m->data)->handle);
}

void make_all(struct world *w, struct programs *p)
{
	export_things(w, p);
	use_device(w, p, &p->b, SCI_FLAG_EXCLUSIVE);
	use_device(w, p, &p->c, 0);
	tie_together(w, p);
}

/* What was made is used and given back: each of these fails if the daemon does not know it. */
static void leave_device(struct world *w, struct programs *p, struct handles *h)
{
	OK(call_unvector(w, h->c, h->b.handle, h->vector));
	if (h->link)
		OK(call_handle(w, h->c, SIO_MSG_DINT_DISCONNECT, h->link, 0));
	OK(call_handle(w, h->c, SIO_MSG_DINT_REMOVE, h->interrupt, 0));
	OK(call_queue_detach(w, h->c, h->queue, h->range[0]));
	OK(call_queue_detach(w, h->c, h->queue, h->range[2]));
	OK(call_handle(w, h->c, SIO_MSG_DMA_UNMAP, h->group_dma, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_UNMAP, h->group_map, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_DISCONNECT, h->group, 0));
	OK(call_handle(w, h->c, SIO_MSG_QUEUE_REMOVE, h->queue, 0));
	OK(call_handle(w, h->c, SIO_MSG_DMA_UNMAP, h->remote_dma, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_UNMAP, h->map, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_DISCONNECT, h->connection, 0));
	OK(call_handle(w, h->c, SIO_MSG_DMA_UNMAP, h->dma, 0));
	OK(call_seg_remove(w, h->c, h->segment));
	OK(call_handle(w, h->c, SIO_MSG_SEG_UNMAP, h->bar_map, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_DISCONNECT, h->bar, 0));
	OK(call_handle(w, h->c, SIO_MSG_DEV_RETURN, h->b.handle, 0));
}

void give_all_back(struct world *w, struct programs *p)
{
	OK(call_unhold(w, p->b.c, p->b.b.handle, p->b.hold));
	OK(call_handle(w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.dev_segment, 0));
	OK(call_handle(w, p->b.c, SIO_MSG_SEG_UNMAP, p->kept_map, 0));
	OK(call_handle(w, p->b.c, SIO_MSG_SEG_DISCONNECT, p->kept, 0));
	OK(call_handle(w, p->c.c, SIO_MSG_DINT_DISCONNECT, p->data_link, 0));
	OK(call_handle(w, p->c.c, SIO_MSG_DINT_DISCONNECT, p->shared_link, 0));
	leave_device(w, p, &p->c);
	leave_device(w, p, &p->b);
	OK(call_handle(w, p->c.c, SIO_MSG_SEG_REMOVE, p->attached, 0));
	OK(call_handle(w, p->c.c, SIO_MSG_SEG_REMOVE, p->given, 0));
	OK(call_seg_adapter(w, p->a.c, SIO_MSG_SEG_UNAVAILABLE, p->member, 0, 0));
	OK(call_seg_remove(w, p->a.c, p->member));
	OK(call_seg_remove(w, p->a.c, p->a.segment));
	OK(call_seg_remove(w, p->a.c, p->empty));
	OK(call_handle(w, p->a.c, SIO_MSG_DINT_REMOVE, p->data, 0));
	OK(call_handle(w, p->a.c, SIO_MSG_DINT_REMOVE, p->shared[0], 0));
	OK(call_handle(w, p->b.c, SIO_MSG_DINT_REMOVE, p->shared[1], 0));
}

/* ---- what there is ---- */

void take_picture(struct world *w, char *text)
{
	const struct smartiod *d = w->host[0].daemon;
	struct smartiod_tree_node *n;
	size_t at = 0;
	uint64_t key;

#define PUT(...) at += (size_t)snprintf(text + at, PICTURE - at, __VA_ARGS__)
	for (uint64_t id = 1; id <= w->next_id; id++)
		for (const struct world_res *r = w->res; r; r = r->next)
			if (r->id == id)
				PUT("%u %llu of %llu\n", r->kind, (unsigned long long)id,
				    (unsigned long long)r->owner);
	for (key = 0; (n = smartiod_tree_after(&d->segment_ids, key)); key = n->key) {
		const struct smartiod_segment *s = SMARTIOD_OF(n, struct smartiod_segment, by_id);

		PUT("segment %u: %u refs, %u dma, prepared %u, available %u, memory %llu\n", s->id,
		    s->n_refs, s->dma, s->prepared, s->available, (unsigned long long)s->mem);
		if (!s->maker_released) /* else nobody is there who knows it */
			PUT(" memory of kind %u\n", s->memory);
	}
	for (key = 0; (n = smartiod_tree_after(&d->dint_numbers, key)); key = n->key) {
		const struct smartiod_dint *i =
			SMARTIOD_OF(n, struct smartiod_dint_number, node)->dint;

		PUT("interrupt %u: %u rings, hub %d, irq %llu\n", i->number, i->n_rings, i->is_hub,
		    (unsigned long long)i->irq);
	}
	for (struct smartiod_loan *l = smartiod_loan_after(w->host[0].daemon, 0); l;
	     l = smartiod_loan_after(w->host[0].daemon, l->id)) {
		const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);

		PUT("loan %llu: ready %d, exclusive %d, holder %d\n", (unsigned long long)l->id,
		    l->state == SMARTIOD_LOAN_LIVE, b->exclusive,
		    l->device->ledger.holder == l->id);
		for (const struct smartiod_view *v = l->views; v; v = v->next)
			PUT(" view %llu: access %u, %u users\n", (unsigned long long)v->id,
			    v->access, v->users);
	}
	for (key = 0; (n = smartiod_tree_after(&d->dmas, key)); key = n->key) {
		const struct smartiod_dma *m = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		PUT("dma %llu: %u holds, segment %u, group %llu, window %d\n",
		    (unsigned long long)key, smartiod_hold_count(m),
		    m->segment ? m->segment->id : 0, (unsigned long long)m->group, m->window);
	}
	for (unsigned i = 0; i < SMARTIOD_GROUPS; i++)
		if (d->member[i])
			PUT("group %u: memory %llu, published %u\n", i,
			    (unsigned long long)d->member[i]->mem, d->member[i]->published);
	PUT("%u connections, %u links, %u rings, %u sessions\n", d->connections.count,
	    d->dint_links.count, d->rings.count, d->sessions.count);
	assert_true(at < PICTURE);
#undef PUT
}

/* ---- fixture ---- */

void begin(struct world *w, struct fake_device *fake)
{
	w->real = true;
	fake_device_add(w, fake);
	fake->cmb = 4 * SIO_PAGE_SIZE;
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
}

int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	*state = f;
	f->w = world_new(1, 0);
	begin(f->w, &f->fake);
	start_programs(f->w, &f->p);
	return 0;
}

void check_all_gone(struct world *w)
{
	library_end(w);
	world_pass(w, SMARTIOD_GRACE_NS);
	call_last_reset(w, FDID);
	assert_nothing_left(w);
}

int teardown(void **state)
{
	struct fixture *f = *state;

	check_all_gone(f->w);
	assert_int_equal(f->fake.bad, 0);
	world_free(f->w);
	free(f);
	return 0;
}

void restart(struct world *w)
{
	world_restart(w, 0);
	world_run(w);
	assert_true(w->host[0].ready);
}

/* ---- what a program may say ---- */

struct sio_msg_restore entry_of(struct world_client *c, uint32_t type)
{
	struct sio_msg_restore m = {.type = 0};
	uint64_t at = 0;

	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++, at = 0)
		while (library_next(c, step, &at, &m))
			if (sio_from_le32(m.type) == type)
				return m;
	fail_msg("it has nothing of type %u", type);
	return m;
}

unsigned n_told(struct world_client *c, uint32_t reason)
{
	const struct sio_evm_segment *evm;
	unsigned n = 0;

	for (unsigned i = 0; (evm = world_event(c, SIO_EVM_SEGMENT_LOCAL, i)); i++)
		if (sio_from_le32(evm->reason) == reason)
			n += sio_from_le32(evm->count) ? sio_from_le32(evm->count) : 1;
	return n;
}

unsigned resets_told(const struct fixture *f, struct world_client *c)
{
	const struct sio_evm_device *e;
	unsigned n = 0;

	for (unsigned i = 0; (e = call_device_event(c, i)); i++) {
		if (sio_from_le32(e->event) != SIO_DEVICE_EV_RESET)
			continue;
		assert_int_equal(sio_from_le32(e->generation),
				 smartiod_generation(f->fake.generation));
		n++;
	}
	return n;
}

void forge(struct world *w, const struct world_client *c, struct sio_msg_restore *m, uint32_t type,
	   uint64_t number)
{
	const struct smartiod_session *s = smartiod_session_find(w->host[0].daemon, c->number);

	assert_non_null(s);
	m->seal = sio_to_le64(
		smartiod_seal(s, type, sio_from_le32(m->handle), sio_from_le64(m->key), number, 0));
}
