/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio lend: offers a device of this machine to other hosts; with --persist also after the
 * machine's next start.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "device/device_give.h"
#include "device/lent.h"

#define FOLDER "/etc/smartio"

static bool persist, undo, again, force;

/* ---- what is printed ---- */

static void print_function(struct json_object *list, const struct tool_function *f)
{
	struct json_object *o = tool_json_object();

	tool_json_string(o, "function", f->bdf);
	tool_json_string(o, "name", f->name);
	if (*f->driver)
		tool_json_string(o, "driver", f->driver);
	else
		tool_json_null(o, "driver");
	tool_json_append(list, o);
}

static int print_all(struct json_object *functions)
{
	struct json_object *o = tool_json_object();

	tool_json_add(o, "functions", functions);
	return tool_json_print("lend", o);
}

static int print_one(const struct tool_function *f)
{
	struct json_object *list;

	if (!tool_where.json)
		return 0;
	list = tool_json_array();
	print_function(list, f);
	return print_all(list);
}

/* ---- which device is at an address ---- */

static int read_id(const char *bdf, const char *name, uint32_t *ret, struct sio_err *reterr)
{
	char path[128];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", bdf, name);
	f = fopen(path, "re");
	if (!f)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	n = fscanf(f, "%" SCNx32, ret);
	fclose(f);
	return n == 1 ? 0 : sio_fail(reterr, -EIO, "%s is not a number", path);
}

static int describe(const char *bdf, struct tool_lent *ret, struct sio_err *reterr)
{
	int r = read_id(bdf, "vendor", &ret->vendor, reterr);

	if (r == 0)
		r = read_id(bdf, "device", &ret->device, reterr);
	snprintf(ret->bdf, sizeof(ret->bdf), "%s", bdf);
	return r;
}

/* ---- one device ---- */

static int put_on_list(const char *word, struct sio_err *reterr)
{
	struct tool_lent_list list;
	struct tool_function f;
	struct tool_lent e;
	int r = tool_function_find(word, &f, reterr);

	if (r == 0)
		r = describe(f.bdf, &e, reterr);
	if (r == 0 && mkdir(FOLDER, 0755) < 0 && errno != EEXIST)
		r = sio_fail(reterr, -errno, FOLDER ": %s", strerror(errno));
	if (r == 0)
		r = tool_lent_read(TOOL_LENT_FILE, &list, reterr);
	if (r == 0)
		r = tool_lent_add(&list, &e, reterr);
	return r == 0 ? tool_lent_write(TOOL_LENT_FILE, &list, reterr) : r;
}

/* Return: 1: its line is gone; 0: there was none. */
static int take_from_list(const char *bdf, struct sio_err *reterr)
{
	struct tool_lent_list list;
	int r = tool_lent_read(TOOL_LENT_FILE, &list, reterr);

	if (r < 0 || !tool_lent_remove(&list, bdf))
		return r;
	r = tool_lent_write(TOOL_LENT_FILE, &list, reterr);
	return r < 0 ? r : 1;
}

/*
 * If this process is killed between the two steps, the command is repeated: a device that is lent
 * already is put on the list.
 */
static int lend_one(const char *word)
{
	struct sio_err err, ignored;
	struct tool_function f;

	if (tool_device_give(word, force, false, &f, &err) < 0)
		return tool_fail(&err);
	if (persist && put_on_list(word, &err) < 0) {
		tool_device_take(word, false, &f, &ignored);
		return tool_fail(&err);
	}
	return print_one(&f);
}

/* Nothing lies in that place any more, which is why its line shall go. @why: that it does not. */
static int undo_gone(struct tool_function *f, const struct sio_err *why)
{
	struct sio_err err;
	int r = take_from_list(f->bdf, &err);

	if (r <= 0)
		return tool_fail(r < 0 ? &err : why);
	tool_note("%s; its line in " TOOL_LENT_FILE " is taken away", why->text);
	snprintf(f->name, sizeof(f->name), "gone");
	*f->driver = '\0';
	return print_one(f);
}

static int undo_one(const char *word)
{
	struct tool_function f;
	struct sio_err err;
	int r = tool_function_find(word, &f, &err);

	if (r == -ENODEV)
		return undo_gone(&f, &err);
	if (r < 0)
		return tool_fail(&err);
	r = tool_device_take(word, force, &f, &err);
	if (r < 0 && r != -EINVAL)
		return tool_fail(&err);
	/* The list may have an entry for a device that is not lent now. */
	if (r == -EINVAL)
		tool_note("%s", err.text);
	if (take_from_list(f.bdf, &err) < 0)
		return tool_fail(&err);
	return print_one(&f);
}

/* ---- all devices on the list ---- */

/* Return: 0: the device is lent. */
static int lend_listed(const struct tool_lent *e, struct tool_function *ret, struct sio_err *reterr)
{
	struct tool_lent there;
	int r = describe(e->bdf, &there, reterr);

	if (r < 0)
		return r;
	if (there.vendor != e->vendor || there.device != e->device)
		return sio_fail(reterr, -ENODEV,
				"%s is device %04" PRIx32 ":%04" PRIx32 ", what was lent was "
				"%04" PRIx32 ":%04" PRIx32,
				e->bdf, there.vendor, there.device, e->vendor, e->device);
	return tool_device_give(e->bdf, false, false, ret, reterr);
}

/* A device that cannot be lent does not prevent the others. */
static int lend_all(void)
{
	struct json_object *functions;
	struct tool_lent_list list;
	int status = 0;
	struct sio_err err;

	if (tool_lent_read(TOOL_LENT_FILE, &list, &err) < 0)
		return tool_fail(&err);
	functions = tool_json_array();
	for (unsigned i = 0; i < list.n; i++) {
		struct tool_function f;

		if (lend_listed(&list.entry[i], &f, &err) == 0)
			print_function(functions, &f);
		else
			status = tool_fail(&err);
	}
	if (tool_where.json && !status)
		return print_all(functions);
	json_object_put(functions);
	return status;
}

static int lend(const struct tool_command *self, int argc, char **argv)
{
	int status = 0, at = tool_options(self, argc, argv, &status);
	bool one = at >= 0 && at < argc;

	if (at < 0)
		return status;
	if (one == again || (undo && (persist || again)) || (again && (persist || force)))
		return tool_usage(self->name, again ? "--again stands alone"
					      : one ? "--undo goes with --force alone"
						    : "a FUNCTION is wanted, or --again");
	if (again)
		return lend_all();
	return undo ? undo_one(argv[at]) : lend_one(argv[at]);
}

static const struct tool_option lend_options[] = {
	{"persist", .flag = &persist, .text = "also after each start of this machine"},
	{"undo", .flag = &undo, .text = "give it back to its own driver, for good"},
	{"again", .flag = &again, .text = "what was lent with --persist: when this machine starts"},
	{"force", .flag = &force,
	 .text = "although it is in use here, or with --undo: although programs have it"},
	{.name = NULL}};

const struct tool_command tool_lend_command = {
	.name = "lend",
	.summary = "Lend a PCI function of this machine to other hosts",
	.help = "FUNCTION is its place as lspci -D prints it, 0000:05:00.0. Its own driver releases it, its\n"
		"IOMMU group becomes strict, smartio.ko gets it, and the cluster is told by smartiod: hosts\n"
		"that the cluster's file lets have it can borrow it. That is device add; with --persist it is so\n"
		"after each start of this machine, too: " TOOL_LENT_FILE
		" has a line for it, with what lies in\n"
		"that place, and the service smartiod runs smartio lend --again before it starts. Another device\n"
		"that is found there then is not lent. --undo is device remove, and takes the line away, also that\n"
		"of a function that is not there any more.\n",
	.usage = "FUNCTION [--persist] [--force] | FUNCTION --undo [--force] | --again",
	.schemas = "lend",
	.options = lend_options,
	.words = {{"[FUNCTION]", TOOL_FUNCTIONS}},
	.run = lend};
