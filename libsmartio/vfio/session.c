/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfio/inside.h"

/* The commands that a peer may send in each state, and what follows each. */
#define AT_HELLO (1u << SIO_VFIO_VERSION)
#define AT_READY                                                                                   \
	(1u << SIO_VFIO_DMA_MAP | 1u << SIO_VFIO_DMA_UNMAP | 1u << SIO_VFIO_GET_INFO |             \
	 1u << SIO_VFIO_GET_REGION_INFO | 1u << SIO_VFIO_GET_IRQ_INFO | 1u << SIO_VFIO_SET_IRQS |  \
	 1u << SIO_VFIO_REGION_READ | 1u << SIO_VFIO_REGION_WRITE | 1u << SIO_VFIO_DMA_READ |      \
	 1u << SIO_VFIO_DMA_WRITE | 1u << SIO_VFIO_RESET)

static const uint32_t allowed[SIO_VFIO_STATES] = {
	[SIO_VFIO_HELLO] = AT_HELLO,
	[SIO_VFIO_READY] = AT_READY,
};

struct sio_vfio_session *sio_vfio_session_new(const struct sio_vfio_function_ops *function_ops,
					      void *function,
					      const struct sio_vfio_session_ops *ops, void *ctx)
{
	struct sio_vfio_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->state = SIO_VFIO_HELLO;
	s->function_ops = function_ops;
	s->function = function;
	s->ops = ops;
	s->ctx = ctx;
	s->n_vectors = function_ops->vectors(function);
	if (s->n_vectors > SIO_VFIO_VECTORS)
		s->n_vectors = SIO_VFIO_VECTORS;
	for (unsigned i = 0; i < SIO_VFIO_VECTORS; i++)
		s->vector[i].fd = -1;
	s->request.fd = -1;
	sio_vfio_memory_init(&s->memory, &ops->memory, ctx);
	return s;
}

void sio_vfio_session_free(struct sio_vfio_session *s)
{
	if (!s)
		return;
	sio_vfio_dma_end(s);
	sio_vfio_irqs_end(s);
	sio_vfio_memory_clear(&s->memory);
	free(s);
}

struct sio_vfio_memory *sio_vfio_session_memory(struct sio_vfio_session *s)
{
	return &s->memory;
}

/* ---- replies ---- */

static void reply(struct sio_vfio_session *s, const struct sio_vfio_header *head, size_t len,
		  int fd)
{
	const struct sio_vfio_header out = {.id = head->id,
					    .command = head->command,
					    .size = (uint32_t)(sizeof(out) + len),
					    .flags = SIO_VFIO_REPLY};

	if (head->flags & SIO_VFIO_NO_REPLY)
		return;
	memcpy(s->out, &out, sizeof(out));
	s->ops->send(s->ctx, s->out, out.size, fd);
}

static void refuse(struct sio_vfio_session *s, const struct sio_vfio_header *head, int rc)
{
	const struct sio_vfio_header out = {.id = head->id,
					    .command = head->command,
					    .size = sizeof(out),
					    .flags = SIO_VFIO_REPLY | SIO_VFIO_ERROR,
					    .error = (uint32_t)-rc};

	if (!(head->flags & (SIO_VFIO_NO_REPLY | SIO_VFIO_REPLY)))
		s->ops->send(s->ctx, &out, sizeof(out), -1);
}

/* Where a reply's structure begins. */
static void *body(struct sio_vfio_session *s)
{
	return s->out + sizeof(struct sio_vfio_header);
}

/* ---- commands: each replies, or returns why not ---- */

static int version(struct sio_vfio_session *s, const struct sio_vfio_message *m,
		   struct sio_err *err)
{
	const struct sio_vfio_version ours = {0};
	int rc;

	if (m->version.major != ours.major)
		return sio_fail(err, -EINVAL, "VERSION: version %u.%u, 0 and any minor is right",
				m->version.major, m->version.minor);
	rc = sio_vfio_limits_parse(m->data, m->data_len, &s->limits, err);
	if (rc < 0)
		return rc;
	memcpy(body(s), &ours, sizeof(ours));
	s->state = SIO_VFIO_READY;
	reply(s, &m->head,
	      sizeof(ours) +
		      sio_vfio_limits_text((char *)body(s) + sizeof(ours), SIO_VFIO_MAX_DATA),
	      -1);
	return 0;
}

static void memory_changed(struct sio_vfio_session *s)
{
	if (s->function_ops->memory_changed)
		s->function_ops->memory_changed(s->function);
}

static int dma_map(struct sio_vfio_session *s, const struct sio_vfio_message *m, const int *fds,
		   unsigned n_fds, struct sio_err *err)
{
	int rc;

	if (n_fds > 1)
		return sio_fail(err, -EINVAL, "DMA_MAP: %u descriptors; one or none is right",
				n_fds);
	rc = sio_vfio_memory_add(&s->memory, m->map.address, m->map.size, n_fds ? fds[0] : -1,
				 m->map.offset, m->map.flags & SIO_VFIO_MAP_READ,
				 m->map.flags & SIO_VFIO_MAP_WRITE, err);
	if (rc < 0)
		return rc;
	memory_changed(s);
	reply(s, &m->head, 0, -1);
	return 0;
}

static int dma_unmap(struct sio_vfio_session *s, const struct sio_vfio_message *m,
		     struct sio_err *err)
{
	int rc = 0;

	if (m->unmap.flags & SIO_VFIO_UNMAP_ALL)
		sio_vfio_memory_clear(&s->memory);
	else
		rc = sio_vfio_memory_remove(&s->memory, m->unmap.address, m->unmap.size, err);
	if (rc < 0)
		return rc;
	memory_changed(s);
	memcpy(body(s), &m->unmap, sizeof(m->unmap));
	reply(s, &m->head, sizeof(m->unmap), -1);
	return 0;
}

static int get_info(struct sio_vfio_session *s, const struct sio_vfio_message *m)
{
	const struct sio_vfio_info info = {.argsz = sizeof(info),
					   .flags = SIO_VFIO_DEVICE_RESET | SIO_VFIO_DEVICE_PCI,
					   .regions = SIO_VFIO_REGIONS,
					   .irqs = SIO_VFIO_IRQS};

	memcpy(body(s), &info, sizeof(info));
	reply(s, &m->head, sizeof(info), -1);
	return 0;
}

/*
 * The capability is only told, and the file sent, if the peer has room for it; else how much it
 * needs, and that there is one: a QEMU that does not hear this at once never asks again.
 */
static int get_region_info(struct sio_vfio_session *s, const struct sio_vfio_message *m,
			   struct sio_err *err)
{
	struct sio_vfio_region_info info = {.argsz = sizeof(info), .index = m->region.index};
	struct sio_vfio_region r = {.fd = -1};
	struct sio_vfio_sparse cap = {.id = SIO_VFIO_REGION_CAP_SPARSE, .version = 1};
	size_t len = sizeof(info);
	bool fits = true;

	if (m->region.index >= SIO_VFIO_REGIONS)
		return sio_fail(err, -EINVAL,
				"DEVICE_GET_REGION_INFO: region %" PRIu32 ", 0 to %d is right",
				m->region.index, SIO_VFIO_REGIONS - 1);
	s->function_ops->region(s->function, info.index, &r);
	info.size = r.size;
	info.flags = r.flags;
	if (r.flags & SIO_VFIO_REGION_MMAP) {
		info.offset = r.fd_offset;
		if (r.n_areas == 0)
			r.area[r.n_areas++] = (struct sio_vfio_area){0, r.size};
		cap.n_areas = r.n_areas;
		info.argsz += (uint32_t)(sizeof(cap) + r.n_areas * sizeof(r.area[0]));
		info.flags |= SIO_VFIO_REGION_CAPS;
		info.cap_offset = sizeof(info);
		fits = m->region.argsz >= info.argsz;
	}
	memcpy(body(s), &info, sizeof(info));
	if (info.cap_offset && fits) {
		memcpy((uint8_t *)body(s) + len, &cap, sizeof(cap));
		len += sizeof(cap);
		memcpy((uint8_t *)body(s) + len, r.area, r.n_areas * sizeof(r.area[0]));
		len += r.n_areas * sizeof(r.area[0]);
	}
	reply(s, &m->head, len, info.cap_offset && fits ? r.fd : -1);
	return 0;
}

static int get_irq_info(struct sio_vfio_session *s, const struct sio_vfio_message *m,
			struct sio_err *err)
{
	struct sio_vfio_irq_info info = {
		.argsz = sizeof(info), .flags = SIO_VFIO_IRQ_EVENTFD, .index = m->irq.index};

	if (info.index >= SIO_VFIO_IRQS)
		return sio_fail(err, -EINVAL,
				"DEVICE_GET_IRQ_INFO: kind %" PRIu32 ", 0 to %d is right",
				info.index, SIO_VFIO_IRQS - 1);
	if (info.index == SIO_VFIO_MSIX)
		info.count = s->n_vectors;
	else if (info.index == SIO_VFIO_REQ)
		info.count = s->function_ops->requests;
	memcpy(body(s), &info, sizeof(info));
	reply(s, &m->head, sizeof(info), -1);
	return 0;
}

static int check_access(struct sio_vfio_session *s, const struct sio_vfio_access *a,
			uint32_t wanted, struct sio_err *err)
{
	struct sio_vfio_region r = {.fd = -1};

	if (a->region < SIO_VFIO_REGIONS)
		s->function_ops->region(s->function, a->region, &r);
	if (!(r.flags & wanted) || a->offset >= r.size || a->count > r.size - a->offset)
		return sio_fail(err, -EINVAL,
				"REGION_%s: %" PRIu32 " bytes at %#" PRIx64 " of region %" PRIu32
				", which has %#" PRIx64,
				wanted == SIO_VFIO_REGION_READABLE ? "READ" : "WRITE", a->count,
				a->offset, a->region, r.size);
	return 0;
}

static int region_read(struct sio_vfio_session *s, const struct sio_vfio_message *m,
		       struct sio_err *err)
{
	const struct sio_vfio_access *a = &m->access;
	int rc = check_access(s, a, SIO_VFIO_REGION_READABLE, err);

	if (rc < 0)
		return rc;
	s->serving = m;
	rc = s->function_ops->read(s->function, a->region, a->offset,
				   (uint8_t *)body(s) + sizeof(*a), a->count);
	s->serving = NULL;
	if (rc < 0)
		return sio_fail(err, rc, "REGION_READ: the function refuses it");
	if (rc == SIO_VFIO_LATER)
		return 0;
	memcpy(body(s), a, sizeof(*a));
	reply(s, &m->head, sizeof(*a) + a->count, -1);
	return 0;
}

static int region_write(struct sio_vfio_session *s, const struct sio_vfio_message *m,
			struct sio_err *err)
{
	const struct sio_vfio_access *a = &m->access;
	int rc = check_access(s, a, SIO_VFIO_REGION_WRITABLE, err);

	if (rc < 0)
		return rc;
	s->serving = m;
	rc = s->function_ops->write(s->function, a->region, a->offset, m->data, a->count);
	s->serving = NULL;
	if (rc < 0)
		return sio_fail(err, rc, "REGION_WRITE: the function refuses it");
	if (rc == SIO_VFIO_LATER)
		return 0;
	memcpy(body(s), a, sizeof(*a));
	reply(s, &m->head, sizeof(*a), -1);
	return 0;
}

int sio_vfio_session_later(struct sio_vfio_session *s)
{
	for (unsigned i = 0; i < SIO_VFIO_LATE; i++) {
		if (s->late[i].used)
			continue;
		s->late[i] = (struct sio_vfio_late){
			.used = true, .head = s->serving->head, .access = s->serving->access};
		return (int)i;
	}
	return -EAGAIN;
}

void sio_vfio_session_forgo(struct sio_vfio_session *s, int ticket)
{
	s->late[ticket].used = false;
}

void sio_vfio_session_answer(struct sio_vfio_session *s, int ticket, int rc, const void *data)
{
	struct sio_vfio_late late = s->late[ticket];
	size_t len = sizeof(late.access);

	s->late[ticket].used = false;
	if (rc < 0) {
		refuse(s, &late.head, rc);
		return;
	}
	memcpy(body(s), &late.access, sizeof(late.access));
	if (late.head.command == SIO_VFIO_REGION_READ) {
		memcpy((uint8_t *)body(s) + len, data, late.access.count);
		len += late.access.count;
	}
	reply(s, &late.head, len, -1);
}

static int set_irqs(struct sio_vfio_session *s, const struct sio_vfio_message *m, int *fds,
		    unsigned n_fds, struct sio_err *err)
{
	int rc = sio_vfio_irqs_set(s, m, fds, n_fds, err);

	if (rc == 0)
		reply(s, &m->head, 0, -1);
	return rc;
}

static int serve(struct sio_vfio_session *s, const struct sio_vfio_message *m, int *fds,
		 unsigned n_fds, struct sio_err *err)
{
	switch ((enum sio_vfio_command)m->head.command) {
	case SIO_VFIO_VERSION:
		return version(s, m, err);
	case SIO_VFIO_DMA_MAP:
		return dma_map(s, m, fds, n_fds, err);
	case SIO_VFIO_DMA_UNMAP:
		return dma_unmap(s, m, err);
	case SIO_VFIO_GET_INFO:
		return get_info(s, m);
	case SIO_VFIO_GET_REGION_INFO:
		return get_region_info(s, m, err);
	case SIO_VFIO_GET_IRQ_INFO:
		return get_irq_info(s, m, err);
	case SIO_VFIO_SET_IRQS:
		return set_irqs(s, m, fds, n_fds, err);
	case SIO_VFIO_REGION_READ:
		return region_read(s, m, err);
	case SIO_VFIO_REGION_WRITE:
		return region_write(s, m, err);
	case SIO_VFIO_RESET:
		s->function_ops->reset(s->function);
		reply(s, &m->head, 0, -1);
		return 0;
	case SIO_VFIO_DMA_READ:
	case SIO_VFIO_DMA_WRITE:
		return sio_vfio_dma_reply(s, m, err);
	case SIO_VFIO_GET_REGION_IO_FDS:
		break;
	}
	return sio_fail(err, -EOPNOTSUPP, "command %u is not served", m->head.command);
}

static void say(struct sio_vfio_session *s, const struct sio_err *err)
{
	/* Whoever can send wrong messages can do so for ever: tell the 1st, 2nd, 4th, ... */
	s->n_refused++;
	if ((s->n_refused & (s->n_refused - 1)) == 0)
		s->ops->log(s->ctx, err->text);
}

int sio_vfio_session_take(struct sio_vfio_session *s, const void *message, size_t len,
			  const int *fds, unsigned n_fds)
{
	int mine[SIO_VFIO_MAX_FDS];
	struct sio_vfio_message m;
	struct sio_err err = {0};
	int rc = sio_vfio_parse(message, len, &m, &err);

	for (unsigned i = 0; i < n_fds && i < SIO_VFIO_MAX_FDS; i++)
		mine[i] = fds[i];
	if (rc == 0 && !(allowed[s->state] & 1u << m.head.command))
		rc = sio_fail(&err, -EPROTO, "command %u %s", m.head.command,
			      s->state == SIO_VFIO_HELLO ? "before VERSION" : "again");
	if (rc == 0)
		rc = serve(s, &m, mine, n_fds, &err);
	for (unsigned i = 0; i < n_fds && i < SIO_VFIO_MAX_FDS; i++)
		if (mine[i] >= 0)
			s->ops->close(s->ctx, mine[i]);
	if (rc == 0)
		return 0;
	say(s, &err);
	/* A reply that fits nothing leaves nobody to answer to. */
	if (m.head.flags & SIO_VFIO_REPLY)
		return -EPROTO;
	refuse(s, &m.head, rc == -EPROTO ? -EINVAL : rc);
	return rc == -EPROTO ? rc : 0;
}
