/* SPDX-License-Identifier: BSD-2-Clause */
#undef NDEBUG /* what fakes assert is part of the test */
#include <errno.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "session/journal.h"

#define REQUEST_MAX 256

/* A library, and where it is in its talk with a new daemon. */
struct library {
	struct world_client *c;
	struct sio_journal *journal;
	enum { OPEN, HELLO, SAYING, STEP, GONE } state;
	unsigned step;
	uint64_t at;
	uint64_t before;  /* it, before what is said now */
	uint32_t talk_id; /* of the word that is to be answered */
	uint32_t saying;  /* the type of what it says that it has */
	bool leaves;	  /* and was just giving back */
	/* The one request of the test that is under way. */
	struct sio_journal_entry *entry;
	uint32_t pending; /* its id; 0: none */
	bool deaf;	  /* its answer is lost */
	bool takes_own;	  /* what it takes away was its own when it was made */
	size_t len;
	_Alignas(8) unsigned char request[REQUEST_MAX];
};

static struct library libraries[WORLD_CLIENTS];
static unsigned n_libraries, n_lost, n_lost_own, n_lost_harmless;

static struct library *of(const struct world_client *c)
{
	for (unsigned i = 0; i < n_libraries; i++)
		if (libraries[i].c == c && libraries[i].state != GONE)
			return &libraries[i];
	return NULL;
}

static void on_request(struct world *w, struct world_client *c, const void *msg, size_t len)
{
	const struct sio_msg *h = msg;
	struct library *l = of(c);
	uint32_t type = sio_from_le32(h->type);

	(void)w;
	if (type == SIO_MSG_HELLO && !l &&
	    sio_from_le32(((const struct sio_msg_hello *)msg)->kind) == SIO_CLIENT_LIBRARY) {
		assert(n_libraries < WORLD_CLIENTS);
		libraries[n_libraries++] = (struct library){.c = c, .journal = sio_journal_new()};
		return;
	}
	if (!l || type == SIO_MSG_HELLO || type == SIO_MSG_RESTORE || type == SIO_MSG_RESTORE_STEP)
		return;
	assert(!l->pending && len <= sizeof(l->request));
	assert(sio_journal_prepare(type, &l->entry) == 0);
	l->pending = sio_from_le32(h->id);
	l->len = len;
	memcpy(l->request, msg, len);
	l->takes_own = sio_journal_takes_own(l->journal, h);
}

static void on_message(struct world *w, struct world_client *c, const struct world_message *m)
{
	struct library *l = of(c);

	(void)w;
	if (!l)
		return;
	if (m->id == 0) {
		sio_journal_event(l->journal, (const struct sio_msg *)m->data);
	} else if (m->id == l->pending && m->type != SIO_MSG_HELLO && l->deaf) {
		l->deaf = false;
	} else if (m->id == l->pending && m->type != SIO_MSG_HELLO) {
		if (m->error)
			sio_journal_drop(l->entry);
		else
			sio_journal_done(l->journal, l->entry, (const struct sio_msg *)l->request,
					 (const struct sio_msg *)m->data);
		l->entry = NULL;
		l->pending = 0;
	}
}

/* ---- the talk ---- */

static void hello(struct world *w, struct library *l)
{
	struct sio_msg_hello m = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				  .kind = sio_to_le32(SIO_CLIENT_LIBRARY)};

	world_reconnect(w, l->c);
	sio_journal_begin(l->journal);
	l->state = HELLO;
	l->step = 1;
	l->at = 0;
	w->shown = l->c->owner;
	l->talk_id = world_send_with(w, l->c, SIO_MSG_HELLO, &m, sizeof(m), 1);
}

/* As if smartiod had answered: what it was to take away is not there any more. */
static void pretend(struct library *l)
{
	struct world_message *m = world_calloc(1, sizeof(*m));

	assert(m && l->c->n_messages < WORLD_MESSAGES);
	m->type = sio_from_le32(((struct sio_msg *)l->request)->type);
	m->id = l->pending;
	m->len = sizeof(struct sio_msg);
	l->c->message[l->c->n_messages++] = m;
	l->pending = 0;
}

static void ask_again(struct world *w, struct library *l)
{
	l->state = OPEN;
	if (!l->pending)
		return;
	if (!l->takes_own || sio_journal_has(l->journal, (const struct sio_msg *)l->request))
		world_send_raw(w, l->c, l->request, l->len);
	else
		pretend(l);
}

/* Is the request under way about the end of this? */
static bool gives_back(const struct library *l, const struct sio_msg_restore *m)
{
	const struct sio_msg_handle *req = (const void *)l->request;

	switch (sio_from_le32(req->h.type)) {
	case SIO_MSG_SEG_DISCONNECT:
	case SIO_MSG_DINT_DISCONNECT:
	case SIO_MSG_SEG_UNMAP:
	case SIO_MSG_DMA_UNMAP:
	case SIO_MSG_DEV_RETURN:
		return req->handle == m->handle;
	case SIO_MSG_DEV_UNVECTOR:
	case SIO_MSG_SHADOW_DEL:
		return sio_journal_leaves(m, &req->h);
	}
	return false;
}

static void say_next(struct world *w, struct library *l)
{
	struct sio_msg_restore_step end = {
		.step = sio_to_le32(l->step),
		.last_handle = sio_to_le32(sio_journal_last_handle(l->journal))};
	struct sio_msg_restore m;

	l->before = l->at;
	if (l->step > SIO_RESTORE_STEPS) {
		ask_again(w, l);
	} else if (sio_journal_next(l->journal, l->step, &l->at, &m)) {
		l->state = SAYING;
		l->saying = sio_from_le32(m.type);
		l->leaves = l->pending && gives_back(l, &m);
		if (l->pending && sio_journal_leaves(&m, (const struct sio_msg *)l->request))
			m.flags |= sio_to_le32(SIO_RESTORE_LEAVING);
		l->talk_id = world_send_with(w, l->c, SIO_MSG_RESTORE, &m, sizeof(m), 0);
	} else {
		l->state = STEP;
		l->talk_id = world_send_with(w, l->c, SIO_MSG_RESTORE_STEP, &end, sizeof(end), 0);
	}
}

/* Return: it went on. */
static bool go_on(struct world *w, struct library *l)
{
	const struct world_message *m;

	if (l->state == GONE || !w->host[l->c->host].ready)
		return false;
	if (!l->c->connected) {
		if (l->c->owner == 0 || l->c->cut)
			return false;
		hello(w, l);
		return true;
	}
	m = l->state == OPEN ? NULL : world_reply(l->c, l->talk_id);
	if (!m)
		return false;
	if (l->state != SAYING &&
	    m->error) { /* as the session: by another connection, from the start */
		l->c->connected = false;
		smartiod_client_gone(w->host[l->c->host].daemon, l->c->number);
		return true;
	}
	if (l->state == SAYING && m->error == ENOMEM) {
		l->at = l->before; /* as the session: once more */
	} else if (l->state == SAYING && m->error) {
		n_lost++;
		n_lost_harmless += l->leaves || l->saying == SIO_MSG_DEV_SEG_CREATE;
		n_lost_own += l->saying == SIO_MSG_SEG_CREATE || l->saying == SIO_MSG_DINT_CREATE;
		sio_journal_gone(l->journal, l->at);
	}
	if (l->state == STEP) {
		l->step++;
		l->at = 0;
	}
	say_next(w, l);
	return true;
}

void library_pump(struct world *w, void *unused)
{
	bool any = true;

	(void)unused;
	while (any) {
		any = false;
		for (unsigned i = 0; i < n_libraries; i++)
			any |= go_on(w, &libraries[i]);
	}
}

bool library_settled(const struct world *w)
{
	(void)w;
	for (unsigned i = 0; i < n_libraries; i++)
		if (libraries[i].state != GONE &&
		    (libraries[i].state != OPEN || !libraries[i].c->connected))
			return false;
	return true;
}

/* ---- life ---- */

void library_begin(struct world *w)
{
	w->on_request = on_request;
	w->on_message = on_message;
	n_libraries = n_lost = n_lost_own = n_lost_harmless = 0;
}

void library_gone(struct world_client *c)
{
	struct library *l = of(c);

	assert(l);
	sio_journal_drop(l->entry);
	sio_journal_free(l->journal);
	l->state = GONE;
}

void library_end(struct world *w)
{
	for (unsigned i = 0; i < n_libraries; i++)
		if (libraries[i].state != GONE)
			library_gone(libraries[i].c);
	n_libraries = 0;
	w->before_step = NULL;
	w->on_request = NULL;
	w->on_message = NULL;
	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
}

void library_lose_answer(struct world_client *c)
{
	of(c)->deaf = true;
}

bool library_busy(const struct world_client *c)
{
	const struct library *l = of(c);

	return l && (l->pending || l->state != OPEN);
}

unsigned library_lost(void)
{
	return n_lost;
}

unsigned library_lost_own(void)
{
	return n_lost_own;
}

unsigned library_lost_harmless(void)
{
	return n_lost_harmless;
}

bool library_next(struct world_client *c, unsigned step, uint64_t *at, struct sio_msg_restore *ret)
{
	return sio_journal_next(of(c)->journal, step, at, ret);
}

uint32_t say_hello(struct world *w, struct world_client *c, uint64_t owner, uint32_t kind)
{
	struct sio_msg_hello m = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				  .kind = sio_to_le32(kind)};
	const struct world_message *rep;
	uint32_t id;

	w->shown = owner;
	id = world_send_with(w, c, SIO_MSG_HELLO, &m, sizeof(m), 1);
	world_run(w);
	rep = world_reply(c, id);
	return rep ? rep->error : ~0u;
}

int say(struct world *w, struct world_client *c, const struct sio_msg_restore *m)
{
	struct sio_msg_restore copy = *m;
	const struct world_message *rep = world_call(w, c, SIO_MSG_RESTORE, &copy, sizeof(copy));

	return rep ? (int)rep->error : -1;
}

void say_step(struct world *w, struct world_client *c, uint32_t step)
{
	struct sio_msg_restore_step end = {.step = sio_to_le32(step),
					   .last_handle = sio_to_le32(1000)};

	world_send(w, c, SIO_MSG_RESTORE_STEP, &end, sizeof(end));
	world_run(w);
}

void speak_to_next(struct world *w, struct world_client *c, unsigned host)
{
	w->before_step = NULL;
	world_restart(w, host);
	world_run(w);
	world_reconnect(w, c);
	assert(say_hello(w, c, c->owner, SIO_CLIENT_LIBRARY) == 0);
}
