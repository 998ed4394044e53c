/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>

#include "core/placement.h"

/*
 * Relative costs of one access over one link. A posted write occupies the link once and nobody
 * waits; a read crosses twice and its asker waits for both. The ratio decides ties between one
 * read and several writes: no number of write hints may outweigh one read.
 */
#define COST_POSTED 1u
#define COST_READ 8u
#define PREFERRED (1ull << 32) /* greater than all costs of the other side together */

static bool has(uint32_t flags, uint32_t flag)
{
	return (flags & flag) == flag;
}

static uint64_t side_cost(unsigned hops, bool reads, bool writes, bool shared)
{
	uint64_t per_hop = (reads ? COST_READ : 0) + (writes ? COST_POSTED : 0);

	/* Others of the same kind reach it the same way; they count once more. */
	return per_hop * hops * (shared ? 2 : 1);
}

static uint64_t place_cost(const struct sio_place *p, uint32_t hints, uint32_t flags)
{
	uint64_t device = side_cost(p->device_hops, hints & SIO_HINT_DEVICE_READ,
				    hints & SIO_HINT_DEVICE_WRITE, hints & SIO_HINT_P2P);
	uint64_t host = side_cost(p->host_hops, hints & SIO_HINT_HOST_READ,
				  hints & SIO_HINT_HOST_WRITE, hints & SIO_HINT_MULTIHOST);
	bool prefer_device = has(flags, SIO_PLACE_DEVICE_PREFER_BANDWIDTH);
	bool prefer_host = has(flags, SIO_PLACE_HOST_PREFER_BANDWIDTH);

	if (prefer_device && !prefer_host)
		device *= PREFERRED;
	if (prefer_host && !prefer_device)
		host *= PREFERRED;
	return device + host;
}

static bool allowed(const struct sio_place *p, uint32_t flags)
{
	if (has(flags, SIO_PLACE_DEVICE_SIDE_ONLY) && !p->lender)
		return false;
	if (has(flags, SIO_PLACE_LOCAL_ONLY) && !p->borrower)
		return false;
	return true;
}

/* A modifier without what it modifies, a part of a flag, or a bit without meaning. */
static int check(uint32_t hints, uint32_t flags, struct sio_err *reterr)
{
	static const uint32_t known[] = {SIO_PLACE_DEVICE_SIDE_ONLY, SIO_PLACE_LOCAL_ONLY,
					 SIO_PLACE_DEVICE_PREFER_BANDWIDTH,
					 SIO_PLACE_HOST_PREFER_BANDWIDTH};
	uint32_t covered = 0;

	if (hints & ~SIO_HINTS)
		return sio_fail(reterr, -EINVAL,
				"access hints %#" PRIx32 ": unknown bits %#" PRIx32, hints,
				hints & ~SIO_HINTS);
	if ((hints & SIO_HINT_MULTIHOST) && !(hints & (SIO_HINT_HOST_READ | SIO_HINT_HOST_WRITE)))
		return sio_fail(reterr, -EINVAL,
				"access hints %#" PRIx32 ": multi-host without host read or write",
				hints);
	if ((hints & SIO_HINT_P2P) && !(hints & (SIO_HINT_DEVICE_READ | SIO_HINT_DEVICE_WRITE)))
		return sio_fail(reterr, -EINVAL,
				"access hints %#" PRIx32
				": peer-to-peer without device read or write",
				hints);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has(flags, known[i]))
			covered |= known[i];
	if (flags & ~covered)
		return sio_fail(reterr, -EINVAL,
				"placement flags %#" PRIx32 ": unknown bits %#" PRIx32, flags,
				flags & ~covered);
	return 0;
}

int sio_placement_rank(const struct sio_place *place, unsigned n, uint32_t hints, uint32_t flags,
		       unsigned *ret_order, struct sio_err *reterr)
{
	uint64_t cost[SIO_PLACE_SITES];
	unsigned count = 0;
	int r = check(hints, flags, reterr);

	if (r < 0)
		return r;
	if (n > SIO_PLACE_SITES)
		return sio_fail(reterr, -EINVAL, "%u places; at most %u are right", n,
				SIO_PLACE_SITES);
	if (!(hints & ~(SIO_HINT_MULTIHOST | SIO_HINT_P2P)))
		hints |= SIO_HINT_DEVICE_READ | SIO_HINT_DEVICE_WRITE | SIO_HINT_HOST_READ |
			 SIO_HINT_HOST_WRITE;
	for (unsigned i = 0; i < n; i++) {
		uint64_t c = place_cost(&place[i], hints, flags);
		unsigned at = count;

		if (!allowed(&place[i], flags))
			continue;
		for (; at > 0 && cost[at - 1] > c; at--) {
			cost[at] = cost[at - 1];
			ret_order[at] = ret_order[at - 1];
		}
		cost[at] = c;
		ret_order[at] = i;
		count++;
	}
	if (count == 0)
		return sio_fail(reterr, -EINVAL,
				"placement flags %#" PRIx32
				": no memory is as near to device and host as they ask",
				flags);
	return (int)count;
}
