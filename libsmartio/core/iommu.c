/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>

#include "core/iommu.h"

#define RIGHTS (SIO_IOMMU_READ | SIO_IOMMU_WRITE)

void sio_iommu_init(struct sio_iommu *d, const char *name)
{
	sio_addrmap_init(&d->map, name);
}

void sio_iommu_done(struct sio_iommu *d)
{
	sio_addrmap_done(&d->map);
}

int sio_iommu_map(struct sio_iommu *d, struct sio_dev_addr iova, uint64_t len, void *object,
		  uint64_t offset, uint32_t access, struct sio_err *reterr)
{
	struct sio_region region = {.base = iova.addr,
				    .size = len,
				    .access = access,
				    .object = object,
				    .offset = offset};
	uint64_t last;

	if ((iova.addr | len | offset) % SIO_PAGE_SIZE)
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " + %#" PRIx64 " at offset %#" PRIx64
				"; multiples of %u are right",
				d->map.name, iova.addr, len, offset, SIO_PAGE_SIZE);
	if (len && __builtin_add_overflow(offset, len - 1, &last))
		return sio_fail(reterr, -EINVAL, "%s: offset %#" PRIx64 " + %#" PRIx64 " wraps",
				d->map.name, offset, len);
	if (access == 0 || (access & ~RIGHTS))
		return sio_fail(reterr, -EINVAL,
				"%s: access %#" PRIx32 "; read (1), write (2) or both (3) is right",
				d->map.name, access);
	return sio_addrmap_add(&d->map, &region, reterr);
}

int sio_iommu_unmap(struct sio_iommu *d, struct sio_dev_addr iova)
{
	return sio_addrmap_remove(&d->map, iova.addr);
}

int sio_iommu_translate(const struct sio_iommu *d, struct sio_dev_addr iova, uint32_t access,
			struct sio_iommu_hit *ret)
{
	const struct sio_region *r = sio_addrmap_find(&d->map, iova.addr);
	uint64_t in;

	if (!r)
		return -ENOENT;
	if (access & ~r->access)
		return -EACCES;
	in = iova.addr - r->base;
	*ret = (struct sio_iommu_hit){.object = r->object,
				      .offset = r->offset + in,
				      .length = r->size - in,
				      .access = r->access};
	return 0;
}
