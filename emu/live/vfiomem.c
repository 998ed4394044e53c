/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/live/vfiomem.h"

/* Read by the signal's handler, in whichever thread it comes: a size of 0 is a free place. */
struct live_vfiomem_place {
	_Atomic uintptr_t at;
	_Atomic size_t size;
	/* Not the handler's. */
	struct live_vfiomem_file *file; /* NULL: it is not kept */
	uint64_t offset;
};

static _Atomic(struct live_vfiomem *) first; /* of all that are open */

/* The place, of this session or those behind it, that @at lies in; NULL: none. */
static struct live_vfiomem_place *place_at(const struct live_vfiomem *m, uintptr_t at)
{
	for (; m; m = m->next)
		for (unsigned i = 0; i < m->n_places; i++) {
			uintptr_t start = atomic_load(&m->place[i].at);
			size_t size = atomic_load(&m->place[i].size);

			if (size && at >= start && at - start < size)
				return &m->place[i];
		}
	return NULL;
}

/* Memory of nobody takes the place of what is no longer there. mmap() is one system call here. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	struct live_vfiomem_place *p = place_at(atomic_load(&first), (uintptr_t)info->si_addr);

	(void)context;
	if (p && mmap((void *)atomic_load(&p->at), atomic_load(&p->size), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
		return;
	/* Not ours: it comes again, and ends us. */
	signal(number, SIG_DFL);
}

void live_vfiomem_guard(void)
{
	struct sigaction sa = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

int live_vfiomem_open(struct live_vfiomem *m, unsigned places, unsigned files)
{
	m->place = calloc(places, sizeof(*m->place));
	m->file = files ? calloc(files, sizeof(*m->file)) : NULL;
	if (!m->place || (files && !m->file)) {
		free(m->place);
		free(m->file);
		*m = (struct live_vfiomem){0};
		return -ENOMEM;
	}
	m->n_places = places;
	m->n_files = files;
	m->next = atomic_load(&first);
	atomic_store(&first, m);
	return 0;
}

/* No thread looks at a machine's memory meanwhile. */
void live_vfiomem_close(struct live_vfiomem *m)
{
	struct live_vfiomem *before = atomic_load(&first);

	if (!m->place)
		return;
	if (before == m) {
		atomic_store(&first, m->next);
	} else {
		while (before->next != m)
			before = before->next;
		before->next = m->next;
	}
	free(m->place);
	free(m->file);
	*m = (struct live_vfiomem){0};
}

static bool is_same(const struct live_vfiomem_file *f, const struct stat *st, int mode)
{
	return f->users && f->device == st->st_dev && f->inode == st->st_ino && f->mode == mode;
}

/*
 * Emulated hosts map parts of it. An IOMMU of the machine has its RAM in many mappings, of the same
 * file: one descriptor is kept for all of them. NULL: there are too many files.
 */
static struct live_vfiomem_file *keep_file(struct live_vfiomem *m, int fd, const struct stat *st)
{
	int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
	struct live_vfiomem_file *f, *free_one = NULL;

	for (f = m->file; f < m->file + m->n_files; f++) {
		if (is_same(f, st, mode)) {
			f->users++;
			return f;
		}
		if (!f->users && !free_one)
			free_one = f;
	}
	if (!free_one)
		return NULL;
	*free_one = (struct live_vfiomem_file){.device = st->st_dev,
					       .inode = st->st_ino,
					       .mode = mode,
					       .users = 1,
					       .fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)};
	if (free_one->fd >= 0)
		return free_one;
	free_one->users = 0;
	return NULL;
}

static void put_file(struct live_vfiomem_file *f)
{
	if (f && --f->users == 0)
		close(f->fd);
}

static int remember(struct live_vfiomem *m, void *data, uint64_t size, int fd, uint64_t offset,
		    const struct stat *st)
{
	for (unsigned i = 0; i < m->n_places; i++) {
		struct live_vfiomem_place *p = &m->place[i];

		if (atomic_load(&p->size))
			continue;
		p->file = keep_file(m, fd, st);
		p->offset = offset;
		atomic_store(&p->at, (uintptr_t)data);
		atomic_store(&p->size, size);
		return 0;
	}
	return -ENOSPC;
}

static void forget(struct live_vfiomem *m, const void *data)
{
	for (unsigned i = 0; i < m->n_places; i++) {
		struct live_vfiomem_place *p = &m->place[i];

		if (!atomic_load(&p->size) || atomic_load(&p->at) != (uintptr_t)data)
			continue;
		put_file(p->file);
		p->file = NULL;
		atomic_store(&p->size, 0);
		return;
	}
}

int live_vfiomem_map(struct live_vfiomem *m, int fd, uint64_t offset, uint64_t size, bool write,
		     void **ret)
{
	struct stat st;
	void *data;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* Devices and huge pages report no size, or another: the kernel knows. */
	if (S_ISREG(st.st_mode) && (st.st_size < 0 || offset > (uint64_t)st.st_size ||
				    size > (uint64_t)st.st_size - offset))
		return -EINVAL;
	data = mmap(NULL, size, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd,
		    (off_t)offset);
	if (data == MAP_FAILED)
		return -errno;
	rc = remember(m, data, size, fd, offset, &st);
	if (rc < 0)
		munmap(data, size);
	else
		*ret = data;
	return rc;
}

void live_vfiomem_unmap(struct live_vfiomem *m, void *data, uint64_t size)
{
	forget(m, data);
	munmap(data, size);
}

int live_vfiomem_file(const void *data, uint64_t *ret_offset)
{
	uintptr_t at = (uintptr_t)data;
	const struct live_vfiomem_place *p = place_at(atomic_load(&first), at);

	if (!p || !p->file)
		return -1;
	*ret_offset = p->offset + (at - atomic_load(&p->at));
	return p->file->fd;
}
