/* SPDX-License-Identifier: BSD-2-Clause */
/* What the port of a real host reads in sysfs and configuration space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "smartiod/port_shim/shim_port_own.h"

#define DEVICE 3

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

static void switches_above_of_sysfs(void **state)
{
	uint32_t above[SIO_ABOVE];

	(void)state;
	shim_device_above_of("/sys/devices/pci0000:00/0000:00:03.0", above);
	assert_int_equal(above[0], 0); /* beside the root */
	shim_device_above_of("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0", above);
	assert_int_equal(above[0], 0); /* in a root port */
	shim_device_above_of("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/"
			     "0000:03:00.0",
			     above);
	assert_int_equal(above[0], 0x100);
	assert_int_equal(above[1], 0);
	shim_device_above_of("/sys/devices/pci0001:00/0001:00:01.0/0001:01:00.0/0001:02:08.0/"
			     "0001:03:00.0/0001:04:01.0/0001:05:00.1",
			     above);
	assert_int_equal(above[0], 0x10100);
	assert_int_equal(above[1], 0x10300);
	assert_int_equal(above[2], 0);
	shim_device_above_of(NULL, above);
	assert_int_equal(above[0], 0);
	shim_device_above_of("/sys/devices/platform/nonsense/0000:zz", above);
	assert_int_equal(above[0], 0);
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
		cmocka_unit_test(bars_of_sysfs),
		cmocka_unit_test(switches_above_of_sysfs),
		cmocka_unit_test(serial_of_configuration_space),
		cmocka_unit_test(kinds_of_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
