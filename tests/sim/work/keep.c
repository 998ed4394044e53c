/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that borrow a device together, map memory for it, connect its interrupts, and take turns
 * as the owner of its registers. The owner requests what it may have, and what must be refused:
 * pins beyond the end of what a borrower mapped, the end of the quarantine of a live borrower,
 * another borrower's vectors. Answers are judged by what all programs know of all borrowers
 * (work/keepers.h); no daemon is trusted.
 */
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "work/keepers.h"
#include "work/life.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "run/listener.h"

#define PAGE 4096u
#define PAGES 4
#define NO_VECTOR (~0u)
#define WAITS 8
#define HEARD_OF (200 * SIM_MS) /* all daemons know of a borrower's end by then */
#define TOLD (50 * SIM_MS)	/* a new owner knows who is in quarantine by then */

struct state {
	sci_desc_t sd;
	sci_smartio_device_t device;
	struct keeper *me;
	sci_remote_segment_t bar;
	sci_map_t registers;
	sci_local_segment_t own;
	sci_local_interrupt_t interrupt;
	sci_remote_interrupt_t link;
	unsigned number;
	/*
	 * Borrowers that were in quarantine when the program became the owner of the registers,
	 * at @since, and of which it has not been notified yet.
	 */
	uint64_t since, wait[WAITS];
	unsigned waits;
};

/* May a fault separate two daemons, or end one? */
static bool parts(void)
{
	return sim_has_pullers() || sim_has_fault("link") || sim_has_fault("between") ||
	       sim_has_fault("anew") || sim_has_fault("crash") || sim_has_fault("cut") ||
	       sim_has_fault("restart");
}

/* ---- borrowing the device ---- */
static void borrow(struct state *s)
{
	uint64_t since = sim_now();
	sci_error_t e;
	uint32_t fdid;

	if (s->device)
		return;
	fdid = sim_pick_drive(NULL, NULL)->fdid;
	SIM_CALL(SCIBorrowDevice, (s->sd, &s->device, fdid, 0, &e), &e, SCI_ERR_NOT_AVAILABLE,
		 SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_FDID);
	if (e != SCI_ERR_OK) {
		s->device = NULL;
		return;
	}
	sim_note_borrowed(fdid, false, since);
	s->me = calloc(1, sizeof(*s->me));
	if (!s->me)
		abort();
	*s->me = (struct keeper){.pid = sim_self()->pid,
				 .fdid = fdid,
				 .borrower = smartio_borrower_id(s->device),
				 .host = sim_self()->host,
				 .since = since,
				 .lender = sim_host_of(sio_topology_fdid_node(fdid)),
				 .vector = NO_VECTOR};
	snprintf(s->me->name, sizeof(s->me->name), "%s", sim_self()->name);
	s->me->breaks = sim_peer_breaks(s->me->host, s->me->lender);
	s->me->gone = sim_paths_gone(s->me->host, s->me->lender);
	DL_APPEND(sim_keepers, s->me);
}

static void map_own(struct state *s)
{
	unsigned pages = 1 + (unsigned)sim_pick(PAGES);
	sci_ioaddr_t at;
	sci_error_t e;

	if (!s->device || s->own)
		return;
	SIM_CALL(SCICreateSegment,
		 (s->sd, &s->own, 300, pages * PAGE, NULL, NULL, SCI_FLAG_AUTO_ID, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		s->own = NULL;
		return;
	}
	SIM_CALL(SCIPrepareSegment, (s->own, 0, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e);
	if (e != SCI_ERR_OK)
		return;
	SIM_CALL(SCIMapLocalSegmentForDevice, (s->own, 0, s->device, &at, 0, pages * PAGE, 0, &e),
		 &e, SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		return;
	s->me->from = at;
	s->me->bytes = pages * PAGE;
}

static void tie(struct state *s)
{
	unsigned vector = SMARTIO_ANY_VECTOR;
	sci_error_t e;

	if (!s->device || s->link || s->interrupt)
		return;
	SIM_CALL(SCICreateInterrupt, (s->sd, &s->interrupt, 0, &s->number, NULL, NULL, 0, &e), &e);
	if (e != SCI_ERR_OK) {
		s->interrupt = NULL;
		return;
	}
	SIM_CALL(SCIConnectInterrupt,
		 (s->sd, &s->link, sim_node(sim_self()->host), 0, s->number, 0, 0, &e), &e,
		 SCI_ERR_NO_SUCH_INTNO, SCI_ERR_CONNECTION_REFUSED);
	if (e != SCI_ERR_OK) {
		s->link = NULL;
		return;
	}
	SIM_CALL(smartio_connect_device_interrupt, (s->device, &vector, s->link, &e), &e,
		 SCI_ERR_BUSY, SCI_ERR_NOT_SUPPORTED, SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_INTNO,
		 SCI_ERR_ILLEGAL_PARAMETER);
	if (e == SCI_ERR_OK)
		s->me->vector = vector;
}

/* ---- owning the registers ---- */
static void note_quarantine(struct state *s)
{
	struct keeper *k;

	s->waits = 0;
	s->since = sim_now();
	sim_keepers_notice_deaths();
	DL_FOREACH (sim_keepers, k)
		if (k->fdid == s->me->fdid && k->end && k->end + HEARD_OF < sim_now() && k->bytes &&
		    !k->leaves && !k->settled && !sim_keeper_pulled(k) && s->waits < WAITS)
			s->wait[s->waits++] = k->borrower;
}

static void take_registers(struct state *s)
{
	sci_error_t e;

	if (!s->device || s->registers)
		return;
	if (!s->bar) {
		SIM_CALL(SCIConnectDeviceSegment,
			 (s->device, &s->bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &e), &e,
			 SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_NOT_CONNECTED);
		if (e != SCI_ERR_OK) {
			s->bar = NULL;
			return;
		}
	}
	sim_call("SCIMapRemoteSegment", 0);
	(void)SCIMapRemoteSegment(s->bar, &s->registers, 0, PAGE, NULL, 0, &e);
	if (sim_called(e, SCI_ERR_NOT_CONNECTED, SCI_ERR_ACCESS, SCI_ERR_BUSY,
		       SCI_ERR_NOT_AVAILABLE, SCI_ERR_OK) != SCI_ERR_OK)
		s->registers = NULL;
	if (s->registers && smartio_holds_registers(s->device))
		note_quarantine(s);
}

static void drop_registers(struct state *s)
{
	sci_error_t e;

	if (s->registers)
		SIM_CALL(SCIUnmapSegment, (s->registers, 0, &e), &e);
	s->registers = NULL;
	if (s->bar)
		SIM_END(SCIDisconnectSegment, (s->bar, 0, &e), &e);
	s->bar = NULL;
}

/* Requests a pin, which lies in what a borrower mapped or extends a page beyond its end. */
static void hold(struct state *s)
{
	const struct keeper *k = sim_keeper_pick(s->me->fdid);
	uint64_t borrower, at, left, bytes, hold;
	bool behind = sim_pick(2);
	sci_error_t e;

	if (!k || !k->bytes)
		return;
	borrower = k->borrower;
	left = sim_pick(k->bytes / PAGE) * PAGE;
	at = k->from + left;
	left = k->bytes - left;
	bytes = left + (behind ? PAGE : 0);
	SIM_CALL(smartio_device_hold, (s->device, borrower, at, bytes, &hold, &e), &e,
		 SCI_ERR_OUT_OF_RANGE, SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_ACCESS, SCI_ERR_BUSY,
		 SCI_ERR_NOT_CONNECTED);
	if (e != SCI_ERR_OK)
		return;
	if (behind)
		sim_fail("states", "%s: %#llx bytes at %#llx are held, borrow %llu mapped %#llx",
			 sim_self()->name, (unsigned long long)bytes, (unsigned long long)at,
			 (unsigned long long)borrower, (unsigned long long)left);
	do {
		SIM_CALL(smartio_device_unhold, (s->device, hold, &e), &e,
			 SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_ACCESS, SCI_ERR_NOT_CONNECTED);
	} while (!smartio_device_lost(s->device) && sim_later(e));
}

static void settle(struct state *s)
{
	const struct keeper *k = sim_keeper_pick(s->me->fdid);
	uint64_t borrower;
	bool lived;
	sci_error_t e;

	if (!k)
		return;
	borrower = k->borrower;
	lived = sim_keeper_lives(k);
	SIM_CALL(smartio_device_settled, (s->device, borrower, &e), &e, SCI_ERR_ACCESS,
		 SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_NOT_CONNECTED, SCI_ERR_BUSY);
	if (e == SCI_ERR_OK && lived && sim_keeper_lives(sim_keeper_find(s->me->fdid, borrower)))
		sim_fail("states", "%s: borrow %llu is settled, and %s has it", sim_self()->name,
			 (unsigned long long)borrower,
			 sim_keeper_find(s->me->fdid, borrower)->name);
}

static void reset(struct state *s)
{
	uint32_t before = smartio_device_generation(s->device);
	sci_error_t e;

	if (sim_pick(4))
		return;
	SIM_CALL(smartio_device_reset, (s->device, &e), &e, SCI_ERR_NOT_CONNECTED, SCI_ERR_ACCESS,
		 SCI_ERR_TIMEOUT);
	if (e == SCI_ERR_OK && smartio_device_generation(s->device) == before)
		sim_fail("states", "%s: the device was reset, its generation is %u as before",
			 sim_self()->name, before);
}

static void listen_to(struct state *s)
{
	struct smartio_device_event event;
	sci_error_t e;

	do {
		sim_call("smartio_wait_device_event", 1000);
		smartio_wait_device_event(s->device, &event, 0, &e);
		sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
		for (unsigned i = 0; e == SCI_ERR_OK && i < s->waits; i++)
			if (event.kind == SMARTIO_DEVICE_BORROWER_GONE &&
			    event.borrower == s->wait[i])
				s->wait[i] = s->wait[--s->waits];
	} while (e == SCI_ERR_OK);
	if (!s->registers || !smartio_holds_registers(s->device))
		return;
	for (unsigned i = 0; i < s->waits; i++) {
		const struct keeper *k;

		DL_FOREACH (sim_keepers, k)
			if (k->fdid == s->me->fdid && k->borrower == s->wait[i] && !k->settled &&
			    !sim_keeper_pulled(k) && sim_now() > s->since + TOLD && !parts() &&
			    !sim_has_fault("delay"))
				sim_fail("states",
					 "%s: nobody told that borrow %llu is in quarantine",
					 sim_self()->name, (unsigned long long)k->borrower);
	}
}

/* ---- others' interrupts ---- */
static void steal(struct state *s)
{
	const struct keeper *k;
	uint64_t borrower;
	unsigned vector;
	bool lived;
	sci_error_t e;

	k = s->device ? sim_keeper_pick(s->me->fdid) : NULL;
	if (!k || k == s->me || k->vector == NO_VECTOR || k->vector == s->me->vector)
		return;
	vector = k->vector;
	borrower = k->borrower;
	lived = sim_keeper_lives(k);
	SIM_CALL(smartio_disconnect_device_interrupt, (s->device, vector, &e), &e,
		 SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_NOT_CONNECTED);
	if (e == SCI_ERR_OK && lived && sim_keeper_lives(sim_keeper_find(s->me->fdid, borrower)))
		sim_fail("states", "%s ends the tie of vector %u, which is %s's", sim_self()->name,
			 vector, sim_keeper_find(s->me->fdid, borrower)->name);
}

/* ---- the program ---- */
static void drop_interrupt(struct state *s)
{
	sci_error_t e;

	if (s->link)
		SIM_CALL(SCIDisconnectInterrupt, (s->link, 0, &e), &e);
	s->link = NULL;
	while (s->interrupt) {
		SIM_END(SCIRemoveInterrupt, (s->interrupt, 0, &e), &e, SCI_ERR_BUSY);
		if (!sim_later(e))
			s->interrupt = NULL;
	}
}

/* The interrupt is in use until the device is disconnected from it, or lost. */
static void untie(struct state *s)
{
	sci_error_t e;

	do {
		SIM_CALL(smartio_disconnect_device_interrupt, (s->device, s->me->vector, &e), &e,
			 SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_NOT_CONNECTED);
	} while (!smartio_device_lost(s->device) && sim_later(e));
	drop_interrupt(s);
}

/*
 * A borrower that died or lost the lender may have left a pin, because of which the segment is
 * busy. A reset of the device, if the program may do one, ends the pin.
 */
static void drop_own(struct state *s)
{
	sci_error_t e, reset;

	while (s->own) {
		SIM_END(SCIRemoveSegment, (s->own, SCI_FLAG_FORCE_REMOVE, &e), &e, SCI_ERR_BUSY);
		if (e == SCI_ERR_BUSY && (parts() || sim_has_fault("death")))
			SIM_CALL(smartio_device_reset, (s->device, &reset), &reset,
				 SCI_ERR_NOT_CONNECTED, SCI_ERR_ACCESS, SCI_ERR_TIMEOUT);
		if (!sim_later(e))
			s->own = NULL;
	}
}

static void give_back(void *state)
{
	struct state *s = state;
	sci_error_t e;

	if (!s->device)
		return;
	s->me->leaves = true;
	drop_registers(s);
	if (s->me->vector != NO_VECTOR && sim_pick(2))
		untie(s);
	drop_own(s);
	/* Its host has crashed, and the program is about to die. */
	if (!sim_host_alive(sim_self()->host))
		return;
	sim_note_returned(s->me->fdid);
	do {
		SIM_END(SCIReturnDevice, (s->device, 0, &e), &e);
	} while (sim_later(e));
	s->device = NULL;
	drop_interrupt(s); /* the device's connection to it ended with the borrow */
	DL_DELETE(sim_keepers, s->me);
	free(s->me);
	s->me = NULL;
}

static void keep(struct state *s)
{
	static void (*const acts[])(struct state * s) = {hold, hold, settle, settle, reset};

	if (s->device && s->registers && smartio_holds_registers(s->device)) {
		/* First it is to be notified of who is in quarantine. */
		if (!s->waits || sim_now() > s->since + 2 * TOLD)
			acts[sim_pick(5)](s);
	} else {
		take_registers(s);
	}
}

static void act(void *state)
{
	struct state *s = state;

	if (s->device)
		listen_to(s);
	switch (sim_pick(12)) {
	case 0:
	case 1:
		borrow(s);
		break;
	case 2:
	case 3:
		map_own(s);
		break;
	case 4:
		tie(s);
		break;
	case 5:
	case 6:
		steal(s);
		break;
	case 7:
		if (sim_pick(4) == 0)
			give_back(s);
		else if (sim_pick(2))
			drop_registers(s);
		break;
	default:
		keep(s);
	}
}

static void keep_main(struct sim_proc *p)
{
	struct state s = {0};
	static const struct sim_life life = {
		.acts = 200, .act = act, .tear_down = give_back, .close_may = SCI_ERR_BUSY};

	if (!sim_live(&life, &s, &s.sd))
		return;
	if (s.me) {
		s.me->leaves = true;
		sim_note_returned(s.me->fdid);
	}
	sim_exit(p);
}

const struct sim_workload sim_work_keep = {.name = "keep",
					   .weight = 2,
					   .fits = sim_has_drives,
					   .main = keep_main,
					   .listener = &sim_keepers_listener};
