/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps of segments into the process. Pages are put in place under the session's lock, so that a
 * loss, which replaces them under the same lock, comes before or after as a whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/probe.h"
#include "core/types.h"
#include "session/quick.h"
#include "sisci/segment/segment.h"
#include "smartio/guest.h"
#include "smartio/io.h"
#include "smartio/uapi.h"

#define MAP_SERVED                                                                                 \
	(SCI_FLAG_FIXED_MAP_ADDR | SCI_FLAG_READONLY_MAP | SCI_FLAG_IO_MAP_IOSPACE |               \
	 SCI_FLAG_LOCK_OPERATION | SCI_FLAG_SHARED_MAP | SCI_FLAG_NO_MEMORY_LOOPBACK |             \
	 SCI_FLAG_WRITE_BACK_CACHE_MAP | SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP |                    \
	 SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP | SCI_FLAG_DMOVE_MAP |                                 \
	 SCI_FLAG_WRITES_DISABLE_GATHER_MAP | SCI_FLAG_DISABLE_128_BYTES_PACKETS |                 \
	 SCI_FLAG_BROADCAST)
#define MAP_KNOWN (SCI_FLAG_CONDITIONAL_INTERRUPT_MAP | SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP)
#define WIRE_FLAGS (SCI_FLAG_READONLY_MAP | SCI_FLAG_IO_MAP_IOSPACE)

/* What a program asks for. */
struct want {
	uint64_t offset, size;
	void *addr;
	unsigned flags;
};

int sio_check_range(uint64_t offset, uint64_t size, uint64_t bytes, struct sio_err *err)
{
	uint64_t end;

	if (size == 0)
		return sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT, "size 0; at least 1 byte is needed");
	if (__builtin_add_overflow(offset, size, &end) || end > bytes)
		return sio_fail(err, -ERANGE,
				"offset %#" PRIx64 " + size %#" PRIx64
				" goes beyond the segment's %#" PRIx64 " bytes",
				offset, size, bytes);
	return 0;
}

size_t sio_mapping_room(const struct sio_mapping *m)
{
	/* What lies in front of the program's pointer in its page is not its own. */
	return m->bytes - (uintptr_t)m->pointer % SIO_PAGE_SIZE;
}

static bool is_within(const struct sio_mapping *m, uintptr_t at, size_t size)
{
	uintptr_t base = (uintptr_t)m->base;

	return base && at >= base && at - base <= m->bytes && size <= m->bytes - (at - base);
}

struct sio_mapping *sio_mapping_find(struct sio_library *lib, const volatile void *at, size_t size)
{
	struct sio_mapping *found = NULL;

	if (__atomic_load_n(&lib->special_maps, __ATOMIC_RELAXED) == 0)
		return NULL;
	sio_session_lock(lib->session);
	for (struct sio_object *o = lib->objects; o && !found; o = o->next) {
		struct sio_mapping *m = (struct sio_mapping *)o;

		if (o->kind == SIO_MAPPING && (m->copier || m->words) && o->life != SIO_ENDED &&
		    is_within(m, (uintptr_t)at, size))
			found = m;
	}
	if (found)
		sio_handle_ref(lib->handles, found->o.handle);
	sio_session_unlock(lib->session);
	return found;
}

/* Under the lock: what short copies may believe of it. */
static void update_quick(const struct sio_mapping *m, bool again)
{
	struct sio_world *w = m->o.lib->world;

	if ((m->pages != SIO_PAGES_WHOLE && m->pages != SIO_PAGES_PIECES) || m->read_only ||
	    m->words)
		sio_quick_clear(w, m->o.handle);
	else if (again)
		sio_quick_again(w, m->o.handle, m->pointer, sio_mapping_room(m));
	else
		sio_quick_set(w, m->o.handle, m->pointer, sio_mapping_room(m));
}

static void drop_aside(struct sio_mapping *m)
{
	struct sio_world *w = m->o.lib->world;

	if (m->aside)
		w->unmap(w, m->aside, m->bytes);
	m->aside = NULL;
}

/* Before its pages become others. */
static void forget_mirrors(struct sio_mapping *m)
{
	struct sio_world *w = m->o.lib->world;

	if (m->mirrors)
		w->forget_stores(w, m->base, m->bytes);
	m->mirrors = false;
}

/* Under the lock. False: that changes nothing. */
static bool step(struct sio_mapping *m, enum sio_map_pages_event event)
{
	enum sio_map_pages next;

	if (!sio_map_pages_next((enum sio_map_pages)m->pages, event, &next))
		return false;
	/* pairs with the load in sio_mapping_is_down() */
	__atomic_store_n(&m->pages, next, __ATOMIC_SEQ_CST);
	return true;
}

/* When the library was terminated, what is left reads as ones and stays: a program may look at it.
 */
static void mapping_free(struct sio_object *o)
{
	struct sio_mapping *m = (void *)o;
	struct sio_world *w = o->lib->world;

	SIO_PROBE(smartio, unmap, m->pointer, m->bytes);
	forget_mirrors(m);
	if (m->base && sio_library_is_up(o->lib))
		w->unmap(w, m->base, m->bytes);
	drop_aside(m);
	sio_map_files_free(m->files, w);
	sio_mapping_watch_free(m);
	sio_map_copier_free(m);
	if (m->words)
		__atomic_sub_fetch(&o->lib->special_maps, 1, __ATOMIC_RELAXED);
	free(m);
}

void sio_mapping_notify(struct sio_mapping *m, enum sio_map_state state)
{
	for (struct sio_map_watcher *w = m->watchers; w; w = w->next)
		__atomic_store_n(w->state, state, __ATOMIC_RELEASE); /* pairs with get_word() */
}

static void mapping_lost(struct sio_object *o)
{
	struct sio_mapping *m = (void *)o;
	struct sio_world *w = o->lib->world;

	sio_quick_clear(w, m->o.handle);
	sio_mapping_notify(m, SIO_MAP_LOST);
	forget_mirrors(m);
	if (step(m, SIO_PAGES_LOSE))
		sio_object_cut(o, m->base, m->bytes);
	drop_aside(m);
}

const struct sio_kind_ops sio_mapping_kind = {
	.kind = SIO_MAPPING,
	.name = "map",
	.leaves = true,
	.lost_with_parent = true,
	.free = mapping_free,
	.lost = mapping_lost,
};

/* What cannot be kept is lost. */
static void mapping_path(struct sio_mapping *m, bool down)
{
	struct sio_world *w = m->o.lib->world;
	enum sio_map_pages_event event = down ? SIO_PAGES_PATH_DOWN : SIO_PAGES_PATH_UP;
	enum sio_map_pages next;
	int rc;

	if (!sio_map_pages_next((enum sio_map_pages)m->pages, event, &next))
		return;
	if (down)
		rc = w->map_aside(w, m->base, m->bytes, &m->aside);
	else
		rc = w->map_back(w, m->aside, m->base, m->bytes);
	if (rc < 0) {
		sio_object_lose(&m->o);
		return;
	}
	if (down) /* before step(); pairs with sio_copy_judge(), which looks the other way round */
		__atomic_add_fetch(&m->cuts, 1, __ATOMIC_SEQ_CST);
	else
		m->aside = NULL;
	step(m, event);
	update_quick(m, true);
	sio_mapping_notify(m, down ? SIO_MAP_DOWN : SIO_MAP_WAS_DOWN);
}

void sio_remote_segment_path(struct sio_object *segment, bool down)
{
	struct sio_remote_segment *seg = (void *)segment;

	if (segment->lost ||
	    !sio_remote_segment_step(seg, down ? SIO_CONNECTION_PATH_DOWN : SIO_CONNECTION_PATH_UP))
		return;
	for (struct sio_object *o = segment->first_child; o; o = o->sibling)
		if (o->kind == SIO_MAPPING)
			mapping_path((struct sio_mapping *)o, down);
}

void sio_segment_lose_maps(struct sio_object *segment)
{
	for (struct sio_object *o = segment->first_child; o; o = o->sibling)
		if (o->kind == SIO_MAPPING)
			sio_object_lose(o);
}

/* A map object with address space, not yet known to anybody. */
static int reserve(struct sio_library *lib, const struct want *want, struct sio_mapping **ret,
		   struct sio_err *err)
{
	uint64_t skip = want->offset % SIO_PAGE_SIZE, bytes;
	bool fixed = want->flags & SCI_FLAG_FIXED_MAP_ADDR;
	struct sio_mapping *m;
	int rc;

	if (fixed && ((uintptr_t)want->addr - skip) % SIO_PAGE_SIZE)
		return sio_refuse(err, SCI_ERR_ILLEGAL_ADDRESS,
				  "address %p and offset %#" PRIx64 " differ modulo %u bytes",
				  want->addr, want->offset, SIO_PAGE_SIZE);
	if (__builtin_add_overflow(want->size, skip + SIO_PAGE_SIZE - 1, &bytes))
		return sio_fail(err, -ERANGE, "size %#" PRIx64 " wraps", want->size);
	m = calloc(1, sizeof(*m));
	if (!m)
		return sio_no_memory(err, "a map");
	m->o.kind = SIO_MAPPING;
	m->o.lib = lib;
	m->bytes = bytes & ~(uint64_t)(SIO_PAGE_SIZE - 1);
	m->offset = want->offset - skip;
	m->read_only = want->flags & SCI_FLAG_READONLY_MAP;
	rc = lib->world->reserve(lib->world, fixed ? (char *)want->addr - skip : NULL, fixed,
				 m->bytes, &m->base);
	if (rc < 0) {
		free(m);
		if (fixed && rc != -ENOMEM)
			return sio_refuse(
				err, SCI_ERR_ILLEGAL_ADDRESS,
				"address %p is not available: it is in use or not allowed",
				want->addr);
		return sio_fail_mapping(lib, bytes, err);
	}
	m->pointer = (char *)m->base + skip;
	*ret = m;
	return 0;
}

/* Under the lock. */
static int place(struct sio_mapping *m, uint64_t offset, uint64_t bytes, int prot, int fd,
		 uint64_t fd_offset, struct sio_err *err)
{
	struct sio_world *w = m->o.lib->world;
	int rc = w->map(w, (char *)m->base + (offset - m->offset), bytes, prot, fd, fd_offset);

	if (rc == -ENOMEM)
		return sio_fail_mapping(m->o.lib, bytes, err);
	return rc < 0 ? sio_fail(err, -EACCES, "mapping %#" PRIx64 " bytes failed: error %d", bytes,
				 -rc)
		      : 0;
}

static int place_local(struct sio_mapping *m, struct sio_local_segment *seg, unsigned flags,
		       struct sio_err *err)
{
	int prot = SIO_PROT_READ | (flags & SCI_FLAG_READONLY_MAP ? 0 : SIO_PROT_WRITE);
	int rc = 0;
	bool lost;

	sio_session_lock(m->o.lib->session);
	lost = seg->o.lost;
	if (!lost && seg->memory != SIO_HAS_MEMORY)
		rc = sio_fail(
			err, -EPERM,
			"segment %#x has no memory yet: SCIRegisterSegmentMemory() comes first",
			seg->segment_id);
	else if (!lost && seg->imported)
		rc = sio_fail(err, -EOPNOTSUPP,
			      "segment %#x is a part of a file of the program: map the file",
			      seg->segment_id);
	else if (!lost)
		rc = place(m, m->offset, m->bytes, prot, seg->fd, seg->fd_offset + m->offset, err);
	if (!lost && !rc)
		step(m, SIO_PAGES_PLACE_PIECES);
	m->address = seg->phys_addr ? seg->phys_addr + m->offset : 0;
	sio_session_unlock(m->o.lib->session);
	return lost ? sio_object_fail_lost(&seg->o, err) : rc;
}

/* One piece of smartiod's answer, checked against what was asked and against the one before. */
static int place_piece(struct sio_mapping *m, const struct sio_wire_piece *p, const int *fds,
		       unsigned n_fds, uint64_t *at, struct sio_err *err)
{
	uint64_t offset = sio_from_le64(p->offset), bytes = sio_from_le64(p->bytes), end;
	uint64_t fd_offset = sio_from_le64(p->fd_offset);
	uint32_t fd = sio_from_le32(p->fd_index), access = sio_from_le32(p->access);

	if (offset < *at || bytes == 0 || __builtin_add_overflow(offset, bytes, &end) ||
	    end > m->offset + m->bytes || (offset | bytes | fd_offset) % SIO_PAGE_SIZE ||
	    (access && fd >= n_fds))
		return sio_fail(err, -EPROTO,
				"smartiod's piece %#" PRIx64 " + %#" PRIx64 " does not fit the map",
				offset, bytes);
	*at = end;
	if (!access)
		return 0;
	if (!(access & SIO_ACCESS_WRITE))
		m->read_only = true;
	return place(m, offset, bytes,
		     (access & SIO_ACCESS_READ ? SIO_PROT_READ : 0) |
			     (access & SIO_ACCESS_WRITE ? SIO_PROT_WRITE : 0),
		     fds[fd], fd_offset, err);
}

/*
 * Under the lock: registers that another borrower holds are in it to be read, and with them pages
 * to be written. A line in the log says why a store there ends the program.
 */
static void note_mirror(struct sio_mapping *m, const struct sio_wire_piece *p)
{
	const struct sio_remote_segment *seg = (const void *)m->o.parent;
	struct sio_world *w = m->o.lib->world;
	uint64_t offset = sio_from_le64(p->offset);
	char text[160];

	snprintf(text, sizeof(text),
		 "BAR %u of device %#x: another borrower holds these registers, and the map shows "
		 "them to be read alone (a map of nothing else is refused, and says who)",
		 seg->segment_id, seg->fdid);
	w->note_store(w, (char *)m->base + (offset - m->offset), sio_from_le64(p->bytes), offset,
		      text);
	m->mirrors = true;
}

/*
 * A piece that may be read alone, although all was to be written. The emulated hardware says that
 * it is a mirror, smartio.ko shows the registers themselves.
 */
static void note_mirrors(struct sio_mapping *m, const struct sio_rep_seg_map *rep, unsigned flags)
{
	const struct sio_remote_segment *seg = (void *)m->o.parent;

	for (unsigned i = 0; seg->is_bar && i < sio_from_le32(rep->n_pieces); i++)
		if (!(flags & SCI_FLAG_READONLY_MAP) && m->o.lib->world->note_store &&
		    sio_from_le32(rep->piece[i].access) == SIO_ACCESS_READ)
			note_mirror(m, &rep->piece[i]);
}

/* Under the lock: are registers of the device in it, to be written? */
static void note_registers(struct sio_mapping *m, const struct sio_rep_seg_map *rep)
{
	struct sio_remote_segment *seg = (void *)m->o.parent;

	for (unsigned i = 0; seg->is_bar && i < sio_from_le32(rep->n_pieces); i++)
		if (sio_from_le32(rep->piece[i].flags) & SIO_BAR_REGISTERS &&
		    sio_from_le32(rep->piece[i].access) & SIO_ACCESS_WRITE)
			m->registers = true;
}

static bool is_down(const struct sio_remote_segment *seg)
{
	return seg->connection == SIO_CONNECTION_DOWN ||
	       seg->connection == SIO_CONNECTION_REMOVED_DOWN;
}

static int place_remote(struct sio_mapping *m, const struct sio_rep_seg_map *rep, unsigned flags,
			const int *fds, unsigned n_fds, struct sio_err *err)
{
	struct sio_world *w = m->o.lib->world;
	uint32_t n = sio_from_le32(rep->n_pieces);
	uint64_t at = m->offset;
	int rc = 0;

	if (n > SIO_MAP_PIECES)
		return sio_fail(err, -EPROTO, "smartiod gave %u pieces, at most %u fit", n,
				SIO_MAP_PIECES);
	sio_session_lock(m->o.lib->session);
	if (m->o.lost || m->o.parent->lost)
		rc = sio_fail(err, -ECONNRESET, "the segment was lost meanwhile");
	else if (is_down((const struct sio_remote_segment *)m->o.parent))
		rc = sio_fail(err, -ENETDOWN, "the link to the segment is down");
	/* What no piece covers reads as ones. */
	if (!rc &&
	    (n != 1 || sio_from_le64(rep->piece[0].bytes) != m->bytes ||
	     !sio_from_le32(rep->piece[0].access)) &&
	    w->map_ones(w, m->base, m->bytes) < 0)
		rc = sio_no_memory(err, "pages of ones");
	for (unsigned i = 0; !rc && i < n; i++)
		rc = place_piece(m, &rep->piece[i], fds, n_fds, &at, err);
	if (!rc) {
		m->address = sio_from_le64(rep->address);
		note_registers(m, rep);
		note_mirrors(m, rep, flags);
	}
	if (!rc)
		step(m, n == 1 ? SIO_PAGES_PLACE_WHOLE : SIO_PAGES_PLACE_PIECES);
	/* A device's registers may change when they are read. */
	if (m->pages == SIO_PAGES_WHOLE && m->path &&
	    !((struct sio_remote_segment *)m->o.parent)->is_bar &&
	    sio_from_le32(rep->piece[0].access) & SIO_ACCESS_READ)
		m->window = m->base;
	sio_session_unlock(m->o.lib->session);
	return rc;
}

static int keep_files(struct sio_mapping *m, const struct sio_rep_seg_map *rep, int *fds,
		      unsigned n_fds, struct sio_err *err)
{
	struct sio_map_files *f = sio_map_files_new();

	if (!f)
		return sio_no_memory(err, "the files of a map");
	sio_map_files_take(f, rep, fds, n_fds);
	sio_session_lock(m->o.lib->session);
	m->files = f;
	sio_session_unlock(m->o.lib->session);
	return 0;
}

/* Of a BAR the path is chosen when it is mapped; the map is lost with it. */
static void take_path(struct sio_mapping *m, const struct sio_remote_segment *seg,
		      const struct sio_rep_seg_map *rep)
{
	const volatile struct sio_status_page *page = m->o.lib->status;

	if (!seg->is_bar || sio_from_le32(rep->path) == SIO_PATH_NONE)
		return;
	m->path = sio_status_place(m->o.lib, sio_from_le32(rep->path), seg->node);
	if (m->path)
		m->peer_boot = (uint32_t)sio_read64(&page->path[m->path - 1].peer_boot);
}

static int ask_map(struct sio_mapping *m, struct sio_remote_segment *seg, unsigned flags,
		   struct sio_err *err)
{
	struct sio_world *w = m->o.lib->world;
	struct sio_msg_seg_map req = {.handle = sio_to_le32(seg->o.id),
				      .flags = sio_to_le32(flags & WIRE_FLAGS),
				      .offset = sio_to_le64(m->offset),
				      .bytes = sio_to_le64(m->bytes)};
	struct sio_rep_seg_map rep;
	int fds[SIO_WIRE_MAX_FDS];
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_SEG_MAP,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = fds,
				.max_fds = SIO_WIRE_MAX_FDS,
				.done = sio_object_adopt,
				.arg = &m->o};
	int rc = sio_session_call(m->o.lib->session, &call, err);

	/* Removed at the exporter, and the event still on its way to us. */
	if (rc)
		return sio_error_as(rc, -ENOENT, SCI_ERR_NOT_CONNECTED);
	rc = sio_session_check_fds(m->o.lib->session, &call, 0, err);
	if (!rc)
		take_path(m, seg, &rep);
	if (!rc)
		rc = place_remote(m, &rep, flags, fds, call.n_fds, err);
	if (!rc && flags & SMARTIO_FLAG_KEEP_FILES)
		rc = keep_files(m, &rep, fds, call.n_fds, err);
	for (unsigned i = 0; i < call.n_fds; i++)
		if (fds[i] >= 0)
			w->close(w, fds[i]);
	if (!rc)
		rc = sio_error_as(sio_mapping_watch(m, &rep, err), -ENOENT, SCI_ERR_NOT_CONNECTED);
	if (rc)
		sio_object_leave(&m->o, SIO_MSG_SEG_UNMAP, NULL);
	return rc;
}

static void take_after(struct sio_mapping *m, const struct sio_remote_segment *seg)
{
	m->path = seg->path;
	m->peer_boot = seg->peer_boot;
	m->words = seg->is_bar;
	if (m->words)
		__atomic_add_fetch(&m->o.lib->special_maps, 1, __ATOMIC_RELAXED);
}

static int map_segment(struct sio_library *lib, struct sio_object *segment, uint64_t bytes,
		       const struct want *want, sci_map_t *ret, void **ret_pointer,
		       struct sio_err *err)
{
	struct sio_mapping *m = NULL;
	int rc = 0;

	if (sio_object_is_lost(segment))
		rc = sio_object_fail_lost(segment, err);
	if (!rc)
		rc = sio_check_range(want->offset, want->size, bytes, err);
	if (!rc)
		rc = reserve(lib, want, &m, err);
	if (rc)
		return rc;
	if (segment->kind == SIO_REMOTE_SEGMENT)
		take_after(m, (struct sio_remote_segment *)segment);
	rc = sio_object_add(lib, &m->o, segment, err);
	if (rc)
		return rc;
	if (segment->kind == SIO_REMOTE_SEGMENT && ((struct sio_remote_segment *)segment)->exact)
		rc = sio_map_copier_open(m, err);
	if (rc) {
		sio_object_end(&m->o);
		return rc;
	}
	if (segment->kind == SIO_LOCAL_SEGMENT)
		rc = place_local(m, (void *)segment, want->flags, err);
	else
		rc = ask_map(m, (void *)segment, want->flags, err);
	if (rc) {
		sio_object_end(&m->o);
		return rc;
	}
	sio_session_lock(lib->session);
	if (m->o.life != SIO_ENDED)
		update_quick(m, false);
	sio_session_unlock(lib->session);
	SIO_PROBE(smartio, map, m->pointer, m->bytes, segment->kind == SIO_REMOTE_SEGMENT);
	*ret = sio_object_handle(&m->o);
	*ret_pointer = m->pointer;
	sio_object_put(&m->o);
	return 0;
}

/* The segment to be mapped, with a reference, if @want and @map can be right; NULL: err->code. */
static void *segment_to_map(struct sio_library *lib, void *segment, enum sio_kind kind,
			    const struct want *want, const sci_map_t *map, struct sio_err *err)
{
	unsigned served = MAP_SERVED | (kind == SIO_REMOTE_SEGMENT ? SMARTIO_FLAG_KEEP_FILES : 0);

	if (!lib || sio_check_pointer(map, "map", err) ||
	    sio_check_flags(want->flags, served, MAP_KNOWN, err))
		return NULL;
	return sio_object_get(lib, segment, kind, err);
}

static int check_mappable(struct sio_remote_segment *seg, unsigned flags, struct sio_err *err)
{
	int rc = sio_remote_segment_check(seg, err);

	if (!rc && flags & SMARTIO_FLAG_KEEP_FILES && !seg->is_bar)
		rc = sio_refuse(err, SCI_ERR_ILLEGAL_FLAG,
				"SMARTIO_FLAG_KEEP_FILES is for maps of BARs");
	if (!rc && flags & SCI_FLAG_BROADCAST && seg->node != DIS_BROADCAST_NODEID_GROUP_ALL)
		rc = sio_refuse(err, SCI_ERR_ILLEGAL_FLAG,
				"SCI_FLAG_BROADCAST goes with a connection to a multicast group; "
				"this one is to segment %#x of node %u",
				seg->segment_id, seg->node);
	if (!rc && seg->exact && !(flags & SCI_FLAG_READONLY_MAP))
		rc = sio_fail(err, -EOPNOTSUPP,
			      "stores do not reach the members of an exact multicast group: map it "
			      "with SCI_FLAG_READONLY_MAP for SCIMemCpy(), or use a DMA queue");
	return rc;
}

volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset,
				   size_t size, void *addr, unsigned int flags, sci_error_t *error)
{
	struct want want = {offset, size, addr, flags};
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_remote_segment *seg =
		segment_to_map(lib, segment, SIO_REMOTE_SEGMENT, &want, map, &err);
	void *pointer = NULL;
	int rc = seg ? check_mappable(seg, flags, &err) : err.code;

	if (!rc)
		rc = map_segment(lib, &seg->o, seg->bytes, &want, map, &pointer, &err);
	if (seg)
		sio_object_put(&seg->o);
	sio_api_leave(error, rc, &err);
	return pointer;
}

void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map, size_t offset, size_t size,
			 void *addr, unsigned int flags, sci_error_t *error)
{
	struct want want = {offset, size, addr, flags};
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_local_segment *seg =
		segment_to_map(lib, segment, SIO_LOCAL_SEGMENT, &want, map, &err);
	void *pointer = NULL;
	int rc = seg ? map_segment(lib, &seg->o, seg->bytes, &want, map, &pointer, &err) : err.code;

	if (seg)
		sio_object_put(&seg->o);
	sio_api_leave(error, rc, &err);
	return pointer;
}

static int unmap(struct sio_library *lib, sci_map_t map, unsigned flags, struct sio_err *err)
{
	struct sio_mapping *m;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	m = sio_object_get(lib, map, SIO_MAPPING, err);
	if (!m)
		return err->code;
	rc = sio_object_claim(&m->o, false, err);
	if (rc) {
		sio_object_put(&m->o);
		return rc;
	}
	sio_map_copier_close(m);
	sio_session_lock(lib->session);
	sio_quick_clear(lib->world, m->o.handle);
	sio_mapping_notify(m, SIO_MAP_LOST);
	forget_mirrors(m);
	/* What was stored is on its way before it is unmapped: pairs with the system call. */
	sio_to_fabric_barrier();
	lib->world->unmap(lib->world, m->base, m->bytes);
	m->base = NULL;
	step(m, SIO_PAGES_UNMAP);
	drop_aside(m);
	m->registers = false;
	sio_session_unlock(lib->session);
	rc = sio_object_leave(&m->o, SIO_MSG_SEG_UNMAP, err);
	sio_object_end(&m->o);
	return rc;
}

void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? unmap(lib, map, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

volatile void *SCIGetMapPointer(sci_map_t map)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_mapping *m = lib ? sio_object_get(lib, map, SIO_MAPPING, &err) : NULL;
	void *pointer = m ? m->pointer : NULL;

	if (m)
		sio_object_put(&m->o);
	sio_api_leave(NULL, m ? 0 : err.code, &err);
	return pointer;
}
