/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O addresses of a device: which ones the kernel allows, and their allocation. */
#include <errno.h>
#include <stdlib.h>

#include "smartiod/port_vfio/vfio_own.h"

#define LOWEST 0x10000u /* no device is given address 0 */

void vfio_space_add(struct vfio_space *s, uint64_t start, uint64_t end)
{
	/* More holes than there is room for: only what lies below them is used. */
	if (end < LOWEST || s->n_holes == VFIO_HOLES)
		return;
	if (s->highest == 0) {
		s->lowest = start < LOWEST ? LOWEST : start;
	} else if (start > s->highest + 1) {
		s->hole[s->n_holes].base = s->highest + 1;
		s->hole[s->n_holes++].size = start - s->highest - 1;
	}
	s->highest = end;
}

struct vfio_device *vfio_space_partner(const struct vfio_port *p, const struct vfio_device *d)
{
	for (struct vfio_device *o = p->devices; o; o = o->next)
		if (o != d && o->space && o->info.iommu_group == d->info.iommu_group)
			return o;
	return NULL;
}

/* What this one has not, none of its group is given from now on. */
static int join(struct vfio_addresses *a, const struct vfio_space *s, struct sio_err *reterr)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < s->n_holes; i++) {
		r = sio_range_reserve(&a->range, s->hole[i].base, s->hole[i].size, reterr);
		if (r == -EEXIST || r == -EINVAL) /* as the others; or there are none anyway */
			r = 0;
	}
	return r;
}

int vfio_space_use(struct vfio_port *p, const struct vfio_space *s, struct vfio_device *d,
		   struct sio_err *reterr)
{
	const struct vfio_device *partner = vfio_space_partner(p, d);
	struct vfio_addresses *a = partner ? partner->space : calloc(1, sizeof(*a));
	int r = 0;

	if (!a)
		return sio_fail(reterr, -ENOMEM, "%s: out of memory: " SIO_MORE_MEMORY,
				d->info.name);
	a->devices++;
	d->space = a;
	if (!partner)
		r = sio_range_init(&a->range, d->info.name, s->lowest, s->highest - s->lowest + 1,
				   reterr);
	if (r == 0)
		r = join(a, s, reterr);
	if (r < 0)
		vfio_space_leave(d);
	return r;
}

void vfio_space_leave(struct vfio_device *d)
{
	struct vfio_addresses *a = d->space;

	d->space = NULL;
	if (!a || --a->devices)
		return;
	sio_range_done(&a->range);
	free(a);
}
