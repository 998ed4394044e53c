/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequences. What a check compares lies beside the sequence's handle, so that it takes no reference
 * and no lock: a fence, a read through the window, and loads of the status page.
 */
#include <errno.h>
#include <stdlib.h>

#include "session/quick.h"
#include "sisci/copy/sequence.h"
#include "smartio/io.h"
#include "smartio/uapi.h"

struct sio_sequence {
	struct sio_object o;
	struct sio_mapping *map;	/* with a reference; it may be unmapped before */
	struct sio_map_watcher watcher; /* of the map. Under the lock */
	volatile uint32_t *words;
};

static uint32_t get_word(const volatile uint32_t *words, unsigned which)
{
	/* pairs with the release in set_word() and, of the map's state, in sio_mapping_notify() */
	return __atomic_load_n(&words[which], __ATOMIC_ACQUIRE);
}

static void set_word(volatile uint32_t *words, unsigned which, uint32_t value)
{
	__atomic_store_n(&words[which], value, __ATOMIC_RELEASE); /* pairs with get_word() */
}

void sio_sequence_begin(const struct sio_mapping *m, volatile uint32_t *words)
{
	const volatile struct sio_status_page *page = m->o.lib->status;
	uint32_t was_down = SIO_MAP_WAS_DOWN;

	set_word(words, SIO_SEQUENCE_BOOT, m->peer_boot);
	if (m->path) {
		set_word(words, SIO_SEQUENCE_GENERATION,
			 sio_read32(&page->path[m->path - 1].generation));
		set_word(words, SIO_SEQUENCE_ERRORS, sio_read32(&page->path[m->path - 1].errors));
	}
	set_word(words, SIO_SEQUENCE_PATH, m->path);
	/* Not if it is down, or lost, by now: pairs with sio_mapping_notify(). */
	__atomic_compare_exchange_n(&words[SIO_SEQUENCE_MAP], &was_down, SIO_MAP_FINE, 0,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	/*
	 * Whoever has the generation of a path that went down sees its state, and stores after it:
	 * pairs with the barriers in publish() of emu and set_state() of smartio.ko.
	 */
	sio_from_fabric_barrier();
}

/* What the page says; an event of our smartiod may follow. */
static sci_sequence_status_t judge_path(const volatile struct sio_status_path *p,
					const volatile uint32_t *words)
{
	if ((uint32_t)sio_read64(&p->peer_boot) != get_word(words, SIO_SEQUENCE_BOOT) ||
	    sio_read32(&p->state) != SIO_LINK_UP)
		return SCI_SEQ_PENDING;
	/* The state, then the generation, which is written last: pairs with publish(), emu. */
	sio_from_fabric_barrier();
	if (sio_read32(&p->generation) != get_word(words, SIO_SEQUENCE_GENERATION) ||
	    sio_read32(&p->errors) != get_word(words, SIO_SEQUENCE_ERRORS))
		return SCI_SEQ_RETRIABLE;
	return SCI_SEQ_OK;
}

sci_sequence_status_t sio_sequence_judge(const struct sio_library *lib,
					 const volatile uint32_t *words)
{
	const volatile struct sio_status_page *page = lib->status;
	uint32_t path = get_word(words, SIO_SEQUENCE_PATH);
	sci_sequence_status_t status = SCI_SEQ_OK;

	switch (get_word(words, SIO_SEQUENCE_MAP)) {
	case SIO_MAP_DOWN:
	case SIO_MAP_LOST:
		return SCI_SEQ_NOT_RETRIABLE;
	case SIO_MAP_WAS_DOWN:
		status = SCI_SEQ_RETRIABLE;
		break;
	}
	if (path) {
		sci_sequence_status_t now = judge_path(&page->path[path - 1], words);

		if (now != SCI_SEQ_OK)
			status = now;
	}
	return status;
}

void sio_sequence_wait_for_stores(const volatile void *window)
{
	if (window)
		sio_push_stores(window);
	else
		sio_full_barrier(); /* the page is read behind the stores: pairs with publish() */
}

/*
 * Where a read pushes its stores. A sequence that ends meanwhile may leave its words to another:
 * then the handle is another, too. NULL: not needed, or the map is gone.
 */
static const volatile void *window_of(struct sio_library *lib, uintptr_t sequence,
				      const volatile uint32_t *words)
{
	uint64_t at = (uint64_t)get_word(words, SIO_SEQUENCE_WINDOW_HIGH) << 32 |
		      get_word(words, SIO_SEQUENCE_WINDOW_LOW);

	if (get_word(words, SIO_SEQUENCE_MAP) == SIO_MAP_LOST ||
	    sio_handle_words(lib->handles, sequence, SIO_SEQUENCE) != words)
		return NULL;
	return (const volatile void *)(uintptr_t)at;
}

void sio_sequence_push(struct sio_library *lib, sci_sequence_t sequence)
{
	const volatile uint32_t *words =
		sio_handle_words(lib->handles, (uintptr_t)sequence, SIO_SEQUENCE);

	sio_sequence_wait_for_stores(words ? window_of(lib, (uintptr_t)sequence, words) : NULL);
}

static void sequence_free(struct sio_object *o)
{
	struct sio_sequence *s = (void *)o;

	sio_object_put(&s->map->o);
	free(s);
}

const struct sio_kind_ops sio_sequence_kind = {
	.kind = SIO_SEQUENCE,
	.name = "sequence",
	.free = sequence_free,
};

/* Among the watchers of the map; if it is lost or unmapped already that is noted at once. */
static void join_map(struct sio_sequence *s)
{
	struct sio_map_watcher *w = &s->watcher;
	struct sio_mapping *m = s->map;

	sio_session_lock(m->o.lib->session);
	set_word(s->words, SIO_SEQUENCE_WINDOW_LOW, (uint32_t)(uintptr_t)m->window);
	set_word(s->words, SIO_SEQUENCE_WINDOW_HIGH, (uint32_t)((uintptr_t)m->window >> 32));
	w->state = &s->words[SIO_SEQUENCE_MAP];
	w->next = m->watchers;
	w->prev = &m->watchers;
	if (w->next)
		w->next->prev = &w->next;
	m->watchers = w;
	if (m->o.lost || !m->base)
		set_word(s->words, SIO_SEQUENCE_MAP, SIO_MAP_LOST);
	else if (sio_mapping_is_down(m))
		set_word(s->words, SIO_SEQUENCE_MAP, SIO_MAP_DOWN);
	sio_quick_set(m->o.lib->world, s->o.handle, NULL, 0);
	sio_session_unlock(m->o.lib->session);
}

static void leave_map(struct sio_sequence *s)
{
	struct sio_map_watcher *w = &s->watcher;

	sio_session_lock(s->o.lib->session);
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	sio_session_unlock(s->o.lib->session);
}

static int create(struct sio_library *lib, sci_map_t map, sci_sequence_t *ret, unsigned flags,
		  struct sio_err *err)
{
	struct sio_sequence *s;
	struct sio_mapping *m;
	int rc = sio_check_pointer(ret, "sequence", err);

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_FAST_BARRIER, 0, err);
	if (rc)
		return rc;
	m = sio_object_get(lib, map, SIO_MAPPING, err);
	if (!m)
		return err->code;
	s = calloc(1, sizeof(*s));
	if (!s) {
		sio_object_put(&m->o);
		return sio_no_memory(err, "a sequence");
	}
	s->o.kind = SIO_SEQUENCE;
	s->map = m;
	/* No child of the map: programs unmap before they remove the sequence, or forget to. */
	rc = sio_object_add(lib, &s->o, NULL, err);
	if (rc)
		return rc;
	s->words = sio_handle_words(lib->handles, s->o.handle, SIO_SEQUENCE);
	sio_sequence_begin(m, s->words);
	join_map(s);
	*ret = sio_object_handle(&s->o);
	sio_object_put(&s->o);
	return 0;
}

void SCICreateMapSequence(sci_map_t map, sci_sequence_t *sequence, unsigned int flags,
			  sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? create(lib, map, sequence, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

static int remove_sequence(struct sio_library *lib, sci_sequence_t sequence, unsigned flags,
			   struct sio_err *err)
{
	struct sio_sequence *s;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	s = sio_object_get(lib, sequence, SIO_SEQUENCE, err);
	if (!s)
		return err->code;
	rc = sio_object_claim(&s->o, false, err);
	if (rc) {
		sio_object_put(&s->o);
		return rc;
	}
	leave_map(s);
	sio_object_end(&s->o);
	return 0;
}

void SCIRemoveSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? remove_sequence(lib, sequence, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

sci_sequence_status_t SCIStartSequence(sci_sequence_t sequence, unsigned int flags,
				       sci_error_t *error)
{
	sci_sequence_status_t status = SCI_SEQ_NOT_RETRIABLE;
	struct sio_sequence *s = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_flags(flags, 0, 0, &err) : err.code;

	if (!rc) {
		s = sio_object_get(lib, sequence, SIO_SEQUENCE, &err);
		rc = err.code;
	}
	if (s) {
		sio_sequence_begin(s->map, s->words);
		status = sio_sequence_judge(lib, s->words);
		sio_object_put(&s->o);
	}
	sio_api_leave(error, rc, &err);
	return status;
}

sci_sequence_status_t SCICheckSequence(sci_sequence_t sequence, unsigned int flags,
				       sci_error_t *error)
{
	sci_sequence_status_t status = SCI_SEQ_NOT_RETRIABLE;
	const volatile uint32_t *words = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc =
		lib ? sio_check_flags(flags, SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER, 0, &err)
		    : err.code;

	if (!rc) {
		words = sio_handle_words(lib->handles, (uintptr_t)sequence, SIO_SEQUENCE);
		if (!words)
			rc = sio_fail(&err, -EINVAL, "handle %p is not that of a live sequence",
				      (void *)sequence);
	}
	if (words) {
		if (!(flags & SCI_FLAG_NO_FLUSH))
			sio_to_fabric_barrier(); /* pairs with SCIFlushReadBuffers() there */
		/* The stores before have arrived before the loads that show whether they did. */
		if (!(flags & SCI_FLAG_NO_STORE_BARRIER))
			sio_sequence_push(lib, sequence);
		status = sio_sequence_judge(lib, words);
	}
	sio_api_leave(error, rc, &err);
	return status;
}
