/* SPDX-License-Identifier: BSD-2-Clause */
/* The time model against examples computed by hand: a link of one byte a nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/timing.h"

static const struct fabric_params simple = {
	.limits = {.max_payload = 256, .max_read_request = 512, .read_completion_boundary = 64},
	.tags = 32,
	.adapter_ps = 100000,
	.switch_ps = 150000,
	.chassis_ps = 120000,
	.cable_ps = 10000,
	.root_write_ps = 200000,
	.root_read_ps = 300000,
	.cpu_out_ps = 50000,
	.iommu_ps = 40000,
	.register_ps = 100000,
	.device_link = {1, 1},
	.media_units = 1,
};

/* Two adapters, a switch, two cables: 370 ns one way. x4 of generation 1: 1 GB/s. */
static const struct fabric_way far = {.slowest = {4, 1}, .adapters = 2, .switches = 1, .cables = 2};
static const struct fabric_way near = {.slowest = {4, 1}};

static struct fabric_way with(struct fabric_way w, uint32_t iommus, uint32_t from_cpu, uint32_t reg)
{
	w.iommus = iommus;
	w.from_cpu = from_cpu;
	w.to_register = reg;
	return w;
}

static void links(void **state)
{
	const struct fabric_way flits = {.slowest = {1, 6}}, before = {.slowest = {1, 5}};

	(void)state;
	/* 256 bytes and 16 of header, in flits of which 236 bytes of 256 are the packets'. */
	assert_int_equal(fabric_write_busy_ns(&simple, &flits, 0, 256), 37);
	/* 8 around it as well, in twice the time; 128 of 130 bits. */
	assert_int_equal(fabric_write_busy_ns(&simple, &before, 0, 256), 72);
	assert_int_equal(
		fabric_slower((struct fabric_link){8, 3}, (struct fabric_link){4, 3}).width, 4);
	assert_int_equal(
		fabric_slower((struct fabric_link){8, 3}, (struct fabric_link){8, 1}).generation,
		1);
}

static void writes(void **state)
{
	struct fabric_way w = with(far, 0, 1, 0);

	(void)state;
	/* 50 out + 370 + 200 memory + 4 + 24 bytes. */
	assert_int_equal(fabric_write_ns(&simple, &w, 0, 4), 648);
	/* Two packets: 512 + 48 bytes. */
	assert_int_equal(fabric_write_ns(&simple, &w, 0, 512), 1180);
	assert_int_equal(fabric_write_busy_ns(&simple, &w, 0, 512), 560);
	/* 64 bytes across a page: two packets. */
	assert_int_equal(fabric_write_busy_ns(&simple, &w, 4096 - 32, 64), 64 + 48);
	/* A device of the host itself through an IOMMU: 40 + 200 + 88. */
	w = with(near, 1, 0, 0);
	assert_int_equal(fabric_write_ns(&simple, &w, 0, 64), 328);
	/* The same from within two chassis: 240 more. */
	w.chassis = 2;
	assert_int_equal(fabric_write_ns(&simple, &w, 0, 64), 568);
	/* A doorbell: half of a register's time. 50 + 370 + 50 + 28. */
	w = with(far, 0, 1, 1);
	assert_int_equal(fabric_write_ns(&simple, &w, 0, 4), 498);
}

static void reads(void **state)
{
	struct fabric_params p = simple;
	struct fabric_way w = with(far, 1, 0, 0);

	(void)state;
	/* The request's 24, 740 there and back, IOMMU 40, memory 300; then 64 + 20. */
	assert_int_equal(fabric_read_ns(&p, &w, 0, 64), 1104 + 84);
	/* 8 requests, 16 completions: 4096 + 16 * 20 bytes. */
	assert_int_equal(fabric_read_ns(&p, &w, 0, 4096), 1104 + 4416);
	/* One request at a time, each a round trip and 552 bytes. */
	p.tags = 1;
	assert_int_equal(fabric_read_ns(&p, &w, 0, 4096), 8 * (1104 + 552));
	/* Four at a time: the first tag is free again before the others' data are there. */
	p.tags = 4;
	assert_int_equal(fabric_read_ns(&p, &w, 0, 4096), 1104 + 4416);
	/* Completions of 128 bytes at most: 32 of them. */
	p.limits.max_payload = 128;
	assert_int_equal(fabric_read_ns(&p, &w, 0, 4096), 1104 + 4096 + 32 * 20);
	/* A program's load of a register: 24 + 740 + 100 + 100 out and in, 4 + 20 back. */
	w = with(far, 0, 1, 1);
	assert_int_equal(fabric_read_ns(&p, &w, 0, 4), 964 + 24);
}

static void nonsense_is_named(void **state)
{
	struct fabric_params p;

	(void)state;
	fabric_params_default(&p);
	assert_null(fabric_params_wrong(&p));
	p.tags = 0;
	assert_non_null(strstr(fabric_params_wrong(&p), "tags"));
	p.tags = 1025;
	assert_non_null(strstr(fabric_params_wrong(&p), "tags"));
	fabric_params_default(&p);
	p.device_link.generation = 7;
	assert_non_null(strstr(fabric_params_wrong(&p), "device_link"));
	fabric_params_default(&p);
	p.limits.max_payload = 100;
	assert_non_null(strstr(fabric_params_wrong(&p), "limits"));
	fabric_params_default(&p);
	p.media_units = 0;
	assert_non_null(strstr(fabric_params_wrong(&p), "media_units"));
}

static void all_lines_say_modelled(void **state)
{
	struct fabric_params p;
	char *text = NULL;
	size_t len;
	unsigned lines = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	fabric_params_default(&p);
	fabric_params_print(&p, f);
	fclose(f);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++)
		assert_int_equal(strncmp(line, "modelled: ", 10), 0);
	assert_true(lines >= 20);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links),
		cmocka_unit_test(writes),
		cmocka_unit_test(reads),
		cmocka_unit_test(nonsense_is_named),
		cmocka_unit_test(all_lines_say_modelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
