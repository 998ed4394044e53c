/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/vfio/inside.h"

/* The commands that a peer may send in each state, and what follows each. */
#define AT_HELLO (1u << EMU_VFIO_VERSION)
#define AT_READY                                                                                   \
	(1u << EMU_VFIO_DMA_MAP | 1u << EMU_VFIO_DMA_UNMAP | 1u << EMU_VFIO_GET_INFO |             \
	 1u << EMU_VFIO_GET_REGION_INFO | 1u << EMU_VFIO_GET_IRQ_INFO | 1u << EMU_VFIO_SET_IRQS |  \
	 1u << EMU_VFIO_REGION_READ | 1u << EMU_VFIO_REGION_WRITE | 1u << EMU_VFIO_DMA_READ |      \
	 1u << EMU_VFIO_DMA_WRITE | 1u << EMU_VFIO_RESET)

static const uint32_t allowed[EMU_VFIO_STATES] = {
	[EMU_VFIO_HELLO] = AT_HELLO,
	[EMU_VFIO_READY] = AT_READY,
};

struct emu_vfio_session *emu_vfio_session_new(const struct emu_vfio_function_ops *function_ops,
					      void *function,
					      const struct emu_vfio_session_ops *ops, void *ctx)
{
	struct emu_vfio_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->state = EMU_VFIO_HELLO;
	s->function_ops = function_ops;
	s->function = function;
	s->ops = ops;
	s->ctx = ctx;
	s->n_vectors = function_ops->vectors(function);
	if (s->n_vectors > EMU_VFIO_VECTORS)
		s->n_vectors = EMU_VFIO_VECTORS;
	for (unsigned i = 0; i < EMU_VFIO_VECTORS; i++)
		s->vector[i].fd = -1;
	emu_vfio_memory_init(&s->memory, &ops->memory, ctx);
	return s;
}

void emu_vfio_session_free(struct emu_vfio_session *s)
{
	if (!s)
		return;
	emu_vfio_dma_end(s);
	emu_vfio_irqs_end(s);
	emu_vfio_memory_clear(&s->memory);
	free(s);
}

struct emu_vfio_memory *emu_vfio_session_memory(struct emu_vfio_session *s)
{
	return &s->memory;
}

/* ---- replies ---- */

static void reply(struct emu_vfio_session *s, const struct emu_vfio_header *head, size_t len,
		  int fd)
{
	const struct emu_vfio_header out = {.id = head->id,
					    .command = head->command,
					    .size = (uint32_t)(sizeof(out) + len),
					    .flags = EMU_VFIO_REPLY};

	if (head->flags & EMU_VFIO_NO_REPLY)
		return;
	memcpy(s->out, &out, sizeof(out));
	s->ops->send(s->ctx, s->out, out.size, fd);
}

static void refuse(struct emu_vfio_session *s, const struct emu_vfio_header *head, int rc)
{
	const struct emu_vfio_header out = {.id = head->id,
					    .command = head->command,
					    .size = sizeof(out),
					    .flags = EMU_VFIO_REPLY | EMU_VFIO_ERROR,
					    .error = (uint32_t)-rc};

	if (!(head->flags & (EMU_VFIO_NO_REPLY | EMU_VFIO_REPLY)))
		s->ops->send(s->ctx, &out, sizeof(out), -1);
}

/* Where a reply's structure begins. */
static void *body(struct emu_vfio_session *s)
{
	return s->out + sizeof(struct emu_vfio_header);
}

/* ---- commands: each replies, or returns why not ---- */

static int version(struct emu_vfio_session *s, const struct emu_vfio_message *m,
		   struct sio_err *err)
{
	const struct emu_vfio_version ours = {0};
	int rc;

	if (m->version.major != ours.major)
		return sio_fail(err, -EINVAL, "VERSION: version %u.%u, 0 and any minor is right",
				m->version.major, m->version.minor);
	rc = emu_vfio_limits_parse(m->data, m->data_len, &s->limits, err);
	if (rc < 0)
		return rc;
	memcpy(body(s), &ours, sizeof(ours));
	s->state = EMU_VFIO_READY;
	reply(s, &m->head,
	      sizeof(ours) +
		      emu_vfio_limits_text((char *)body(s) + sizeof(ours), EMU_VFIO_MAX_DATA),
	      -1);
	return 0;
}

static int dma_map(struct emu_vfio_session *s, const struct emu_vfio_message *m, const int *fds,
		   unsigned n_fds, struct sio_err *err)
{
	int rc;

	if (n_fds > 1)
		return sio_fail(err, -EINVAL, "DMA_MAP: %u descriptors; one or none is right",
				n_fds);
	rc = emu_vfio_memory_add(&s->memory, m->map.address, m->map.size, n_fds ? fds[0] : -1,
				 m->map.offset, m->map.flags & EMU_VFIO_MAP_READ,
				 m->map.flags & EMU_VFIO_MAP_WRITE, err);
	if (rc == 0)
		reply(s, &m->head, 0, -1);
	return rc;
}

static int dma_unmap(struct emu_vfio_session *s, const struct emu_vfio_message *m,
		     struct sio_err *err)
{
	int rc = 0;

	if (m->unmap.flags & EMU_VFIO_UNMAP_ALL)
		emu_vfio_memory_clear(&s->memory);
	else
		rc = emu_vfio_memory_remove(&s->memory, m->unmap.address, m->unmap.size, err);
	if (rc < 0)
		return rc;
	memcpy(body(s), &m->unmap, sizeof(m->unmap));
	reply(s, &m->head, sizeof(m->unmap), -1);
	return 0;
}

static int get_info(struct emu_vfio_session *s, const struct emu_vfio_message *m)
{
	const struct emu_vfio_info info = {.argsz = sizeof(info),
					   .flags = EMU_VFIO_DEVICE_RESET | EMU_VFIO_DEVICE_PCI,
					   .regions = EMU_VFIO_REGIONS,
					   .irqs = EMU_VFIO_IRQS};

	memcpy(body(s), &info, sizeof(info));
	reply(s, &m->head, sizeof(info), -1);
	return 0;
}

/*
 * The capability is only told, and the file sent, if the peer has room for it; else how much it
 * needs, and that there is one: a QEMU that does not hear this at once never asks again.
 */
static int get_region_info(struct emu_vfio_session *s, const struct emu_vfio_message *m,
			   struct sio_err *err)
{
	struct emu_vfio_region_info info = {.argsz = sizeof(info), .index = m->region.index};
	struct emu_vfio_region r = {.fd = -1};
	struct emu_vfio_sparse cap = {.id = EMU_VFIO_REGION_CAP_SPARSE, .version = 1};
	size_t len = sizeof(info);
	bool fits = true;

	if (m->region.index >= EMU_VFIO_REGIONS)
		return sio_fail(err, -EINVAL,
				"DEVICE_GET_REGION_INFO: region %" PRIu32 ", 0 to %d is right",
				m->region.index, EMU_VFIO_REGIONS - 1);
	s->function_ops->region(s->function, info.index, &r);
	info.size = r.size;
	info.flags = r.flags;
	if (r.flags & EMU_VFIO_REGION_MMAP) {
		info.offset = r.fd_offset;
		if (r.n_areas == 0)
			r.area[r.n_areas++] = (struct emu_vfio_area){0, r.size};
		cap.n_areas = r.n_areas;
		info.argsz += (uint32_t)(sizeof(cap) + r.n_areas * sizeof(r.area[0]));
		info.flags |= EMU_VFIO_REGION_CAPS;
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

static int get_irq_info(struct emu_vfio_session *s, const struct emu_vfio_message *m,
			struct sio_err *err)
{
	struct emu_vfio_irq_info info = {
		.argsz = sizeof(info), .flags = EMU_VFIO_IRQ_EVENTFD, .index = m->irq.index};

	if (info.index >= EMU_VFIO_IRQS)
		return sio_fail(err, -EINVAL,
				"DEVICE_GET_IRQ_INFO: kind %" PRIu32 ", 0 to %d is right",
				info.index, EMU_VFIO_IRQS - 1);
	if (info.index == EMU_VFIO_MSIX)
		info.count = s->n_vectors;
	memcpy(body(s), &info, sizeof(info));
	reply(s, &m->head, sizeof(info), -1);
	return 0;
}

static int check_access(struct emu_vfio_session *s, const struct emu_vfio_access *a,
			uint32_t wanted, struct sio_err *err)
{
	struct emu_vfio_region r = {.fd = -1};

	if (a->region < EMU_VFIO_REGIONS)
		s->function_ops->region(s->function, a->region, &r);
	if (!(r.flags & wanted) || a->offset >= r.size || a->count > r.size - a->offset)
		return sio_fail(err, -EINVAL,
				"REGION_%s: %" PRIu32 " bytes at %#" PRIx64 " of region %" PRIu32
				", which has %#" PRIx64,
				wanted == EMU_VFIO_REGION_READABLE ? "READ" : "WRITE", a->count,
				a->offset, a->region, r.size);
	return 0;
}

static int region_read(struct emu_vfio_session *s, const struct emu_vfio_message *m,
		       struct sio_err *err)
{
	const struct emu_vfio_access *a = &m->access;
	int rc = check_access(s, a, EMU_VFIO_REGION_READABLE, err);

	if (rc < 0)
		return rc;
	s->serving = m;
	rc = s->function_ops->read(s->function, a->region, a->offset,
				   (uint8_t *)body(s) + sizeof(*a), a->count);
	s->serving = NULL;
	if (rc < 0)
		return sio_fail(err, rc, "REGION_READ: the function refuses it");
	if (rc == EMU_VFIO_LATER)
		return 0;
	memcpy(body(s), a, sizeof(*a));
	reply(s, &m->head, sizeof(*a) + a->count, -1);
	return 0;
}

static int region_write(struct emu_vfio_session *s, const struct emu_vfio_message *m,
			struct sio_err *err)
{
	const struct emu_vfio_access *a = &m->access;
	int rc = check_access(s, a, EMU_VFIO_REGION_WRITABLE, err);

	if (rc < 0)
		return rc;
	s->serving = m;
	rc = s->function_ops->write(s->function, a->region, a->offset, m->data, a->count);
	s->serving = NULL;
	if (rc < 0)
		return sio_fail(err, rc, "REGION_WRITE: the function refuses it");
	if (rc == EMU_VFIO_LATER)
		return 0;
	memcpy(body(s), a, sizeof(*a));
	reply(s, &m->head, sizeof(*a), -1);
	return 0;
}

int emu_vfio_session_later(struct emu_vfio_session *s)
{
	for (unsigned i = 0; i < EMU_VFIO_LATE; i++) {
		if (s->late[i].used)
			continue;
		s->late[i] = (struct emu_vfio_late){
			.used = true, .head = s->serving->head, .access = s->serving->access};
		return (int)i;
	}
	return -EAGAIN;
}

void emu_vfio_session_forgo(struct emu_vfio_session *s, int ticket)
{
	s->late[ticket].used = false;
}

void emu_vfio_session_answer(struct emu_vfio_session *s, int ticket, int rc, const void *data)
{
	struct emu_vfio_late late = s->late[ticket];
	size_t len = sizeof(late.access);

	s->late[ticket].used = false;
	if (rc < 0) {
		refuse(s, &late.head, rc);
		return;
	}
	memcpy(body(s), &late.access, sizeof(late.access));
	if (late.head.command == EMU_VFIO_REGION_READ) {
		memcpy((uint8_t *)body(s) + len, data, late.access.count);
		len += late.access.count;
	}
	reply(s, &late.head, len, -1);
}

static int set_irqs(struct emu_vfio_session *s, const struct emu_vfio_message *m, int *fds,
		    unsigned n_fds, struct sio_err *err)
{
	int rc = emu_vfio_irqs_set(s, m, fds, n_fds, err);

	if (rc == 0)
		reply(s, &m->head, 0, -1);
	return rc;
}

static int serve(struct emu_vfio_session *s, const struct emu_vfio_message *m, int *fds,
		 unsigned n_fds, struct sio_err *err)
{
	switch ((enum emu_vfio_command)m->head.command) {
	case EMU_VFIO_VERSION:
		return version(s, m, err);
	case EMU_VFIO_DMA_MAP:
		return dma_map(s, m, fds, n_fds, err);
	case EMU_VFIO_DMA_UNMAP:
		return dma_unmap(s, m, err);
	case EMU_VFIO_GET_INFO:
		return get_info(s, m);
	case EMU_VFIO_GET_REGION_INFO:
		return get_region_info(s, m, err);
	case EMU_VFIO_GET_IRQ_INFO:
		return get_irq_info(s, m, err);
	case EMU_VFIO_SET_IRQS:
		return set_irqs(s, m, fds, n_fds, err);
	case EMU_VFIO_REGION_READ:
		return region_read(s, m, err);
	case EMU_VFIO_REGION_WRITE:
		return region_write(s, m, err);
	case EMU_VFIO_RESET:
		s->function_ops->reset(s->function);
		reply(s, &m->head, 0, -1);
		return 0;
	case EMU_VFIO_DMA_READ:
	case EMU_VFIO_DMA_WRITE:
		return emu_vfio_dma_reply(s, m, err);
	case EMU_VFIO_GET_REGION_IO_FDS:
		break;
	}
	return sio_fail(err, -EOPNOTSUPP, "command %u is not served", m->head.command);
}

static void say(struct emu_vfio_session *s, const struct sio_err *err)
{
	/* Whoever can send wrong messages can do so for ever: tell the 1st, 2nd, 4th, ... */
	s->n_refused++;
	if ((s->n_refused & (s->n_refused - 1)) == 0)
		s->ops->log(s->ctx, err->text);
}

int emu_vfio_session_take(struct emu_vfio_session *s, const void *message, size_t len,
			  const int *fds, unsigned n_fds)
{
	int mine[EMU_VFIO_MAX_FDS];
	struct emu_vfio_message m;
	struct sio_err err = {0};
	int rc = emu_vfio_parse(message, len, &m, &err);

	for (unsigned i = 0; i < n_fds && i < EMU_VFIO_MAX_FDS; i++)
		mine[i] = fds[i];
	if (rc == 0 && !(allowed[s->state] & 1u << m.head.command))
		rc = sio_fail(&err, -EPROTO, "command %u %s", m.head.command,
			      s->state == EMU_VFIO_HELLO ? "before VERSION" : "again");
	if (rc == 0)
		rc = serve(s, &m, mine, n_fds, &err);
	for (unsigned i = 0; i < n_fds && i < EMU_VFIO_MAX_FDS; i++)
		if (mine[i] >= 0)
			s->ops->close(s->ctx, mine[i]);
	if (rc == 0)
		return 0;
	say(s, &err);
	/* A reply that fits nothing leaves nobody to answer to. */
	if (m.head.flags & EMU_VFIO_REPLY)
		return -EPROTO;
	refuse(s, &m.head, rc == -EPROTO ? -EINVAL : rc);
	return rc == -EPROTO ? rc : 0;
}
