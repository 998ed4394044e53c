/* SPDX-License-Identifier: BSD-2-Clause */
/* What a drive reports about itself, and its manager about clients: health, errors, queue pairs. */
#include <nvme/types.h>

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "tool.h"

#define MOST_ERRORS 256u /* what Identify can report: 0's based, one byte */
#define MOST_PAIRS 65535u
#define MOST_LEASES 1024u

/* Numbers of 16 bytes, of which no drive has used more than 8. */
static uint64_t low(const uint8_t *field)
{
	uint64_t v;

	memcpy(&v, field, sizeof(v));
	return le64toh(v);
}

static const struct {
	const char *key, *text;
	size_t at;
} numbers[] = {
#define NUMBER(key, text, field)                                                                   \
	{                                                                                          \
		key, text, offsetof(struct nvme_smart_log, field)                                  \
	}
	NUMBER("data_units_read", "read", data_units_read),
	NUMBER("data_units_written", "written", data_units_written),
	NUMBER("host_reads", "read commands", host_reads),
	NUMBER("host_writes", "write commands", host_writes),
	NUMBER("controller_busy_minutes", "busy minutes", ctrl_busy_time),
	NUMBER("power_cycles", "power cycles", power_cycles),
	NUMBER("power_on_hours", "power-on hours", power_on_hours),
	NUMBER("unsafe_shutdowns", "unsafe shutdowns", unsafe_shutdowns),
	NUMBER("media_errors", "media errors", media_errors),
	NUMBER("error_entries", "error entries", num_err_log_entries),
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static int kelvin(const struct nvme_smart_log *s)
{
	return s->temperature[0] | s->temperature[1] << 8;
}

static void print_smart(const struct nvme_smart_log *s)
{
	printf("warnings          %#x\n", s->critical_warning);
	printf("temperature       %d C\n", kelvin(s) - 273);
	printf("spare             %u %%, at least %u %%\n", s->avail_spare, s->spare_thresh);
	printf("life used         %u %%\n", s->percent_used);
	for (unsigned i = 0; i < NUMBERS; i++) {
		uint64_t v = low((const uint8_t *)s + numbers[i].at);

		if (i < 2) /* in units of 1,000 blocks of 512 bytes */
			printf("%-17s %.1f MB\n", numbers[i].text, (double)v * 0.512);
		else
			printf("%-17s %" PRIu64 "\n", numbers[i].text, v);
	}
}

static void smart_json(const struct options *o, const struct nvme_smart_log *s)
{
	struct json_object *data = doc_object();

	doc_string(data, "device", o->device);
	doc_number(data, "critical_warning", s->critical_warning);
	doc_number(data, "kelvin", (uint64_t)kelvin(s));
	doc_number(data, "available_spare", s->avail_spare);
	doc_number(data, "spare_threshold", s->spare_thresh);
	doc_number(data, "percentage_used", s->percent_used);
	for (unsigned i = 0; i < NUMBERS; i++)
		doc_hex(data, numbers[i].key, low((const uint8_t *)s + numbers[i].at));
	doc_print("nvme-smart", data);
}

int cmd_smart(const struct options *o)
{
	struct nvme_smart_log s;
	struct smartio_nvme *n;
	int rc = open_drive(o, &n);

	if (rc)
		return rc;
	if (smartio_nvme_get_log(n, NVME_LOG_LID_SMART, NVME_NSID_ALL, 0, &s, sizeof(s)))
		rc = failed_nvme();
	else if (o->json)
		smart_json(o, &s);
	else
		print_smart(&s);
	close_drive(n);
	return rc;
}

static uint32_t status_of(const struct nvme_error_log_page *e)
{
	return le16toh(e->status_field) >> 1 & 0x7ff;
}

static void error_json(struct json_object *list, const struct nvme_error_log_page *e)
{
	struct json_object *entry = doc_object();

	doc_hex(entry, "number", le64toh(e->error_count));
	doc_number(entry, "queue", le16toh(e->sqid));
	doc_number(entry, "command", le16toh(e->cmdid));
	doc_number(entry, "status", status_of(e));
	doc_string(entry, "text", smartio_nvme_status_string(status_of(e)));
	doc_hex(entry, "lba", le64toh(e->lba));
	doc_number(entry, "namespace", le32toh(e->nsid));
	doc_append(list, entry);
}

static void print_errors(const struct options *o, const struct nvme_error_log_page *e, unsigned n)
{
	struct json_object *data = NULL, *list = NULL;

	if (o->json) {
		data = doc_object();
		list = doc_array();
		doc_string(data, "device", o->device);
	}
	for (unsigned i = 0; i < n && e[i].error_count; i++) {
		if (o->json)
			error_json(list, &e[i]);
		else
			printf("%" PRIu64 ": queue %u, command %u, namespace %u, block %" PRIu64
			       ": %s (%#x)\n",
			       le64toh(e[i].error_count), le16toh(e[i].sqid), le16toh(e[i].cmdid),
			       le32toh(e[i].nsid), le64toh(e[i].lba),
			       smartio_nvme_status_string(status_of(&e[i])), status_of(&e[i]));
	}
	if (o->json) {
		doc_add(data, "errors", list);
		doc_print("nvme-errors", data);
	} else if (!e[0].error_count) {
		printf("no command has failed\n");
	}
}

int cmd_errors(const struct options *o)
{
	struct nvme_error_log_page *e = calloc(MOST_ERRORS, sizeof(*e));
	struct nvme_id_ctrl *id = malloc(sizeof(*id));
	struct smartio_nvme *n;
	int rc = e && id ? open_drive(o, &n)
			 : failed("no memory for %u errors: " SIO_DRIVER_MORE_MEMORY, MOST_ERRORS);

	if (rc == EXIT_OK) {
		if (smartio_nvme_identify(n, NVME_IDENTIFY_CNS_CTRL, 0, id) ||
		    smartio_nvme_get_log(n, NVME_LOG_LID_ERROR, NVME_NSID_ALL, 0, e,
					 (id->elpe + 1u) * sizeof(*e)))
			rc = failed_nvme();
		else
			print_errors(o, e, id->elpe + 1u);
		close_drive(n);
	}
	free(e);
	free(id);
	return rc;
}

#define MOST_STANDBYS 16u
struct queues {
	struct smartio_nvme_info info;
	struct smartio_nvme_pair *pair;
	struct smartio_nvme_standby standby[MOST_STANDBYS];
	int pairs, standbys;
};

/* A pair that several programs share is reported once for each. */
static int taken(const struct queues *v)
{
	int n = 0;

	for (int i = 0; i < v->pairs; i++)
		n += i == 0 || v->pair[i].id != v->pair[i - 1].id;
	return n;
}

static void print_queues(const struct queues *v)
{
	printf("%d of %u queue pairs are taken\n", taken(v), v->info.queue_pairs);
	for (int i = 0; i < v->pairs; i++) {
		const struct smartio_nvme_pair *p = &v->pair[i];

		printf("%5u  node %-4u %s", p->id, p->node, p->program);
		if (p->cq_of)
			printf(", completes in the queue of %u", p->cq_of);
		printf("\n");
	}
	printf("manager: node %u; ", v->info.manager_node);
	for (int i = 0; i < v->standbys; i++)
		printf("%snode %u (%s)", i ? ", " : "standby: ", v->standby[i].node,
		       v->standby[i].program);
	printf(v->standbys ? "\n" : "no standby\n");
}

static struct json_object *standbys_json(const struct queues *v)
{
	struct json_object *list = doc_array();

	for (int i = 0; i < v->standbys; i++) {
		struct json_object *entry = doc_object();

		doc_number(entry, "node", v->standby[i].node);
		doc_string(entry, "program", v->standby[i].program);
		doc_append(list, entry);
	}
	return list;
}

static void queues_json(const struct options *o, const struct queues *v)
{
	struct json_object *data = doc_object(), *list = doc_array();

	doc_string(data, "device", o->device);
	doc_number(data, "queue_pairs", v->info.queue_pairs);
	for (int i = 0; i < v->pairs; i++) {
		struct json_object *entry = doc_object();

		doc_number(entry, "id", v->pair[i].id);
		doc_number(entry, "node", v->pair[i].node);
		doc_string(entry, "program", v->pair[i].program);
		doc_hex(entry, "borrower", v->pair[i].borrower);
		doc_number(entry, "completion_queue",
			   v->pair[i].cq_of ? v->pair[i].cq_of : v->pair[i].id);
		doc_append(list, entry);
	}
	doc_add(data, "taken", list);
	doc_number(data, "manager", v->info.manager_node);
	doc_add(data, "standbys", standbys_json(v));
	doc_print("nvme-queues", data);
}

int cmd_queues(const struct options *o)
{
	struct queues v = {.pair = calloc(MOST_PAIRS, sizeof(*v.pair))};
	struct smartio_nvme *n;
	int rc = v.pair ? open_drive(o, &n)
			: failed("no memory for %u queue pairs: " SIO_DRIVER_MORE_MEMORY,
				 MOST_PAIRS);

	if (rc == EXIT_OK) {
		v.pairs = smartio_nvme_get_pairs(n, v.pair, MOST_PAIRS);
		v.standbys = smartio_nvme_get_standbys(n, v.standby, MOST_STANDBYS);
		smartio_nvme_get_info(n, &v.info);
		if (v.pairs < 0 || v.standbys < 0)
			rc = failed_nvme();
		else if (o->json)
			queues_json(o, &v);
		else
			print_queues(&v);
		close_drive(n);
	}
	free(v.pair);
	return rc;
}

static void print_leases(const struct options *o, const struct smartio_nvme_lease_info *l, int n)
{
	struct json_object *data, *list;

	if (!o->json) {
		for (int i = 0; i < n; i++)
			printf("%-15s  namespace %u, blocks %" PRIu64 " + %" PRIu64
			       ", node %-4u %s\n",
			       l[i].name, l[i].nsid, l[i].lba, l[i].blocks, l[i].node,
			       l[i].program);
		if (n == 0)
			printf("nobody has a lease\n");
		return;
	}
	data = doc_object();
	list = doc_array();
	doc_string(data, "device", o->device);
	for (int i = 0; i < n; i++) {
		struct json_object *entry = doc_object();

		doc_string(entry, "name", l[i].name);
		doc_number(entry, "namespace", l[i].nsid);
		doc_hex(entry, "lba", l[i].lba);
		doc_hex(entry, "blocks", l[i].blocks);
		doc_number(entry, "node", l[i].node);
		doc_string(entry, "program", l[i].program);
		doc_append(list, entry);
	}
	doc_add(data, "leases", list);
	doc_print("nvme-leases", data);
}

int cmd_leases(const struct options *o)
{
	struct smartio_nvme_lease_info *list = calloc(MOST_LEASES, sizeof(*list));
	struct smartio_nvme *n;
	int rc = list ? open_drive(o, &n)
		      : failed("no memory for %u leases: " SIO_DRIVER_MORE_MEMORY, MOST_LEASES),
	    got;

	if (rc == EXIT_OK) {
		got = smartio_nvme_get_leases(n, list, MOST_LEASES);
		if (got < 0)
			rc = failed_nvme();
		else
			print_leases(o, list, got);
		close_drive(n);
	}
	free(list);
	return rc;
}
