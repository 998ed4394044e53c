/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the library waits for a smartiod, with a clock that only waiting moves: one thread, and
 * a smartiod that is there at the times that the test says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/types.h"
#include "session/world.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/uapi.h"
#include "wire/client.h"

#define S 1000000000ull
#define MS 1000000ull
#define EVENTS 8
#define REPLIES 4
#define FIRST_FD 1000 /* the numbers of connections follow it */
#define FIRST_EVENT (1 << 20)
#define OWNER 50
#define STATUS 51

static struct {
	uint64_t now, up_from; /* SIO_FOREVER: never again */
	bool machine, open;
	int fd, fds[2];
	unsigned connections; /* open */
	unsigned unholds;     /* it was asked for */
	/* cut: so many HELLOs end the connection; cut_after: before, or after the answer. */
	unsigned connects, hellos, resumed, cut;
	bool cut_after;
	unsigned room, no_room; /* behind so many packets so many cannot be sent */
	unsigned restores;	/* it was told what the program has */
	uint32_t error;		/* answer to all but HELLO */
	unsigned n_fds, n_replies, n_events;
	uint64_t event[EVENTS];
	struct {
		size_t len;
		_Alignas(8) unsigned char data[SIO_WIRE_MAX];
	} reply[REPLIES];
	_Alignas(SIO_PAGE_SIZE) struct sio_status_page page;
	void *library;
} me;

/* ---- smartiod ---- */

static void goes(uint64_t until)
{
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

static void hello(const struct sio_msg *req, unsigned n_fds)
{
	struct sio_rep_hello rep = {
		.version = sio_to_le32(SIO_CLIENT_VERSION),
		.node = sio_to_le32(4),
		.n_adapters = sio_to_le32(1),
		.world = sio_to_le32(me.machine ? SIO_WORLD_SHIM : SIO_WORLD_ROOM)};

	me.hellos++;
	if (me.cut) {
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

static void lend(const struct sio_msg *req)
{
	struct sio_rep_dev_borrow rep = {.handle = sio_to_le32(1)};

	answer(req, &rep, sizeof(rep));
}

static void refuse(const struct sio_msg *req)
{
	struct sio_msg_error rep = {.text = "no handle"};

	answer(req, &rep, sizeof(rep));
	((struct sio_msg *)me.reply[me.n_replies - 1].data)->error = sio_to_le32(me.error);
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

static ssize_t fake_send(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
			 unsigned n_fds)
{
	const struct sio_msg *req = buf;
	struct sio_msg ok = {0};

	(void)w;
	(void)fds;
	if (!me.open || fd != me.fd)
		return -EPIPE;
	if (me.room)
		me.room--;
	else if (me.no_room) {
		me.no_room--;
		return -ENOBUFS;
	}
	me.restores += sio_from_le32(req->type) == SIO_MSG_RESTORE;
	me.unholds += sio_from_le32(req->type) == SIO_MSG_DEV_UNHOLD;
	if (sio_from_le32(req->type) == SIO_MSG_HELLO)
		hello(req, n_fds);
	else if (me.error)
		refuse(req);
	else if (sio_from_le32(req->type) == SIO_MSG_DEV_BORROW)
		lend(req);
	else
		answer(req, &ok, sizeof(ok));
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

static void pass(uint64_t deadline)
{
	assert_true(deadline != SIO_FOREVER); /* nothing would ever end it */
	if (deadline > me.now)
		me.now = deadline;
}

static int fake_poll(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	int ready = 0;

	(void)w;
	for (unsigned i = 0; i < n; i++) {
		if (p[i].fd >= FIRST_EVENT)
			p[i].readable = me.event[p[i].fd - FIRST_EVENT] > 0;
		else
			p[i].readable = p[i].fd == me.fd && (!me.open || me.n_replies);
		ready += p[i].readable;
	}
	if (!ready)
		pass(deadline);
	return ready;
}

static int fake_wait(struct sio_world *w, struct sio_world_lock *l, uint64_t deadline)
{
	(void)w;
	(void)l;
	pass(deadline);
	return -ETIMEDOUT;
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
	assert_int_equal(len, sizeof(me.page));
	*ret = &me.page;
	return 0;
}

static int fake_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	(void)w;
	(void)len;
	(void)prot;
	(void)offset;
	assert_true(at == &me.page && fd == STATUS);
	return 0;
}

static uint64_t fake_random(struct sio_world *w)
{
	(void)w;
	return 4;
}

static uint32_t fake_pid(struct sio_world *w)
{
	(void)w;
	return 1;
}

static int fake_thread_start(struct sio_world *w, void (*fn)(void *), void *arg,
			     struct sio_world_thread **ret)
{
	(void)w;
	(void)fn; /* it never has its turn: whoever waits does all himself */
	(void)arg;
	*ret = (struct sio_world_thread *)&me;
	return 0;
}

static void fake_thread_join(struct sio_world *w, struct sio_world_thread *t)
{
	(void)w;
	(void)t;
}

static bool fake_thread_is_self(struct sio_world *w, struct sio_world_thread *t)
{
	(void)w;
	(void)t;
	return false;
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

/* ---- tests ---- */

static int setup(void **state)
{
	void *library = me.library;

	(void)state;
	memset(&me, 0, sizeof(me));
	me.library = library;
	me.page.magic = SIO_STATUS_MAGIC;
	me.fd = FIRST_FD;
	me.now = 1000 * S;
	me.machine = true;
	return 0;
}

/* Whatever became of it, no connection stays open. */
static int teardown(void **state)
{
	(void)state;
	assert_int_equal(me.connections, 0);
	return 0;
}

static sci_error_t initialize(void)
{
	sci_error_t err;

	SCIInitialize(0, &err);
	return err;
}

static sci_error_t probe(sci_desc_t sd)
{
	sci_error_t err = SCI_ERR_OK;

	SCIProbeNode(sd, 0, 4, 0, &err);
	return err;
}

static uint64_t since(uint64_t before)
{
	return me.now - before;
}

/* It is being started again: begun at once when it is there, not before. */
static void beginning_waits_for_the_next_smartiod(void **state)
{
	(void)state;
	goes(1010 * S);
	assert_int_equal(initialize(), SCI_ERR_OK);
	assert_true(me.now >= 1010 * S && me.now <= 1010 * S + 200 * MS);
	assert_true(me.connects > 50); /* it looked all the time */
	SCITerminate();
}

/* It answers others first, and dies over that; the third one answers. */
static void beginning_outlives_a_smartiod_that_says_nothing(void **state)
{
	(void)state;
	me.cut = 2;
	assert_int_equal(initialize(), SCI_ERR_OK);
	assert_int_equal(me.hellos, 3);
	assert_true(since(1000 * S) < 100 * MS);
	SCITerminate();
}

/* The first one answers, and goes before it is known that its end is no end. */
static void beginning_outlives_a_smartiod_that_answers_and_goes(void **state)
{
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	me.cut = 1;
	me.cut_after = true;
	assert_int_equal(initialize(), SCI_ERR_OK);
	assert_int_equal(me.hellos, 2);
	SCIOpen(&sd, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(probe(sd), SCI_ERR_OK);
	SCITerminate();
}

/*
 * After a restart a handle that nobody knows is something lost; in the next session it is a
 * mistake.
 */
static void a_new_session_has_lost_nothing(void **state)
{
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	for (unsigned again = 0; again < 2; again++) {
		assert_int_equal(initialize(), SCI_ERR_OK);
		SCIOpen(&sd, 0, &err);
		me.error = EBADF;
		assert_int_equal(probe(sd), SCI_ERR_ILLEGAL_PARAMETER);
		me.error = 0;
		goes(me.now + 1 * S);
		assert_int_equal(probe(sd), SCI_ERR_OK);
		me.error = EBADF;
		assert_int_not_equal(probe(sd), SCI_ERR_ILLEGAL_PARAMETER);
		me.error = 0;
		SCITerminate();
	}
}

/*
 * What another program has is not in the journal, and may be there all the same: any holder of the
 * registers ends any hold.
 */
static void what_was_never_ours_is_not_taken_for_gone(void **state)
{
	sci_smartio_device_t device;
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	assert_int_equal(initialize(), SCI_ERR_OK);
	SCIOpen(&sd, 0, &err);
	SCIBorrowDevice(sd, &device, 0x400, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	goes(me.now + 1 * S);
	smartio_device_unhold(device, 4711, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(me.unholds, 1);
	SCITerminate();
}

/* It hangs up when it is told what the program had; the program lets go of that connection, too. */
static void a_talk_that_is_broken_off_is_left(void **state)
{
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	assert_int_equal(initialize(), SCI_ERR_OK);
	SCIOpen(&sd, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	goes(0);
	me.cut = 3;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.hellos, 5);
	assert_int_equal(me.connections, 1);
	SCITerminate();
}

/* The kernel had no memory for what was to be said: nobody waits for an answer to it. */
static void a_talk_that_cannot_be_sent_is_tried_again(void **state)
{
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	assert_int_equal(initialize(), SCI_ERR_OK);
	SCIOpen(&sd, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	goes(0);
	me.no_room = 2;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.no_room, 0);
	assert_int_equal(me.resumed, 1);
	assert_true(since(1000 * S) < 1 * S);
	assert_int_equal(me.connections, 1);
	SCITerminate();
}

/* What was not said was not refused: it is said to the next one. */
static void what_cannot_be_told_is_told_again(void **state)
{
	sci_smartio_device_t device;
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	assert_int_equal(initialize(), SCI_ERR_OK);
	SCIOpen(&sd, 0, &err);
	SCIBorrowDevice(sd, &device, 0x400, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	goes(0);
	me.room = 1; /* HELLO */
	me.no_room = 1;
	assert_int_equal(probe(sd), SCI_ERR_OK);
	assert_int_equal(me.no_room, 0);
	assert_int_equal(me.restores, 1);
	assert_true(since(1000 * S) < 1 * S);
	SCITerminate();
}

static void beginning_waits_30_s_at_most(void **state)
{
	(void)state;
	goes(SIO_FOREVER);
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(since(1000 * S), 30 * S);
	assert_non_null(strstr(smartio_last_error(), "no other has come in 30 s"));
	me.up_from = 0;
	me.cut = 1000000;
	me.now = 2000 * S;
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_true(since(2000 * S) >= 30 * S && since(2000 * S) < 31 * S);
	assert_true(me.hellos < 1000); /* and does not spin meanwhile */
}

/* The emulated cluster: the end of a smartiod is its host's, and none comes again. */
static void elsewhere_nobody_waits(void **state)
{
	(void)state;
	me.machine = false;
	goes(1010 * S);
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(me.connects, 1);
	me.up_from = 0;
	me.cut = 1;
	assert_int_equal(initialize(), SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(me.hellos, 1);
	assert_int_equal(since(1000 * S), 0);
}

static void calls_wait_30_s_then_none_does(void **state)
{
	sci_error_t err;
	sci_desc_t sd;

	(void)state;
	assert_int_equal(initialize(), SCI_ERR_OK);
	SCIOpen(&sd, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	goes(me.now + 29 * S);
	assert_int_equal(probe(sd), SCI_ERR_OK); /* in time */
	assert_int_equal(me.resumed, 1);
	assert_true(since(1000 * S) >= 29 * S && since(1000 * S) < 30 * S);
	me.now = 2000 * S;
	goes(SIO_FOREVER);
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS); /* too late */
	assert_true(since(2000 * S) >= 30 * S && since(2000 * S) <= 30 * S + 200 * MS);
	assert_non_null(strstr(smartio_last_error(), "no other has come in 30 s"));
	me.now = 3000 * S;
	me.connects = 0;
	assert_int_equal(probe(sd), SCI_ERR_NO_LINK_ACCESS); /* at once from then on */
	assert_int_equal(since(3000 * S), 0);
	assert_int_equal(me.connects, 0);
	SCITerminate();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(beginning_waits_for_the_next_smartiod),
		TEST(beginning_outlives_a_smartiod_that_says_nothing),
		TEST(beginning_outlives_a_smartiod_that_answers_and_goes),
		TEST(a_talk_that_cannot_be_sent_is_tried_again),
		TEST(what_cannot_be_told_is_told_again),
		TEST(beginning_waits_30_s_at_most),
		TEST(a_talk_that_is_broken_off_is_left),
		TEST(elsewhere_nobody_waits),
		TEST(calls_wait_30_s_then_none_does),
		TEST(a_new_session_has_lost_nothing),
		TEST(what_was_never_ours_is_not_taken_for_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
