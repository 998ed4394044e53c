/* SPDX-License-Identifier: BSD-2-Clause */
#include <nvme/types.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "document.h"
#include "tool.h"

static void print_json(const struct smartio_nvme_info *i, struct smartio_nvme *n, const char *name)
{
	struct json_object *top = doc_object(), *list = doc_array();
	struct smartio_nvme_namespace ns;

	doc_string(top, "device", name);
	doc_string(top, "model", i->model);
	doc_string(top, "serial", i->serial);
	doc_string(top, "firmware", i->firmware);
	doc_number(top, "vendor", i->vendor);
	doc_number(top, "version", i->version);
	doc_number(top, "queue_pairs", i->queue_pairs);
	doc_number(top, "max_queue_entries", i->max_queue_entries);
	doc_number(top, "max_transfer", i->max_transfer);
	doc_number(top, "lender_node", i->lender_node);
	doc_number(top, "manager_node", i->manager_node);
	for (uint32_t k = 0; smartio_nvme_get_namespace(n, k, &ns) == 0; k++) {
		struct json_object *e = doc_object();

		doc_number(e, "id", ns.id);
		doc_number(e, "block_size", ns.block_size);
		doc_hex(e, "blocks", ns.blocks);
		doc_append(list, e);
	}
	doc_add(top, "namespaces", list);
	doc_print("nvme-identify", top);
}

static void print_text(const struct smartio_nvme_info *i, struct smartio_nvme *n, const char *name)
{
	struct smartio_nvme_namespace ns;

	printf("device          %s\n", name);
	printf("model           %s\n", i->model);
	printf("serial          %s\n", i->serial);
	printf("firmware        %s\n", i->firmware);
	printf("PCI vendor      0x%04x\n", i->vendor);
	printf("specification   %u.%u.%u\n", i->version >> 16, i->version >> 8 & 0xff,
	       i->version & 0xff);
	printf("queue pairs     %u of up to %u entries\n", i->queue_pairs, i->max_queue_entries);
	printf("max transfer    %u KiB\n", i->max_transfer / 1024);
	printf("lender          node %u\n", i->lender_node);
	printf("manager         node %u\n", i->manager_node);
	for (uint32_t k = 0; smartio_nvme_get_namespace(n, k, &ns) == 0; k++)
		printf("namespace %-5u %" PRIu64 " blocks of %u bytes, %.1f MiB\n", ns.id,
		       ns.blocks, ns.block_size, (double)ns.blocks * ns.block_size / 1048576);
}

int cmd_identify(const struct options *o)
{
	struct nvme_id_ctrl *id = malloc(sizeof(*id));
	struct smartio_nvme_info info;
	struct smartio_nvme *n;
	int rc;

	if (!id)
		return failed("no memory for what the drive says: " SIO_DRIVER_MORE_MEMORY);
	rc = open_drive(o, &n);
	if (rc) {
		free(id);
		return rc;
	}
	/* Asked of the drive itself: so that the answer also says that its manager lives. */
	if (smartio_nvme_identify(n, NVME_IDENTIFY_CNS_CTRL, 0, id)) {
		rc = failed_nvme();
	} else {
		smartio_nvme_get_info(n, &info);
		if (o->json)
			print_json(&info, n, o->device);
		else
			print_text(&info, n, o->device);
	}
	free(id);
	close_drive(n);
	return rc;
}
