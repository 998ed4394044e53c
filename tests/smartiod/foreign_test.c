/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three hosts: what two of them have together, the third one does not end, settle or take,
 * whichever numbers its daemon may name. Node 4 has a segment, a data interrupt and a device; a
 * program of node 8 uses all of them; node 12 lies.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/segment.h"
#include "wire/check.h"

#define FDID 0x400001
#define LIAR 12
#define NUMBERS 48 /* more than any of the daemons has given to something of a kind */

struct scene {
	struct world *w;
	struct world_client *owner, *user;
	struct call_borrow borrow;
	uint32_t seg, dint;	   /* of the owner's */
	uint32_t con, map, link;   /* of the user's */
	uint32_t bars, views, own; /* of the device; memory of the user's that it reaches */
	uint32_t dma, vector, interrupt;
	uint64_t hold;
	bool may_be_cut;
};

static struct fake_device fake;

static void make(struct scene *s)
{
	uint32_t number, access[4], listener;
	struct world *w = world_new(3, 0);
	uint64_t at;

	fake_device_add(w, &fake);
	world_start(w);
	*s = (struct scene){.w = w,
			    .owner = world_client(w, 0, SIO_CLIENT_LIBRARY),
			    .user = world_client(w, 1, SIO_CLIENT_LIBRARY)};
	assert_int_equal(call_seg_export(w, s->owner, 1, 65536, &s->seg), 0);
	assert_int_equal(call_dint_create(w, s->owner, 7, SCI_FLAG_FIXED_INTNO, &s->dint, &number),
			 0);
	assert_int_equal(call_seg_connect(w, s->user, 4, 1, &s->con), 0);
	assert_int_equal(call_seg_map(w, s->user, s->con, 0, 65536, &s->map), 0);
	assert_int_equal(call_dint_connect(w, s->user, 4, 7, &s->link), 0);
	assert_int_equal(call_borrow(w, s->user, FDID, SCI_FLAG_EXCLUSIVE, &s->borrow), 0);
	assert_int_equal(call_dev_seg_connect(w, s->user, s->borrow.handle, 0, SCI_MEMTYPE_BAR,
					      &s->bars, NULL),
			 0);
	assert_int_equal(call_bar_map(w, s->user, s->bars, 0, &s->views, access), 0);
	assert_int_equal(call_seg_export(w, s->user, 2, 65536, &s->own), 0);
	assert_int_equal(
		call_dma_map_at(w, s->user, s->borrow.handle, s->own, 0, 0, 65536, &s->dma, &at),
		0);
	assert_int_equal(call_hold(w, s->user, s->borrow.handle, s->borrow.id, at, 4096, &s->hold),
			 0);
	assert_int_equal(call_plain_create(w, s->owner, &s->interrupt, &number), 0);
	assert_int_equal(call_plain_connect(w, s->user, 4, number, &listener), 0);
	s->vector = SIO_VECTOR_ANY;
	assert_int_equal(call_vector(w, s->user, s->borrow.handle, &s->vector, listener), 0);
	world_forget(s->user);
	world_forget(s->owner);
}

/* As @host's daemon reads it from node 12's. */
static void lie(struct scene *s, unsigned host, uint32_t type, void *msg, size_t size)
{
	struct sio_msg *h = msg;
	bool news = sio_peer_is_notification(type);

	h->size = sio_to_le32((uint32_t)size);
	h->type = sio_to_le32(type);
	h->id = sio_to_le32(news ? 0 : 4711);
	s->w->drop_peer_messages = true; /* the true daemon of node 12 has not asked */
	smartiod_peer_message(s->w->host[host].daemon, LIAR, msg, size);
	world_run(s->w);
	s->w->drop_peer_messages = false;
	if (s->w->open[host][2])
		return;
	/* It says what only another host can say: it is cut off, and may come again. */
	assert_true(s->may_be_cut);
	world_pass(s->w, 100000000);
	assert_true(s->w->open[host][2]);
}

/* Small ones, and those that begin with the boot of their host. */
static uint64_t number_at(const struct scene *s, unsigned i)
{
	uint64_t boot = s->w->host[0].boot_generation & 0xffffffffu;

	return i < NUMBERS ? i : boot << 32 | (i - NUMBERS);
}

static void lies_about_segments(struct scene *s, uint64_t n)
{
	struct sio_peer_grant_release release = {.grant = sio_to_le64(n)};
	struct sio_peer_dint_release ring = {.ring = sio_to_le64(n)};
	struct sio_peer_seg_event gone = {.connection = sio_to_le64(n),
					  .reason = sio_to_le32(SCI_CB_DISCONNECT),
					  .loss = sio_to_le32(SIO_LOSS_LOST)};
	struct sio_peer_dint_event ended = {.link = sio_to_le64(n)};
	struct sio_peer_dev_seg_end end = {.uid = sio_to_le64(n), .fdid = sio_to_le32(FDID)};

	for (unsigned host = 0; host < 2; host++) {
		lie(s, host, SIO_PEER_GRANT_RELEASE, &release, sizeof(release));
		lie(s, host, SIO_PEER_DINT_RELEASE, &ring, sizeof(ring));
		lie(s, host, SIO_PEER_SEG_EVENT, &gone, sizeof(gone));
		lie(s, host, SIO_PEER_DINT_EVENT, &ended, sizeof(ended));
		lie(s, host, SIO_PEER_DEV_SEG_END, &end, sizeof(end));
	}
	for (uint64_t other = 0; other < NUMBERS; other++) {
		struct sio_peer_seg_release leave = {.uid = sio_to_le64(other),
						     .connection = sio_to_le64(n),
						     .reason = sio_to_le32(SCI_CB_LOST)};
		struct sio_peer_seg_grant grant = {.uid = sio_to_le64(other),
						   .ref_connection = sio_to_le64(n),
						   .bytes = sio_to_le64(4096),
						   .ref_node = sio_to_le32(LIAR),
						   .purpose = sio_to_le32(SIO_GRANT_CPU),
						   .access = sio_to_le32(SIO_ACCESS_READ)};

		lie(s, 0, SIO_PEER_SEG_RELEASE, &leave, sizeof(leave));
		lie(s, 0, SIO_PEER_SEG_GRANT, &grant, sizeof(grant));
	}
}

/*
 * Memory for a device of its own, which it lends nobody: nobody is connected to such memory, so
 * that nothing but this is asked. Counted at once, for its lies about grants' numbers would give
 * them back.
 */
static void lies_of_no_lender(struct scene *s)
{
	unsigned before = world_resources(s->w, SIO_KIND_GRANT);

	for (unsigned host = 0; host < 2; host++)
		for (uint64_t uid = 0; uid < NUMBERS; uid++) {
			struct sio_peer_seg_grant grant = {
				.uid = sio_to_le64(uid),
				.bytes = sio_to_le64(4096),
				.ref_node = sio_to_le32(s->w->host[host].node),
				.purpose = sio_to_le32(SIO_GRANT_DEVICE),
				.access = sio_to_le32(SIO_ACCESS_WRITE)};

			lie(s, host, SIO_PEER_SEG_GRANT, &grant, sizeof(grant));
		}
	assert_int_equal(world_resources(s->w, SIO_KIND_GRANT), before);
}

/* A segment that is not available is had by its number as little as by its id. */
static void a_number_alone_connects_to_nothing(void **state)
{
	struct world *w = world_new(3, 0);
	struct scene s = {.w = w};
	struct smartiod_tree_node *n;
	uint32_t handle;

	(void)state;
	world_start(w);
	s.owner = world_client(w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_create(w, s.owner, 1, 4096, 0, &handle, NULL), 0);
	n = smartiod_tree_after(&w->host[0].daemon->segments, 0);
	for (unsigned i = 0; i < 2 * NUMBERS; i++) {
		struct sio_peer_seg_lookup look = {.connection = sio_to_le64(1),
						   .uid = sio_to_le64(number_at(&s, i)),
						   .segment_id = sio_to_le32(1)};

		lie(&s, 0, SIO_PEER_SEG_LOOKUP, &look, sizeof(look));
	}
	assert_int_equal(SMARTIOD_OF(n, struct smartiod_segment, by_uid)->n_refs, 0);
	world_free(w);
}

/* That it borrows of node 4 gives it no memory of node 4's as a lender. */
static void a_borrower_is_no_lender(void **state)
{
	struct world *w = world_new(3, 0);
	struct scene s = {.w = w};
	struct call_borrow b;
	uint32_t seg;

	(void)state;
	fake_device_add(w, &fake);
	world_start(w);
	s.owner = world_client(w, 0, SIO_CLIENT_LIBRARY);
	s.user = world_client(w, 2, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_export(w, s.owner, 1, 65536, &seg), 0);
	assert_int_equal(call_borrow(w, s.user, FDID, 0, &b), 0);
	lies_of_no_lender(&s);
	world_free(w);
}

/*
 * Each way in which host 0, or to a device host 1, grants something to the other; all fail by
 * @error, or none.
 */
static void ask_for_grants(struct scene *s, uint32_t con, uint32_t bars, int error)
{
	uint32_t map, link, dma, views, access[4];
	struct world *w = s->w;

	assert_int_equal(call_seg_map(w, s->user, con, 0, 4096, &map), error);
	assert_int_equal(call_dint_connect(w, s->user, 4, 7, &link), error);
	assert_int_equal(call_bar_map(w, s->user, bars, 0, &views, access), error);
	assert_int_equal(call_dma_map(w, s->user, s->borrow.handle, s->own, 0, 0, 4096, &dma),
			 error);
}

/*
 * Whatever is granted to it counts, and what was made for a grant that it may not have is undone.
 */
static void a_host_has_so_many_grants_and_no_more(void **state)
{
	struct smartiod_peer *of[2];
	unsigned before, grants[2];
	uint32_t con, bars, link;
	struct scene s;

	(void)state;
	make(&s);
	assert_int_equal(call_seg_connect(s.w, s.user, 4, 1, &con), 0);
	assert_int_equal(
		call_dev_seg_connect(s.w, s.user, s.borrow.handle, 0, SCI_MEMTYPE_BAR, &bars, NULL),
		0);
	of[0] = smartiod_peer_find(s.w->host[0].daemon, 8);
	of[1] = smartiod_peer_find(s.w->host[1].daemon, 4);
	before = world_resources(s.w, 0);
	for (unsigned i = 0; i < 2; i++) {
		grants[i] = of[i]->n_grants;
		assert_int_not_equal(grants[i], 0);
		of[i]->n_grants = SMARTIOD_MAX_GRANTS;
	}
	ask_for_grants(&s, con, bars, ENOSPC);
	assert_int_equal(world_resources(s.w, 0), before);
	of[0]->n_grants--; /* a ring needs two */
	assert_int_equal(call_dint_connect(s.w, s.user, 4, 7, &link), ENOSPC);
	assert_int_equal(world_resources(s.w, 0), before);
	assert_int_equal(of[0]->n_grants, SMARTIOD_MAX_GRANTS - 1);
	for (unsigned i = 0; i < 2; i++)
		of[i]->n_grants = grants[i];
	ask_for_grants(&s, con, bars, 0);
	world_free(s.w);
}

/* To the lender, of another host's borrow. */
static void lies_of_a_borrower(struct scene *s)
{
	static const uint32_t whole[] = {SIO_PEER_RETURN, SIO_PEER_RELEASE_EXCLUSIVE,
					 SIO_PEER_RESET, SIO_PEER_BORROW_END};
	const sio_le64 id = sio_to_le64(s->borrow.id);
	const sio_le32 fdid = sio_to_le32(FDID);
	struct sio_peer_settled settled = {
		.borrower = id, .settled = sio_to_le64(SIO_BORROWER_ALL), .fdid = fdid};
	struct sio_peer_bar_grant bar = {.borrower = id,
					 .bytes = sio_to_le64(0x4000),
					 .fdid = fdid,
					 .access = sio_to_le32(SIO_ACCESS_READ)};
	struct sio_peer_group_join join = {
		.borrower = id, .bytes = sio_to_le64(0x1000), .fdid = fdid};
	struct sio_peer_dev_seg_create create = {.borrower = id,
						 .bytes = sio_to_le64(4096),
						 .fdid = fdid,
						 .segment_id = sio_to_le32(9),
						 .memtype = sio_to_le32(SCI_MEMTYPE_SHARED)};

	for (unsigned i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		struct sio_peer_borrower msg = {.borrower = id, .fdid = fdid};

		lie(s, 0, whole[i], &msg, sizeof(msg));
	}
	lie(s, 0, SIO_PEER_SETTLED, &settled, sizeof(settled));
	lie(s, 0, SIO_PEER_BAR_GRANT, &bar, sizeof(bar));
	lie(s, 0, SIO_PEER_GROUP_JOIN, &join, sizeof(join));
	lie(s, 0, SIO_PEER_DEV_SEG_CREATE, &create, sizeof(create));
	/* For a device of its own, as if the borrower had shown it the ticket. */
	bar.borrower_node = sio_to_le32(8);
	bar.access = sio_to_le32(SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	bar.offset = bar.bytes = sio_to_le64(0x1000);
	for (uint64_t n = 0; n < 2 * NUMBERS; n++) {
		struct sio_peer_bar_cut cut = {.grant = sio_to_le64(number_at(s, (unsigned)n))};

		bar.ticket = sio_to_le64(number_at(s, (unsigned)n));
		lie(s, 0, SIO_PEER_BAR_GRANT, &bar, sizeof(bar));
		lie(s, 0, SIO_PEER_BAR_CUT, &cut, sizeof(cut));
	}
	for (uint32_t i = 0; i < FAKE_VECTORS; i++) {
		struct sio_peer_vector vector = {
			.borrower = id, .fdid = fdid, .vector = sio_to_le32(i)};

		lie(s, 0, SIO_PEER_UNVECTOR, &vector, sizeof(vector));
	}
}

static void lies_about_what_is_borrowed(struct scene *s, uint64_t n)
{
	const sio_le64 id = sio_to_le64(s->borrow.id), number = sio_to_le64(n);
	const sio_le32 fdid = sio_to_le32(FDID);
	struct sio_peer_dma_unmap unmap = {.borrower = id, .map = number, .fdid = fdid};
	struct sio_peer_unhold unhold = {.borrower = id, .hold = number, .fdid = fdid};
	struct sio_peer_config config = {.borrower = number,
					 .fdid = fdid,
					 .reg = sio_to_le32(SIO_SHADOW_COMMAND),
					 .mask = sio_to_le32(4)};

	lie(s, 0, SIO_PEER_DMA_UNMAP, &unmap, sizeof(unmap));
	lie(s, 0, SIO_PEER_UNHOLD, &unhold, sizeof(unhold));
	lie(s, 0, SIO_PEER_CONFIG, &config, sizeof(config));
	for (uint64_t other = 0; other < NUMBERS; other++) {
		struct sio_peer_bar_release release = {
			.borrower = id, .view = number, .grant = sio_to_le64(other), .fdid = fdid};

		lie(s, 0, SIO_PEER_BAR_RELEASE, &release, sizeof(release));
	}
	/* A grant of a view is no member of a group, whoever says so. */
	for (uint64_t other = 0; other < NUMBERS; other++) {
		struct sio_peer_group_leave leave = {
			.borrower = id, .view = number, .member = sio_to_le64(other), .fdid = fdid};

		lie(s, 0, SIO_PEER_GROUP_LEAVE, &leave, sizeof(leave));
	}
}

/* To the borrower's daemon, of a device that is not the liar's. */
static void lies_of_a_lender(struct scene *s)
{
	struct sio_peer_borrower lost = {.borrower = sio_to_le64(s->borrow.id),
					 .fdid = sio_to_le32(FDID)};
	struct sio_peer_devices devices = {.info.fdid = sio_to_le32(FDID)};

	s->may_be_cut = true;
	for (uint32_t event = SIO_DEVICE_EV_BORROWER_GONE; event < SIO_DEVICE_EVENTS; event++) {
		struct sio_peer_device_event msg = {.borrower = sio_to_le64(s->borrow.id),
						    .gone = sio_to_le64(1),
						    .fdid = sio_to_le32(FDID),
						    .event = sio_to_le32(event),
						    .generation = sio_to_le32(99)};

		lie(s, 1, SIO_PEER_DEVICE_EVENT, &msg, sizeof(msg));
	}
	lie(s, 1, SIO_PEER_BORROW_LOST, &lost, sizeof(lost));
	lie(s, 1, SIO_PEER_DEVICES, &devices, sizeof(devices));
}

/* Nobody was told anything, and all can be used and ended as if nobody had lied. */
static void nothing_happened(struct scene *s)
{
	struct world *w = s->w;
	struct call_borrow second;
	uint32_t map, device = s->borrow.handle;

	assert_int_equal(s->user->n_messages, 0);
	assert_int_equal(s->owner->n_messages, 0);
	assert_int_equal(call_borrow(w, s->owner, FDID, 0, &second), EACCES);
	assert_int_equal(call_seg_map(w, s->user, s->con, 0, 4096, &map), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_SEG_UNMAP, map, 0), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_SEG_UNMAP, s->map, 0), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_SEG_DISCONNECT, s->con, 0), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_DINT_DISCONNECT, s->link, 0), 0);
	assert_true(fake_vector(w, s->vector) != 0);
	assert_int_equal(call_unvector(w, s->user, device, s->vector), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_DMA_UNMAP, s->dma, 0), EBUSY);
	assert_int_equal(call_unhold(w, s->user, device, s->hold), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_DMA_UNMAP, s->dma, 0), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_SEG_UNMAP, s->views, 0), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_SEG_DISCONNECT, s->bars, 0), 0);
	assert_int_equal(call_handle(w, s->user, SIO_MSG_DEV_RETURN, device, 0), 0);
	assert_int_equal(call_seg_remove(w, s->owner, s->seg), 0);
	assert_int_equal(call_handle(w, s->owner, SIO_MSG_DINT_REMOVE, s->dint, 0), 0);
}

static void a_third_host_ends_nothing_of_two_others(void **state)
{
	struct world_res *r, *next;
	unsigned before = 0, after = 0;
	struct scene s;

	(void)state;
	make(&s);
	before = world_resources(s.w, 0);
	lies_of_no_lender(&s);
	for (unsigned i = 0; i < 2 * NUMBERS; i++) {
		lies_about_segments(&s, number_at(&s, i));
		lies_about_what_is_borrowed(&s, number_at(&s, i));
	}
	lies_of_a_borrower(&s);
	lies_of_a_lender(&s);
	after = world_resources(s.w, 0);
	assert_int_equal(after, before);
	for (r = s.w->res; r; r = next) {
		next = r->next;
		assert_true(r->id < NUMBERS);
		assert_false(r->quarantined);
	}
	nothing_happened(&s);
	for (unsigned i = 0; i < s.w->n_clients; i++)
		world_kill(s.w, &s.w->client[i]);
	world_run(s.w);
	assert_nothing_left(s.w);
	assert_int_equal(fake.bad, 0);
	assert_int_equal(s.w->bad_ends, 0);
	world_free(s.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_third_host_ends_nothing_of_two_others),
		cmocka_unit_test(a_borrower_is_no_lender),
		cmocka_unit_test(a_number_alone_connects_to_nothing),
		cmocka_unit_test(a_host_has_so_many_grants_and_no_more),
	};

	return cmocka_run_group_tests_name("foreign", tests, NULL, NULL);
}
