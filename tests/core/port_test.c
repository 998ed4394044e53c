/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of the port's requests: whole, and what a packet can hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/port.h"
#include "smartio/uapi.h"

static void each_number_has_a_form(void **state)
{
	(void)state;
	for (uint32_t op = 1; op < SIO_OP_COUNT; op++) {
		const struct sio_port_form *f = sio_port_form(op);

		assert_non_null(f);
		assert_in_range(f->size, sizeof(struct sio_req), SIO_PORT_MAX_PACKET);
		assert_in_range(f->answer, sizeof(struct sio_evt), SIO_PORT_MAX_PACKET);
		assert_in_range(f->zero, offsetof(struct sio_req, reserved), f->size - 4);
		assert_in_range(f->fds, 0, SIO_PORT_MAX_FDS);
		assert_int_equal(f->size % 8, 0);
	}
}

static void no_other_number_has_one(void **state)
{
	(void)state;
	assert_null(sio_port_form(0));
	assert_null(sio_port_form(SIO_OP_COUNT));
	assert_null(sio_port_form(UINT32_MAX));
	assert_null(sio_port_form(SIO_EV_LINK));
}

static void numbers_stay_what_they_are(void **state)
{
	(void)state;
	assert_int_equal(SIO_OP_INFO, 1);
	assert_int_equal(SIO_OP_DMAMAP, 23);
	assert_string_equal(sio_port_form(42)->name, "GIVE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_number_has_a_form),
		cmocka_unit_test(no_other_number_has_one),
		cmocka_unit_test(numbers_stay_what_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
