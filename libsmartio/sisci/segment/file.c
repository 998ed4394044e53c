/* SPDX-License-Identifier: BSD-2-Clause */
/* The files behind a mapping of a BAR, for a program that hands them on (smartio/guest.h). */
#include <errno.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/segment/segment.h"
#include "smartio/guest.h"
#include "smartio/uapi.h"

struct sio_map_files {
	struct piece {
		uint64_t offset, bytes; /* in the segment */
		uint64_t fd_offset;
		int fd; /* -1: it is the same as of another piece, or none */
		unsigned same;
	} piece[SIO_MAP_PIECES];
	unsigned n;
};

struct sio_map_files *sio_map_files_new(void)
{
	return calloc(1, sizeof(struct sio_map_files));
}

void sio_map_files_take(struct sio_map_files *f, const struct sio_rep_seg_map *rep, int *fds,
			unsigned n_fds)
{
	unsigned taken[SIO_WIRE_MAX_FDS];

	for (unsigned i = 0; i < n_fds && i < SIO_WIRE_MAX_FDS; i++)
		taken[i] = SIO_MAP_PIECES;
	for (unsigned i = 0; i < sio_from_le32(rep->n_pieces); i++) {
		const struct sio_wire_piece *p = &rep->piece[i];
		uint32_t fd = sio_from_le32(p->fd_index);
		struct piece *to = &f->piece[f->n];

		/* Of registers there is one writable view at a time: this program's. */
		if (!(sio_from_le32(p->access) & SIO_ACCESS_WRITE) || fd >= n_fds ||
		    sio_from_le32(p->flags) & SIO_BAR_REGISTERS)
			continue;
		*to = (struct piece){.offset = sio_from_le64(p->offset),
				     .bytes = sio_from_le64(p->bytes),
				     .fd_offset = sio_from_le64(p->fd_offset),
				     .fd = fds[fd],
				     .same = f->n};
		if (taken[fd] < SIO_MAP_PIECES)
			to->same = taken[fd];
		else
			taken[fd] = f->n;
		fds[fd] = -1;
		f->n++;
	}
}

void sio_map_files_free(struct sio_map_files *f, struct sio_world *w)
{
	for (unsigned i = 0; f && i < f->n; i++)
		if (f->piece[i].fd >= 0)
			w->close(w, f->piece[i].fd);
	free(f);
}

/* Under the lock. Return: -1: there is nothing. */
static int find(const struct sio_mapping *m, uint64_t offset, uint64_t *ret_offset,
		size_t *ret_bytes)
{
	for (unsigned i = 0; i < m->files->n; i++) {
		const struct piece *p = &m->files->piece[i];

		if (offset < p->offset || offset - p->offset >= p->bytes)
			continue;
		*ret_offset = p->fd_offset + (offset - p->offset);
		*ret_bytes = p->bytes - (offset - p->offset);
		return m->files->piece[p->same].fd;
	}
	return -1;
}

int smartio_map_file(sci_map_t map, size_t offset, uint64_t *fileOffset, size_t *bytes,
		     sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_mapping *m = lib ? sio_object_get(lib, map, SIO_MAPPING, &err) : NULL;
	int rc = m ? 0 : err.code, fd = -1;

	if (!rc)
		rc = sio_check_pointer(fileOffset, "fileOffset", &err);
	if (!rc)
		rc = sio_check_pointer(bytes, "bytes", &err);
	if (!rc) {
		sio_session_lock(lib->session);
		if (m->files)
			fd = find(m, m->offset + offset, fileOffset, bytes);
		else
			rc = sio_fail(&err, -EINVAL,
				      "this map was made without SMARTIO_FLAG_KEEP_FILES");
		sio_session_unlock(lib->session);
	}
	if (m)
		sio_object_put(&m->o);
	sio_api_leave(error, rc, &err);
	return fd;
}
