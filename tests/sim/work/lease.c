/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases of clients: taken with names and ranges that others may have, or anywhere; given back, or
 * left to the end of the program; listed. model/leases.h knows who has which.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client.h"
#include "model/blocks.h"
#include "model/leases.h"
#include "run/run.h"
#include "smartio/nvme.h"
#include "work/drives.h"
#include "work/lease.h"

#define NAMES 16u
#define MOST 48u /* blocks of a lease */
/* By then a manager has heard of every end, where nothing but programs breaks. */
#define GRACE (10 * SIM_SECOND)

uint32_t sim_lease_from(uint32_t blocks)
{
	return blocks / 2;
}

static int called(int rc)
{
	static const int also[] = {-EEXIST, -ESTALE, -ERANGE, -EFAULT};

	for (size_t i = 0; i < sizeof(also) / sizeof(also[0]); i++)
		if (rc == also[i])
			return sim_nvme_called(rc, rc);
	return sim_nvme_called(rc, 0);
}

/* Only of what was asked for; within the model of blocks or not. */
static void given(struct sim_lease *s, struct leases_range *range, uint32_t blocks)
{
	struct smartio_nvme_lease_info info;

	smartio_nvme_lease_get(s->l, &info);
	if (info.blocks != range->blocks ||
	    (range->lba != SMARTIO_NVME_ANYWHERE && range->lba != info.lba))
		sim_fail("leases", "%s: was given another lease than it asked for",
			 sim_self()->name);
	range->id = info.id;
	range->lba = info.lba;
	range->generation = s->l->generation;
	range->guarded = info.lba >= sim_lease_from(blocks) && info.lba + info.blocks <= blocks;
	s->first = (uint32_t)info.lba;
	s->blocks = (uint32_t)info.blocks;
	leases_taken(s->held, range);
}

bool sim_lease_take(struct sim_lease *s, struct smartio_nvme *n, struct blocks_drive *d,
		    uint32_t blocks, uint32_t least)
{
	const uint32_t from = sim_lease_from(blocks);
	struct leases_range range = {.drive = d, .epoch = blocks_epoch(d)};
	char name[16];
	int rc;

	range.blocks = least + sim_pick(MOST - least);
	range.lba = from + sim_pick(blocks - from - range.blocks + 1);
	if (sim_pick(8) == 0)
		range.lba = SMARTIO_NVME_ANYWHERE;
	snprintf(name, sizeof(name), "lease%u", (unsigned)sim_pick(NAMES));
	s->l = NULL;
	s->held = leases_ask(&range);
	sim_call("smartio_nvme_lease_take", 0);
	rc = called(smartio_nvme_lease_take(n, name, 1, range.lba, range.blocks, &s->l));
	if (rc == 0)
		given(s, &range, blocks);
	else if (rc == -EBUSY || rc == -EEXIST || rc == -ENOSPC)
		leases_refused(s->held, rc == -EBUSY && sim_drives_alone(), GRACE);
	else
		leases_given(s->held);
	if (rc == 0 && !range.guarded)
		sim_lease_give(s, false);
	return s->l != NULL;
}

void sim_lease_give(struct sim_lease *s, bool ends)
{
	int rc;

	if (!s->l)
		return;
	leases_given(s->held);
	if (ends && sim_pick(2)) {
		s->l = NULL;
		return;
	}
	sim_call("smartio_nvme_lease_give", 0);
	rc = called(smartio_nvme_lease_give(s->l));
	/* A queue of it could not be deleted; the lease ends with the borrow. */
	if (rc == 0 || rc == -EBUSY)
		s->l = NULL;
}

void sim_lease_list(struct smartio_nvme *n, const struct sim_lease *own)
{
	struct smartio_nvme_lease_info list[SIO_NVME_LEASES_A_REPLY];
	int got;

	sim_call("smartio_nvme_get_leases", 0);
	got = called(smartio_nvme_get_leases(n, list, SIO_NVME_LEASES_A_REPLY));
	for (int i = 0; i < got && !sim_wild.lies; i++) {
		for (int k = i + 1; k < got; k++)
			if (list[i].nsid == list[k].nsid &&
			    list[i].lba < list[k].lba + list[k].blocks &&
			    list[k].lba < list[i].lba + list[i].blocks)
				sim_fail("leases", "%s: leases %s and %s have the same blocks",
					 sim_self()->name, list[i].name, list[k].name);
		if (list[i].id == own->l->info.id && own->l->generation == n->meta.generation &&
		    list[i].lba != own->first)
			sim_fail("leases", "%s: its lease is listed with other blocks",
				 sim_self()->name);
	}
}
