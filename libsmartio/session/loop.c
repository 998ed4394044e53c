/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing a session, and its event thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/internal.h"

/*
 * Makes room for one more watch, also in the arrays that the thread passes to poll(). Those are in
 * use now, so the thread is given larger ones to change to.
 */
static int grow(struct sio_session *s)
{
	unsigned max = s->max_watches ? s->max_watches * 2 : 8;
	struct sio_session_watch *watches = malloc(max * sizeof(*watches));
	struct sio_poll *polls = malloc((max + 2) * sizeof(*polls));
	uintptr_t *cookies = malloc((max + 2) * sizeof(*cookies));

	if (!watches || !polls || !cookies) {
		free(watches);
		free(polls);
		free(cookies);
		return -ENOMEM;
	}
	if (s->n_watches)
		memcpy(watches, s->watches, s->n_watches * sizeof(*watches));
	free(s->watches);
	free(s->bigger_polls);
	free(s->bigger_cookies);
	s->watches = watches;
	s->bigger_polls = polls;
	s->bigger_cookies = cookies;
	s->max_watches = max;
	return 0;
}

int sio_session_new(struct sio_world *w, const struct sio_session_ops *ops, void *ctx,
		    struct sio_session **ret)
{
	struct sio_session *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->world = w;
	s->ops = ops;
	s->ctx = ctx;
	s->fd = s->gate_fd = s->wake_fd = s->poke_fd = s->dead_fd = s->owner_fd = -1;
	rc = grow(s);
	if (rc == 0)
		rc = w->lock_new(w, &s->lock);
	if (rc < 0) {
		sio_session_free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void sio_session_free(struct sio_session *s)
{
	if (!s)
		return;
	if (s->lock)
		s->world->lock_free(s->world, s->lock);
	free(s->watches);
	free(s->bigger_polls);
	free(s->bigger_cookies);
	free(s->polls);
	free(s->cookies);
	free(s);
}

int sio_session_watch(struct sio_session *s, int fd, uintptr_t cookie)
{
	if (s->n_watches == s->max_watches && grow(s) < 0)
		return -ENOMEM;
	s->watches[s->n_watches++] = (struct sio_session_watch){fd, cookie};
	sio_session_kick(s);
	return 0;
}

void sio_session_unwatch(struct sio_session *s, uintptr_t cookie)
{
	for (unsigned i = 0; i < s->n_watches; i++) {
		if (s->watches[i].cookie == cookie) {
			s->watches[i] = s->watches[--s->n_watches];
			sio_session_kick(s);
			return;
		}
	}
}

/* Under the lock, once other threads exist. */
static void close_descriptors(struct sio_session *s)
{
	int *fd[] = {&s->wake_fd, &s->poke_fd, &s->dead_fd};

	sio_session_detach(s);
	for (unsigned i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		if (*fd[i] >= 0)
			s->world->close(s->world, *fd[i]);
		*fd[i] = -1;
	}
	sio_session_forget(s);
}

int sio_session_open(struct sio_session *s, uint64_t until)
{
	struct sio_world *w = s->world;
	int fd, rc;

	if (s->thread) {
		/* Left behind when the event thread itself closed the session. */
		if (!s->closing || sio_session_on_event_thread(s))
			return -EALREADY;
		w->thread_join(w, s->thread);
		s->thread = NULL;
	}
	s->closing = s->close_late = s->poller = s->reset_seen = false;
	s->resumes = 0;
	s->refusal[0] = '\0'; /* the text may be that of an earlier smartiod */
	do
		fd = w->connect(w);
	while (fd == -ECONNREFUSED && sio_session_try_later(s, until));
	if (fd < 0)
		return fd;
	sio_session_attach(s, fd);
	s->wake_fd = w->event_new(w);
	s->poke_fd = w->event_new(w);
	s->dead_fd = w->event_new(w);
	rc = s->wake_fd < 0   ? s->wake_fd
	     : s->poke_fd < 0 ? s->poke_fd
	     : s->dead_fd < 0 ? s->dead_fd
			      : 0;
	sio_session_step(s, SIO_SESSION_OPENS);
	if (rc == 0)
		rc = w->thread_start(w, sio_session_loop, s, &s->thread);
	if (rc < 0) {
		sio_session_step(s, SIO_SESSION_DIES);
		close_descriptors(s);
	}
	return rc;
}

void sio_session_close(struct sio_session *s)
{
	struct sio_world *w = s->world;

	sio_session_lock(s);
	s->closing = true;
	sio_session_die(s);
	sio_session_kick(s);
	while (s->users > 0) {
		sio_session_wake(s);
		w->wait(w, s->lock, SIO_FOREVER);
	}
	s->n_watches = 0;
	s->close_late = sio_session_on_event_thread(s);
	sio_session_unlock(s);
	if (!s->thread || s->close_late)
		return;
	w->thread_join(w, s->thread);
	s->thread = NULL;
	/* A thread that copies blocks may still want to wake the event thread. */
	sio_session_lock(s);
	close_descriptors(s);
	sio_session_unlock(s);
}

bool sio_session_on_event_thread(struct sio_session *s)
{
	return s->thread && s->world->thread_is_self(s->world, s->thread);
}

/* Under the lock: copies the watches for a poll() without the lock. */
static unsigned collect(struct sio_session *s)
{
	if (s->bigger_polls) {
		free(s->polls);
		free(s->cookies);
		s->polls = s->bigger_polls;
		s->cookies = s->bigger_cookies;
		s->bigger_polls = NULL;
		s->bigger_cookies = NULL;
	}
	s->polls[0] = (struct sio_poll){.fd = s->wake_fd};
	s->polls[1] = (struct sio_poll){.fd = !sio_session_connected(s) ? s->wake_fd
					      : s->gate_fd >= 0		? s->gate_fd
									: s->fd};
	for (unsigned i = 0; i < s->n_watches; i++) {
		s->polls[2 + i] = (struct sio_poll){.fd = s->watches[i].fd};
		s->cookies[2 + i] = s->watches[i].cookie;
	}
	return s->n_watches + 2;
}

/* Under the lock: when something has to be tried again. */
static uint64_t next_look(const struct sio_session *s)
{
	if (s->state == SIO_SESSION_DEAD)
		return SIO_FOREVER;
	if (sio_session_away(s))
		return s->resuming ? SIO_FOREVER : s->next_try;
	return s->posts ? s->post_at : SIO_FOREVER;
}

void sio_session_loop(void *arg)
{
	struct sio_session *s = arg;
	uint64_t count, until;
	bool connected;
	unsigned n;

	for (;;) {
		s->ops->work(s->ctx);
		sio_session_lock(s);
		if (s->closing)
			break;
		if (s->ops->has_work(s->ctx)) {
			sio_session_unlock(s);
			continue;
		}
		if (sio_session_may_resume(s)) {
			sio_session_resume(s);
			sio_session_unlock(s);
			continue;
		}
		if (s->posts && s->world->now(s->world) >= s->post_at)
			sio_session_send_posts(s);
		n = collect(s);
		connected = sio_session_connected(s);
		until = next_look(s);
		s->on_socket += connected;
		sio_session_unlock(s);
		s->world->poll(s->world, s->polls, n, until);
		sio_session_lock(s);
		s->on_socket -= connected;
		if (s->polls[0].readable)
			s->world->event_read(s->world, s->wake_fd, &count);
		if (sio_session_connected(s) && s->polls[1].readable)
			sio_session_receive(s);
		if (sio_session_away(s) || s->resuming)
			s->world->wake_all(s->world, s->lock);
		sio_session_unlock(s);
		for (unsigned i = 2; i < n; i++)
			if (s->polls[i].readable)
				s->ops->ready(s->ctx, s->cookies[i]);
	}
	if (s->close_late)
		close_descriptors(s);
	sio_session_unlock(s);
}
