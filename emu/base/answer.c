/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to requests. */
#include <stdio.h>

#include "emu/base/state.h"

static void answer(struct emu_host *h, const struct sio_req *req, struct sio_evt *evt, size_t size,
		   int error, uint32_t reason, const int *fds, unsigned n_fds)
{
	struct emu_room *r = h->room;

	evt->size = (uint32_t)size;
	evt->op = req->op;
	evt->reason = reason;
	evt->error = error;
	evt->cookie = req->cookie;
	evt->owner = req->owner;
	r->ops->send(r->ctx, h->index, evt, size, fds, n_fds);
}

void emu_answer(struct emu_request *rq, void *evt, size_t size, const int *fds, unsigned n_fds)
{
	answer(rq->host, rq->h, evt, size, 0, SIO_OUT_OF_NOTHING, fds, n_fds);
}

void emu_answer_ok(struct emu_request *rq)
{
	struct sio_evt_ok evt;

	memset(&evt, 0, sizeof(evt));
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
}

void emu_refuse(struct emu_host *h, const struct sio_req *req, int error, uint32_t reason,
		const char *text)
{
	struct sio_evt_error evt;

	memset(&evt, 0, sizeof(evt));
	snprintf(evt.text, sizeof(evt.text), "%.*s", (int)sizeof(evt.text) - 1, text);
	h->requests_refused++;
	answer(h, req, &evt.h, sizeof(evt), error, reason, NULL, 0);
}
