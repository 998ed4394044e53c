/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of states: every event in every state, against what is written down here once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "smartiod/borrower/borrow_life.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/interrupt/ring_life.h"
#include "smartiod/interrupt/sender_life.h"
#include "smartiod/lender/loan_life.h"
#include "smartiod/lender/vector_life.h"
#include "smartiod/segment/connection_life.h"
#include "smartiod/segment/segment_life.h"

/* A row for each state, a letter for each event: the state behind it, from 'a' on; '-': none. */
static const char *const segment_rows[] = {
	"bc-dad", /* a OWNED: GIVE, KEEP, GIVEN, MAKER_GONE, UNUSED, CUT */
	"--cd-d", /* b GIVING */
	"---ddd", /* c KEPT */
	"--dddd", /* d ENDED */
};
static const char *const borrow_rows[] = {
	"b-d", /* a ASKED: LENT, LOSE, END */
	"-cd", /* b LIVE */
	"--e", /* c LOST */
	"ded", /* d ENDED */
	"---", /* e ENDED_LOST */
};
static const char *const loan_rows[] = {
	"bac--h-", /* a ASKED: WAIT, GO, LEND, CLAIM, OWNER_GONE, END, CLOSE */
	"-a---g-", /* b WAITING */
	"-----h-", /* c LIVE */
	"---cfh-", /* d OLD */
	"---cfh-", /* e DISTANT */
	"----fi-", /* f ORPHANED */
	"------j", /* g WAITING_ENDED */
	"----i-j", /* h ENDED */
	"----i-j", /* i ENDED_ORPHANED */
	"----j--", /* j CLOSED */
};
static const char *const bond_rows[] = {
	"cbaa", /* a APART: EXPECT, MEET, PART, END */
	"--ca", /* b JOINED */
	"-bca", /* c EXPECTED */
};
static const char *const ring_rows[] = {
	"ed-cb", /* a BUILDING: BUILT, BUILT_PLAIN, ABANDON, END, FREE */
	"---cb", /* b BUILDING_FREED */
	"--h-c", /* c BUILDING_ENDED */
	"---hg", /* d PLAIN */
	"---fg", /* e USED */
	"----h", /* f DRAINED */
	"---hg", /* g FREED */
	"-----", /* h GONE */
};
static const char *const connection_rows[] = {
	"c-b-fg", /* a MADE: CONNECT, CONNECTED, PATH_DOWN, PATH_UP, LOSE, CLOSE */
	"---afg", /* b DOWN */
	"-ad-eg", /* c CONNECTING */
	"---ceg", /* d CONNECTING_DOWN */
	"----eg", /* e CONNECTING_LOST */
	"-----g", /* f LOST */
	"----g-", /* g CLOSED */
};

static const char *const vector_rows[] = {
	"b--e-fg", /* a NEW: ASK, FOUND, MAPPED, SET, MADE, AGAIN, CUT */
	"-c----g", /* b LOOKUP */
	"--d---g", /* c MAPPING */
	"---e--g", /* d ADMITTING */
	"----f-g", /* e SETTING */
	"------g", /* f LIVE */
	"-------", /* g GONE */
};
static const char *const sender_rows[] = {
	"dgbc--", /* a CONNECTING: MADE, FAIL, LOSE, CLOSE, UNMAP, UNMAPPED */
	"-g-c--", /* b CONNECTING_LOST */
	"-g----", /* c CONNECTING_CLOSED */
	"--eg--", /* d CONNECTED */
	"---gf-", /* e LOST */
	"---h-e", /* f LOST_UNMAPPING */
	"----h-", /* g CLOSED */
	"-----g", /* h CLOSED_UNMAPPING */
};

static void a_segment_goes_as_its_table_says(void **state)
{
	enum smartiod_segment_state next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_SEGMENT_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_SEGMENT_EVENTS; e++) {
			char letter = segment_rows[s][e];

			next = SMARTIOD_SEGMENT_STATES;
			assert_int_equal(smartiod_segment_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_SEGMENT_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

static void a_borrow_goes_as_its_table_says(void **state)
{
	enum smartiod_borrow_state next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_BORROW_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_BORROW_EVENTS; e++) {
			char letter = borrow_rows[s][e];

			next = SMARTIOD_BORROW_STATES;
			assert_int_equal(smartiod_borrow_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_BORROW_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

static void a_loan_goes_as_its_table_says(void **state)
{
	enum smartiod_loan_state next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_LOAN_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_LOAN_EVENTS; e++) {
			char letter = loan_rows[s][e];

			next = SMARTIOD_LOAN_STATES;
			assert_int_equal(smartiod_loan_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_LOAN_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

static void a_bond_goes_as_its_table_says(void **state)
{
	enum smartiod_bond next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_BOND_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_BOND_EVENTS; e++) {
			char letter = bond_rows[s][e];

			next = SMARTIOD_BOND_STATES;
			assert_int_equal(smartiod_bond_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_BOND_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

static void a_ring_goes_as_its_table_says(void **state)
{
	enum smartiod_ring_state next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_RING_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_RING_EVENTS; e++) {
			char letter = ring_rows[s][e];

			next = SMARTIOD_RING_STATES;
			assert_int_equal(smartiod_ring_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_RING_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

static void a_connection_goes_as_its_table_says(void **state)
{
	enum smartiod_connection_state next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_CONNECTION_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_CONNECTION_EVENTS; e++) {
			char letter = connection_rows[s][e];

			next = SMARTIOD_CONNECTION_STATES;
			assert_int_equal(smartiod_connection_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_CONNECTION_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

static void a_vector_goes_as_its_table_says(void **state)
{
	enum smartiod_vector_state next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_VECTOR_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_VECTOR_EVENTS; e++) {
			char letter = vector_rows[s][e];

			next = SMARTIOD_VECTOR_STATES;
			assert_int_equal(smartiod_vector_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_VECTOR_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

static void a_sender_goes_as_its_table_says(void **state)
{
	enum smartiod_sender_state next;

	(void)state;
	for (unsigned s = 0; s < SMARTIOD_SENDER_STATES; s++)
		for (unsigned e = 0; e < SMARTIOD_SENDER_EVENTS; e++) {
			char letter = sender_rows[s][e];

			next = SMARTIOD_SENDER_STATES;
			assert_int_equal(smartiod_sender_next(s, e, &next), letter != '-');
			if (letter == '-')
				assert_int_equal(next, SMARTIOD_SENDER_STATES);
			else
				assert_int_equal(next, letter - 'a');
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_goes_as_its_table_says),
		cmocka_unit_test(a_borrow_goes_as_its_table_says),
		cmocka_unit_test(a_loan_goes_as_its_table_says),
		cmocka_unit_test(a_connection_goes_as_its_table_says),
		cmocka_unit_test(a_bond_goes_as_its_table_says),
		cmocka_unit_test(a_ring_goes_as_its_table_says),
		cmocka_unit_test(a_vector_goes_as_its_table_says),
		cmocka_unit_test(a_sender_goes_as_its_table_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
