/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs on the malicious host: they have segments and interrupts for guests (work/guest.c), and
 * do nothing else.
 */
#include "work/bait.h"
#include "work/life.h"

#define SEGMENTS 2
#define INTERRUPTS 2
#define PAGE 4096u

struct state {
	sci_desc_t sd;
	sci_local_segment_t segment[SEGMENTS];
	sci_local_interrupt_t plain[INTERRUPTS];
	sci_local_data_interrupt_t data[INTERRUPTS];
};

static unsigned adapters(void)
{
	return sim_cluster->topology->host[sim_self()->host].n_adapters;
}

static void make_segment(struct state *s, sci_local_segment_t *segment)
{
	unsigned id = BAIT_FIRST_ID + (unsigned)sim_pick(BAIT_IDS);
	unsigned pages = 1 + (unsigned)sim_pick(16);
	sci_error_t e;

	SIM_CALL(SCICreateSegment, (s->sd, segment, id, pages * PAGE, NULL, NULL, 0, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		*segment = NULL;
		return;
	}
	for (unsigned a = 0; e == SCI_ERR_OK && a < adapters(); a++) {
		SIM_CALL(SCIPrepareSegment, (*segment, a, 0, &e), &e);
		if (e == SCI_ERR_OK)
			SIM_CALL(SCISetSegmentAvailable, (*segment, a, 0, &e), &e);
	}
}

static void segment(struct state *s)
{
	sci_local_segment_t *segment = &s->segment[sim_pick(SEGMENTS)];
	sci_error_t e;

	if (!*segment) {
		make_segment(s, segment);
	} else if (sim_pick(16) == 0) {
		SIM_END(SCIRemoveSegment, (*segment, sim_pick(2) ? SCI_FLAG_FORCE_REMOVE : 0, &e),
			&e, SCI_ERR_BUSY);
		if (e != SCI_ERR_BUSY)
			*segment = NULL;
	}
}

static void plain(struct state *s)
{
	sci_local_interrupt_t *interrupt = &s->plain[sim_pick(INTERRUPTS)];
	unsigned number = 1 + (unsigned)sim_pick(BAIT_NUMBERS), timeout = (unsigned)sim_pick(20);
	sci_error_t e;

	if (!*interrupt) {
		SIM_CALL(SCICreateInterrupt,
			 (s->sd, interrupt, (unsigned)sim_pick(adapters()), &number, NULL, NULL,
			  SCI_FLAG_FIXED_INTNO, &e),
			 &e, SCI_ERR_INTNO_USED);
		if (e != SCI_ERR_OK)
			*interrupt = NULL;
	} else if (sim_pick(16)) {
		sim_call("SCIWaitForInterrupt", timeout + 1000);
		SCIWaitForInterrupt(*interrupt, timeout, 0, &e);
		sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	} else {
		SIM_END(SCIRemoveInterrupt, (*interrupt, 0, &e), &e, SCI_ERR_BUSY);
		if (e != SCI_ERR_BUSY)
			*interrupt = NULL;
	}
}

static void data(struct state *s)
{
	sci_local_data_interrupt_t *interrupt = &s->data[sim_pick(INTERRUPTS)];
	unsigned number = 1 + (unsigned)sim_pick(BAIT_NUMBERS), timeout = (unsigned)sim_pick(20);
	uint8_t message[256];
	unsigned length = sizeof(message);
	sci_error_t e;

	if (!*interrupt) {
		SIM_CALL(SCICreateDataInterrupt,
			 (s->sd, interrupt, (unsigned)sim_pick(adapters()), &number, NULL, NULL,
			  SCI_FLAG_FIXED_INTNO, &e),
			 &e, SCI_ERR_INTNO_USED);
		if (e != SCI_ERR_OK)
			*interrupt = NULL;
	} else if (sim_pick(16)) {
		sim_call("SCIWaitForDataInterrupt", timeout + 1000);
		SCIWaitForDataInterrupt(*interrupt, message, &length, timeout, 0, &e);
		sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	} else {
		SIM_CALL(SCIRemoveDataInterrupt, (*interrupt, 0, &e), &e);
		*interrupt = NULL;
	}
}

static void act(void *state)
{
	switch (sim_pick(4)) {
	case 0:
	case 1:
		segment(state);
		break;
	case 2:
		plain(state);
		break;
	default:
		data(state);
	}
}

void bait_main(struct sim_proc *p)
{
	struct state s = {.sd = NULL};
	static const struct sim_life life = {.acts = 200, .act = act};

	sim_live_and_exit(p, &life, &s, &s.sd);
}
