/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the library waits for a smartiod, with a clock that only waiting moves, and a smartiod
 * that is there at the times that the test says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "away_world.h"
#include "session/world.h"
#include "sisci_api.h"
#include "smartio/ext.h"

static int setup(void **state)
{
	void *library = me.library;

	(void)state;
	memset(&me, 0, sizeof(me));
	me.library = library;
	((struct sio_status_page *)me.status)->magic = SIO_STATUS_MAGIC;
	me.fd = FIRST_FD;
	me.now = 1000 * S;
	me.machine = true;
	return 0;
}

/* Whatever became of it, no connection stays open. */
static int teardown(void **state)
{
	(void)state;
	assert_int_equal(me.connections, 0);
	return 0;
}

static sci_error_t initialize(void)
{
	sci_error_t err;

	SCIInitialize(0, &err);
	return err;
}

static sci_desc_t begin(void)
{
	sci_error_t err;
	sci_desc_t sd;

	assert_int_equal(initialize(), SCI_ERR_OK);
	SCIOpen(&sd, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	return sd;
}

static sci_smartio_device_t borrow(sci_desc_t sd)
{
	sci_smartio_device_t device;
	sci_error_t err;

	SCIBorrowDevice(sd, &device, 0x400, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	return device;
}

static sci_error_t probe(sci_desc_t sd)
{
	sci_error_t err = SCI_ERR_OK;

	SCIProbeNode(sd, 0, 4, 0, &err);
	return err;
}

static uint64_t since(uint64_t before)
{
	return me.now - before;
}

/* It is being started again: begun at once when it is there, not before. */
static void beginning_waits_for_the_next_smartiod(void **state)
{
	(void)state;
	goes(1010 * S);
	assert_int_equal(initialize(), SCI_ERR_OK);
	assert_true(me.now >= 1010 * S && me.now <= 1010 * S + 200 * MS);
	assert_true(me.connects > 50); /* it looked all the time */
	SCITerminate();
}

/* It answers others first, and dies over that; the third one answers. */
static void beginning_outlives_a_smartiod_that_says_nothing(void **state)
{
	(void)state;
	me.cut = 2;
	assert_int_equal(initialize(), SCI_ERR_OK);
	assert_int_equal(me.hellos, 3);
	assert_true(since(1000 * S) < 100 * MS);
	SCITerminate();
}

/* The first one answers, and goes before it is known that its end is no end. */
static void beginning_outlives_a_smartiod_that_answers_and_goes(void **state)
{
	sci_desc_t sd;

	(void)state;
	me.cut = 1;
	me.cut_after = true;
	sd = begin();
	assert_int_equal(me.hellos, 2);
	assert_int_equal(probe(sd), SCI_ERR_OK);
	SCITerminate();
}

/*
 * After a restart a handle that nobody knows is something lost; in the next session it is a
 * mistake.
 */
static void a_new_session_has_lost_nothing(void **state)
{
	sci_desc_t sd;

	(void)state;
	for (unsigned again = 0; again < 2; again++) {
		sd = begin();
		me.error = EBADF;
		assert_int_equal(probe(sd), SCI_ERR_ILLEGAL_PARAMETER);
		me.error = 0;
		goes(me.now + 1 * S);
		assert_int_equal(probe(sd), SCI_ERR_OK);
		me.error = EBADF;
		assert_int_not_equal(probe(sd), SCI_ERR_ILLEGAL_PARAMETER);
		me.error = 0;
		SCITerminate();
	}
}

/*
 * What another program has is not in the journal, and may be there all the same: any owner of the
 * registers ends any hold.
 */
static void what_was_never_ours_is_not_taken_for_gone(void **state)
{
	sci_smartio_device_t device = borrow(begin());
	sci_error_t err;

	(void)state;
	goes(me.now + 1 * S);
	smartio_device_unhold(device, 4711, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(me.unholds, 1);
	SCITerminate();
}

/* It hangs up when it is told what the program had; the program releases that connection, too. */
static void a_talk_that_is_broken_off_is_left(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	goes(0);
	me.cut = 3;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.hellos, 5);
	assert_int_equal(me.connections, 1);
	SCITerminate();
}

/*
 * The kernel has no memory for what is to be said, each word in turn: it is said as soon as there
 * is some, to the same smartiod, which would take who hangs up for one that ended.
 */
static void a_talk_that_cannot_be_sent_goes_on_later(void **state)
{
	(void)state;
	for (unsigned words = 0; words < 5; words++) {
		sci_desc_t sd = begin();
		uint64_t before;

		borrow(sd);
		goes(me.now);
		me.room = words;
		me.restores = me.resumed = me.connects = 0;
		before = me.now;
		me.room_at = before + 10 * S;
		assert_int_equal(probe(sd), SCI_ERR_OK);
		assert_int_equal(me.connects, 1);
		assert_int_equal(me.resumed, 1);
		assert_int_equal(me.restores, 1);
		assert_true(since(before) >= 10 * S && since(before) < 11 * S);
		SCITerminate();
	}
}

/* The next call has all restored, by so many messages, on one connection. */
static void resumes(sci_desc_t sd, unsigned restores)
{
	me.restores = me.resumed = me.connects = me.lost = 0;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.connects, 1);
	assert_int_equal(me.resumed, 1);
	assert_int_equal(me.restores, restores);
	assert_int_equal(me.lost, 0);
	assert_false(me.forgotten);
}

/*
 * Smartiod has no memory to note that a step is over, it is said again, on the same
 * connection, and the program keeps what it has.
 */
static void a_step_that_cannot_be_noted_is_said_again(void **state)
{
	(void)state;
	for (unsigned refused = 1; refused < 5; refused++) {
		sci_desc_t sd = begin();

		borrow(sd);
		goes(me.now);
		me.scarce = refused;
		resumes(sd, 1);
		assert_int_equal(me.scarce, 0);
		SCITerminate();
	}
}

/* It has no memory for what the program has: it is told of it again, and has it then. */
static void an_object_without_memory_is_told_again(void **state)
{
	(void)state;
	for (unsigned refused = 1; refused < 5; refused++) {
		sci_desc_t sd = begin();

		borrow(sd);
		goes(me.now);
		me.full = refused;
		resumes(sd, refused + 1);
		assert_int_equal(me.full, 0);
		SCITerminate();
	}
}

/* For a minute: then it is to lose that, and the rest goes on. */
static void an_object_that_never_has_memory_is_lost(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	borrow(sd);
	goes(me.now);
	me.lost = me.resumed = 0;
	me.full = 100000;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_true(me.full > 0);
	assert_int_equal(me.lost, 1);
	assert_int_equal(me.resumed, 1);
	assert_false(me.forgotten);
	assert_true(since(1000 * S) >= 60 * S && since(1000 * S) < 61 * S);
	me.full = 0;
	SCITerminate();
}

/* Nor in a minute: then it has hung up on what it was. */
static void a_step_that_is_never_noted_is_given_up(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	goes(me.now);
	me.scarce = 100000;
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS);
	assert_true(me.scarce > 0);
	assert_true(me.forgotten);
	assert_true(since(1000 * S) >= 60 * S && since(1000 * S) < 61 * S);
	SCITerminate();
}

/* There is none for a minute: who began to say who he is has ended for that smartiod. */
static void a_talk_is_given_up_in_a_minute(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	borrow(sd);
	goes(me.now);
	me.room = 1; /* HELLO */
	me.room_at = SIO_FOREVER;
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS);
	assert_true(since(1000 * S) >= 60 * S && since(1000 * S) < 61 * S);
	me.room_at = 0;
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS);
	SCITerminate();
}

/* ---- a smartiod that is there, and no memory to say a word to it ---- */

/* A request is tried four times, and then that alone fails. */
static void a_request_that_cannot_be_sent_fails_alone(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	me.no_room = 3;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	me.no_room = 4;
	assert_int_equal(probe(sd), SCI_ERR_NOSPC);
	assert_non_null(strstr(smartio_last_error(), "no memory to ask"));
	assert_int_equal(me.no_room, 0);
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.connects, 1);
	assert_int_equal(since(1000 * S), 0);
	SCITerminate();
}

/* And what it would have made or ended is as it was; the next smartiod is told of what there is. */
static void what_could_not_be_asked_can_be_asked_again(void **state)
{
	sci_desc_t sd = begin();
	sci_smartio_device_t device;
	sci_error_t err;

	(void)state;
	me.no_room = 4;
	SCIBorrowDevice(sd, &device, 0x400, 0, &err);
	assert_int_equal(err, SCI_ERR_NOSPC);
	device = borrow(sd);
	me.no_room = 4;
	SCIReturnDevice(device, 0, &err);
	assert_int_equal(err, SCI_ERR_NOSPC);
	goes(me.now + 1 * S);
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.restores, 1);
	SCIReturnDevice(device, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(me.returns, 1);
	SCIClose(sd, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	SCITerminate();
}

/* The program releases a connection before the answer is taken: then that is given back. */
static void release_while_connecting(sci_desc_t sd)
{
	sci_remote_segment_t segment;
	sci_error_t err;

	SCIConnectSegment(sd, &segment, 4, 1, 0, NULL, NULL, 0, SCI_FLAG_ASYNCHRONOUS_CONNECT,
			  &err);
	assert_int_equal(err, SCI_ERR_OK);
	SCIDisconnectSegment(segment, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(me.disconnects, 0);
	/* The answer is taken with that of the next request; its giving back has no room. */
	me.room = 1;
	me.room_at = me.now + 10 * S;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.disconnects, 0);
}

/*
 * The same, and smartiod is gone behind the answer: what cannot be given back any more finds that
 * out, in the midst of the answer.
 */
static void smartiod_ends_behind_an_answer(void **state)
{
	sci_remote_segment_t segment;
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	me.machine = false; /* there is no next one */
	sd = begin();
	SCIConnectSegment(sd, &segment, 4, 1, 0, NULL, NULL, 0, SCI_FLAG_ASYNCHRONOUS_CONNECT,
			  &err);
	assert_int_equal(err, SCI_ERR_OK);
	SCIDisconnectSegment(segment, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	goes(SIO_FOREVER);
	me.turns = 0;
	its_turn();
	assert_int_equal(me.n_replies, 0);
	assert_int_equal(me.disconnects, 0);
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS);
	SCITerminate();
}

/* What nobody waits for goes before anything that is asked later. */
static void what_must_be_said_goes_first(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	release_while_connecting(sd);
	me.room = 0;
	assert_int_equal(probe(sd), SCI_ERR_NOSPC);
	me.room_at = 0;
	me.no_room = 3;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.disconnects, 1);
	assert_int_equal(me.last[1], SIO_MSG_SEG_DISCONNECT);
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.disconnects, 1);
	SCITerminate();
}

/* If nothing is asked the event thread says it, as soon as it can. */
static void what_must_be_said_is_said_without_a_request(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	release_while_connecting(sd);
	me.turns = 0;
	its_turn();
	assert_int_equal(me.disconnects, 0);
	me.now += 11 * S;
	its_turn();
	assert_int_equal(me.disconnects, 1);
	me.now += 1 * S;
	its_turn();
	assert_int_equal(me.disconnects, 1);
	SCITerminate();
}

/* The next smartiod is not told of the connection, so it is not told of its end, either. */
static void what_must_be_said_is_for_this_smartiod(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	release_while_connecting(sd);
	me.room_at = 0;
	goes(me.now + 1 * S);
	me.turns = 0;
	its_turn(); /* the event thread finds the connection over */
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.resumed, 1);
	assert_int_equal(me.restores, 0);
	assert_int_equal(me.disconnects, 0);
	SCITerminate();
}

static void beginning_waits_30_s_at_most(void **state)
{
	(void)state;
	goes(SIO_FOREVER);
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(since(1000 * S), 30 * S);
	assert_non_null(strstr(smartio_last_error(), "no other has come in 30 s"));
	me.up_from = 0;
	me.cut = 1000000;
	me.now = 2000 * S;
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_true(since(2000 * S) >= 30 * S && since(2000 * S) < 31 * S);
	assert_true(me.hellos < 1000); /* and does not spin meanwhile */
}

/* The emulated cluster: the end of a smartiod is its host's, and none comes again. */
static void elsewhere_nobody_waits(void **state)
{
	(void)state;
	me.machine = false;
	goes(1010 * S);
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(me.connects, 1);
	me.up_from = 0;
	me.cut = 1;
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(me.hellos, 1);
	assert_int_equal(since(1000 * S), 0);
}

static void calls_wait_30_s_then_none_does(void **state)
{
	sci_desc_t sd = begin();

	(void)state;
	goes(me.now + 29 * S);
	assert_int_equal(probe(sd), SCI_ERR_OK); /* in time */
	assert_int_equal(me.resumed, 1);
	assert_true(since(1000 * S) >= 29 * S && since(1000 * S) < 30 * S);
	me.now = 2000 * S;
	goes(SIO_FOREVER);
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS); /* too late */
	assert_true(since(2000 * S) >= 30 * S && since(2000 * S) <= 30 * S + 200 * MS);
	assert_non_null(strstr(smartio_last_error(), "no other has come in 30 s"));
	me.now = 3000 * S;
	me.connects = 0;
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS); /* at once from then on */
	assert_int_equal(since(3000 * S), 0);
	assert_int_equal(me.connects, 0);
	SCITerminate();
}

/*
 * Its maps and devices are the program's; calls say why they fail, at once, until one comes that
 * speaks ours.
 */
static void under_another_version_io_goes_on_and_calls_fail(void **state)
{
	sci_desc_t sd = begin();
	sci_smartio_device_t device = borrow(sd);
	sci_error_t err;

	(void)state;
	goes(me.now);
	me.up_from = 0;
	me.other_version = true;
	me.hellos = 0;
	assert_int_equal(probe(sd), SCI_ERR_INCONSISTENT_VERSIONS);
	assert_string_equal(smartio_last_error(), "no"); /* what smartiod said */
	assert_int_equal(probe(sd), SCI_ERR_INCONSISTENT_VERSIONS);
	assert_int_equal(me.hellos, 1); /* not at each call */
	assert_false(smartio_device_lost(device));
	assert_int_equal(smartio_device_generation(device) % 2, 0);
	me.other_version = false;
	me.now += 1 * S;
	its_turn();
	assert_int_equal(me.restores, 1);
	assert_int_equal(probe(sd), SCI_ERR_OK);
	SCIReturnDevice(device, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(me.returns, 1);
	/* What is given back meanwhile is: the next smartiod is not told of it. */
	device = borrow(sd);
	goes(me.now);
	me.up_from = 0;
	me.other_version = true;
	assert_int_equal(probe(sd), SCI_ERR_INCONSISTENT_VERSIONS);
	SCIReturnDevice(device, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(me.returns, 1);
	me.other_version = false;
	me.restores = 0;
	me.now += 1 * S;
	its_turn();
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.restores, 0);
	SCITerminate();
}

/* No smartiod for too long: nobody waits any more. */
static void late(sci_desc_t sd)
{
	goes(SIO_FOREVER);
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS);
}

/* There is one again, and the event thread has told it of what the program has; not of all. */
static void talk_begins(void)
{
	me.up_from = 0;
	me.now += 1 * S;
	me.stop_at = SIO_MSG_RESTORE_STEP;
	its_turn();
	assert_int_equal(me.stop_at, 0);
}

/* It has been told of what is given back: so it is told of that, too. */
static void what_is_given_back_during_a_late_talk_is_told(void **state)
{
	sci_desc_t sd = begin();
	sci_smartio_device_t device = borrow(sd);
	sci_error_t err;

	(void)state;
	late(sd);
	talk_begins();
	assert_int_equal(me.restores, 1);
	SCIReturnDevice(device, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(me.returns, 1);
	assert_int_equal(probe(sd), SCI_ERR_OK);
	SCITerminate();
}

/* Whoever asks meanwhile waits for the talk, and no longer: it was late before. */
static void nobody_waits_when_a_late_talk_is_broken_off(void **state)
{
	sci_desc_t sd = begin();
	sci_smartio_device_t device = borrow(sd);
	uint64_t before;
	sci_error_t err;

	(void)state;
	late(sd);
	talk_begins();
	before = me.now;
	goes(SIO_FOREVER);
	SCIReturnDevice(device, 0, &err);
	assert_int_equal(err, SCI_ERR_OK); /* that smartiod's end gave it back */
	assert_int_equal(me.returns, 0);
	talk_begins();
	assert_int_equal(me.restores, 1); /* nor does the next one hear of it */
	goes(SIO_FOREVER);
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS);
	assert_true(since(before) < 2 * S);
	talk_begins();
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.resumed, 3);
	SCITerminate();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(beginning_waits_for_the_next_smartiod),
		TEST(beginning_outlives_a_smartiod_that_says_nothing),
		TEST(beginning_outlives_a_smartiod_that_answers_and_goes),
		TEST(a_talk_that_cannot_be_sent_goes_on_later),
		TEST(a_step_that_cannot_be_noted_is_said_again),
		TEST(a_step_that_is_never_noted_is_given_up),
		TEST(an_object_without_memory_is_told_again),
		TEST(an_object_that_never_has_memory_is_lost),
		TEST(a_talk_is_given_up_in_a_minute),
		TEST(a_request_that_cannot_be_sent_fails_alone),
		TEST(what_could_not_be_asked_can_be_asked_again),
		TEST(smartiod_ends_behind_an_answer),
		TEST(what_must_be_said_goes_first),
		TEST(what_must_be_said_is_said_without_a_request),
		TEST(what_must_be_said_is_for_this_smartiod),
		TEST(beginning_waits_30_s_at_most),
		TEST(a_talk_that_is_broken_off_is_left),
		TEST(elsewhere_nobody_waits),
		TEST(calls_wait_30_s_then_none_does),
		TEST(under_another_version_io_goes_on_and_calls_fail),
		TEST(a_new_session_has_lost_nothing),
		TEST(what_was_never_ours_is_not_taken_for_gone),
		TEST(what_is_given_back_during_a_late_talk_is_told),
		TEST(nobody_waits_when_a_late_talk_is_broken_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
