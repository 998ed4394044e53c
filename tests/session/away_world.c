/* SPDX-License-Identifier: BSD-2-Clause */
/* away_world.h: the smartiod, waiting, and the thread. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "away_world.h"
#include "session/world.h"

#define FIRST_EVENT (1 << 20)
#define OWNER 50
#define STATUS 51
#define MAX_TURNS 1000
#define END_OF_TIME (10000 * S)

struct away_thread {
	sem_t turn[2]; /* the test's, the thread's */
	pthread_t id;
	void (*fn)(void *);
	void *arg;
	bool started, ended;
};

struct away_world me;

/* ---- turns ---- */

static bool is_thread(void)
{
	return me.thread && me.thread->started && pthread_equal(pthread_self(), me.thread->id);
}

static void *run(void *arg)
{
	struct away_thread *t = arg;

	sem_wait(&t->turn[1]);
	t->fn(t->arg);
	t->ended = true;
	sem_post(&t->turn[0]);
	return NULL;
}

void its_turn(void)
{
	struct away_thread *t = me.thread;

	assert_true(t && !t->ended && ++me.turns < MAX_TURNS); /* somebody gets further */
	if (!t->started) {
		t->started = true;
		assert_int_equal(pthread_create(&t->id, NULL, run, t), 0);
	}
	sem_post(&t->turn[1]);
	sem_wait(&t->turn[0]);
}

/* The thread's own: the test goes on. */
static void turn_ends(void)
{
	struct away_thread *t = me.thread;

	sem_post(&t->turn[0]);
	sem_wait(&t->turn[1]);
}

/* ---- smartiod ---- */

void goes(uint64_t until)
{
	me.talking = false;
	me.open = false;
	me.up_from = until;
}

static void answer(const struct sio_msg *req, void *rep, size_t len)
{
	struct sio_msg *h = rep;

	assert_true(me.n_replies < REPLIES);
	*h = (struct sio_msg){.size = sio_to_le32((uint32_t)len), .type = req->type, .id = req->id};
	memcpy(me.reply[me.n_replies].data, rep, len);
	me.reply[me.n_replies++].len = len;
}

static void refuse(const struct sio_msg *req, uint32_t error)
{
	struct sio_msg_error rep = {.text = "no"};

	answer(req, &rep, sizeof(rep));
	((struct sio_msg *)me.reply[me.n_replies - 1].data)->error = sio_to_le32(error);
}

static void hello(const struct sio_msg *req, unsigned n_fds)
{
	struct sio_rep_hello rep = {
		.version = sio_to_le32(SIO_CLIENT_VERSION),
		.node = sio_to_le32(4),
		.n_adapters = sio_to_le32(1),
		.world = sio_to_le32(me.machine ? SIO_WORLD_SHIM : SIO_WORLD_ROOM)};

	me.hellos++;
	if (n_fds && me.forgotten) {
		refuse(req, ENOENT);
		return;
	}
	if (n_fds && me.other_version) {
		refuse(req, EPROTO);
		return;
	}
	me.talking = n_fds > 0;
	if (me.cut) {
		me.talking = false;
		me.cut--;
		me.open = false;
		if (!me.cut_after)
			return;
	}
	me.resumed += n_fds > 0;
	me.n_fds = n_fds ? 0 : 2;
	me.fds[0] = OWNER;
	me.fds[1] = STATUS;
	answer(req, &rep, sizeof(rep));
}

static void connected(const struct sio_msg *req)
{
	struct sio_rep_seg_connect rep = {.handle = sio_to_le32(2), .node = sio_to_le32(4)};

	answer(req, &rep, sizeof(rep));
}

static void lend(const struct sio_msg *req)
{
	struct sio_rep_dev_borrow rep = {.handle = sio_to_le32(1)};

	answer(req, &rep, sizeof(rep));
}

static int fake_connect(struct sio_world *w)
{
	(void)w;
	me.connects++;
	if (me.now < me.up_from)
		return -ECONNREFUSED;
	me.open = true;
	me.n_replies = 0;
	me.connections++;
	return ++me.fd;
}

static bool fake_comes_again(struct sio_world *w)
{
	(void)w;
	return me.machine;
}

/* What becomes of an object, where there is no memory for it. false: nothing: there is. */
static bool is_full(const struct sio_msg *req)
{
	const struct sio_msg_restore *m = (const void *)req;

	if (!me.full || sio_from_le32(req->type) != SIO_MSG_RESTORE)
		return false;
	me.full--;
	if (sio_from_le32(m->flags) & SIO_RESTORE_LAST) {
		me.lost++;
		refuse(req, ENOENT);
	} else {
		refuse(req, ENOMEM);
	}
	return true;
}

static ssize_t fake_send(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
			 unsigned n_fds)
{
	const struct sio_msg *req = buf;
	struct sio_msg ok = {0};
	bool no_memory;

	(void)w;
	(void)fds;
	if (!me.open || fd != me.fd)
		return -EPIPE;
	if (me.room)
		me.room--;
	else if (me.no_room) {
		me.no_room--;
		return -ENOBUFS;
	} else if (me.now < me.room_at) {
		return -ENOMEM;
	}
	me.last[1] = me.last[0];
	me.last[0] = sio_from_le32(req->type);
	me.disconnects += sio_from_le32(req->type) == SIO_MSG_SEG_DISCONNECT;
	no_memory = me.scarce && sio_from_le32(req->type) == SIO_MSG_RESTORE_STEP;
	me.scarce -= no_memory;
	if (!no_memory && sio_from_le32(req->type) == SIO_MSG_RESTORE_STEP &&
	    sio_from_le32(((const struct sio_msg_restore_step *)buf)->step) == SIO_RESTORE_STEPS)
		me.talking = false;
	me.restores += sio_from_le32(req->type) == SIO_MSG_RESTORE;
	me.returns += sio_from_le32(req->type) == SIO_MSG_DEV_RETURN;
	me.unholds += sio_from_le32(req->type) == SIO_MSG_DEV_UNHOLD;
	if (sio_from_le32(req->type) == SIO_MSG_HELLO)
		hello(req, n_fds);
	else if (no_memory)
		refuse(req, ENOMEM);
	else if (is_full(req))
		;
	else if (me.error)
		refuse(req, me.error);
	else if (sio_from_le32(req->type) == SIO_MSG_SEG_CONNECT)
		connected(req);
	else if (sio_from_le32(req->type) == SIO_MSG_DEV_BORROW)
		lend(req);
	else
		answer(req, &ok, sizeof(ok));
	if (is_thread() && sio_from_le32(req->type) == me.stop_at) {
		me.stop_at = 0;
		turn_ends();
	}
	return (ssize_t)len;
}

static ssize_t fake_recv(struct sio_world *w, int fd, void *buf, size_t len, int *fds,
			 unsigned max_fds, unsigned *ret_fds, uint64_t deadline)
{
	size_t n = me.reply[0].len;

	(void)w;
	(void)fd;
	(void)deadline;
	*ret_fds = 0;
	if (me.n_replies == 0)
		return me.open ? -ETIMEDOUT : 0;
	assert_true(n <= len && me.n_fds <= max_fds);
	memcpy(buf, me.reply[0].data, n);
	memcpy(fds, me.fds, me.n_fds * sizeof(*fds));
	*ret_fds = me.n_fds;
	me.n_fds = 0;
	memmove(me.reply, me.reply + 1, --me.n_replies * sizeof(me.reply[0]));
	return (ssize_t)n;
}

/* ---- waiting ---- */

/* Only the test moves the clock. */
static void let_others(uint64_t deadline)
{
	if (is_thread())
		turn_ends();
	else if (deadline == SIO_FOREVER)
		its_turn(); /* nothing else would ever end it */
	else if (deadline > me.now)
		me.now = deadline;
	assert_true(me.now < END_OF_TIME); /* nor does anybody wait so long */
}

static int look(struct sio_poll *p, unsigned n)
{
	int ready = 0;

	for (unsigned i = 0; i < n; i++) {
		if (p[i].fd >= FIRST_EVENT)
			p[i].readable = me.event[p[i].fd - FIRST_EVENT] > 0;
		else
			p[i].readable = p[i].fd == me.fd && (!me.open || me.n_replies);
		ready += p[i].readable;
	}
	return ready;
}

static int fake_poll(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	int ready;

	(void)w;
	while ((ready = look(p, n)) == 0 && me.now < deadline)
		let_others(deadline);
	return ready;
}

static int fake_wait(struct sio_world *w, struct sio_world_lock *l, uint64_t deadline)
{
	(void)w;
	(void)l;
	let_others(deadline);
	return me.now < deadline ? 0 : -ETIMEDOUT;
}

static uint64_t fake_now(struct sio_world *w)
{
	(void)w;
	return me.now;
}

/* ---- the rest of the world ---- */

static void fake_close(struct sio_world *w, int fd)
{
	(void)w;
	if (fd <= FIRST_FD || fd >= FIRST_EVENT)
		return;
	assert_true(me.connections > 0);
	me.connections--;
	me.forgotten |= me.talking && me.open && fd == me.fd;
}

static int fake_event_new(struct sio_world *w)
{
	(void)w;
	me.n_events = (me.n_events + 1) % EVENTS;
	me.event[me.n_events] = 0;
	return FIRST_EVENT + (int)me.n_events;
}

static int fake_event_write(struct sio_world *w, int fd)
{
	(void)w;
	me.event[fd - FIRST_EVENT]++;
	return 0;
}

static int fake_event_read(struct sio_world *w, int fd, uint64_t *ret_count)
{
	(void)w;
	*ret_count = me.event[fd - FIRST_EVENT];
	me.event[fd - FIRST_EVENT] = 0;
	return *ret_count ? 0 : -EAGAIN;
}

static int fake_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	(void)w;
	(void)hint;
	(void)fixed;
	assert_true(len >= sizeof(me.status));
	*ret = me.status;
	return 0;
}

static int fake_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	(void)w;
	(void)prot;
	(void)offset;
	assert_true(at == me.status && len == sizeof(me.status) && fd == STATUS);
	return 0;
}

static uint64_t fake_random(struct sio_world *w)
{
	(void)w;
	return 4;
}

static void fake_limits(struct sio_world *w, struct sio_limits *ret)
{
	(void)w;
	*ret = (struct sio_limits){.descriptors = 1024};
}

static void fake_yield(struct sio_world *w)
{
	(void)w;
}

static uint32_t fake_pid(struct sio_world *w)
{
	(void)w;
	return 1;
}

static int fake_thread_start(struct sio_world *w, void (*fn)(void *), void *arg,
			     struct sio_world_thread **ret)
{
	struct away_thread *t = calloc(1, sizeof(*t));

	(void)w;
	assert_non_null(t);
	for (unsigned i = 0; i < 2; i++)
		sem_init(&t->turn[i], 0, 0);
	t->fn = fn;
	t->arg = arg;
	me.thread = t;
	*ret = (struct sio_world_thread *)t;
	return 0;
}

static void fake_thread_join(struct sio_world *w, struct sio_world_thread *thread)
{
	struct away_thread *t = (struct away_thread *)thread;

	(void)w;
	assert_true(t == me.thread);
	while (t->started && !t->ended)
		its_turn();
	if (t->started)
		pthread_join(t->id, NULL);
	free(t);
	me.thread = NULL;
}

static bool fake_thread_is_self(struct sio_world *w, struct sio_world_thread *t)
{
	(void)w;
	(void)t;
	return is_thread();
}

static int fake_lock_new(struct sio_world *w, struct sio_world_lock **ret)
{
	(void)w;
	*ret = (struct sio_world_lock *)&me;
	return 0;
}

static void fake_lock(struct sio_world *w, struct sio_world_lock *l)
{
	(void)w;
	(void)l;
}

static struct sio_world fake_world = {
	.connect = fake_connect,
	.comes_again = fake_comes_again,
	.send = fake_send,
	.recv = fake_recv,
	.poll = fake_poll,
	.close = fake_close,
	.event_new = fake_event_new,
	.event_write = fake_event_write,
	.event_read = fake_event_read,
	.reserve = fake_reserve,
	.map = fake_map,
	.now = fake_now,
	.random = fake_random,
	.limits = fake_limits,
	.yield = fake_yield,
	.pid = fake_pid,
	.thread_start = fake_thread_start,
	.thread_join = fake_thread_join,
	.thread_is_self = fake_thread_is_self,
	.lock_new = fake_lock_new,
	.lock_free = fake_lock,
	.lock = fake_lock,
	.unlock = fake_lock,
	.wait = fake_wait,
	.wake_all = fake_lock,
};

struct sio_world *sio_world_current(void)
{
	return &fake_world;
}

void **sio_world_library(struct sio_world *w)
{
	(void)w;
	return &me.library;
}
