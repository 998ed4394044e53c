/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that destroy data, which ask for confirmation; and one that only reads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "document.h"
#include "tool.h"

/* Whoever is not asked at a terminal must have said --yes. */
static int confirm(const struct options *o, const char *what)
{
	char answer[8] = "";

	if (o->yes)
		return EXIT_OK;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return failed("this destroys %s of %s: give --yes to confirm it", what, o->device);
	fprintf(stderr, "This destroys %s of %s. Go on? [y/N] ", what, o->device);
	if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return EXIT_OK;
	return failed("nothing was done");
}

static void print_done(const struct options *o, const char *what, uint64_t bytes)
{
	struct json_object *data;

	if (!o->json) {
		printf("%s: %" PRIu64 " bytes of namespace %u of %s\n", what, bytes, o->nsid,
		       o->device);
		return;
	}
	data = doc_object();
	doc_string(data, "device", o->device);
	doc_string(data, "did", what);
	doc_number(data, "namespace", o->nsid);
	doc_hex(data, "offset", o->offset);
	doc_hex(data, "bytes", bytes);
	doc_print("nvme-erase", data);
}

static int zero(struct smartio_nvme_queue *q, const struct options *o)
{
	return smartio_nvme_write_zeroes(q, o->offset, o->length, SMARTIO_NVME_MAY_DEALLOCATE);
}

static int trim(struct smartio_nvme_queue *q, const struct options *o)
{
	return smartio_nvme_deallocate(q, o->offset, o->length);
}

static int verify(struct smartio_nvme_queue *q, const struct options *o)
{
	return smartio_nvme_verify(q, o->offset, o->length);
}

static int on_range(const struct options *o, const char *did,
		    int (*act)(struct smartio_nvme_queue *q, const struct options *o))
{
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo), .namespace_id = o->nsid};
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	int rc = open_drive(o, &n);

	if (rc)
		return rc;
	rc = open_pair(o, n, false, &qo, &q);
	if (rc == EXIT_OK) {
		if (act(q, o))
			rc = failed_nvme();
		else
			print_done(o, did, o->length);
	}
	close_drive(n);
	return rc;
}

static int destroy_range(const struct options *o, const char *did,
			 int (*act)(struct smartio_nvme_queue *q, const struct options *o))
{
	char what[96];
	int rc;

	snprintf(what, sizeof(what), "%" PRIu64 " bytes from %" PRIu64 " on of namespace %u",
		 o->length, o->offset, o->nsid);
	rc = confirm(o, what);
	return rc ? rc : on_range(o, did, act);
}

int cmd_zero(const struct options *o)
{
	return destroy_range(o, "zeroed", zero);
}

int cmd_trim(const struct options *o)
{
	return destroy_range(o, "trimmed", trim);
}

int cmd_verify(const struct options *o)
{
	return on_range(o, "verified", verify);
}

int cmd_format(const struct options *o)
{
	struct smartio_nvme_namespace ns;
	struct smartio_nvme *n;
	char what[64];
	int rc;

	snprintf(what, sizeof(what), "all of namespace %u", o->nsid);
	rc = confirm(o, what);
	if (rc == EXIT_OK)
		rc = open_drive(o, &n);
	if (rc)
		return rc;
	if (smartio_nvme_format(n, o->nsid, o->format, SMARTIO_NVME_CONFIRMED))
		rc = failed_nvme();
	if (rc == EXIT_OK)
		rc = find_namespace(o, n, &ns);
	if (rc == EXIT_OK)
		print_done(o, "formatted", ns.blocks * ns.block_size);
	close_drive(n);
	return rc;
}
