/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/devstate.h"

#define NEVER SIO_DEV_STATES

static const enum sio_dev_state next[SIO_DEV_STATES][SIO_DEV_EVENTS] = {
	[SIO_DEV_FOUND] = {[SIO_DEV_LEND] = SIO_DEV_USED,
			   [SIO_DEV_WANT] = SIO_DEV_WANTED,
			   [SIO_DEV_START] = NEVER,
			   [SIO_DEV_DONE] = NEVER,
			   [SIO_DEV_FAIL] = NEVER,
			   [SIO_DEV_NEW] = SIO_DEV_FOUND},
	[SIO_DEV_CLEAN] = {[SIO_DEV_LEND] = SIO_DEV_USED,
			   [SIO_DEV_WANT] = SIO_DEV_WANTED,
			   [SIO_DEV_START] = NEVER,
			   [SIO_DEV_DONE] = NEVER,
			   [SIO_DEV_FAIL] = NEVER,
			   [SIO_DEV_NEW] = SIO_DEV_FOUND},
	[SIO_DEV_USED] = {[SIO_DEV_LEND] = SIO_DEV_USED,
			  [SIO_DEV_WANT] = SIO_DEV_WANTED,
			  [SIO_DEV_START] = NEVER,
			  [SIO_DEV_DONE] = NEVER,
			  [SIO_DEV_FAIL] = NEVER,
			  [SIO_DEV_NEW] = SIO_DEV_FOUND},
	[SIO_DEV_WANTED] = {[SIO_DEV_LEND] = NEVER, /* borrows wait */
			    [SIO_DEV_WANT] = SIO_DEV_WANTED,
			    [SIO_DEV_START] = SIO_DEV_RUNNING,
			    [SIO_DEV_DONE] = NEVER,
			    [SIO_DEV_FAIL] = NEVER,
			    [SIO_DEV_NEW] = SIO_DEV_FOUND},
	[SIO_DEV_RUNNING] = {[SIO_DEV_LEND] = NEVER,
			     [SIO_DEV_WANT] = SIO_DEV_RUNNING, /* this one will do */
			     [SIO_DEV_START] = NEVER,
			     [SIO_DEV_DONE] = SIO_DEV_CLEAN,
			     [SIO_DEV_FAIL] = SIO_DEV_FAILED,
			     [SIO_DEV_NEW] = SIO_DEV_RUNNING}, /* the port answers in any case */
	[SIO_DEV_FAILED] = {[SIO_DEV_LEND] = SIO_DEV_USED,     /* beside others who have it */
			    [SIO_DEV_WANT] = SIO_DEV_WANTED,
			    [SIO_DEV_START] = NEVER,
			    [SIO_DEV_DONE] = NEVER,
			    [SIO_DEV_FAIL] = NEVER,
			    [SIO_DEV_NEW] = SIO_DEV_FOUND},
};

bool sio_dev_step(enum sio_dev_state *state, enum sio_dev_event event)
{
	enum sio_dev_state to = next[*state][event];

	if (to == NEVER)
		return false;
	*state = to;
	return true;
}

const char *sio_dev_state_name(enum sio_dev_state state)
{
	static const char *const name[] = {
		[SIO_DEV_FOUND] = "as found",	   [SIO_DEV_CLEAN] = "clean",
		[SIO_DEV_USED] = "used",	   [SIO_DEV_WANTED] = "reset wanted",
		[SIO_DEV_RUNNING] = "being reset", [SIO_DEV_FAILED] = "reset failed",
	};

	return (unsigned)state < SIO_DEV_STATES ? name[state] : "unknown";
}
