/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequences. What was stored before a check that returns SCI_SEQ_OK has arrived. And a check must
 * not return SCI_SEQ_OK if a cable of the path was pulled out since the sequence was started, even
 * if it is in again. Daemons are notified of that a moment later; until then either result is
 * right.
 */
#include <string.h>

#include "edge/cable.h"
#include "fabric/fabric.h"
#include "work/sequence.h"
#include "smartio/io.h"

#define HEARD SIM_MS /* daemons know of a pulled cable by then */
#define ONES 0xffffffffu

/* Then the status of a sequence is SCI_SEQ_OK, or its segment is gone. */
bool sim_ways_hold(void)
{
	static const char *const breaks[] = {"crash",	"link",	  "between", "anew",
					     "cut",	"delay",  "liar",    "forge",
					     "restart", "absent", "unheard", "stranger"};

	for (unsigned i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++)
		if (sim_has_fault(breaks[i]))
			return false;
	return true;
}

/* The adapter at the other end. False: there are several, so it is not known. */
static bool far_end(const struct sim_sequence *s, unsigned *ret)
{
	unsigned there = sim_adapters_behind(s->adapter, s->host);

	*ret = (unsigned)__builtin_ctz(there | 1u << 31);
	return there == 1u << *ret;
}

/* Was its path lost between the two times? False also if the adapter at its end is not known. */
static bool broke(const struct sim_sequence *s, uint64_t from, uint64_t until)
{
	unsigned there;
	uint64_t lost;

	if (s->host == sim_self()->host || !far_end(s, &there))
		return false;
	lost = sim_way_lost(sim_self()->host, s->adapter, s->host, there);
	return lost > from && lost < until;
}

/* Is the cable out, and do daemons know of it? */
static bool out(unsigned host, unsigned adapter)
{
	return sim_cable_is_out(host, adapter) &&
	       sim_cable_changed(host, adapter) + HEARD < sim_now();
}

/* Do no switches and links lead from one adapter to the other, and do daemons know of it? */
static bool apart(unsigned host, unsigned adapter, unsigned peer, unsigned there)
{
	return sim_is_cut_off(host, adapter, peer, there) &&
	       sim_cable_changed(host, adapter) + HEARD < sim_now() &&
	       sim_cable_changed(peer, there) + HEARD < sim_now();
}

static bool is_out(const struct sim_sequence *s)
{
	unsigned there;

	return s->host != sim_self()->host &&
	       (out(sim_self()->host, s->adapter) ||
		(far_end(s, &there) &&
		 (out(s->host, there) || apart(sim_self()->host, s->adapter, s->host, there))));
}

void sim_sequence_new(struct sim_sequence *s, sci_map_t map, unsigned host, unsigned adapter)
{
	sci_error_t e;

	*s = (struct sim_sequence){.host = host, .adapter = adapter};
	SIM_CALL(SCICreateMapSequence, (map, &s->handle, 0, &e), &e, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		s->handle = NULL;
	s->since = sim_now();
}

/* The word in the memory that @at leads to, without any stores that are still in flight. */
static uint32_t arrived(const volatile void *at)
{
	struct fabric_view v = fabric_look(at, sizeof(uint32_t), false);
	uint32_t word = ONES;

	if (v.mem)
		memcpy(&word, v.mem->bytes + v.offset, sizeof(word));
	return word;
}

sci_sequence_status_t sim_sequence_store(struct sim_sequence *s, volatile void *at, uint32_t word)
{
	uint32_t before = arrived(at);
	bool was_out = is_out(s);
	sci_sequence_status_t status;
	uint64_t now = sim_now();
	sci_error_t e;

	sio_write32(at, word);
	sim_call("SCICheckSequence", 0);
	status = SCICheckSequence(s->handle, 0, &e);
	sim_called(e, SCI_ERR_OK);
	if (status != SCI_SEQ_OK)
		return status;
	if (before != ONES && arrived(at) == before)
		sim_fail("memory", "%s: %#x was checked and has not arrived: there is still %#x",
			 sim_self()->name, word, before);
	if (was_out && is_out(s))
		sim_fail("states", "%s: a sequence is fine, and a cable of its way is out",
			 sim_self()->name);
	if (now > HEARD && broke(s, s->since, now - HEARD))
		sim_fail("states", "%s: a sequence is fine, and its way broke after it began",
			 sim_self()->name);
	return status;
}

void sim_sequence_start(struct sim_sequence *s)
{
	bool was_out = is_out(s);
	sci_sequence_status_t status;
	sci_error_t e;

	sim_call("SCIStartSequence", 0);
	status = SCIStartSequence(s->handle, 0, &e);
	sim_called(e, SCI_ERR_OK);
	if (sim_ways_hold() && status != SCI_SEQ_OK && status != SCI_SEQ_NOT_RETRIABLE)
		sim_fail("states", "%s: a sequence whose way is fine begins with status %d",
			 sim_self()->name, status);
	if (was_out && is_out(s) && status == SCI_SEQ_OK)
		sim_fail("states", "%s: a sequence begins, and a cable of its way is out",
			 sim_self()->name);
	s->since = sim_now();
}

void sim_sequence_remove(struct sim_sequence *s)
{
	sci_error_t e;

	if (s->handle)
		SIM_CALL(SCIRemoveSequence, (s->handle, 0, &e), &e);
	s->handle = NULL;
}
