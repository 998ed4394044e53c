/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One domain of an IOMMU: what a device (or all that comes in through one adapter) may reach, and
 * where that is: I/O virtual address -> object and offset. Whole pages. Pure logic; mapping
 * allocates, translating does not.
 */
#ifndef CORE_IOMMU_H
#define CORE_IOMMU_H

#include <stdint.h>

#include "core/addrmap.h"
#include "core/err.h"
#include "core/types.h"

/* Rights, as in the port (SIO_ACCESS_*). */
#define SIO_IOMMU_READ 1u
#define SIO_IOMMU_WRITE 2u

struct sio_iommu {
	struct sio_addrmap map; /* region.access: SIO_IOMMU_* */
};

void sio_iommu_init(struct sio_iommu *d, const char *name);
void sio_iommu_done(struct sio_iommu *d);

/*
 * Maps @len bytes from @iova to those of @object from @offset on. Undo with sio_iommu_unmap().
 * Return: 0; -EINVAL: not whole pages, empty, wrapping, or no rights; -EEXIST: overlaps; -ENOMEM.
 */
int sio_iommu_map(struct sio_iommu *d, struct sio_dev_addr iova, uint64_t len, void *object,
		  uint64_t offset, uint32_t access, struct sio_err *reterr);
/* Ends the mapping that begins at @iova, as a whole. Return: 0; -ENOENT. */
int sio_iommu_unmap(struct sio_iommu *d, struct sio_dev_addr iova);

/* The result of a translation. */
struct sio_iommu_hit {
	void *object;
	uint64_t offset; /* of the byte asked for */
	uint64_t length; /* bytes from there to the mapping's end, at least 1 */
	uint32_t access; /* of the mapping */
};

/*
 * Return: 0; -ENOENT: nothing is mapped at @iova; -EACCES: the mapping there lacks some of @access.
 */
int sio_iommu_translate(const struct sio_iommu *d, struct sio_dev_addr iova, uint32_t access,
			struct sio_iommu_hit *ret);

#endif
