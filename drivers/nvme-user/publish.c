/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The manager's shared segment: how clients find the manager, and what it publishes about the
 * drive.
 */
#include <nvme/types.h>

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define CNS_NAMESPACE 0
#define CNS_CONTROLLER 1
#define CNS_ACTIVE 2

static uint32_t features_of(const struct nvme_id_ctrl *id)
{
	const uint16_t oncs = le16toh(id->oncs);

	return (id->vwc & 1 ? SMARTIO_NVME_HAS_CACHE : 0) |
	       (oncs & NVME_CTRL_ONCS_DSM ? SMARTIO_NVME_HAS_DEALLOCATE : 0) |
	       (oncs & NVME_CTRL_ONCS_WRITE_ZEROES ? SMARTIO_NVME_HAS_WRITE_ZEROES : 0);
}

static void describe_controller(struct sio_nvme_meta *meta, const struct nvme_id_ctrl *id)
{
	meta->vendor = le16toh(id->vid);
	memcpy(meta->serial, id->sn, sizeof(meta->serial));
	memcpy(meta->model, id->mn, sizeof(meta->model));
	memcpy(meta->firmware, id->fr, sizeof(meta->firmware));
	meta->sgls = le32toh(id->sgls) & 3;
	meta->features = features_of(id);
	meta->max_transfer = SIO_NVME_LARGEST;
	if (id->mdts && id->mdts < 9)
		meta->max_transfer = SIO_NVME_PAGE << id->mdts;
}

static int describe_namespace(struct smartio_nvme_manager *m, uint32_t nsid, void *page)
{
	struct sio_nvme_wire_ns *ns = &m->meta.ns[m->meta.namespaces];
	const struct nvme_id_ns *id = page;
	uint32_t format;
	int rc = sio_nvme_ctrl_identify(&m->ctrl, CNS_NAMESPACE, nsid, page, NULL);

	if (rc)
		return rc;
	format = id->flbas & 0xf;
	ns->id = nsid;
	ns->blocks = le64toh(id->nsze);
	ns->block_size = 0;
	if (id->lbaf[format].ms == 0 && id->lbaf[format].ds >= 9 && id->lbaf[format].ds <= 16)
		ns->block_size = 1u << id->lbaf[format].ds;
	m->meta.namespaces++;
	return 0;
}

/*
 * A number that is another one where a namespace has other blocks, with whichever manager: a client
 * that knew it so would store to other places than it means. FNV-1a.
 */
static uint32_t geometry(const struct sio_nvme_meta *meta)
{
	uint32_t hash = 2166136261u;

	for (uint32_t i = 0; i < meta->namespaces; i++) {
		const struct sio_nvme_wire_ns *ns = &meta->ns[i];
		const uint64_t word[] = {ns->id, ns->block_size, ns->blocks};

		for (unsigned k = 0; k < 3 * 8; k++)
			hash = (hash ^ (uint8_t)(word[k / 8] >> 8 * (k % 8))) * 16777619u;
	}
	return hash ? hash : 1;
}

static int describe_namespaces(struct smartio_nvme_manager *m, void *page, uint32_t *list)
{
	int rc = sio_nvme_ctrl_identify(&m->ctrl, CNS_ACTIVE, 0, list, NULL);

	m->meta.namespaces = 0;
	memset(m->meta.ns, 0, sizeof(m->meta.ns));
	for (unsigned i = 0; rc == 0 && i < SIO_NVME_NAMESPACES && list[i]; i++)
		rc = describe_namespace(m, le32toh(list[i]), page);
	m->meta.formats = geometry(&m->meta);
	return rc;
}

static int describe(struct smartio_nvme_manager *m, uint32_t pairs, void *page, uint32_t *list)
{
	struct sio_nvme_meta *meta = &m->meta;
	int rc = sio_nvme_ctrl_identify(&m->ctrl, CNS_CONTROLLER, 0, page, NULL);

	if (rc)
		return rc;
	describe_controller(meta, page);
	meta->queue_pairs = pairs;
	if (pairs == 0)
		rc = sio_nvme_ctrl_queues(&m->ctrl, &meta->queue_pairs);
	if (rc)
		return rc;
	return describe_namespaces(m, page, list);
}

int sio_nvme_manager_describe(struct smartio_nvme_manager *m, uint32_t pairs)
{
	struct sio_nvme_meta *meta = &m->meta;
	void *page = malloc(SIO_NVME_IDENTIFY), *list = malloc(SIO_NVME_IDENTIFY);
	int rc = -ENOMEM;

	meta->magic = SIO_NVME_META_MAGIC;
	meta->version = SIO_NVME_VERSION;
	meta->node = m->d.node;
	meta->max_entries = m->ctrl.max_entries;
	meta->doorbell_stride = m->ctrl.stride;
	meta->spec_version = m->ctrl.version;
	if (page && list)
		rc = describe(m, pairs, page, list);
	else
		sio_nvme_fail(rc, "no memory to identify %s: " SIO_DRIVER_MORE_MEMORY, m->d.name);
	free(page);
	free(list);
	return rc;
}

uint32_t sio_nvme_manager_node(struct smartio_nvme_manager *m)
{
	const size_t head = offsetof(struct sio_nvme_meta, ns);
	uint32_t raw[offsetof(struct sio_nvme_meta, ns) / 4], node = 0;
	struct sio_nvme_shared other;

	if (sio_nvme_shared_open(&m->d, SIO_NVME_SEGMENT, head, false, &other))
		return 0;
	sio_copy_from(raw, other.at, sizeof(raw));
	/* Ours is written when we have the drive. */
	if (sio_nvme_meta_decode(raw, &m->wire) == 0)
		node = m->wire.node;
	sio_nvme_shared_close(&other);
	return node;
}

static void write_all(struct smartio_nvme_manager *m)
{
	const size_t after_magic = sizeof(m->wire.magic), head = offsetof(struct sio_nvme_meta, ns);

	sio_nvme_meta_encode(&m->meta, &m->wire);
	/*
	 * Namespaces first: who has their number has read them, or sees that it changed. The magic
	 * number last: a client that sees it sees all the rest. Both pair with read_meta().
	 */
	sio_copy_to(m->shared.at + head, (char *)&m->wire + head, sizeof(m->wire) - head);
	sio_to_fabric_barrier();
	sio_copy_to(m->shared.at + after_magic, (char *)&m->wire + after_magic, head - after_magic);
	sio_to_fabric_barrier();
	sio_write32(m->shared.at, m->wire.magic);
}

int sio_nvme_manager_republish(struct smartio_nvme_manager *m)
{
	void *page = malloc(SIO_NVME_IDENTIFY), *list = malloc(SIO_NVME_IDENTIFY);
	int rc = -ENOMEM;

	if (page && list)
		rc = describe_namespaces(m, page, list);
	else
		sio_nvme_fail(rc, "no memory to identify %s: " SIO_DRIVER_MORE_MEMORY, m->d.name);
	free(page);
	free(list);
	if (rc)
		return rc;
	/*
	 * A program that reads meanwhile finds another number than it began with, or the same
	 * blocks: pairs with the second barrier in read_meta().
	 */
	sio_write32(m->shared.at, 0);
	sio_to_fabric_barrier();
	write_all(m);
	return 0;
}

int sio_nvme_manager_publish(struct smartio_nvme_manager *m)
{
	int rc = sio_nvme_shared_replace(&m->d, SIO_NVME_SEGMENT, sizeof(m->meta),
					 SCI_FLAG_LOCAL_ONLY, &m->shared);

	if (rc)
		return rc;
	m->meta.instance = smartio_random() | 1;
	write_all(m);
	return 0;
}

void sio_nvme_manager_withdraw(struct smartio_nvme_manager *m)
{
	if (m->shared.map) {
		sio_write32(m->shared.at, 0);
		sio_to_fabric_barrier(); /* before its memory goes; pairs with read_meta() */
	}
	sio_nvme_shared_close(&m->shared);
}
