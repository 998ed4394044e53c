/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices and adapters of machines: a socket vfio.DEVICE or vfio.HOST.ADAPTER for each, one peer
 * at a time, which may be a QEMU. What a peer does not read waits here, and nothing more of it is
 * served meanwhile: it waits for itself alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "emu/live/live.h"
#include "emu/machine/requests.h"
#include "emu/vfio/device.h"
#include "packet/packet.h"
#include "vfiosock/frame.h"

#define MESSAGES_PER_TURN 64 /* of one peer, then the others have their turn */

/* What the peer has not taken yet. */
struct rest {
	struct rest *prev, *next;
	size_t len, sent;
	int fd;
	unsigned char data[];
};

struct live_vfio {
	struct live_source listener, socket;
	struct live *live;
	const char *name;
	uint32_t node; /* of the machine */
	/* One of the two is behind it. */
	struct emu_vfio_device *device;
	struct emu_ntb_adapter *adapter;
	struct sio_vfio_session *session;
	char path[LIVE_PATH_MAX + 1];
	struct rest *queue;
	bool cut; /* to be closed as soon as the session has returned */
	struct sio_vfio_frame frame;
	struct live_vfiomem memory; /* of the peer */
};

/* ---- what a session and a device ask for ---- */

static void say(void *ctx, const char *text)
{
	live_log("%s: %s", ((struct live_vfio *)ctx)->name, text);
}

static void cut(struct live_vfio *v, const char *why)
{
	if (!v->cut)
		live_log("%s: its peer is cut off: %s", v->name, why);
	v->cut = true;
}

static int want(struct live_vfio *v, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = &v->socket};

	return epoll_ctl(v->live->epoll, EPOLL_CTL_MOD, v->socket.fd, &ev) < 0 ? -errno : 0;
}

static void free_rest(struct live_vfio *v, struct rest *r)
{
	DL_DELETE(v->queue, r);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

static void enqueue(struct live_vfio *v, const uint8_t *data, size_t len, int fd)
{
	struct rest *r = malloc(sizeof(*r) + len);

	if (!r) {
		cut(v, "no memory for what it does not read");
		return;
	}
	memcpy(r->data, data, len);
	r->len = len;
	r->sent = 0;
	r->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (!v->queue)
		want(v, EPOLLOUT);
	DL_APPEND(v->queue, r);
	if (fd >= 0 && r->fd < 0)
		cut(v, "no descriptor left");
}

static bool is_full(ssize_t rc)
{
	return rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS;
}

static void send_message(void *ctx, const void *message, size_t len, int fd)
{
	struct live_vfio *v = ctx;
	const uint8_t *data = message;
	ssize_t n = 0;

	if (v->cut || v->socket.fd < 0)
		return;
	if (!v->queue) {
		n = sio_packet_send(v->socket.fd, data, len, &fd, fd >= 0, false);
		if (n < 0 && !is_full(n)) {
			cut(v, strerror((int)-n));
			return;
		}
		if (n < 0)
			n = 0;
		else if (n > 0)
			fd = -1; /* it goes with the first byte */
	}
	if ((size_t)n < len)
		enqueue(v, data + n, len - (size_t)n, fd);
}

static void flush(struct live_vfio *v)
{
	while (v->queue && !v->cut) {
		struct rest *r = v->queue;
		ssize_t n = sio_packet_send(v->socket.fd, r->data + r->sent, r->len - r->sent,
					    &r->fd, r->fd >= 0, false);

		if (is_full(n))
			return;
		if (n < 0) {
			cut(v, strerror((int)-n));
			return;
		}
		if (n > 0 && r->fd >= 0) {
			close(r->fd);
			r->fd = -1;
		}
		r->sent += (size_t)n;
		if (r->sent == r->len)
			free_rest(v, r);
	}
	if (!v->cut)
		want(v, EPOLLIN);
}

static void signal_event(void *ctx, int fd)
{
	sio_eventfd_add(&((struct live_vfio *)ctx)->live->events, fd, 1);
}

static void close_fd(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static uint64_t now(void *ctx)
{
	return live_ops.now(((struct live_vfio *)ctx)->live);
}

static void *bulk_new(void *ctx, uint64_t size)
{
	return live_ops.bulk_new(((struct live_vfio *)ctx)->live, size);
}

static void bulk_free(void *ctx, void *data, uint64_t size)
{
	live_ops.bulk_free(((struct live_vfio *)ctx)->live, data, size);
}

static void bulk_zero(void *ctx, void *data, uint64_t size)
{
	live_ops.bulk_zero(((struct live_vfio *)ctx)->live, data, size);
}

static struct emu_store *store(void *ctx)
{
	return live_ops.store(((struct live_vfio *)ctx)->live);
}

static int beside(void *ctx, uint64_t address, void *buf, const void *data, size_t len)
{
	struct live_vfio *v = ctx;

	return v->live->ntb ? emu_ntb_reach(v->live->ntb, v->node, address, buf, data, len)
			    : -ENXIO;
}

static int map_memory(void *ctx, int fd, uint64_t offset, const struct sio_vfio_range *r,
		      void **ret)
{
	struct live_vfio *v = ctx;
	int rc = live_ntb_place(v->live, v->node, fd, r, &offset);

	/* What nobody can tell has no file here: accesses of it are messages. */
	if (rc < 0)
		return rc == -ERANGE ? 0 : rc;
	return live_vfiomem_map(&v->memory, fd, offset, r->size, r->can_write, ret);
}

static void unmap_memory(void *ctx, void *data, uint64_t size)
{
	live_vfiomem_unmap(&((struct live_vfio *)ctx)->memory, data, size);
}

static const struct sio_vfio_session_ops session_ops = {
	.memory = {.map = map_memory, .unmap = unmap_memory},
	.send = send_message,
	.is_event = live_is_event,
	.signal = signal_event,
	.close = close_fd,
	.log = say,
};

static const struct emu_vfio_device_ops device_ops = {
	.now = now,
	.log = say,
	.bulk_new = bulk_new,
	.bulk_free = bulk_free,
	.bulk_zero = bulk_zero,
	.store = store,
	.beside = beside,
};

/* ---- the peer ---- */

static void attach(struct live_vfio *v, struct sio_vfio_session *s)
{
	if (v->device)
		emu_vfio_device_attach(v->device, s);
	else
		emu_ntb_attach(v->adapter, s);
}

static struct sio_vfio_session *new_session(struct live_vfio *v)
{
	return v->device
		       ? sio_vfio_session_new(&emu_vfio_device_function, v->device, &session_ops, v)
		       : sio_vfio_session_new(&emu_ntb_function, v->adapter, &session_ops, v);
}

static void disconnect(struct live_vfio *v)
{
	if (v->socket.fd < 0)
		return;
	attach(v, NULL);
	sio_vfio_session_free(v->session);
	v->session = NULL;
	close(v->socket.fd);
	v->socket.fd = -1;
	v->cut = false;
	sio_vfio_frame_drop(&v->frame);
	while (v->queue)
		free_rest(v, v->queue);
	live_log("%s: its peer is gone", v->name);
}

void live_vfios_cut(struct live *l)
{
	for (unsigned i = 0; i < l->n_vfios; i++) {
		if (!l->vfio[i].cut)
			continue;
		live_engines_stop(l);
		disconnect(&l->vfio[i]);
		live_engines_go(l);
	}
}

/* It is dead, although its hang-up has not come to its turn yet. */
static bool hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void accept_one(struct live *l, struct live_vfio *v)
{
	int fd = accept4(v->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), rc;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			live_turn_away(l, v->listener.fd, v->name);
		return;
	}
	if (v->socket.fd >= 0 && hung_up(v->socket.fd))
		disconnect(v);
	if (v->socket.fd >= 0) {
		live_log("%s: a second peer was turned away", v->name);
		close(fd);
		return;
	}
	v->session = new_session(v);
	v->socket = (struct live_source){.kind = LIVE_VFIO, .host = v->listener.host, .fd = fd};
	rc = v->session ? live_watch(l, &v->socket, EPOLLIN) : -ENOMEM;
	if (rc < 0) {
		live_log("%s: its peer was turned away: %s", v->name, strerror(-rc));
		sio_vfio_session_free(v->session);
		v->session = NULL;
		v->socket.fd = -1;
		close(fd);
		return;
	}
	attach(v, v->session);
	live_log("%s: a peer is there", v->name);
}

/* Return: false: nothing more to read now. */
static bool receive(struct live_vfio *v)
{
	struct sio_err err = {0};
	int rc = sio_vfio_frame_receive(&v->frame, v->socket.fd, &err);

	if (rc == -EAGAIN)
		return false;
	if (rc == -EPIPE)
		v->cut = true;
	else if (rc < 0)
		cut(v, err.text);
	else if (rc > 0 && sio_vfio_session_take(v->session, v->frame.in, (size_t)rc, v->frame.fds,
						 sio_vfio_frame_taken(&v->frame)) < 0)
		cut(v, "it does not speak the protocol");
	return rc >= 0;
}

void live_vfio_event(struct live *l, const struct live_source *s, uint32_t events)
{
	struct live_vfio *v = &l->vfio[s->host];

	if (s->kind == LIVE_VFIO_LISTENER) {
		accept_one(l, v);
		return;
	}
	if (events & EPOLLOUT)
		flush(v);
	if (events & (EPOLLHUP | EPOLLERR) && v->queue)
		v->cut = true; /* nobody will read it */
	for (unsigned i = 0; i < 2 * MESSAGES_PER_TURN && !v->queue && !v->cut; i++)
		if (!receive(v))
			break;
}

/* ---- all of them ---- */

static const struct emu_dev_model *find_model(const char *type)
{
	const struct emu_dev_model *const *m = emu_models;

	while (*m && strcmp((*m)->type, type) != 0)
		m++;
	return *m;
}

static int listen_one(struct live *l, struct live_vfio *v, struct sio_err *reterr)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int rc;

	/* Emulated hosts reach machines through adapters alone. */
	if (live_vfiomem_open(&v->memory, SIO_VFIO_MAX_MAPS, v->adapter ? LIVE_FILES : 0) < 0)
		return sio_fail(reterr, -ENOMEM, "%s: out of memory: " SIO_MORE_MEMORY, v->name);
	rc = live_path(v->path, sizeof(v->path), reterr, "%s/vfio.%s", l->state_dir, v->name);

	if (rc < 0) {
		v->path[0] = '\0';
		return rc;
	}
	memcpy(sa.sun_path, v->path, strlen(v->path) + 1);
	v->listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (v->listener.fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", v->path, strerror(errno));
	unlink(v->path); /* we hold the directory's lock: what lies there is stale */
	if (bind(v->listener.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    chmod(v->path, 0600) < 0 || listen(v->listener.fd, 4) < 0)
		return sio_fail(reterr, -errno, "%s: %s", v->path, strerror(errno));
	rc = live_watch(l, &v->listener, EPOLLIN);
	return rc < 0 ? sio_fail(reterr, rc, "%s: %s", v->path, strerror(-rc)) : 0;
}

static struct live_vfio *add_one(struct live *l, const char *name)
{
	unsigned index = l->n_vfios++;
	struct live_vfio *v = &l->vfio[index];

	*v = (struct live_vfio){
		.live = l,
		.name = name,
		.listener = {.kind = LIVE_VFIO_LISTENER, .host = index, .fd = -1},
		.socket = {.kind = LIVE_VFIO, .host = index, .fd = -1},
	};
	return v;
}

static int open_device(struct live *l, uint32_t node, const struct sio_topo_device *topo,
		       struct sio_err *reterr)
{
	struct live_vfio *v = add_one(l, topo->name);
	const struct emu_dev_model *model = find_model(topo->type);
	int rc;

	v->node = node;
	if (!model)
		return sio_fail(reterr, -EINVAL, "device %s: no model of type '%s'", topo->name,
				topo->type);
	rc = emu_vfio_device_new(model, topo, &device_ops, v, &v->device, reterr);
	return rc < 0 ? sio_fail_prefix(reterr, "device %s", topo->name) : listen_one(l, v, reterr);
}

static int open_adapter(struct live *l, struct emu_ntb_adapter *a, struct sio_err *reterr)
{
	struct live_vfio *v = add_one(l, emu_ntb_name(a));

	v->adapter = a;
	v->node = emu_ntb_node(a);
	return listen_one(l, v, reterr);
}

int live_vfios_open(struct live *l, struct sio_err *reterr)
{
	unsigned n = l->ntb ? emu_ntb_adapters(l->ntb) : 0;
	int rc = 0;

	for (unsigned i = 0; i < l->topo->n_machines; i++)
		n += l->topo->machine[i].n_devices;
	if (n == 0)
		return 0;
	l->vfio = calloc(n, sizeof(*l->vfio));
	if (!l->vfio)
		return sio_no_memory(reterr, "the devices of machines");
	live_vfiomem_guard();
	for (unsigned i = 0; i < l->topo->n_machines; i++)
		for (unsigned k = 0; rc == 0 && k < l->topo->machine[i].n_devices; k++)
			rc = open_device(l, l->topo->machine[i].node,
					 &l->topo->machine[i].device[k], reterr);
	for (unsigned i = 0; rc == 0 && l->ntb && i < emu_ntb_adapters(l->ntb); i++)
		rc = open_adapter(l, emu_ntb_at(l->ntb, i), reterr);
	return rc;
}

void live_vfios_close(struct live *l)
{
	for (unsigned i = 0; i < l->n_vfios; i++)
		disconnect(&l->vfio[i]);
	for (unsigned i = 0; i < l->n_vfios; i++) {
		struct live_vfio *v = &l->vfio[i];

		emu_vfio_device_free(v->device);
		live_vfiomem_close(&v->memory);
		if (v->listener.fd >= 0)
			close(v->listener.fd);
		if (v->path[0])
			unlink(v->path);
	}
	free(l->vfio);
	l->vfio = NULL;
	l->n_vfios = 0;
}

unsigned live_vfio_counters(const struct live *l, const struct sio_topo_device *device,
			    bool *ret_attached, char (*name)[32], uint64_t *value, unsigned max)
{
	for (unsigned i = 0; i < l->n_vfios; i++) {
		const struct live_vfio *v = &l->vfio[i];

		if (!v->device || v->name != device->name)
			continue;
		*ret_attached = v->session != NULL;
		return emu_vfio_device_counters(v->device, name, value, max);
	}
	return 0;
}

unsigned live_vfios_step(struct live *l, unsigned budget)
{
	unsigned work = 0;

	for (unsigned i = 0; i < l->n_vfios; i++)
		if (l->vfio[i].device)
			work += emu_vfio_device_step(l->vfio[i].device, budget);
	return work;
}

bool live_vfios_busy(const struct live *l)
{
	for (unsigned i = 0; i < l->n_vfios; i++)
		if (l->vfio[i].device && !emu_vfio_device_idle(l->vfio[i].device))
			return true;
	return false;
}
