/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs were told of others' things is sealed; half the truth, too much of it, or none. */
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
#include "wire/ring.h"

static uint32_t step_later(struct world *w, struct world_client *c, uint32_t step)
{
	struct sio_msg_restore_step m = {.step = sio_to_le32(step)};

	return world_send(w, c, SIO_MSG_RESTORE_STEP, &m, sizeof(m));
}

/* True but for one word: refused. Then true: there it is. */
static void only_the_truth(struct world *w, struct world_client *c, struct sio_msg_restore m)
{
	struct sio_msg_restore lie = m;
	sio_le64 *words[] = {&lie.key, &lie.extra, &lie.seal};
	uint32_t type = sio_from_le32(m.type);

	for (unsigned i = 0; i < 3; i++) {
		if (i == 1 && type != SIO_MSG_SEG_CREATE && type != SIO_MSG_DINT_CREATE)
			continue;
		lie = m;
		*words[i] = sio_to_le64(sio_from_le64(*words[i]) + 1);
		assert_int_equal(say(w, c, &lie), ENOENT);
	}
	lie = m;
	lie.handle = sio_to_le32(sio_from_le32(m.handle) + 1000);
	assert_int_equal(say(w, c, &lie), ENOENT);
	if (type != SIO_MSG_SEG_CONNECT && type != SIO_MSG_DINT_CONNECT) {
		lie = m;
		lie.number = sio_to_le32(sio_from_le32(m.number) + 1);
		assert_int_equal(say(w, c, &lie), ENOENT);
	}
	assert_int_equal(say(w, c, &m), 0);
}

/*
 * A thief that has things of its own says that it has those of another, who is here, too, but
 * later.
 */
static void what_others_have_is_sealed(void **state)
{
	static const uint32_t types[] = {SIO_MSG_SEG_CREATE, SIO_MSG_DINT_CREATE,
					 SIO_MSG_SEG_ATTACH, SIO_MSG_SEG_CONNECT,
					 SIO_MSG_DINT_CONNECT};
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	struct world_client *const all[] = {p->a.c, p->b.c, p->c.c};
	struct world_client *victim = p->b.c, *thief = p->c.c;
	struct sio_msg_restore m, has[2][5];
	uint32_t handle, number, id = 0;
	uint64_t at;

	OK(call_seg_export(w, p->a.c, 5, 8192, &p->a.segment));
	OK(call_handle(w, p->a.c, SIO_MSG_SEG_SHARE, p->a.segment, 0));
	OK(call_dint_create(w, p->a.c, 3, SCI_FLAG_FIXED_INTNO, &p->data, &p->data_number));
	for (unsigned i = 1; i < 3; i++) {
		OK(call_seg_create(w, all[i], 10 + i, 4096, SCI_FLAG_EMPTY, &handle, NULL));
		OK(call_dint_create(w, all[i], SHARED_NUMBER + i,
				    SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN,
				    &handle, &number));
		OK(call_seg_connect(w, all[i], NODE, 5, &handle));
		OK(call_dint_connect(w, all[i], NODE, p->data_number, &handle));
		OK((int)world_call(w, all[i], SIO_MSG_SEG_ATTACH, &attach, sizeof(attach))->error);
	}
	for (unsigned i = 0; i < 5; i++) { /* whoever lies hears that it has lost something */
		has[0][i] = entry_of(victim, types[i]);
		has[1][i] = entry_of(thief, types[i]);
	}
	w->before_step = NULL;
	restart(w);
	for (unsigned i = 0; i < 3; i++) {
		world_reconnect(w, all[i]);
		assert_int_equal(say_hello(w, all[i], all[i]->owner, SIO_CLIENT_LIBRARY), 0);
	}
	for (at = 0; library_next(p->a.c, 1, &at, &m);)
		assert_int_equal(say(w, p->a.c, &m), 0);
	for (unsigned i = 0; i < 5; i++) {
		/* Attachments are of the second step, the rest of the third. */
		for (unsigned j = 0; (i == 2 || i == 3) && j < 3; j++)
			id = step_later(w, all[j], i - 1);
		world_run(w);
		assert_int_equal(say(w, thief, &has[0][i]), ENOENT);
		only_the_truth(w, thief, has[1][i]);
		assert_int_equal(say(w, victim, &has[0][i]), 0);
	}
	assert_int_equal(world_reply(thief, id)->error, 0);
}

/*
 * The numbers that its authors give: 15 bytes would not be whole words, so those of none, and of 8.
 */
static void seals_are_siphash(void **state)
{
	const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	const uint64_t word = 0x0706050403020100;

	(void)state;
	assert_true(smartiod_siphash(key, NULL, 0) == 0x726fdb47dd0e0e31);
	assert_true(smartiod_siphash(key, &word, 1) == 0x93f5f5799a932462);
}

/* Whatever it says that it has heard of, it is told no more than its segment can have. */
static void what_was_told_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	const struct sio_evm_segment *evm;
	struct sio_msg_restore m;
	uint64_t at = 0;
	uint32_t seg, n = 0;

	OK(call_seg_create(w, p->b.c, 9, 4096, 0, &seg, NULL));
	assert_true(library_next(p->b.c, 1, &at, &m));
	library_gone(p->b.c);
	restart(w);
	world_reconnect(w, p->b.c);
	assert_int_equal(say_hello(w, p->b.c, p->b.c->owner, SIO_CLIENT_LIBRARY), 0);
	m.told = sio_to_le32(UINT32_MAX);
	assert_int_equal(say(w, p->b.c, &m), 0);
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++) {
		struct sio_msg_restore_step end = {.step = sio_to_le32(step)};

		assert_int_equal(
			world_call(w, p->b.c, SIO_MSG_RESTORE_STEP, &end, sizeof(end))->error, 0);
	}
	for (unsigned i = 0; (evm = world_event(p->b.c, SIO_EVM_SEGMENT_LOCAL, i)); i++) {
		assert_true(sio_from_le32(evm->count) <= SIO_EVM_TIMES);
		n += sio_from_le32(evm->count);
	}
	assert_int_equal(n, SMARTIOD_MAX_OBJECTS);
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
	assert_true(library_next(p->c.c, 3, &at, &m));
	library_gone(p->c.c);
	restart(w);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	for (unsigned i = 1; i < SIO_RESTORE_STEPS; i++) {
		struct sio_msg_restore_step step = {.step = sio_to_le32(i)};

		assert_int_equal(
			world_call(w, p->c.c, SIO_MSG_RESTORE_STEP, &step, sizeof(step))->error, 0);
	}
	m.key = sio_to_le64(mem);
	assert_int_equal(say(w, p->c.c, &m), ENOENT);
	forge(w, p->c.c, &m, SIO_MSG_SEG_CONNECT, 0);
	assert_int_equal(say(w, p->c.c, &m), ENOENT);
}

/* All that a program would tell. */
struct memory {
	struct sio_msg_restore m[64];
	unsigned n[SIO_RESTORE_STEPS + 1]; /* up to which a step is told */
};

static void remember(struct world_client *c, struct memory *mem)
{
	memset(mem, 0, sizeof(*mem));
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++) {
		uint64_t at = 0;

		mem->n[step] = mem->n[step - 1];
		while (library_next(c, step, &at, &mem->m[mem->n[step]])) {
			mem->n[step]++;
			assert_true(mem->n[step] < 64);
		}
	}
}

static struct sio_msg_restore told_of(const struct memory *mem, uint32_t type, unsigned nth)
{
	for (unsigned i = 0; i < mem->n[SIO_RESTORE_STEPS]; i++)
		if (sio_from_le32(mem->m[i].type) == type && nth-- == 0)
			return mem->m[i];
	fail_msg("nothing was made by %u", type);
	return mem->m[0];
}

static void end_step(struct world *w, struct world_client *c, uint32_t step)
{
	struct sio_msg_restore_step end = {.step = sio_to_le32(step)};

	world_send(w, c, SIO_MSG_RESTORE_STEP, &end, sizeof(end));
	world_run(w);
}

/* @c comes back by hand, and tells all that is told first; but nothing of the segment with @but. */
static void come_back(struct world *w, struct world_client *c, const struct memory *mem,
		      uint32_t but)
{
	w->before_step = NULL; /* the others' first step is done, their second one waits for us */
	world_reconnect(w, c);
	assert_int_equal(say_hello(w, c, c->owner, SIO_CLIENT_LIBRARY), 0);
	for (unsigned i = 0; i < mem->n[1]; i++)
		if (sio_from_le32(mem->m[i].type) != SIO_MSG_SEG_CREATE ||
		    sio_from_le32(mem->m[i].number) != but)
			assert_int_equal(say(w, c, &mem->m[i]), 0);
	end_step(w, c, 1);
}

/* What is true of one's own things is not of another's with their keys. */
static void half_truths_bring_nothing(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore m, of_b;
	struct world *w = f->w;
	struct memory b, c;

	make_all(w, p);
	OK(call_dev_seg_create(w, p->b.c, p->b.b.handle, 2, 4096, SCI_MEMTYPE_PRIVATE,
			       SCI_MEMACCESS_DEVICE_READ, 0));
	remember(p->b.c, &b);
	remember(p->c.c, &c);
	world_stop(w, 0);
	library_gone(p->c.c);
	restart(w);
	come_back(w, p->c.c, &c, 0);
	/* Attached to what is not shared. */
	m = told_of(&c, SIO_MSG_SEG_ATTACH, 0);
	of_b = told_of(&b, SIO_MSG_SEG_CREATE, 0);
	m.key = of_b.key;
	assert_int_equal(say(w, p->c.c, &m), ENOENT);
	forge(w, p->c.c, &m, SIO_MSG_SEG_ATTACH, sio_from_le32(m.number));
	assert_int_equal(say(w, p->c.c, &m), ENOENT);
	w->before_step = library_pump;
	end_step(w, p->c.c, 2);
	/* Connected to another borrower's private memory. */
	m = told_of(&c, SIO_MSG_DEV_SEG_CONNECT, 1);
	of_b = told_of(&b, SIO_MSG_DEV_SEG_CREATE, 1);
	m.key = of_b.key;
	assert_int_equal(say(w, p->c.c, &m), ENOENT);
	forge(w, p->c.c, &m, SIO_MSG_SEG_CONNECT, 0);
	assert_int_equal(say(w, p->c.c, &m), ENOENT);
	/*
	 * What the other has mapped for the device, of what both have; one's own map, of other
	 * memory.
	 */
	m = told_of(&c, SIO_MSG_SEG_CONNECT, 0);
	assert_int_equal(say(w, p->c.c, &m), 0);
	m = told_of(&c, SIO_MSG_DMA_MAP, 1);
	of_b = told_of(&b, SIO_MSG_DMA_MAP, 1);
	of_b.handle = m.handle;
	memcpy(of_b.request, m.request, sizeof(m.request));
	assert_int_equal(say(w, p->c.c, &of_b), ENOENT);
	of_b = told_of(&c, SIO_MSG_DMA_MAP, 0);
	of_b.key = m.key;
	assert_int_equal(say(w, p->c.c, &of_b), ENOENT);
	end_step(w, p->c.c, 3);
	assert_true(library_settled(w));
}

/* As if the borrower of what @m holds had mapped it for another device than all have. */
static void is_of_another_device(struct world *w, struct world_client *c,
				 const struct sio_msg_restore *m)
{
	struct smartiod_tree_node *n =
		smartiod_tree_find(&w->host[0].daemon->dmas, sio_from_le64(m->key));
	struct smartiod_device elsewhere, *own;
	struct smartiod_loan *l;

	assert_non_null(n);
	l = SMARTIOD_OF(n, struct smartiod_dma, by_id)->loan;
	own = l->device;
	elsewhere = *own;
	l->device = &elsewhere;
	assert_int_equal(say(w, c, m), ENOENT);
	l->device = own;
}

/* A manager holds memory of its own drive's borrowers. */
static void holds_are_of_the_own_device(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	unsigned holds = 0;
	struct memory b;

	make_all(w, p);
	remember(p->b.c, &b);
	world_stop(w, 0);
	library_gone(p->b.c);
	restart(w);
	come_back(w, p->b.c, &b, 0);
	w->before_step = library_pump;
	for (unsigned i = b.n[1]; i < b.n[SIO_RESTORE_STEPS]; i++) {
		if (i == b.n[2])
			end_step(w, p->b.c, 2);
		if (sio_from_le32(b.m[i].type) == SIO_MSG_DEV_HOLD) {
			is_of_another_device(w, p->b.c, &b.m[i]);
			holds++;
		}
		assert_int_equal(say(w, p->b.c, &b.m[i]), 0);
	}
	end_step(w, p->b.c, 3);
	assert_int_equal(holds, 1);
	assert_true(library_settled(w));
}

/* A ring of one's own data interrupt, in memory of somebody who is not back yet. */
static void rings_lie_in_ones_own_memory(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore ring = {.type = sio_to_le32(SIO_EVM_DINT_RING)};
	struct world *w = f->w;
	struct memory b, c;
	uint32_t seg, dint, number;

	OK(call_seg_create(w, p->b.c, 9, SIO_RING_TOTAL, 0, &seg, NULL));
	OK(call_seg_create(w, p->c.c, 10, SIO_RING_TOTAL, 0, &seg, NULL));
	OK(call_dint_create(w, p->c.c, 3, SCI_FLAG_FIXED_INTNO, &dint, &number));
	remember(p->b.c, &b);
	remember(p->c.c, &c);
	w->before_step = NULL;
	library_gone(p->c.c);
	restart(w);
	world_reconnect(w, p->c.c);
	assert_int_equal(say_hello(w, p->c.c, p->c.c->owner, SIO_CLIENT_LIBRARY), 0);
	ring.handle = told_of(&c, SIO_MSG_DINT_CREATE, 0).handle;
	ring.number = sio_to_le32(1);
	assert_int_equal(say(w, p->c.c, &c.m[1]), 0);
	ring.key = told_of(&b, SIO_MSG_SEG_CREATE, 0).key;
	assert_int_equal(say(w, p->c.c, &ring), ENOENT);
	ring.key = told_of(&c, SIO_MSG_SEG_CREATE, 0).key; /* the port cannot know what is in it */
	assert_int_equal(say(w, p->c.c, &ring), 0);
	w->before_step = library_pump;
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++)
		end_step(w, p->c.c, step);
	assert_true(library_settled(w));
	OK(call_seg_remove(w, p->b.c, told_of(&b, SIO_MSG_SEG_CREATE, 0).handle));
}

/* Memory that its owner does not tell of goes, though the owner lives on. */
static void what_nobody_claims_goes(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world *w = f->w;
	struct memory c;
	unsigned before;
	uint32_t seg;

	OK(call_seg_create(w, p->c.c, 9, 4096, 0, &seg, NULL));
	before = world_resources(w, 0);
	OK(call_seg_create(w, p->c.c, 10, 4096, 0, &seg, NULL));
	remember(p->c.c, &c);
	world_stop(w, 0);
	library_gone(p->c.c);
	restart(w);
	come_back(w, p->c.c, &c, 10);
	w->before_step = library_pump;
	end_step(w, p->c.c, 2);
	end_step(w, p->c.c, 3);
	assert_int_equal(world_resources(w, 0), before);
}

/*
 * Nor is it shared by who says so first, while its maker is late and has not yet said what it is.
 */
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
	forge(w, p->c.c, &lie, SIO_MSG_SEG_ATTACH, 77);
	assert_int_equal(say(w, p->c.c, &lie), ENOENT);
	assert_int_equal(say(w, p->b.c, &m), 0);
}

/*
 * Late, and another has the number by now: the descriptor that the program has triggers what was
 * there. One that an older smartiod told no key, and all of whose interrupts are there, loses none.
 */
static void a_connection_is_to_what_was_there(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint32_t handle, number, own, link[2];
	const struct sio_evm_dint_ring *evm;
	struct sio_msg_restore m;
	struct memory c;

	OK(call_dint_create(f->w, p->a.c, 3, SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &handle,
			    &number));
	OK(call_plain_create(f->w, p->c.c, &handle, &own));
	OK(call_plain_connect(f->w, p->c.c, NODE, own, &link[0]));
	OK(call_plain_connect(f->w, p->c.c, NODE, 3, &link[1]));
	f->w->before_step = NULL;
	restart(f->w);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	OK(call_dint_create(f->w, world_client(f->w, 0, SIO_CLIENT_LIBRARY), 3,
			    SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &handle, &number));
	f->w->before_step = library_pump;
	world_run(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 2);
	evm = world_event(p->c.c, SIO_EVM_DINT_LOST, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), link[1]);
	assert_null(world_event(p->c.c, SIO_EVM_DINT_LOST, 1));

	remember(p->c.c, &c);
	world_stop(f->w, 0);
	library_gone(p->c.c);
	restart(f->w);
	come_back(f->w, p->c.c, &c, 0);
	f->w->before_step = library_pump;
	end_step(f->w, p->c.c, 2);
	m = told_of(&c, SIO_MSG_DINT_CONNECT, 0);
	m.key = sio_to_le64(0);
	assert_int_equal(say(f->w, p->c.c, &m), ENOENT);
	forge(f->w, p->c.c, &m, SIO_MSG_DINT_CONNECT, smartiod_dint_seal_number(true, 0, own));
	assert_int_equal(say(f->w, p->c.c, &m), 0);
	end_step(f->w, p->c.c, 3);
	OK(call_handle(f->w, p->c.c, SIO_MSG_DINT_DISCONNECT, link[0], 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_others_have_is_sealed),
		TEST(seals_are_siphash),
		TEST(what_was_told_is_bounded),
		TEST(what_was_never_offered_stays_private),
		TEST(what_is_not_yet_told_is_not_shared),
		TEST(half_truths_bring_nothing),
		TEST(holds_are_of_the_own_device),
		TEST(rings_lie_in_ones_own_memory),
		TEST(what_nobody_claims_goes),
		TEST(a_connection_is_to_what_was_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
