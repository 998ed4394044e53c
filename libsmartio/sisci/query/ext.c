/* SPDX-License-Identifier: BSD-2-Clause */
/* The extensions of smartio/ext.h that are about this process, and names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sisci/device/device.h"

const char *smartio_last_error(void)
{
	return sio_error_recall();
}

unsigned int smartio_last_exhausted(void)
{
	return sio_error_reason();
}

const char *smartio_exhausted_name(unsigned int what)
{
	return sio_reason_name(what);
}

const char *smartio_host_name(void)
{
	struct sio_library *lib = sio_library_get();

	return lib ? lib->host : "";
}

const char *smartio_cluster_name(void)
{
	struct sio_library *lib = sio_library_get();

	return lib ? lib->cluster : "";
}

uint64_t smartio_now_ns(void)
{
	struct sio_world *w = sio_world_current();

	return w->now(w);
}

void smartio_yield(void)
{
	struct sio_world *w = sio_world_current();

	w->yield(w);
}

uint64_t smartio_random(void)
{
	struct sio_world *w = sio_world_current();

	return w->random(w);
}

uint32_t smartio_process(void)
{
	struct sio_world *w = sio_world_current();

	return w->pid(w);
}

/* ---- threads ---- */
static int start(struct sio_world *w, void (*fn)(void *), void *arg, smartio_thread_t *ret,
		 struct sio_err *err)
{
	struct sio_world_thread *t;

	if (w->thread_start(w, fn, arg, &t))
		return sio_fail(err, -ENOMEM,
				"no thread can be started: end some, or raise the limit (ulimit "
				"-u, pids.max)");
	*ret = (smartio_thread_t)t;
	return 0;
}

void smartio_thread_start(void (*fn)(void *arg), void *arg, smartio_thread_t *thread,
			  sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer((const void *)(uintptr_t)fn, "fn", &err);
	if (!rc)
		rc = sio_check_pointer(thread, "thread", &err);
	if (!rc)
		rc = start(lib->world, fn, arg, thread, &err);
	sio_api_leave(error, rc, &err);
}

void smartio_thread_join(smartio_thread_t thread)
{
	struct sio_world *w = sio_world_current();

	if (thread)
		w->thread_join(w, (struct sio_world_thread *)thread);
}

/* ---- names ---- */
/* A number that fits a device id, "1025" or "0x401"; 0: it is none. */
static uint32_t parse_id(const char *text)
{
	unsigned base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
	const char *p = base == 16 ? text + 2 : text;
	uint32_t value = 0;

	for (; *p; p++) {
		unsigned digit = *p >= '0' && *p <= '9'	  ? (unsigned)(*p - '0')
				 : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
				 : *p >= 'A' && *p <= 'F' ? (unsigned)(*p - 'A') + 10
							  : 99;

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return 0;
	}
	return value;
}

/* One name more for whoever asked for another one; of too many the first ones. */
static void add_name(char *names, size_t size, const struct sio_rep_dev_list *rep)
{
	size_t used = strlen(names), len = strnlen(rep->name, sizeof(rep->name));

	if (used + 2 + len + sizeof(", ...") <= size)
		snprintf(names + used, size - used, "%s%.*s", used ? ", " : "", (int)len,
			 rep->name);
	else if (used < 3 || strcmp(names + used - 3, "...") != 0)
		snprintf(names + used, size - used, ", ...");
}

static int find(struct sio_library *lib, const char *name, unsigned *ret, struct sio_err *err)
{
	uint32_t after = 0, number = parse_id(name);
	struct sio_rep_dev_list rep;
	char names[256] = "";
	int rc;

	for (;;) {
		rc = sio_device_next(lib, after, &rep, err);
		if (rc == -ENODEV)
			return sio_fail(err, rc,
					"no device is called \"%.64s\" in cluster %s now; %s%s",
					name, lib->cluster,
					names[0] ? "there are: " : "there is none", names);
		if (rc)
			return rc;
		after = sio_from_le32(rep.fdid);
		if (!strncmp(rep.name, name, sizeof(rep.name)) || after == number) {
			*ret = after;
			return 0;
		}
		add_name(names, sizeof(names), &rep);
	}
}

void smartio_find_device(const char *name, unsigned int *fdid, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(name, "name", &err);
	if (!rc)
		rc = sio_check_pointer(fdid, "fdid", &err);
	if (!rc)
		rc = find(lib, name, fdid, &err);
	sio_api_leave(error, rc, &err);
}

static int await_device(struct sio_library *lib, const char *name, unsigned state,
			unsigned timeout_ms, unsigned *ret, struct sio_err *err)
{
	struct sio_msg_dev_await req = {.fdid = sio_to_le32(parse_id(name)),
					.want = sio_to_le32(state),
					.timeout_ms = sio_to_le32(timeout_ms)};
	struct sio_rep_dev_await rep;
	int rc;

	if (strlen(name) >= sizeof(req.name))
		return sio_fail(
			err, -EINVAL,
			"the name of a device is shorter than %zu characters; \"%.64s...\" is "
			"not",
			sizeof(req.name), name);
	memcpy(req.name, name, strlen(name));
	rc = sio_ask(lib, SIO_MSG_DEV_AWAIT, &req, sizeof(req), &rep, sizeof(rep), err);
	if (rc == 0)
		*ret = sio_from_le32(rep.fdid);
	return sio_error_as(rc, -ETIMEDOUT, SCI_ERR_TIMEOUT);
}

void smartio_await_device(const char *name, unsigned int state, unsigned int timeout_ms,
			  unsigned int *fdid, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(name, "name", &err);
	if (!rc)
		rc = sio_check_pointer(fdid, "fdid", &err);
	if (!rc)
		rc = await_device(lib, name, state, timeout_ms, fdid, &err);
	sio_api_leave(error, rc, &err);
}
