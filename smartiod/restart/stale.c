/* SPDX-License-Identifier: BSD-2-Clause */
/* What the port has since before this daemon was started, until somebody says that it is his. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/room.h"
#include "smartiod/restart/restore.h"

static void tell_port(struct smartiod *d, const struct smartiod_leftover *l)
{
	struct sio_req_bar_close bar = {.h.op = SIO_OP_BAR_CLOSE, .id = l->by_id.key};
	struct sio_req_irq_free irq = {.h.op = SIO_OP_IRQ_FREE, .id = l->by_id.key};

	switch (l->kind) {
	case SIO_KIND_MEM:
		smartiod_port_free(d, l->by_id.key);
		return;
	case SIO_KIND_BAR:
		smartiod_port_tell(d, &bar, sizeof(bar));
		return;
	case SIO_KIND_IRQ:
		smartiod_irq_ends(d, l->by_id.key);
		smartiod_port_tell(d, &irq, sizeof(irq));
		return;
	}
}

static void drop(struct smartiod *d, uint64_t owner, bool give_back)
{
	struct smartiod_leftover *l, *next;

	for (l = smartiod_leftover_after(d, 0); l; l = next) {
		next = smartiod_leftover_after(d, l->by_id.key);
		if (l->owner != owner)
			continue;
		if (give_back && l->kind == SIO_KIND_MEM && smartiod_restore_end_mapped(d, l))
			continue;
		if (give_back)
			tell_port(d, l);
		smartiod_leftover_done(d, l);
	}
}

void smartiod_leftovers_owner_gone(struct smartiod *d, uint64_t owner)
{
	drop(d, owner, false);
}

void smartiod_leftovers_give_back(struct smartiod *d, uint64_t owner)
{
	drop(d, owner, true);
}
