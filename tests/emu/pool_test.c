/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool of a host, which machines with mapped windows map: what lies there, and what is left. */
#include "fake.h"

#define PAGE 0x1000u
#define POOL 0x4000u /* its first page is its header */
#define RAM_BASE(host) (0x100000000ull * ((host) + 1))

static struct fake *with_pool(uint64_t size)
{
	struct fake *f = fake_new(0);

	f->host[CLIENT].pool_size = size;
	fake_up(f, CLIENT);
	return f;
}

static int alloc(struct fake *f, uint64_t owner, uint32_t flags, uint64_t size,
		 struct sio_evt_alloc *ret)
{
	struct sio_req_alloc req = {
		.h = {.owner = owner, .flags = flags}, .size = size, .highest = SIO_PORT_ANY};

	return ask(f, CLIENT, &req, SIO_OP_ALLOC, ret);
}

static void release(struct fake *f, uint64_t id)
{
	struct sio_req_free req = {.id = id};

	assert_int_equal(ask_only(f, CLIENT, &req, SIO_OP_FREE), 0);
}

static uint64_t pool_free(struct fake *f)
{
	return fake_counter(f, CLIENT, 0, 0, "pool_free");
}

static void segments_lie_there(void **state)
{
	struct fake *f = with_pool(POOL);
	struct sio_evt_alloc a, b, own;

	(void)state;
	assert_int_equal(fake_counter(f, CLIENT, 0, 0, "pool_total"), POOL - PAGE);
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, PAGE + 1, &a), 0);
	assert_int_equal(a.offset, PAGE);
	assert_int_equal(a.address, RAM_BASE(CLIENT) + PAGE);
	assert_int_equal(f->answer.n_fds, 1);
	assert_ptr_equal(fake_data(f, CLIENT, a.id), f->pool + PAGE);
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, PAGE, &b), 0);
	assert_int_equal(b.offset, 3 * PAGE);
	assert_int_equal(pool_free(f), 0);
	/* Who has not said that a part of a file will do gets a file. */
	assert_int_equal(alloc(f, 0, 0, PAGE, &own), 0);
	assert_int_equal(own.offset, 0);
	assert_int_equal(own.address, RAM_BASE(CLIENT) + POOL);
	release(f, a.id);
	assert_int_equal(pool_free(f), 2 * PAGE);
	assert_int_equal(fake_counter(f, CLIENT, 0, 0, "ram_free"), (1 << 20) - 3 * PAGE);
	release(f, b.id);
	release(f, own.id);
	fake_free(f);
}

static void what_does_not_fit_lies_outside(void **state)
{
	struct fake *f = with_pool(POOL);
	struct sio_evt_alloc a, b;
	unsigned lines;

	(void)state;
	lines = f->log_lines;
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, POOL, &a), 0);
	assert_int_equal(a.offset, 0);
	assert_int_equal(a.address, RAM_BASE(CLIENT) + POOL);
	assert_int_equal(f->log_lines, lines + 1);
	assert_non_null(strstr(f->log, "pool of 16384 bytes"));
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, POOL, &b), 0);
	assert_int_equal(f->log_lines, lines + 1); /* once is enough */
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, 1 << 20, &b), -ENOSPC);
	assert_int_equal(fake_reason(f), SIO_OUT_OF_RAM);
	assert_non_null(strstr(fake_text(f), "pool has 12288, 12288 free, 0 in quarantine"));
	fake_free(f);
}

static void all_of_the_ram_may_be_the_pool(void **state)
{
	struct fake *f = with_pool(1 << 20);
	struct sio_evt_alloc a;

	(void)state;
	assert_int_equal(alloc(f, 0, 0, PAGE, &a), -ENOSPC);
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, PAGE, &a), 0);
	assert_int_equal(a.offset, PAGE);
	fake_free(f);
}

static void it_comes_back_cleared(void **state)
{
	struct fake *f = with_pool(POOL);
	struct sio_evt_alloc a, b;
	uint8_t *data;
	uint64_t owner;

	(void)state;
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, PAGE, &a), 0);
	data = fake_data(f, CLIENT, a.id);
	data[0] = data[PAGE - 1] = 7;
	release(f, a.id);
	assert_int_equal(data[0] | data[PAGE - 1], 0);
	data[5] = 9; /* by who has it mapped still */
	owner = fake_owner(f, CLIENT);
	assert_int_equal(alloc(f, owner, SIO_ALLOC_PART, PAGE, &b), 0);
	assert_int_equal(b.offset, a.offset);
	assert_int_equal(data[5], 0);
	data[6] = 3;
	emu_room_owner_hup(f->room, CLIENT, owner);
	assert_int_equal(data[6], 0);
	assert_int_equal(pool_free(f), POOL - PAGE);
	fake_free(f);
}

static void a_host_that_crashes_leaves_nothing(void **state)
{
	struct fake *f = with_pool(POOL);
	struct sio_evt_alloc a;
	uint8_t *data;

	(void)state;
	assert_int_equal(alloc(f, fake_owner(f, CLIENT), SIO_ALLOC_PART, 2 * PAGE, &a), 0);
	data = fake_data(f, CLIENT, a.id);
	memset(data, 5, 2 * PAGE);
	emu_room_host_down(f->room, CLIENT);
	assert_int_equal(data[0] | data[2 * PAGE - 1], 0);
	fake_up(f, CLIENT);
	assert_int_equal(pool_free(f), POOL - PAGE);
	fake_free(f);
}

/* A grant is outstanding: what a peer may reach is nobody else's until that has ended. */
static void what_is_granted_is_kept(void **state)
{
	struct fake *f = with_pool(POOL);
	struct sio_req_ungrant req = {0};
	struct sio_evt_alloc a, b, c, d;
	struct sio_evt_grant g;
	uint64_t owner;

	(void)state;
	fake_up(f, LENDER);
	owner = fake_owner(f, CLIENT);
	assert_int_equal(alloc(f, owner, SIO_ALLOC_PART, PAGE, &a), 0);
	g = fake_grant(f, CLIENT, owner, a.id, PAGE, LENDER);
	assert_int_equal(g.bus_addr, RAM_BASE(CLIENT) + PAGE);
	emu_room_owner_hup(f->room, CLIENT, owner);
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, PAGE, &b), 0);
	assert_int_equal(b.offset, 2 * PAGE);
	/* That is why there is no place. */
	assert_int_equal(alloc(f, 0, 0, (1 << 20) - POOL, &c), 0);
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, 2 * PAGE, &d), -ENOSPC);
	assert_int_equal(fake_reason(f), SIO_OUT_OF_QUARANTINE);
	assert_non_null(strstr(fake_text(f), "4096 free, 4096 in quarantine"));
	req.id = g.id;
	assert_int_equal(ask_only(f, CLIENT, &req, SIO_OP_UNGRANT), 0);
	assert_int_equal(alloc(f, 0, 0, 2 * PAGE, &d), -ENOSPC);
	assert_int_equal(fake_reason(f), SIO_OUT_OF_RAM);
	release(f, b.id);
	assert_int_equal(pool_free(f), POOL - PAGE);
	fake_free(f);
}

static int identify(void *ctx, int fd, unsigned host, uint64_t *ret_owner)
{
	(void)ctx;
	(void)fd;
	(void)host;
	(void)ret_owner;
	return -EBADF;
}

/* A daemon that was started again gets the descriptor once more, and where the memory begins. */
static void what_is_opened_again_begins_where_it_did(void **state)
{
	struct fake *f = with_pool(POOL);
	const struct emu_ops *ops = f->room->ops;
	struct emu_ops restarts = *ops;
	struct sio_req_reopen req = {.kind = SIO_KIND_MEM};
	struct sio_evt_reopen evt;
	struct sio_evt_alloc a;

	(void)state;
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, PAGE, &a), 0);
	restarts.identify = identify; /* by which the room knows that daemons are started again */
	f->room->ops = &restarts;
	req.id = a.id;
	assert_int_equal(ask(f, CLIENT, &req, SIO_OP_REOPEN, &evt), 0);
	f->room->ops = ops;
	assert_int_equal(evt.length, PAGE);
	assert_int_equal(evt.offset, a.offset);
	release(f, a.id);
	fake_free(f);
}

static void a_failure_gives_its_place_back(void **state)
{
	struct fake *f = with_pool(POOL);
	struct sio_evt_alloc a;

	(void)state;
	f->calls = 0;
	f->fail_at = 1;
	assert_int_equal(alloc(f, 0, SIO_ALLOC_PART, PAGE, &a), -EMFILE);
	assert_int_equal(pool_free(f), POOL - PAGE);
	f->fail_at = 0;
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_lie_there),
		cmocka_unit_test(what_does_not_fit_lies_outside),
		cmocka_unit_test(all_of_the_ram_may_be_the_pool),
		cmocka_unit_test(it_comes_back_cleared),
		cmocka_unit_test(a_host_that_crashes_leaves_nothing),
		cmocka_unit_test(what_is_granted_is_kept),
		cmocka_unit_test(what_is_opened_again_begins_where_it_did),
		cmocka_unit_test(a_failure_gives_its_place_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
