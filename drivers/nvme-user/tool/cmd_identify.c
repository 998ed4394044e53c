/* SPDX-License-Identifier: BSD-2-Clause */
#include <nvme/types.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <json-c/json.h>

#include "tool.h"

static void put(struct json_object *to, const char *key, uint64_t value)
{
	json_object_object_add(to, key, json_object_new_uint64(value));
}

static void print_json(const struct smartio_nvme_info *i, struct smartio_nvme *n, const char *name)
{
	struct json_object *top = json_object_new_object(), *list = json_object_new_array();
	struct smartio_nvme_namespace ns;

	json_object_object_add(top, "device", json_object_new_string(name));
	json_object_object_add(top, "model", json_object_new_string(i->model));
	json_object_object_add(top, "serial", json_object_new_string(i->serial));
	json_object_object_add(top, "firmware", json_object_new_string(i->firmware));
	put(top, "vendor", i->vendor);
	put(top, "version", i->version);
	put(top, "queue_pairs", i->queue_pairs);
	put(top, "max_queue_entries", i->max_queue_entries);
	put(top, "max_transfer", i->max_transfer);
	put(top, "lender_node", i->lender_node);
	put(top, "manager_node", i->manager_node);
	for (uint32_t k = 0; smartio_nvme_get_namespace(n, k, &ns) == 0; k++) {
		struct json_object *e = json_object_new_object();

		put(e, "id", ns.id);
		put(e, "block_size", ns.block_size);
		put(e, "blocks", ns.blocks);
		json_object_array_add(list, e);
	}
	json_object_object_add(top, "namespaces", list);
	printf("%s\n", json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY));
	json_object_put(top);
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
		return failed("no memory");
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
