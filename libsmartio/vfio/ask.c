/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of the server to its peer: accesses of the function to memory that has no file. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "vfio/inside.h"

static struct sio_vfio_ask *find(struct sio_vfio_session *s, uint16_t id)
{
	struct sio_vfio_ask *a = &s->ask[id % SIO_VFIO_ASKED];

	return a->used && a->id == id ? a : NULL;
}

/* A free place; its id is another than the last that had it. NULL: none. */
static struct sio_vfio_ask *take_place(struct sio_vfio_session *s, uint16_t *ret_id)
{
	for (unsigned i = 0; i < SIO_VFIO_ASKED; i++) {
		unsigned at = s->next_ask++ % SIO_VFIO_ASKED;

		if (at == 0)
			s->round++;
		if (s->ask[at].used)
			continue;
		*ret_id = (uint16_t)(s->round * SIO_VFIO_ASKED + at);
		return &s->ask[at];
	}
	return NULL;
}

unsigned sio_vfio_session_asked(const struct sio_vfio_session *s)
{
	return s->n_asked;
}

size_t sio_vfio_session_dma_max(const struct sio_vfio_session *s)
{
	return s->limits.max_data < SIO_VFIO_MAX_DATA ? (size_t)s->limits.max_data
						      : SIO_VFIO_MAX_DATA;
}

static int ask(struct sio_vfio_session *s, struct sio_vfio_ask what, const void *data)
{
	struct sio_vfio_header head = {.command = what.command};
	const struct sio_vfio_dma dma = {.address = what.address, .count = what.len};
	struct sio_vfio_ask *a;
	size_t len = sizeof(head) + sizeof(dma);

	if (s->state != SIO_VFIO_READY)
		return -ENOTCONN;
	if (what.len == 0 || what.len > sio_vfio_session_dma_max(s))
		return -EMSGSIZE;
	a = s->n_asked < SIO_VFIO_ASKED ? take_place(s, &head.id) : NULL;
	if (!a)
		return -EAGAIN;
	s->n_asked++;
	what.used = true;
	what.id = head.id;
	*a = what;
	memcpy(s->out + sizeof(head), &dma, sizeof(dma));
	if (data) {
		memcpy(s->out + len, data, what.len);
		len += what.len;
	}
	head.size = (uint32_t)len;
	memcpy(s->out, &head, sizeof(head));
	s->ops->send(s->ctx, s->out, len, -1);
	return 0;
}

int sio_vfio_session_dma_read(struct sio_vfio_session *s, uint64_t address, size_t len,
			      sio_vfio_done *done, void *arg)
{
	return ask(s,
		   (struct sio_vfio_ask){.command = SIO_VFIO_DMA_READ,
					 .address = address,
					 .len = len,
					 .done = done,
					 .arg = arg},
		   NULL);
}

int sio_vfio_session_dma_write(struct sio_vfio_session *s, uint64_t address, const void *data,
			       size_t len, sio_vfio_done *done, void *arg)
{
	return ask(s,
		   (struct sio_vfio_ask){.command = SIO_VFIO_DMA_WRITE,
					 .address = address,
					 .len = len,
					 .done = done,
					 .arg = arg},
		   data);
}

int sio_vfio_dma_reply(struct sio_vfio_session *s, const struct sio_vfio_message *m,
		       struct sio_err *reterr)
{
	struct sio_vfio_ask *a = find(s, m->head.id), was;
	bool failed = m->head.flags & SIO_VFIO_ERROR;

	if (!a || a->command != m->head.command)
		return sio_fail(reterr, -EPROTO, "a reply to DMA message %u, which was not sent",
				m->head.id);
	if (!failed && (m->dma.address != a->address || m->dma.count != a->len))
		return sio_fail(reterr, -EPROTO,
				"DMA message %u was about %zu bytes at %#" PRIx64
				", its reply is about others",
				m->head.id, a->len, a->address);
	was = *a;
	a->used = false;
	s->n_asked--;
	if (was.done)
		was.done(was.arg, failed ? -EIO : 0, failed ? NULL : m->data,
			 failed ? 0 : m->data_len);
	return 0;
}

void sio_vfio_dma_end(struct sio_vfio_session *s)
{
	/* Most sessions end with none of them waiting, and never touched most of their places. */
	for (unsigned i = 0; i < SIO_VFIO_ASKED && s->n_asked > 0; i++) {
		struct sio_vfio_ask was = s->ask[i];

		if (!was.used)
			continue;
		s->ask[i].used = false;
		s->n_asked--;
		if (was.done)
			was.done(was.arg, -EPIPE, NULL, 0);
	}
}
