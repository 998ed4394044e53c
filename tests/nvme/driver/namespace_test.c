/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of a drive with two namespaces, of blocks of 512 and of 4,096 bytes. */
#include "common.h"

#define BLOCKS2 (FAKE_BLOCKS / 16)
#define BLOCK2 4096u
#define SIZE1 ((size_t)FAKE_BLOCKS * 512)

static int setup_two(void **state)
{
	const struct fake_options o = {.second = true};

	(void)state;
	fake_start(&o);
	start_manager();
	return 0;
}

static struct smartio_nvme_queue *queue_of(struct smartio_nvme *n, uint32_t nsid)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .namespace_id = nsid};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static void each_is_told(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_info info;

	(void)state;
	smartio_nvme_get_info(n, &info);
	assert_int_equal(info.namespaces, 2);
	assert_ok(smartio_nvme_get_namespace(n, 0, &ns));
	assert_int_equal(ns.id, 1);
	assert_int_equal(ns.blocks, FAKE_BLOCKS);
	assert_int_equal(ns.block_size, 512);
	assert_ok(smartio_nvme_get_namespace(n, 1, &ns));
	assert_int_equal(ns.id, 2);
	assert_int_equal(ns.blocks, BLOCKS2);
	assert_int_equal(ns.block_size, BLOCK2);
	assert_int_equal(smartio_nvme_get_namespace(n, 2, &ns), -ENOENT);
	smartio_nvme_close(n);
}

/* The same block of both, by every way that names blocks. */
static void a_queue_is_of_one(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *one_ns = queue_of(n, 1), *two = queue_of(n, 2);
	struct smartio_nvme_buffer *b = buffer(n, 2 * BLOCK2);
	uint8_t *at = smartio_nvme_buffer_data(b);
	uint8_t data[BLOCK2];

	(void)state;
	memset(at, 0x11, 512);
	assert_ok(smartio_nvme_submit(one_ns, SMARTIO_NVME_WRITE, 7, 1, b, 0, NULL));
	assert_int_equal(one(one_ns).status, 0);
	memset(at + BLOCK2, 0x22, BLOCK2);
	assert_ok(smartio_nvme_submit(two, SMARTIO_NVME_WRITE, 7, 1, b, BLOCK2, NULL));
	assert_int_equal(one(two).status, 0);
	assert_int_equal(fake_media()[7 * 512], 0x11);
	assert_int_equal(fake_media()[SIZE1 + 7 * BLOCK2], 0x22);
	assert_int_equal(fake_media()[SIZE1 + 8 * BLOCK2 - 1], 0x22);
	assert_ok(smartio_nvme_read(two, data, 7 * BLOCK2, BLOCK2));
	assert_int_equal(data[0], 0x22);
	assert_ok(smartio_nvme_write_zeroes(two, 7 * BLOCK2, BLOCK2, 0));
	assert_ok(smartio_nvme_read(two, data, 7 * BLOCK2, BLOCK2));
	assert_int_equal(data[0], 0);
	assert_int_equal(fake_media()[7 * 512], 0x11);
	smartio_nvme_close(n);
}

static void limits_are_the_namespaces(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *one_ns = queue_of(n, 1), *two = queue_of(n, 2);
	struct smartio_nvme_buffer *b = buffer(n, 2u << 20);
	uint8_t data[512];

	(void)state;
	assert_ok(smartio_nvme_submit(one_ns, SMARTIO_NVME_READ, FAKE_BLOCKS - 1, 1, b, 0, NULL));
	assert_int_equal(one(one_ns).status, 0);
	assert_ok(smartio_nvme_submit(two, SMARTIO_NVME_READ, BLOCKS2 - 1, 1, b, 0, NULL));
	assert_int_equal(one(two).status, 0);
	assert_int_equal(smartio_nvme_submit(two, SMARTIO_NVME_READ, BLOCKS2, 1, b, 0, NULL),
			 -ERANGE);
	assert_text("namespace 2 ends at 512");
	/* The largest transfer is 1 MiB: 2,048 blocks, or 256. */
	assert_ok(smartio_nvme_submit(one_ns, SMARTIO_NVME_READ, 0, 2048, b, 0, NULL));
	assert_int_equal(one(one_ns).status, 0);
	assert_int_equal(smartio_nvme_submit(one_ns, SMARTIO_NVME_READ, 0, 2049, b, 0, NULL),
			 -ERANGE);
	assert_ok(smartio_nvme_submit(two, SMARTIO_NVME_READ, 0, 256, b, 0, NULL));
	assert_int_equal(one(two).status, 0);
	assert_int_equal(smartio_nvme_submit(two, SMARTIO_NVME_READ, 0, 257, b, 0, NULL), -ERANGE);
	assert_int_equal(smartio_nvme_read(two, data, 0, 512), -EINVAL);
	assert_text("not multiples of the block size, 4096");
	smartio_nvme_close(n);
}

static void leases_are_of_one(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_lease *a, *b, *c;
	struct smartio_nvme_lease_info info;
	struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	struct smartio_nvme_queue *q;
	uint8_t data[BLOCK2] = {0};

	(void)state;
	assert_ok(smartio_nvme_lease_take(n, "a", 1, 0, 100, &a));
	assert_ok(smartio_nvme_lease_take(n, "b", 2, 0, 100, &b)); /* the same numbers */
	assert_int_equal(smartio_nvme_lease_take(n, "c", 2, 99, 10, &c), -EBUSY);
	assert_text("of namespace 2");
	assert_int_equal(smartio_nvme_lease_take(n, "c", 2, 500, 13, &c), -ERANGE);
	assert_ok(smartio_nvme_lease_take(n, "c", 2, SMARTIO_NVME_ANYWHERE, BLOCKS2 - 100, &c));
	smartio_nvme_lease_get(c, &info);
	assert_int_equal(info.nsid, 2);
	assert_int_equal(info.lba, 100);
	o.lease = c;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	assert_ok(smartio_nvme_write(q, data, 100 * BLOCK2, BLOCK2));
	assert_int_equal(smartio_nvme_write(q, data, 99 * BLOCK2, BLOCK2), -ERANGE);
	o.namespace_id = 1;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("lease c is of namespace 2, not 1");
	smartio_nvme_close(n);
}

static void one_of_them_is_formatted_5_23(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_namespace ns;

	(void)state;
	memset(fake_media(), 0x55, SIZE1 + SIZE1 / 2);
	assert_ok(smartio_nvme_format(n, 2, 0, SMARTIO_NVME_CONFIRMED));
	assert_ok(smartio_nvme_get_namespace(n, 1, &ns));
	assert_int_equal(ns.block_size, 512);
	assert_int_equal(ns.blocks, SIZE1 / 2 / 512);
	assert_int_equal(fake_media()[SIZE1 - 1], 0x55);
	assert_int_equal(fake_media()[SIZE1], 0);
	smartio_nvme_close(n);
}

static void what_is_not_there_is_refused_6_1(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .namespace_id = 3};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;
	struct smartio_nvme_lease *l;

	(void)state;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("no namespace 3");
	assert_int_equal(smartio_nvme_lease_take(n, "a", 3, 0, 1, &l), -ERANGE);
	smartio_nvme_close(n);
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup_two, teardown)
	const struct CMUnitTest tests[] = {
		test(each_is_told),
		test(a_queue_is_of_one),
		test(limits_are_the_namespaces),
		test(leases_are_of_one),
		test(one_of_them_is_formatted_5_23),
		test(what_is_not_there_is_refused_6_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
