/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA channels of smartio.ko, through smartio_loop.ko: copies between memory and windows, what ends
 * under them, and rings of programs that mean ill.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim_loop.h"
#include "smartio/disk.h"
#include "smartio/io.h"

#define PAGES 12u
#define BYTES (PAGES * SHIM_PAGE)
#define CHANNELS 256u
#define PATIENCE_MS 60000

enum { MEMORY, WINDOW }; /* slots, in the order in which they are attached */

struct channel {
	uint64_t id, range[2];
	int ring_fd, bell, finished;
	struct sio_dma_ring *ring;
	size_t size;
	uint32_t tail, started; /* entries; transfers */
};

/* ---- a channel ---- */

static bool channel_open_at(struct port_world *w, struct channel *c, uint64_t owner,
			    uint32_t adapter)
{
	struct shim_ask a;

	memset(c, 0, sizeof(*c));
	shim_good(w, &a, SIO_OP_DMA, owner);
	((struct sio_req_dma *)(void *)&a.req)->adapter = adapter;
	if (!shim_expect(w, &a, -1, 0, "DMA"))
		return false;
	c->id = shim_id(&a);
	c->size = ((const struct sio_evt_dma *)(const void *)&a.answer)->size;
	c->ring_fd = a.fd[0];
	c->bell = a.fd[1];
	c->finished = a.fd[2];
	c->ring = shim_map(w, c->ring_fd, c->size, PROT_READ | PROT_WRITE);
	return c->ring;
}

static bool channel_open(struct port_world *w, struct channel *c, uint64_t owner)
{
	return channel_open_at(w, c, owner, NEAR);
}

static void channel_forget(struct channel *c)
{
	if (c->ring)
		munmap(c->ring, c->size);
	close(c->ring_fd);
	close(c->bell);
	close(c->finished);
}

static void channel_close(struct port_world *w, struct channel *c)
{
	loop_end(w, SIO_OP_DMA_FREE, c->id, 0);
	channel_forget(c);
}

static uint64_t attach_for(struct port_world *w, const struct channel *c, uint64_t owner,
			   uint32_t kind, uint64_t target, uint32_t slot, uint32_t access,
			   int error)
{
	struct shim_ask a;
	struct sio_req_dma_attach *m = (void *)&a.req;
	const struct sio_evt_dma_attach *evt = (const void *)&a.answer;

	shim_good(w, &a, SIO_OP_DMA_ATTACH, owner);
	m->channel = c->id;
	m->target_kind = kind;
	m->target = target;
	m->offset = 0;
	m->length = BYTES;
	m->access = access;
	if (!shim_expect(w, &a, -1, error, "DMA_ATTACH") || error)
		return 0;
	shim_check(w, evt->slot == slot, "the slot is the first that is free");
	return evt->id;
}

static uint64_t attach(struct port_world *w, const struct channel *c, uint64_t owner, uint32_t kind,
		       uint64_t target, uint32_t slot)
{
	return attach_for(w, c, owner, kind, target, slot, SIO_ACCESS_READ | SIO_ACCESS_WRITE, 0);
}

static void enter(struct channel *c, uint32_t from, uint64_t from_offset, uint32_t to,
		  uint64_t to_offset, uint64_t length, uint32_t flags)
{
	c->ring->entry[c->tail++ % SIO_DMA_ENTRIES] =
		(struct sio_dma_entry){.source = from,
				       .source_offset = from_offset,
				       .target = to,
				       .target_offset = to_offset,
				       .length = length,
				       .flags = flags};
	c->started += flags & SIO_DMA_LAST;
}

static void go(struct port_world *w, struct channel *c)
{
	uint64_t one = 1;

	sio_to_fabric_barrier();
	sio_write32(&c->ring->tail, c->tail);
	sio_full_barrier();
	if (sio_read32(&c->ring->asleep))
		shim_check(w, write(c->bell, &one, sizeof(one)) == sizeof(one), "the doorbell");
}

/* The result of the last transfer, by its event; 1: it does not end. */
static int result(struct port_world *w, struct channel *c)
{
	struct pollfd p = {.fd = c->finished, .events = POLLIN};
	uint64_t n;

	sio_write32(&c->ring->waiting, 1);
	sio_full_barrier();
	while (sio_read32(&c->ring->done) != c->started) {
		if (poll(&p, 1, PATIENCE_MS) != 1) {
			port_failed(w, "transfer %u does not end", c->started - 1);
			return 1;
		}
		if (read(c->finished, &n, sizeof(n)) != sizeof(n))
			port_failed(w, "no count is read: %s", strerror(errno));
	}
	sio_from_fabric_barrier();
	return c->ring->result[(c->started - 1) % SIO_DMA_RESULTS];
}

static void expect(struct port_world *w, struct channel *c, int error, const char *what)
{
	int got;

	go(w, c);
	got = result(w, c);
	if (got != error)
		port_failed(w, "%s: the result is %d, %d is right", what, got, error);
}

static void copy(struct port_world *w, struct channel *c, uint32_t from, uint32_t to, int error,
		 const char *what)
{
	enter(c, from, 0, to, 0, BYTES, SIO_DMA_LAST);
	expect(w, c, error, what);
}

/* ---- what they reach ---- */

/* Two windows, of which one's memory is reached directly. */
struct world {
	struct loop_window x, y;
	struct channel c;
};

static bool world_begin(struct port_world *w, struct world *t, uint64_t owner)
{
	if (!loop_begin(w, &t->x, owner, BYTES) || !loop_begin(w, &t->y, owner, BYTES) ||
	    !channel_open(w, &t->c, owner))
		return false;
	t->c.range[MEMORY] = attach(w, &t->c, owner, SIO_KIND_MEM, t->x.source, MEMORY);
	t->c.range[WINDOW] = attach(w, &t->c, owner, SIO_KIND_MAP, t->y.map, WINDOW);
	return !w->why[0];
}

static void world_end(struct port_world *w, struct world *t)
{
	channel_close(w, &t->c);
	loop_finish(w, &t->x);
	loop_finish(w, &t->y);
}

static void fill(volatile uint32_t *at, uint32_t seed)
{
	for (uint32_t i = 0; i < BYTES / 4; i++)
		at[i] = i * 2654435761u + seed;
}

static void expect_filled(struct port_world *w, const volatile uint32_t *at, uint32_t seed,
			  const char *what)
{
	for (uint32_t i = 0; i < BYTES / 4; i++)
		if (at[i] != i * 2654435761u + seed) {
			port_failed(w, "%s: word %u is %#x", what, i, at[i]);
			return;
		}
}

static void copies(struct port_world *w)
{
	struct world t;

	if (!world_begin(w, &t, 0))
		goto out;
	fill(t.x.there, 1);
	copy(w, &t.c, MEMORY, WINDOW, 0, "memory to a window");
	expect_filled(w, t.y.there, 1, "memory to a window");
	fill(t.y.there, 2);
	copy(w, &t.c, WINDOW, MEMORY, 0, "a window to memory");
	expect_filled(w, t.x.there, 2, "a window to memory");
	/* Of several entries, at odd places, within one range. */
	fill(t.x.there, 3);
	t.x.there[SHIM_PAGE] = 0;
	enter(&t.c, MEMORY, 1, MEMORY, BYTES / 2 + 3, BYTES / 4 + 1, 0);
	enter(&t.c, MEMORY, 0, WINDOW, 0, 0, 0);
	enter(&t.c, MEMORY, BYTES / 2 + 3, WINDOW, 1, BYTES / 4 + 1, SIO_DMA_LAST);
	expect(w, &t.c, 0, "three entries");
	shim_check(w,
		   memcmp((const char *)(uintptr_t)t.x.there + 1,
			  (const char *)(uintptr_t)t.y.there + 1, BYTES / 4 + 1) == 0,
		   "bytes at odd places");
	world_end(w, &t);
out:
	port_report(w, "a channel copies");
}

/* One range after the other has its turn in a full ring, and again. */
static void full_ring(struct port_world *w)
{
	struct world t;

	if (!world_begin(w, &t, 0))
		goto out;
	for (unsigned round = 0; round < 3 && !w->why[0]; round++) {
		fill(t.x.there, round);
		for (unsigned i = 0; i < SIO_DMA_ENTRIES; i++)
			enter(&t.c, MEMORY, i % PAGES * SHIM_PAGE, WINDOW, i % PAGES * SHIM_PAGE,
			      SHIM_PAGE, i % 4 == 3 ? SIO_DMA_LAST : 0);
		expect(w, &t.c, 0, "a full ring");
		shim_check(w, sio_read32(&t.c.ring->head) == t.c.tail, "all entries are done");
		expect_filled(w, t.y.there, round, "a full ring");
	}
	world_end(w, &t);
out:
	port_report(w, "a ring that is full");
}

/* ---- errors ---- */

static void bad_entries(struct port_world *w)
{
	struct world t;

	if (!world_begin(w, &t, 0))
		goto out;
	enter(&t.c, 2, 0, WINDOW, 0, 1, SIO_DMA_LAST);
	expect(w, &t.c, -EINVAL, "a slot that is free");
	enter(&t.c, MEMORY, 0, SIO_DMA_SLOTS, 0, 1, SIO_DMA_LAST);
	expect(w, &t.c, -EINVAL, "a slot that there is not");
	enter(&t.c, MEMORY, 1, WINDOW, 0, BYTES, SIO_DMA_LAST);
	expect(w, &t.c, -EINVAL, "a range that is too long");
	enter(&t.c, MEMORY, UINT64_MAX, WINDOW, 0, 2, SIO_DMA_LAST);
	expect(w, &t.c, -EINVAL, "an offset that wraps");
	enter(&t.c, MEMORY, 0, WINDOW, 0, UINT64_MAX, SIO_DMA_LAST);
	expect(w, &t.c, -EINVAL, "a length that wraps");
	/* The first error ends a transfer, and not the next one. */
	fill(t.x.there, 4);
	memset((void *)(uintptr_t)t.y.there, 0, BYTES);
	enter(&t.c, 7, 0, WINDOW, 0, 1, 0);
	enter(&t.c, MEMORY, 0, WINDOW, 0, BYTES, SIO_DMA_LAST);
	expect(w, &t.c, -EINVAL, "a transfer whose first entry is bad");
	shim_check(w, t.y.there[0] == 0 && t.y.there[1] == 0, "the rest is not copied");
	sio_write32(&t.c.ring->abort, t.c.started + 1);
	enter(&t.c, MEMORY, 0, WINDOW, 0, BYTES, SIO_DMA_LAST);
	expect(w, &t.c, -ECANCELED, "one that is given up");
	copy(w, &t.c, MEMORY, WINDOW, 0, "the next one");
	expect_filled(w, t.y.there, 4, "the next one");
	world_end(w, &t);
out:
	port_report(w, "entries that are refused");
}

/* Nothing is done for it any more, and others are served. */
static void nonsense(struct port_world *w)
{
	struct world t, u;

	if (!world_begin(w, &t, 0) || !world_begin(w, &u, 0))
		goto out;
	t.c.tail += SIO_DMA_ENTRIES + 1;
	go(w, &t.c);
	fill(u.x.there, 5);
	copy(w, &u.c, MEMORY, WINDOW, 0, "another channel");
	expect_filled(w, u.y.there, 5, "another channel");
	shim_check(w, sio_read32(&t.c.ring->done) == 0 && sio_read32(&t.c.ring->head) == 0,
		   "a ring that makes no sense is left alone");
	world_end(w, &u);
	world_end(w, &t);
out:
	port_report(w, "a tail that makes no sense");
}

/* ---- ends ---- */

static void targets_end(struct port_world *w)
{
	struct world t;

	if (!world_begin(w, &t, 0))
		goto out;
	fill(t.x.there, 6);
	copy(w, &t.c, MEMORY, WINDOW, 0, "a copy");
	/* Neither waits for the channel. */
	loop_finish(w, &t.y);
	copy(w, &t.c, MEMORY, WINDOW, -EINVAL, "to a window that has ended");
	loop_end(w, SIO_OP_DMA_DETACH, t.c.range[WINDOW], -ENOENT);
	if (loop_begin(w, &t.y, 0, BYTES)) {
		t.c.range[WINDOW] = attach(w, &t.c, 0, SIO_KIND_MAP, t.y.map, WINDOW);
		copy(w, &t.c, MEMORY, WINDOW, 0, "to the one that has its slot");
		expect_filled(w, t.y.there, 6, "to the one that has its slot");
	}
	loop_end(w, SIO_OP_DMA_DETACH, t.c.range[MEMORY], 0);
	copy(w, &t.c, MEMORY, WINDOW, -EINVAL, "from a range that was detached");
	channel_close(w, &t.c);
	shim_check(w, shim_count(w, SIO_KIND_DMA_RANGE) == 0, "ranges end with their channel");
	loop_finish(w, &t.x);
	loop_finish(w, &t.y);
out:
	port_report(w, "targets that end under a channel");
}

static void link_breaks(struct port_world *w)
{
	struct world t;

	if (!world_begin(w, &t, 0))
		goto out;
	fill(t.x.there, 7);
	loop_set(w, "link", "0");
	loop_hear_link(w, SIO_LINK_DOWN, 0, 1);
	copy(w, &t.c, MEMORY, WINDOW, -EFAULT, "to a window whose link is down");
	copy(w, &t.c, WINDOW, MEMORY, -EFAULT, "from it");
	expect_filled(w, t.x.there, 7, "what a broken link was read for");
	loop_set(w, "link", "1");
	loop_hear_link(w, SIO_LINK_UP, 9, 1);
	copy(w, &t.c, MEMORY, WINDOW, 0, "when it is up again");
	expect_filled(w, t.y.there, 7, "when it is up again");
	world_end(w, &t);
out:
	port_report(w, "a link that breaks under a channel");
}

/* A program dies while its channel copies: no byte moves when its owner's end is reported. */
static void death(struct port_world *w)
{
	uint32_t channels = shim_count(w, SIO_KIND_DMA);
	union port_packet evt;
	struct loop_window seen; /* the daemon's, so that it outlives the program */
	struct channel c = {.ring_fd = -1};
	int fd = -1;
	uint64_t owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	uint32_t at;

	if (!loop_begin(w, &seen, 0, BYTES) || !channel_open(w, &c, owner))
		goto out;
	attach(w, &c, owner, SIO_KIND_MEM, seen.source, MEMORY);
	attach(w, &c, owner, SIO_KIND_MAP, seen.map, WINDOW);
	fill(seen.there, 8);
	for (unsigned i = 0; i < SIO_DMA_ENTRIES; i++)
		enter(&c, MEMORY, 0, WINDOW, BYTES / 2, BYTES / 2, SIO_DMA_LAST);
	go(w, &c);
	while (sio_read32(&c.ring->done) == 0 && !w->why[0])
		sched_yield();
	close(fd);
	do
		if (!shim_event(w, SIO_EV_OWNER_GONE, &evt))
			goto out;
	while (evt.evt.owner != owner);
	at = sio_read32(&c.ring->done);
	memset((void *)(uintptr_t)seen.there, 0, BYTES);
	shim_check(w,
		   shim_count(w, SIO_KIND_DMA) == channels &&
			   shim_count(w, SIO_KIND_DMA_RANGE) == 0,
		   "the channel is gone");
	go(w, &c); /* its doorbell is rung, by whoever has it still */
	for (unsigned i = 0; i < BYTES / 4; i++)
		if (seen.there[i]) {
			port_failed(w, "word %u moved after the owner's end", i);
			break;
		}
	shim_check(w, sio_read32(&c.ring->done) == at, "nothing is done any more");
	channel_forget(&c);
	loop_finish(w, &seen);
out:
	port_report(w, "the death of a channel's owner");
}

/* A range ends with its target also where that is another program's, which dies. */
static void target_dies(struct port_world *w)
{
	struct channel c;
	struct shim_ask a;
	int fd = -1, mem = -1;
	uint64_t id, owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	union port_packet evt;

	shim_good(w, &a, SIO_OP_ALLOC, owner);
	((struct sio_req_alloc *)(void *)&a.req)->size = BYTES;
	if (!channel_open(w, &c, 0) || !shim_expect(w, &a, -1, 0, "ALLOC"))
		goto out;
	mem = a.fd[0];
	id = attach(w, &c, 0, SIO_KIND_MEM, shim_id(&a), 0);
	attach(w, &c, 0, SIO_KIND_MEM, shim_id(&a), 1);
	copy(w, &c, 0, 1, 0, "while its owner lives");
	close(fd);
	do
		if (!shim_event(w, SIO_EV_OWNER_GONE, &evt))
			goto out;
	while (evt.evt.owner != owner);
	copy(w, &c, 0, 1, -EINVAL, "when it has died");
	loop_end(w, SIO_OP_DMA_DETACH, id, -ENOENT);
	shim_check(w, shim_count(w, SIO_KIND_DMA_RANGE) == 0, "both ranges have ended");
	shim_good(w, &a, SIO_OP_REOPEN, 0);
	((struct sio_req_reopen *)(void *)&a.req)->kind = SIO_KIND_DMA;
	((struct sio_req_reopen *)(void *)&a.req)->id = c.id;
	shim_expect(w, &a, -1, -EINVAL, "REOPEN of a channel");
	channel_close(w, &c);
	close(mem);
out:
	port_report(w, "the death of who has a range's target");
}

/* ---- programs that want all of the engine ---- */

/* Its ring is full for ever: of copies of nothing, and it alone moves the tail on. */
static void hog_begin(struct port_world *w, struct channel *c, uint64_t memory)
{
	attach(w, c, 0, SIO_KIND_MEM, memory, MEMORY);
	for (unsigned i = 0; i < SIO_DMA_ENTRIES; i++)
		enter(c, MEMORY, 0, MEMORY, 0, 0, SIO_DMA_LAST);
	go(w, c);
}

static pid_t hogs_run(const struct channel *c, unsigned n)
{
	pid_t pid = fork();

	while (pid == 0) {
		if (getppid() == 1)
			_exit(1);
		for (unsigned i = 0; i < n; i++)
			sio_write32(&c[i].ring->tail,
				    sio_read32(&c[i].ring->head) + SIO_DMA_ENTRIES);
	}
	return pid;
}

/* More than a work queue of the kernel's has running at a time, if nobody says how many. */
static void hogs(struct port_world *w)
{
	static struct channel c[CHANNELS];
	struct world t;
	unsigned n = 0;
	pid_t pid = -1;

	if (!world_begin(w, &t, 0))
		goto out;
	while (n < CHANNELS && channel_open_at(w, &c[n], 0, FAR))
		hog_begin(w, &c[n++], t.x.source);
	if (!w->why[0])
		pid = hogs_run(c, n);
	fill(t.x.there, 9);
	for (unsigned i = 0; i < 3 && !w->why[0]; i++)
		copy(w, &t.c, MEMORY, WINDOW, 0, "beside channels that are never idle");
	expect_filled(w, t.y.there, 9, "beside channels that are never idle");
	/* They end as they are. */
	while (n)
		channel_close(w, &c[--n]);
	if (pid > 0 && (kill(pid, SIGKILL) || waitpid(pid, NULL, 0) != pid))
		port_failed(w, "the program that fills the rings: %s", strerror(errno));
	world_end(w, &t);
out:
	port_report(w, "channels that are never idle");
}

/* ---- what is no view ---- */

static void refuse_attach(struct port_world *w, int fd, struct sio_disk_attach is, int error,
			  const char *what)
{
	shim_check(w, ioctl(fd, SIO_DISK_ATTACH, &is) == -1 && errno == error, what);
}

static void refuse_counts(struct port_world *w, int fd, struct sio_disk_attach is)
{
	struct sio_disk_renew renew = {.size = sizeof(renew), .n_pairs = 1, .pairs = is.pairs};

	is.n_pairs = 0;
	refuse_attach(w, fd, is, EINVAL, "a disk without a queue pair");
	is.n_pairs = SIO_DISK_PAIRS + 1;
	refuse_attach(w, fd, is, EINVAL, "a disk with too many queue pairs");
	is.n_pairs = 1;
	is.pairs = 8;
	refuse_attach(w, fd, is, EFAULT, "a disk whose pairs cannot be read");
	shim_check(w, ioctl(fd, SIO_DISK_RENEW, &renew) == -1 && errno == EINVAL,
		   "other pairs for a descriptor that has no disk");
}

/* A ring is no place for a queue pair: what the kernel maps of programs is memory and views. */
static void ring_as_queue(struct port_world *w)
{
	struct sio_disk_pair pair = {.id = 1, .interrupt = 1 << 20};
	struct sio_disk_attach is = {.size = sizeof(is),
				     .pairs = (uintptr_t)&pair,
				     .n_pairs = 1,
				     .entries = 2,
				     .depth = 1,
				     .slot = SHIM_PAGE,
				     .timeout_ms = 1000,
				     .nsid = 1,
				     .block_shift = 9,
				     .blocks = 8};
	int fd = open(SIO_DISK_NODE, O_RDWR | O_CLOEXEC);
	struct world t;

	if (fd < 0 || !world_begin(w, &t, 0)) {
		shim_check(w, fd >= 0, "the node of smartio_blk.ko");
		goto out;
	}
	pair.sq = pair.cq = pair.sq_doorbell = pair.cq_doorbell = pair.memory =
		(uintptr_t)t.x.there;
	refuse_attach(w, fd, is, EBADF, "of memory all is right but the interrupt");
	pair.sq = (uintptr_t)t.c.ring;
	refuse_attach(w, fd, is, EINVAL, "a ring is refused as a queue");
	refuse_counts(w, fd, is);
	world_end(w, &t);
out:
	if (fd >= 0)
		close(fd);
	port_report(w, "a ring that is given to the kernel as a queue");
}

static void too_many(struct port_world *w)
{
	uint64_t id[CHANNELS];
	struct shim_ask a;
	unsigned n = 0;

	while (n < CHANNELS && !w->why[0]) {
		shim_good(w, &a, SIO_OP_DMA, 0);
		((struct sio_req_dma *)(void *)&a.req)->adapter = FAR;
		if (shim_expect(w, &a, -1, 0, "DMA"))
			id[n++] = shim_id(&a);
		shim_close(&a);
	}
	shim_good(w, &a, SIO_OP_DMA, 0);
	((struct sio_req_dma *)(void *)&a.req)->adapter = FAR;
	if (shim_expect(w, &a, -1, -ENOSPC, "one channel more"))
		shim_check(w, a.answer.evt.reason == SIO_OUT_OF_DMA_CHANNELS, "its reason");
	while (n)
		loop_end(w, SIO_OP_DMA_FREE, id[--n], 0);
	port_report(w, "channels that are all in use");
}

/* A group is written to, and what some member misses fails the transfer. */
static void group(struct port_world *w)
{
	enum { GROUP_SLOT = 2 };
	uint64_t member, sender;
	volatile uint32_t *at;
	struct world t;
	int fd = -1;

	if (!world_begin(w, &t, 0))
		goto out;
	member = group_join(w, 0, BYTES, &fd);
	group_publish(w, member, true, 0);
	sender = group_connect(w, 0, 0);
	at = shim_map(w, fd, BYTES, PROT_READ | PROT_WRITE);
	if (!at)
		goto out;
	attach_for(w, &t.c, 0, SIO_KIND_MEM, sender, GROUP_SLOT, SIO_ACCESS_READ, -EINVAL);
	attach_for(w, &t.c, 0, SIO_KIND_MEM, sender, GROUP_SLOT, SIO_ACCESS_READ | SIO_ACCESS_WRITE,
		   -EINVAL);
	attach_for(w, &t.c, 0, SIO_KIND_MEM, sender, GROUP_SLOT, SIO_ACCESS_WRITE, 0);
	fill(t.x.there, 6);
	copy(w, &t.c, MEMORY, GROUP_SLOT, 0, "memory to a group");
	expect_filled(w, at, 6, "memory to a group");
	fill(t.y.there, 7);
	copy(w, &t.c, WINDOW, GROUP_SLOT, 0, "a window to a group");
	expect_filled(w, at, 7, "a window to a group");
	copy(w, &t.c, GROUP_SLOT, MEMORY, -EINVAL, "nothing is read there");
	loop_set(w, "miss", "1");
	copy(w, &t.c, MEMORY, GROUP_SLOT, -EFAULT, "one that some member misses");
	enter(&t.c, MEMORY, 0, GROUP_SLOT, 0, BYTES, 0);
	enter(&t.c, MEMORY, 0, WINDOW, 0, BYTES, SIO_DMA_LAST);
	expect(w, &t.c, -EFAULT, "the same within a longer one");
	loop_set(w, "miss", "0");
	copy(w, &t.c, MEMORY, GROUP_SLOT, 0, "the next one");
	/* While it is not known whether it has arrived others are served, of that channel, too. */
	loop_set(w, "late", "1");
	enter(&t.c, MEMORY, 0, GROUP_SLOT, 0, BYTES, SIO_DMA_LAST);
	go(w, &t.c);
	loop_end(w, SIO_OP_DMA_DETACH, attach(w, &t.c, 0, SIO_KIND_MEM, t.x.source, GROUP_SLOT + 1),
		 0);
	loop_set(w, "late", "0");
	if (result(w, &t.c) != 0)
		port_failed(w, "one that arrives late: the result is not 0");
	loop_end(w, SIO_OP_FREE, sender, 0);
	copy(w, &t.c, MEMORY, GROUP_SLOT, -EINVAL, "a way to the group that has ended");
	loop_end(w, SIO_OP_FREE, member, 0);
	munmap((void *)(uintptr_t)at, BYTES);
	close(fd);
	world_end(w, &t);
out:
	port_report(w, "a channel writes to a group");
}

void shim_channels(struct port_world *w)
{
	copies(w);
	group(w);
	full_ring(w);
	bad_entries(w);
	nonsense(w);
	targets_end(w);
	link_breaks(w);
	death(w);
	target_dies(w);
	hogs(w);
	ring_as_queue(w);
	too_many(w);
}
