/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon of a real host that is killed and started again: programs keep their devices, nobody
 * else gets them, and what they leave is settled by the next holder.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/restart/restore.h"

#define FDID 0x400001

struct fixture {
	struct fake_device fake;
	struct world *w;
};

/* A program with a device: its BAR mapped, memory of its own within the device's reach, a vector.
 */
struct user {
	struct world_client *c;
	struct call_borrow b;
	uint32_t access[4]; /* of the BAR's pages */
	uint32_t vector;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	*state = f;
	f->w = world_new(1, 0);
	f->w->real = true;
	fake_device_add(f->w, &f->fake);
	world_start(f->w);
	return 0;
}

static void kill_all(struct world *w)
{
	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
}

/* Nobody lives any more: a holder resets, and all must be gone. */
static void check_all_gone(struct world *w)
{
	struct world_client *c;
	struct call_borrow b;

	kill_all(w);
	fake_device_resets(w, true);
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
	world_pass(w, SMARTIOD_GRACE_NS); /* these programs do not come back */
}

/* Calls may fail: the daemon may be killed meanwhile. */
static int use(struct world *w, struct user *u, uint32_t flags)
{
	uint32_t bar = 0, map = 0, segment = 0, dma = 0, interrupt = 0, number = 0, link = 0;
	int rc;

	u->c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	rc = call_borrow(w, u->c, FDID, flags, &u->b);
	if (rc != 0)
		return rc;
	call_dev_seg_connect(w, u->c, u->b.handle, 0, SCI_MEMTYPE_BAR, &bar, NULL);
	call_bar_map(w, u->c, bar, 0, &map, u->access);
	call_seg_create(w, u->c, (uint32_t)u->c->number, 65536, 0, &segment, NULL);
	call_dma_map(w, u->c, u->b.handle, segment, 0, 0, 65536, &dma);
	u->vector = SIO_VECTOR_ANY;
	call_plain_create(w, u->c, &interrupt, &number);
	call_plain_connect(w, u->c, 4, number, &link);
	call_vector(w, u->c, u->b.handle, &u->vector, link);
	return 0;
}

static const struct sio_rep_list *borrows(struct world *w, struct world_client *c, uint64_t after)
{
	struct sio_msg_list msg = {.kind = sio_to_le32(SIO_LIST_BORROWS),
				   .after = sio_to_le64(after)};
	const struct world_message *m = world_call(w, c, SIO_MSG_LIST, &msg, sizeof(msg));

	assert_non_null(m);
	assert_int_equal(m->error, 0);
	return (const struct sio_rep_list *)m->data;
}

static void check_row(struct world *w, struct world_client *c, uint64_t borrow, uint32_t flags,
		      uint32_t maps)
{
	const struct sio_rep_list *rep = borrows(w, c, borrow - 1);

	assert_true(sio_from_le32(rep->count) > 0);
	assert_int_equal(sio_from_le64(rep->row[0].key), borrow);
	assert_int_equal(sio_from_le32(rep->row[0].flags), flags);
	assert_int_equal(sio_from_le32(rep->row[0].refs), maps);
	assert_int_equal(sio_from_le32(rep->row[0].id), FDID);
}

/* @u is the holder, and was told of just these borrows. It settles them. */
static void settle(struct world *w, struct user *u, const uint64_t *borrow, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct sio_evm_device *evt = call_device_event(u->c, i);

		assert_non_null(evt);
		assert_int_equal(sio_from_le32(evt->event), SIO_DEVICE_EV_BORROWER_GONE);
		assert_int_equal(sio_from_le64(evt->borrower), borrow[i]);
		assert_int_equal(call_settled(w, u->c, u->b.handle, borrow[i]), 0);
	}
	assert_null(call_device_event(u->c, n));
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 0);
	assert_int_equal(fake_count(w, SIO_KIND_MEM, true), 0);
}

static void device_in_use_stays_lent(void **state)
{
	struct fixture *f = *state;
	struct user old, next;

	fake_device_resets(f->w, false);
	assert_int_equal(use(f->w, &old, SCI_FLAG_EXCLUSIVE), 0);
	assert_true(old.access[0] & SIO_ACCESS_WRITE);
	restart(f->w);
	/* The program has lost the daemon, not the device. */
	assert_int_equal(fake_count(f->w, SIO_KIND_BAR, false), 2);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 1);
	assert_int_equal(use(f->w, &next, 0), EACCES);
	assert_int_equal(use(f->w, &next, SCI_FLAG_EXCLUSIVE), EACCES);
	check_row(f->w, next.c, old.b.id, SIO_ROW_LIVE | SIO_ROW_EXCLUSIVE, 1);

	world_kill(f->w, old.c);
	world_run(f->w);
	assert_int_equal(fake_count(f->w, SIO_KIND_BAR, false), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 1);
	assert_int_equal(use(f->w, &next, SCI_FLAG_EXCLUSIVE), 0);
	assert_true(next.b.id > old.b.id);
	assert_true(next.access[0] & SIO_ACCESS_WRITE);
	settle(f->w, &next, &old.b.id, 1);
}

/* It dies while there is no daemon that could hear of it, which is twice. */
static void quarantine_is_kept(void **state)
{
	struct fixture *f = *state;
	uint64_t gone[2];
	struct user u[3];

	fake_device_resets(f->w, false);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(use(f->w, &u[i], SCI_FLAG_EXCLUSIVE), 0);
		gone[i] = u[i].b.id;
		world_stop(f->w, 0);
		world_kill(f->w, u[i].c);
		restart(f->w);
		assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), i + 1);
	}
	assert_int_equal(use(f->w, &u[2], SCI_FLAG_EXCLUSIVE), 0);
	check_row(f->w, u[2].c, gone[0], SIO_ROW_QUARANTINED, 1);
	settle(f->w, &u[2], gone, 2);
}

/*
 * The next daemon resets nothing because it was started: who lives has the device, also one that is
 * not back in time. Whoever died meanwhile is settled by a reset if nobody else lives.
 */
static void no_reset_while_one_of_before_lives(void **state)
{
	struct fixture *f = *state;
	struct user u[2];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(use(f->w, &u[i], 0), 0);
	f->fake.resets = 0; /* but when it came */
	world_stop(f->w, 0);
	world_kill(f->w, u[0].c);
	restart(f->w);
	assert_int_equal(f->fake.resets, 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 1);
	world_stop(f->w, 0);
	world_kill(f->w, u[1].c);
	restart(f->w);
	assert_int_equal(f->fake.resets, 1);
	assert_int_equal(f->fake.disturbed, 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	/*
	 * Of a borrow that left nothing the next one knows nothing: a first borrower has it reset.
	 */
	restart(f->w);
	assert_int_equal(f->fake.resets, 1);
	assert_int_equal(use(f->w, &u[0], 0), 0);
	assert_int_equal(f->fake.resets, 2);
}

static void reset_ends_a_quarantine_of_before(void **state)
{
	struct fixture *f = *state;
	struct user old, next;

	assert_int_equal(use(f->w, &old, SCI_FLAG_EXCLUSIVE), 0);
	restart(f->w);
	world_kill(f->w, old.c);
	assert_int_equal(use(f->w, &next, SCI_FLAG_EXCLUSIVE), 0);
	assert_int_equal(call_handle(f->w, next.c, SIO_MSG_DEV_RESET, next.b.handle, 0), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	assert_int_equal(sio_from_le32(borrows(f->w, next.c, 0)->count), 1);
}

/* A manager that had opened the device to others, and one of these. */
static void registers_are_nobody_elses(void **state)
{
	struct fixture *f = *state;
	struct user manager, client, next;
	uint64_t gone[3];

	fake_device_resets(f->w, false);
	assert_int_equal(use(f->w, &manager, SCI_FLAG_EXCLUSIVE), 0);
	assert_int_equal(
		call_handle(f->w, manager.c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, manager.b.handle, 0),
		0);
	assert_int_equal(use(f->w, &client, 0), 0);
	restart(f->w);

	assert_int_equal(use(f->w, &next, 0), 0);
	assert_int_equal(next.access[0], SIO_ACCESS_READ);
	assert_int_equal(call_handle(f->w, next.c, SIO_MSG_DEV_RESET, next.b.handle, 0), EACCES);
	check_row(f->w, next.c, manager.b.id, SIO_ROW_LIVE, 1);
	gone[2] = next.b.id;
	/* Whoever may have them is one of two: also the other's end does not free them. */
	world_kill(f->w, manager.c);
	world_kill(f->w, next.c);
	world_run(f->w);
	assert_int_equal(use(f->w, &next, 0), 0);
	assert_int_equal(next.access[0], SIO_ACCESS_READ);
	world_kill(f->w, client.c);
	world_kill(f->w, next.c);
	world_run(f->w);

	gone[0] = manager.b.id;
	gone[1] = client.b.id;
	assert_int_equal(call_settled(f->w, next.c, next.b.handle, gone[0]), -1); /* it is dead */
	assert_int_equal(use(f->w, &next, SCI_FLAG_EXCLUSIVE), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 4);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(call_settled(f->w, next.c, next.b.handle, gone[i]), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 1);
	assert_int_equal(call_settled(f->w, next.c, next.b.handle, SIO_BORROWER_ALL), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
}

static void vectors_in_use_stay_taken(void **state)
{
	struct fixture *f = *state;
	struct user old, next;

	assert_int_equal(use(f->w, &old, 0), 0);
	assert_int_equal(old.vector, 1);
	restart(f->w);
	assert_int_equal(use(f->w, &next, 0), 0);
	assert_int_equal(next.vector, 2);
	assert_int_not_equal(fake_vector(f->w, 1), 0);
	world_kill(f->w, old.c);
	world_run(f->w);
	assert_int_equal(fake_vector(f->w, 1), 0);
	assert_int_equal(use(f->w, &next, 0), 0);
	assert_int_equal(next.vector, 1);
	assert_int_equal(use(f->w, &next, SCI_FLAG_EXCLUSIVE), EACCES);
}

/* By hand: the borrower is on another host, and has lost the device with the daemon. */
static void distant_borrowers_end(void **state)
{
	struct fixture *f = *state;
	struct world_res *owner, *map;
	struct user next;

	fake_device_resets(f->w, false);
	owner = world_res_new(f->w, 0, SIO_KIND_OWNER, 0);
	owner->cookie = (uint64_t)FAKE_PORT_ID << 32 | 9;
	map = world_res_new(f->w, 0, SIO_KIND_DMAMAP, owner->id);
	map->device = FAKE_PORT_ID;
	restart(f->w);
	assert_int_equal(use(f->w, &next, SCI_FLAG_EXCLUSIVE), 0);
	assert_int_equal((uint32_t)next.b.id, 10);
	settle(f->w, &next, &(uint64_t){next.b.id - 1}, 1);
}

/* A borrow of a device that is no more, or that cannot be opened: nobody may have it unseen. */
static void borrows_of_no_device_end(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);

	world_res_new(f->w, 0, SIO_KIND_OWNER, c->owner)->cookie = 1ULL << 63 | 5ULL << 32 | 3;
	assert_int_equal(fake_count(f->w, SIO_KIND_OWNER, false), 2);
	restart(f->w);
	assert_int_equal(fake_count(f->w, SIO_KIND_OWNER, false), 1);
}

/* More than a page of a list. */
static void many_borrows(void **state)
{
	enum { N = 2 * SIO_LIST_MAX + 3 };
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow b;
	struct user next;

	for (unsigned i = 0; i < N; i++)
		assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	world_forget(c);
	restart(f->w);
	assert_int_equal(use(f->w, &next, SCI_FLAG_EXCLUSIVE), EACCES);
	assert_int_equal(use(f->w, &next, 0), 0);
	assert_true(next.b.id > b.id);
	check_row(f->w, next.c, b.id, SIO_ROW_LIVE, 0);
}

/* A smartiod that starts again gives what comes next another number than all before. */
static void expect_later_number(struct world *w, const struct call_borrow *last)
{
	struct world_client *c;
	struct call_borrow b;

	restart(w);
	c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, c, FDID, 0, &b), 0);
	assert_true(b.id > last->id);
}

/*
 * Numbers were used up for borrows whose owners could not be made: the port has no ids for those.
 */
static void nor_do_they_after_borrows_that_failed(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow b, last;

	for (unsigned i = 0; i < 100; i++) {
		f->w->fail_at = f->w->requests + 1;
		assert_int_not_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	}
	f->w->fail_at = f->w->requests + 2; /* while it catches up */
	assert_int_not_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	f->w->fail_at = 0;
	assert_int_equal(call_borrow(f->w, c, FDID, 0, &last), 0);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RETURN, last.handle, 0), 0);
	expect_later_number(f->w, &last);
}

/* Whoever ended before the restart has left no trace, but somebody may still know its number. */
static void numbers_of_the_dead_do_not_come_again(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *late;
	struct call_borrow b, last;

	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(call_borrow(f->w, c, FDID, 0, &last), 0);
		assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RETURN, last.handle, 0), 0);
	}
	/* Nor do those that nobody had use up the port's. */
	assert_int_equal(call_borrow(f->w, c, FDID, SCI_FLAG_EXCLUSIVE, &last), 0);
	late = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(call_borrow(f->w, late, FDID, SCI_FLAG_EXCLUSIVE, &b), EACCES);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RETURN, last.handle, 0), 0);
	assert_int_equal(call_borrow(f->w, late, FDID, 0, &last), 0);
	assert_int_equal(call_handle(f->w, late, SIO_MSG_DEV_RETURN, last.handle, 0), 0);
	expect_later_number(f->w, &last);
}

/* What only the daemon passed on is of no use any more. */
static void shared_interrupts_go(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint32_t handle, number;

	assert_int_equal(
		call_dint_create(f->w, c, 7,
				 SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN,
				 &handle, &number),
		0);
	assert_true(fake_count(f->w, SIO_KIND_IRQ, false) > 1);
	restart(f->w);
	world_kill(f->w, c);
	world_run(f->w);
	assert_int_equal(fake_count(f->w, SIO_KIND_IRQ, false), 0);
}

/* ---- at any moment ---- */

struct moment {
	uint64_t left; /* events until it comes */
	bool again;    /* the next daemon is killed, too: while it adopts */
	bool program;  /* the first program dies just then */
};

static void maybe(struct world *w, void *arg)
{
	struct moment *m = arg;

	if (m->left == 0 || --m->left)
		return;
	world_stop(w, 0);
	if (m->program && w->n_clients > 0)
		world_kill(w, &w->client[0]);
	world_restart(w, 0);
	if (m->again) {
		m->again = false;
		m->left = 7;
	}
}

static bool killed_at(uint64_t n, bool again, bool program, uint64_t seed)
{
	struct moment m = {.left = n, .again = again, .program = program};
	struct world *w = world_new(1, seed);
	struct fake_device fake;
	struct user u[3];
	bool happened;

	w->real = true;
	fake_device_add(w, &fake);
	world_start(w);
	w->before_step = maybe;
	w->before_arg = &m;
	if (use(w, &u[0], SCI_FLAG_EXCLUSIVE) == 0)
		call_handle(w, u[0].c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, u[0].b.handle, 0);
	use(w, &u[1], 0);
	world_kill(w, u[1].c);
	world_run(w);
	happened = m.left == 0;
	m.left = 0;
	world_pass(w, SMARTIOD_GRACE_NS);
	kill_all(w);
	assert_true(w->host[0].ready);
	assert_int_equal(use(w, &u[2], SCI_FLAG_EXCLUSIVE), 0);
	assert_true(u[2].access[0] & SIO_ACCESS_WRITE);
	/* By the words of the port all dead ones can be settled. */
	for (unsigned i = 0; call_device_event(u[2].c, i); i++)
		assert_int_equal(
			call_settled(w, u[2].c, u[2].b.handle,
				     sio_from_le64(call_device_event(u[2].c, i)->borrower)),
			0);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 0);
	check_all_gone(w);
	assert_int_equal(fake.bad, 0);
	world_free(w);
	return happened;
}

static void killed_at_every_event(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		uint64_t n = 1;

		while (killed_at(n, i & 1, i & 2, i & 4 ? 11 : 0))
			n++;
		assert_true(n > 30); /* the flow is as long as that */
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(device_in_use_stays_lent),
		TEST(quarantine_is_kept),
		TEST(no_reset_while_one_of_before_lives),
		TEST(reset_ends_a_quarantine_of_before),
		TEST(registers_are_nobody_elses),
		TEST(vectors_in_use_stay_taken),
		TEST(distant_borrowers_end),
		TEST(borrows_of_no_device_end),
		TEST(many_borrows),
		TEST(numbers_of_the_dead_do_not_come_again),
		TEST(nor_do_they_after_borrows_that_failed),
		TEST(shared_interrupts_go),
		cmocka_unit_test(killed_at_every_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
