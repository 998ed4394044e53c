/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that lie to the next smartiod of what they had. */
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

/* ---- liars ---- */

static void owners_are_proved(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world_client *c = world_client(f->w, 0, 0);

	make_all(f->w, p);
	/* To the daemon that made it: nobody of before is waited for. */
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

/* A reset that was none: only who says that it had heard of it is told what is true. */
static void a_reset_that_was_none_is_told_to_nobody(void **state)
{
	struct sio_msg_restore_step step = {.step = sio_to_le32(1)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore m;
	unsigned lies = 0;
	uint64_t at;

	make_all(f->w, p);
	world_stop(f->w, 0);
	f->w->before_step = NULL;
	restart(f->w);
	world_reconnect(f->w, p->c.c);
	assert_int_equal(say_hello(f->w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	for (at = 0; library_next(p->c.c, 1, &at, &m);) {
		if (sio_from_le32(m.type) == SIO_MSG_DEV_BORROW) {
			m.number = sio_to_le32(1000);
			lies++;
		}
		assert_int_equal(say(f->w, p->c.c, &m), 0);
	}
	assert_int_equal(lies, 1);
	world_send(f->w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
	f->w->before_step = library_pump;
	world_run(f->w);
	for (unsigned i = 2; i <= SIO_RESTORE_STEPS; i++) {
		step.step = sio_to_le32(i);
		world_send(f->w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
		world_run(f->w);
	}
	assert_int_equal(resets_told(f, p->b.c), 0);
	assert_int_equal(resets_told(f, p->c.c), 1);
}

/*
 * Says all that it had, step by step, but of its mappings for devices that they are of nothing, and
 * nothing of what @but made (0: all of it), nor of what DMA queues reach of that. After each step
 * @then is the world's before_step.
 */
static void say_no_mappings(struct fixture *f, struct world_client *c, uint32_t but,
			    void (*then)(struct world *w, void *arg))
{
	struct sio_msg_restore_step step = {0};
	struct sio_msg_restore m;

	world_reconnect(f->w, c);
	assert_int_equal(say_hello(f->w, c, c->owner, SIO_CLIENT_LIBRARY), 0);
	for (unsigned i = 1; i <= SIO_RESTORE_STEPS; i++) {
		for (uint64_t at = 0; library_next(c, i, &at, &m);) {
			bool lie = sio_from_le32(m.type) == SIO_MSG_DMA_MAP;

			if (sio_from_le32(m.type) == but ||
			    (but && sio_from_le32(m.type) == SIO_MSG_QUEUE_ATTACH)) /* of it */
				continue;
			if (lie)
				((struct sio_msg_dma_map *)(void *)m.request)->segment =
					sio_to_le32(0xffff);
			assert_int_equal(say(f->w, c, &m), lie ? ENOENT : 0);
		}
		step.step = sio_to_le32(i);
		world_send(f->w, c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
		f->w->before_step = then;
		world_run(f->w);
	}
}

/* All that keeps the device from being given back. */
static void leave_device(struct fixture *f)
{
	struct programs *p = &f->p;

	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.dev_segment, 0));
	OK(call_unvector(f->w, p->c.c, p->c.b.handle, p->c.vector));
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_UNMAP, p->c.bar_map, 0));
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.bar, 0));
	OK(call_handle(f->w, p->c.c, SIO_MSG_DEV_RETURN, p->c.b.handle, 0));
}

/*
 * The device reaches the memory all the same, so it stays, and in the tables, when its program
 * releases it: until the device has let go, too, and no longer.
 */
static void memory_stays_as_long_as_a_device_reaches_it(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint64_t mem;

	make_all(f->w, p);
	OK(call_unhold(f->w, p->b.c, p->b.b.handle, p->b.hold));
	mem = sio_from_le64(entry_of(p->c.c, SIO_MSG_SEG_CREATE).key);
	f->w->before_step = NULL;
	restart(f->w);
	say_no_mappings(f, p->c.c, 0, library_pump);
	assert_int_equal(call_handle(f->w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0), EBADF);
	OK(call_seg_remove(f->w, p->c.c, p->c.segment));
	assert_non_null(world_res_find(f->w, 0, SIO_KIND_MEM, mem));
	leave_device(f);
	assert_non_null(world_res_find(f->w, 0, SIO_KIND_MEM, mem));
	OK(call_settled(f->w, p->b.c, p->b.b.handle, p->c.b.id));
	assert_null(world_res_find(f->w, 0, SIO_KIND_MEM, mem));
}

/* One that ends, too. */
static struct smartiod_segment *of_memory(struct world *w, uint64_t mem)
{
	struct smartiod_segment *seg;
	struct smartiod_tree_node *n;

	for (uint64_t key = 0; (n = smartiod_tree_after(&w->host[0].daemon->segments, key));
	     key = n->key) {
		seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);
		if (seg->mem == mem)
			return seg;
	}
	return NULL;
}

/* As that, and its program says nothing of the memory either: the tables have it all the same. */
static void memory_that_nobody_tells_of_stays_as_long(void **state)
{
	struct fixture *f = *state;
	struct smartiod_segment *seg;
	struct programs *p = &f->p;
	uint64_t mem;

	make_all(f->w, p);
	OK(call_unhold(f->w, p->b.c, p->b.b.handle, p->b.hold));
	mem = sio_from_le64(entry_of(p->c.c, SIO_MSG_SEG_CREATE).key);
	f->w->before_step = NULL;
	restart(f->w);
	f->w->late = SIO_OP_DMAUNMAP;
	say_no_mappings(f, p->c.c, SIO_MSG_SEG_CREATE, library_pump);
	seg = of_memory(f->w, mem);
	assert_non_null(seg);
	assert_int_equal(seg->owner, p->c.c->owner);
	f->w->late = 0;
	world_run(f->w);
	leave_device(f);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, p->c.b.id));
	assert_null(world_res_find(f->w, 0, SIO_KIND_MEM, mem));
}

/* @h borrows the device, and has mapped memory for it; @flags: and is its manager. */
static void use_memory(struct fixture *f, struct handles *h, uint32_t flags)
{
	struct programs *p = &f->p;

	OK(call_borrow(f->w, h->c, FDID, flags, &h->b));
	if (flags) {
		OK(call_dev_seg_connect(f->w, h->c, h->b.handle, 0, SCI_MEMTYPE_BAR, &h->bar,
					NULL));
		OK(call_bar_map(f->w, h->c, h->bar, 0, &h->bar_map, h->access));
		OK(call_handle(f->w, h->c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, h->b.handle, 0));
	}
	OK(call_seg_create(f->w, h->c, 100 + flags, 65536, SCI_FLAG_AUTO_ID, &h->segment, NULL));
	OK(call_dma_map_at(f->w, h->c, h->b.handle, h->segment, 0, 0, 65536, &h->dma, &h->ioaddr));
}

/* The holder is late, and its hold is of a mapping that nobody told of: that is about to end. */
static void what_ends_is_not_held_again(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore_step step = {0};
	struct sio_msg_restore m;
	unsigned holds = 0;

	use_memory(f, &p->b, SCI_FLAG_EXCLUSIVE);
	use_memory(f, &p->c, 0);
	OK(call_hold(f->w, p->b.c, p->b.b.handle, p->c.b.id, p->c.ioaddr, 4096, &p->b.hold));
	f->w->before_step = NULL;
	restart(f->w);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	f->w->late = SIO_OP_DMAUNMAP;
	say_no_mappings(f, p->c.c, SIO_MSG_DMA_MAP, NULL);
	world_reconnect(f->w, p->b.c);
	assert_int_equal(say_hello(f->w, p->b.c, p->b.c->owner, SIO_CLIENT_LIBRARY), 0);
	for (uint32_t i = 1; i <= SIO_RESTORE_STEPS; i++) {
		for (uint64_t at = 0; library_next(p->b.c, i, &at, &m);) {
			bool hold = sio_from_le32(m.type) == SIO_MSG_DEV_HOLD;

			assert_int_equal(say(f->w, p->b.c, &m), hold ? ENOENT : 0);
			holds += hold;
		}
		step.step = sio_to_le32(i);
		world_send(f->w, p->b.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
		world_run(f->w);
	}
	assert_int_equal(holds, 1);
	f->w->late = 0;
	world_run(f->w);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 1); /* the holder's own */
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
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++) {
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
	w->before_step = library_pump;
	world_kill(w, thief);
	world_run(w);
	assert_true(library_settled(w));
	assert_int_equal(library_lost(), 0);
	give_all_back(w, p);
}

struct words {
	uint64_t x;
	struct sio_msg_restore own[64]; /* what it truly had */
	unsigned n_own;
};

static uint64_t next(struct words *r)
{
	r->x = r->x * 6364136223846793005ULL + 1442695040888963407ULL;
	return r->x >> 33;
}

/* Nothing but chance, with the number of something that there is. */
static void any_word(struct words *r, uint64_t numbers, struct sio_msg_restore *m)
{
	static const uint32_t types[] = {
		SIO_MSG_SEG_CREATE,  SIO_MSG_DINT_CREATE,  SIO_EVM_DINT_RING,
		SIO_MSG_DEV_BORROW,  SIO_MSG_SEG_ATTACH,   SIO_MSG_DEV_SEG_CREATE,
		SIO_MSG_SEG_CONNECT, SIO_MSG_SEG_MAP,	   SIO_MSG_DEV_SEG_CONNECT,
		SIO_MSG_DMA_MAP,     SIO_MSG_DEV_HOLD,	   SIO_MSG_DINT_CONNECT,
		SIO_MSG_DEV_VECTOR,  SIO_MSG_QUEUE_CREATE, SIO_MSG_QUEUE_ATTACH,
		SIO_MSG_HELLO};
	uint32_t type = types[next(r) % (sizeof(types) / sizeof(types[0]))];
	struct sio_msg *inner = (struct sio_msg *)m->request;
	unsigned char *bytes = (unsigned char *)m;

	for (size_t j = sizeof(m->h); j < sizeof(*m); j++)
		bytes[j] = j % 4 && next(r) % 4 ? 0 : (unsigned char)(next(r) % 64);
	m->type = sio_to_le32(type);
	if (next(r) % 2)
		m->key = sio_to_le64(next(r) % numbers);
	*inner = (struct sio_msg){.type = m->type, .id = sio_to_le32(1)};
	inner->size = sio_to_le32((uint32_t)sio_client_request_size(type));
}

/* Something true, once more, or with some bytes that are not. */
static void changed_word(struct words *r, struct sio_msg_restore *m)
{
	unsigned char *bytes = (unsigned char *)m;

	*m = r->own[next(r) % r->n_own];
	for (uint64_t n = next(r) % 3; n > 0; n--)
		bytes[sizeof(m->h) + next(r) % (sizeof(*m) - sizeof(m->h))] =
			(unsigned char)(next(r) % 64);
}

/* Whatever it says, in whatever order: it hurts itself at most. */
static void random_words_do_no_harm(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct words r = {.x = 99};
	struct world *w = f->w;
	struct sio_msg_restore m;
	uint64_t at;

	make_all(w, p);
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++)
		for (at = 0; library_next(p->c.c, step, &at, &r.own[r.n_own]); r.n_own++)
			assert_true(r.n_own < 63);
	world_stop(w, 0);
	w->before_step = NULL;
	restart(w);
	library_gone(p->c.c);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	w->before_step =
		library_pump; /* the others first: numbers of segments are theirs who come first */
	world_run(w);
	for (unsigned i = 0; i < 40000; i++) {
		struct sio_msg_restore_step step = {.step = sio_to_le32(1)};

		if (i % 2)
			any_word(&r, w->next_id + 2, &m);
		else
			changed_word(&r, &m);
		memset(&m.h, 0, sizeof(m.h));
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

/*
 * Whoever attached to what is filled cannot say after a restart that it made it, and was to fill
 * it.
 */
static void what_others_fill_is_theirs(void **state)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	struct sio_msg_handle fill = {.flags = sio_to_le32(SIO_MEMORY_PAGES)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	const struct world_message *r;
	struct sio_msg_restore lie;
	uint32_t handle, error;

	OK(call_seg_create(w, p->a.c, 1, 4096, 0, &handle, NULL));
	OK(call_seg_create(w, p->a.c, 5, 4096, SCI_FLAG_EMPTY, &p->empty, NULL));
	OK(call_handle(w, p->a.c, SIO_MSG_SEG_FILL, p->empty, SIO_MEMORY_PAGES));
	OK(call_handle(w, p->a.c, SIO_MSG_SEG_SHARE, p->empty, 0));
	OK(call_seg_create(w, p->c.c, 6, 4096, SCI_FLAG_EMPTY, &handle, NULL));
	lie = entry_of(p->c.c, SIO_MSG_SEG_CREATE);
	r = world_call(w, p->c.c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	fill.handle = ((const struct sio_rep_seg_attach *)r->data)->handle;
	r = world_call(w, p->c.c, SIO_MSG_SEG_FILL, &fill, sizeof(fill));
	error = r->error;
	if (error == 0) {
		const struct sio_rep_seg_create *has = (const void *)r->data;

		lie.handle = has->handle;
		lie.number = has->segment_id;
		lie.key = has->key;
		lie.extra = has->bytes;
		lie.seal = has->seal;
	}
	library_gone(p->c.c);
	w->before_step = NULL;
	restart(w);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	lie.number = sio_to_le32(5);
	assert_int_equal(say(w, p->c.c, &lie), ENOENT);
	assert_int_equal(error, EPERM);
}

/* An empty segment of long ago, whose number another program has by now, and says so later. */
static void numbers_are_theirs_who_have_memory(void **state)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	const struct world_message *r;
	struct sio_msg_restore lie;
	uint32_t handle, maker;

	OK(call_seg_create(w, p->c.c, 5, 4096, SCI_FLAG_EMPTY, &handle, NULL));
	lie = entry_of(p->c.c, SIO_MSG_SEG_CREATE);
	OK(call_seg_remove(w, p->c.c, handle));
	OK(call_seg_create(w, p->a.c, 5, 4096, 0, &maker, NULL));
	OK(call_handle(w, p->a.c, SIO_MSG_SEG_SHARE, maker, 0));
	r = world_call(w, p->b.c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	OK((int)r->error);
	handle = ((const struct sio_rep_seg_attach *)r->data)->handle;
	library_gone(p->c.c);
	for (unsigned round = 0; round < 2; round++) {
		w->before_step = NULL;
		restart(w);
		world_reconnect(w, p->c.c);
		world_forget(p->c.c);
		assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
		assert_int_equal(say(w, p->c.c, &lie), 0);
		w->before_step = library_pump;
		for (uint32_t i = 1; i <= SIO_RESTORE_STEPS; i++) {
			struct sio_msg_restore_step step = {.step = sio_to_le32(i)};

			world_send(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
			world_run(w);
		}
		assert_true(library_settled(w));
		assert_int_equal(n_told(p->c.c, SCI_CB_LOST), 1);
		assert_int_equal(n_told(p->a.c, SCI_CB_LOST) + n_told(p->b.c, SCI_CB_LOST), 0);
		if (round == 0) /* then it is said by who attached */
			OK(call_seg_remove(w, p->a.c, maker));
	}
	OK(call_seg_remove(w, p->b.c, handle));
	OK(call_seg_create(w, p->a.c, 5, 4096, 0, &maker, NULL));
}

/*
 * No seal has the flags: a segment that other hosts could connect to may be said to have been
 * private, or of the program's own file. It is that from then on, in all that follows.
 */
static void who_calls_it_private_has_a_private_one(void **state)
{
	const struct {
		uint32_t flag;
		int attach; /* what another program gets */
	} lies[] = {{0, 0}, {SCI_FLAG_PRIVATE, 0}, {SIO_SEG_IMPORT, EACCES}};
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	struct sio_msg_restore truth, lie;
	uint32_t handle, connection;

	OK(call_seg_export(w, p->c.c, 5, 4096, &handle));
	OK(call_handle(w, p->c.c, SIO_MSG_SEG_SHARE, handle, 0));
	truth = entry_of(p->c.c, SIO_MSG_SEG_CREATE);
	library_gone(p->c.c);
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct sio_msg_seg_create *r = (void *)lie.request;
		bool open = lies[i].flag == 0;

		lie = truth;
		r->flags = sio_to_le32(sio_from_le32(r->flags) | lies[i].flag);
		w->before_step = NULL;
		restart(w);
		world_reconnect(w, p->c.c);
		assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
		assert_int_equal(say(w, p->c.c, &lie), 0);
		w->before_step = library_pump;
		for (uint32_t k = 1; k <= SIO_RESTORE_STEPS; k++) {
			struct sio_msg_restore_step step = {.step = sio_to_le32(k)};

			world_send(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
			world_run(w);
		}
		assert_true(library_settled(w));
		assert_int_equal(call_seg_adapter(w, p->c.c, SIO_MSG_SEG_AVAILABLE, handle, 0, 0),
				 open ? 0 : EPERM);
		assert_int_equal(call_seg_connect(w, p->a.c, NODE, 5, &connection),
				 open ? 0 : ENOENT);
		assert_int_equal(
			world_call(w, p->b.c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach))->error,
			lies[i].attach);
		if (open)
			OK(call_handle(w, p->a.c, SIO_MSG_SEG_DISCONNECT, connection, 0));
	}
}

/*
 * Two programs borrow a device: after a restart neither can claim what the other has mapped for it.
 */
static void mappings_are_theirs_whose_borrow_they_are_of(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct handles *both[] = {&p->b, &p->c};
	struct sio_msg_restore said[16], lie, truth = {.key = 0};
	unsigned step_of[16], n = 0;
	struct world *w = f->w;
	uint64_t at = 0;

	for (unsigned i = 0; i < 2; i++) {
		OK(call_borrow(w, both[i]->c, FDID, 0, &both[i]->b));
		OK(call_seg_create(w, both[i]->c, 1 + i, 4096, 0, &both[i]->segment, NULL));
		OK(call_dma_map(w, both[i]->c, both[i]->b.handle, both[i]->segment, 0, 0, 4096,
				&both[i]->dma));
	}
	lie = entry_of(p->b.c, SIO_MSG_DMA_MAP);
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++, at = 0)
		while (n < 16 && library_next(p->c.c, step, &at, &said[n]))
			step_of[n++] = step;
	library_gone(p->c.c);
	w->before_step = NULL; /* in each step the other one speaks later */
	restart(w);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	for (uint32_t i = 1; i <= SIO_RESTORE_STEPS; i++) {
		struct sio_msg_restore_step step = {.step = sio_to_le32(i)};

		for (unsigned k = 0; k < n; k++) {
			if (step_of[k] != i)
				continue;
			if (sio_from_le32(said[k].type) == SIO_MSG_DMA_MAP) {
				truth = said[k];
				said[k].key = lie.key;
				assert_int_equal(say(w, p->c.c, &said[k]), ENOENT);
				said[k] = truth;
			}
			assert_int_equal(say(w, p->c.c, &said[k]), 0);
		}
		w->before_step = library_pump;
		library_pump(w, NULL);
		world_run(w);
		w->before_step = NULL;
		world_call(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step));
	}
	w->before_step = library_pump;
	library_pump(w, NULL);
	world_run(w);
	assert_true(truth.key && truth.key != lie.key);
	assert_true(library_settled(w));
	assert_int_equal(library_lost(), 0);
	OK(call_handle(w, p->b.c, SIO_MSG_DMA_UNMAP, p->b.dma, 0));
	OK(call_handle(w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0));
}

/* Handles that no program was told are smartiod's own: nothing new gets one either. */
static void handles_of_its_own_are_kept(void **state)
{
	struct sio_msg_restore_step step = {.step = sio_to_le32(1)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	struct sio_msg_restore m;
	uint32_t handle;

	OK(call_seg_create(w, p->c.c, 1, 4096, 0, &handle, NULL));
	m = entry_of(p->c.c, SIO_MSG_SEG_CREATE);
	library_gone(p->c.c);
	restart(w);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	m.handle = sio_to_le32(SMARTIOD_RELEASED_HANDLES);
	assert_int_equal(say(w, p->c.c, &m), EINVAL);
	m.handle = sio_to_le32(handle);
	assert_int_equal(say(w, p->c.c, &m), 0);
	step.last_handle = sio_to_le32(SMARTIOD_RELEASED_HANDLES);
	assert_int_equal(world_call(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step))->error,
			 EINVAL);
	for (uint32_t i = 1; i <= SIO_RESTORE_STEPS; i++) {
		step = (struct sio_msg_restore_step){
			.step = sio_to_le32(i),
			.last_handle = sio_to_le32(SMARTIOD_RELEASED_HANDLES - 2)};
		assert_int_equal(
			world_call(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step))->error, 0);
	}
	OK(call_seg_create(w, p->c.c, 2, 4096, 0, &handle, NULL));
	assert_int_equal(handle, SMARTIOD_RELEASED_HANDLES - 1);
	assert_int_equal(call_seg_create(w, p->c.c, 3, 4096, 0, &handle, NULL), EMFILE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(owners_are_proved),
		TEST(a_reset_that_was_none_is_told_to_nobody),
		TEST(memory_stays_as_long_as_a_device_reaches_it),
		TEST(memory_that_nobody_tells_of_stays_as_long),
		TEST(what_ends_is_not_held_again),
		TEST(lies_bring_nothing),
		TEST(random_words_do_no_harm),
		TEST(what_others_fill_is_theirs),
		TEST(handles_of_its_own_are_kept),
		TEST(mappings_are_theirs_whose_borrow_they_are_of),
		TEST(numbers_are_theirs_who_have_memory),
		TEST(who_calls_it_private_has_a_private_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
