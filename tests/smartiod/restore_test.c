/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon of a real host that is killed and started again, and libraries that come back to it: all
 * is as it was, no call fails, and who lies gets nothing. The library's half is its own journal.
 */
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

static void use_registers(struct fixture *f, struct handles *h)
{
	struct programs *p = &f->p;

	OK(call_borrow(f->w, h->c, FDID, SCI_FLAG_EXCLUSIVE, &h->b));
	OK(call_dev_seg_connect(f->w, h->c, h->b.handle, 0, SCI_MEMTYPE_BAR, &h->bar, NULL));
	OK(call_bar_map(f->w, h->c, h->bar, 0, &h->bar_map, h->access));
}

/* All that daemon and port have is the same after three restarts, and no program is told of any. */
static void restarts_change_nothing(struct world *w)
{
	char *before = malloc(PICTURE), *after = malloc(PICTURE);

	assert_true(before && after);
	take_picture(w, before);
	for (unsigned i = 0; i < 3; i++) {
		restart(w);
		assert_true(library_settled(w));
		take_picture(w, after);
		assert_string_equal(before, after);
	}
	assert_int_equal(library_lost(), 0);
	free(before);
	free(after);
}

/* ---- tests ---- */

static void all_is_as_it_was(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned n;

	make_all(f->w, p);
	n = f->p.c.c->n_messages;
	restarts_change_nothing(f->w);
	for (; n < p->c.c->n_messages; n++) /* nothing happened that would have to be told */
		assert_int_not_equal(p->c.c->message[n]->id, 0);
	give_all_back(f->w, p);
	restart(f->w); /* what is not there any more is not told of */
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 0);
}

/* Memory of a device of this host, which its queue goes on to reach. */
static void what_a_queue_reaches_of_a_bar(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint32_t memory, queue;
	uint64_t range;

	use_registers(f, &p->b);
	OK(call_dev_seg_connect(f->w, p->b.c, p->b.b.handle, 2, SCI_MEMTYPE_BAR, &memory, NULL));
	OK(call_queue_create(f->w, p->b.c, 0, &queue));
	OK(call_queue_attach_bar(f->w, p->b.c, queue, memory, 8, &range));
	restarts_change_nothing(f->w);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMA_RANGE, false), 1);
	OK(call_queue_detach(f->w, p->b.c, queue, range));
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_DISCONNECT, memory, 0));
	OK(call_handle(f->w, p->b.c, SIO_MSG_QUEUE_REMOVE, queue, 0));
	assert_int_equal(fake_count(f->w, SIO_KIND_DMA_RANGE, false), 0);
}

/* Calls of new programs, too, wait until all are back. */
static void others_are_served_when_all_are_back(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_hello hello = {.version = sio_to_le32(SIO_CLIENT_VERSION),
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
	f->w->before_step = library_pump;
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
	/* The exporter: three had connected, one is gone for good. */
	while ((seg = world_event(p->a.c, SIO_EVM_SEGMENT_LOCAL, n)))
		n++;
	assert_int_equal(n, 4); /* one of them to a segment that was removed then */
	seg = world_event(p->a.c, SIO_EVM_SEGMENT_LOCAL, 3);
	assert_int_equal(sio_from_le32(seg->reason), SCI_CB_LOST);
	assert_non_null(world_event(p->a.c, SIO_EVM_DINT_RING_END, 0));
	/* The manager settles it. */
	assert_int_equal(sio_from_le64(call_device_event(p->b.c, 0)->borrower), p->c.b.id);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, p->c.b.id));
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	OK(call_seg_remove(f->w, p->a.c, p->empty));
}

/*
 * Whoever connects is answered before who is connected to is told: whenever the daemon dies in
 * between, the exporter hears of each connection once (here both are one program, so that the order
 * is seen).
 */
static void who_connects_hears_first(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned n;

	OK(call_seg_export(f->w, p->a.c, 5, 4096, &p->a.segment));
	n = p->a.c->n_messages;
	OK(call_seg_connect(f->w, p->a.c, NODE, 5, &p->a.connection));
	assert_int_equal(p->a.c->n_messages, n + 2);
	assert_int_equal(p->a.c->message[n]->type, SIO_MSG_SEG_CONNECT);
	assert_int_equal(p->a.c->message[n + 1]->type, SIO_EVM_SEGMENT_LOCAL);
}

/* Three connections of one segment go at once: the exporter is told in one word. */
static void many_that_went_are_told_in_one_word(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	const struct sio_evm_segment *seg;

	OK(call_seg_export(f->w, p->a.c, 5, 4096, &p->a.segment));
	for (unsigned i = 0; i < 3; i++)
		OK(call_seg_connect(f->w, p->c.c, NODE, 5, &p->c.connection));
	world_stop(f->w, 0);
	library_gone(p->c.c);
	world_kill(f->w, p->c.c);
	restart(f->w);
	seg = world_event(p->a.c, SIO_EVM_SEGMENT_LOCAL, 3);
	assert_non_null(seg);
	assert_int_equal(sio_from_le32(seg->reason), SCI_CB_LOST);
	assert_int_equal(sio_from_le32(seg->count), 3);
	assert_null(world_event(p->a.c, SIO_EVM_SEGMENT_LOCAL, 4));
	restart(f->w); /* and the library has counted it */
	assert_null(world_event(p->a.c, SIO_EVM_SEGMENT_LOCAL, 4));
}

/* The manager asks of a borrow that left nothing, and of which only its number tells. */
static void what_ended_before_has_ended(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint64_t gone;

	make_all(f->w, p);
	gone = p->c.b.id;
	assert_true(gone > p->b.b.id);
	world_kill(f->w, p->c.c);
	library_gone(p->c.c);
	world_run(f->w);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, gone));
	for (unsigned i = 0; i < 2; i++) {
		OK(call_settled(f->w, p->b.c, p->b.b.handle, gone));
		assert_int_equal(call_settled(f->w, p->b.c, p->b.b.handle, gone + 100), EINVAL);
		assert_int_equal(call_settled(f->w, p->b.c, p->b.b.handle, p->b.b.id), EINVAL);
		restart(f->w);
		assert_true(library_settled(f->w));
	}
}

/* The exporter dies: connections, links and the device's view of its memory are lost. */
static void what_the_dead_had_is_lost(void **state)
{
	struct fixture *f = *state;
	const struct sio_evm_segment *seg;
	struct programs *p = &f->p;
	uint32_t unmapped;

	make_all(f->w, p);
	OK(call_seg_connect(f->w, p->b.c, NODE, 5, &unmapped));
	world_stop(f->w, 0);
	library_gone(p->a.c);
	world_kill(f->w, p->a.c);
	restart(f->w);
	for (unsigned i = 0; (seg = world_event(p->b.c, SIO_EVM_SEGMENT_REMOTE, i)); i++)
		if (sio_from_le32(seg->handle) == unmapped)
			break;
	assert_non_null(seg);
	seg = world_event(p->c.c, SIO_EVM_SEGMENT_REMOTE, 0);
	assert_non_null(seg);
	assert_int_equal(sio_from_le32(seg->handle), p->c.connection);
	assert_int_equal(sio_from_le32(seg->loss), 1);
	assert_non_null(world_event(p->c.c, SIO_EVM_DINT_LOST, 0));
	assert_non_null(world_event(p->c.c, SIO_EVM_SEGMENT_LOCAL, 0)); /* it was attached */
	/* The rest goes on. */
	OK(call_unvector(f->w, p->c.c, p->c.b.handle, p->c.vector));
	OK(call_handle(f->w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0) == EBUSY ? 0 : -1);
	OK(call_unhold(f->w, p->b.c, p->b.b.handle, p->b.hold));
	OK(call_handle(f->w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0));
}

/* A handle of something lost is still the program's, until it releases it. */
static void handles_of_the_lost_are_not_given_anew(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint32_t seg;

	make_all(f->w, p);
	library_gone(p->a.c);
	world_kill(f->w, p->a.c);
	world_run(f->w);
	restart(f->w); /* attached, the last that it was told, is not said again */
	OK(call_seg_create(f->w, p->c.c, 200, 4096, 0, &seg, NULL));
	assert_true(seg > p->attached);
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
	f->w->before_step = library_pump;
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

/* One of all adapters is that of the next daemon, too; and a plain one cannot say that it is. */
static void an_interrupt_of_all_adapters_comes_back(void **state)
{
	struct sio_msg_dint_create all = {.adapter = sio_to_le32(SIO_DINT_ALL_ADAPTERS),
					  .number = sio_to_le32(3),
					  .flags = sio_to_le32(SCI_FLAG_FIXED_INTNO)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore m, lie;
	uint32_t link, handle, number;

	OK((int)world_call(f->w, p->a.c, SIO_MSG_DINT_CREATE, &all, sizeof(all))->error);
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 0);
	OK(call_dint_connect(f->w, p->b.c, NODE, 3, &link));
	assert_int_equal(call_dint_create(f->w, p->b.c, 3, SCI_FLAG_FIXED_INTNO, &handle, &number),
			 EEXIST);
	f->w->before_step = NULL;
	restart(f->w);
	world_reconnect(f->w, p->a.c);
	assert_int_equal(say_hello(f->w, p->a.c, p->a.c->owner, SIO_CLIENT_LIBRARY), 0);
	m = lie = entry_of(p->a.c, SIO_MSG_DINT_CREATE);
	((struct sio_msg_dint_create *)(void *)lie.request)->flags |= sio_to_le32(SIO_DINT_PLAIN);
	assert_int_equal(say(f->w, p->a.c, &lie), ENOENT);
	assert_int_equal(say(f->w, p->a.c, &m), 0);
}

/* Whoever is so late that another has the numbers of his interrupts hears that they are lost. */
static void an_interrupt_whose_number_is_taken_is_lost(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	const struct sio_evm_dint_ring *evm;
	struct world_client *c;
	uint32_t handle[2], other, number;

	OK(call_dint_create(f->w, p->a.c, 3, SCI_FLAG_FIXED_INTNO, &handle[0], &number));
	OK(call_dint_create(f->w, p->a.c, 3, SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &handle[1],
			    &number));
	f->w->before_step = NULL;
	restart(f->w);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	OK(call_dint_create(f->w, c, 3, SCI_FLAG_FIXED_INTNO, &other, &number));
	OK(call_dint_create(f->w, c, 3, SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &other, &number));
	f->w->before_step = library_pump;
	world_run(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost_own(), 2);
	for (unsigned i = 0; i < 2; i++) {
		evm = world_event(p->a.c, SIO_EVM_DINT_LOST, i);
		assert_non_null(evm);
		assert_int_equal(sio_from_le32(evm->handle), handle[i]);
	}
}

/*
 * Nobody comes back by himself after this; *id is the number of what another asks, who has to wait.
 */
static struct world_client *restart_alone(struct world *w, uint32_t *id)
{
	struct sio_msg_hello hello = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				      .kind = sio_to_le32(SIO_CLIENT_TOOL)};
	struct world_client *other;

	w->before_step = NULL;
	restart(w);
	other = world_client(w, 0, 0);
	*id = world_send(w, other, SIO_MSG_HELLO, &hello, sizeof(hello));
	return other;
}

/*
 * Each comes as fast as it can: as long as one comes further the rest is waited for, but not for
 * ever.
 */
static void who_comes_further_is_waited_for(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world_client *other;
	struct sio_msg_restore m;
	uint64_t at = 0, left = SMARTIOD_GRACE_MAX_NS;
	uint32_t id;

	make_all(f->w, p);
	other = restart_alone(f->w, &id);
	for (unsigned i = 0; left >= SMARTIOD_GRACE_NS; i++) {
		world_pass(f->w, SMARTIOD_GRACE_NS - 1);
		left -= SMARTIOD_GRACE_NS - 1;
		assert_null(world_reply(other, id));
		if (i == 0) {
			world_reconnect(f->w, p->b.c);
			assert_int_equal(say_hello(f->w, p->b.c, p->b.c->owner, SIO_CLIENT_LIBRARY),
					 0);
		} else {
			assert_true(library_next(p->b.c, 1, &at, &m));
			assert_int_equal(say(f->w, p->b.c, &m), 0);
		}
	}
	world_pass(f->w, left - 1);
	assert_null(world_reply(other, id));
	world_pass(f->w, 1);
	assert_non_null(world_reply(other, id));
}

/* A lie, or a word of somebody who is not awaited, is not coming further. */
static void who_only_talks_is_not_waited_for(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world_client *other, *c;
	struct sio_msg_restore m;
	uint64_t at = 0;
	uint32_t id;

	make_all(f->w, p);
	other = restart_alone(f->w, &id);
	world_reconnect(f->w, p->b.c);
	assert_int_equal(say_hello(f->w, p->b.c, p->b.c->owner, SIO_CLIENT_LIBRARY), 0);
	world_pass(f->w, SMARTIOD_GRACE_NS - 1);
	assert_true(library_next(p->a.c, 1, &at, &m));
	assert_int_equal(say(f->w, p->b.c, &m), ENOENT);
	c = world_client(f->w, 0, 0);
	assert_int_equal(say_hello(f->w, c, 999999, SIO_CLIENT_LIBRARY), ENOENT);
	assert_null(world_reply(other, id));
	world_pass(f->w, 1);
	assert_non_null(world_reply(other, id));
}

/* The port did it, and the daemon died before it could say so. */
static void a_reset_that_nobody_told_of_is_told(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;

	make_all(f->w, p);
	world_stop(f->w, 0);
	f->fake.generation++;
	restart(f->w);
	assert_int_equal(resets_told(f, p->b.c), 1);
	assert_int_equal(resets_told(f, p->c.c), 1);
	restart(f->w);
	assert_int_equal(resets_told(f, p->b.c), 1);
	assert_int_equal(resets_told(f, p->c.c), 1);
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
	library_pump(w, NULL);
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

/* Killed after the exporter was told that a connection goes, and before who had it was answered. */
static void who_went_is_told_of_once(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;

	OK(call_seg_export(f->w, p->a.c, 5, 4096, &p->a.segment));
	OK(call_seg_connect(f->w, p->b.c, NODE, 5, &p->b.connection));
	OK(call_seg_connect(f->w, p->c.c, NODE, 5, &p->c.connection));
	library_lose_answer(p->b.c);
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_DISCONNECT, p->b.connection, 0));
	assert_int_equal(n_told(p->a.c, SCI_CB_DISCONNECT), 1);
	restart(f->w);
	assert_true(library_settled(f->w) && !library_busy(p->b.c));
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.connection, 0));
	assert_int_equal(n_told(p->a.c, SCI_CB_CONNECT), 2);
	assert_int_equal(n_told(p->a.c, SCI_CB_DISCONNECT), 2);
	assert_int_equal(n_told(p->a.c, SCI_CB_LOST), 0);
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
}

/*
 * Whoever attached hears what the maker hears: nothing of what is as it was, and once of what went
 * meanwhile.
 */
static void who_attached_hears_as_the_maker(void **state)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct world_client *const all[] = {p->a.c, p->b.c, p->c.c};

	OK(call_seg_export(f->w, p->b.c, 5, 4096, &p->b.segment));
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_SHARE, p->b.segment, 0));
	for (unsigned i = 0; i < 3; i++)
		OK((int)world_call(f->w, all[i], SIO_MSG_SEG_ATTACH, &attach, sizeof(attach))
			   ->error);
	for (unsigned i = 0; i < 3; i++)
		OK(call_seg_connect(f->w, all[i], NODE, 5, &p->a.connection));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(n_told(all[i], SCI_CB_CONNECT), i == 1 ? 6 : 3);
	restart(f->w);
	assert_true(library_settled(f->w));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(n_told(all[i], SCI_CB_CONNECT), i == 1 ? 6 : 3);
	world_stop(f->w, 0);
	library_gone(p->c.c);
	world_kill(f->w, p->c.c);
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(n_told(p->a.c, SCI_CB_LOST), 1);
	assert_int_equal(n_told(p->b.c, SCI_CB_LOST), 2);
	assert_int_equal(n_told(p->a.c, SCI_CB_CONNECT), 3);
	OK(call_handle(f->w, p->a.c, SIO_MSG_SEG_DISCONNECT,
		       sio_from_le32(entry_of(p->a.c, SIO_MSG_SEG_CONNECT).handle), 0));
	assert_int_equal(n_told(p->b.c, SCI_CB_DISCONNECT), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_is_as_it_was),
		TEST(what_a_queue_reaches_of_a_bar),
		TEST(others_are_served_when_all_are_back),
		TEST(death_without_a_daemon_is_told),
		TEST(who_connects_hears_first),
		TEST(many_that_went_are_told_in_one_word),
		TEST(what_ended_before_has_ended),
		TEST(what_the_dead_had_is_lost),
		TEST(handles_of_the_lost_are_not_given_anew),
		TEST(who_is_late_waits_for_nobody),
		TEST(an_interrupt_of_all_adapters_comes_back),
		TEST(an_interrupt_whose_number_is_taken_is_lost),
		TEST(who_comes_further_is_waited_for),
		TEST(who_only_talks_is_not_waited_for),
		TEST(a_reset_that_nobody_told_of_is_told),
		cmocka_unit_test(killed_at_every_event),
		TEST(who_went_is_told_of_once),
		TEST(who_attached_hears_as_the_maker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
