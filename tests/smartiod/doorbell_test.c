/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The word that a device was reset takes the doorbells from all who have them, and a request for
 * them that is under way brings none of before.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"

#define FDID 0x400001
#define MANAGER 1
#define DOORBELL_PAGE 1u
#define CLOSE_AGAIN_NS 10000000ull /* quarantine.c */

/* Whose stores reach the lender by a window; or the lender's own program. */
struct fixture {
	struct world *w;
	struct fake_device device;
	struct world_client *manager, *client;
	struct call_borrow m, c;
	uint32_t bar_m, map_m, bar_c, map_c;
	uint32_t access[4];
};

static void start(struct fixture *f, unsigned client_host, bool iommu)
{
	struct world *w = world_new(3, 1);

	memset(f, 0, sizeof(*f));
	f->w = w;
	w->iommu = iommu;
	fake_device_add(w, &f->device);
	world_start(w);
	f->manager = world_client(w, MANAGER, SIO_CLIENT_LIBRARY);
	f->client = world_client(w, client_host, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, f->manager, FDID, 0, &f->m), 0);
	assert_int_equal(call_borrow(w, f->client, FDID, 0, &f->c), 0);
	assert_int_equal(call_dev_seg_connect(w, f->manager, f->m.handle, 0, SCI_MEMTYPE_BAR,
					      &f->bar_m, NULL),
			 0);
	assert_int_equal(call_dev_seg_connect(w, f->client, f->c.handle, 0, SCI_MEMTYPE_BAR,
					      &f->bar_c, NULL),
			 0);
	assert_int_equal(call_bar_map(w, f->manager, f->bar_m, 0, &f->map_m, f->access), 0);
}

static void map(struct fixture *f)
{
	assert_int_equal(call_bar_map(f->w, f->client, f->bar_c, 0, &f->map_c, f->access), 0);
	assert_int_equal(f->access[DOORBELL_PAGE], SIO_ACCESS_READ | SIO_ACCESS_WRITE);
}

static int unmap(struct fixture *f)
{
	return call_handle(f->w, f->client, SIO_MSG_SEG_UNMAP, f->map_c, 0);
}

static void finish(struct fixture *f)
{
	struct world *w = f->w;

	f->device.reset_error = 0;
	world_kill(w, f->client);
	world_kill(w, f->manager);
	world_run(w);
	call_last_reset(w, FDID);
	assert_nothing_left(w);
	assert_int_equal(f->device.bad, 0);
	assert_int_equal(w->bad_ends, 0);
	assert_int_equal(w->wild, 0);
	world_free(w);
}

/* Views of doorbells that the port has, and that lead to them. */
static unsigned views(const struct fixture *f, bool that_lead_there)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next)
		if (r->kind == SIO_KIND_BAR && r->address >= FAKE_BAR_ADDRESS + 0x1000)
			n += !that_lead_there || !r->cut;
	return n;
}

static unsigned windows(const struct fixture *f)
{
	return world_resources(f->w, SIO_KIND_MAP);
}

/* Nobody waits for the stores to a map that leads nowhere. */
static void expect_unwatched(struct fixture *f)
{
	struct sio_msg_seg_watch msg = {.map = sio_to_le32(f->map_c),
					.kind = sio_to_le32(SIO_WATCH_TIMER),
					.offset = sio_to_le64(DOORBELL_PAGE * 4096),
					.bytes = sio_to_le64(4096)};
	const struct world_message *m =
		world_call(f->w, f->client, SIO_MSG_SEG_WATCH, &msg, sizeof(msg));

	assert_non_null(m);
	assert_int_equal(m->error, 0);
	assert_int_equal(call_watch(f->w, f->client, f->map_c, SIO_WATCH_EVENT, DOORBELL_PAGE, 0),
			 ERANGE);
	assert_int_equal(world_resources(f->w, SIO_KIND_WATCH), 0);
}

static int settle_all(struct fixture *f)
{
	return call_settled(f->w, f->manager, f->m.handle, SIO_BORROWER_ALL);
}

/* On another host, with and without an IOMMU at the lender; on the lender. */
static void start_kind(struct fixture *f, unsigned kind)
{
	start(f, kind == 2 ? 0 : 2, kind == 1);
}

static void all_are_closed(void **state)
{
	struct fixture f;
	uint32_t before;

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		start_kind(&f, kind);
		map(&f);
		assert_int_equal(
			call_watch(f.w, f.client, f.map_c, SIO_WATCH_TIMER, DOORBELL_PAGE, 0), 0);
		assert_int_equal(views(&f, false), 2);
		assert_int_equal(settle_all(&f), 0);
		assert_int_equal(views(&f, false), 0);
		assert_int_equal(world_resources(f.w, SIO_KIND_WATCH), 0);
		/* Of registers: the manager's, and what the client reads. */
		assert_int_equal(world_resources(f.w, SIO_KIND_BAR), 2);
		assert_int_equal(windows(&f), kind == 2 ? 1 : 2);
		expect_unwatched(&f);
		before = f.map_c;
		map(&f);
		assert_int_equal(views(&f, true), 1);
		assert_int_equal(call_handle(f.w, f.client, SIO_MSG_SEG_UNMAP, before, 0), 0);
		assert_int_equal(views(&f, true), 1);
		assert_int_equal(unmap(&f), 0);
		assert_int_equal(views(&f, false), 0);
		finish(&f);
	}
}

/*
 * Who has borrowed it alone may have it reset and keep them, over a window too: so a virtual
 * machine does, whose emulator maps them once.
 */
static void a_restart_leaves_them(void **state)
{
	const struct sio_evm_device *e;
	struct fixture f = {0};

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		f.w = world_new(3, 1);
		f.w->iommu = kind == 1;
		fake_device_add(f.w, &f.device);
		world_start(f.w);
		f.manager = world_client(f.w, MANAGER, SIO_CLIENT_LIBRARY);
		f.client = world_client(f.w, kind == 2 ? 0 : 2, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_borrow(f.w, f.client, FDID, SCI_FLAG_EXCLUSIVE, &f.c), 0);
		assert_int_equal(call_dev_seg_connect(f.w, f.client, f.c.handle, 0, SCI_MEMTYPE_BAR,
						      &f.bar_c, NULL),
				 0);
		map(&f);
		for (unsigned n = 0; n < 2; n++) {
			assert_int_equal(call_handle(f.w, f.client, SIO_MSG_DEV_RESET, f.c.handle,
						     SIO_RESET_KEEP),
					 0);
			e = call_device_event(f.client, n);
			assert_non_null(e);
			assert_int_equal(sio_from_le32(e->event), SIO_DEVICE_EV_RESET);
			assert_int_equal(views(&f, true), 1);
			assert_int_equal(windows(&f), kind == 2 ? 0 : 2);
		}
		assert_int_equal(call_handle(f.w, f.client, SIO_MSG_DEV_RESET, f.c.handle, 0), 0);
		assert_int_equal(views(&f, false), 0);
		assert_int_equal(windows(&f), kind == 2 ? 0 : 1);
		finish(&f);
	}
}

/* A port that does not know what they are: smartiod's word is all that it gets. */
static void whatever_the_port_knows(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 0, false);
	f.device.ignorant = true;
	assert_int_equal(call_handle(f.w, f.manager, SIO_MSG_SEG_UNMAP, f.map_m, 0), 0);
	map(&f); /* the registers, too */
	assert_int_equal(views(&f, true), 1);
	assert_int_equal(call_settled(f.w, f.client, f.c.handle, SIO_BORROWER_ALL), 0);
	assert_int_equal(views(&f, false), 0);
	assert_int_equal(call_handle(f.w, f.client, SIO_MSG_DEV_RESET, f.c.handle, 0), 0);
	map(&f);
	assert_int_equal(views(&f, true), 1);
	finish(&f);
}

/* Nobody hears of the reset before the views are closed, however long that takes. */
static void a_port_without_memory_is_asked_again(void **state)
{
	struct sio_msg_dev_settled word = {.borrower = sio_to_le64(SIO_BORROWER_ALL)};
	const struct world_message *rep;
	struct fixture f;
	struct world_client *asker;
	uint32_t settled;

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		start_kind(&f, kind);
		asker = f.manager;
		word.device = sio_to_le32(f.m.handle);
		if (kind == 2) { /* nobody's window leads to a port that does not know them */
			f.device.ignorant = true;
			asker = f.client; /* who has the registers then */
			word.device = sio_to_le32(f.c.handle);
			assert_int_equal(call_handle(f.w, f.manager, SIO_MSG_SEG_UNMAP, f.map_m, 0),
					 0);
		}
		map(&f);
		f.device.no_memory = 3;
		settled = world_send(f.w, asker, SIO_MSG_DEV_SETTLED, &word, sizeof(word));
		world_run(f.w);
		for (unsigned left = 2; left > 0; left--) {
			assert_int_equal(f.device.no_memory, left);
			assert_int_equal(views(&f, false), kind == 2 ? 1 : 2);
			assert_null(call_device_event(f.client, 0));
			assert_null(world_reply(asker, settled));
			world_pass(f.w, CLOSE_AGAIN_NS - 1);
			assert_int_equal(f.device.no_memory, left);
			world_pass(f.w, 1);
		}
		world_pass(f.w, CLOSE_AGAIN_NS);
		assert_int_equal(views(&f, false), 0);
		assert_non_null(call_device_event(f.client, 0));
		rep = world_reply(asker, settled);
		assert_non_null(rep);
		assert_int_equal(rep->error, 0);
		map(&f);
		assert_int_equal(views(&f, true), 1);
		finish(&f);
	}
}

/*
 * The port lists the new generation before the reset is reported: who compares then finds a device
 * that was reset, and not one that went and came back.
 */
static void a_look_meanwhile_takes_it_for_no_other(void **state)
{
	struct sio_msg_dev_settled word = {.borrower = sio_to_le64(SIO_BORROWER_ALL)};
	struct sio_evt_overflow evt = {.faults = 0};
	const struct world_message *rep;
	const struct sio_evm_device *e;
	struct fixture f;
	uint32_t settled;

	(void)state;
	start_kind(&f, 0);
	word.device = sio_to_le32(f.m.handle);
	map(&f);
	f.device.no_memory = 1; /* the doorbells are not closed yet */
	settled = world_send(f.w, f.manager, SIO_MSG_DEV_SETTLED, &word, sizeof(word));
	world_run(f.w);
	assert_null(world_reply(f.manager, settled));
	world_port_event(f.w, 0, SIO_EV_OVERFLOW, 0, &evt, sizeof(evt));
	world_run(f.w);
	assert_null(call_device_event(f.client, 0));
	world_pass(f.w, CLOSE_AGAIN_NS);
	rep = world_reply(f.manager, settled);
	assert_non_null(rep);
	assert_int_equal(rep->error, 0);
	e = call_device_event(f.client, 0);
	assert_non_null(e);
	assert_int_not_equal(sio_from_le32(e->event), SIO_DEVICE_EV_LOST);
	map(&f);
	assert_int_equal(views(&f, true), 1);
	finish(&f);
}

static void a_reset_that_fails_takes_nothing(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		start_kind(&f, kind);
		map(&f);
		f.device.reset_error = -ENOMEM;
		assert_int_equal(settle_all(&f), ENOMEM);
		assert_int_equal(call_handle(f.w, f.manager, SIO_MSG_DEV_RESET, f.m.handle, 0),
				 ENOMEM);
		assert_int_equal(views(&f, true), 2);
		assert_null(call_device_event(f.client, 0));
		assert_int_equal(unmap(&f), 0);
		assert_int_equal(views(&f, true), 1);
		map(&f);
		f.device.reset_error = 0;
		assert_int_equal(settle_all(&f), 0);
		assert_int_equal(views(&f, false), 0);
		assert_non_null(call_device_event(f.client, 0));
		finish(&f);
	}
}

/* What a program heard first. */
static const struct world_client *listener;
static uint32_t awaited;
static unsigned heard, reset_heard, reply_heard;

static void hear(struct world *w, struct world_client *c, const struct world_message *m)
{
	(void)w;
	if (c != listener)
		return;
	heard++;
	if (m->type == SIO_EVM_DEVICE)
		reset_heard = heard;
	if (awaited && m->id == awaited && m->type != SIO_EVM_DEVICE)
		reply_heard = heard;
}

/*
 * At each step of the map's making, and of the reset's: who has the map before he hears of the
 * reset has lost its doorbells, who has it afterwards has new ones.
 */
static bool reset_at(unsigned kind, unsigned steps, unsigned head_start, bool fails)
{
	struct sio_msg_seg_map msg = {.bytes = sio_to_le64(16384)};
	struct sio_msg_dev_settled word = {.borrower = sio_to_le64(SIO_BORROWER_ALL)};
	const struct world_message *rep;
	struct fixture f;
	bool more = true;
	uint32_t settled;

	start_kind(&f, kind);
	f.device.reset_error = fails ? -ENOMEM : 0;
	f.w->random = steps;
	word.device = sio_to_le32(f.m.handle);
	msg.handle = sio_to_le32(f.bar_c);
	awaited = 0;
	listener = f.client;
	heard = reset_heard = reply_heard = 0;
	f.w->on_message = hear;
	settled = head_start ? world_send(f.w, f.manager, SIO_MSG_DEV_SETTLED, &word, sizeof(word))
			     : 0;
	for (unsigned i = 0; i + 1 < head_start; i++)
		world_step(f.w);
	awaited = world_send(f.w, f.client, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
	for (unsigned i = 0; more && i < steps; i++)
		more = world_step(f.w);
	if (!head_start)
		settled = world_send(f.w, f.manager, SIO_MSG_DEV_SETTLED, &word, sizeof(word));
	world_run(f.w);
	f.w->on_message = NULL;
	rep = world_reply(f.manager, settled);
	assert_non_null(rep);
	assert_int_equal(rep->error, fails ? ENOMEM : 0);
	rep = world_reply(f.client, awaited);
	assert_non_null(rep);
	assert_int_equal(rep->error, 0);
	f.map_c = sio_from_le32(((const struct sio_rep_seg_map *)(const void *)rep->data)->map);
	if (fails) {
		assert_int_equal(reset_heard, 0);
		assert_int_equal(views(&f, true), 2);
	} else {
		assert_true(reset_heard && reply_heard);
		assert_int_equal(views(&f, true), reply_heard > reset_heard);
	}
	assert_int_equal(views(&f, false), views(&f, true));
	assert_int_equal(unmap(&f), 0);
	assert_int_equal(views(&f, false), fails);
	finish(&f);
	return more;
}

static void a_map_that_is_made_meanwhile_is_of_before_or_behind(void **state)
{
	(void)state;
	for (unsigned fails = 0; fails < 2; fails++)
		for (unsigned kind = 0; kind < 3; kind++) {
			for (unsigned steps = 0; reset_at(kind, steps, 0, fails); steps++)
				assert_true(steps < 100);
			for (unsigned head = 1; head < 40; head++)
				reset_at(kind, 0, head, fails);
		}
}

/* Whoever asks for them, and those who have them, may end meanwhile. */
static void any_of_them_may_end_meanwhile(void **state)
{
	struct sio_msg_seg_map msg = {.bytes = sio_to_le64(16384)};
	struct sio_msg_dev_settled word = {.borrower = sio_to_le64(SIO_BORROWER_ALL)};
	struct fixture f;

	(void)state;
	for (unsigned kind = 0; kind < 3; kind++)
		for (unsigned steps = 0; steps < 120; steps++) {
			start_kind(&f, kind);
			map(&f);
			msg.handle = sio_to_le32(f.bar_c);
			word.device = sio_to_le32(f.m.handle);
			world_send(f.w, f.manager, SIO_MSG_DEV_SETTLED, &word, sizeof(word));
			for (unsigned i = 0; i < steps % 4; i++)
				world_step(f.w);
			world_send(f.w, f.client, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
			for (unsigned i = 0; i < steps / 8; i++)
				world_step(f.w);
			world_kill(f.w, steps / 4 % 2 ? f.client : f.manager);
			world_run(f.w);
			assert_int_equal(views(&f, false), views(&f, true));
			assert_true(views(&f, true) <= 1);
			finish(&f);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_closed),
		cmocka_unit_test(a_restart_leaves_them),
		cmocka_unit_test(whatever_the_port_knows),
		cmocka_unit_test(a_port_without_memory_is_asked_again),
		cmocka_unit_test(a_look_meanwhile_takes_it_for_no_other),
		cmocka_unit_test(a_reset_that_fails_takes_nothing),
		cmocka_unit_test(a_map_that_is_made_meanwhile_is_of_before_or_behind),
		cmocka_unit_test(any_of_them_may_end_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
