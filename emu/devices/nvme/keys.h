/* SPDX-License-Identifier: BSD-2-Clause */
/* The NVMe controller in a topology file. */
#ifndef EMU_NVME_KEYS_H
#define EMU_NVME_KEYS_H

#include "core/devtype.h"

#define EMU_NVME_TYPE "nvme"
#define EMU_NVME_VECTORS 2048u	       /* of MSI-X */
#define EMU_NVME_LARGEST (16ull << 40) /* all namespaces together */
#define EMU_NVME_FUNCTIONS 7u	       /* virtual ones: a slot has 8 function numbers */
#define EMU_NVME_PER_QUEUE UINT32_MAX  /* preset of vectors: as many as there are queues */

static const struct sio_devkey emu_nvme_namespace_keys[] = {
	{.name = "size",
	 .kind = SIO_DEVKEY_SIZE,
	 .offset = offsetof(struct sio_topo_namespace, size),
	 .min = 4096,
	 .max = EMU_NVME_LARGEST / SIO_TOPO_NAMESPACES,
	 .step = 4096,
	 .required = true,
	 .text = "size of the namespace"},
	{.name = "block",
	 .kind = SIO_DEVKEY_NUMBER,
	 .offset = offsetof(struct sio_topo_namespace, block_size),
	 .choice = {512, 4096},
	 .preset = 512,
	 .text = "bytes of a block"},
	{.name = "file",
	 .kind = SIO_DEVKEY_FILE,
	 .offset = offsetof(struct sio_topo_namespace, file),
	 .absent = "they are in memory, and zero at each start",
	 .text = "file that the blocks of the namespace are in"},
};

static const struct sio_devkey emu_nvme_keys[] = {
	{.name = "size",
	 .kind = SIO_DEVKEY_SIZE,
	 SIO_DEVKEY_AT(size),
	 .min = 4096,
	 .max = EMU_NVME_LARGEST,
	 .step = 4096,
	 .preset = 1u << 30,
	 .text = "size of its only namespace"},
	{.name = "block",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(block_size),
	 .choice = {512, 4096},
	 .preset = 512,
	 .text = "bytes of a block"},
	{.name = "file",
	 .kind = SIO_DEVKEY_FILE,
	 SIO_DEVKEY_AT(file),
	 .needs = "size",
	 .absent = "they are in memory, and zero at each start",
	 .text = "file that its blocks are in, of \"size\" bytes, made if it is not there"},
	{.name = "namespaces",
	 .kind = SIO_DEVKEY_LIST,
	 SIO_DEVKEY_AT(namespaces),
	 .min = 1,
	 .max = SIO_TOPO_NAMESPACES,
	 SIO_DEVKEY_ITEMS(emu_nvme_namespace_keys),
	 .item_size = sizeof(struct sio_topo_namespace),
	 .count = offsetof(struct sio_topo_device, n_namespaces),
	 .instead_of = {"size", "block", "file"},
	 .absent = "there is one, of \"size\", \"block\" and \"file\"",
	 .text = "the namespaces of a drive with several, from id 1 on"},
	{.name = "queue_pairs",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(queue_pairs),
	 .min = 1,
	 .max = 65535,
	 .preset = 31,
	 .text = "I/O queue pairs"},
	{.name = "queue_entries",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(queue_entries),
	 .min = 2,
	 .max = 65536,
	 .preset = 1024,
	 .text = "most entries of a queue"},
	{.name = "vectors",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(vectors),
	 .max = EMU_NVME_VECTORS,
	 .preset = EMU_NVME_PER_QUEUE,
	 .absent = "one for each queue, the admin queue included",
	 .text = "interrupt vectors (0: no interrupts)"},
	{.name = "cmb",
	 .kind = SIO_DEVKEY_SIZE,
	 SIO_DEVKEY_AT(cmb),
	 .min = 4096,
	 .max = SIO_TOPO_BAR_SPACE / 2,
	 .step = SIO_DEVKEY_POWER,
	 .absent = "it has none",
	 .text = "size of its controller memory buffer"},
	{.name = "virtual_functions",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(virtual_functions),
	 .max = EMU_NVME_FUNCTIONS,
	 .text = "PCI functions NAME-vf1 and so on that share its namespaces (SR-IOV); all are enabled "
		 "at the start"},
};

/* Size, block size and vectors, where the file gives them by namespaces or not at all. */
static inline void emu_nvme_derive(struct sio_topo_device *d)
{
	if (d->n_namespaces) {
		d->size = 0;
		d->block_size = d->namespaces[0].block_size;
	}
	for (uint32_t i = 0; i < d->n_namespaces; i++)
		d->size += d->namespaces[i].size;
	if (d->vectors == EMU_NVME_PER_QUEUE)
		d->vectors =
			d->queue_pairs < EMU_NVME_VECTORS ? d->queue_pairs + 1 : EMU_NVME_VECTORS;
}

static const struct sio_devtype emu_nvme_type = {
	.name = EMU_NVME_TYPE,
	.title = "an NVMe drive",
	.text = "an NVMe controller with a drive behind it",
	SIO_DEVTYPE_KEYS(emu_nvme_keys),
	.derive = emu_nvme_derive,
};

#endif
