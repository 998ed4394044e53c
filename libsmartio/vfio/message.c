/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of messages: every byte that the peer sent is checked here before it is used. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "vfio/message.h"

/* Of each command: its structure, and whether data may follow. */
struct form {
	const char *name;
	size_t fixed;
	bool data;
};

static const struct form form[] = {
	[SIO_VFIO_VERSION] = {"VERSION", sizeof(struct sio_vfio_version), true},
	[SIO_VFIO_DMA_MAP] = {"DMA_MAP", sizeof(struct sio_vfio_dma_map), false},
	[SIO_VFIO_DMA_UNMAP] = {"DMA_UNMAP", sizeof(struct sio_vfio_dma_unmap), false},
	[SIO_VFIO_GET_INFO] = {"DEVICE_GET_INFO", sizeof(struct sio_vfio_info), false},
	[SIO_VFIO_GET_REGION_INFO] = {"DEVICE_GET_REGION_INFO", sizeof(struct sio_vfio_region_info),
				      true},
	[SIO_VFIO_GET_IRQ_INFO] = {"DEVICE_GET_IRQ_INFO", sizeof(struct sio_vfio_irq_info), false},
	[SIO_VFIO_SET_IRQS] = {"DEVICE_SET_IRQS", sizeof(struct sio_vfio_irq_set), true},
	[SIO_VFIO_REGION_READ] = {"REGION_READ", sizeof(struct sio_vfio_access), false},
	[SIO_VFIO_REGION_WRITE] = {"REGION_WRITE", sizeof(struct sio_vfio_access), true},
	[SIO_VFIO_DMA_READ] = {"DMA_READ", sizeof(struct sio_vfio_dma), true},
	[SIO_VFIO_DMA_WRITE] = {"DMA_WRITE", sizeof(struct sio_vfio_dma), true},
	[SIO_VFIO_RESET] = {"DEVICE_RESET", 0, false},
};

int sio_vfio_check_head(const struct sio_vfio_header *head, struct sio_err *reterr)
{
	if (head->size < sizeof(*head) || head->size > SIO_VFIO_MAX_MESSAGE)
		return sio_fail(reterr, -EPROTO,
				"a message of %" PRIu32 " bytes; %zu to %u are right", head->size,
				sizeof(*head), SIO_VFIO_MAX_MESSAGE);
	if ((head->flags & SIO_VFIO_TYPE) > SIO_VFIO_REPLY ||
	    head->flags & ~(SIO_VFIO_TYPE | SIO_VFIO_NO_REPLY | SIO_VFIO_ERROR))
		return sio_fail(reterr, -EPROTO, "a message with flags %#" PRIx32, head->flags);
	return 0;
}

static int wrong(struct sio_err *reterr, const struct form *f, const char *what)
{
	return sio_fail(reterr, -EINVAL, "%s: %s", f->name, what);
}

static int check_access(const struct sio_vfio_message *m, const struct form *f,
			struct sio_err *reterr)
{
	const struct sio_vfio_access *a = &m->access;
	uint64_t end;

	if (a->count == 0 || a->count > SIO_VFIO_MAX_DATA)
		return wrong(reterr, f, "a count that is 0 or beyond max_data_xfer_size");
	if (__builtin_add_overflow(a->offset, a->count, &end))
		return wrong(reterr, f, "offset and count overflow");
	if (m->head.command == SIO_VFIO_REGION_WRITE && m->data_len != a->count)
		return wrong(reterr, f, "its count is not that of its data");
	return 0;
}

static int check_set(const struct sio_vfio_message *m, const struct form *f, struct sio_err *reterr)
{
	const struct sio_vfio_irq_set *s = &m->set;
	uint32_t data = s->flags & SIO_VFIO_SET_DATA, action = s->flags & SIO_VFIO_SET_ACTION;
	uint32_t end;

	if (s->flags & ~(SIO_VFIO_SET_DATA | SIO_VFIO_SET_ACTION) || !data || data & (data - 1) ||
	    !action || action & (action - 1))
		return wrong(reterr, f, "flags that are not one kind of data and one action");
	if (__builtin_add_overflow(s->start, s->count, &end))
		return wrong(reterr, f, "start and count overflow");
	if (m->data_len != (data == SIO_VFIO_SET_BOOL ? s->count : 0))
		return wrong(reterr, f, "its data are not what flags and count say");
	return 0;
}

static int check_map(const struct sio_vfio_message *m, const struct form *f, struct sio_err *reterr)
{
	uint64_t end;

	if (m->map.flags & ~(SIO_VFIO_MAP_READ | SIO_VFIO_MAP_WRITE))
		return wrong(reterr, f, "flags other than read (1) and write (2)");
	if (m->map.size == 0)
		return wrong(reterr, f, "a size of 0");
	if (__builtin_add_overflow(m->map.address, m->map.size - 1, &end) ||
	    __builtin_add_overflow(m->map.offset, m->map.size, &end))
		return wrong(reterr, f, "address or offset and size overflow");
	return 0;
}

static int check_unmap(const struct sio_vfio_message *m, const struct form *f,
		       struct sio_err *reterr)
{
	if (m->unmap.flags & ~SIO_VFIO_UNMAP_ALL)
		return wrong(reterr, f, "flags other than all (2)");
	if (m->unmap.flags ? m->unmap.address || m->unmap.size : m->unmap.size == 0)
		return wrong(reterr, f, "a range and all, or neither");
	return 0;
}

static int check_dma_reply(const struct sio_vfio_message *m, const struct form *f,
			   struct sio_err *reterr)
{
	if (m->data_len != (m->head.command == SIO_VFIO_DMA_READ ? m->dma.count : 0))
		return wrong(reterr, f, "its count is not that of its data");
	return 0;
}

/* The peer answers what the server alone asks, and asks the rest. */
static int check_direction(const struct sio_vfio_message *m, const struct form *f,
			   struct sio_err *reterr)
{
	bool reply = m->head.flags & SIO_VFIO_REPLY;

	if (reply ==
	    (m->head.command == SIO_VFIO_DMA_READ || m->head.command == SIO_VFIO_DMA_WRITE))
		return 0;
	return wrong(reterr, f, reply ? "a reply to what was not asked" : "the server's own");
}

static int check(const struct sio_vfio_message *m, const struct form *f, struct sio_err *reterr)
{
	switch (m->head.command) {
	case SIO_VFIO_DMA_MAP:
		return check_map(m, f, reterr);
	case SIO_VFIO_DMA_UNMAP:
		return check_unmap(m, f, reterr);
	case SIO_VFIO_SET_IRQS:
		return check_set(m, f, reterr);
	case SIO_VFIO_REGION_READ:
	case SIO_VFIO_REGION_WRITE:
		return check_access(m, f, reterr);
	case SIO_VFIO_DMA_READ:
	case SIO_VFIO_DMA_WRITE:
		return check_dma_reply(m, f, reterr);
	default:
		return 0;
	}
}

int sio_vfio_parse(const void *message, size_t len, struct sio_vfio_message *ret,
		   struct sio_err *reterr)
{
	const struct form *f;
	size_t rest;

	memset(ret, 0, sizeof(*ret));
	if (len < sizeof(ret->head))
		return sio_fail(reterr, -EINVAL,
				"a message of %zu bytes is shorter than its header", len);
	memcpy(&ret->head, message, sizeof(ret->head));
	if (ret->head.command >= sizeof(form) / sizeof(form[0]) || !form[ret->head.command].name)
		return sio_fail(reterr, -EOPNOTSUPP, "command %u is not known here",
				ret->head.command);
	f = &form[ret->head.command];
	rest = len - sizeof(ret->head);
	/* A reply that reports an error has no more than its head. */
	if (ret->head.flags & SIO_VFIO_ERROR && !(ret->head.flags & SIO_VFIO_REPLY))
		return wrong(reterr, f, "an error flag in a message that is no reply");
	if (ret->head.flags & SIO_VFIO_ERROR)
		return check_direction(ret, f, reterr);
	if (rest < f->fixed || (rest > f->fixed && !f->data))
		return sio_fail(reterr, -EINVAL, "%s: %zu bytes behind its head; %zu%s is right",
				f->name, rest, f->fixed, f->data ? " or more" : "");
	memcpy((uint8_t *)ret + offsetof(struct sio_vfio_message, version),
	       (const uint8_t *)message + sizeof(ret->head), f->fixed);
	ret->data = (const uint8_t *)message + sizeof(ret->head) + f->fixed;
	ret->data_len = rest - f->fixed;
	if (check_direction(ret, f, reterr) < 0)
		return reterr->code;
	return check(ret, f, reterr);
}
