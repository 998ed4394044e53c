/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of emulated hosts: the memory of each is a memfd that can be neither cut short nor made
 * longer, nor closed to writers, since programs of the host get descriptors of it. A link in the
 * state directory leads there, for those who start QEMU.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/live/live.h"

static int make_file(uint64_t size, const uint64_t header[2])
{
	int fd = memfd_create("smartio-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 || pwrite(fd, header, 16, 0) != 16 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int open_pool(struct live *l, const struct sio_topo_host *h, struct live_pool *p,
		     uint64_t key, struct sio_err *reterr)
{
	const uint64_t header[2] = {htole64(key), htole64(h->node)};
	uint64_t size = emu_ntb_pool_file(h);
	char target[64];
	int rc = live_path(p->path, sizeof(p->path), reterr, "%s/memory.%s", l->state_dir, h->name);

	if (rc < 0)
		return rc;
	p->node = h->node;
	p->fd = make_file(size, header);
	if (p->fd < 0)
		return sio_fail(reterr, p->fd, "%" PRIu64 " bytes for the pool of host %s: %s",
				size, h->name, strerror(-p->fd));
	snprintf(target, sizeof(target), "/proc/%d/fd/%d", (int)getpid(), p->fd);
	unlink(p->path); /* we hold the directory's lock: what lies there is stale */
	if (symlink(target, p->path) < 0)
		return sio_fail(reterr, -errno, "%s: %s", p->path, strerror(errno));
	return 0;
}

int live_pools_open(struct live *l, uint64_t key, struct sio_err *reterr)
{
	int rc = 0;

	for (unsigned i = 0; i < l->topo->n_hosts; i++)
		l->n_pools += l->topo->host[i].pool_size != 0;
	if (!l->n_pools)
		return 0;
	l->pool = calloc(l->n_pools, sizeof(*l->pool));
	if (!l->pool) {
		l->n_pools = 0;
		return sio_no_memory(reterr, "pools of hosts");
	}
	for (unsigned i = 0; i < l->n_pools; i++)
		l->pool[i].fd = -1;
	for (unsigned i = 0, n = 0; rc == 0 && i < l->topo->n_hosts; i++)
		if (l->topo->host[i].pool_size)
			rc = open_pool(l, &l->topo->host[i], &l->pool[n++], key, reterr);
	if (rc == 0)
		emu_ntb_pool_key(l->ntb, key);
	return rc;
}

void live_pools_close(struct live *l)
{
	for (unsigned i = 0; i < l->n_pools; i++) {
		if (l->pool[i].fd < 0)
			continue;
		unlink(l->pool[i].path);
		close(l->pool[i].fd);
	}
	free(l->pool);
	l->pool = NULL;
	l->n_pools = 0;
}
