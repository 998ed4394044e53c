/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to a lender whose answers are lost, because the connection breaks or a daemon is killed
 * at any step of them: they are sent again, and the program hears what it would have heard. What
 * was done twice counts once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "resume_world.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/lender/lend.h"

/* What becomes of the answer. */
enum loss { CUT, BORROWER_KILLED, LENDER_KILLED, LOSSES };

/*
 * Sends a request, and loses what is under way after @steps steps. Return: the errno of its answer.
 * *ret_over: it was answered before that.
 */
static uint32_t ask(struct fixture *f, enum loss loss, unsigned steps, uint32_t type, void *msg,
		    size_t len, bool *ret_over)
{
	const struct world_message *m;
	uint32_t id = world_send(f->w, f->c, type, msg, len);

	*ret_over = false;
	for (unsigned i = 0; i < steps && !*ret_over; i++)
		*ret_over = !world_step(f->w);
	if (loss == CUT)
		world_cut(f->w, LENDER, BORROWER);
	else
		world_restart(f->w, loss == LENDER_KILLED ? LENDER : BORROWER);
	world_pass(f->w, MEET);
	f->w->late =
		0; /* what the port was asked for first is answered behind the second request */
	world_pass(f->w, MEET);
	m = world_reply(f->c, id);
	assert_non_null(m);
	return m->error;
}

static uint32_t ask_handle(struct fixture *f, enum loss loss, unsigned steps, uint32_t type,
			   uint32_t handle, bool *ret_over)
{
	struct sio_msg_handle msg = {.handle = sio_to_le32(handle)};

	return ask(f, loss, steps, type, &msg, sizeof(msg), ret_over);
}

static void the_device_is_opened_to_others(void **state)
{
	struct fixture *f = *state;
	bool over = false;

	give_back(f);
	for (unsigned i = 0; !over; i++) {
		assert_true(i < 100);
		assert_int_equal(call_borrow(f->w, f->c, FDID, SCI_FLAG_EXCLUSIVE, &f->b), 0);
		assert_int_equal(ask_handle(f, i % LOSSES, i / LOSSES,
					    SIO_MSG_DEV_RELEASE_EXCLUSIVE, f->b.handle, &over),
				 0);
		/* Once is enough. */
		assert_int_equal(
			call_handle(f->w, f->c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, f->b.handle, 0),
			EPERM);
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RETURN, f->b.handle, 0), 0);
		world_run(f->w);
		world_forget(f->c);
	}
}

static void create_and_lose(struct fixture *f, uint32_t memtype, uint32_t flags)
{
	const uint32_t id = 9;
	uint32_t connection;
	bool over = false;

	for (unsigned i = 0; !over; i++) {
		struct sio_msg_dev_seg_create msg = {.device = sio_to_le32(f->b.handle),
						     .segment_id = sio_to_le32(id),
						     .bytes = sio_to_le64(4096),
						     .memtype = sio_to_le32(memtype),
						     .flags = sio_to_le32(flags)};
		unsigned memory = world_resources(f->w, SIO_KIND_MEM);

		assert_true(i < 100);
		f->w->late = i % 2 && flags == SCI_FLAG_DEVICE_SIDE_ONLY ? SIO_OP_ALLOC : 0;
		assert_int_equal(ask(f, i % LOSSES, i / 2 / LOSSES, SIO_MSG_DEV_SEG_CREATE, &msg,
				     sizeof(msg), &over),
				 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), memory + 1);
		assert_int_equal(
			call_dev_seg_create(f->w, f->c, f->b.handle, id, 4096, memtype, 0, flags),
			EEXIST);
		/* It is there for whoever is started again, too, before anybody connects to it. */
		world_restart(f->w, i % 2 ? LENDER : BORROWER);
		world_pass(f->w, MEET);
		assert_int_equal(call_dev_seg_connect(f->w, f->c, f->b.handle, id, memtype,
						      &connection, NULL),
				 0);
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, connection, 0), 0);
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), memory);
		world_forget(f->c);
	}
}

static void a_segment_in_the_lenders_memory(void **state)
{
	create_and_lose(*state, SCI_MEMTYPE_PRIVATE, SCI_FLAG_DEVICE_SIDE_ONLY);
	create_and_lose(*state, SCI_MEMTYPE_SHARED, SCI_FLAG_DEVICE_SIDE_ONLY);
	give_back(*state);
}

static void a_segment_in_the_borrowers_memory(void **state)
{
	create_and_lose(*state, SCI_MEMTYPE_PRIVATE, SCI_FLAG_LOCAL_ONLY);
	create_and_lose(*state, SCI_MEMTYPE_SHARED, SCI_FLAG_LOCAL_ONLY);
	give_back(*state);
}

/* The answer to HOLD is lost, or (@back) to UNHOLD: it is held as often as its program knows. */
static void hold_and_lose(struct fixture *f, bool back)
{
	bool over = false;
	uint32_t dma;
	uint64_t at, number;

	for (unsigned i = 0; !over; i++) {
		const enum loss loss = i % LOSSES;
		struct sio_msg_dev_hold msg;
		struct sio_msg_dev_unhold off;

		assert_true(i < 100);
		assert_int_equal(call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096,
						 &dma, &at),
				 0);
		msg = (struct sio_msg_dev_hold){.device = sio_to_le32(f->b.handle),
						.borrower = sio_to_le64(f->b.id),
						.ioaddr = sio_to_le64(at),
						.bytes = sio_to_le64(4096)};
		number = hold_twice(f, at);
		off = (struct sio_msg_dev_unhold){.device = sio_to_le32(f->b.handle),
						  .hold = sio_to_le64(number)};
		if (back)
			assert_int_equal(ask(f, loss, i / LOSSES, SIO_MSG_DEV_UNHOLD, &off,
					     sizeof(off), &over),
					 0);
		else
			assert_int_equal(ask(f, loss, i / LOSSES, SIO_MSG_DEV_HOLD, &msg,
					     sizeof(msg), &over),
					 0);
		for (unsigned n = back ? 1 : 3; n > 0; n--) {
			assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), EBUSY);
			assert_int_equal(call_unhold(f->w, f->c, f->b.handle, number), 0);
		}
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), 0);
		world_forget(f->c);
	}
}

static void a_mapping_is_held(void **state)
{
	hold_and_lose(*state, false);
	give_back(*state);
}

static void a_mapping_is_held_no_more(void **state)
{
	hold_and_lose(*state, true);
	give_back(*state);
}

/* The number of the vector that the lender has set. */
static uint32_t set_vector(const struct fixture *f)
{
	const struct smartiod_loan *l = smartiod_loan_find(f->w->host[LENDER].daemon, f->b.id);

	assert_true(l && l->device->lent->vectors);
	return l->device->lent->vectors->number;
}

/* @wanted: SIO_VECTOR_ANY, or the program's choice. */
static void set_and_lose(struct fixture *f, uint32_t wanted)
{
	uint32_t interrupt, number, link;
	bool over = false;

	assert_int_equal(call_plain_create(f->w, f->c, &interrupt, &number), 0);
	assert_int_equal(call_plain_connect(f->w, f->c, NODE(BORROWER), number, &link), 0);
	for (unsigned i = 0; !over; i++) {
		struct sio_msg_dev_vector msg = {.device = sio_to_le32(f->b.handle),
						 .vector = sio_to_le32(wanted),
						 .link = sio_to_le32(link)};

		assert_true(i < 200);
		f->w->late = i % 2 ? SIO_OP_VECTOR : 0;
		assert_int_equal(ask(f, i % LOSSES, i / 2 / LOSSES, SIO_MSG_DEV_VECTOR, &msg,
				     sizeof(msg), &over),
				 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 1);
		assert_int_equal(call_unvector(f->w, f->c, f->b.handle, set_vector(f)), 0);
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
		world_forget(f->c);
	}
	give_back(f);
}

static void a_vector_of_its_choice_is_set(void **state)
{
	set_and_lose(*state, 3);
}

static void any_vector_is_set(void **state)
{
	set_and_lose(*state, SIO_VECTOR_ANY);
}

/* The mapping of borrow @id, by the number that HOLD knows it by. */
static uint64_t mapping_of(const struct fixture *f, uint64_t id)
{
	const struct smartiod_loan *l = smartiod_loan_find(f->w->host[LENDER].daemon, id);

	assert_true(l && l->dmas);
	return l->dmas->by_id.key;
}

static const struct smartiod_peer *peer_of_lender(const struct fixture *f, unsigned host)
{
	return smartiod_peer_find(f->w->host[LENDER].daemon, NODE(host));
}

/* The lender is started again, and has met @host, which has not reported all. */
static void lender_meets(struct fixture *f, unsigned host)
{
	world_restart(f->w, LENDER);
	while (peer_of_lender(f, host)->state != SMARTIOD_PEER_READY)
		if (!world_step(f->w))
			world_tick(f->w, 1000000);
	assert_true(peer_of_lender(f, host)->expected);
}

/* Who borrowed exclusively has had the registers alone since: no other borrow has pinned memory. */
static void who_never_had_the_registers_holds_nothing(void **state)
{
	struct fixture *f = *state;
	struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	struct sio_peer_resume_hold lie = {.fdid = sio_to_le32(FDID), .count = sio_to_le32(1)};
	struct call_borrow other;
	uint32_t segment, dma;

	give_back(f);
	assert_int_equal(call_borrow(f->w, f->c, FDID, SCI_FLAG_EXCLUSIVE, &f->b), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, f->b.handle, 0), 0);
	assert_int_equal(call_borrow(f->w, third, FDID, 0, &other), 0);
	assert_int_equal(call_seg_export(f->w, third, 5, 4096, &segment), 0);
	assert_int_equal(call_dma_map(f->w, third, other.handle, segment, 0, 0, 4096, &dma), 0);
	lie.borrower = sio_to_le64(other.id);
	lie.hold = sio_to_le64(mapping_of(f, other.id));
	lie.generation = sio_to_le32(other.generation);
	lender_meets(f, 2);
	message(f, LENDER, 2, SIO_PEER_RESUME_HOLD, &lie, sizeof(lie));
	world_pass(f->w, MEET);
	assert_int_equal(call_handle(f->w, third, SIO_MSG_DMA_UNMAP, dma, 0), 0);
}

/* A pin outlives the borrow that took it, and the lender's daemon, which is told of it. */
static void a_pin_outlives_its_borrow(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, BORROWER, SIO_CLIENT_LIBRARY);
	struct call_borrow b;
	uint32_t bar, map, access[4], dma;
	uint64_t at, number;

	assert_int_equal(
		call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096, &dma, &at), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, f->bar_map, 0), 0);
	call_take(f->w, other, FDID, 0, &b, &bar, &map, access);
	assert_int_equal(call_hold(f->w, other, b.handle, f->b.id, at, 4096, &number), 0);
	library_gone(other);
	world_kill(f->w, other);
	world_run(f->w);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), EBUSY);
		if (i == 1)
			world_cut(f->w, LENDER, BORROWER);
		else
			world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
	}
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), EBUSY);
	assert_int_equal(call_bar_map(f->w, f->c, f->bar, 0, &f->bar_map, f->access), 0);
	assert_int_equal(call_unhold(f->w, f->c, f->b.handle, number), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), 0);
	give_back(f);
}

/* A program of @host is connected to shared segment 9 of the device, and has mapped it. */
static struct world_client *connected(struct fixture *f, unsigned host, uint32_t *ret_borrow,
				      uint32_t *ret_connection)
{
	struct world_client *c = world_client(f->w, host, SIO_CLIENT_LIBRARY);
	struct call_borrow b;
	uint32_t map;

	assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	assert_int_equal(call_dev_seg_connect(f->w, c, b.handle, 9, SCI_MEMTYPE_SHARED,
					      ret_connection, NULL),
			 0);
	assert_int_equal(call_seg_map(f->w, c, *ret_connection, 0, 4096, &map), 0);
	*ret_borrow = b.handle;
	world_forget(c);
	return c;
}

/* Return: it can still be mapped, and nobody was told anything. */
static void expect_connected(struct fixture *f, struct world_client *c, uint32_t connection)
{
	uint32_t map;

	assert_null(world_event(c, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_null(call_device_event(c, 0));
	assert_int_equal(call_seg_map(f->w, c, connection, 0, 4096, &map), 0);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_SEG_UNMAP, map, 0), 0);
}

static void a_connection_outlives_its_borrow(void **state)
{
	struct fixture *f = *state;
	struct world_client *c[2];
	uint32_t borrow, connection[2];

	assert_int_equal(call_dev_seg_create(f->w, f->c, f->b.handle, 9, 4096, SCI_MEMTYPE_SHARED,
					     0, SCI_FLAG_DEVICE_SIDE_ONLY),
			 0);
	for (unsigned i = 0; i < 2; i++) {
		c[i] = connected(f, i ? 2 : BORROWER, &borrow, &connection[i]);
		assert_int_equal(call_handle(f->w, c[i], SIO_MSG_DEV_RETURN, borrow, 0), 0);
	}
	for (unsigned turn = 0; turn < 4; turn++) {
		if (turn % 2)
			world_restart(f->w, LENDER);
		else
			world_cut(f->w, LENDER, turn ? 2 : BORROWER);
		world_pass(f->w, MEET);
		for (unsigned i = 0; i < 2; i++)
			expect_connected(f, c[i], connection[i]);
	}
}

static struct world_client *returned(struct fixture *f, uint32_t *ret_connection)
{
	struct world_client *c = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow b;

	assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	assert_int_equal(call_dev_seg_connect(f->w, c, b.handle, 9, SCI_MEMTYPE_SHARED,
					      ret_connection, NULL),
			 0);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
	world_forget(c);
	return c;
}

/* It maps nothing. Its host is met with the maker's, or before it. */
static void a_connection_without_a_map_outlives_its_borrow(void **state)
{
	struct fixture *f = *state;
	struct world_client *c;
	uint32_t connection;

	assert_int_equal(call_dev_seg_create(f->w, f->c, f->b.handle, 9, 4096, SCI_MEMTYPE_SHARED,
					     0, SCI_FLAG_DEVICE_SIDE_ONLY),
			 0);
	c = returned(f, &connection);
	for (unsigned turn = 0; turn < 4; turn++) {
		f->w->lossy = true;
		if (turn % 2)
			world_stop(f->w, BORROWER);
		world_run(f->w);
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
		if (turn % 2)
			world_restart(f->w, BORROWER);
		world_pass(f->w, MEET);
		expect_connected(f, c, connection);
	}
}

/* Nobody else can have been connected to what is of who has the device alone. */
static void nobody_else_was_connected(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_resume_dev_seg lie = {.fdid = sio_to_le32(FDID),
					      .borrower = sio_to_le64(1),
					      .connection = sio_to_le64(77)};
	struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	const struct smartiod_dev_seg *s;

	give_back(f);
	assert_int_equal(call_borrow(f->w, f->c, FDID, SCI_FLAG_EXCLUSIVE, &f->b), 0);
	assert_int_equal(call_dev_seg_create(f->w, f->c, f->b.handle, 9, 4096, SCI_MEMTYPE_SHARED,
					     0, SCI_FLAG_DEVICE_SIDE_ONLY),
			 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		unsigned last = turn ? 2 : BORROWER;

		f->w->lossy = true;
		world_stop(f->w, last);
		world_run(f->w);
		if (turn)
			world_restart(f->w, LENDER);
		else
			lender_meets(f, 2);
		if (turn) /* the maker is met first */
			world_pass(f->w, MEET);
		if (turn)
			world_restart(f->w, 2);
		while (peer_of_lender(f, 2)->state != SMARTIOD_PEER_READY)
			if (!world_step(f->w))
				world_tick(f->w, 1000000);
		assert_true(peer_of_lender(f, 2)->expected);
		s = smartiod_loan_find(f->w->host[LENDER].daemon, f->b.id)->device->lent->segs;
		assert_non_null(s);
		lie.uid = sio_to_le64(s->uid);
		message(f, LENDER, 2, SIO_PEER_RESUME_DEV_SEG, &lie, sizeof(lie));
		if (!turn)
			world_restart(f->w, BORROWER);
		world_pass(f->w, MEET);
		s = smartiod_loan_find(f->w->host[LENDER].daemon, f->b.id)->device->lent->segs;
		assert_false(smartiod_segment_has_ref(s->segment, NODE(2), 77));
	}
	assert_null(call_device_event(f->c, 0));
	library_gone(third);
	world_kill(f->w, third);
}

/* The third host's daemon, or the lender's own program, is there before the segment's maker. */
static void a_connection_is_reported_before_the_maker(void **state)
{
	struct fixture *f = *state;
	struct world_client *c[2];
	uint32_t borrow, connection[2];

	assert_int_equal(call_dev_seg_create(f->w, f->c, f->b.handle, 9, 4096, SCI_MEMTYPE_SHARED,
					     0, SCI_FLAG_DEVICE_SIDE_ONLY),
			 0);
	for (unsigned i = 0; i < 2; i++)
		c[i] = connected(f, i ? 2 : LENDER, &borrow, &connection[i]);
	for (unsigned turn = 0; turn < 2; turn++) {
		f->w->lossy = true;
		world_stop(f->w, BORROWER);
		world_run(f->w);
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
		for (unsigned i = 0; i < 2; i++)
			expect_connected(f, c[i], connection[i]);
		world_restart(f->w, BORROWER);
		world_pass(f->w, MEET);
		for (unsigned i = 0; i < 2; i++)
			expect_connected(f, c[i], connection[i]);
	}
}

/* The last connection that the lender knows of ends, before it has heard of all. */
static void a_connection_ends_before_another_is_reported(void **state)
{
	struct fixture *f = *state;
	struct world_client *c[2];
	uint32_t borrow, connection[2];

	assert_int_equal(call_dev_seg_create(f->w, f->c, f->b.handle, 9, 4096, SCI_MEMTYPE_SHARED,
					     0, SCI_FLAG_DEVICE_SIDE_ONLY),
			 0);
	for (unsigned i = 0; i < 2; i++)
		c[i] = connected(f, i ? 2 : BORROWER, &borrow, &connection[i]);
	f->w->lossy = true;
	world_stop(f->w, BORROWER);
	world_run(f->w);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	expect_connected(f, c[1], connection[1]);
	library_gone(c[1]);
	world_kill(f->w, c[1]);
	world_run(f->w);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	expect_connected(f, c[0], connection[0]);
	/* And then it ends with the last one. */
	library_gone(c[0]);
	world_kill(f->w, c[0]);
	world_run(f->w);
	assert_int_equal(call_dev_seg_connect(f->w, f->c, f->b.handle, 9, SCI_MEMTYPE_SHARED,
					      &connection[0], NULL),
			 ENOENT);
}

/* The segment lies in its maker's memory, whose daemon is started again. */
static void a_third_host_is_connected_to_the_makers_memory(void **state)
{
	struct fixture *f = *state;
	struct world_client *c;
	uint32_t borrow, connection;

	assert_int_equal(call_dev_seg_create(f->w, f->c, f->b.handle, 9, 4096, SCI_MEMTYPE_SHARED,
					     0, SCI_FLAG_LOCAL_ONLY),
			 0);
	c = connected(f, 2, &borrow, &connection);
	for (unsigned host = 0; host < 3; host++) {
		world_restart(f->w, host);
		world_pass(f->w, MEET);
		expect_connected(f, c, connection);
	}
}

/* It greets, and then says nothing: it is lost, and nothing waits for it any more. */
static void who_does_not_report_is_lost(void **state)
{
	struct fixture *f = *state;

	lender_meets(f, BORROWER);
	f->w->lossy = f->w->drop_peer_messages = true;
	world_pass(f->w, SMARTIOD_EXPECT_NS - 1);
	assert_true(peer_of_lender(f, BORROWER)->expected);
	assert_non_null(smartiod_loan_find(f->w->host[LENDER].daemon, f->b.id));
	world_pass(f->w, MEET);
	assert_false(peer_of_lender(f, BORROWER)->expected);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_DMAMAP), 0);
	f->w->drop_peer_messages = false;
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	expect_lost(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_device_is_opened_to_others),
		TEST(a_segment_in_the_lenders_memory),
		TEST(a_segment_in_the_borrowers_memory),
		TEST(a_mapping_is_held),
		TEST(a_mapping_is_held_no_more),
		TEST(a_vector_of_its_choice_is_set),
		TEST(any_vector_is_set),
		TEST(who_never_had_the_registers_holds_nothing),
		TEST(a_pin_outlives_its_borrow),
		TEST(a_connection_outlives_its_borrow),
		TEST(a_connection_without_a_map_outlives_its_borrow),
		TEST(nobody_else_was_connected),
		TEST(a_connection_is_reported_before_the_maker),
		TEST(a_connection_ends_before_another_is_reported),
		TEST(a_third_host_is_connected_to_the_makers_memory),
		TEST(who_does_not_report_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
