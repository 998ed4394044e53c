/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to smartiod: requests, and posts, whose replies are ignored. The kernel may have no
 * memory for a packet. Then nothing was sent, and the connection is as good as before: a request is
 * tried a few times, and then this request alone fails; a post is kept, and sent before anything
 * later. The connection is lost only when the other end is found to be gone.
 */
#include <errno.h>
#include <stdlib.h>

#include "session/internal.h"

#define TRIES 4
#define POST_AGAIN_NS 20000000ull

/* Nothing was sent, because something is missing that may be there in a moment. */
static bool lacks(ssize_t sent)
{
	return sent == -ENOMEM || sent == -ENOBUFS || sent == -ETOOMANYREFS || sent == -EAGAIN;
}

ssize_t sio_session_send(struct sio_session *s, int fd, const struct sio_msg *msg, size_t len,
			 const int *fds, unsigned n_fds)
{
	struct sio_world *w = s->world;
	ssize_t sent = w->send(w, fd, msg, len, fds, n_fds);

	for (unsigned i = 1; i < TRIES && lacks(sent); i++) {
		w->yield(w);
		sent = w->send(w, fd, msg, len, fds, n_fds);
	}
	return lacks(sent) ? -ENOMEM : sent;
}

void sio_session_fill_header(struct sio_msg *req, size_t len, uint32_t type, uint32_t id)
{
	req->size = sio_to_le32((uint32_t)len);
	req->type = sio_to_le32(type);
	req->id = sio_to_le32(id);
	req->error = sio_to_le32(0);
}

uint32_t sio_session_fresh_id(struct sio_session *s)
{
	const struct sio_call *c;

	do {
		if (++s->next_id == 0)
			s->next_id = 1;
		for (c = s->calls; c && c->id != s->next_id; c = c->next)
			;
	} while (c);
	return s->next_id;
}

/* ---- posts ---- */

int sio_session_send_posts(struct sio_session *s)
{
	while (s->posts && sio_session_connected(s)) {
		struct sio_post *p = s->posts;
		ssize_t sent = sio_session_send(s, s->fd, &p->msg.h, p->len, NULL, 0);

		if (sent == -ENOMEM) {
			s->post_at = s->world->now(s->world) + POST_AGAIN_NS;
			return -ENOMEM;
		}
		s->posts = p->next;
		free(p);
		if (sent < 0)
			sio_session_cannot_send(s);
	}
	return 0;
}

void sio_session_drop_posts(struct sio_session *s)
{
	while (s->posts) {
		struct sio_post *p = s->posts;

		s->posts = p->next;
		free(p);
	}
}

int sio_session_notify(struct sio_session *s, uint32_t type, struct sio_msg *req, size_t len)
{
	ssize_t sent;

	if (s->state == SIO_SESSION_DEAD)
		return 0;
	sio_session_fill_header(req, len, type, sio_session_fresh_id(s));
	sio_session_taken(s, req);
	/*
	 * The object is not restored with the next smartiod; during an exchange with one it may
	 * have been restored already.
	 */
	if (sio_session_away(s))
		return s->resuming ? -ENOMEM : 0;
	if (sio_session_send_posts(s) < 0)
		return -ENOMEM;
	if (!sio_session_connected(s))
		return 0;
	sent = sio_session_send(s, s->fd, req, len, NULL, 0);
	if (sent == -ENOMEM)
		return -ENOMEM;
	if (sent < 0)
		sio_session_cannot_send(s);
	return 0;
}

void sio_session_post(struct sio_session *s, uint32_t type, struct sio_post *p, size_t len)
{
	struct sio_post **at = &s->posts;

	p->next = NULL;
	p->len = len;
	if (sio_session_notify(s, type, &p->msg.h, len) == 0) {
		free(p);
		return;
	}
	while (*at)
		at = &(*at)->next;
	*at = p;
	s->post_at = s->world->now(s->world) + POST_AGAIN_NS;
	sio_session_kick(s);
}

void sio_session_bye(struct sio_session *s)
{
	bool away = __atomic_load_n(&s->state, __ATOMIC_RELAXED) != SIO_SESSION_CONNECTED;
	struct sio_world *w = s->world;
	struct sio_msg_bye bye;
	ssize_t sent;

	sio_session_fill_header(&bye.h, sizeof(bye), SIO_MSG_BYE, UINT32_MAX);
	if (away)
		return;
	if (!w->try_send) {
		sio_session_send(s, s->fd, &bye.h, sizeof(bye), NULL, 0);
		return;
	}
	/* If the socket is full, nobody reads it: exit() must not wait for that. */
	sent = w->try_send(w, s->fd, &bye, sizeof(bye));
	for (unsigned i = 1; i < TRIES && lacks(sent) && sent != -EAGAIN; i++) {
		w->yield(w);
		sent = w->try_send(w, s->fd, &bye, sizeof(bye));
	}
}

/* ---- calls ---- */

static int fail_unsent(struct sio_call *call)
{
	call->unsent = true;
	return sio_fail(call->err, -ENOMEM,
			"no memory to ask this host's smartiod: " SIO_MORE_MEMORY);
}

int sio_session_send_call(struct sio_session *s, struct sio_call *call)
{
	ssize_t sent;

	if (sio_session_send_posts(s) < 0)
		return fail_unsent(call);
	if (!sio_session_connected(s)) /* the call has ended, or will be sent again */
		return 0;
	call->asked = true;
	sent = sio_session_send(s, s->fd, call->req, call->req_len, call->req_fds, call->n_req_fds);
	if (sent == -ENOMEM)
		return fail_unsent(call);
	if (sent < 0)
		sio_session_cannot_send(s);
	return 0;
}

void sio_session_send_unlocked(struct sio_session *s, struct sio_call *call)
{
	ssize_t sent = sio_session_send_posts(s);

	if (!sio_session_connected(s))
		return;
	if (sent == 0) {
		call->asked = true;
		s->on_socket++;
		sio_session_unlock(s);
		sent = sio_session_send(s, s->fd, call->req, call->req_len, call->req_fds,
					call->n_req_fds);
		sio_session_lock(s);
		s->on_socket--;
		if (sio_session_away(s) || s->resuming)
			s->world->wake_all(s->world, s->lock);
	}
	if (sent >= 0)
		return;
	if (sent != -ENOMEM)
		sio_session_cannot_send(s);
	else if (sio_session_connected(s)) /* otherwise it will be sent again, or has failed */
		sio_session_finish(s, call, fail_unsent(call));
}
