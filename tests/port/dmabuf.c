/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmabuf.h"
#include "shim.h"

int dmabuf_of_udmabuf(struct port_world *w)
{
	struct udmabuf_create create = {.size = DMABUF_SIZE, .flags = UDMABUF_FLAGS_CLOEXEC};
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), mem, fd;

	if (dev < 0)
		return -1;
	mem = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	create.memfd = (uint32_t)mem;
	fd = ftruncate(mem, DMABUF_SIZE) < 0 || fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK) < 0
		     ? -1
		     : ioctl(dev, UDMABUF_CREATE, &create);
	shim_check(w, fd >= 0, "udmabuf makes a dma-buf");
	close(mem);
	close(dev);
	return fd;
}

int dmabuf_of_heap(struct port_world *w)
{
	struct dma_heap_allocation_data want = {.len = DMABUF_SIZE, .fd_flags = O_RDWR | O_CLOEXEC};
	int dev = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), got;

	if (dev < 0)
		return -1;
	got = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &want);
	shim_check(w, got == 0, "the heap gives a dma-buf");
	close(dev);
	return got == 0 ? (int)want.fd : -1;
}

int dmabuf_card(unsigned long what)
{
	int dev = open("/dev/smartio_card", O_RDWR | O_CLOEXEC), got;

	if (dev < 0)
		return -1;
	got = ioctl(dev, what);
	close(dev);
	return got;
}

int dmabuf_of_card(struct port_world *w)
{
	int fd = dmabuf_card(CARD_GIVE);

	(void)w;
	return fd;
}
