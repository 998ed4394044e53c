/* SPDX-License-Identifier: BSD-2-Clause */
/* Another layout of a host's addresses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emu/machine/layout.h"

#define GIB (1ull << 30)

struct fixture {
	struct sio_topo_device device[2];
	struct sio_topo_chassis chassis[2];
	struct sio_topo_host host;
};

static struct fixture *fixture(uint32_t bits)
{
	static struct fixture f;

	f = (struct fixture){
		.device = {{.bar_base = 3 * GIB, .dma_bits = 64},
			   {.bar_base = 3 * GIB + SIO_TOPO_BAR_SPACE, .dma_bits = bits}},
		.chassis = {{.range_base = 3 * GIB, .range_size = 2 * SIO_TOPO_BAR_SPACE}},
		.host = {.name = "h",
			 .ram_base = 4 * GIB,
			 .ram_size = 64 << 20,
			 .n_adapters = 1,
			 .adapter = {{.window_base = 8 * GIB, .window_size = 8 * GIB}},
			 .n_devices = 2,
			 .n_chassis = 2}};
	f.host.device = f.device;
	f.host.chassis = f.chassis;
	return &f;
}

static void expect_moved(const struct fixture *f, uint64_t by)
{
	assert_int_equal(f->host.ram_base, 4 * GIB + by);
	assert_int_equal(f->host.adapter[0].window_base, 8 * GIB + by);
	assert_int_equal(f->device[0].bar_base, 3 * GIB + by);
	assert_int_equal(f->device[1].bar_base, 3 * GIB + SIO_TOPO_BAR_SPACE + by);
	assert_int_equal(f->chassis[0].range_base, 3 * GIB + by);
	assert_int_equal(f->chassis[1].range_base, 0); /* nothing is behind it */
}

/* By more than all of it, and by a multiple of every alignment; again and again elsewhere. */
static void all_moves_together(void **state)
{
	struct fixture *f = fixture(64);
	struct sio_err err;

	(void)state;
	assert_int_equal(emu_layout_move(&f->host, &err), 0);
	expect_moved(f, 16 * GIB);
	assert_int_equal(emu_layout_move(&f->host, &err), 0);
	expect_moved(f, 32 * GIB);
}

/* Where a device cannot reach higher it is back where it was before. */
static void it_stays_within_what_devices_send(void **state)
{
	struct fixture *f = fixture(35);
	struct sio_err err;

	(void)state;
	assert_int_equal(emu_layout_move(&f->host, &err), 0);
	expect_moved(f, 16 * GIB);
	assert_int_equal(emu_layout_move(&f->host, &err), 0);
	expect_moved(f, 0);
}

static void no_room_is_said(void **state)
{
	struct fixture *f = fixture(34);
	struct sio_err err;

	(void)state;
	assert_int_equal(emu_layout_move(&f->host, &err), -ENOSPC);
	assert_string_equal(err.text,
			    "host h has no other place for 0xc0000000 to 0x400000000: its "
			    "devices send addresses of 34 bits");
	expect_moved(f, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_moves_together),
		cmocka_unit_test(it_stays_within_what_devices_send),
		cmocka_unit_test(no_room_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
