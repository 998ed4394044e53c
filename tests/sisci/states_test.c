/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each pair of state and event of the library's tables is what is written here, and no other
 * changes anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/state.h"
#include "sisci/base/life.h"
#include "sisci/dma/life.h"
#include "sisci/segment/life.h"

struct transition {
	unsigned from, event, to;
};

/* What a table says of @from and @event; -1: nothing. */
typedef int (*look)(unsigned from, unsigned event);

static void walk(look next, unsigned states, unsigned events, const struct transition *known,
		 size_t n_known)
{
	size_t found = 0;

	for (unsigned from = 0; from < states; from++) {
		for (unsigned event = 0; event < events; event++) {
			const struct transition *t = NULL;

			for (size_t i = 0; i < n_known && !t; i++)
				if (known[i].from == from && known[i].event == event)
					t = &known[i];
			assert_int_equal(next(from, event), t ? (int)t->to : -1);
			found += t != NULL;
		}
	}
	assert_int_equal(found, n_known);
}

/* From @first each state can be reached, and from each of them @last, which is not left. */
static void reach(look next, unsigned states, unsigned events, unsigned first, unsigned last)
{
	for (unsigned from = 0; from < states; from++) {
		uint64_t from_first = 1ull << first, from_here = 1ull << from;

		for (unsigned round = 0; round < states; round++)
			for (unsigned at = 0; at < states; at++)
				for (unsigned event = 0; event < events; event++) {
					int to = next(at, event);

					if (to >= 0 && from_first >> at & 1)
						from_first |= 1ull << to;
					if (to >= 0 && from_here >> at & 1)
						from_here |= 1ull << to;
				}
		assert_true(from_first >> from & 1);
		assert_true(from_here >> last & 1);
		assert_true(from != last || from_here == 1ull << last);
	}
}

#define WALK(next, states, events, known)                                                          \
	walk(next, states, events, known, sizeof(known) / sizeof((known)[0]))

static int life(unsigned from, unsigned event)
{
	enum sio_life to;

	return sio_life_next((enum sio_life)from, (enum sio_life_event)event, &to) ? (int)to : -1;
}

static void objects_live_once(void **state)
{
	static const struct transition known[] = {
		{SIO_LIVE, SIO_LIFE_CLAIM, SIO_CLAIMED}, {SIO_CLAIMED, SIO_LIFE_UNCLAIM, SIO_LIVE},
		{SIO_LIVE, SIO_LIFE_END, SIO_ENDING},	 {SIO_CLAIMED, SIO_LIFE_END, SIO_ENDING},
		{SIO_ENDING, SIO_LIFE_END, SIO_ENDING},	 {SIO_ENDING, SIO_LIFE_UNLINK, SIO_ENDED},
		{SIO_ENDED, SIO_LIFE_END, SIO_ENDED},
	};

	(void)state;
	WALK(life, SIO_LIFE_STATES, SIO_LIFE_EVENTS, known);
	reach(life, SIO_LIFE_STATES, SIO_LIFE_EVENTS, SIO_LIVE, SIO_ENDED);
}

static int connection(unsigned from, unsigned event)
{
	enum sio_connection to;

	return sio_connection_next((enum sio_connection)from, (enum sio_connection_event)event, &to)
		       ? (int)to
		       : -1;
}

static void what_is_lost_stays_lost(void **state)
{
	static const struct transition known[] = {
		{SIO_CONNECTING, SIO_CONNECTION_ANSWERED, SIO_CONNECTED},
		{SIO_CONNECTING, SIO_CONNECTION_LOSE, SIO_CONNECTION_LOST},
		{SIO_CONNECTED, SIO_CONNECTION_PATH_DOWN, SIO_CONNECTION_DOWN},
		{SIO_CONNECTED, SIO_CONNECTION_REMOVE, SIO_CONNECTION_REMOVED},
		{SIO_CONNECTED, SIO_CONNECTION_LOSE, SIO_CONNECTION_LOST},
		{SIO_CONNECTION_DOWN, SIO_CONNECTION_PATH_UP, SIO_CONNECTED},
		{SIO_CONNECTION_DOWN, SIO_CONNECTION_REMOVE, SIO_CONNECTION_REMOVED_DOWN},
		{SIO_CONNECTION_DOWN, SIO_CONNECTION_LOSE, SIO_CONNECTION_LOST},
		{SIO_CONNECTION_REMOVED, SIO_CONNECTION_PATH_DOWN, SIO_CONNECTION_REMOVED_DOWN},
		{SIO_CONNECTION_REMOVED, SIO_CONNECTION_LOSE, SIO_CONNECTION_LOST},
		{SIO_CONNECTION_REMOVED_DOWN, SIO_CONNECTION_PATH_UP, SIO_CONNECTION_REMOVED},
		{SIO_CONNECTION_REMOVED_DOWN, SIO_CONNECTION_LOSE, SIO_CONNECTION_LOST},
	};

	(void)state;
	WALK(connection, SIO_CONNECTION_STATES, SIO_CONNECTION_EVENTS, known);
	reach(connection, SIO_CONNECTION_STATES, SIO_CONNECTION_EVENTS, SIO_CONNECTING,
	      SIO_CONNECTION_LOST);
}

static int map_pages(unsigned from, unsigned event)
{
	enum sio_map_pages to;

	return sio_map_pages_next((enum sio_map_pages)from, (enum sio_map_pages_event)event, &to)
		       ? (int)to
		       : -1;
}

static void maps_come_back_with_their_path_only(void **state)
{
	static const struct transition known[] = {
		{SIO_PAGES_RESERVED, SIO_PAGES_PLACE_WHOLE, SIO_PAGES_WHOLE},
		{SIO_PAGES_RESERVED, SIO_PAGES_PLACE_PIECES, SIO_PAGES_PIECES},
		{SIO_PAGES_RESERVED, SIO_PAGES_LOSE, SIO_PAGES_CUT},
		{SIO_PAGES_RESERVED, SIO_PAGES_UNMAP, SIO_PAGES_NONE},
		{SIO_PAGES_WHOLE, SIO_PAGES_PATH_DOWN, SIO_PAGES_ASIDE},
		{SIO_PAGES_WHOLE, SIO_PAGES_LOSE, SIO_PAGES_CUT},
		{SIO_PAGES_WHOLE, SIO_PAGES_UNMAP, SIO_PAGES_NONE},
		{SIO_PAGES_PIECES, SIO_PAGES_LOSE, SIO_PAGES_CUT},
		{SIO_PAGES_PIECES, SIO_PAGES_UNMAP, SIO_PAGES_NONE},
		{SIO_PAGES_ASIDE, SIO_PAGES_PATH_UP, SIO_PAGES_WHOLE},
		{SIO_PAGES_ASIDE, SIO_PAGES_LOSE, SIO_PAGES_CUT},
		{SIO_PAGES_ASIDE, SIO_PAGES_UNMAP, SIO_PAGES_NONE},
		{SIO_PAGES_CUT, SIO_PAGES_UNMAP, SIO_PAGES_NONE},
	};

	(void)state;
	WALK(map_pages, SIO_PAGES_STATES, SIO_PAGES_EVENTS, known);
	reach(map_pages, SIO_PAGES_STATES, SIO_PAGES_EVENTS, SIO_PAGES_RESERVED, SIO_PAGES_NONE);
}

static int queue(unsigned from, unsigned event)
{
	sci_dma_queue_state_t to;

	return sio_dma_next((sci_dma_queue_state_t)from, (enum sio_dma_event)event, &to) ? (int)to
											 : -1;
}

static void queues_are_posted_and_over(void **state)
{
	static const struct transition known[] = {
		{SCI_DMAQUEUE_IDLE, SIO_DMA_ENQUEUE, SCI_DMAQUEUE_GATHER},
		{SCI_DMAQUEUE_IDLE, SIO_DMA_POST, SCI_DMAQUEUE_POSTED},
		{SCI_DMAQUEUE_IDLE, SIO_DMA_RESET, SCI_DMAQUEUE_IDLE},
		{SCI_DMAQUEUE_GATHER, SIO_DMA_ENQUEUE, SCI_DMAQUEUE_GATHER},
		{SCI_DMAQUEUE_GATHER, SIO_DMA_POST, SCI_DMAQUEUE_POSTED},
		{SCI_DMAQUEUE_GATHER, SIO_DMA_ABORT, SCI_DMAQUEUE_ABORTED},
		{SCI_DMAQUEUE_GATHER, SIO_DMA_RESET, SCI_DMAQUEUE_IDLE},
		{SCI_DMAQUEUE_POSTED, SIO_DMA_DONE, SCI_DMAQUEUE_DONE},
		{SCI_DMAQUEUE_POSTED, SIO_DMA_FAIL, SCI_DMAQUEUE_ERROR},
		{SCI_DMAQUEUE_POSTED, SIO_DMA_ABORT, SCI_DMAQUEUE_ABORTED},
		{SCI_DMAQUEUE_DONE, SIO_DMA_POST, SCI_DMAQUEUE_POSTED},
		{SCI_DMAQUEUE_DONE, SIO_DMA_RESET, SCI_DMAQUEUE_IDLE},
		{SCI_DMAQUEUE_ABORTED, SIO_DMA_POST, SCI_DMAQUEUE_POSTED},
		{SCI_DMAQUEUE_ABORTED, SIO_DMA_RESET, SCI_DMAQUEUE_IDLE},
		{SCI_DMAQUEUE_ERROR, SIO_DMA_POST, SCI_DMAQUEUE_POSTED},
		{SCI_DMAQUEUE_ERROR, SIO_DMA_RESET, SCI_DMAQUEUE_IDLE},
	};

	(void)state;
	WALK(queue, SIO_DMA_STATES, SIO_DMA_EVENTS, known);
}

static int session(unsigned from, unsigned event)
{
	enum sio_session_state to;

	return sio_session_next((enum sio_session_state)from, (enum sio_session_event)event, &to)
		       ? (int)to
		       : -1;
}

static void sessions_wait_for_the_next_smartiod(void **state)
{
	static const struct transition known[] = {
		{SIO_SESSION_DEAD, SIO_SESSION_OPENS, SIO_SESSION_CONNECTED},
		{SIO_SESSION_CONNECTED, SIO_SESSION_LOSES, SIO_SESSION_AWAY},
		{SIO_SESSION_CONNECTED, SIO_SESSION_DIES, SIO_SESSION_DEAD},
		{SIO_SESSION_AWAY, SIO_SESSION_RESUMES, SIO_SESSION_CONNECTED},
		{SIO_SESSION_AWAY, SIO_SESSION_GIVES_UP, SIO_SESSION_LATE},
		{SIO_SESSION_AWAY, SIO_SESSION_DIES, SIO_SESSION_DEAD},
		{SIO_SESSION_LATE, SIO_SESSION_RESUMES, SIO_SESSION_CONNECTED},
		{SIO_SESSION_LATE, SIO_SESSION_DIES, SIO_SESSION_DEAD},
	};

	(void)state;
	WALK(session, SIO_SESSION_STATES, SIO_SESSION_EVENTS, known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_live_once),
		cmocka_unit_test(what_is_lost_stays_lost),
		cmocka_unit_test(maps_come_back_with_their_path_only),
		cmocka_unit_test(queues_are_posted_and_over),
		cmocka_unit_test(sessions_wait_for_the_next_smartiod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
