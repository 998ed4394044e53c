/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the shim's port tells unasked, out of what there was and what there is; and what sysfs says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "smartiod/port_shim/shim_port_news.h"
#include "smartiod/port_shim/shim_port_own.h"

#define OWNER 0x100001
#define DEVICE 3

/* The next event is @op, about @id; 0: there is none. */
static void expect(struct shim_news *n, uint32_t op, uint64_t id)
{
	union {
		struct sio_evt h;
		struct sio_evt_owner_gone gone;
		struct sio_evt_device_state device;
		char room[SIO_PORT_MAX_PACKET];
	} u;
	long size = shim_news_next(n, &u);

	if (op == 0) {
		assert_true(size < 0);
		return;
	}
	assert_int_equal(size, u.h.size);
	assert_int_equal(u.h.op, op);
	if (op == SIO_EV_DEVICE_GONE || op == SIO_EV_DEVICE_BACK)
		assert_int_equal(u.device.device, id);
	else
		assert_int_equal(u.h.owner, id);
	if (op == SIO_EV_OWNER_GONE)
		assert_int_equal(u.gone.mems, u.gone.dmamaps);
}

static void look_at_device(struct shim_news *n, uint64_t generation)
{
	shim_news_begin(n);
	if (generation)
		assert_int_equal(shim_news_device(n, DEVICE, generation), 0);
	assert_int_equal(shim_news_end(n), 0);
}

static void what_was_there_is_no_news(void **state)
{
	struct shim_news n;

	(void)state;
	shim_news_init(&n);
	shim_news_begin(&n);
	assert_int_equal(shim_news_owner(&n, OWNER, true, NULL), 0);
	assert_int_equal(shim_news_owner(&n, OWNER + 1, false, NULL), 0);
	assert_int_equal(shim_news_device(&n, DEVICE, 1), 0);
	assert_int_equal(shim_news_end(&n), 0);
	expect(&n, 0, 0);
	assert_true(shim_news_wants(&n, OWNER));
	assert_false(shim_news_wants(&n, OWNER + 1));
	shim_news_begin(
		&n); /* the second one's quarantine is over, the first has ended and is gone */
	assert_int_equal(shim_news_device(&n, DEVICE, 1), 0);
	assert_int_equal(shim_news_end(&n), 0);
	expect(&n, SIO_EV_OWNER_GONE, OWNER);
	expect(&n, SIO_EV_OWNER_END, OWNER);
	expect(&n, SIO_EV_OWNER_END, OWNER + 1);
	expect(&n, 0, 0);
	shim_news_done(&n);
}

static void an_owner_ends_and_is_settled(void **state)
{
	struct sio_evt_owner_gone rest = {.dmamaps = 2, .mems = 2};
	struct shim_news n;

	(void)state;
	shim_news_init(&n);
	look_at_device(&n, 1);
	assert_int_equal(shim_news_owner(&n, OWNER, true, NULL), 0);
	for (int i = 0; i < 2; i++) { /* told once */
		shim_news_begin(&n);
		assert_int_equal(shim_news_owner(&n, OWNER, false, &rest), 0);
		assert_int_equal(shim_news_device(&n, DEVICE, 1), 0);
		assert_int_equal(shim_news_end(&n), 0);
		expect(&n, i ? 0 : SIO_EV_OWNER_GONE, OWNER);
	}
	look_at_device(&n, 1);
	expect(&n, SIO_EV_OWNER_END, OWNER);
	expect(&n, 0, 0);
	shim_news_done(&n);
}

static void many_owners_at_once(void **state)
{
	struct shim_news n;

	(void)state;
	shim_news_init(&n);
	look_at_device(&n, 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(shim_news_owner(&n, OWNER + i, true, NULL), 0);
	shim_news_begin(&n);
	for (uint64_t i = 0; i < 100; i += 2)
		assert_int_equal(shim_news_owner(&n, OWNER + i, true, NULL), 0);
	assert_int_equal(shim_news_end(&n), 0);
	for (uint64_t i = 1; i < 100; i += 2) {
		expect(&n, SIO_EV_OWNER_GONE, OWNER + i);
		expect(&n, SIO_EV_OWNER_END, OWNER + i);
	}
	expect(&n, 0, 0);
	shim_news_done(&n);
}

static void a_device_comes_and_goes(void **state)
{
	struct shim_news n;

	(void)state;
	shim_news_init(&n);
	look_at_device(&n, 0);
	look_at_device(&n, 1);
	expect(&n, SIO_EV_DEVICE_BACK, DEVICE);
	look_at_device(&n, 1);
	expect(&n, 0, 0);
	look_at_device(&n, 0);
	expect(&n, SIO_EV_DEVICE_GONE, DEVICE);
	look_at_device(&n, 0);
	expect(&n, 0, 0);
	look_at_device(&n, 3);
	expect(&n, SIO_EV_DEVICE_BACK, DEVICE);
	look_at_device(&n, 5); /* gone and back between two looks */
	expect(&n, SIO_EV_DEVICE_GONE, DEVICE);
	expect(&n, SIO_EV_DEVICE_BACK, DEVICE);
	expect(&n, 0, 0);
	shim_news_done(&n);
}

/* Its generation moves with a reset, which nobody wants to hear of. */
static void a_reset_is_no_news(void **state)
{
	struct shim_news n;

	(void)state;
	shim_news_init(&n);
	look_at_device(&n, 1);
	shim_news_begin(&n);
	shim_news_unsure(&n, DEVICE);
	assert_int_equal(shim_news_end(&n), 0);
	expect(&n, 0, 0);
	shim_news_reset(&n, DEVICE, 2);
	look_at_device(&n, 2);
	expect(&n, 0, 0);
	shim_news_reset(&n, DEVICE, 3);
	look_at_device(&n, 5); /* but what came behind it */
	expect(&n, SIO_EV_DEVICE_GONE, DEVICE);
	expect(&n, SIO_EV_DEVICE_BACK, DEVICE);
	shim_news_done(&n);
}

static void bars_of_sysfs(void **state)
{
	static const char text[] = "0x00000000fe600000 0x00000000fe603fff 0x0000000000140204\n"
				   "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
				   "0x000000000000c000 0x000000000000c0ff 0x0000000000040101\n"
				   "0x0000004000000000 0x00000043ffffffff 0x000000000014220c\n";
	struct sio_evt_device evt = {.id = DEVICE};

	(void)state;
	shim_device_bars(text, &evt);
	assert_int_equal(evt.bar_addr[0], 0xfe600000);
	assert_int_equal(evt.bar_size[0], 0x4000);
	assert_int_equal(evt.bar_size[1], 0);
	assert_int_equal(evt.bar_size[2], 0); /* ports */
	assert_int_equal(evt.bar_addr[3], 0x4000000000);
	assert_int_equal(evt.bar_size[3], 0x400000000);
	assert_int_equal(evt.bar_size[4], 0);
	shim_device_bars("nonsense", &evt);
	assert_int_equal(evt.bar_size[0], 0x4000);
}

static void serial_of_configuration_space(void **state)
{
	unsigned char config[4096] = {0};

	(void)state;
	assert_int_equal(shim_device_serial(config, sizeof(config)), 0);
	assert_int_equal(shim_device_serial(config, 64), 0);
	memcpy(config + 0x100, "\x01\x00\x01\x14", 4); /* AER; next: 0x140 */
	memcpy(config + 0x140, "\x03\x00\x01\x10\x78\x56\x34\x12\xef\xcd\xab\x90", 12);
	assert_int_equal(shim_device_serial(config, sizeof(config)), 0x90abcdef12345678);
	assert_int_equal(shim_device_serial(config, 0x148), 0); /* cut off */
	memcpy(config + 0x140, "\x02\x00\x01\x10", 4);		/* a circle */
	assert_int_equal(shim_device_serial(config, sizeof(config)), 0);
}

static void kinds_of_reset(void **state)
{
	const uint32_t function = 1u << SIO_RESET_FUNCTION, bus = 1u << SIO_RESET_BUS;

	(void)state;
	assert_int_equal(shim_device_resets("", true), 0);
	assert_int_equal(shim_device_resets("\n", true), 0);
	assert_int_equal(shim_device_resets("flr\n", false), function);
	assert_int_equal(shim_device_resets("af_flr pm bus\n", false), function);
	assert_int_equal(shim_device_resets("flr bus\n", true), function | bus);
	assert_int_equal(shim_device_resets("bus\n", true), bus);
	assert_int_equal(shim_device_resets("bus\n", false), 0); /* others would be reset, too */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_there_is_no_news),
		cmocka_unit_test(an_owner_ends_and_is_settled),
		cmocka_unit_test(many_owners_at_once),
		cmocka_unit_test(a_device_comes_and_goes),
		cmocka_unit_test(a_reset_is_no_news),
		cmocka_unit_test(bars_of_sysfs),
		cmocka_unit_test(serial_of_configuration_space),
		cmocka_unit_test(kinds_of_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
