/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon of a real host that is killed and started again, and libraries that come back to it: all is
 * as it was, no call fails, and who lies gets nothing. The library's half is its own journal.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "library.h"
#include "smartiod/restore.h"
#include "wire/check.h"

#define FDID 0x401
#define NODE 4
#define SHARED_NUMBER 7

/* ---- programs at work ---- */

/* Handles of one program: whatever it has of each. */
struct handles {
	struct world_client *c;
	struct call_borrow b;
	uint32_t bar, bar_map, access[4], mirror, dma, segment, connection, map, remote_dma;
	uint32_t interrupt, number, link, vector, dev_segment;
	uint64_t ioaddr, remote_ioaddr, hold;
};

/* @b manages the device, @c uses it; @a has what both connect to. */
struct programs {
	struct handles a, b, c;
	uint32_t data, data_number, data_link, shared[2], shared_link, attached, empty;
	unsigned ok; /* calls that succeeded */
};

#define OK(call)                                                                                   \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_)                                                                           \
			fail_msg("%s: %d", #call, rc_);                                            \
		p->ok++;                                                                           \
	} while (0)

static void start_programs(struct world *w, struct programs *p)
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
	OK(call_seg_create(w, a, 6, 4096, SCI_FLAG_EMPTY, &p->empty, NULL));
	OK(call_handle(w, a, SIO_MSG_SEG_FILL, p->empty, 0));
	OK(call_dint_create(w, a, 3, SCI_FLAG_FIXED_INTNO, &p->data, &p->data_number));
	OK(call_dint_create(w, a, SHARED_NUMBER,
			    SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN,
			    &p->shared[0], &p->a.number));
	OK(call_dint_create(w, p->b.c, SHARED_NUMBER,
			    SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN,
			    &p->shared[1], &p->a.number));
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
	OK(call_plain_create(w, h->c, &h->interrupt, &h->number));
	OK(call_plain_connect(w, h->c, NODE, h->number, &h->link));
	h->vector = SIO_VECTOR_ANY;
	OK(call_vector(w, h->c, h->b.handle, &h->vector, h->link));
	if (flags) /* the vector does not need it any more */
		return;
	OK(call_handle(w, h->c, SIO_MSG_DINT_DISCONNECT, h->link, 0));
	h->link = 0;
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
	m = world_call(w, p->c.c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	OK(m ? (int)m->error : -1);
	p->attached = sio_from_le32(((const struct sio_rep_seg_attach *)m->data)->handle);
}

static void make_all(struct world *w, struct programs *p)
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
	OK(call_handle(w, h->c, SIO_MSG_DMA_UNMAP, h->remote_dma, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_UNMAP, h->map, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_DISCONNECT, h->connection, 0));
	OK(call_handle(w, h->c, SIO_MSG_DMA_UNMAP, h->dma, 0));
	OK(call_seg_remove(w, h->c, h->segment));
	OK(call_handle(w, h->c, SIO_MSG_SEG_UNMAP, h->bar_map, 0));
	OK(call_handle(w, h->c, SIO_MSG_SEG_DISCONNECT, h->bar, 0));
	OK(call_handle(w, h->c, SIO_MSG_DEV_RETURN, h->b.handle, 0));
}

static void give_all_back(struct world *w, struct programs *p)
{
	OK(call_unhold(w, p->b.c, p->b.b.handle, p->b.hold));
	OK(call_handle(w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.dev_segment, 0));
	OK(call_handle(w, p->c.c, SIO_MSG_DINT_DISCONNECT, p->data_link, 0));
	OK(call_handle(w, p->c.c, SIO_MSG_DINT_DISCONNECT, p->shared_link, 0));
	leave_device(w, p, &p->c);
	leave_device(w, p, &p->b);
	OK(call_handle(w, p->c.c, SIO_MSG_SEG_REMOVE, p->attached, 0));
	OK(call_seg_remove(w, p->a.c, p->a.segment));
	OK(call_seg_remove(w, p->a.c, p->empty));
	OK(call_handle(w, p->a.c, SIO_MSG_DINT_REMOVE, p->data, 0));
	OK(call_handle(w, p->a.c, SIO_MSG_DINT_REMOVE, p->shared[0], 0));
	OK(call_handle(w, p->b.c, SIO_MSG_DINT_REMOVE, p->shared[1], 0));
}

/* ---- what there is ---- */

#define PICTURE 16384

/* The port's things, then the daemon's by what they are, not by its own numbers. */
static void take_picture(struct world *w, char *text)
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
	}
	for (key = 0; (n = smartiod_tree_after(&d->dint_numbers, key)); key = n->key) {
		const struct smartiod_dint *i = SMARTIOD_OF(n, struct smartiod_dint, by_number);

		PUT("interrupt %u: %u rings, hub %d, irq %llu\n", i->number, i->n_rings, i->is_hub,
		    (unsigned long long)i->irq);
	}
	for (struct smartiod_loan *l = smartiod_loan_after(w->host[0].daemon, 0); l;
	     l = smartiod_loan_after(w->host[0].daemon, l->id)) {
		const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);

		PUT("loan %llu: ready %d, exclusive %d, holder %d\n", (unsigned long long)l->id,
		    l->ready, b->exclusive, l->device->ledger.holder == l->id);
		for (const struct smartiod_view *v = l->views; v; v = v->next)
			PUT(" view %llu: access %u, %u users\n", (unsigned long long)v->id,
			    v->access, v->users);
	}
	for (key = 0; (n = smartiod_tree_after(&smartiod_devices((void *)d)->dmas, key));
	     key = n->key) {
		const struct smartiod_dma *m = SMARTIOD_OF(n, struct smartiod_dma, by_id);

		PUT("dma %llu: %u holds, segment %u\n", (unsigned long long)key, m->holds,
		    m->segment->id);
	}
	PUT("%u connections, %u links, %u rings, %u sessions\n", d->connections.count,
	    d->dint_links.count, d->rings.count, d->sessions.count);
	assert_true(at < PICTURE);
#undef PUT
}

/* ---- fixture ---- */

struct fixture {
	struct fake_device fake;
	struct world *w;
	struct programs p;
};

static void pump(struct world *w, void *arg)
{
	(void)arg;
	library_pump(w);
}

static void begin(struct world *w, struct fake_device *fake)
{
	w->real = true;
	fake_device_add(w, fake);
	world_start(w);
	library_begin(w);
	w->before_step = pump;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	*state = f;
	f->w = world_new(1, 0);
	begin(f->w, &f->fake);
	start_programs(f->w, &f->p);
	return 0;
}

/* All are killed; what they left goes with a reset. */
static void check_all_gone(struct world *w)
{
	struct world_client *c;
	struct call_borrow b;

	library_end();
	w->before_step = NULL;
	w->on_request = NULL;
	w->on_message = NULL;
	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
	world_pass(w, SMARTIOD_GRACE_NS);
	c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, c, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RESET, b.handle, 0), 0);
	world_kill(w, c);
	world_run(w);
	assert_nothing_left(w);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	check_all_gone(f->w);
	assert_int_equal(f->fake.bad, 0);
	world_free(f->w);
	free(f);
	return 0;
}

static void restart(struct world *w)
{
	world_restart(w, 0);
	world_run(w);
	assert_true(w->host[0].ready);
}

/* ---- tests ---- */

static void all_is_as_it_was(void **state)
{
	struct fixture *f = *state;
	char *before = malloc(PICTURE), *after = malloc(PICTURE);
	struct programs *p = &f->p;
	unsigned n;

	assert_true(before && after);
	make_all(f->w, p);
	take_picture(f->w, before);
	n = f->p.c.c->n_messages;
	for (unsigned i = 0; i < 3; i++) {
		restart(f->w);
		assert_true(library_settled(f->w));
		take_picture(f->w, after);
		assert_string_equal(before, after);
	}
	assert_int_equal(library_lost(), 0);
	for (; n < p->c.c->n_messages; n++) /* nothing happened that would have to be told */
		assert_int_not_equal(p->c.c->message[n]->id, 0);
	give_all_back(f->w, p);
	free(before);
	free(after);
}

/* Calls of new programs, too, wait until all are back. */
static void others_are_served_when_all_are_back(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_hello hello = {.version_min = sio_to_le32(SIO_CLIENT_VERSION),
				      .version_max = sio_to_le32(SIO_CLIENT_VERSION),
				      .kind = sio_to_le32(SIO_CLIENT_TOOL)};
	struct programs *p = &f->p;
	struct world_client *c;
	uint32_t id;

	make_all(f->w, p);
	f->w->before_step = NULL; /* nobody comes back yet */
	restart(f->w);
	c = world_client(f->w, 0, 0);
	id = world_send(f->w, c, SIO_MSG_HELLO, &hello, sizeof(hello));
	world_run(f->w);
	assert_null(world_reply(c, id));
	f->w->before_step = pump;
	world_run(f->w);
	assert_non_null(world_reply(c, id));
	assert_true(library_settled(f->w));
	give_all_back(f->w, p);
}

/* It dies while there is no daemon: the others hear of it from the next one. */
static void death_without_a_daemon_is_told(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	const struct sio_evm_segment *seg;
	unsigned n = 0;

	make_all(f->w, p);
	world_stop(f->w, 0);
	library_gone(p->c.c);
	world_kill(f->w, p->c.c);
	restart(f->w);
	/* The exporter: two had connected, one is gone for good. */
	while ((seg = world_event(p->a.c, SIO_EVM_SEGMENT_LOCAL, n)))
		n++;
	assert_int_equal(n, 3);
	seg = world_event(p->a.c, SIO_EVM_SEGMENT_LOCAL, 2);
	assert_int_equal(sio_from_le32(seg->reason), SCI_CB_LOST);
	assert_non_null(world_event(p->a.c, SIO_EVM_DINT_RING_END, 0));
	/* The manager settles it. */
	assert_int_equal(sio_from_le64(call_device_event(p->b.c, 0)->borrower), p->c.b.id);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, p->c.b.id));
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	OK(call_seg_remove(f->w, p->a.c, p->empty));
}

/* The exporter dies: connections, links and the device's view of its memory are lost. */
static void what_the_dead_had_is_lost(void **state)
{
	struct fixture *f = *state;
	const struct sio_evm_segment *seg;
	struct programs *p = &f->p;

	make_all(f->w, p);
	world_stop(f->w, 0);
	library_gone(p->a.c);
	world_kill(f->w, p->a.c);
	restart(f->w);
	seg = world_event(p->c.c, SIO_EVM_SEGMENT_REMOTE, 0);
	assert_non_null(seg);
	assert_int_equal(sio_from_le32(seg->handle), p->c.connection);
	assert_int_equal(sio_from_le32(seg->lost), 1);
	assert_non_null(world_event(p->c.c, SIO_EVM_DINT_LOST, 0));
	assert_non_null(world_event(p->c.c, SIO_EVM_SEGMENT_LOCAL, 0)); /* it was attached */
	/* The rest goes on. */
	OK(call_unvector(f->w, p->c.c, p->c.b.handle, p->c.vector));
	OK(call_handle(f->w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0) == EBUSY ? 0 : -1);
	OK(call_unhold(f->w, p->b.c, p->b.b.handle, p->b.hold));
	OK(call_handle(f->w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0));
}

/* Whoever stays away keeps his device, and keeps nobody from going on. */
static void who_is_late_waits_for_nobody(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct handles late;
	struct world_client *c;
	uint32_t handle;

	make_all(f->w, p);
	late = p->c;
	f->w->before_step = NULL;
	library_gone(p->c.c); /* stopped, say; its owner lives */
	f->w->before_step = pump;
	restart(f->w);
	assert_false(library_settled(f->w));
	world_pass(f->w, SMARTIOD_GRACE_NS);
	assert_true(library_settled(f->w));
	c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	OK(call_seg_export(f->w, c, 77, 4096, &handle));
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	world_kill(f->w, late.c);
	world_run(f->w);
	assert_int_equal(sio_from_le64(call_device_event(p->b.c, 0)->borrower), late.b.id);
}

/* ---- liars ---- */

static uint32_t say_hello(struct world *w, struct world_client *c, uint64_t owner, uint32_t kind)
{
	struct sio_msg_hello m = {.version_min = sio_to_le32(SIO_CLIENT_VERSION),
				  .version_max = sio_to_le32(SIO_CLIENT_VERSION),
				  .kind = sio_to_le32(kind)};
	const struct world_message *rep;
	uint32_t id;

	w->shown = owner;
	id = world_send_with(w, c, SIO_MSG_HELLO, &m, sizeof(m), 1);
	world_run(w);
	rep = world_reply(c, id);
	return rep ? rep->error : ~0u;
}

static void owners_are_proved(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world_client *c = world_client(f->w, 0, 0);

	make_all(f->w, p);
	/* To the daemon that made it: nobody of before is awaited. */
	assert_int_equal(say_hello(f->w, c, p->a.c->owner, SIO_CLIENT_LIBRARY), ENOENT);
	f->w->before_step = NULL;
	restart(f->w);
	c = world_client(f->w, 0, 0);
	assert_int_equal(say_hello(f->w, c, p->a.c->owner, SIO_CLIENT_TOOL), EINVAL);
	assert_int_equal(say_hello(f->w, c, 999999, SIO_CLIENT_LIBRARY), ENOENT);
	/* A borrow's owner is nobody's session. */
	assert_int_equal(say_hello(f->w, c, smartiod_loan_after(f->w->host[0].daemon, 0)->owner,
				   SIO_CLIENT_LIBRARY),
			 ENOENT);
	assert_int_equal(say_hello(f->w, c, p->a.c->owner, SIO_CLIENT_LIBRARY), 0);
	c = world_client(f->w, 0, 0);
	assert_int_equal(say_hello(f->w, c, p->a.c->owner, SIO_CLIENT_LIBRARY), EBUSY);
}

static int say(struct world *w, struct world_client *c, const struct sio_msg_restore *m)
{
	struct sio_msg_restore copy = *m;
	const struct world_message *rep = world_call(w, c, SIO_MSG_RESTORE, &copy, sizeof(copy));

	return rep ? (int)rep->error : -1;
}

/* What one had, said by another; twice; with other numbers: nothing comes of it. */
static void lies_bring_nothing(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	struct world_client *thief;
	struct sio_msg_restore m;
	unsigned n = 0, resources;
	uint64_t at;

	make_all(w, p);
	thief = world_client(w, 0, SIO_CLIENT_LIBRARY);
	world_stop(w, 0);
	library_gone(thief);
	w->before_step = NULL;
	restart(w);
	world_reconnect(w, thief);
	assert_int_equal(say_hello(w, thief, thief->owner, SIO_CLIENT_LIBRARY), 0);
	resources = world_resources(w, 0);
	for (unsigned step = 1; step <= 2; step++) {
		struct world_client *const victims[] = {p->a.c, p->b.c, p->c.c};

		for (unsigned i = 0; i < 3; i++)
			for (at = 0; library_next(victims[i], step, &at, &m); n++) {
				assert_int_equal(say(w, thief, &m), step == 1 ? ENOENT : EINVAL);
				m.key = sio_to_le64(sio_from_le64(m.key) + 1);
				assert_int_not_equal(say(w, thief, &m), 0);
				m.type = sio_to_le32(SIO_MSG_SEG_WATCH);
				assert_int_equal(say(w, thief, &m), EINVAL);
			}
	}
	assert_true(n > 30);
	assert_int_equal(world_resources(w, 0), resources);
	/* Then who had them comes, and finds them. */
	w->before_step = pump;
	world_kill(w, thief);
	world_run(w);
	assert_true(library_settled(w));
	assert_int_equal(library_lost(), 0);
	give_all_back(w, p);
}

/* Whatever it says, in whatever order: it hurts itself at most. */
static void random_words_do_no_harm(void **state)
{
	static const uint32_t types[] = {
		SIO_MSG_SEG_CREATE,  SIO_MSG_DINT_CREATE, SIO_EVM_DINT_RING,
		SIO_MSG_DEV_BORROW,  SIO_MSG_SEG_ATTACH,  SIO_MSG_DEV_SEG_CREATE,
		SIO_MSG_SEG_CONNECT, SIO_MSG_SEG_MAP,	  SIO_MSG_DEV_SEG_CONNECT,
		SIO_MSG_DMA_MAP,     SIO_MSG_DEV_HOLD,	  SIO_MSG_DINT_CONNECT,
		SIO_MSG_DEV_VECTOR,  SIO_MSG_HELLO};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	struct sio_msg_restore m;
	struct sio_msg *inner = (struct sio_msg *)m.request;
	uint64_t x = 99;

	make_all(w, p);
	world_stop(w, 0);
	w->before_step = NULL;
	restart(w);
	library_gone(p->c.c);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	w->before_step = pump; /* the others first: numbers of segments are theirs who come first */
	world_run(w);
	for (unsigned i = 0; i < 40000; i++) {
		struct sio_msg_restore_step step = {.step = sio_to_le32(1)};
		unsigned char *bytes = (unsigned char *)&m;
		uint32_t type = types[i % (sizeof(types) / sizeof(types[0]))];

		for (size_t j = sizeof(m.h); j < sizeof(m); j++) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			bytes[j] = j % 4 && x >> 62 ? 0 : (unsigned char)(x >> 33) % 64;
		}
		memset(&m.h, 0, sizeof(m.h));
		m.type = sio_to_le32(type);
		if (x >> 63) /* something that there is */
			m.key = sio_to_le64(x % (w->next_id + 2));
		*inner = (struct sio_msg){.type = m.type, .id = sio_to_le32(1)};
		inner->size = sio_to_le32((uint32_t)sio_client_request_size(type));
		world_call(w, p->c.c, SIO_MSG_RESTORE, &m, sizeof(m));
		world_forget(p->c.c);
		if (i == 20000)
			world_send(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
		assert_false(p->c.c->cut);
	}
	/* What the others had is untouched. */
	assert_true(w->host[0].ready);
	world_kill(w, p->c.c);
	world_run(w);
	assert_true(library_settled(w));
	OK(call_seg_remove(w, p->a.c, p->empty));
	OK(call_handle(w, p->b.c, SIO_MSG_DMA_UNMAP, p->b.dma, 0));
}

/* A connection to what was never available: the memory of another program. */
static void what_was_never_offered_stays_private(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	struct sio_msg_restore m;
	uint64_t at = 0, mem = 0;
	uint32_t seg;

	OK(call_seg_export(w, p->a.c, 5, 4096, &p->a.segment));
	OK(call_seg_connect(w, p->c.c, NODE, 5, &p->c.connection));
	OK(call_seg_create(w, p->b.c, 9, 4096, 0, &seg, NULL));
	while (library_next(p->b.c, 1, &at, &m))
		mem = sio_from_le64(m.key);
	at = 0;
	assert_true(library_next(p->c.c, 2, &at, &m));
	library_gone(p->c.c);
	restart(w);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	{
		struct sio_msg_restore_step step = {.step = sio_to_le32(1)};

		assert_int_equal(
			world_call(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step))->error, 0);
	}
	m.key = sio_to_le64(mem);
	assert_int_equal(say(w, p->c.c, &m), ENOENT);
}

/* Nor is it shared by who says so first, while its maker is late and has not yet said what it is. */
static void what_is_not_yet_told_is_not_shared(void **state)
{
	struct sio_msg_seg_attach attach = {.h = {.size = sio_to_le32(sizeof(attach)),
						  .type = sio_to_le32(SIO_MSG_SEG_ATTACH),
						  .id = sio_to_le32(1)},
					    .segment_id = sio_to_le32(77)};
	struct sio_msg_restore_step step = {.step = sio_to_le32(1)};
	struct sio_msg_restore m, lie = {.type = sio_to_le32(SIO_MSG_SEG_ATTACH),
					 .handle = sio_to_le32(1000),
					 .number = sio_to_le32(77),
					 .prepared = sio_to_le32(1),
					 .available = sio_to_le32(1)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	uint64_t at = 0;
	uint32_t seg;

	OK(call_seg_create(w, p->b.c, 9, 4096, 0, &seg, NULL));
	assert_true(library_next(p->b.c, 1, &at, &m));
	library_gone(p->b.c);
	library_gone(p->c.c);
	restart(w);
	world_pass(w, SMARTIOD_GRACE_NS);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	assert_int_equal(world_call(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step))->error,
			 0);
	world_reconnect(w, p->b.c);
	assert_int_equal(say_hello(w, p->b.c, p->b.c->owner, SIO_CLIENT_LIBRARY), 0);
	lie.key = m.key;
	memcpy(lie.request, &attach, sizeof(attach));
	assert_int_equal(say(w, p->c.c, &lie), ENOENT);
	assert_int_equal(say(w, p->b.c, &m), 0);
}

/* ---- at any moment ---- */

struct moment {
	uint64_t left; /* events until it comes */
	uint64_t every;
	unsigned times;
};

static void kill_and_pump(struct world *w, void *arg)
{
	struct moment *m = arg;

	if (m->left && --m->left == 0) {
		world_restart(w, 0);
		if (m->times && --m->times)
			m->left = m->every;
	}
	library_pump(w);
}

static bool killed_at(uint64_t n, uint64_t every, unsigned times, uint64_t seed)
{
	struct moment m = {.left = n, .every = every, .times = times};
	struct world *w = world_new(1, seed);
	struct fake_device fake;
	struct programs p;
	bool happened;

	begin(w, &fake);
	start_programs(w, &p);
	w->before_arg = &m;
	w->before_step = kill_and_pump;
	make_all(w, &p);
	give_all_back(w, &p);
	happened = m.left == 0;
	m.left = 0;
	world_run(w);
	assert_true(w->host[0].ready && library_settled(w));
	check_all_gone(w);
	assert_int_equal(fake.bad, 0);
	world_free(w);
	return happened;
}

/* Each call is answered as if nothing had been. */
static void killed_at_every_event(void **state)
{
	uint64_t n;

	(void)state;
	for (n = 1; killed_at(n, 0, 1, 0); n++)
		;
	assert_true(n > 60); /* the flow is as long as that */
	for (n = 1; killed_at(n, 0, 1, 11); n++)
		;
	for (n = 1; killed_at(n, 17, 2, 0); n++) /* and while it adopts */
		;
	for (n = 1; killed_at(n, 61, 2, 7); n += 3) /* and while they say what they had */
		;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_is_as_it_was),
		TEST(others_are_served_when_all_are_back),
		TEST(death_without_a_daemon_is_told),
		TEST(what_the_dead_had_is_lost),
		TEST(who_is_late_waits_for_nobody),
		TEST(owners_are_proved),
		TEST(lies_bring_nothing),
		TEST(random_words_do_no_harm),
		TEST(what_was_never_offered_stays_private),
		TEST(what_is_not_yet_told_is_not_shared),
		cmocka_unit_test(killed_at_every_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
