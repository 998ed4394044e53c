/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies by this CPU, to and from mappings; memcpy.c has the fast path. */
#include <errno.h>

#include "core/types.h"
#include "sisci/copy/copy.h"
#include "sisci/copy/group.h"
#include "sisci/copy/sequence.h"

#define TRIES 3 /* of a copy that is checked */

/* A copy between memory of the program and a map, checked before anything is touched. */
struct copy {
	struct sio_mapping *map; /* with a reference */
	uint8_t *in_map, *memory;
	size_t size;
	bool read; /* from the map */
};

int sio_copy_range(struct sio_library *lib, sci_map_t handle, size_t offset, size_t size,
		   bool write, struct sio_mapping **ret, uint8_t **ret_at, struct sio_err *err)
{
	struct sio_mapping *m = sio_object_get(lib, handle, SIO_MAPPING, err);
	size_t end, room;
	int rc = 0;

	if (!m)
		return err->code;
	room = sio_mapping_room(m);
	if (__builtin_add_overflow(offset, size, &end) || end > room)
		rc = sio_fail(err, -ERANGE,
			      "offset %#zx + size %#zx goes beyond the map's %#zx bytes", offset,
			      size, room);
	else if (write && m->read_only && !m->copier)
		rc = sio_fail(
			err, -EACCES,
			"the map, or a part of it, is read-only: one that may be written is right");
	else if (sio_object_is_lost(&m->o))
		rc = sio_object_fail_lost(&m->o, err);
	else if (sio_mapping_is_down(m))
		rc = sio_fail(err, -ENETDOWN, "the link to the segment is down");
	if (rc) {
		sio_object_put(&m->o);
		return rc;
	}
	*ret = m;
	*ret_at = (uint8_t *)m->pointer + offset;
	return 0;
}

/* Each barrier pairs with that of the other direction, or with SCIFlush(), at the other end. */
static void transfer(const struct copy *c)
{
	if (c->read) {
		sio_copy_in(c->memory, c->in_map, c->size, c->map->words);
		sio_from_fabric_barrier();
	} else {
		sio_copy_out(c->in_map, c->memory, c->size, c->map->words);
		sio_to_fabric_barrier();
	}
}

void sio_copy_begin(const struct sio_mapping *m, struct sio_copy_watch *ret)
{
	/* pairs with the count in mapping_path() */
	*ret = (struct sio_copy_watch){.cuts = __atomic_load_n(&m->cuts, __ATOMIC_ACQUIRE)};
	sio_sequence_begin(m, ret->seen);
}

/* No watcher sets words of our own, so we look at the map itself. */
sci_sequence_status_t sio_copy_judge(const struct sio_mapping *m,
				     const struct sio_copy_watch *watch)
{
	if (sio_object_is_lost(&m->o) || sio_mapping_is_down(m))
		return SCI_SEQ_NOT_RETRIABLE;
	/*
	 * A reader that finds the map back in its place finds that it was away: pairs with
	 * mapping_path().
	 */
	if (__atomic_load_n(&m->cuts, __ATOMIC_ACQUIRE) != watch->cuts)
		return SCI_SEQ_RETRIABLE;
	return sio_sequence_judge(m->o.lib, watch->seen);
}

static sci_sequence_status_t try_transfer(const struct copy *c)
{
	struct sio_copy_watch watch;

	sio_copy_begin(c->map, &watch);
	transfer(c);
	sio_sequence_wait_for_stores(c->read ? NULL : c->map->window);
	return sio_copy_judge(c->map, &watch);
}

static int transfer_checked(const struct copy *c, struct sio_err *err)
{
	sci_sequence_status_t status = SCI_SEQ_RETRIABLE;

	for (unsigned i = 0; i < TRIES && status == SCI_SEQ_RETRIABLE; i++)
		status = try_transfer(c);
	if (status != SCI_SEQ_OK)
		return sio_refuse(err, SCI_ERR_TRANSFER_FAILED,
				  "%zu bytes: the path failed during the copy (sequence status %d)",
				  c->size, (int)status);
	return 0;
}

static int copy(struct sio_library *lib, sci_sequence_t sequence, void *memory, sci_map_t map,
		size_t offset, size_t size, unsigned flags, struct sio_err *err)
{
	struct copy c = {.memory = memory, .size = size, .read = flags & SCI_FLAG_BLOCK_READ};
	int rc = sio_check_flags(flags, SCI_FLAG_BLOCK_READ | SCI_FLAG_ERROR_CHECK, 0, err);

	if (!rc && size)
		rc = sio_check_pointer(memory, "memAddr", err);
	if (!rc && sequence && !sio_handle_words(lib->handles, (uintptr_t)sequence, SIO_SEQUENCE))
		rc = sio_fail(err, -EINVAL, "handle %p is not that of a live sequence",
			      (void *)sequence);
	if (!rc)
		rc = sio_copy_range(lib, map, offset, size, !c.read, &c.map, &c.in_map, err);
	if (rc)
		return rc;
	if (c.map->copier && !c.read) {
		rc = sio_group_copy(c.map, memory, c.in_map, size, err);
		/* Without that flag it is the sequence that shows it. */
		if (rc == SCI_ERR_TRANSFER_FAILED && !(flags & SCI_FLAG_ERROR_CHECK))
			rc = 0;
	} else if (flags & SCI_FLAG_ERROR_CHECK)
		rc = transfer_checked(&c, err);
	else
		transfer(&c);
	sio_object_put(&c.map->o);
	return rc;
}

void sio_copy_slowly(sci_sequence_t sequence, void *memory, sci_map_t map, size_t offset,
		     size_t size, unsigned flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? copy(lib, sequence, memory, map, offset, size, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

void SCIMemCopy(void *memAddr, sci_map_t remoteMap, unsigned int remoteOffset, unsigned int size,
		unsigned int flags, sci_error_t *error)
{
	SCIMemCpy(NULL, memAddr, remoteMap, remoteOffset, size, flags, error);
}

static int write_to(struct sio_library *lib, volatile void *to, const void *from, size_t size,
		    struct sio_err *err)
{
	struct sio_mapping *m = sio_mapping_find(lib, to, size);
	int rc = 0;

	if (m && m->copier) {
		rc = sio_group_copy(m, from, (const uint8_t *)(uintptr_t)to, size, err);
	} else {
		sio_copy_out(to, from, size, m && m->words);
		/* pairs with SCIFlushReadBuffers() of who reads it */
		sio_to_fabric_barrier();
	}
	if (m)
		sio_object_put(&m->o);
	return rc == SCI_ERR_TRANSFER_FAILED ? 0 : rc;
}

void SCIMemWrite(void *memAddr, volatile void *remoteAddr, size_t size, unsigned int flags,
		 sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_check_flags(flags, 0, 0, &err) : err.code;

	if (!rc && size)
		rc = sio_check_pointer(memAddr, "memAddr", &err);
	if (!rc && size)
		rc = sio_check_pointer((const void *)(uintptr_t)remoteAddr, "remoteAddr", &err);
	if (!rc && size)
		rc = write_to(lib, remoteAddr, memAddr, size, &err);
	sio_api_leave(error, rc, &err);
}
