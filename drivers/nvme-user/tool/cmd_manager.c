/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <unistd.h>

#include "sisci_api.h"
#include "document.h"
#include "tool.h"

static struct smartio_nvme_manager *manager;

/* In a signal handler; smartio_nvme_manager_stop() may be called there. */
static void stop(void)
{
	smartio_nvme_manager_stop(manager);
}

static void print_ready(const struct options *o, struct ready r)
{
	struct json_object *data;
	const bool serves = r.queue_pairs;

	if (!o->json) {
		if (serves)
			printf("ready: %s has %u queue pairs for clients", o->device,
			       r.queue_pairs);
		else if (r.other_node)
			printf("standby: the manager of %s is on node %u", o->device, r.other_node);
		else
			printf("standby: another program has the registers of %s", o->device);
		printf(o->background ? "; process %d\n" : "\n", r.process);
		return;
	}
	data = doc_object();
	doc_string(data, "device", o->device);
	doc_string(data, "state", serves ? "ready" : "standby");
	doc_number(data, "queue_pairs", r.queue_pairs);
	doc_number(data, "process", (uint64_t)r.process);
	if (!serves)
		doc_number(data, "manager", r.other_node);
	doc_print("nvme-manager", data);
}

static void print_takeover(const struct options *o, const struct smartio_nvme_manager_status *s,
			   bool kept)
{
	struct ready r = {.process = getpid()};

	smartio_nvme_manager_queue_pairs(manager, &r.queue_pairs);
	if (!o->json)
		printf("took over %s from node %u in %.1f ms, %s\n", o->device, s->other_node,
		       (double)s->took_us / 1e3,
		       kept ? "clients keep their queues" : "after a reset");
	print_ready(o, r);
	fflush(stdout);
}

static void print_return(const struct options *o, bool kept)
{
	struct ready r = {.process = getpid()};

	smartio_nvme_manager_queue_pairs(manager, &r.queue_pairs);
	if (!o->json)
		printf("lost its path to %s, and came back over another, %s\n", o->device,
		       kept ? "clients keep their queues" : "after a reset");
	print_ready(o, r);
	fflush(stdout);
}

static int serve(const struct options *o)
{
	struct smartio_nvme_manager_status s;
	uint32_t takeovers = 0, kept = 0, returns = 0, returns_kept = 0;

	while (!interrupted) {
		if (smartio_nvme_manager_serve(manager, UINT32_MAX) < 0)
			return failed_nvme();
		smartio_nvme_manager_get_status(manager, &s);
		if (s.takeovers != takeovers)
			print_takeover(o, &s, s.kept != kept);
		if (s.returns != returns && s.serves)
			print_return(o, s.returns_kept != returns_kept);
		returns = s.returns;
		returns_kept = s.returns_kept;
		takeovers = s.takeovers;
		kept = s.kept;
		if (o->once && smartio_nvme_manager_given(manager) &&
		    !smartio_nvme_manager_queue_pairs(manager, NULL))
			break;
	}
	return EXIT_OK;
}

/* Say that it serves, or stands by. @report: -1: on stdout. False: nobody listens any more. */
static bool say_ready(const struct options *o, int report)
{
	struct smartio_nvme_manager_status status;
	struct ready r = {.process = getpid()};

	smartio_nvme_manager_get_status(manager, &status);
	r.other_node = status.other_node;
	if (status.serves)
		smartio_nvme_manager_queue_pairs(manager, &r.queue_pairs);
	if (report >= 0)
		return background_ready(report, r, o->device);
	print_ready(o, r);
	/* Whoever waits for the line, waits at the other end of a pipe. */
	fflush(stdout);
	return true;
}

static int manage(const struct options *o, int report)
{
	const struct smartio_nvme_manager_options mo = {
		.size = sizeof(mo),
		.flags = (o->allow_vendor ? SMARTIO_NVME_ALLOW_VENDOR : 0) |
			 (o->standby ? SMARTIO_NVME_STANDBY : 0)};
	int rc = initialize();

	if (rc)
		return rc;
	if (smartio_nvme_manager_open(o->device, &mo, &manager)) {
		rc = failed_nvme();
	} else {
		catch_signals(stop);
		/* Whoever ended the command before it said so wants no manager. */
		rc = say_ready(o, report) ? serve(o) : EXIT_FAILED;
		catch_signals(NULL);
		/* The next one has it when this program's session ends. */
		if (rc != EXIT_OK || smartio_nvme_manager_hand_over(manager))
			smartio_nvme_manager_close(manager);
		else if (!o->json)
			printf("%s is left to the standby manager\n", o->device);
	}
	SCITerminate();
	return rc;
}

int cmd_manager(const struct options *o)
{
	struct ready ready;
	int report = -1, rc;

	if (!o->background)
		return manage(o, -1);
	rc = background_split(&report, &ready);
	if (rc < 0)
		return manage(o, report);
	if (rc == EXIT_OK)
		print_ready(o, ready);
	return rc;
}
