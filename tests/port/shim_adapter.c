/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows, messages, links and ends, through smartio_loop.ko: adapter 0 of this host says that node
 * 8 is behind it, and is joined to adapter 1, for which this host is node 4.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim_loop.h"

#define ONES 0xffffffffu
#define LOOP_VECTORS 4
#define LOOP_REQUESTERS 8
#define PATIENCE_MS 60000

void loop_set(struct port_world *w, const char *parameter, const char *text)
{
	char file[64];

	snprintf(file, sizeof(file), "module/smartio_loop/parameters/%s", parameter);
	shim_sysfs(w, file, text);
}

/* The next event of that kind, with its fields. */
static bool hear(struct port_world *w, uint32_t op, union port_packet *ret)
{
	int fds[SIO_PORT_MAX_FDS];
	unsigned n;

	while (w->t->event(w->ctx, 0, ret, sizeof(*ret), fds, &n) > 0)
		if (ret->evt.op == op)
			return true;
	port_failed(w, "event %#x does not come", op);
	return false;
}

void loop_hear_link(struct port_world *w, uint32_t state, uint64_t generation, uint64_t turn)
{
	union port_packet evt;
	const struct sio_evt_link *link = (const void *)&evt;

	do {
		if (!hear(w, SIO_EV_LINK, &evt))
			return;
	} while (link->adapter != NEAR || link->peer_node != w->thing[T_NODE1] ||
		 link->state != state);
	if (link->generation != generation || link->turn != turn)
		port_failed(w, "the link is of generation %ju, turn %ju; %ju and %ju are right",
			    (uintmax_t)link->generation, (uintmax_t)link->turn,
			    (uintmax_t)generation, (uintmax_t)turn);
}

/* ---- windows ---- */

/* Grant the window's source; the message to MAP it comes into @ret. */
static bool grant(struct port_world *w, struct loop_window *x, uint32_t kind, int error,
		  struct sio_req_map *ret)
{
	struct shim_ask a;
	struct sio_req_grant *g = (void *)&a.req;
	const struct sio_evt_grant *evt = (const void *)&a.answer;

	shim_good(w, &a, SIO_OP_GRANT, x->owner);
	g->source_kind = kind;
	g->source = x->source;
	g->length = x->length;
	g->adapter = FAR;
	g->peer_node = (uint32_t)w->thing[T_NODE0];
	if (!shim_expect(w, &a, -1, error, "GRANT") || error)
		return false;
	x->grant = evt->id;
	x->granted = evt->bus_addr;
	*ret = (struct sio_req_map){.peer_node = (uint32_t)w->thing[T_NODE1],
				    .bus_addr = evt->bus_addr,
				    .length = evt->length,
				    .generation = evt->generation,
				    .grant = evt->id};
	memcpy(ret->token, evt->token, sizeof(ret->token));
	return true;
}

static bool map(struct port_world *w, struct loop_window *x, const struct sio_req_map *m, int error)
{
	struct shim_ask a;
	struct sio_req h;
	const struct sio_evt_map *evt = (const void *)&a.answer;

	shim_good(w, &a, SIO_OP_MAP, x->owner);
	h = a.req.req;
	memcpy(&a.req, m, sizeof(*m));
	a.req.req = h;
	if (!shim_expect(w, &a, -1, error, "MAP") || error)
		return false;
	x->map = evt->id;
	x->bus = evt->bus_addr;
	x->map_fd = a.fd[0];
	return true;
}

bool loop_begin(struct port_world *w, struct loop_window *x, uint64_t owner, uint64_t length)
{
	struct sio_req_map m;
	struct shim_ask a;

	*x = (struct loop_window){.owner = owner, .length = length};
	shim_good(w, &a, SIO_OP_ALLOC, owner);
	((struct sio_req_alloc *)(void *)&a.req)->size = length;
	((struct sio_req_alloc *)(void *)&a.req)->kind = SIO_ALLOC_CONTIGUOUS;
	if (!shim_expect(w, &a, -1, 0, "ALLOC"))
		return false;
	x->source = shim_id(&a);
	x->source_fd = a.fd[0];
	if (!grant(w, x, SIO_KIND_MEM, 0, &m) || !map(w, x, &m, 0))
		return false;
	x->there = shim_map(w, x->source_fd, length, PROT_READ | PROT_WRITE);
	x->here = shim_map(w, x->map_fd, length, PROT_READ | PROT_WRITE);
	return x->there && x->here;
}

void loop_end(struct port_world *w, uint32_t op, uint64_t id, int error)
{
	struct shim_ask a;

	shim_good(w, &a, op, 0);
	((struct sio_req_free *)(void *)&a.req)->id = id;
	shim_expect(w, &a, -1, error, "the end of something");
}

static void unmap(struct loop_window *x)
{
	if (x->there)
		munmap((void *)(uintptr_t)x->there, x->length);
	if (x->here)
		munmap((void *)(uintptr_t)x->here, x->length);
	close(x->source_fd);
	close(x->map_fd);
}

void loop_finish(struct port_world *w, struct loop_window *x)
{
	unmap(x);
	loop_end(w, SIO_OP_UNMAP, x->map, 0);
	loop_end(w, SIO_OP_UNGRANT, x->grant, 0);
	loop_end(w, SIO_OP_FREE, x->source, 0);
}

static void expect_word(struct port_world *w, const volatile uint32_t *at, uint32_t value,
			const char *what)
{
	uint32_t got = *at;

	if (got != value)
		port_failed(w, "%s is %#x, %#x is right", what, got, value);
}

/* A daemon that is started again knows by its row where a window leads. */
static void listed(struct port_world *w, const struct loop_window *x)
{
	const struct sio_evt_list *evt;
	const struct sio_list_entry *e;
	struct sio_req_list *r;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_LIST, 0);
	r = (void *)&a.req;
	r->kind = SIO_KIND_MAP;
	r->after = x->map - 1;
	evt = (const void *)&a.answer;
	e = &evt->entry[0];
	if (!shim_expect(w, &a, -1, 0, "LIST"))
		return;
	shim_check(w,
		   evt->count == 1 && e->id == x->map && e->grant == x->grant &&
			   e->cookie == x->granted && e->node == w->thing[T_NODE1] &&
			   e->device == SIO_LIST_PATH(NEAR, 0),
		   "a window is listed with its peer's grant and address");
}

static void data(struct port_world *w)
{
	struct loop_window x;

	if (loop_begin(w, &x, 0, 3 * SHIM_PAGE)) {
		listed(w, &x);
		for (unsigned i = 0; i < 3 * SHIM_PAGE / 4; i++)
			x.here[i] = i * 0x01010101u;
		for (unsigned i = 0; i < 3 * SHIM_PAGE / 4; i++)
			if (x.there[i] != i * 0x01010101u) {
				port_failed(w, "word %u is %#x", i, x.there[i]);
				break;
			}
		x.there[1] = 4711;
		expect_word(w, &x.here[1], 4711, "what the other side stored");
		loop_end(w, SIO_OP_FREE, x.source, -EBUSY);
		loop_end(w, SIO_OP_UNMAP, x.map, 0);
		expect_word(w, &x.here[1], ONES, "a window that has ended");
		loop_end(w, SIO_OP_UNMAP, x.map, -ENOENT);
		unmap(&x);
		loop_end(w, SIO_OP_UNGRANT, x.grant, 0);
		loop_end(w, SIO_OP_FREE, x.source, 0);
	}
	port_report(w, "stores through a window");
}

/* ---- messages ---- */

static uint64_t count(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n;

	if (poll(&p, 1, timeout_ms) != 1)
		return 0;
	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static bool begin_interrupt(struct port_world *w, struct loop_window *x, uint64_t owner)
{
	struct sio_req_map m;

	*x = (struct loop_window){.owner = owner};
	x->source = shim_make(w, SIO_OP_IRQ_NEW, owner, &x->source_fd);
	return x->source && grant(w, x, SIO_KIND_IRQ, 0, &m) && map(w, x, &m, 0);
}

static void end_interrupt(struct port_world *w, struct loop_window *x)
{
	close(x->source_fd);
	close(x->map_fd);
	loop_end(w, SIO_OP_UNMAP, x->map, 0);
	loop_end(w, SIO_OP_UNGRANT, x->grant, 0);
	loop_end(w, SIO_OP_IRQ_FREE, x->source, 0);
}

static void messages(struct port_world *w)
{
	struct loop_window x[LOOP_VECTORS], more = {0};
	struct sio_req_map m;
	uint64_t one = 1;

	for (unsigned i = 0; i < LOOP_VECTORS; i++)
		if (!begin_interrupt(w, &x[i], 0))
			goto out;
	for (unsigned i = 0; i < LOOP_VECTORS; i++) {
		shim_check(w, write(x[i].map_fd, &one, sizeof(one)) == sizeof(one), "it is sent");
		shim_check(w, count(x[i].source_fd, PATIENCE_MS) == 1, "a message arrives");
	}
	for (unsigned i = 0; i < LOOP_VECTORS; i++)
		shim_check(w, count(x[i].source_fd, 0) == 0, "it is nobody else's");
	shim_check(w, write(x[0].map_fd, &one, 4) < 0 && errno == EINVAL, "4 bytes are refused");
	more.source = shim_make(w, SIO_OP_IRQ_NEW, 0, NULL);
	grant(w, &more, SIO_KIND_IRQ, -ENOSPC, &m); /* no vector is left */
	loop_end(w, SIO_OP_IRQ_FREE, more.source, 0);
	more = x[0];
	if (grant(w, &more, SIO_KIND_IRQ, 0, &m)) /* it has one */
		loop_end(w, SIO_OP_UNGRANT, more.grant, 0);
	loop_end(w, SIO_OP_IRQ_FREE, x[0].source, -EBUSY);
	for (unsigned i = 0; i < LOOP_VECTORS; i++)
		end_interrupt(w, &x[i]);
out:
	port_report(w, "messages through a window");
}

/* ---- devices ---- */

static uint64_t requester(struct port_world *w, int error)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_REQUESTER_ADD, 0);
	return shim_expect(w, &a, -1, error, "REQUESTER_ADD") ? shim_id(&a) : 0;
}

static uint64_t dmamap(struct port_world *w, uint64_t owner, uint64_t target, int error,
		       uint64_t *ret_iova)
{
	struct shim_ask a;
	struct sio_req_dmamap *m = (void *)&a.req;

	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	m->target_kind = SIO_KIND_MAP;
	m->target = target;
	if (!shim_expect(w, &a, -1, error, "DMAMAP") || error)
		return 0;
	*ret_iova = ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova;
	return shim_id(&a);
}

static void vector(struct port_world *w, uint64_t owner, uint64_t irq, uint32_t mask, int error)
{
	struct shim_ask a;
	struct sio_req_vector *v = (void *)&a.req;

	shim_good(w, &a, SIO_OP_VECTOR, owner);
	v->irq = irq;
	v->mask = mask;
	shim_expect(w, &a, -1, error, "VECTOR");
}

/* The drive writes its answer, and then its interrupt, to the other side. */
static void drive(struct port_world *w)
{
	struct shim_drive d = {0};
	uint64_t owner, irq = 0, entry, mapping, iova = 0;
	struct loop_window x, told;
	int fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	if (!loop_begin(w, &x, owner, SHIM_PAGE) || !begin_interrupt(w, &told, owner) ||
	    !shim_drive_open(w, &d, owner, &irq))
		goto out;
	dmamap(w, owner, x.map, -ENOENT, &iova);
	vector(w, owner, told.map, 0, -ENOENT);
	entry = requester(w, 0);
	mapping = dmamap(w, owner, x.map, 0, &iova);
	dmamap(w, owner, told.map, -EINVAL, &iova);
	vector(w, owner, x.map, 0, -ENOENT);
	vector(w, owner, told.map, 0, 0);
	loop_end(w, SIO_OP_REQUESTER_DEL, entry, -EBUSY);
	loop_end(w, SIO_OP_UNMAP, x.map, -EBUSY);
	loop_end(w, SIO_OP_UNMAP, told.map, -EBUSY);
	if (shim_drive_start(w, &d)) {
		shim_drive_identify(&d, iova);
		shim_check(w, count(told.source_fd, PATIENCE_MS) > 0, "the peer is interrupted");
		shim_check(w, memcmp((const void *)(uintptr_t)&x.there[1], "SIO0", 4) == 0,
			   "the drive's answer is at the peer's");
		vector(w, owner, told.map, 1, 0);
		shim_drive_identify(&d, iova);
		shim_check(w, shim_drive_completed(&d, 1), "it goes on");
		shim_check(w, count(told.source_fd, 0) == 0, "a masked vector is kept");
		vector(w, owner, told.map, 0, 0);
		shim_check(w, count(told.source_fd, PATIENCE_MS) > 0, "and told later");
		vector(w, owner, irq, 0, 0); /* from there to here */
		shim_drive_identify(&d, iova);
		shim_check(w, count(d.irq_fd, PATIENCE_MS) > 0, "now this host is interrupted");
		shim_check(w, count(told.source_fd, 0) == 0, "and the peer no more");
	}
	shim_drive_stop(&d);
	vector(w, owner, 0, 0, 0);
	loop_end(w, SIO_OP_DMAUNMAP, mapping, 0);
	loop_end(w, SIO_OP_REQUESTER_DEL, entry, 0);
	loop_finish(w, &x);
	end_interrupt(w, &told);
	shim_drive_close(&d);
out:
	close(fd);
	port_report(w, "a device through a window");
}

/* The table is full; a function takes one entry however often it is added. */
static void requesters(struct port_world *w)
{
	uint64_t id[LOOP_REQUESTERS], again;
	struct shim_ask a;
	struct sio_req_requester_add *m = (void *)&a.req;

	for (unsigned i = 0; i <= LOOP_REQUESTERS; i++) {
		shim_good(w, &a, SIO_OP_REQUESTER_ADD, 0);
		m->device = 0;
		m->bdf = 0x4200 + i;
		if (!shim_expect(w, &a, -1, i < LOOP_REQUESTERS ? 0 : -ENOSPC, "REQUESTER_ADD"))
			break;
		if (i < LOOP_REQUESTERS)
			id[i] = shim_id(&a);
		else
			shim_check(w, a.answer.evt.reason == SIO_OUT_OF_REQUESTERS, "its reason");
	}
	m->bdf = 0x4200;
	again = shim_expect(w, &a, -1, 0, "REQUESTER_ADD again") ? shim_id(&a) : 0;
	for (unsigned i = 0; i < LOOP_REQUESTERS && !w->why[0]; i++)
		loop_end(w, SIO_OP_REQUESTER_DEL, id[i], 0);
	loop_end(w, SIO_OP_REQUESTER_DEL, again, 0);
	port_report(w, "a requester table that is full");
}

/* ---- deaths ---- */

/* A grant of who was killed stays until the peer's word; its windows do not. */
static void death(struct port_world *w)
{
	uint32_t mems = shim_count(w, SIO_KIND_MEM);
	const struct sio_evt_owner_gone *gone;
	union port_packet evt;
	struct loop_window x;
	int fd = -1;
	pid_t pid;

	if (!loop_begin(w, &x, shim_make(w, SIO_OP_OWNER_NEW, 0, &fd), SHIM_PAGE))
		goto out;
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	gone = (const void *)&evt;
	do
		if (!hear(w, SIO_EV_OWNER_GONE, &evt))
			goto out;
	while (evt.evt.owner != x.owner);
	shim_check(w, gone->grants == 1 && gone->mems == 1 && gone->maps == 0,
		   "the grant and its memory stay");
	expect_word(w, x.here, ONES, "the window");
	shim_check(w, shim_count(w, SIO_KIND_GRANT) == 1 && shim_count(w, SIO_KIND_MAP) == 0,
		   "a grant and no map are listed");
	loop_end(w, SIO_OP_UNGRANT, x.grant, 0);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == mems, "the memory is free");
	unmap(&x);
out:
	port_report(w, "the death of who granted and mapped");
}

/* What is given to the daemon outlives its owner, with its grants. */
static void give(struct port_world *w)
{
	union port_packet evt;
	struct loop_window x;
	int fd = -1;

	if (loop_begin(w, &x, shim_make(w, SIO_OP_OWNER_NEW, 0, &fd), SHIM_PAGE)) {
		loop_end(w, SIO_OP_GIVE, x.source, 0);
		close(fd);
		shim_event(w, SIO_EV_OWNER_END, &evt);
		x.there[0] = 1;
		loop_end(w, SIO_OP_UNGRANT, x.grant, 0);
		loop_end(w, SIO_OP_FREE, x.source, 0);
		unmap(&x);
	}
	port_report(w, "memory that is given away with its grants");
}

/* ---- links ---- */

static const volatile struct sio_status_path *path(struct port_world *w,
						   const volatile struct sio_status_page *page)
{
	for (uint32_t i = 0; page && i < page->count; i++)
		if (page->path[i].adapter == NEAR && page->path[i].peer_node == w->thing[T_NODE1])
			return &page->path[i];
	shim_check(w, false, "the path is in the status page");
	return NULL;
}

static const volatile struct sio_status_page *status(struct port_world *w, size_t *ret_size)
{
	struct shim_ask a;
	void *at;

	shim_good(w, &a, SIO_OP_STATUS, 0);
	if (!shim_expect(w, &a, -1, 0, "STATUS"))
		return NULL;
	*ret_size = ((const struct sio_evt_status *)(const void *)&a.answer)->size;
	at = shim_map(w, a.fd[0], *ret_size, PROT_READ);
	shim_check(w, mmap(NULL, *ret_size, PROT_WRITE, MAP_SHARED, a.fd[0], 0) == MAP_FAILED,
		   "nobody writes to it");
	shim_close(&a);
	return at;
}

static void link_down(struct port_world *w)
{
	size_t size = 0;
	const volatile struct sio_status_page *page = status(w, &size);
	const volatile struct sio_status_path *p = path(w, page);
	struct loop_window x, more = {.length = SHIM_PAGE};
	struct sio_req_map m;
	uint32_t generation;

	if (!p || !loop_begin(w, &x, 0, SHIM_PAGE))
		goto out;
	shim_check(w, p->state == SIO_LINK_UP && p->peer_boot == 4, "the path is up");
	generation = p->generation;
	x.here[0] = 17;
	loop_set(w, "link", "0");
	loop_hear_link(w, SIO_LINK_DOWN, 0, 0);
	shim_check(w, p->state == SIO_LINK_DOWN && p->generation == generation + 1,
		   "the status page says so");
	expect_word(w, x.here, ONES, "the window");
	x.here[0] = 23;
	expect_word(w, x.there, 17, "what was stored before");
	more.source = x.source;
	if (grant(w, &more, SIO_KIND_MEM, 0, &m)) { /* prepared for later */
		map(w, &more, &m, -ENETDOWN);
		loop_end(w, SIO_OP_UNGRANT, more.grant, 0);
	}
	loop_set(w, "link", "1");
	loop_hear_link(w, SIO_LINK_UP, 4, 0);
	shim_check(w, p->state == SIO_LINK_UP && p->generation == generation + 2, "up again");
	expect_word(w, x.here, 17, "the window");
	x.here[0] = 5;
	expect_word(w, x.there, 5, "the memory");
	loop_finish(w, &x);
out:
	munmap((void *)(uintptr_t)page, size);
	port_report(w, "a link that goes down and comes back");
}

/* Another start of the peer, or of the way to it: what was mapped of the old one stays dead. */
static void start_again(struct port_world *w, const char *parameter, const char *value,
			uint64_t boot, uint64_t before, uint64_t turn)
{
	struct sio_req_map old;
	struct loop_window x, y;
	char what[80];

	snprintf(what, sizeof(what), "the peer in another start (%s)", parameter);
	if (!loop_begin(w, &x, 0, SHIM_PAGE))
		goto out;
	y = x;
	if (!grant(w, &y, SIO_KIND_MEM, 0, &old))
		goto out;
	loop_set(w, parameter, value);
	loop_hear_link(w, SIO_LINK_DOWN, 0, before);
	loop_hear_link(w, SIO_LINK_UP, boot, turn);
	expect_word(w, x.here, ONES, "the old window");
	map(w, &y, &old, -ESTALE);
	loop_end(w, SIO_OP_UNGRANT, y.grant, 0);
	loop_finish(w, &x);
	if (loop_begin(w, &x, 0, SHIM_PAGE)) {
		x.here[0] = 9;
		expect_word(w, x.there, 9, "a new window");
		loop_finish(w, &x);
	}
out:
	port_report(w, what);
}

/* ---- faults, and the bridge's end ---- */

static void fault(struct port_world *w)
{
	const struct sio_evt_fault *f;
	union port_packet evt;
	struct loop_window x;

	f = (const void *)&evt;
	if (loop_begin(w, &x, 0, SHIM_PAGE)) {
		loop_set(w, "fault", "in write 4 0x1000 64");
		if (hear(w, SIO_EV_FAULT, &evt))
			shim_check(w,
				   f->access == SIO_FAULT_WRITE && f->node == 4 &&
					   f->length == 64 && f->address == 0x1000 &&
					   f->mapping == 0 && f->nearest == SIO_PORT_ANY &&
					   strcmp(f->reason, "a test says so") == 0,
				   "a peer's access is told, of nothing granted there");
		loop_set(w, "fault", "out read 8 0 4");
		if (hear(w, SIO_EV_FAULT, &evt))
			shim_check(w, f->access == SIO_FAULT_READ && f->mapping == x.map,
				   "our own is told, with the map");
		loop_finish(w, &x);
	}
	port_report(w, "accesses that were stopped");
}

static uint64_t counter(const struct sio_evt_stats *evt, const char *name)
{
	for (uint32_t i = 0; i < evt->count; i++)
		if (strcmp(evt->counter[i].name, name) == 0)
			return evt->counter[i].value;
	return UINT64_MAX;
}

/* The loop counts nothing itself: what it reports smartio.ko counts. */
static void statistics(struct port_world *w)
{
	struct shim_ask a;
	struct sio_req_stats *m = (void *)&a.req;
	const struct sio_evt_stats *evt = (const void *)&a.answer;
	uint64_t faults, entries;
	union port_packet told;
	struct loop_window x;

	shim_good(w, &a, SIO_OP_STATS, 0);
	m->kind = SIO_KIND_ADAPTER;
	m->id = NEAR;
	if (!shim_expect(w, &a, -1, 0, "STATS"))
		goto out;
	faults = counter(evt, "faults");
	entries = counter(evt, "lut_used");
	shim_check(w, faults != UINT64_MAX && entries == 0, "faults and entries are counted");
	shim_check(w, counter(evt, "path_changes") >= 4, "links went and came in tests before");
	if (!loop_begin(w, &x, 0, SHIM_PAGE))
		goto out;
	loop_set(w, "fault", "out read 8 0 4");
	hear(w, SIO_EV_FAULT, &told);
	shim_expect(w, &a, -1, 0, "STATS");
	shim_check(w, counter(evt, "faults") == faults + 1 && counter(evt, "lut_used") == 1,
		   "a fault and an entry more");
	loop_finish(w, &x);
	m->id = 15;
	shim_expect(w, &a, -1, -ENODEV, "STATS of no adapter");
	m->id = UINT64_MAX;
	shim_expect(w, &a, -1, -ENODEV, "STATS of no adapter");
out:
	port_report(w, "counters of an adapter");
}

/* The bridge's module goes while all of it is in use. */
static void bridge_gone(struct port_world *w)
{
	struct loop_window x, told;
	uint64_t entry, one = 1;
	struct group_held g;
	struct shim_ask a;

	if (!late_grant(w) || !loop_begin(w, &x, 0, SHIM_PAGE) || !begin_interrupt(w, &told, 0) ||
	    !group_hold(w, &g))
		goto out;
	entry = requester(w, 0);
	x.here[0] = 1;
	if (syscall(SYS_delete_module, "smartio_loop", O_NONBLOCK) < 0)
		port_failed(w, "smartio_loop stays: %s", strerror(errno));
	expect_word(w, x.here, ONES, "the window");
	shim_check(w, write(told.map_fd, &one, sizeof(one)) == sizeof(one), "a message is lost");
	shim_good(w, &a, SIO_OP_ADAPTER, 0);
	shim_expect(w, &a, -1, -ENODEV, "ADAPTER");
	group_lost(w, &g);
	loop_end(w, SIO_OP_REQUESTER_DEL, entry, 0);
	end_interrupt(w, &told);
	loop_finish(w, &x);
	shim_check(w, shim_count(w, SIO_KIND_GRANT) == 0, "nothing is kept any more");
out:
	port_report(w, "the bridge goes");
}

void port_adapters(struct port_world *w)
{
	data(w);
	messages(w);
	drive(w);
	shim_granted(w);
	requesters(w);
	death(w);
	give(w);
	link_down(w);
	start_again(w, "turn", "1", 4, 0, 1);
	start_again(w, "boot", "9", 9, 1, 1);
	shim_channels(w);
	shim_groups(w);
	shim_late(w);
	statistics(w);
	fault(w);
	bridge_gone(w);
}
