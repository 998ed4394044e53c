/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One flow of manager, client and lender, cut at every event (or one in WORLD_STRIDE): a program
 * killed, a host crashed; and with each request of the port refused. Whatever the moment, nothing
 * may be left once the rest is settled.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartio/ext.h"

#define FDID 0x400001
#define SQ (SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE)
#define CQ (SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ)

enum cut {
	KILL_CLIENT,
	KILL_MANAGER,
	CRASH_CLIENT,
	CRASH_MANAGER,
	CRASH_LENDER,
	LINK_DOWN,
	CUT_CLIENT,
	CUT_MANAGER,
	CUT_TWICE,
	LINK_AND_CUT,
	PULL_OUT,
	PULL_AND_PUT,
	CUTS
};

struct death {
	struct fake_device fake;
	struct world_client *manager, *client, *neighbour; /* on hosts 1, 2, 0 */
	enum cut cut;
	uint64_t left;		  /* events until it happens */
	unsigned later;		  /* events since then, if daemons were cut */
	uint32_t managers_borrow; /* handle; 0: none */
	unsigned held, vectors;	  /* how many holds and vectors were given */
};

/* Daemons that lost each other find each other again, while the rest goes on. */
static void after_cut(struct world *w, struct death *t)
{
	if (t->later == 0)
		return;
	world_tick(w, 5000000);
	if (++t->later == 12 && t->cut == CUT_TWICE)
		world_cut(w, 0, 2);
}

static void maybe_cut(struct world *w, void *arg)
{
	struct death *t = arg;

	after_cut(w, t);
	if (t->left == 0 || --t->left)
		return;
	t->later = t->cut >= CUT_CLIENT && t->cut <= LINK_AND_CUT;
	switch (t->cut) {
	case KILL_CLIENT:
		world_kill(w, t->client);
		break;
	case KILL_MANAGER:
		world_kill(w, t->manager);
		break;
	case CRASH_CLIENT:
		world_crash(w, 2);
		break;
	case CRASH_MANAGER:
		world_crash(w, 1);
		break;
	case CRASH_LENDER:
		world_crash(w, 0);
		break;
	case LINK_DOWN:
		world_link(w, 0, 2, false);
		break;
	case CUT_MANAGER:
		world_cut(w, 0, 1);
		break;
	case LINK_AND_CUT:
		world_link(w, 0, 2, false);
		world_cut(w, 0, 2);
		break;
	case CUT_CLIENT:
	case CUT_TWICE:
		world_cut(w, 0, 2);
		break;
	case PULL_AND_PUT:
		fake_device_move(w, false);
		fake_device_move(w, true);
		break;
	case PULL_OUT:
		fake_device_move(w, false);
		break;
	case CUTS:
		break;
	}
}

/* Vectors that trigger interrupts of all three hosts; what is left of them ends with the borrow. */
static void vectors(struct world *w, struct death *t, uint32_t device, bool tidy)
{
	static const uint32_t node[] = {4, 8, 12};
	struct world_client *owner[] = {t->neighbour, t->manager, t->client};
	uint32_t interrupt = 0, number = 0, link = 0;

	for (unsigned i = 0; i < 3; i++) {
		uint32_t vector = SIO_VECTOR_ANY;

		call_plain_create(w, owner[i], &interrupt, &number);
		call_plain_connect(w, t->client, node[i], number, &link);
		t->vectors += call_vector(w, t->client, device, &vector, link) == 0;
		call_handle(w, t->client, SIO_MSG_DINT_DISCONNECT, link, 0);
		if (tidy && i != 1)
			call_unvector(w, t->client, device, vector);
		if (tidy && i == 2)
			call_handle(w, t->client, SIO_MSG_DINT_REMOVE, interrupt, 0);
	}
}

/* A queue pair's life. Calls may fail: somebody may be dead. */
static void queue_pair(struct world *w, struct death *t, uint32_t id)
{
	struct world_client *c = t->client;
	struct call_borrow b = {.id = 0};
	uint32_t bar = 0, map = 0, access[4], sq = 0, cq = 0, data = 0, m[3] = {0};
	uint64_t at[2] = {0}, hold[2] = {0};

	if (call_borrow(w, c, FDID, 0, &b) != 0)
		return;
	call_dev_seg_connect(w, c, b.handle, 0, SCI_MEMTYPE_BAR, &bar, NULL);
	call_bar_map(w, c, bar, 0, &map, access);
	call_watch(w, c, map, SIO_WATCH_FAULT, 1, 1);
	call_watch(w, c, map, SIO_WATCH_EVENT, 1, 0);
	call_dev_seg_create(w, c, b.handle, id, 8192, SCI_MEMTYPE_PRIVATE, SQ, 0);
	call_dev_seg_create(w, c, b.handle, id + 1, 4096, SCI_MEMTYPE_SHARED, CQ, 0);
	call_dev_seg_connect(w, c, b.handle, id, SCI_MEMTYPE_PRIVATE, &sq, NULL);
	call_dev_seg_connect(w, c, b.handle, id + 1, SCI_MEMTYPE_SHARED, &cq, NULL);
	call_seg_export(w, c, id, 65536, &data);
	call_dma_map_at(w, c, b.handle, sq, 1, 0, 8192, &m[0], &at[0]);
	call_dma_map_at(w, c, b.handle, cq, 1, 0, 4096, &m[1], &at[1]);
	for (unsigned i = 0; i < 2; i++)
		t->held += call_hold(w, t->manager, t->managers_borrow, b.id, at[i], 4096,
				     &hold[i]) == 0;
	call_dma_map(w, c, b.handle, data, 0, 0, 65536, &m[2]);
	vectors(w, t, b.handle, !(id & 1));
	if (id & 1)
		return; /* this one leaves all behind */
	for (unsigned i = 0; i < 2; i++)
		call_unhold(w, t->manager, t->managers_borrow, hold[i]);
	for (unsigned i = 0; i < 3; i++)
		call_handle(w, c, SIO_MSG_DMA_UNMAP, m[i], 0);
	call_handle(w, c, SIO_MSG_SEG_DISCONNECT, sq, 0);
	call_handle(w, c, SIO_MSG_SEG_DISCONNECT, cq, 0);
	call_handle(w, c, SIO_MSG_SEG_REMOVE, data, 0);
	call_handle(w, c, SIO_MSG_SEG_UNMAP, map, 0);
	call_handle(w, c, SIO_MSG_SEG_DISCONNECT, bar, 0);
	call_handle(w, c, SIO_MSG_DEV_RETURN, b.handle, 0);
}

static void play(struct world *w, struct death *t)
{
	struct call_borrow b = {.id = 0};
	uint32_t bar = 0, map = 0, seg = 0, access[4];

	if (call_borrow(w, t->manager, FDID, SCI_FLAG_EXCLUSIVE, &b) == 0) {
		call_dev_seg_connect(w, t->manager, b.handle, 0, SCI_MEMTYPE_BAR, &bar, NULL);
		call_bar_map(w, t->manager, bar, 0, &map, access);
		call_watch(w, t->manager, map, SIO_WATCH_FAULT, 0, 1);
		call_watch(w, t->manager, map, SIO_WATCH_TIMER, 1, 0);
		call_settled(w, t->manager, b.handle, SIO_BORROWER_ALL);
		call_handle(w, t->manager, SIO_MSG_DEV_RELEASE_EXCLUSIVE, b.handle, 0);
		t->managers_borrow = b.handle;
	}
	/* The memory of its admin queue, say. */
	call_dev_seg_create(w, t->manager, b.handle, 3, 4096, SCI_MEMTYPE_SHARED, SQ,
			    SMARTIO_FLAG_LASTING);
	if (call_dev_seg_connect(w, t->manager, b.handle, 3, SCI_MEMTYPE_SHARED, &seg, NULL) == 0)
		call_dma_map(w, t->manager, b.handle, seg, 1, 0, 4096, &map);
	queue_pair(w, t, 10);
	queue_pair(w, t, 21);
	world_kill(w, t->client);
	world_run(w);
	if (call_device_event(t->manager, 0))
		for (unsigned i = 0; call_device_event(t->manager, i); i++)
			call_settled(w, t->manager, b.handle,
				     sio_from_le64(call_device_event(t->manager, i)->borrower));
}

/* Nobody uses it any more: with the device goes all that waited for its word. */
static void pulled_out(struct world *w)
{
	fake_device_move(w, true);
	world_run(w);
	fake_device_move(w, false);
	world_run(w);
	assert_nothing_left(w);
	fake_device_move(w, true);
	world_run(w);
}

/* Everybody comes back; a new manager resets; then all must be gone. */
static void check_all_gone(struct world *w, struct death *t)
{
	struct world_client *c;
	struct call_borrow b;

	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
	for (unsigned i = 0; i < w->n_hosts; i++)
		if (!w->host[i].daemon)
			world_boot(w, i);
	world_link(w, 0, 2, true);
	world_pass(w, 100000000);
	if (t->cut == PULL_OUT || t->cut == PULL_AND_PUT)
		pulled_out(w);
	c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, c, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RESET, b.handle, 0), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
	world_kill(w, c);
	world_run(w);
	assert_nothing_left(w);
	assert_int_equal(t->fake.bad, 0);
	assert_int_equal(w->wild, 0);
}

static struct world *start(struct death *t, uint64_t seed)
{
	struct world *w = world_new(3, seed);

	fake_device_add(w, &t->fake);
	w->iommu = seed == 7;
	world_start(w);
	t->manager = world_client(w, 1, SIO_CLIENT_LIBRARY);
	t->client = world_client(w, 2, SIO_CLIENT_LIBRARY);
	t->neighbour = world_client(w, 0, SIO_CLIENT_LIBRARY);
	return w;
}

/* Return: the flow had as many events; false: it ended before the cut. */
static bool cut_at(enum cut cut, uint64_t n, uint64_t seed)
{
	struct death t = {.cut = cut};
	struct world *w = start(&t, seed);
	bool happened;

	t.left = n;
	w->before_step = maybe_cut;
	w->before_arg = &t;
	play(w, &t);
	happened = t.left == 0;
	if (!happened) {
		assert_int_equal(t.held, 4);
		assert_int_equal(t.vectors, 6);
	}
	t.left = 0;
	check_all_gone(w, &t);
	world_free(w);
	return happened;
}

static void cut_everywhere(enum cut cut, uint64_t seed)
{
	uint64_t stride = world_stride(), n = 1 + (cut + seed) % stride;

	while (cut_at(cut, n, seed))
		n += stride;
	assert_true(n > 50); /* the flow is as long as that */
}

#define CUT_TEST(name, cut)                                                                        \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		cut_everywhere(cut, 0);                                                            \
		cut_everywhere(cut, 7);                                                            \
		cut_everywhere(cut, 9);                                                            \
	}

CUT_TEST(client_killed_at_every_event, KILL_CLIENT)
CUT_TEST(manager_killed_at_every_event, KILL_MANAGER)
CUT_TEST(clients_host_down_at_every_event, CRASH_CLIENT)
CUT_TEST(managers_host_down_at_every_event, CRASH_MANAGER)
CUT_TEST(lender_down_at_every_event, CRASH_LENDER)
CUT_TEST(link_down_at_every_event, LINK_DOWN)
CUT_TEST(daemons_of_client_and_lender_cut_at_every_event, CUT_CLIENT)
CUT_TEST(daemons_of_manager_and_lender_cut_at_every_event, CUT_MANAGER)
CUT_TEST(daemons_cut_twice_at_every_event, CUT_TWICE)
CUT_TEST(link_down_and_daemons_cut_at_every_event, LINK_AND_CUT)
CUT_TEST(device_pulled_out_at_every_event, PULL_OUT)
CUT_TEST(device_pulled_out_and_put_back_at_every_event, PULL_AND_PUT)

/* Each request of any port fails once. */
static void port_refuses_every_request(void **state)
{
	uint64_t n, first = 0, last;

	(void)state;
	for (n = 0;; n++) {
		struct death t = {.cut = CUTS};
		struct world *w = start(&t, 0);

		if (first == 0)
			first = w->requests + 1;
		w->fail_at = first + n;
		play(w, &t);
		last = w->requests;
		w->fail_at = 0;
		check_all_gone(w, &t);
		world_free(w);
		if (first + n > last)
			break;
	}
	assert_true(n > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_killed_at_every_event),
		cmocka_unit_test(manager_killed_at_every_event),
		cmocka_unit_test(clients_host_down_at_every_event),
		cmocka_unit_test(managers_host_down_at_every_event),
		cmocka_unit_test(lender_down_at_every_event),
		cmocka_unit_test(link_down_at_every_event),
		cmocka_unit_test(daemons_of_client_and_lender_cut_at_every_event),
		cmocka_unit_test(daemons_of_manager_and_lender_cut_at_every_event),
		cmocka_unit_test(daemons_cut_twice_at_every_event),
		cmocka_unit_test(link_down_and_daemons_cut_at_every_event),
		cmocka_unit_test(device_pulled_out_at_every_event),
		cmocka_unit_test(device_pulled_out_and_put_back_at_every_event),
		cmocka_unit_test(port_refuses_every_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
