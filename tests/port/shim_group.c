/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of smartio.ko, through smartio_loop.ko, which copies to the first open member
 * alone: who joins and sends, what is refused, and what ends. DMA channels write to groups in
 * shim_channel.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim_loop.h"

#define GROUP 3u
#define MEMBERS 8u /* of all groups of the loop */
#define BYTES (4 * SHIM_PAGE)
#define CMB_BAR 2 /* of QEMU's drive, prefetchable */

static struct sio_req_mcast *good(struct port_world *w, struct shim_ask *a, uint64_t owner,
				  uint32_t what)
{
	struct sio_req_mcast *m = (void *)&a->req;

	shim_good(w, a, SIO_OP_MCAST, owner);
	m->adapter = NEAR;
	m->group = GROUP;
	m->what = what;
	m->length = what == SIO_MCAST_JOIN ? BYTES : 0;
	return m;
}

uint64_t group_join(struct port_world *w, uint64_t owner, uint64_t length, int *ret_fd)
{
	struct shim_ask a;
	const struct sio_evt_mcast *evt = (const void *)&a.answer;

	good(w, &a, owner, SIO_MCAST_JOIN)->length = length;
	if (!shim_expect(w, &a, -1, 0, "JOIN"))
		return 0;
	shim_check(w, a.n_fds == 1 && evt->mode == SIO_MCAST_EXACT && evt->members > 0,
		   "a member has memory of its own");
	*ret_fd = a.fd[0];
	return shim_id(&a);
}

void group_publish(struct port_world *w, uint64_t member, bool yes, int error)
{
	struct shim_ask a;

	good(w, &a, 0, yes ? SIO_MCAST_PUBLISH : SIO_MCAST_UNPUBLISH)->target = member;
	shim_expect(w, &a, -1, error, "PUBLISH");
}

uint64_t group_connect(struct port_world *w, uint64_t owner, int error)
{
	struct shim_ask a;

	good(w, &a, owner, SIO_MCAST_CONNECT);
	if (!shim_expect(w, &a, -1, error, "CONNECT") || error)
		return 0;
	shim_check(w, a.n_fds == 0, "who sends has addresses, and no descriptor");
	return shim_id(&a);
}

/* A daemon that is started again knows by its row of which group memory is, and what. */
static void listed(struct port_world *w, uint64_t id, uint32_t what)
{
	const struct sio_evt_list *evt;
	struct sio_req_list *r;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_LIST, 0);
	r = (void *)&a.req;
	r->kind = SIO_KIND_MEM;
	r->after = id - 1;
	evt = (const void *)&a.answer;
	if (!shim_expect(w, &a, -1, 0, "LIST"))
		return;
	shim_check(w,
		   evt->count > 0 && evt->entry[0].id == id &&
			   evt->entry[0].device == SIO_LIST_PATH(NEAR, what),
		   "memory is listed with its group");
}

/* How many members the group has, one more among them. */
static unsigned members(struct port_world *w)
{
	struct shim_ask a;
	unsigned n;

	good(w, &a, 0, SIO_MCAST_JOIN)->length = 1;
	if (!shim_expect(w, &a, -1, 0, "JOIN"))
		return 0;
	n = ((const struct sio_evt_mcast *)(const void *)&a.answer)->members;
	loop_end(w, SIO_OP_FREE, shim_id(&a), 0);
	shim_close(&a);
	return n;
}

static void lives(struct port_world *w)
{
	uint64_t first, second, sender;
	struct shim_ask a;
	int fd[2] = {-1, -1};

	first = group_join(w, 0, BYTES, &fd[0]);
	group_connect(w, 0, -ENOENT); /* nobody is there yet */
	good(w, &a, 0, SIO_MCAST_JOIN)->length = BYTES + 1;
	shim_expect(w, &a, -1, -ERANGE, "a longer one");
	second = group_join(w, 0, 1, &fd[1]);
	shim_check(w, members(w) == 3, "members are counted");
	group_publish(w, first, true, 0);
	group_publish(w, first, true, 0); /* again */
	group_publish(w, second, true, 0);
	sender = group_connect(w, 0, 0);
	listed(w, first, SIO_LIST_MEMBER | GROUP);
	listed(w, sender, SIO_LIST_SENDER | GROUP);
	group_publish(w, first, false, 0);
	group_publish(w, second, false, 0);
	group_connect(w, 0, -ENOENT);
	group_publish(w, sender, true, -EINVAL);
	loop_end(w, SIO_OP_FREE, second, 0);
	group_publish(w, second, true, -ENOENT);
	loop_end(w, SIO_OP_FREE, first, 0);
	shim_check(w, members(w) == 1, "they have left");
	/* A new first one says how long the group is. */
	close(fd[0]);
	first = group_join(w, 0, 2 * BYTES, &fd[0]);
	loop_end(w, SIO_OP_FREE, first, 0);
	loop_end(w, SIO_OP_FREE, sender, 0);
	close(fd[0]);
	close(fd[1]);
	port_report(w, "members of a group come and go");
}

static void full(struct port_world *w)
{
	uint64_t id[MEMBERS];
	struct shim_ask a;
	unsigned n = 0;
	int fd = -1;

	while (n < MEMBERS && !w->why[0]) {
		id[n] = group_join(w, 0, SHIM_PAGE, &fd);
		n += id[n] != 0;
		close(fd);
	}
	good(w, &a, 0, SIO_MCAST_JOIN)->length = SHIM_PAGE;
	if (shim_expect(w, &a, -1, -ENOSPC, "one more"))
		shim_check(w, a.answer.evt.reason == SIO_OUT_OF_GRANTS, "its reason");
	while (n)
		loop_end(w, SIO_OP_FREE, id[--n], 0);
	port_report(w, "a bridge whose members are all in use");
}

/* A request about @id that must be refused with -EINVAL. */
static void refused(struct port_world *w, uint32_t op, uint64_t id, uint32_t access)
{
	struct shim_ask a;

	shim_good(w, &a, op, 0);
	if (op == SIO_OP_DMAMAP) {
		((struct sio_req_dmamap *)(void *)&a.req)->target = id;
		((struct sio_req_dmamap *)(void *)&a.req)->access = access;
	} else if (op == SIO_OP_GRANT) {
		((struct sio_req_grant *)(void *)&a.req)->source = id;
		((struct sio_req_grant *)(void *)&a.req)->access = access;
	} else {
		((struct sio_req_reopen *)(void *)&a.req)->kind = SIO_KIND_MEM;
		((struct sio_req_reopen *)(void *)&a.req)->id = id;
	}
	shim_expect(w, &a, -1, -EINVAL, "what is no memory");
}

/* A member in the drive's CMB. */
static uint64_t lay_over(struct port_world *w, uint64_t view, uint64_t offset, int error)
{
	struct shim_ask a;
	struct sio_req_mcast *m = good(w, &a, 0, SIO_MCAST_JOIN);

	m->length = SHIM_PAGE;
	m->source_kind = SIO_KIND_BAR;
	m->source = view;
	m->offset = offset;
	if (!shim_expect(w, &a, -1, error, "an overlay") || error)
		return 0;
	shim_check(w, a.n_fds == 0, "an overlay has no descriptor");
	return shim_id(&a);
}

static uint64_t view(struct port_world *w, uint32_t bar, uint32_t access)
{
	struct shim_ask a;
	struct sio_req_bar *m = (void *)&a.req;

	shim_good(w, &a, SIO_OP_BAR, 0);
	m->bar = bar;
	m->offset = 0;
	m->length = SHIM_PAGE;
	m->access = access;
	if (!shim_expect(w, &a, -1, 0, "BAR"))
		return 0;
	shim_close(&a);
	return shim_id(&a);
}

static void overlays(struct port_world *w)
{
	uint64_t registers, reads, memory, member;
	struct shim_drive d = {0};
	uint64_t irq = 0;

	if (!shim_drive_open(w, &d, 0, &irq))
		goto out;
	registers = view(w, 0, SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	reads = view(w, CMB_BAR, SIO_ACCESS_READ);
	memory = view(w, CMB_BAR, SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	lay_over(w, registers, 0, -EACCES);
	lay_over(w, reads, 0, -EACCES);
	lay_over(w, memory, SHIM_PAGE, -EINVAL);
	lay_over(w, memory, 1, -EINVAL);
	member = lay_over(w, memory, 0, 0);
	group_publish(w, member, true, 0);
	refused(w, SIO_OP_DMAMAP, member, SIO_ACCESS_WRITE);
	refused(w, SIO_OP_GRANT, member, SIO_ACCESS_WRITE);
	refused(w, SIO_OP_REOPEN, member, 0);
	loop_end(w, SIO_OP_BAR_CLOSE, memory, -EBUSY);
	loop_end(w, SIO_OP_FREE, member, 0);
	loop_end(w, SIO_OP_BAR_CLOSE, memory, 0);
	loop_end(w, SIO_OP_BAR_CLOSE, reads, 0);
	loop_end(w, SIO_OP_BAR_CLOSE, registers, 0);
	shim_drive_close(&d);
out:
	port_report(w, "a member in a BAR");
}

static uint64_t dmamap(struct port_world *w, uint64_t owner, uint64_t target, uint32_t access,
		       int error, uint64_t *ret_iova)
{
	struct shim_ask a;
	struct sio_req_dmamap *m = (void *)&a.req;

	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	m->target = target;
	m->access = access;
	m->length = BYTES;
	if (!shim_expect(w, &a, -1, error, "DMAMAP of a group") || error)
		return 0;
	*ret_iova = ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova;
	return shim_id(&a);
}

/* The drive writes its answer to the group. */
static void by_a_drive(struct port_world *w)
{
	uint64_t member, sender, entry, mapping, irq = 0, iova = 0;
	const volatile char *at = NULL;
	struct shim_drive d = {0};
	struct shim_ask a;
	int fd = -1;

	if (!shim_drive_open(w, &d, 0, &irq))
		goto out;
	member = group_join(w, 0, BYTES, &fd);
	group_publish(w, member, true, 0);
	sender = group_connect(w, 0, 0);
	at = shim_map(w, fd, BYTES, PROT_READ);
	dmamap(w, 0, sender, SIO_ACCESS_READ | SIO_ACCESS_WRITE, -EINVAL, &iova);
	dmamap(w, 0, sender, SIO_ACCESS_READ, -EINVAL, &iova);
	dmamap(w, 0, sender, SIO_ACCESS_WRITE, -ENOENT, &iova); /* no entry lets it out */
	refused(w, SIO_OP_GRANT, sender, SIO_ACCESS_WRITE);
	refused(w, SIO_OP_REOPEN, sender, 0);
	shim_good(w, &a, SIO_OP_REQUESTER_ADD, 0);
	entry = shim_expect(w, &a, -1, 0, "REQUESTER_ADD") ? shim_id(&a) : 0;
	mapping = dmamap(w, 0, sender, SIO_ACCESS_WRITE, 0, &iova);
	loop_end(w, SIO_OP_FREE, sender, -EBUSY);
	loop_end(w, SIO_OP_REQUESTER_DEL, entry, -EBUSY);
	if (at && shim_drive_start(w, &d)) {
		shim_drive_identify(&d, iova);
		shim_check(w, shim_drive_completed(&d, 0), "Identify ends");
		shim_check(w, memcmp((const void *)(uintptr_t)(at + 4), "SIO0", 4) == 0,
			   "the drive's answer is at the member");
	}
	shim_drive_stop(&d);
	late_end(w, SIO_OP_DMAUNMAP, mapping);
	loop_end(w, SIO_OP_REQUESTER_DEL, entry, 0);
	loop_end(w, SIO_OP_FREE, sender, 0);
	loop_end(w, SIO_OP_FREE, member, 0);
	if (at)
		munmap((void *)(uintptr_t)at, BYTES);
	close(fd);
	shim_drive_close(&d);
out:
	port_report(w, "a device writes to a group");
}

/* Members of who was killed leave, though a grant of theirs stays until the peer's word. */
static void death(struct port_world *w)
{
	uint32_t mems = shim_count(w, SIO_KIND_MEM);
	uint64_t owner, member, grant;
	union port_packet evt;
	struct shim_ask a;
	int owner_fd = -1, fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	member = group_join(w, owner, BYTES, &fd);
	group_publish(w, member, true, 0);
	group_connect(w, owner, 0);
	shim_good(w, &a, SIO_OP_GRANT, owner);
	((struct sio_req_grant *)(void *)&a.req)->source = member;
	grant = shim_expect(w, &a, -1, 0, "GRANT of a member") ? shim_id(&a) : 0;
	close(owner_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	group_publish(w, member, true, -EPERM);
	group_connect(w, 0, -ENOENT);
	shim_check(w, members(w) == 1, "it has left");
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems + 1,
		   "its memory stays, as it is granted");
	loop_end(w, SIO_OP_UNGRANT, grant, 0);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems, "and is free then");
	close(fd);
	port_report(w, "the death of a member");
}

bool group_hold(struct port_world *w, struct group_held *g)
{
	struct shim_ask a;

	g->member = group_join(w, 0, BYTES, &g->fd);
	group_publish(w, g->member, true, 0);
	g->sender = group_connect(w, 0, 0);
	shim_good(w, &a, SIO_OP_ADAPTER, 0);
	if (shim_expect(w, &a, -1, 0, "ADAPTER"))
		shim_check(
			w,
			((const struct sio_evt_adapter *)(const void *)&a.answer)->mcast_groups ==
				8,
			"the adapter has groups");
	return !w->why[0];
}

void group_lost(struct port_world *w, struct group_held *g)
{
	uint64_t iova;

	group_publish(w, g->member, true, -ENODEV);
	dmamap(w, 0, g->sender, SIO_ACCESS_WRITE, -ENETDOWN, &iova);
	loop_end(w, SIO_OP_FREE, g->sender, 0);
	loop_end(w, SIO_OP_FREE, g->member, 0);
	close(g->fd);
}

/* How often smartio.ko has waited for what was written to groups. */
static unsigned waits(struct port_world *w)
{
	FILE *f = fopen("/sys/module/smartio_loop/parameters/waits", "re");
	unsigned n = 0;

	shim_check(w, f && fscanf(f, "%u", &n) == 1, "smartio_loop counts");
	if (f)
		fclose(f);
	return n;
}

/* What the drive had sent to the group has arrived when the port reports that it is gone. */
static void gone(struct port_world *w)
{
	uint64_t member, sender, entry, mapping, iova;
	union port_packet evt;
	struct shim_ask a;
	char bdf[64];
	unsigned n;
	int fd = -1;

	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	if (!shim_expect(w, &a, -1, 0, "DEVICE_LIST"))
		goto out;
	snprintf(bdf, sizeof(bdf), "%s", ((const struct sio_evt_device *)(void *)&a.answer)->name);
	member = group_join(w, 0, BYTES, &fd);
	group_publish(w, member, true, 0);
	sender = group_connect(w, 0, 0);
	shim_good(w, &a, SIO_OP_REQUESTER_ADD, 0);
	entry = shim_expect(w, &a, -1, 0, "REQUESTER_ADD") ? shim_id(&a) : 0;
	mapping = dmamap(w, 0, sender, SIO_ACCESS_WRITE, 0, &iova);
	n = waits(w);
	shim_sysfs(w, "bus/pci/drivers/smartio/unbind", bdf);
	shim_event(w, SIO_EV_DEVICE_GONE, &evt);
	shim_check(w, waits(w) == n + 1, "its writes to the group are waited for");
	loop_end(w, SIO_OP_DMAUNMAP, mapping, 0);
	shim_check(w, waits(w) == n + 1, "once");
	loop_end(w, SIO_OP_REQUESTER_DEL, entry, 0);
	loop_end(w, SIO_OP_FREE, sender, 0);
	loop_end(w, SIO_OP_FREE, member, 0);
	close(fd);
	shim_sysfs(w, "bus/pci/drivers/smartio/bind", bdf);
	shim_event(w, SIO_EV_DEVICE_BACK, &evt);
	shim_good(w, &a, SIO_OP_DEVICE_OPEN, 0);
	shim_expect(w, &a, -1, 0, "DEVICE_OPEN");
out:
	port_report(w, "a device goes whose writes to a group are under way");
}

void shim_groups(struct port_world *w)
{
	lives(w);
	full(w);
	overlays(w);
	by_a_drive(w);
	death(w);
	gone(w);
}
