/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "sisci_api.h"
#include "document.h"
#include "tool.h"

static struct smartio_nvme_manager *manager;

/* In a signal handler; smartio_nvme_manager_stop() may be called there. */
static void stop(void)
{
	smartio_nvme_manager_stop(manager);
}

static int serve(const struct options *o)
{
	while (!interrupted) {
		if (smartio_nvme_manager_serve(manager, UINT32_MAX) < 0)
			return failed_nvme();
		if (o->once && smartio_nvme_manager_given(manager) &&
		    !smartio_nvme_manager_queue_pairs(manager, NULL))
			break;
	}
	return EXIT_OK;
}

static void print_ready(const struct options *o, uint32_t pairs)
{
	struct json_object *data;

	if (!o->json) {
		printf("ready: %s has %u queue pairs for clients\n", o->device, pairs);
		return;
	}
	data = doc_object();
	doc_string(data, "device", o->device);
	doc_string(data, "state", "ready");
	doc_number(data, "queue_pairs", pairs);
	doc_print("nvme-manager", data);
}

int cmd_manager(const struct options *o)
{
	uint32_t pairs;
	int rc = initialize();

	if (rc)
		return rc;
	if (smartio_nvme_manager_open(o->device, NULL, &manager)) {
		rc = failed_nvme();
	} else {
		catch_signals(stop);
		smartio_nvme_manager_queue_pairs(manager, &pairs);
		print_ready(o, pairs);
		/* Who waits for the line, waits at the other end of a pipe. */
		fflush(stdout);
		rc = serve(o);
		catch_signals(NULL);
		smartio_nvme_manager_close(manager);
	}
	SCITerminate();
	return rc;
}
