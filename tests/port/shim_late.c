/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is under way when something ends, through smartio_loop.ko: its parameter late says that an
 * access that was sent before may still come. Who waits for that holds up nobody else, and what it
 * may reach is kept; and what a window led to whose peer has started again.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim_loop.h"

/* Ask for the end of @id, and await no answer. */
static void send_end(struct port_world *w, uint32_t op, uint64_t id)
{
	struct shim_ask a;

	shim_good(w, &a, op, 0);
	((struct sio_req_free *)(void *)&a.req)->id = id;
	shim_send(w, &a);
}

static bool has_come(const struct port_world *w, uint32_t op)
{
	for (unsigned i = 0; i < w->n_events; i++)
		if (w->news[i] == op)
			return true;
	return false;
}

void late_end(struct port_world *w, uint32_t op, uint64_t id)
{
	union port_packet evt = {0};

	loop_set(w, "late", "1");
	send_end(w, op, id);
	shim_count(w, SIO_KIND_MEM);
	shim_check(w, !has_come(w, op), "others are served before it is answered");
	loop_set(w, "late", "0");
	if (shim_event(w, op, &evt))
		shim_check(w, evt.evt.op != op || evt.evt.error == 0, "it is answered then");
}

/* By a thread of the module's, a second later at most; the test has a limit. */
static void until_count(struct port_world *w, uint32_t kind, uint32_t n)
{
	while (!w->why[0] && shim_count(w, kind) != n)
		usleep(1000);
}

/* The first of @kind that LIST reports. */
static struct sio_list_entry first(struct port_world *w, uint32_t kind)
{
	struct sio_list_entry none = {0};
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_LIST, 0);
	((struct sio_req_list *)(void *)&a.req)->kind = kind;
	if (!shim_expect(w, &a, -1, 0, "LIST"))
		return none;
	return ((const struct sio_evt_list *)(const void *)&a.answer)->entry[0];
}

/* Longer than anybody waits: it stays, and holds up neither what it was of nor its owner. */
bool late_grant(struct port_world *w)
{
	uint32_t mems = shim_count(w, SIO_KIND_MEM), owners = shim_count(w, SIO_KIND_OWNER);
	struct sio_list_entry e;
	struct loop_window x;
	union port_packet evt;
	int fd = -1;

	if (!loop_begin(w, &x, shim_make(w, SIO_OP_OWNER_NEW, 0, &fd), SHIM_PAGE))
		return false;
	loop_end(w, SIO_OP_UNMAP, x.map, 0);
	loop_set(w, "late", "1");
	loop_end(w, SIO_OP_UNGRANT, x.grant, 0); /* four seconds later */
	e = first(w, SIO_KIND_GRANT);
	shim_check(w,
		   e.id == x.grant && e.state == SIO_STATE_QUARANTINED && e.owner == 0 &&
			   e.address == x.granted,
		   "the grant is listed, as nobody's");
	loop_end(w, SIO_OP_FREE, x.source, 0);
	munmap((void *)(uintptr_t)x.there, x.length);
	munmap((void *)(uintptr_t)x.here, x.length);
	close(x.source_fd);
	close(x.map_fd);
	close(fd);
	if (shim_event(w, SIO_EV_OWNER_END, &evt))
		shim_check(w,
			   shim_count(w, SIO_KIND_MEM) == mems &&
				   shim_count(w, SIO_KIND_OWNER) == owners,
			   "memory and owner are gone");
	return !w->why[0];
}

static void grants(struct port_world *w)
{
	struct loop_window x;

	if (late_grant(w)) {
		loop_set(w, "late", "0");
		until_count(w, SIO_KIND_GRANT, 0);
	}
	if (loop_begin(w, &x, 0, SHIM_PAGE)) {
		munmap((void *)(uintptr_t)x.there, x.length);
		munmap((void *)(uintptr_t)x.here, x.length);
		close(x.source_fd);
		close(x.map_fd);
		loop_end(w, SIO_OP_UNMAP, x.map, 0);
		late_end(w, SIO_OP_UNGRANT, x.grant);
		shim_check(w, shim_count(w, SIO_KIND_GRANT) == 0, "it has ended when that is told");
		loop_end(w, SIO_OP_FREE, x.source, 0);
	}
	port_report(w, "grants to which an access may still come");
}

static void members(struct port_world *w)
{
	uint32_t mems = shim_count(w, SIO_KIND_MEM);
	union port_packet evt;
	uint64_t member;
	int fd = -1, owner_fd = -1;

	member = group_join(w, 0, SHIM_PAGE, &fd);
	group_publish(w, member, true, 0);
	close(fd);
	late_end(w, SIO_OP_FREE, member);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems, "a member has left");
	/* One whose owner dies. */
	member = group_join(w, shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd), SHIM_PAGE, &fd);
	group_publish(w, member, true, 0);
	close(fd);
	loop_set(w, "late", "1");
	close(owner_fd);
	if (shim_event(w, SIO_EV_OWNER_GONE, &evt))
		shim_check(w, shim_count(w, SIO_KIND_MEM) == mems + 1, "its memory is kept");
	group_publish(w, member, true, -EPERM);
	loop_set(w, "late", "0");
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems, "and is free then");
	port_report(w, "members of groups to which a write may still come");
}

/* ---- a peer that has started again ---- */

static uint64_t dmamap(struct port_world *w, uint32_t kind, uint64_t target, uint64_t *ret_iova)
{
	struct shim_ask a;
	struct sio_req_dmamap *m = (void *)&a.req;

	shim_good(w, &a, SIO_OP_DMAMAP, 0);
	m->target_kind = kind;
	m->target = target;
	if (!shim_expect(w, &a, -1, 0, "DMAMAP"))
		return 0;
	*ret_iova = ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova;
	return shim_id(&a);
}

/* The loop's window is memory itself, which closing its entries does not take away. */
static void check_cut(struct port_world *w, struct shim_drive *d, const struct loop_window *x,
		      uint64_t iova)
{
	uint64_t other, at = 0;

	memset((void *)(uintptr_t)x->there, 0, SHIM_PAGE);
	if (shim_is_translated(w)) {
		shim_drive_identify(d, iova);
		shim_check(w, shim_drive_completed(d, d->tail - 1), "a command that is wrong ends");
		shim_check(w, x->there[1] == 0, "the drive does not reach the peer's new start");
		other = dmamap(w, SIO_KIND_MEM, x->source, &at);
		shim_check(w, at != iova, "nobody else gets the address");
		loop_end(w, SIO_OP_DMAUNMAP, other, 0);
	}
}

static void late_start(struct port_world *w)
{
	uint64_t entry, mapping, irq = 0, iova = 0;
	struct shim_drive d = {0};
	struct loop_window x;
	struct shim_ask a;

	if (!loop_begin(w, &x, 0, SHIM_PAGE) || !shim_drive_open(w, &d, 0, &irq))
		goto out;
	shim_good(w, &a, SIO_OP_REQUESTER_ADD, 0);
	entry = shim_expect(w, &a, -1, 0, "REQUESTER_ADD") ? shim_id(&a) : 0;
	mapping = dmamap(w, SIO_KIND_MAP, x.map, &iova);
	if (shim_drive_start(w, &d)) {
		shim_drive_identify(&d, iova);
		shim_check(w,
			   shim_drive_completed(&d, 0) &&
				   memcmp((const void *)(uintptr_t)&x.there[1], "SIO0", 4) == 0,
			   "the drive's answer is at the peer's");
		loop_set(w, "boot", "11");
		loop_hear_link(w, SIO_LINK_DOWN, 0, 1);
		loop_hear_link(w, SIO_LINK_UP, 11, 1);
		check_cut(w, &d, &x, iova);
	}
	shim_drive_stop(&d);
	loop_end(w, SIO_OP_DMAUNMAP, mapping, 0);
	loop_end(w, SIO_OP_REQUESTER_DEL, entry, 0);
	loop_finish(w, &x);
	shim_drive_close(&d);
out:
	port_report(w, "a device through a window whose peer starts again");
}

void shim_late(struct port_world *w)
{
	grants(w);
	members(w);
	late_start(w);
}
