/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking smartio.ko, with descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"

void shim_good(struct port_world *w, struct shim_ask *a, uint32_t op, uint64_t owner)
{
	memset(a, 0, sizeof(*a));
	port_good(w, op, &a->req);
	a->req.req.owner = owner;
}

uint64_t shim_send(struct port_world *w, struct shim_ask *a)
{
	int rc;

	a->req.req.cookie = ++w->cookie;
	rc = w->t->send(w->ctx, 0, &a->req, a->req.req.size, NULL, 0);
	if (rc < 0)
		port_failed(w, "op %u cannot be sent: %s", a->req.req.op, strerror(-rc));
	return a->req.req.cookie;
}

int shim_ask(struct port_world *w, struct shim_ask *a, int fd)
{
	int rc;

	a->req.req.cookie = ++w->cookie;
	rc = w->t->send(w->ctx, 0, &a->req, a->req.req.size, &fd, fd >= 0);
	if (rc < 0)
		return port_failed(w, "op %u cannot be sent: %s", a->req.req.op, strerror(-rc));
	for (;;) {
		long n = w->t->event(w->ctx, 0, &a->answer, sizeof(a->answer), a->fd, &a->n_fds);

		if (n < 0)
			return port_failed(w, "op %u is not answered (%ld)", a->req.req.op, n);
		if (a->answer.evt.cookie == a->req.req.cookie)
			break;
		if (w->n_events < sizeof(w->news) / sizeof(w->news[0]))
			w->news[w->n_events++] = a->answer.evt.op;
	}
	return port_check_answer(w, &a->req.req, &a->answer, a->n_fds, NULL);
}

bool shim_expect(struct port_world *w, struct shim_ask *a, int fd, int error, const char *what)
{
	int rc = shim_ask(w, a, fd);

	if (rc == 1)
		return false;
	if (rc != error)
		port_failed(w, "%s: answered %d (%s), %d is right", what, rc,
			    rc ? a->answer.error.text : "success", error);
	return rc == error;
}

bool shim_is_translated(struct port_world *w)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	shim_expect(w, &a, -1, 0, "DEVICE_LIST");
	return ((const struct sio_evt_device *)(const void *)&a.answer)->iommu_mode !=
	       SIO_IOMMU_OFF;
}

void shim_close(struct shim_ask *a)
{
	while (a->n_fds)
		close(a->fd[--a->n_fds]);
}

uint64_t shim_id(const struct shim_ask *a)
{
	return a->answer.words[sizeof(struct sio_evt) / 8];
}

uint64_t shim_make(struct port_world *w, uint32_t op, uint64_t owner, int *ret_fd)
{
	struct shim_ask a;

	shim_good(w, &a, op, owner);
	if (!shim_expect(w, &a, -1, 0, "something good"))
		return 0;
	if (ret_fd && a.n_fds)
		*ret_fd = a.fd[0];
	for (unsigned i = ret_fd ? 1 : 0; i < a.n_fds; i++)
		close(a.fd[i]);
	return shim_id(&a);
}

uint32_t shim_count(struct port_world *w, uint32_t kind)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_LIST, 0);
	((struct sio_req_list *)(void *)&a.req)->kind = kind;
	if (!shim_expect(w, &a, -1, 0, "LIST"))
		return UINT32_MAX;
	return ((const struct sio_evt_list *)(const void *)&a.answer)->count;
}

bool shim_event(struct port_world *w, uint32_t op, union port_packet *ret)
{
	int fds[SIO_PORT_MAX_FDS];
	unsigned n;

	for (unsigned i = 0; i < w->n_events; i++)
		if (w->news[i] == op) {
			w->news[i] = w->news[--w->n_events];
			return true;
		}
	while (w->t->event(w->ctx, 0, ret, sizeof(*ret), fds, &n) > 0)
		if (ret->evt.op == op)
			return true;
	port_failed(w, "event %#x does not come", op);
	return false;
}

void *shim_map(struct port_world *w, int fd, size_t size, int prot)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		port_failed(w, "%zu bytes cannot be mapped: %s", size, strerror(errno));
		return NULL;
	}
	return at;
}

void shim_sysfs(struct port_world *w, const char *file, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		port_failed(w, "%s: %s", path, strerror(errno));
	close(fd);
}

bool shim_check(struct port_world *w, bool ok, const char *what)
{
	if (!ok)
		port_failed(w, "not so: %s", what);
	return ok;
}
