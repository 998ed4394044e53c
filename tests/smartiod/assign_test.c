/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of a device's own memory that the holder of its registers lets others have. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/lender/lend.h"

#define FDID 0x400001
#define CMB 2
#define PAGE SIO_PAGE_SIZE

/* Host 0 lends. A manager on host 1 has the registers; clients are on host 2 and on host 0. */
struct fixture {
	struct fake_device fake;
	struct world *w;
	struct world_client *manager, *client, *local;
	struct call_borrow m, c, l;
	uint32_t c_bar, l_bar, m_bar; /* connections to BAR 2 */
};

static uint32_t connect_cmb(struct world *w, struct world_client *c, const struct call_borrow *b)
{
	uint32_t bar = 0;

	assert_int_equal(call_dev_seg_connect(w, c, b->handle, CMB, SCI_MEMTYPE_BAR, &bar, NULL),
			 0);
	return bar;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint32_t bar, map, access[4];

	assert_non_null(f);
	*state = f;
	f->w = world_new(3, 0);
	fake_device_add(f->w, &f->fake);
	f->fake.cmb = 4 * PAGE;
	world_start(f->w);
	f->manager = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	f->client = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	f->local = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	call_take(f->w, f->manager, FDID, 0, &f->m, &bar, &map, access);
	assert_int_equal(call_borrow(f->w, f->client, FDID, 0, &f->c), 0);
	assert_int_equal(call_borrow(f->w, f->local, FDID, 0, &f->l), 0);
	f->m_bar = connect_cmb(f->w, f->manager, &f->m);
	f->c_bar = connect_cmb(f->w, f->client, &f->c);
	f->l_bar = connect_cmb(f->w, f->local, &f->l);
	return 0;
}

/* Without a reset: nothing of this waits for one. */
static int teardown(void **state)
{
	struct fixture *f = *state;
	struct world_client *c;
	struct call_borrow b;

	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(f->w, c, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	world_kill(f->w, c);
	world_run(f->w);
	assert_null(smartiod_device_known(f->w->host[0].daemon, FDID)->lent->assigned);
	assert_nothing_left(f->w);
	assert_int_equal(f->fake.bad, 0);
	world_free(f->w);
	free(f);
	return 0;
}

static int assign_by(struct fixture *f, struct world_client *by, uint32_t device, uint64_t of,
		     uint64_t offset, uint64_t bytes)
{
	struct sio_msg_dev_assign msg = {.device = sio_to_le32(device),
					 .bar = sio_to_le32(CMB),
					 .borrower = sio_to_le64(of),
					 .offset = sio_to_le64(offset),
					 .bytes = sio_to_le64(bytes)};
	const struct world_message *m = world_call(f->w, by, SIO_MSG_DEV_ASSIGN, &msg, sizeof(msg));

	return m ? (int)m->error : -1;
}

static int assign(struct fixture *f, uint64_t of, uint64_t offset, uint64_t bytes)
{
	return assign_by(f, f->manager, f->m.handle, of, offset, bytes);
}

static struct sio_msg_seg_map map_of(uint32_t bar, uint64_t offset, uint64_t bytes)
{
	return (struct sio_msg_seg_map){.handle = sio_to_le32(bar),
					.offset = sio_to_le64(offset),
					.bytes = sio_to_le64(bytes)};
}

/* Bytes of the device's memory that can be written there. *ret_map: to be unmapped. */
static uint64_t mapped(const struct world_message *m, uint64_t offset, uint32_t *ret_map)
{
	const struct sio_rep_seg_map *rep = (const void *)m->data;
	uint64_t got = 0;

	*ret_map = 0;
	if (m->error)
		return 0;
	*ret_map = sio_from_le32(rep->map);
	for (uint32_t i = 0; i < sio_from_le32(rep->n_pieces); i++)
		if (sio_from_le32(rep->piece[i].access) & SIO_ACCESS_WRITE) {
			assert_true(sio_from_le64(rep->piece[i].offset) >= offset);
			got += sio_from_le64(rep->piece[i].bytes);
		}
	return got;
}

static uint64_t map_cmb(struct fixture *f, struct world_client *c, uint32_t bar, uint64_t offset,
			uint64_t bytes, uint32_t *ret_map)
{
	struct sio_msg_seg_map msg = map_of(bar, offset, bytes);

	return mapped(world_call(f->w, c, SIO_MSG_SEG_MAP, &msg, sizeof(msg)), offset, ret_map);
}

static void unmap(struct fixture *f, struct world_client *c, uint32_t map)
{
	assert_int_equal(call_handle(f->w, c, SIO_MSG_SEG_UNMAP, map, 0), 0);
	world_run(f->w);
}

static void who_asks_and_for_what(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(assign(f, f->c.id, 0, PAGE), 0);
	assert_int_equal(assign_by(f, f->client, f->c.handle, f->c.id, PAGE, PAGE), EACCES);
	assert_int_equal(assign_by(f, f->client, f->c.handle, f->l.id, PAGE, PAGE), EACCES);
	assert_int_equal(assign(f, f->m.id, PAGE, PAGE), EINVAL);
	assert_int_equal(assign(f, f->c.id + 1000, PAGE, PAGE), EINVAL);
	assert_int_equal(assign(f, 0, PAGE, PAGE), EINVAL);
	assert_int_equal(assign(f, f->c.id, 1, PAGE), ERANGE);
	assert_int_equal(assign(f, f->c.id, 0, PAGE + 1), ERANGE);
	assert_int_equal(assign(f, f->c.id, 0, 0), ERANGE);
	assert_int_equal(assign(f, f->c.id, 4 * PAGE, PAGE), ERANGE);
	assert_int_equal(assign(f, f->c.id, 3 * PAGE, 2 * PAGE), ERANGE);
	assert_int_equal(assign(f, f->c.id, PAGE, UINT64_MAX - PAGE + 1), ERANGE);
}

static void each_has_its_own_and_no_more(void **state)
{
	struct fixture *f = *state;
	uint32_t map, all;

	assert_int_equal(map_cmb(f, f->client, f->c_bar, 0, 4 * PAGE, &map), 0);
	assert_int_equal(assign(f, f->c.id, PAGE, 2 * PAGE), 0);
	assert_int_equal(assign(f, f->l.id, 3 * PAGE, PAGE), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, PAGE, 2 * PAGE, &map), 2 * PAGE);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 2 * PAGE, PAGE, &map), PAGE);
	assert_int_equal(map_cmb(f, f->local, f->l_bar, 3 * PAGE, PAGE, &map), PAGE);
	/* Beside them, and over their ends. */
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 0, PAGE, &map), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 3 * PAGE, PAGE, &map), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 2 * PAGE, 2 * PAGE, &map), 0);
	assert_int_equal(map_cmb(f, f->local, f->l_bar, PAGE, PAGE, &map), 0);
	/* Whoever places queues there has all of it. */
	assert_int_equal(map_cmb(f, f->manager, f->m_bar, 0, 4 * PAGE, &all), 4 * PAGE);
}

static void a_page_that_is_mapped_goes_to_nobody_else(void **state)
{
	struct fixture *f = *state;
	uint32_t map, again;

	assert_int_equal(assign(f, f->c.id, 0, 2 * PAGE), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 0, PAGE, &map), PAGE);
	assert_int_equal(assign(f, f->l.id, 0, PAGE), EBUSY);
	assert_int_equal(assign(f, f->l.id, PAGE, PAGE), EBUSY);
	assert_int_equal(assign(f, f->l.id, 2 * PAGE, PAGE), 0);
	assert_int_equal(assign(f, f->c.id, 0, 2 * PAGE), 0);
	unmap(f, f->client, map);
	assert_int_equal(assign(f, f->l.id, 0, PAGE), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 0, PAGE, &map), 0);
	assert_int_equal(map_cmb(f, f->local, f->l_bar, 0, PAGE, &again), PAGE);
}

/* Fewer or more pages of its own again: that would hide those which it has mapped. */
static void what_is_mapped_is_not_forgotten(void **state)
{
	struct fixture *f = *state;
	uint32_t map, again;

	assert_int_equal(assign(f, f->c.id, PAGE, 2 * PAGE), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, PAGE, 2 * PAGE, &map), 2 * PAGE);
	assert_int_equal(assign(f, f->c.id, PAGE, PAGE), EBUSY);
	assert_int_equal(assign(f, f->c.id, 2 * PAGE, PAGE), EBUSY);
	assert_int_equal(assign(f, f->c.id, 0, 4 * PAGE), EBUSY);
	assert_int_equal(assign(f, f->l.id, PAGE, PAGE), EBUSY);
	assert_int_equal(assign(f, f->l.id, 2 * PAGE, PAGE), EBUSY);
	unmap(f, f->client, map);
	assert_int_equal(assign(f, f->c.id, PAGE, PAGE), 0);
	assert_int_equal(assign(f, f->l.id, 2 * PAGE, PAGE), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, PAGE, PAGE, &map), PAGE);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 2 * PAGE, PAGE, &again), 0);
	assert_int_equal(map_cmb(f, f->local, f->l_bar, 2 * PAGE, PAGE, &again), PAGE);
}

/* It becomes another's while the port opens it. */
static void a_view_that_comes_late_is_none(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_seg_map msg = map_of(f->c_bar, 0, PAGE);
	uint32_t id, map;

	assert_int_equal(assign(f, f->c.id, 0, PAGE), 0);
	f->w->late = SIO_OP_BAR;
	id = world_send(f->w, f->client, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
	world_run(f->w);
	assert_null(world_reply(f->client, id));
	assert_int_equal(assign(f, f->l.id, 0, PAGE), 0);
	f->w->late = 0;
	world_run(f->w);
	assert_int_equal(world_reply(f->client, id)->error, EACCES);
	assert_int_equal(map_cmb(f, f->local, f->l_bar, 0, PAGE, &map), PAGE);
}

static void the_dead_have_none(void **state)
{
	struct fixture *f = *state;
	uint32_t map;

	assert_int_equal(assign(f, f->c.id, 0, PAGE), 0);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 0, PAGE, &map), PAGE);
	world_kill(f->w, f->client);
	world_run(f->w);
	assert_int_equal(assign(f, f->c.id, 0, PAGE), EINVAL);
	assert_int_equal(assign(f, f->l.id, 0, PAGE), 0);
	assert_int_equal(map_cmb(f, f->local, f->l_bar, 0, PAGE, &map), PAGE);
}

/* It outlives who said so. */
static void the_holder_dies(void **state)
{
	struct fixture *f = *state;
	uint32_t map, bar, regs, access[4];

	assert_int_equal(assign(f, f->c.id, 0, PAGE), 0);
	world_kill(f->w, f->manager);
	world_run(f->w);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, 0, PAGE, &map), PAGE);
	/* And did not make him who has it the holder. */
	assert_int_equal(
		call_dev_seg_connect(f->w, f->local, f->l.handle, 0, SCI_MEMTYPE_BAR, &bar, NULL),
		0);
	assert_int_equal(call_bar_map(f->w, f->local, bar, 0, &regs, access), 0);
	assert_int_equal(access[0], SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	assert_int_equal(assign_by(f, f->local, f->l.handle, f->c.id, PAGE, PAGE), 0);
	/* A reset takes it from nobody. */
	assert_int_equal(call_settled(f->w, f->local, f->l.handle, SIO_BORROWER_ALL), 0);
	world_run(f->w);
	assert_int_equal(map_cmb(f, f->client, f->c_bar, PAGE, PAGE, &map), PAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_asks_and_for_what),
		TEST(each_has_its_own_and_no_more),
		TEST(a_page_that_is_mapped_goes_to_nobody_else),
		TEST(what_is_mapped_is_not_forgotten),
		TEST(a_view_that_comes_late_is_none),
		TEST(the_dead_have_none),
		TEST(the_holder_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
