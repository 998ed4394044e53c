/* SPDX-License-Identifier: BSD-2-Clause */
#undef NDEBUG /* what the server asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/tempdir.h"
#include "server.h"
#include "sisci_api.h"
#include "smartio/uapi.h"
#include "wire/check.h"
#include "wire/client.h"

#define THINGS 64

/* A segment or an interrupt. */
struct thing {
	uint32_t handle, id; /* handle 0: there is none */
	uint64_t key;
	int fd;
	bool interrupt, claimed;
	uint32_t available, told;
};

static struct {
	pthread_mutex_t lock;
	pthread_t thread;
	char dir[80], path[96]; /* the socket is alone in the directory */
	int listener, conn, wake, owner, status;
	unsigned one_of, adapters;
	uint64_t random, last_key;
	uint32_t last_handle;
	bool stop, forget;
	bool lose_at_removal, lose_next;
	struct thing thing[THINGS];
	struct server_counts count;
} me = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t next_random(void)
{
	me.random ^= me.random << 13;
	me.random ^= me.random >> 7;
	me.random ^= me.random << 17;
	return me.random;
}

static struct thing *find(uint32_t handle)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (handle && me.thing[i].handle == handle)
			return &me.thing[i];
	return NULL;
}

static struct thing *find_key(uint64_t key)
{
	for (unsigned i = 0; i < THINGS; i++)
		if (me.thing[i].handle && me.thing[i].key == key)
			return &me.thing[i];
	return NULL;
}

static void thing_end(struct thing *t)
{
	close(t->fd);
	t->handle = 0;
}

static struct thing *thing_new(bool interrupt)
{
	struct thing *t = me.thing;

	while (t->handle)
		t++;
	assert(t < me.thing + THINGS);
	*t = (struct thing){.handle = ++me.last_handle,
			    .id = me.last_handle,
			    .key = ++me.last_key,
			    .interrupt = interrupt,
			    .claimed = true};
	t->fd = interrupt ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
			  : memfd_create("segment", MFD_CLOEXEC);
	assert(t->fd >= 0 && (interrupt || ftruncate(t->fd, 4096) == 0));
	return t;
}

/* ---- words ---- */

static void hang_up(void)
{
	if (me.conn < 0)
		return;
	close(me.conn);
	me.conn = -1;
	me.count.hung_up++;
	for (unsigned i = 0; i < THINGS; i++)
		me.thing[i].claimed = false;
	me.last_handle += 1000; /* the next one has not counted with us */
}

static void send_fds(void *msg, size_t len, const int *fds, unsigned n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = {.space = {0}};
	struct iovec iov = {.iov_base = msg, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	((struct sio_msg *)msg)->size = sio_to_le32((uint32_t)len);
	if (n) {
		m.msg_control = control.space;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	if (sendmsg(me.conn, &m, MSG_NOSIGNAL) < 0)
		hang_up();
}

static void reply(const struct sio_msg *req, void *rep, size_t len, const int *fds, unsigned n)
{
	struct sio_msg *h = rep;

	h->type = req->type;
	h->id = req->id;
	send_fds(rep, len, fds, n);
}

static void reply_error(const struct sio_msg *req, int error)
{
	struct sio_msg_error rep = {.h.error = sio_to_le32((uint32_t)error), .text = "no"};

	reply(req, &rep, sizeof(rep), NULL, 0);
}

static void reply_ok(const struct sio_msg *req)
{
	struct sio_msg rep = {0};

	reply(req, &rep, sizeof(rep), NULL, 0);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_ino == sb.st_ino &&
	       sa.st_dev == sb.st_dev;
}

static void hello(const struct sio_msg *req, int fd)
{
	struct sio_rep_hello rep = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				    .node = sio_to_le32(4),
				    .n_adapters = sio_to_le32(me.adapters),
				    .world = sio_to_le32(SIO_WORLD_SHIM)};
	int fds[2] = {me.owner, me.status};

	me.count.hellos++;
	if (fd < 0) {
		reply(req, &rep, sizeof(rep), fds, 2);
		return;
	}
	me.count.wrong += !same_file(fd, me.owner);
	me.count.resumed++;
	if (me.forget)
		reply_error(req, ENOENT);
	else
		reply(req, &rep, sizeof(rep), NULL, 0);
}

static void tell_lost(bool interrupt, uint32_t handle)
{
	struct sio_evm_dint_ring dint = {.h.type = sio_to_le32(SIO_EVM_DINT_LOST),
					 .handle = sio_to_le32(handle),
					 .node = sio_to_le32(4)};
	struct sio_evm_segment evm = {.h.type = sio_to_le32(SIO_EVM_SEGMENT_LOCAL),
				      .handle = sio_to_le32(handle),
				      .reason = sio_to_le32(SCI_CB_LOST),
				      .node = sio_to_le32(4),
				      .loss = sio_to_le32(1)};

	if (interrupt)
		send_fds(&dint, sizeof(dint), NULL, 0);
	else
		send_fds(&evm, sizeof(evm), NULL, 0);
}

static void restore(const struct sio_msg *req)
{
	const struct sio_msg_restore *m = (const void *)req;
	struct thing *t = find_key(sio_from_le64(m->key));
	bool interrupt = sio_from_le32(m->type) == SIO_MSG_DINT_CREATE;

	me.count.restored++;
	if (!t) {
		tell_lost(interrupt, sio_from_le32(m->handle));
		reply_error(req, ENOENT);
		return;
	}
	me.count.wrong += t->claimed || t->interrupt != interrupt ||
			  t->handle != sio_from_le32(m->handle) ||
			  t->id != sio_from_le32(m->number) || t->told != sio_from_le32(m->told);
	t->claimed = true;
	t->available = sio_from_le32(m->available);
	reply_ok(req);
}

static void restore_step(const struct sio_msg *req)
{
	const struct sio_msg_restore_step *m = (const void *)req;

	for (unsigned i = 0; i < THINGS && sio_from_le32(m->step) == SIO_RESTORE_STEPS; i++)
		if (me.thing[i].handle && !me.thing[i].claimed)
			thing_end(&me.thing[i]);
		else if (me.thing[i].handle && me.lose_next)
			tell_lost(me.thing[i].interrupt, me.thing[i].handle);
	reply_ok(req);
}

/* @n times in one word; 0: once. */
static void tell_connected(struct thing *t, uint32_t n)
{
	struct sio_evm_segment evm = {.h.type = sio_to_le32(SIO_EVM_SEGMENT_LOCAL),
				      .handle = sio_to_le32(t->handle),
				      .reason = sio_to_le32(1), /* SCI_CB_CONNECT */
				      .node = sio_to_le32(4),
				      .count = sio_to_le32(n)};

	t->told += n ? n : 1;
	me.count.events++;
	send_fds(&evm, sizeof(evm), NULL, 0);
}

static void create(const struct sio_msg *req, bool answer)
{
	bool interrupt = sio_from_le32(req->type) == SIO_MSG_DINT_CREATE;
	struct thing *t = thing_new(interrupt);
	struct sio_rep_seg_create seg = {.handle = sio_to_le32(t->handle),
					 .segment_id = sio_to_le32(t->id),
					 .bytes = sio_to_le64(4096),
					 .key = sio_to_le64(t->key)};
	struct sio_rep_dint_create dint = {.handle = sio_to_le32(t->handle),
					   .number = sio_to_le32(t->id),
					   .key = sio_to_le64(t->key)};

	if (!answer)
		return;
	if (interrupt)
		reply(req, &dint, sizeof(dint), &t->fd, 1);
	else
		reply(req, &seg, sizeof(seg), &t->fd, 1);
}

/* Do it; @answer: and say so. */
static void serve(const struct sio_msg *req, int fd, bool answer)
{
	const struct sio_msg_handle *h = (const void *)req;
	uint32_t type = sio_from_le32(req->type);
	struct thing *t;

	switch (type) {
	case SIO_MSG_HELLO:
		hello(req, fd);
		return;
	case SIO_MSG_RESTORE:
		restore(req);
		return;
	case SIO_MSG_RESTORE_STEP:
		restore_step(req);
		return;
	case SIO_MSG_SEG_CREATE:
	case SIO_MSG_DINT_CREATE:
		create(req, answer);
		return;
	}
	if (me.lose_at_removal && type == SIO_MSG_SEG_REMOVE) {
		me.lose_at_removal = false;
		me.lose_next = true;
		hang_up();
		return;
	}
	t = find(sio_from_le32(h->handle)); /* the handle is the first field of all of these */
	me.count.wrong += !t;
	if (t && (type == SIO_MSG_SEG_REMOVE || type == SIO_MSG_DINT_REMOVE))
		thing_end(t);
	else if (t && type == SIO_MSG_SEG_AVAILABLE)
		t->available = 1;
	if (answer && t)
		reply_ok(req);
	else if (answer)
		reply_error(req, EBADF);
}

/* ---- the thread ---- */

static void request(void)
{
	_Alignas(8) unsigned char buf[SIO_WIRE_MAX];
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.space,
			   .msg_controllen = sizeof(control.space)};
	const struct sio_msg *req = (const void *)buf;
	unsigned what = me.one_of ? (unsigned)(next_random() % me.one_of) : 3;
	struct cmsghdr *c;
	int fd = -1;
	ssize_t n;

	if (what == 0) { /* with the request unread, and perhaps with news behind that end */
		struct thing *t = &me.thing[next_random() % 4]; /* those that stay, and one more */

		if (t->handle && t->claimed && !t->interrupt)
			tell_connected(t, (uint32_t)(next_random() % 4));
		hang_up();
		return;
	}
	n = recvmsg(me.conn, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		hang_up();
		return;
	}
	c = CMSG_FIRSTHDR(&m);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	me.count.wrong += n < (ssize_t)sizeof(*req) ||
			  sio_client_request_size(sio_from_le32(req->type)) != (size_t)n;
	serve(req, fd, what != 1);
	if (fd >= 0)
		close(fd);
	if (what <= 2)
		hang_up();
}

static void *server(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&me.lock);
	while (!me.stop) {
		struct pollfd p[2] = {
			{.fd = me.wake, .events = POLLIN},
			{.fd = me.conn >= 0 ? me.conn : me.listener, .events = POLLIN}};
		uint64_t count;

		pthread_mutex_unlock(&me.lock);
		poll(p, 2, -1);
		pthread_mutex_lock(&me.lock);
		if (p[0].revents)
			assert(read(me.wake, &count, sizeof(count)) == sizeof(count));
		else if (me.conn >= 0)
			request();
		else if (me.listener >= 0)
			me.conn = accept4(me.listener, NULL, NULL, SOCK_CLOEXEC);
	}
	pthread_mutex_unlock(&me.lock);
	return NULL;
}

/* ---- life ---- */

static void listen_now(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	strcpy(a.sun_path, me.path);
	unlink(me.path);
	me.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert(me.listener >= 0);
	assert(bind(me.listener, (struct sockaddr *)&a, sizeof(a)) == 0);
	assert(listen(me.listener, 8) == 0);
}

void server_start(unsigned one_of, uint64_t seed)
{
	static const struct sio_status_page page = {.magic = SIO_STATUS_MAGIC};

	me.one_of = one_of;
	me.adapters = 1;
	me.random = seed;
	me.stop = me.forget = me.lose_at_removal = me.lose_next = false;
	me.conn = -1;
	memset(&me.count, 0, sizeof(me.count));
	me.owner = memfd_create("owner", MFD_CLOEXEC);
	me.status = memfd_create("status", MFD_CLOEXEC);
	me.wake = eventfd(0, EFD_CLOEXEC);
	assert(me.owner >= 0 && me.status >= 0 && me.wake >= 0);
	assert(write(me.status, &page, sizeof(page)) == sizeof(page));
	assert(ftruncate(me.status, 4096) == 0);
	assert(test_tempdir("resume", me.dir, sizeof(me.dir)) == 0);
	snprintf(me.path, sizeof(me.path), "%s/socket", me.dir);
	listen_now();
	setenv("SMARTIO_SOCKET", me.path, 1);
	assert(pthread_create(&me.thread, NULL, server, NULL) == 0);
}

static void wake(void)
{
	assert(eventfd_write(me.wake, 1) == 0);
}

void server_away(bool away)
{
	pthread_mutex_lock(&me.lock);
	if (away) {
		hang_up();
		close(me.listener);
		me.listener = -1;
	} else {
		listen_now();
	}
	wake();
	pthread_mutex_unlock(&me.lock);
}

void server_adapters(unsigned n)
{
	pthread_mutex_lock(&me.lock);
	me.adapters = n;
	pthread_mutex_unlock(&me.lock);
}

void server_forget(void)
{
	pthread_mutex_lock(&me.lock);
	me.forget = true;
	hang_up();
	wake();
	pthread_mutex_unlock(&me.lock);
}

void server_lose_all(void)
{
	pthread_mutex_lock(&me.lock);
	for (unsigned i = 0; i < THINGS; i++)
		if (me.thing[i].handle)
			thing_end(&me.thing[i]);
	hang_up();
	wake();
	pthread_mutex_unlock(&me.lock);
}

void server_lose_at_removal(void)
{
	pthread_mutex_lock(&me.lock);
	me.lose_at_removal = true;
	pthread_mutex_unlock(&me.lock);
}

void server_babble(void)
{
	pthread_mutex_lock(&me.lock);
	assert(send(me.conn, "hello", 5, MSG_NOSIGNAL) == 5);
	pthread_mutex_unlock(&me.lock);
}

void server_connected(unsigned n)
{
	pthread_mutex_lock(&me.lock);
	for (unsigned i = 0; i < THINGS; i++)
		if (me.thing[i].handle && !me.thing[i].interrupt)
			tell_connected(&me.thing[i], n);
	pthread_mutex_unlock(&me.lock);
}

void server_stop(void)
{
	pthread_mutex_lock(&me.lock);
	me.stop = true;
	wake();
	pthread_mutex_unlock(&me.lock);
	pthread_join(me.thread, NULL);
	for (unsigned i = 0; i < THINGS; i++)
		if (me.thing[i].handle)
			thing_end(&me.thing[i]);
	if (me.conn >= 0)
		close(me.conn);
	if (me.listener >= 0)
		close(me.listener);
	close(me.wake);
	close(me.owner);
	close(me.status);
	unlink(me.path);
	assert(rmdir(me.dir) == 0);
}

struct server_counts server_counts(void)
{
	struct server_counts c;

	pthread_mutex_lock(&me.lock);
	c = me.count;
	for (unsigned i = 0; i < THINGS; i++) {
		c.segments += me.thing[i].handle && !me.thing[i].interrupt;
		c.interrupts += me.thing[i].handle && me.thing[i].interrupt;
	}
	pthread_mutex_unlock(&me.lock);
	return c;
}

void server_trigger(void)
{
	pthread_mutex_lock(&me.lock);
	for (unsigned i = 0; i < THINGS; i++)
		if (me.thing[i].handle && me.thing[i].interrupt)
			assert(eventfd_write(me.thing[i].fd, 1) == 0);
	pthread_mutex_unlock(&me.lock);
}
