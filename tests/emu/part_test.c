/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of controller memory that one alone is let have, and what the device has there after. */
#include "fake.h"

static unsigned placed, put_back;

static int place(void *ctx, const struct emu_mem *whole, uint64_t offset,
		 const struct emu_mem *part)
{
	(void)ctx;
	assert_true(offset + part->size <= whole->size);
	placed++;
	return 0;
}

static void put(void *ctx, const struct emu_mem *whole, uint64_t offset, const struct emu_mem *part)
{
	(void)ctx;
	put_back++;
	memcpy((char *)whole->data + offset, part->data, part->size);
}

static struct fake *have(void)
{
	static struct emu_ops ops;
	struct fake *f = fake_new(0);

	ops = *f->room->ops;
	ops.mem_place = place;
	ops.mem_put_back = put;
	f->room->ops = &ops;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	placed = put_back = 0;
	return f;
}

static uint64_t view(struct fake *f, uint64_t owner, uint64_t page, uint64_t pages)
{
	struct sio_req_bar req = {.h.owner = owner,
				  .device = DEV(LENDER, 0),
				  .offset = MEMORY + page * 0x1000,
				  .length = pages * 0x1000,
				  .access = SIO_ACCESS_READ | SIO_ACCESS_WRITE};
	struct sio_evt_bar evt;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_BAR, &evt), 0);
	return evt.id;
}

static uint64_t grant(struct fake *f, uint64_t owner, uint64_t bar)
{
	struct sio_req_grant req = {.h.owner = owner,
				    .source_kind = SIO_KIND_BAR,
				    .access = SIO_ACCESS_READ | SIO_ACCESS_WRITE,
				    .source = bar,
				    .length = 0x1000,
				    .peer_node = NODE(CLIENT)};
	struct sio_evt_grant g;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_GRANT, &g), 0);
	fake_map(f, CLIENT, 0, LENDER, &g);
	return g.id;
}

static void close_view(struct fake *f, uint64_t owner, uint64_t bar, unsigned puts_back)
{
	unsigned before = put_back;

	assert_int_equal(fake_end(f, LENDER, SIO_OP_BAR_CLOSE, bar, owner), 0);
	assert_int_equal(put_back - before, puts_back);
}

static void each_goes_back(void **state)
{
	struct fake *f = have();
	uint64_t one = fake_owner(f, LENDER), other = fake_owner(f, LENDER), a, b;

	(void)state;
	a = view(f, one, 0, 1);
	b = view(f, other, 1, 1);
	assert_int_equal(placed, 2);
	close_view(f, one, a, 1);
	close_view(f, other, b, 1);
	/* All of it is no part. */
	a = view(f, one, 0, 2);
	assert_int_equal(placed, 2);
	close_view(f, one, a, 0);
	fake_free(f);
}

/* Its daemon learns late that a program's window may go: by then the page has another user. */
static void what_the_dead_had_comes_back_over_nobody(void **state)
{
	struct fake *f = have();
	uint64_t dead = fake_owner(f, LENDER), next = fake_owner(f, LENDER), g, b;

	(void)state;
	g = grant(f, dead, view(f, dead, 0, 1));
	emu_room_owner_hup(f->room, LENDER, dead);
	assert_int_equal(put_back, 0);
	b = view(f, next, 0, 1);
	assert_int_equal(placed, 2);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g, 0), 0);
	assert_int_equal(put_back, 0);
	close_view(f, next, b, 1);
	/* Without another one it comes back. */
	g = grant(f, next, view(f, next, 1, 1));
	emu_room_owner_hup(f->room, LENDER, next);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g, 0), 0);
	assert_int_equal(put_back, 2);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_goes_back),
		cmocka_unit_test(what_the_dead_had_comes_back_over_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
