/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio device reset. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "smartio/uapi.h"
#include "view/view.h"

static const char *kind_name(uint32_t kind)
{
	return kind == SIO_RESET_BUS ? "bus" : "function";
}

static int print_json(const char *name, const struct sio_rep_dev_admin_reset *rep)
{
	struct json_object *o = tool_json_object();

	tool_json_string(o, "name", name);
	tool_json_string(o, "reset", kind_name(sio_from_le32(rep->kind)));
	tool_json_number(o, "microseconds", sio_from_le64(rep->ns) / 1000);
	tool_json_number(o, "generation", sio_from_le32(rep->generation));
	tool_json_number(o, "borrows", sio_from_le32(rep->borrows));
	tool_json_number(o, "settled", sio_from_le32(rep->settled));
	tool_json_number(o, "mappings", sio_from_le64(rep->mappings));
	return tool_json_print("device-reset", o);
}

static const char *s_of(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static int print(const char *name, const struct sio_rep_dev_admin_reset *rep)
{
	uint32_t live = sio_from_le32(rep->borrows), settled = sio_from_le32(rep->settled);
	uint64_t mappings = sio_from_le64(rep->mappings);

	printf("%s: %s reset in %.3f ms\n", name, kind_name(sio_from_le32(rep->kind)),
	       (double)sio_from_le64(rep->ns) / 1e6);
	if (settled)
		printf("the quarantine of %" PRIu32 " dead borrow%s ended: %" PRIu64 " mapping%s\n",
		       settled, s_of(settled), mappings, s_of(mappings));
	if (live)
		printf("%" PRIu32 " borrow%s: %s queues are gone\n", live,
		       live == 1 ? " lives" : "s live", live == 1 ? "its" : "their");
	if (fflush(stdout) != 0)
		return tool_error("cannot write to standard output: %s", strerror(errno));
	return 0;
}

static int reset(const struct tool_view *v, const char *word, bool force)
{
	struct sio_msg_dev_admin_reset req = {.force = sio_to_le32(force)};
	const struct tool_view_host *h = NULL;
	const struct tool_view_device *d = NULL;
	struct sio_rep_dev_admin_reset rep;
	struct sio_err err;
	int r = tool_view_find_device(v, word, &h, &d, &err);

	if (r < 0)
		return tool_fail(&err);
	if (h->host->state == TOOL_HOST_AWAY)
		return tool_error_code(-EOPNOTSUPP,
				       "a device is reset on the host that lends it: 'smartio "
				       "device reset %s' on host '%s' is right",
				       d->topo->name, h->topo->name);
	if (!h->host->up)
		return tool_error_code(-ENETDOWN, "host '%s', which lends %s: %s", h->topo->name,
				       d->topo->name, tool_host_state_name(h->host->state));
	req.fdid = sio_to_le32(d->topo->fdid);
	r = tool_client_call(&h->host->client, SIO_MSG_DEV_ADMIN_RESET, &req, sizeof(req), &rep,
			     sizeof(rep), &err);
	if (r == -EBUSY)
		return tool_error_code(r, "refused (--force does it all the same): %s", err.text);
	if (r < 0)
		return tool_fail(&err);
	return tool_where.json ? print_json(d->topo->name, &rep) : print(d->topo->name, &rep);
}

static bool force;
static const struct tool_option options[] = {
	{"force", .flag = &force,
	 .text = "although programs have borrowed it: their queues are gone"},
	{.name = NULL}};

static int run(const struct tool_command *self, int argc, char **argv)
{
	int status = 0, at = tool_options(self, argc, argv, &status);
	struct tool_view *v;
	struct sio_err err;

	if (at < 0)
		return status;
	if (tool_view_open(&v, &err) < 0)
		return tool_fail(&err);
	status = reset(v, argv[at], force);
	tool_view_close(v);
	return status;
}

const struct tool_command tool_device_reset_command = {
	.name = "device reset",
	.summary = "Have the lender of a device reset it",
	.help = "DEVICE is a name of the topology file, or an id such as 0x4f4093. A function reset, or, where\n"
		"the device has none and is alone on its bus, a bus reset. It ends the quarantine of borrowers\n"
		"that died. Prints how the device was reset, how long that took, and what it ended. Refused\n"
		"while programs have borrowed the device, unless forced: then their queues are gone, and they\n"
		"are notified. A lender resets a device by itself before the first program borrows it\n"
		"exclusively, and after its last borrow. A device that has no reset is used as it was\n"
		"left; device info says which can be reset. A reset takes the virtual functions of a device\n"
		"away, and no lender does that by itself. Real hosts reset their own devices only: elsewhere the\n"
		"command says on which host it is to be typed.\n",
	.schemas = "device-reset",
	.options = options,
	.words = {{"DEVICE", TOOL_DEVICES}},
	.run = run};
