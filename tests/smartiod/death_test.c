/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One long scenario, and something bad before its n-th packet, for every n and several orders of
 * delivery: a program is killed, the link goes, a host crashes, the port refuses. Whatever
 * happened, when the programs are gone nothing is left at any port or daemon, and no grant ended
 * under a map.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "calls.h"

#define SEEDS 12

enum harm {
	NOTHING,
	KILL_IMPORTER,
	KILL_EXPORTER,
	KILL_BYSTANDER,
	CUT_LINK,
	CUT_DAEMONS, /* from each other, and nothing else */
	CRASH_EXPORTER,
	CRASH_IMPORTER,
	REFUSE,	   /* a request to the port fails */
	NO_MEMORY, /* an allocation fails */
};

/* Linked with --wrap: allocation number fail_at of the daemons fails. */
static uint64_t allocations, fail_at;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
	return ++allocations == fail_at ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return ++allocations == fail_at ? NULL : __real_calloc(n, size);
}

void *world_calloc(size_t n, size_t size)
{
	return __real_calloc(n, size);
}

struct death {
	enum harm harm;
	uint64_t at; /* before this packet, counted from the scenario's start */
	struct world_client *exporter, *importer, *bystander;
	bool done;
};

static void harm(struct world *w, void *arg)
{
	struct death *x = arg;

	if (x->done || w->steps < x->at)
		return;
	x->done = true;
	switch (x->harm) {
	case KILL_IMPORTER:
		world_kill(w, x->importer);
		return;
	case KILL_EXPORTER:
		world_kill(w, x->exporter);
		return;
	case KILL_BYSTANDER:
		world_kill(w, x->bystander);
		return;
	case CUT_LINK:
		world_link(w, 0, 1, false);
		return;
	case CUT_DAEMONS:
		world_cut(w, 0, 1);
		return;
	case CRASH_EXPORTER:
		world_crash(w, 0);
		return;
	case CRASH_IMPORTER:
		world_crash(w, 1);
		return;
	case NOTHING:
	case REFUSE:
	case NO_MEMORY:
		return;
	}
}

static void map_at_once(struct world *w, struct world_client *c, uint32_t handle, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct sio_msg_seg_map msg = {.handle = sio_to_le32(handle),
					      .bytes = sio_to_le64(4096)};

		world_send(w, c, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
	}
}

/* Two owners of one number, the second while the first is being made; and who triggers them. */
static void share_at_once(struct world *w, struct death *x)
{
	const uint32_t flags = SCI_FLAG_FIXED_INTNO | SCI_FLAG_SHARED_INT | SIO_DINT_PLAIN;
	struct sio_msg_dint_create create = {.number = sio_to_le32(7), .flags = sio_to_le32(flags)};
	struct sio_msg_dint_connect connect = {.node = sio_to_le32(4),
					       .number = sio_to_le32(7),
					       .flags = sio_to_le32(SIO_DINT_PLAIN)};

	world_send(w, x->exporter, SIO_MSG_DINT_CREATE, &create, sizeof(create));
	world_call(w, x->bystander, SIO_MSG_DINT_CREATE, &create, sizeof(create));
	world_call(w, x->importer, SIO_MSG_DINT_CONNECT, &connect, sizeof(connect));
}

/* A queue of the importer that reaches its own segment and the exporter's, and one of a neighbour.
 */
static void dma_at_once(struct world *w, struct death *x, uint32_t con, uint32_t local)
{
	struct sio_msg_queue_attach msg = {.remote = sio_to_le32(1)};
	uint32_t queue = 0, other = 0, own = 0, slot;
	uint64_t range = 0;

	call_queue_create(w, x->importer, 0, &queue);
	call_seg_export(w, x->importer, 9, 4096, &own);
	msg.queue = sio_to_le32(queue);
	msg.segment = sio_to_le32(con);
	world_send(w, x->importer, SIO_MSG_QUEUE_ATTACH, &msg, sizeof(msg));
	map_at_once(w, x->importer, con, 1);
	call_queue_attach(w, x->importer, queue, con, true, &slot, &range);
	call_queue_detach(w, x->importer, queue, range);
	call_queue_attach(w, x->importer, queue, own, false, &slot, &range);
	call_handle(w, x->importer, SIO_MSG_SEG_REMOVE, own, 0);
	call_queue_create(w, x->bystander, 0, &other);
	call_queue_attach(w, x->bystander, other, local, true, &slot, &range);
	msg.queue = sio_to_le32(other);
	msg.segment = sio_to_le32(local);
	world_send(w, x->bystander, SIO_MSG_QUEUE_ATTACH, &msg, sizeof(msg));
	call_handle(w, x->bystander, SIO_MSG_QUEUE_REMOVE, other, 0);
}

/* A segment that is filled, and has three handles; the first goes, with an importer there. */
static void share(struct world *w, struct death *x)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	uint32_t seg = 0, con = 0;

	call_seg_create(w, x->exporter, 5, 4096, SCI_FLAG_EMPTY, &seg, NULL);
	call_handle(w, x->exporter, SIO_MSG_SEG_FILL, seg, SIO_MEMORY_PAGES);
	call_seg_adapter(w, x->exporter, SIO_MSG_SEG_PREPARE, seg, 0, 0);
	call_seg_adapter(w, x->exporter, SIO_MSG_SEG_AVAILABLE, seg, 0, 0);
	call_handle(w, x->exporter, SIO_MSG_SEG_SHARE, seg, 0);
	world_call(w, x->bystander, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	call_seg_connect(w, x->importer, 4, 5, &con);
	world_call(w, x->exporter, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	call_handle(w, x->exporter, SIO_MSG_SEG_REMOVE, seg, 0);
}

/* A member of a group, and a sender who copies to it. */
static void group_at_once(struct world *w, struct death *x)
{
	struct sio_msg_seg_connect msg = {.node = sio_to_le32(DIS_BROADCAST_NODEID_GROUP_ALL),
					  .segment_id = sio_to_le32(3),
					  .flags = sio_to_le32(SCI_FLAG_BROADCAST)};
	uint32_t member = 0, all = 0, queue = 0, slot, map = 0;
	const struct world_message *m;
	uint64_t range = 0;

	call_seg_create(w, x->exporter, 3, 4096, SCI_FLAG_BROADCAST, &member, NULL);
	call_seg_adapter(w, x->exporter, SIO_MSG_SEG_PREPARE, member, 0, 0);
	call_seg_adapter(w, x->exporter, SIO_MSG_SEG_AVAILABLE, member, 0, 0);
	world_send(w, x->importer, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));
	m = world_call(w, x->importer, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));
	if (m && !m->error)
		all = sio_from_le32(
			((const struct sio_rep_seg_connect *)(const void *)m->data)->handle);
	call_seg_map(w, x->importer, all, 0, 4096, &map);
	call_queue_create(w, x->importer, 0, &queue);
	call_queue_attach(w, x->importer, queue, all, true, &slot, &range);
	call_handle(w, x->exporter, SIO_MSG_SEG_REMOVE, member, 0);
	call_handle(w, x->importer, SIO_MSG_SEG_UNMAP, map, 0);
	call_handle(w, x->importer, SIO_MSG_SEG_DISCONNECT, all, 0);
}

/* Each call may fail; handles are then 0, which is refused. */
static void scenario(struct world *w, struct death *x)
{
	uint32_t seg = 0, con = 0, m1 = 0, m2 = 0, local = 0, lmap = 0, dint = 0, number = 0;
	uint32_t link = 0, self = 0, gone = 0, seg2 = 0;
	struct sio_msg_seg_connect again = {.node = sio_to_le32(4), .segment_id = sio_to_le32(1)};
	struct sio_msg_handle remove = {0};

	call_seg_export(w, x->exporter, 1, 8192, &seg);
	call_dint_create(w, x->exporter, 0, 0, &dint, &number);
	call_seg_connect(w, x->importer, 4, 1, &con);
	map_at_once(w, x->importer, con, 2);
	call_seg_map(w, x->importer, con, 0, 8192, &m1);
	call_seg_map(w, x->importer, con, 4096, 4096, &m2);
	call_seg_connect(w, x->bystander, 4, 1, &local);
	call_seg_map(w, x->bystander, local, 0, 4096, &lmap);
	dma_at_once(w, x, con, local);
	group_at_once(w, x);
	call_dint_connect(w, x->importer, 4, number, &link);
	call_dint_connect(w, x->bystander, 4, number, &self);
	call_dint_connect(w, x->importer, 4, number, &gone);
	call_handle(w, x->importer, SIO_MSG_DINT_DISCONNECT, gone, 0);
	call_ring_free(w, x->exporter, dint, 3);
	/* The removal overtakes a connection that is being made. */
	world_send(w, x->importer, SIO_MSG_SEG_CONNECT, &again, sizeof(again));
	call_handle(w, x->importer, SIO_MSG_SEG_UNMAP, m2, 0);
	call_seg_adapter(w, x->exporter, SIO_MSG_SEG_UNAVAILABLE, seg, 0, SCI_FLAG_NOTIFY);
	share(w, x);
	/* It is kept for its importers, one of whom maps it once more. */
	remove.handle = sio_to_le32(seg);
	world_send(w, x->exporter, SIO_MSG_SEG_REMOVE, &remove, sizeof(remove));
	call_handle(w, x->importer, SIO_MSG_SEG_UNMAP, m1, 0);
	map_at_once(w, x->importer, con, 1);
	call_handle(w, x->bystander, SIO_MSG_SEG_UNMAP, lmap, 0);
	call_handle(w, x->bystander, SIO_MSG_SEG_DISCONNECT, local, 0);
	call_seg_export(w, x->exporter, 1, 4096, &seg2);
	call_seg_connect(w, x->importer, 4, 1, &con);
	call_seg_map(w, x->importer, con, 0, 4096, &m1);
	call_handle(w, x->exporter, SIO_MSG_SEG_REMOVE, seg2, SCI_FLAG_FORCE_REMOVE);
	call_handle(w, x->exporter, SIO_MSG_DINT_REMOVE, dint, 0);
	share_at_once(w, x);
}

/* What can be harmed: packets, port requests, allocations. */
static uint64_t counter(const struct world *w, enum harm unit)
{
	return unit == REFUSE ? w->requests : unit == NO_MEMORY ? allocations : w->steps;
}

/* Return: how many of @unit the scenario took. */
static uint64_t run_once(enum harm what, uint64_t at, uint64_t seed, enum harm unit)
{
	struct death x = {.harm = what};
	struct world *w = world_new(2, seed);
	uint64_t count, start;

	w->style = seed % 3;
	world_start(w);
	x.exporter = world_client(w, 0, SIO_CLIENT_LIBRARY);
	x.importer = world_client(w, 1, SIO_CLIENT_LIBRARY);
	x.bystander = world_client(w, 0, SIO_CLIENT_LIBRARY);
	x.at = w->steps + at;
	start = counter(w, unit);
	if (what == REFUSE)
		w->fail_at = w->requests + at;
	if (what == NO_MEMORY)
		fail_at = allocations + at;
	w->before_step = harm;
	w->before_arg = &x;
	scenario(w, &x);
	count = counter(w, unit) - start;
	fail_at = 0;
	w->before_step = NULL;
	if (what == CUT_LINK)
		world_link(w, 0, 1, true);
	if (!w->host[0].daemon)
		world_boot(w, 0);
	if (!w->host[1].daemon)
		world_boot(w, 1);
	world_pass(w, 100000000);
	/* The hosts talk to each other again. */
	{
		struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);

		assert_int_equal(call_probe(w, c, 4), 0);
		world_kill(w, c);
	}
	world_kill(w, x.exporter);
	world_kill(w, x.importer);
	world_kill(w, x.bystander);
	world_run(w);
	world_pass(w, 6000000000ULL);
	assert_nothing_left(w);
	assert_int_equal(w->bad_ends, 0);
	assert_int_equal(w->wild, 0);
	world_free(w);
	return count;
}

/* What fails once takes a way of its own each time: sanitized builds do not leave one out. */
static void everywhere(enum harm what)
{
	uint64_t stride = what == REFUSE || what == NO_MEMORY ? 1 : world_stride();

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t n = run_once(NOTHING, 0, seed, what);

		assert_true(n > 30);
		for (uint64_t at = 1 + (what + seed) % stride; at <= n; at += stride) {
			if (getenv("WORLD_TRACE"))
				fprintf(stderr, "harm %d at %llu, seed %llu\n", what,
					(unsigned long long)at, (unsigned long long)seed);
			run_once(what, at, seed, what);
		}
	}
}

static void importer_killed(void **state)
{
	(void)state;
	everywhere(KILL_IMPORTER);
}

static void exporter_killed(void **state)
{
	(void)state;
	everywhere(KILL_EXPORTER);
}

static void bystander_killed(void **state)
{
	(void)state;
	everywhere(KILL_BYSTANDER);
}

static void link_cut(void **state)
{
	(void)state;
	everywhere(CUT_LINK);
}

static void daemons_cut(void **state)
{
	(void)state;
	everywhere(CUT_DAEMONS);
}

static void exporters_host_crashed(void **state)
{
	(void)state;
	everywhere(CRASH_EXPORTER);
}

static void importers_host_crashed(void **state)
{
	(void)state;
	everywhere(CRASH_IMPORTER);
}

static void port_refuses(void **state)
{
	(void)state;
	everywhere(REFUSE);
}

static void memory_runs_out(void **state)
{
	(void)state;
	everywhere(NO_MEMORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(importer_killed),
		cmocka_unit_test(exporter_killed),
		cmocka_unit_test(bystander_killed),
		cmocka_unit_test(link_cut),
		cmocka_unit_test(daemons_cut),
		cmocka_unit_test(exporters_host_crashed),
		cmocka_unit_test(importers_host_crashed),
		cmocka_unit_test(port_refuses),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
