/* SPDX-License-Identifier: BSD-2-Clause */
/* Accesses that no program makes: a device's, a DMA engine's, or the room's own. */
#include <string.h>

#include "fabric/fabric.h"

struct fabric_actor fabric_actor = {.who = FABRIC_NOBODY};

void fabric_act(unsigned requester)
{
	memset(&fabric_actor, 0, sizeof(fabric_actor));
	fabric_actor.who = requester;
	fabric_actor.far = requester != FABRIC_NOBODY;
	fabric_actor.clock = fabric_actor.hold = fabric_access->now();
}

void fabric_act_load(const struct fabric_view *v, void *buf, size_t len)
{
	fabric_settle(fabric_access->now());
	if (!v->mem) {
		memset(buf, 0xff, len);
		return;
	}
	if (fabric_actor.far && fabric_actor.who != FABRIC_NOBODY)
		fabric_path_read(fabric_actor.who, v->mem->host, fabric_actor.clock);
	fabric_actor.last = v->mem;
	if (len == 4) /* as most are: registers and doorbells */
		fabric_mem_get(v->mem, v->offset, buf, 4);
	else
		fabric_mem_get(v->mem, v->offset, buf, len);
	/*
	 * "I am done; does anybody wait?" That read happens when its clock says, which may be
	 * ahead: who begins to wait until then would be missed, so it finds somebody. Nobody minds
	 * a wake-up more.
	 */
	if (fabric_actor.looks && fabric_actor.clock > fabric_access->now() && len == 4)
		memcpy(buf, &(uint32_t){1}, 4);
	fabric_actor.looks = false;
}

void fabric_act_store(const struct fabric_view *v, const void *buf, size_t len)
{
	uint64_t now = fabric_access->now();

	fabric_settle(now);
	if (!v->mem)
		return;
	if (!fabric_actor.far || fabric_actor.who == FABRIC_NOBODY) {
		fabric_store(v->mem, v->offset, buf, len, now);
		return;
	}
	if (fabric_actor.hold < fabric_actor.clock)
		fabric_actor.hold = fabric_actor.clock;
	fabric_actor.sent = v->mem;
	fabric_path_post(fabric_actor.who, fabric_post_new(v->mem, v->offset, buf, len),
			 fabric_actor.hold);
}

/* Devices and engines do one thing after the other; "look again" of an engine pushes. */
void fabric_act_barrier(int which)
{
	if (which == FABRIC_FULL && fabric_actor.far && fabric_actor.who != FABRIC_NOBODY)
		fabric_path_read(fabric_actor.who, fabric_actor.who, fabric_actor.clock);
	fabric_actor.looks = which == FABRIC_FULL;
}

void fabric_act_signal(unsigned host, int fd)
{
	if (fabric_actor.who == FABRIC_NOBODY) {
		/* Of a vector that is unmasked: its device sent it behind all else. */
		fabric_path_all(host, UINT64_MAX);
		fabric_access->signal(fabric_access->dup(fd));
		return;
	}
	if (fabric_actor.hold < fabric_actor.clock)
		fabric_actor.hold = fabric_actor.clock;
	fabric_path_signal(fabric_actor.who, host, fd, fabric_actor.hold);
}

void fabric_act_copied(size_t len)
{
	if (fabric_actor.who == FABRIC_NOBODY || !fabric_actor.last)
		return;
	fabric_actor.clock += fabric_read_time(fabric_actor.who, fabric_actor.last, len);
}
