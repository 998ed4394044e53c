/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file with the RAM of all mapped machines: where each one's part is; and the size of the files
 * that are emulated hosts' pools.
 */
#include <errno.h>

#include "emu/ntb/ntb.h"

#define POOL_UNIT (2ull << 20) /* where a machine's RAM begins: for large pages */

static uint64_t pool_share(const struct sio_topo_host *machine)
{
	return machine->mapped ? (machine->ram_size + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT : 0;
}

uint64_t emu_ntb_pool_offset(const struct sio_topology *topo, unsigned machine)
{
	uint64_t offset = 0;

	for (unsigned i = 0; i < machine; i++)
		offset += pool_share(&topo->machine[i]);
	return offset;
}

/* As a BAR can have it. */
static uint64_t bar_size(uint64_t bytes)
{
	uint64_t size = POOL_UNIT;

	while (size < bytes)
		size <<= 1;
	return bytes ? size : 0;
}

uint64_t emu_ntb_pool_size(const struct sio_topology *topo)
{
	return bar_size(emu_ntb_pool_offset(topo, topo->n_machines));
}

uint64_t emu_ntb_pool_file(const struct sio_topo_host *host)
{
	return bar_size(host->pool_size);
}

/*
 * QEMU 11.1 says where the bytes lie in the memory that it has of the file, not in the file: with
 * its RAM's offset there they would be another machine's. RAM is known by its bus addresses, which
 * are those that the others have of it; and the function that shows the file has all of it.
 */
int emu_ntb_pool_place(const struct sio_topology *topo, uint32_t node, uint64_t address,
		       uint64_t size, uint64_t *offset)
{
	for (unsigned i = 0; i < topo->n_machines; i++) {
		const struct sio_topo_host *m = &topo->machine[i];

		if (m->node != node || !m->mapped || size > m->ram_size ||
		    address > m->ram_size - size)
			continue;
		*offset = emu_ntb_pool_offset(topo, i) + address;
		return 0;
	}
	return *offset == 0 && size == emu_ntb_pool_size(topo) ? 0 : -ERANGE;
}
