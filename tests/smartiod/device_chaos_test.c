/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients on three hosts say anything at any time, without waiting for answers; packets arrive in
 * random order, programs die, hosts crash, links go, the port refuses. At the end nothing is left.
 * The same seed gives the same run.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "../lib/random.h"

#define FDID 0x400001
#define RUNS 150
#define ACTIONS 250

static uint64_t state;

static uint32_t pick(uint32_t n)
{
	return random_below(&state, n);
}

/* One of the client's good replies to @type or @other; NULL: there is none. */
static const struct world_message *some_reply(struct world_client *c, uint32_t type, uint32_t other)
{
	const struct world_message *found = NULL;
	uint32_t seen = 0;

	for (unsigned i = 0; i < c->n_messages; i++) {
		const struct world_message *m = c->message[i];

		if (m->id && !m->error && (m->type == type || m->type == other) &&
		    pick(++seen) == 0)
			found = m;
	}
	return found;
}

/* A handle that the client was given for @type or @other, perhaps one that is gone; or any number.
 */
static sio_le32 a_handle(struct world_client *c, uint32_t type, uint32_t other)
{
	const struct world_message *m = pick(20) ? some_reply(c, type, other) : NULL;
	sio_le32 handle = sio_to_le32(pick(20));

	if (m) /* it stands first in all these replies */
		memcpy(&handle, m->data + sizeof(struct sio_msg), sizeof(handle));
	return handle;
}

/* A borrow that this client was told of: its own, or one that ended. */
static sio_le64 a_borrower(struct world_client *c)
{
	const struct sio_evm_device *e = call_device_event(c, pick(4));
	const struct world_message *m = some_reply(c, SIO_MSG_DEV_BORROW, 0);

	if (pick(4) == 0)
		return sio_to_le64(SIO_BORROWER_ALL);
	if (e)
		return e->borrower;
	return m ? ((const struct sio_rep_dev_borrow *)(const void *)m->data)->borrower
		 : sio_to_le64(1);
}

/* Somebody's memory, as somebody's: now and then it is right. */
static void hold(struct world *w, struct world_client *c, sio_le32 device)
{
	struct world_client *of = pick(2) ? c : &w->client[pick(w->n_clients)];
	const struct world_message *b = some_reply(of, SIO_MSG_DEV_BORROW, 0);
	const struct world_message *map = some_reply(of, SIO_MSG_DMA_MAP, 0);
	const struct world_message *held = some_reply(c, SIO_MSG_DEV_HOLD, 0);
	struct sio_msg_dev_hold msg = {.device = device, .bytes = sio_to_le64(1 + pick(4096))};
	struct sio_msg_dev_unhold end = {.device = device, .hold = sio_to_le64(pick(50))};

	if (held && pick(3)) {
		end.hold = ((const struct sio_rep_dev_hold *)(const void *)held->data)->hold;
		world_send(w, c, SIO_MSG_DEV_UNHOLD, &end, sizeof(end));
		return;
	}
	if (b)
		msg.borrower = ((const struct sio_rep_dev_borrow *)(const void *)b->data)->borrower;
	if (map)
		msg.ioaddr = ((const struct sio_rep_dma_map *)(const void *)map->data)->ioaddr;
	world_send(w, c, SIO_MSG_DEV_HOLD, &msg, sizeof(msg));
}

static const struct {
	uint32_t type, of, or_of; /* a request that is a handle, and who gave it */
} plain[] = {
	{SIO_MSG_SEG_REMOVE, SIO_MSG_SEG_CREATE, 0},
	{SIO_MSG_SEG_DISCONNECT, SIO_MSG_DEV_SEG_CONNECT, SIO_MSG_SEG_CONNECT},
	{SIO_MSG_SEG_DISCONNECT, SIO_MSG_DEV_SEG_CONNECT, SIO_MSG_SEG_CONNECT},
	{SIO_MSG_SEG_UNMAP, SIO_MSG_SEG_MAP, 0},
	{SIO_MSG_SEG_UNMAP, SIO_MSG_SEG_MAP, 0},
	{SIO_MSG_DMA_UNMAP, SIO_MSG_DMA_MAP, 0},
	{SIO_MSG_DMA_UNMAP, SIO_MSG_DMA_MAP, 0},
	{SIO_MSG_DEV_RETURN, SIO_MSG_DEV_BORROW, 0},
	{SIO_MSG_DEV_RELEASE_EXCLUSIVE, SIO_MSG_DEV_BORROW, 0},
	{SIO_MSG_DEV_RESET, SIO_MSG_DEV_BORROW, 0},
};

static void say(struct world *w, struct world_client *c)
{
	static const uint32_t hints[] = {0, SCI_MEMACCESS_DEVICE_READ, SCI_MEMACCESS_HOST_READ};
	uint32_t which = pick(sizeof(plain) / sizeof(plain[0]));
	sio_le32 device = a_handle(c, SIO_MSG_DEV_BORROW, 0);
	sio_le32 local = a_handle(c, SIO_MSG_SEG_CREATE, 0);
	sio_le32 remote = a_handle(c, SIO_MSG_DEV_SEG_CONNECT, SIO_MSG_SEG_CONNECT);
	uint32_t type = pick(2) ? SCI_MEMTYPE_PRIVATE : SCI_MEMTYPE_SHARED;
	struct sio_msg_dev_borrow borrow = {.fdid = sio_to_le32(FDID)};
	struct sio_msg_dev_seg_create create = {.device = device,
						.segment_id = sio_to_le32(pick(3)),
						.bytes = sio_to_le64(4096 * (1 + pick(4))),
						.memtype = sio_to_le32(type),
						.hints = sio_to_le32(hints[pick(3)])};
	struct sio_msg_dev_seg_connect con = {
		.device = device, .segment_id = sio_to_le32(pick(3)), .memtype = sio_to_le32(type)};
	struct sio_msg_dma_map dma = {
		.device = device, .segment = local, .bytes = sio_to_le64(4096)};
	struct sio_msg_seg_map map = {.handle = remote,
				      .flags = sio_to_le32(pick(4) ? 0 : SCI_FLAG_READONLY_MAP),
				      .bytes = sio_to_le64(4096)};
	struct sio_msg_seg_create seg = {.segment_id = sio_to_le32(pick(4)),
					 .bytes = sio_to_le64(8192)};
	struct sio_msg_seg_adapter prepare = {.handle = local};
	struct sio_msg_seg_connect far = {.node = sio_to_le32(4 * (1 + pick(3))),
					  .segment_id = sio_to_le32(pick(4))};
	struct sio_msg_dev_settled settled = {.device = device};
	struct sio_msg_handle handle = {.handle = a_handle(c, plain[which].of, plain[which].or_of)};

	switch (pick(20)) {
	case 0:
		borrow.flags = sio_to_le32(pick(10) ? 0 : SCI_FLAG_EXCLUSIVE);
		world_send(w, c, SIO_MSG_DEV_BORROW, &borrow, sizeof(borrow));
		break;
	case 1:
		world_send(w, c, SIO_MSG_DEV_SEG_CREATE, &create, sizeof(create));
		break;
	case 2:
		world_send(w, c, SIO_MSG_DEV_SEG_CONNECT, &con, sizeof(con));
		break;
	case 3:
		con.memtype = sio_to_le32(SCI_MEMTYPE_BAR);
		con.segment_id = 0;
		world_send(w, c, SIO_MSG_DEV_SEG_CONNECT, &con, sizeof(con));
		break;
	case 4:
	case 5:
		if (pick(2)) {
			dma.remote = sio_to_le32(1);
			dma.segment = remote;
		}
		world_send(w, c, SIO_MSG_DMA_MAP, &dma, sizeof(dma));
		break;
	case 6:
	case 7:
		world_send(w, c, SIO_MSG_SEG_MAP, &map, sizeof(map));
		break;
	case 8:
		world_send(w, c, SIO_MSG_SEG_CREATE, &seg, sizeof(seg));
		break;
	case 9:
		world_send(w, c, pick(2) ? SIO_MSG_SEG_PREPARE : SIO_MSG_SEG_AVAILABLE, &prepare,
			   sizeof(prepare));
		break;
	case 10:
		world_send(w, c, SIO_MSG_SEG_CONNECT, &far, sizeof(far));
		break;
	case 11:
		settled.borrower = a_borrower(c);
		world_send(w, c, SIO_MSG_DEV_SETTLED, &settled, sizeof(settled));
		break;
	case 12:
	case 13:
	case 14:
	case 15:
		hold(w, c, device);
		break;
	default:
		world_send(w, c, plain[which].type, &handle, sizeof(handle));
		break;
	}
}

static void disturb(struct world *w, struct world_client **c, unsigned n)
{
	unsigned host = pick(3);

	switch (pick(6)) {
	case 0:
	case 1:
		world_kill(w, c[pick(n)]);
		break;
	case 2:
		if (w->host[host].daemon && pick(3) == 0)
			world_crash(w, host);
		break;
	case 3:
		world_link(w, 0, 1 + pick(2), pick(2));
		break;
	case 4:
		w->fail_at = w->requests + 1 + pick(10);
		break;
	case 5:
		world_cut(w, 0, 1 + pick(2));
		world_tick(w, pick(2) * 30000000);
		break;
	}
}

static unsigned good[SIO_MSG_STATS + 1]; /* replies without error, by type, of all runs */

static void count_good(const struct world_client *c)
{
	for (unsigned i = 0; i < c->n_messages; i++)
		if (c->message[i]->type <= SIO_MSG_STATS && !c->message[i]->error)
			good[c->message[i]->type]++;
}

static void run(uint64_t seed)
{
	struct fake_device fake;
	struct world *w = world_new(3, seed);
	struct world_client *c[6], *last;
	struct call_borrow b;

	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	fake_device_add(w, &fake);
	w->iommu = seed % 4 == 0;
	world_start(w);
	for (unsigned i = 0; i < 6; i++)
		c[i] = world_client(w, i % 3, SIO_CLIENT_LIBRARY);
	for (unsigned i = 0; i < ACTIONS; i++) {
		struct world_client *who = c[pick(6)];

		if (who->connected && who->n_messages < WORLD_MESSAGES / 2)
			say(w, who);
		for (uint32_t k = pick(8); k > 0 && world_step(w); k--)
			;
		if (pick(40) == 0)
			disturb(w, c, 6);
	}
	for (unsigned i = 0; i < 6; i++)
		count_good(c[i]);
	w->fail_at = 0;
	for (unsigned i = 0; i < 6; i++)
		world_kill(w, c[i]);
	world_run(w);
	for (unsigned i = 0; i < w->n_hosts; i++)
		if (!w->host[i].daemon)
			world_boot(w, i);
	for (unsigned i = 0; i < 3; i++)
		world_link(w, i, (i + 1) % 3, true);
	world_pass(w, 100000000);
	last = world_client(w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, last, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	assert_int_equal(call_handle(w, last, SIO_MSG_DEV_RESET, b.handle, 0), 0);
	assert_int_equal(call_handle(w, last, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
	world_kill(w, last);
	world_run(w);
	assert_nothing_left(w);
	assert_int_equal(fake.bad, 0);
	assert_int_equal(w->wild, 0);
	world_free(w);
}

static void nothing_is_left_after_chaos(void **unused)
{
	(void)unused;
	for (uint64_t seed = 1; seed <= RUNS; seed++)
		run(seed);
	/* The chaos is not so wild that nothing succeeds. */
	for (uint32_t type = SIO_MSG_DEV_BORROW; type <= SIO_MSG_DEV_UNHOLD; type++)
		assert_true(good[type] > 0);
	assert_true(good[SIO_MSG_DMA_MAP] > RUNS / 2);
	assert_true(good[SIO_MSG_SEG_MAP] > RUNS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left_after_chaos)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
