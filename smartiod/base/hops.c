/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "core/hops.h"
#include "smartiod/base/hops.h"

_Static_assert(1 + SIO_MAX_ADAPTERS <= SIO_WIRE_HOPS, "adapters");
_Static_assert(SIO_ABOVE == SIO_HOPS_ABOVE, "chassis of real hosts");

struct smartiod_hops smartiod_hops_of(const struct sio_topo_host *h, unsigned in)
{
	struct smartiod_hops hops = {.memory = (uint8_t)sio_hops_within(h, in, SIO_HOPS_MEMORY)};

	for (unsigned i = 0; i < h->n_adapters; i++)
		hops.adapter[i] = (uint8_t)sio_hops_within(h, in, h->adapter[i].in);
	return hops;
}

struct smartiod_hops smartiod_hops_above(const struct smartiod *d, const uint32_t *above,
					 bool iommu)
{
	static const uint32_t none[SIO_ABOVE];
	struct smartiod_hops hops = {
		.memory = (uint8_t)sio_hops_above(above ? above : none, NULL, iommu)};

	for (unsigned i = 0; i < d->host->n_adapters; i++)
		hops.adapter[i] =
			(uint8_t)(above ? sio_hops_above(above, d->adapter[i].above, iommu)
					: sio_hops_above(d->adapter[i].above, NULL, iommu));
	return hops;
}

void smartiod_hops_encode(const struct smartiod_hops *hops, uint8_t ret[SIO_WIRE_HOPS])
{
	memset(ret, 0, SIO_WIRE_HOPS);
	ret[0] = hops->memory;
	memcpy(ret + 1, hops->adapter, sizeof(hops->adapter));
}

struct smartiod_hops smartiod_hops_decode(const uint8_t hops[SIO_WIRE_HOPS])
{
	struct smartiod_hops ret = {.memory = hops[0]};

	memcpy(ret.adapter, hops + 1, sizeof(ret.adapter));
	return ret;
}
