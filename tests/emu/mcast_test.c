/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: who is a member, who finds whom, and what is left of a group. */
#include "fake.h"

static int mcast(struct fake *f, unsigned host, uint64_t owner, uint32_t what, uint32_t group,
		 uint64_t target, uint64_t length, struct sio_evt_mcast *ret)
{
	struct sio_req_mcast req = {
		.h.owner = owner, .group = group, .what = what, .target = target, .length = length};

	return ask(f, host, &req, SIO_OP_MCAST, ret);
}

static void members_have_one_memory(void **state)
{
	struct sio_evt_mcast one, two, sender;
	struct fake *f = fake_new(7);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_CONNECT, 2, 0, 0, &sender), -ENOENT);
	assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_JOIN, 2, 0, 0x1800, &one), 0);
	assert_int_equal(f->answer.n_fds, 1);
	assert_int_equal(one.size, 0x2000);
	assert_int_equal(one.mode, SIO_MCAST_FUSED);
	assert_int_equal(one.members, 1);
	/* Found when it is published, and no longer when it is not. */
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_CONNECT, 2, 0, 0, &sender), -ENOENT);
	assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_PUBLISH, 2, one.id, 0, &one), 0);
	assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_PUBLISH, 2, one.id, 0, &one), 0);
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_CONNECT, 3, 0, 0, &sender), -ENOENT);
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_CONNECT, 2, 0, 0, &sender), 0);
	assert_int_equal(sender.size, 0x2000);
	assert_int_equal(sender.members, 1);
	/* The first one's size is the group's. */
	assert_int_equal(mcast(f, CLIENT, 0, SIO_MCAST_JOIN, 2, 0, 0x2001, &two), -ERANGE);
	assert_non_null(strstr(fake_text(f), "8192"));
	assert_int_equal(mcast(f, CLIENT, 0, SIO_MCAST_JOIN, 2, 0, 0x1000, &two), 0);
	assert_int_equal(two.members, 2);
	fake_data(f, OTHER, sender.id)[5] = 7;
	assert_int_equal(fake_data(f, LENDER, one.id)[5], 7);
	assert_int_equal(fake_data(f, CLIENT, two.id)[5], 7);
	/* Each has a place of its own in its host. */
	assert_int_not_equal(one.address, two.address);
	assert_int_equal(mcast(f, CLIENT, 0, SIO_MCAST_PUBLISH, 3, two.id, 0, &two), -EINVAL);
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_PUBLISH, 2, sender.id, 0, &two), -EINVAL);
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_PUBLISH, 2, 1, 0, &two), -ENOENT);
	fake_free(f);
}

static void the_last_one_ends_the_group(void **state)
{
	struct sio_evt_mcast one, two, sender;
	struct fake *f = fake_new(0);
	unsigned mems;
	uint64_t owner;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	owner = fake_owner(f, CLIENT);
	mems = f->open_mems;
	assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_JOIN, 0, 0, 0x1000, &one), 0);
	assert_int_equal(mcast(f, CLIENT, owner, SIO_MCAST_JOIN, 0, 0, 0x1000, &two), 0);
	assert_int_equal(mcast(f, CLIENT, owner, SIO_MCAST_PUBLISH, 0, two.id, 0, &two), 0);
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_CONNECT, 0, 0, 0, &sender), 0);
	assert_int_equal(f->open_mems, mems + 1);
	fake_data(f, LENDER, one.id)[0] = 1;
	/* A program that dies leaves its group, published or not. */
	emu_room_owner_hup(f->room, CLIENT, owner);
	assert_int_equal(mcast(f, OTHER, 0, SIO_MCAST_CONNECT, 0, 0, 0, &two), -ENOENT);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, one.id, 0), 0);
	assert_int_equal(fake_data(f, OTHER, sender.id)[0], 1);
	/* Whoever joins while a sender has it finds what is there. */
	assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_JOIN, 0, 0, 0x1000, &one), 0);
	assert_int_equal(one.members, 1);
	emu_room_host_down(f->room, OTHER);
	assert_int_equal(fake_data(f, LENDER, one.id)[0], 1);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, one.id, 0), 0);
	/* The next one is new, and as large as it is wanted. */
	assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_JOIN, 0, 0, 0x4000, &one), 0);
	assert_int_equal(one.size, 0x4000);
	assert_int_equal(fake_data(f, LENDER, one.id)[0], 0);
	fake_free(f);
}

/* A device writes to its host's member, and an engine copies into it: all others have it. */
static void devices_reach_members(void **state)
{
	struct sio_evt_mcast one, two;
	struct sio_evt_dmamap map;
	struct fake *f = fake_new(1);
	struct emu_dev *dev;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	dev = fake_dev(f, LENDER, 0);
	assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_JOIN, 1, 0, 0x2000, &one), 0);
	assert_int_equal(mcast(f, CLIENT, 0, SIO_MCAST_JOIN, 1, 0, 0x2000, &two), 0);
	map = fake_dmamap(f, LENDER, 0, 0, SIO_KIND_MEM, one.id, 0x2000, 3);
	assert_int_equal(dev->write(dev, map.iova + 0x1000, "member", 7), 0);
	assert_string_equal(fake_data(f, CLIENT, two.id) + 0x1000, "member");
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, one.id, 0), -EBUSY);
	fake_free(f);
}

static void every_failure_is_undone(void **state)
{
	struct sio_evt_mcast one;

	(void)state;
	for (unsigned n = 1;; n++) {
		struct fake *f = fake_new(0);
		unsigned mems;
		int rc;

		fake_up(f, LENDER);
		mems = f->open_mems;
		f->fail_at = f->calls + n;
		rc = mcast(f, LENDER, 0, SIO_MCAST_JOIN, 1, 0, 0x1000, &one);
		f->fail_at = 0;
		assert_int_equal(f->open_mems, mems + (rc == 0));
		/* More than there is room for: the group that was made for it is gone, too. */
		assert_int_equal(mcast(f, LENDER, 0, SIO_MCAST_JOIN, 2, 0, 1 << 20, &one),
				 rc ? 0 : -ENOSPC);
		fake_free(f);
		if (rc == 0)
			break;
		assert_int_equal(rc, -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_have_one_memory),
		cmocka_unit_test(the_last_one_ends_the_group),
		cmocka_unit_test(devices_reach_members),
		cmocka_unit_test(every_failure_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
