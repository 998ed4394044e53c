/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of multicast groups in the BARs of devices: what one may be laid on, what reaches it, and
 * what is left when its pages are taken away.
 */
#include "fake.h"

#include "emu/device/device.h"

#define GROUP 2u
#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)
#define PAGES 2u
#define TARGET 1u /* the lender's device whose BAR is a member; device 0 writes */

struct overlay_test {
	struct fake *f;
	uint64_t ram, sender;	      /* a member in RAM of the lender, the way to all */
	uint64_t owner, view, member; /* of the overlay */
	struct emu_dev *dev;
	uint64_t at; /* where the writing device has the group */
};

static int mcast(struct fake *f, unsigned host, struct sio_req_mcast req, uint64_t *ret)
{
	struct sio_evt_mcast evt = {.id = 0};
	int rc;

	req.group = GROUP;
	rc = ask(f, host, &req, SIO_OP_MCAST, &evt);
	if (ret)
		*ret = evt.id;
	return rc;
}

static uint64_t view_of(struct fake *f, uint64_t owner, unsigned device, uint64_t offset,
			uint64_t length, uint32_t access)
{
	struct sio_req_bar req = {.h.owner = owner,
				  .device = DEV(LENDER, device),
				  .offset = offset,
				  .length = length,
				  .access = access};
	struct sio_evt_bar evt;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_BAR, &evt), 0);
	return evt.id;
}

static struct sio_req_mcast over(uint64_t view, uint64_t owner)
{
	return (struct sio_req_mcast){.h.owner = owner,
				      .what = SIO_MCAST_JOIN,
				      .length = EMU_PAGE,
				      .source_kind = SIO_KIND_BAR,
				      .source = view};
}

static int publish(struct fake *f, uint64_t member, uint64_t owner, uint32_t what)
{
	return mcast(f, LENDER,
		     (struct sio_req_mcast){.h.owner = owner, .what = what, .target = member},
		     NULL);
}

static void have_of(struct overlay_test *t, struct fake *f)
{
	struct sio_req_mcast join = {.what = SIO_MCAST_JOIN, .length = PAGES * EMU_PAGE};
	struct sio_evt_dmamap map;

	*t = (struct overlay_test){.f = f};
	t->f->topo.exact_multicast = true;
	for (unsigned i = 0; i < 3; i++)
		fake_up(t->f, i);
	fake_open(t->f, LENDER, 0);
	fake_open(t->f, LENDER, TARGET);
	t->dev = fake_dev(t->f, LENDER, 0);
	assert_int_equal(mcast(t->f, LENDER, join, &t->ram), 0);
	assert_int_equal(publish(t->f, t->ram, 0, SIO_MCAST_PUBLISH), 0);
	assert_int_equal(
		mcast(t->f, LENDER, (struct sio_req_mcast){.what = SIO_MCAST_CONNECT}, &t->sender),
		0);
	fake_requester(t->f, LENDER, 0, 0);
	map = fake_dmamap(t->f, LENDER, 0, 0, SIO_KIND_MEM, t->sender, PAGES * EMU_PAGE,
			  SIO_ACCESS_WRITE);
	t->at = map.iova;
	t->owner = fake_owner(t->f, LENDER);
	t->view = view_of(t->f, t->owner, TARGET, MEMORY, PAGES * EMU_PAGE, BOTH);
}

static void have(struct overlay_test *t, unsigned iommu)
{
	have_of(t, fake_new(iommu));
}

static void enter(struct overlay_test *t, uint64_t owner)
{
	struct sio_req_mcast req = over(t->view, owner);

	req.offset = EMU_PAGE;
	assert_int_equal(mcast(t->f, LENDER, req, &t->member), 0);
	assert_int_equal(publish(t->f, t->member, owner, SIO_MCAST_PUBLISH), 0);
}

static uint8_t *bar(struct overlay_test *t)
{
	return t->f->room->host[LENDER].device[TARGET]->run[MEMORY_RUN].mem.data;
}

static void write_all(struct overlay_test *t, uint8_t value)
{
	uint8_t data[2 * EMU_PAGE];

	memset(data, value, sizeof(data));
	assert_int_equal(t->dev->write(t->dev, t->at, data, sizeof(data)), 0);
	assert_int_equal(fake_data(t->f, LENDER, t->ram)[0], value);
	assert_int_equal(fake_data(t->f, LENDER, t->ram)[2 * EMU_PAGE - 1], value);
}

static void what_may_be_a_member(void **state)
{
	struct sio_req_grant grant = {.source_kind = SIO_KIND_BAR,
				      .access = BOTH,
				      .length = EMU_PAGE,
				      .peer_node = NODE(OTHER)};
	struct overlay_test t;
	struct sio_req_mcast req;
	uint64_t ended;

	(void)state;
	have(&t, 0);
	req = over(t.view, t.owner);
	req.source_kind = SIO_KIND_MEM;
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EINVAL);
	req = over(t.view + 100, t.owner);
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -ENOENT);
	req = over(view_of(t.f, 0, TARGET, REGISTERS, EMU_PAGE, BOTH), 0);
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EACCES);
	assert_non_null(strstr(fake_text(t.f), "memory of a device is right"));
	req = over(view_of(t.f, 0, TARGET, DOORBELLS, EMU_PAGE, BOTH), 0);
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EACCES);
	req = over(view_of(t.f, 0, TARGET, MEMORY, EMU_PAGE, SIO_ACCESS_READ), 0);
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EACCES);
	assert_non_null(strstr(fake_text(t.f), "read-only"));
	req = over(t.view, t.owner);
	req.offset = 2 * EMU_PAGE;
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EINVAL);
	req.offset = 0;
	req.length = EMU_PAGE - 1;
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EINVAL);
	req.length = 3 * EMU_PAGE; /* more than the group, too */
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EINVAL);
	req.what = SIO_MCAST_CONNECT;
	req.length = 0;
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EINVAL);
	ended = fake_owner(t.f, LENDER);
	req = over(view_of(t.f, ended, TARGET, MEMORY, EMU_PAGE, BOTH), t.owner);
	emu_room_owner_hup(t.f->room, LENDER, ended);
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -ENOENT);
	/* That of a dead one which a peer may still reach. */
	ended = fake_owner(t.f, LENDER);
	req = over(view_of(t.f, ended, TARGET, MEMORY, EMU_PAGE, BOTH), t.owner);
	grant.h.owner = ended;
	grant.source = req.source;
	assert_int_equal(ask_only(t.f, LENDER, &grant, SIO_OP_GRANT), 0);
	emu_room_owner_hup(t.f->room, LENDER, ended);
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EPERM);
	assert_non_null(strstr(fake_text(t.f), "has ended"));
	t.f->topo.exact_multicast = false;
	req = over(t.view, t.owner);
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -EOPNOTSUPP);
	assert_non_null(strstr(fake_text(t.f), "exact groups"));
	t.f->topo.exact_multicast = true;
	assert_int_equal(t.f->room->group[GROUP].members, 1);
	fake_free(t.f);
}

/* Its pages are its view's to grant and to map. */
static void nothing_else_is_made_of_it(void **state)
{
	struct sio_req_grant grant = {.source_kind = SIO_KIND_MEM,
				      .access = BOTH,
				      .length = EMU_PAGE,
				      .peer_node = NODE(OTHER)};
	struct sio_req_dmamap map = {.device = DEV(LENDER, 0),
				     .target_kind = SIO_KIND_MEM,
				     .length = EMU_PAGE,
				     .access = SIO_ACCESS_WRITE,
				     .iova = SIO_PORT_ANY,
				     .highest = SIO_PORT_ANY};
	struct overlay_test t;

	(void)state;
	have(&t, 1);
	enter(&t, t.owner);
	grant.source = map.target = t.member;
	assert_int_equal(ask_only(t.f, LENDER, &grant, SIO_OP_GRANT), -EINVAL);
	assert_int_equal(ask_only(t.f, LENDER, &map, SIO_OP_DMAMAP), -EINVAL);
	assert_non_null(strstr(fake_text(t.f), "whose view is right"));
	/* And it keeps its view. */
	assert_int_equal(fake_end(t.f, LENDER, SIO_OP_BAR_CLOSE, t.view, t.owner), -EBUSY);
	assert_int_equal(fake_end(t.f, LENDER, SIO_OP_FREE, t.member, t.owner), 0);
	assert_int_equal(fake_end(t.f, LENDER, SIO_OP_BAR_CLOSE, t.view, t.owner), 0);
	fake_free(t.f);
}

static void a_write_reaches_it(void **state)
{
	struct overlay_test t;

	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		have(&t, iommu);
		enter(&t, t.owner);
		write_all(&t, 7);
		/* One page of the group is its own; what is behind, and before it, is not. */
		assert_int_equal(bar(&t)[EMU_PAGE], 7);
		assert_int_equal(bar(&t)[2 * EMU_PAGE - 1], 7);
		assert_int_equal(bar(&t)[EMU_PAGE - 1], 0);
		assert_int_equal(publish(t.f, t.member, t.owner, SIO_MCAST_UNPUBLISH), 0);
		write_all(&t, 8);
		assert_int_equal(bar(&t)[EMU_PAGE], 7);
		assert_int_equal(publish(t.f, t.member, t.owner, SIO_MCAST_PUBLISH), 0);
		write_all(&t, 9);
		assert_int_equal(bar(&t)[EMU_PAGE], 9);
		assert_int_equal(fake_end(t.f, LENDER, SIO_OP_FREE, t.member, t.owner), 0);
		write_all(&t, 10);
		assert_int_equal(bar(&t)[EMU_PAGE], 9);
		/* No RAM of the host's was in it. */
		assert_int_equal(t.f->room->host[LENDER].freed.bytes, 0);
		fake_free(t.f);
	}
}

/* A switch sends nothing back to where it came from. */
static void a_device_does_not_reach_itself(void **state)
{
	struct overlay_test t;
	uint8_t *own;

	(void)state;
	have(&t, 0);
	t.view = view_of(t.f, t.owner, 0, MEMORY, PAGES * EMU_PAGE, BOTH);
	enter(&t, t.owner);
	own = t.f->room->host[LENDER].device[0]->run[MEMORY_RUN].mem.data;
	write_all(&t, 7);
	assert_int_equal(own[EMU_PAGE], 0);
	fake_free(t.f);
}

/* Device TARGET is a virtual function of device 0 here: both are behind one port. */
static void a_device_does_not_reach_its_other_functions(void **state)
{
	struct overlay_test t;

	(void)state;
	have_of(&t, fake_new_functions(0));
	enter(&t, t.owner);
	write_all(&t, 7);
	assert_int_equal(bar(&t)[EMU_PAGE], 0);
	fake_free(t.f);
}

/* Whose the pages are, or the device itself, goes; whose the member is lives. */
static void what_goes_takes_it_along(void **state)
{
	struct overlay_test t;
	uint64_t other;

	(void)state;
	for (unsigned pull = 0; pull < 2; pull++) {
		have(&t, 1);
		other = fake_owner(t.f, LENDER);
		enter(&t, other);
		write_all(&t, 7);
		if (pull)
			assert_int_equal(emu_room_device(t.f->room, LENDER, TARGET, false), 0);
		else
			emu_room_owner_hup(t.f->room, LENDER, t.owner);
		write_all(&t, 8);
		if (!pull)
			assert_int_equal(bar(&t)[EMU_PAGE], 7);
		assert_int_equal(publish(t.f, t.member, other, SIO_MCAST_PUBLISH), -ENODEV);
		assert_int_equal(publish(t.f, t.member, other, SIO_MCAST_UNPUBLISH), -ENODEV);
		if (pull) /* what is back is another device, to the group as well */
			assert_int_equal(emu_room_device(t.f->room, LENDER, TARGET, true), 0);
		write_all(&t, 9);
		assert_int_not_equal(bar(&t)[EMU_PAGE], 9);
		assert_int_equal(fake_end(t.f, LENDER, SIO_OP_FREE, t.member, other), 0);
		fake_free(t.f);
	}
}

/* All of it at once, in the order in which things fall. */
static void its_owner_and_its_host_end(void **state)
{
	struct overlay_test t;

	(void)state;
	for (unsigned crash = 0; crash < 2; crash++) {
		have(&t, 1);
		enter(&t, t.owner);
		write_all(&t, 7);
		if (crash) {
			emu_room_host_down(t.f->room, LENDER);
			fake_up(t.f, LENDER);
			assert_int_equal(t.f->room->group[GROUP].users, 0);
		} else {
			emu_room_owner_hup(t.f->room, LENDER, t.owner);
			assert_int_equal(t.f->room->group[GROUP].members, 1);
			write_all(&t, 8);
			assert_int_equal(bar(&t)[EMU_PAGE], 7);
		}
		fake_free(t.f);
	}
}

/* The memory stays where it is, and so does the member; it is zeroed for whoever borrows next. */
static void a_reset_leaves_it(void **state)
{
	struct sio_req_reset req = {.device = DEV(LENDER, TARGET), .kind = SIO_RESET_FUNCTION};
	struct overlay_test t;

	(void)state;
	have(&t, 1);
	enter(&t, t.owner);
	write_all(&t, 7);
	assert_int_equal(ask_only(t.f, LENDER, &req, SIO_OP_RESET), 0);
	write_all(&t, 9);
	assert_int_equal(bar(&t)[EMU_PAGE], 9);
	fake_free(t.f);
}

/* Who writes to a group has it at addresses of RAM, so some host must have as many. */
static void no_group_is_larger_than_any_hosts_ram(void **state)
{
	struct overlay_test t = {.f = fake_new(0)};
	struct sio_req_free leave;
	struct sio_req_mcast req;

	(void)state;
	t.f->topo.exact_multicast = true;
	for (unsigned i = 0; i < 3; i++)
		fake_up(t.f, i);
	fake_open(t.f, LENDER, TARGET);
	t.owner = fake_owner(t.f, LENDER);
	t.view = view_of(t.f, t.owner, TARGET, MEMORY, PAGES * EMU_PAGE, BOTH);
	for (unsigned i = 0; i < t.f->topo.n_hosts; i++)
		t.f->topo.host[i].ram_size = EMU_PAGE;
	req = over(t.view, t.owner);
	req.length = PAGES * EMU_PAGE;
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -ENOSPC);
	assert_non_null(strstr(fake_text(t.f), "group 2 of 8192 bytes: no host has as much RAM"));
	assert_non_null(strstr(fake_text(t.f), "at most 4096, as "));
	/* Nothing of it is left: the size of the next one is the group's. */
	req.length = EMU_PAGE;
	assert_int_equal(mcast(t.f, LENDER, req, &t.member), 0);
	req.length = PAGES * EMU_PAGE;
	assert_int_equal(mcast(t.f, LENDER, req, NULL), -ERANGE);
	leave = (struct sio_req_free){.h.owner = t.owner, .id = t.member};
	assert_int_equal(ask_only(t.f, LENDER, &leave, SIO_OP_FREE), 0);
	/* It need not be the lender that has the RAM. */
	t.f->topo.host[OTHER].ram_size = PAGES * EMU_PAGE;
	assert_int_equal(mcast(t.f, LENDER, req, NULL), 0);
	fake_free(t.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_be_a_member),
		cmocka_unit_test(no_group_is_larger_than_any_hosts_ram),
		cmocka_unit_test(nothing_else_is_made_of_it),
		cmocka_unit_test(a_write_reaches_it),
		cmocka_unit_test(a_device_does_not_reach_itself),
		cmocka_unit_test(a_device_does_not_reach_its_other_functions),
		cmocka_unit_test(what_goes_takes_it_along),
		cmocka_unit_test(its_owner_and_its_host_end),
		cmocka_unit_test(a_reset_leaves_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
