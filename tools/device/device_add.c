/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio device add, smartio device remove: move a PCI function of this machine from its driver to
 * smartio.ko or vfio-pci (device_vfio.h), and back. A small file keeps the earlier state until that
 * is undone, another one says that a change has begun and not ended (underway.h). Each step may be
 * done again: a command that was killed is finished by the next one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "device/device_give.h"
#include "device/device_vfio.h"
#include "device/function.h"
#include "device/underway.h"
#include "base/local.h"
#include "base/output.h"
#include "base/state.h"

static int note_path(const struct tool_function *f, char *ret, size_t size, struct sio_err *reterr)
{
	return tool_path(ret, size, reterr, "%s/device-%s", TOOL_LOCAL_STATE, f->bdf);
}

/*
 * Keeps the previous type of the IOMMU group. Without this note `remove` leaves the type as it is.
 */
static void keep_note(const struct tool_function *f, const char *iommu)
{
	char path[PATH_MAX];
	struct sio_err err;
	FILE *file;

	if (mkdir(TOOL_LOCAL_STATE, 0755) < 0 && errno != EEXIST)
		return;
	if (note_path(f, path, sizeof(path), &err) < 0)
		return;
	file = fopen(path, "we");
	if (!file)
		return;
	fprintf(file, "%s\n", iommu);
	fclose(file);
}

static void read_note(const struct tool_function *f, char ret[TOOL_FUNCTION_WORD])
{
	char path[PATH_MAX];
	struct sio_err err;
	FILE *file;

	*ret = '\0';
	if (note_path(f, path, sizeof(path), &err) < 0)
		return;
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(ret, TOOL_FUNCTION_WORD, file))
		*ret = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	fclose(file);
}

static void drop_note(const struct tool_function *f)
{
	char path[PATH_MAX];
	struct sio_err err;

	if (note_path(f, path, sizeof(path), &err) == 0)
		unlink(path);
}

static int check_root(struct sio_err *reterr)
{
	if (geteuid() == 0)
		return 0;
	return sio_fail(reterr, -EPERM, "drivers are changed by root alone: use sudo");
}

/* Reports which driver has the function now. */
static int finish(const struct tool_function *f, const char *schema)
{
	struct json_object *o;

	if (!tool_where.json)
		return 0;
	o = tool_json_object();
	tool_json_string(o, "function", f->bdf);
	tool_json_string(o, "name", f->name);
	if (*f->driver)
		tool_json_string(o, "driver", f->driver);
	else
		tool_json_null(o, "driver");
	return tool_json_print(schema, o);
}

/* ---- add ---- */

static int check_driver(const struct tool_function *f, bool vfio, struct sio_err *reterr)
{
	if (vfio)
		return tool_vfio_check(f, reterr);
	if (access("/sys/bus/pci/drivers/" TOOL_FUNCTION_DRIVER, F_OK) < 0)
		return sio_fail(
			reterr, -ENODEV,
			"the kernel module is not loaded: modprobe smartio; or add it without "
			"one, by --vfio");
	return 0;
}

/* *ret_used: the function is in use, and is to be added nevertheless. */
static int check_add(const struct tool_function *f, bool force, bool vfio, bool *ret_used,
		     struct sio_err *reterr)
{
	char neighbour[TOOL_FUNCTION_BDF];
	unsigned n;
	int r;

	if (f->bridge)
		return sio_fail(reterr, -EINVAL, "%s is a bridge; what lies behind it can be added",
				f->bdf);
	r = check_driver(f, vfio, reterr);
	if (r < 0)
		return r;
	r = tool_function_unused(f, reterr);
	if (r < 0 && !force)
		return sio_fail_prefix(reterr, "refused (--force does it all the same)");
	*ret_used = r < 0;
	n = tool_function_neighbours(f, neighbour);
	if (n)
		tool_note("note: %s shares IOMMU group %d with %s%s: they can reach each other",
			  f->bdf, f->group, neighbour, n > 1 ? " and others" : "");
	return 0;
}

/*
 * Makes the IOMMU group strict: nothing can be written to an address once it is unmapped, without
 * waiting for a flush. A driver whose device stays in use after it was unbound (a file system is
 * mounted) keeps some memory for the device, and unmaps it from the group's addresses in the end;
 * they must still be the same addresses then.
 */
static void make_strict(const struct tool_function *f, bool used)
{
	char was[TOOL_FUNCTION_WORD];
	struct sio_err err;

	tool_function_iommu(f, was);
	if (!*was || strcmp(was, "DMA") == 0)
		return;
	if (used) {
		sio_fail(&err, -EBUSY, "%s was in use", f->bdf);
	} else {
		keep_note(f, was); /* first, because this process may be killed in between */
		if (tool_function_set_iommu(f, "DMA", &err) == 0)
			return;
		drop_note(f);
	}
	tool_note("note: IOMMU group %d stays %s (%s): %s", f->group, was, err.text,
		  strcmp(was, "identity") == 0 ? "the device reaches all memory"
					       : "the module flushes by itself");
}

/* Restores the earlier state as far as possible. */
static void undo(struct tool_function *f)
{
	char iommu[TOOL_FUNCTION_WORD];
	struct sio_err err;

	read_note(f, iommu);
	tool_function_override(f, "", &err);
	if (*iommu && tool_function_set_iommu(f, iommu, &err) < 0)
		tool_note("note: %s", err.text);
	drop_note(f); /* now, because this process may be killed before */
	tool_function_probe(f, &err);
	tool_function_reread(f);
}

static int give(struct tool_function *f, bool used, struct sio_err *reterr)
{
	int r = tool_function_unbind(f, reterr);

	if (r < 0)
		return r;
	make_strict(f, used);
	r = tool_function_override(f, TOOL_FUNCTION_DRIVER, reterr);
	if (r == 0)
		r = tool_function_probe(f, reterr);
	tool_function_reread(f);
	if (r == 0 && strcmp(f->driver, TOOL_FUNCTION_DRIVER) != 0)
		r = sio_fail(reterr, -EIO, "the module did not take %s: dmesg tells why", f->bdf);
	if (r < 0)
		undo(f);
	return r;
}

/* A driver that is not ours has it where a command was killed behind its last step but one. */
static int take(struct tool_function *f, struct sio_err *reterr)
{
	int r = strcmp(f->driver, TOOL_FUNCTION_DRIVER) == 0 ? tool_function_unbind(f, reterr) : 0;

	if (r == 0)
		undo(f);
	return r;
}

/* What was killed on its way to the other driver, or from there, goes back first. */
static int finish_other(struct tool_function *f, const char *before, const char *driver,
			struct sio_err *reterr)
{
	if (!*before || strcmp(before, driver) == 0)
		return 0;
	return strcmp(before, TOOL_VFIO_DRIVER) == 0 ? tool_vfio_take(f, reterr) : take(f, reterr);
}

int tool_device_give(const char *word, bool force, bool vfio, struct tool_function *ret,
		     struct sio_err *reterr)
{
	const char *driver = vfio ? TOOL_VFIO_DRIVER : TOOL_FUNCTION_DRIVER;
	char before[TOOL_FUNCTION_WORD];
	bool used = false;
	int r = tool_function_find(word, ret, reterr);

	if (r < 0)
		return r;
	if (strcmp(ret->driver, TOOL_FUNCTION_DRIVER) == 0 || tool_vfio_added(ret)) {
		tool_note("%s has been added already", ret->bdf);
		tool_underway_end(ret);
		return 0;
	}
	tool_underway(ret, before);
	r = check_root(reterr);
	if (r == 0)
		r = finish_other(ret, before, driver, reterr);
	if (r == 0)
		r = check_add(ret, force, vfio, &used, reterr);
	if (r == 0)
		r = tool_underway_begin(ret, driver, reterr);
	if (r < 0)
		return r;
	r = vfio ? tool_vfio_give(ret, reterr) : give(ret, used, reterr);
	if (r == 0 || !*before) /* else there may still be something to finish */
		tool_underway_end(ret);
	if (r < 0)
		return r;
	tool_note("%s (%s) can be borrowed%s", ret->bdf, ret->name,
		  tool_local_runs() ? ""
		  : vfio	    ? "; start smartiod --vfio"
				    : "; start smartiod --shim");
	if (vfio)
		tool_note("note: by VFIO whoever borrows %s can reach all of it: members of group "
			  "smartio must trust each other with it",
			  ret->bdf);
	return 0;
}

static bool forced, by_vfio; /* options */

static int add(const struct tool_command *self, int argc, char **argv)
{
	struct tool_function f;
	struct sio_err err;
	int status = 0, at = tool_options(self, argc, argv, &status);

	if (at < 0)
		return status;
	if (tool_device_give(argv[at], forced, by_vfio, &f, &err) < 0)
		return tool_fail(&err);
	return finish(&f, "device-add");
}

/* ---- remove ---- */

/* Which way the function was added, or was being added or removed when that was killed. */
enum added { NOT_ADDED, TO_MODULE, TO_VFIO };

static enum added how_added(const struct tool_function *f)
{
	char driver[TOOL_FUNCTION_WORD];

	if (strcmp(f->driver, TOOL_FUNCTION_DRIVER) == 0)
		return TO_MODULE;
	if (tool_vfio_added(f))
		return TO_VFIO;
	tool_underway(f, driver);
	if (strcmp(driver, TOOL_VFIO_DRIVER) == 0 || (!*f->driver && tool_vfio_waits(f)))
		return TO_VFIO;
	return *driver ? TO_MODULE : NOT_ADDED;
}

static int check_remove(const struct tool_function *f, enum added how, struct sio_err *reterr)
{
	unsigned borrowers = 0;

	if (how == NOT_ADDED)
		return sio_fail(reterr, -EINVAL, "%s was not added: %s%s has it", f->bdf,
				*f->driver ? "driver " : "no driver", f->driver);
	if (tool_local_borrowers(f->bdf, &borrowers) == 0 && borrowers && how == TO_VFIO)
		return sio_fail(
			reterr, -EPERM,
			"refused: %u program%s %s borrowed %s, and VFIO takes it from nobody: end "
			"them before",
			borrowers, borrowers == 1 ? "" : "s", borrowers == 1 ? "has" : "have",
			f->bdf);
	if (borrowers)
		return sio_fail(
			reterr, -EBUSY,
			"refused (--force does it all the same): %u program%s %s borrowed %s",
			borrowers, borrowers == 1 ? "" : "s", borrowers == 1 ? "has" : "have",
			f->bdf);
	return 0;
}

int tool_device_take(const char *word, bool force, struct tool_function *ret,
		     struct sio_err *reterr)
{
	enum added how = NOT_ADDED;
	char before[TOOL_FUNCTION_WORD];
	int r = tool_function_find(word, ret, reterr);

	if (r == 0)
		r = check_root(reterr);
	if (r == 0) {
		how = how_added(ret);
		r = check_remove(ret, how, reterr);
	}
	if (r < 0 && (r != -EBUSY || !force))
		return r;
	tool_underway(ret, before);
	r = tool_underway_begin(ret, how == TO_VFIO ? TOOL_VFIO_DRIVER : TOOL_FUNCTION_DRIVER,
				reterr);
	if (r < 0)
		return r;
	r = how == TO_VFIO ? tool_vfio_take(ret, reterr) : take(ret, reterr);
	if (r == 0 || !*before) /* else there may still be something to finish */
		tool_underway_end(ret);
	if (r < 0)
		return r;
	if (*ret->driver)
		tool_note("%s is with driver %s again", ret->bdf, ret->driver);
	else if (tool_vfio_waits(ret))
		tool_note("%s has no driver until the others of IOMMU group %d that were added are "
			  "removed, too: then it gets its own",
			  ret->bdf, ret->group);
	else
		tool_note("%s has no driver now; no module that is loaded wants it", ret->bdf);
	return 0;
}

static int remove_device(const struct tool_command *self, int argc, char **argv)
{
	struct tool_function f;
	struct sio_err err;
	int status = 0, at = tool_options(self, argc, argv, &status);

	if (at < 0)
		return status;
	if (tool_device_take(argv[at], forced, &f, &err) < 0)
		return tool_fail(&err);
	return finish(&f, "device-remove");
}

static const struct tool_option add_options[] = {
	{"force", .flag = &forced, .text = "although its disk or network interface is in use"},
	{"vfio", .flag = &by_vfio, .text = "without smartio.ko: to the kernel's vfio-pci"},
	{.name = NULL}};

const struct tool_command tool_device_add_command = {
	.name = "device add",
	.summary = "Give a PCI function of this machine to smartio.ko, or to VFIO",
	.help = "FUNCTION is its place as lspci -D prints it, 0000:05:00.0. Its own driver releases it, its\n"
		"IOMMU group becomes strict, and programs can borrow it from smartiod --shim by that name.\n"
		"Refused for a mounted disk and a network interface that is up, unless forced.\n"
		"With --vfio the kernel's vfio-pci gets it, which needs an IOMMU and no module of ours; all\n"
		"functions of its IOMMU group must be free of other drivers. Then programs borrow it from\n"
		"smartiod --vfio, and trust each other with it (docs/vfio.md).\n",
	.schemas = "device-add",
	.options = add_options,
	.words = {{"FUNCTION", TOOL_FUNCTIONS}},
	.run = add};
static const struct tool_option remove_options[] = {
	{"force", .flag = &forced,
	 .text = "although programs have borrowed it: they lose it at once"},
	{.name = NULL}};

const struct tool_command tool_device_remove_command = {
	.name = "device remove",
	.summary = "Give a PCI function back to its own driver",
	.help = "Undoes all that device add did. Refused while programs have borrowed it, unless forced.\n"
		"If it, or device add, was killed before its end, it is finished by doing it again.\n",
	.schemas = "device-remove",
	.options = remove_options,
	.words = {{"FUNCTION", TOOL_FUNCTIONS}},
	.run = remove_device};
