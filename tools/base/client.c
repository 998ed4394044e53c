/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/client.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/state.h"
#include "wire/check.h"

/* Seconds to wait for a reply: from the environment, if that is a sensible number. */
static unsigned reply_seconds(void)
{
	const char *text = getenv("SMARTIO_TIMEOUT");
	unsigned long n;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return TOOL_REPLY_S;
	n = strtoul(text, &end, 10);
	return *end == '\0' && n > 0 && n <= 3600 ? (unsigned)n : TOOL_REPLY_S;
}

static int connect_socket(const char *path, int *ret_fd, struct sio_err *reterr)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	int fd, r;

	if (len > TOOL_SOCKET_PATH_MAX)
		return sio_fail(reterr, -ENAMETOOLONG,
				"%s: %zu bytes, but a socket's path holds %d", path, len,
				TOOL_SOCKET_PATH_MAX);
	memcpy(a.sun_path, path, len);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sio_fail(reterr, -errno, "socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		r = sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/*
 * Receives one packet. The kernel closes descriptors that come with it, since there is no room for
 * them.
 */
static ssize_t receive(struct tool_client *c, void *buf, size_t size, int64_t deadline,
		       struct sio_err *reterr)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	int64_t left;
	ssize_t len;
	int r;

	for (;;) {
		left = deadline - tool_now_ms();
		r = poll(&p, 1, left > 0 ? (int)left : 0);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return sio_fail(reterr, -errno, "poll: %s", strerror(errno));
		if (r == 0)
			return sio_fail(reterr, -ETIMEDOUT,
					"smartiod of node %u has not answered for "
					"%u second%s",
					c->node, reply_seconds(), reply_seconds() == 1 ? "" : "s");
		len = recv(c->fd, buf, size, MSG_DONTWAIT | MSG_TRUNC);
		if (len < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (len <= 0)
			return sio_fail(reterr, -ENOTCONN,
					"smartiod of node %u closed the "
					"connection",
					c->node);
		if ((size_t)len > size)
			return sio_fail(reterr, -EPROTO,
					"smartiod of node %u sent a message of %zd "
					"bytes; %zu are the limit",
					c->node, len, size);
		return len;
	}
}

/*
 * The error, in the words of the daemon that refused, after the name of the resource that ran out.
 */
static int refused(const struct sio_msg_error *e, struct sio_err *reterr)
{
	uint32_t reason = sio_from_le32(e->reason);
	const char *out = sio_reason_name(reason);

	return sio_fail_exhausted(reterr, -(int)sio_from_le32(e->h.error), reason, "%s%s%s%s",
				  *out ? "out of " : "", out, *out ? ": " : "", e->text);
}

static int check_reply(struct tool_client *c, uint32_t type, const void *buf, size_t len,
		       struct sio_err *reterr)
{
	struct sio_wire_header h;
	struct sio_err why;
	int rc = sio_client_check_reply(type, buf, len, &h, &why);

	if (rc < 0)
		return sio_fail(reterr, rc,
				"smartiod of node %u: %s; are tool and daemon of one version?",
				c->node, why.text);
	return h.error ? refused(buf, reterr) : 0;
}

int64_t tool_client_deadline(void)
{
	return tool_now_ms() + 1000LL * reply_seconds();
}

int tool_client_ask(struct tool_client *c, uint32_t type, void *req, size_t req_size,
		    struct sio_err *reterr)
{
	struct sio_msg *h = req;

	h->size = sio_to_le32((uint32_t)req_size);
	h->type = sio_to_le32(type);
	h->id = sio_to_le32(++c->next_id);
	h->error = sio_to_le32(0);
	if (send(c->fd, req, req_size, MSG_NOSIGNAL) < 0)
		return sio_fail(reterr, errno == EPIPE ? -ENOTCONN : -errno,
				"smartiod of node %u: %s", c->node, strerror(errno));
	return 0;
}

int tool_client_answer(struct tool_client *c, uint32_t type, void *rep, size_t rep_size,
		       int64_t deadline, struct sio_err *reterr)
{
	union {
		struct sio_msg h;
		unsigned char bytes[SIO_WIRE_MAX];
	} buf;
	ssize_t len;
	int r;

	do {
		len = receive(c, &buf, sizeof(buf), deadline, reterr);
		if (len < 0)
			return (int)len;
		if ((size_t)len < sizeof(buf.h))
			return sio_fail(reterr, -EPROTO, "smartiod of node %u sent %zd bytes",
					c->node, len);
	} while (sio_from_le32(buf.h.id) != c->next_id);
	r = check_reply(c, type, &buf, (size_t)len, reterr);
	if (r < 0)
		return r;
	assert((size_t)len == rep_size);
	memcpy(rep, &buf, rep_size);
	return 0;
}

int tool_client_call(struct tool_client *c, uint32_t type, void *req, size_t req_size, void *rep,
		     size_t rep_size, struct sio_err *reterr)
{
	int64_t deadline = tool_client_deadline();
	int r = tool_client_ask(c, type, req, req_size, reterr);

	return r < 0 ? r : tool_client_answer(c, type, rep, rep_size, deadline, reterr);
}

int tool_client_open(struct tool_client *c, const char *dir, uint32_t node, uint32_t kind,
		     struct sio_err *reterr)
{
	struct sio_msg_hello hello = {
		.version = sio_to_le32(SIO_CLIENT_VERSION),
		.pid = sio_to_le32((uint32_t)getpid()),
		.kind = sio_to_le32(kind),
	};
	struct sio_rep_hello rep;
	char path[PATH_MAX];
	int r;

	*c = (struct tool_client){.fd = -1, .node = node};
	r = node ? tool_path(path, sizeof(path), reterr, "%s/node.%u", dir, node)
		 : tool_path(path, sizeof(path), reterr, "%s/local", dir);
	if (r < 0)
		return r;
	r = connect_socket(path, &c->fd, reterr);
	if (r < 0)
		return r;
	r = tool_client_call(c, SIO_MSG_HELLO, &hello, sizeof(hello), &rep, sizeof(rep), reterr);
	if (r < 0) {
		tool_client_close(c);
		return r;
	}
	c->node = sio_from_le32(rep.node);
	c->n_adapters = sio_from_le32(rep.n_adapters);
	c->world = sio_from_le32(rep.world);
	memcpy(c->boot_id, rep.boot_id, sizeof(c->boot_id));
	c->boot_generation = sio_from_le64(rep.boot_generation);
	memcpy(c->host, rep.host, sizeof(c->host));
	memcpy(c->cluster, rep.cluster, sizeof(c->cluster));
	c->host[sizeof(c->host) - 1] = '\0';
	c->cluster[sizeof(c->cluster) - 1] = '\0';
	return 0;
}

void tool_client_close(struct tool_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

int tool_client_list(struct tool_client *c, uint32_t kind, struct sio_wire_row **ret, size_t *ret_n,
		     struct sio_err *reterr)
{
	struct sio_msg_list req = {.kind = sio_to_le32(kind), .node = sio_to_le32(c->of)};
	struct sio_rep_list *rep = tool_alloc(1, sizeof(*rep));
	struct sio_wire_row *rows = NULL;
	uint32_t count, more;
	uint64_t after = 0;
	size_t n = 0;
	int r;

	do {
		req.after = sio_to_le64(after);
		r = tool_client_call(c, SIO_MSG_LIST, &req, sizeof(req), rep, sizeof(*rep), reterr);
		if (r < 0)
			goto out;
		count = sio_from_le32(rep->count);
		more = sio_from_le32(rep->more);
		if (count > SIO_LIST_ROWS || (more && count == 0)) {
			r = sio_fail(reterr, -EPROTO,
				     "smartiod of node %u: a list of %u rows, more %u", c->node,
				     count, more);
			goto out;
		}
		if (c->of && n + count > TOOL_LIST_MOST) {
			r = sio_fail(
				reterr, -EPROTO,
				"its list %u has more than %u rows: it lies, or more is in use "
				"than can be shown",
				kind, TOOL_LIST_MOST);
			goto out;
		}
		rows = tool_grow(rows, n + count, sizeof(*rows));
		for (uint32_t i = 0; i < count; i++) {
			uint64_t key = sio_from_le64(rep->row[i].key);

			if ((n || i) && key <= after) {
				r = sio_fail(reterr, -EPROTO,
					     "smartiod of node %u: list %u is not in "
					     "order",
					     c->node, kind);
				goto out;
			}
			after = key;
			rows[n + i] = rep->row[i];
			rows[n + i].name[sizeof(rows[n + i].name) - 1] = '\0';
		}
		n += count;
	} while (more);
	*ret = rows;
	*ret_n = n;
	rows = NULL;
out:
	free(rows);
	free(rep);
	return r;
}
