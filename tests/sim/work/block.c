/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that copy from one mapping to another without waiting: SCITransferBlockAsync(). The
 * transfers of a program end in the order in which they were started, and a mapping cannot be
 * unmapped while a transfer uses it.
 */
#include "work/life.h"
#include "work/places.h"
#include "smartio/ext.h"
#include "run/run.h"

#define MOST 6

struct state {
	struct sim_places p;
	sci_block_transfer_t block[MOST]; /* the oldest first; not waited for yet */
	unsigned n;
	unsigned asked, called; /* transfers with a callback; callbacks so far */
};

static int on_over(void *arg, sci_block_transfer_t block, sci_error_t status)
{
	struct state *s = arg;

	(void)block;
	if (status != SCI_ERR_OK && status != SCI_ERR_TRANSFER_FAILED)
		sim_fail("callbacks", "%s: a block transfer's callback reports %s",
			 sim_self()->name, SCIGetErrorString(status));
	if (++s->called > s->asked)
		sim_fail("callbacks", "%s: %u callbacks for %u transfers", sim_self()->name,
			 s->called, s->asked);
	return 0;
}

static void forget(struct state *s, unsigned i)
{
	s->n--;
	for (; i < s->n; i++)
		s->block[i] = s->block[i + 1];
}

static void start(struct state *s)
{
	uint32_t from = sim_pick_from(), to = sim_pick_to(), size = 256u << sim_pick(7);
	bool there = sim_pick(2), callback = sim_pick(3) == 0;
	sci_block_transfer_t block = NULL;
	sci_error_t e;

	if (!s->p.own_map || !s->p.remote_map || s->n == MOST)
		return;
	if (size > SIM_PLACE_BYTES - to)
		size = 256;
	if (size > SIM_PLACE_BYTES / 2 - from)
		size = 256;
	s->asked += callback;
	SIM_CALL(SCITransferBlockAsync,
		 (there ? s->p.own_map : s->p.remote_map, from,
		  there ? s->p.remote_map : s->p.own_map, to, size, &block,
		  callback ? on_over : NULL, s, callback ? SCI_FLAG_USE_CALLBACK : 0, &e),
		 &e, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		s->asked -= callback;
	else if (!callback)
		s->block[s->n++] = block;
}

static sci_error_t wait_for(struct state *s, unsigned i, unsigned timeout)
{
	sci_error_t e;

	sim_call("SCIWaitForBlockTransfer", timeout + 1000);
	SCIWaitForBlockTransfer(s->block[i], timeout, 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_TRANSFER_FAILED, SCI_ERR_OK);
	if (e != SCI_ERR_TIMEOUT)
		forget(s, i);
	return e;
}

/* Transfer @i is over, so all that were started before it must be. */
static void older_are_over(struct state *s, unsigned i)
{
	while (i-- > 0)
		if (wait_for(s, i, 0) == SCI_ERR_TIMEOUT)
			sim_fail("states", "%s: a block transfer is over, an older one is not",
				 sim_self()->name);
}

static void wait_one(struct state *s)
{
	unsigned i = (unsigned)sim_pick(s->n), timeout = (unsigned)sim_pick(20);

	if (s->n > 0 && wait_for(s, i, timeout) != SCI_ERR_TIMEOUT)
		older_are_over(s, i);
}

static void abort_one(struct state *s)
{
	unsigned i = (unsigned)sim_pick(s->n);
	sci_error_t e;

	if (s->n == 0)
		return;
	SIM_CALL(SCIAbortBlockTransfer, (s->block[i], 0, &e), &e, SCI_ERR_ILLEGAL_OPERATION);
	if (e == SCI_ERR_OK)
		forget(s, i);
	else if (e == SCI_ERR_ILLEGAL_OPERATION)
		older_are_over(s, i + 1);
}

/*
 * Ends all transfers: aborts those without a callback, and waits for the callbacks of the others.
 */
static void finish(struct state *s)
{
	while (s->n > 0) {
		sci_error_t e;

		SIM_CALL(SCIAbortBlockTransfer, (s->block[0], 0, &e), &e,
			 SCI_ERR_ILLEGAL_OPERATION);
		forget(s, 0);
	}
	while (s->called < s->asked)
		sim_sleep(SIM_MS);
}

static void drop(struct state *s, bool (*unmap)(struct sim_places *p))
{
	if (unmap(&s->p))
		return;
	if (s->n == 0 && s->called == s->asked)
		sim_fail("states", "%s: no transfer is under way, and a map is busy",
			 sim_self()->name);
	finish(s);
	if (!unmap(&s->p))
		sim_fail("states", "%s: all transfers are over, and a map is busy",
			 sim_self()->name);
}

static void drop_remote(struct state *s)
{
	if (!s->p.remote)
		return;
	drop(s, sim_unmap_remote);
	sim_must_disconnect_remote(&s->p, "it has no map");
}

static void drop_own(struct state *s)
{
	drop(s, sim_unmap_own);
	sim_remove_own(&s->p, true);
}

static void act(void *state)
{
	struct state *s = state;
	uint64_t what = sim_pick(16);

	if (sim_place_by(&s->p, what))
		return;
	switch (what) {
	case 3:
		if (sim_pick(8) == 0)
			drop_own(s);
		break;
	case 4:
		if (sim_pick(4) == 0)
			drop_remote(s);
		break;
	case 5:
	case 6:
		abort_one(s);
		break;
	case 7:
	case 8:
	case 9:
		sim_look_own(&s->p);
		wait_one(s);
		break;
	default:
		start(s);
	}
}

static void tear_down(void *state)
{
	struct state *s = state;

	if (sim_pick(2))
		finish(s);
	drop_remote(s);
	drop_own(s);
}

static void block_main(struct sim_proc *p)
{
	struct state s = {.p = {.first_id = 28, .ids = 3, .mark = 0xc0000000u, .maps_busy = true}};
	static const struct sim_life life = {.acts = 200, .act = act, .tear_down = tear_down};

	sim_live_and_exit(p, &life, &s, &s.p.sd);
}

const struct sim_workload sim_work_block = {.name = "block", .weight = 2, .main = block_main};
