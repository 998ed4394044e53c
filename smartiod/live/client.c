/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of this host: one connection each, known to the daemon by a number. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "smartiod/live/live.h"
#include "smartiod/live/process.h"

/* More than the events of a client's every object at once; who leaves more unread is cut off. */
#define LIVE_CLIENT_QUEUE (4u << 20)

struct live_client {
	struct live_conn conn;
	struct live *live;
	uint64_t number;
	pid_t pid;
	UT_hash_handle hh;
};

static struct live_client *find(struct live *l, uint64_t number)
{
	struct live_client *c;

	HASH_FIND(hh, l->clients, &number, sizeof(number), c);
	return c;
}

static void client_free(struct live_client *c)
{
	HASH_DEL(c->live->clients, c);
	live_conn_done(&c->conn);
	free(c);
}

static void on_packet(struct live_conn *conn, const void *buf, size_t len, int *fds, unsigned n_fds)
{
	struct live_client *c = conn->ctx;

	smartiod_client_message(c->live->daemon, c->number, buf, len, fds, n_fds);
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = -1;
}

static void on_over(struct live_conn *conn, int error)
{
	struct live_client *c = conn->ctx;
	struct live *l = c->live;
	uint64_t number = c->number;
	bool quiet = conn->quiet;

	if (error == -ENOBUFS)
		live_log(l, LOG_WARNING, "client %" PRIu64 " (pid %ld) does not read: cut off",
			 number, (long)c->pid);
	else if (error && error != -ECONNRESET && error != -EPIPE)
		live_log(l, LOG_WARNING, "client %" PRIu64 " (pid %ld): %s: cut off", number,
			 (long)c->pid, strerror(-error));
	client_free(c);
	if (!quiet)
		smartiod_client_gone(l->daemon, number);
}

static const struct live_conn_handler handler = {.packet = on_packet, .over = on_over};

/*
 * The groups that the program is in besides its first, as it connected; as many as the kernel says.
 * Return: 0; -errno.
 */
static int peer_groups(int fd, uint32_t **ret, unsigned *ret_n)
{
	socklen_t len = 0;
	gid_t *groups = NULL;
	int r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len);

	_Static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are passed on as they are");
	if (r < 0 && errno != ERANGE)
		return -errno;
	if (len) {
		groups = malloc(len);
		if (!groups)
			return -ENOMEM;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0) {
			r = -errno;
			free(groups);
			return r;
		}
	}
	*ret = groups;
	*ret_n = len / sizeof(*groups);
	return 0;
}

void live_client_accepted(struct live *l, int fd)
{
	struct ucred cred = {.pid = 0};
	socklen_t len = sizeof(cred);
	struct live_client *c = calloc(1, sizeof(*c));
	struct sio_policy_person_of who;
	uint32_t *groups = NULL;
	unsigned n_groups = 0;
	int r;

	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		r = c ? -errno : -ENOMEM;
		close(fd);
		goto fail;
	}
	r = peer_groups(fd, &groups, &n_groups);
	if (r < 0) {
		close(fd);
		goto fail;
	}
	who = (struct sio_policy_person_of){
		.uid = cred.uid, .gid = cred.gid, .groups = groups, .n_groups = n_groups};
	c->live = l;
	c->pid = cred.pid;
	r = live_conn_init(&c->conn, l->event, fd, LIVE_CLIENT_QUEUE, &handler, c);
	if (r < 0)
		goto fail;
	c->number = ++l->last_client;
	HASH_ADD(hh, l->clients, number, sizeof(c->number), c);
	if (!c->hh.tbl) {
		live_conn_done(&c->conn);
		r = -ENOMEM;
		goto fail;
	}
	smartiod_client_new(l->daemon, c->number, (uint32_t)cred.pid,
			    live_process_start(fd, cred.pid), &who);
	free(groups);
	return;
fail:
	free(groups);
	free(c);
	live_log(l, LOG_ERR, "a client is turned away: %s", strerror(-r));
}

void live_clients_free(struct live *l)
{
	struct live_client *c, *next;

	HASH_ITER (hh, l->clients, c, next)
		client_free(c);
}

void live_client_send(void *ctx, uint64_t client, const void *msg, size_t len, const int *fds,
		      unsigned n_fds)
{
	struct live_client *c = find(ctx, client);

	if (c)
		live_conn_send(&c->conn, msg, len, fds, n_fds);
}

void live_client_take(void *ctx, uint64_t client)
{
	struct live_client *c = find(ctx, client);

	if (c)
		live_conn_take(&c->conn);
}

void live_client_close(void *ctx, uint64_t client)
{
	struct live_client *c = find(ctx, client);

	if (c)
		live_conn_stop(&c->conn);
}
