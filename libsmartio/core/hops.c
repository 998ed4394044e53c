/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/hops.h"

/* Chassis that what is @in is in, one within the other. */
static unsigned depth_of(const struct sio_topo_host *h, unsigned in)
{
	unsigned depth = 0;

	for (; in; depth++)
		in = h->chassis[in - 1].in;
	return depth;
}

unsigned sio_hops_meeting(const struct sio_topo_host *h, unsigned a, unsigned b)
{
	if (h->iommu)
		return 0;
	/* A chassis stands behind the one that it is in. */
	while (a != b) {
		if (a > b)
			a = h->chassis[a - 1].in;
		else
			b = h->chassis[b - 1].in;
	}
	return a;
}

unsigned sio_hops_within(const struct sio_topo_host *h, unsigned a, unsigned b)
{
	if (a == SIO_HOPS_MEMORY)
		return b == SIO_HOPS_MEMORY ? 0 : depth_of(h, b);
	if (b == SIO_HOPS_MEMORY)
		return depth_of(h, a);
	return depth_of(h, a) + depth_of(h, b) + 1 - 2 * depth_of(h, sio_hops_meeting(h, a, b));
}

static unsigned chain_length(const uint32_t *above)
{
	unsigned n = 0;

	while (n < SIO_HOPS_ABOVE && above[n])
		n++;
	return n;
}

unsigned sio_hops_above(const uint32_t *a, const uint32_t *b, bool iommu)
{
	unsigned n = chain_length(a), of_b = b ? chain_length(b) : 0, common = 0;

	if (!b)
		return n;
	while (!iommu && common < n && common < of_b && a[common] == b[common])
		common++;
	/* Where they meet: in the last chassis that both are in, or at the root. */
	return n + of_b + 1 - 2 * common;
}

unsigned sio_hops_over(const struct sio_path *path, unsigned here, unsigned there)
{
	/* Two adapters, and a switch between each two links. */
	return here + path->hops + 1 + there;
}
