/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of states: every event in every state, against what is written down here once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "emu/base/slot_life.h"
#include "emu/engine/channel_life.h"

/* A row for each state, a letter for each event: the state behind it, from 'a' on; '-': none. */
static const char *const slot_rows[] = {
	"b-c-a", /* a IN: PULL, PUT, TAKE, SET, POWER_OFF */
	"-a--c", /* b OUT */
	"-a-ac", /* c OUT_UNPOWERED */
};
static const char *const channel_rows[] = {
	"b--d", /* a IDLE: TAKE, DELAY, DONE, NONSENSE */
	"-ca-", /* b BUSY */
	"--a-", /* c LATE */
	"----", /* d BROKEN */
};

static void a_slot_goes_as_its_table_says(void **state)
{
	enum emu_slot_state next;

	(void)state;
	for (unsigned s = 0; s < EMU_SLOT_STATES; s++)
		for (unsigned e = 0; e < EMU_SLOT_EVENTS; e++) {
			char letter = slot_rows[s][e];

			next = EMU_SLOT_STATES;
			assert_int_equal(emu_slot_next(s, e, &next), letter != '-');
			assert_int_equal(next, letter == '-' ? EMU_SLOT_STATES : letter - 'a');
		}
}

static void a_channel_goes_as_its_table_says(void **state)
{
	enum emu_channel_state next;

	(void)state;
	for (unsigned s = 0; s < EMU_CHANNEL_STATES; s++)
		for (unsigned e = 0; e < EMU_CHANNEL_EVENTS; e++) {
			char letter = channel_rows[s][e];

			next = EMU_CHANNEL_STATES;
			assert_int_equal(emu_channel_next(s, e, &next), letter != '-');
			assert_int_equal(next, letter == '-' ? EMU_CHANNEL_STATES : letter - 'a');
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_goes_as_its_table_says),
		cmocka_unit_test(a_channel_goes_as_its_table_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
