/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a program shares with nobody (work/canary.h). */
#include "work/canary.h"
#include "smartio/io.h"

#define BYTES 4096u

static uint32_t word(uint32_t i)
{
	return 0xcafe0000u + i * 2654435761u;
}

void sim_canary_put(struct sim_canary *c)
{
	sci_error_t e;

	c->map = NULL;
	c->lost = false;
	c->boots = sim_host_boots(sim_self()->host);
	SIM_CALL(SCIOpen, (&c->sd, 0, &e), &e);
	if (e != SCI_ERR_OK)
		return;
	SIM_CALL(SCICreateSegment,
		 (c->sd, &c->segment, 200, BYTES, NULL, NULL, SCI_FLAG_AUTO_ID, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK)
		return;
	sim_call("SCIMapLocalSegment", 0);
	c->at = SCIMapLocalSegment(c->segment, &c->map, 0, BYTES, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_OK) != SCI_ERR_OK)
		c->map = NULL;
	for (uint32_t i = 0; c->map && i < BYTES / 4; i++)
		sio_write32(c->at + i, word(i));
}

static bool crashed(const struct sim_canary *c)
{
	unsigned host = sim_self()->host;

	return !sim_host_alive(host) || sim_host_boots(host) != c->boots;
}

/* May a restarted smartiod have given up waiting for this program, which did not run? */
static bool was_forgotten(void)
{
	return sim_outliving && (sim_has_fault("stop") || sim_has_fault("clock"));
}

/*
 * Has a restarted smartiod had no memory to take the segment over? It says so by an event. That the
 * whole session has ended is none.
 */
static bool was_lost(struct sim_canary *c)
{
	sci_segment_cb_reason_t why;
	sci_error_t e;

	if (c->lost || !sim_outliving || !sim_has_fault("memory"))
		return c->lost;
	sim_call("SCIWaitForLocalSegmentEvent", 0);
	why = SCIWaitForLocalSegmentEvent(c->segment, NULL, NULL, 0, 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_OK);
	c->lost = e == SCI_ERR_OK && why == SCI_CB_LOST;
	return c->lost;
}

void sim_canary_look(struct sim_canary *c, const char *oracle)
{
	for (uint32_t i = 0; c->map && i < BYTES / 4; i++) {
		uint32_t v = sio_read32(c->at + i);

		/*
		 * Ones are right if the host has crashed, even if it is up again, and the program
		 * has not been notified yet; and if the program was stopped, or the clock jumped,
		 * for longer than a restarted smartiod waits for programs to reconnect; and once
		 * the program has been notified that the segment is lost.
		 */
		if (v != word(i) && (v != ~0u || !(crashed(c) || was_forgotten() || was_lost(c))))
			sim_fail(oracle, "%s: %#x where nobody was to write", sim_self()->name, v);
	}
}
