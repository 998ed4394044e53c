/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each request again and again, while the kernel fails its first allocation or copy, the second,
 * and so on (fail-nth of /proc; the debug kernel): it is refused and has changed nothing, or it has
 * succeeded without; and nothing is left of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

#define MOST 1000

/* Where the kernel fails on demand; a value that is "" stays as it is. */
static const struct {
	const char *file, *value;
} settings[] = {
	{"failslab/verbose", "0"},	    {"failslab/ignore-gfp-wait", "N"},
	{"fail_page_alloc/verbose", "0"},   {"fail_page_alloc/ignore-gfp-wait", "N"},
	{"fail_page_alloc/min-order", "0"}, {"fail_usercopy/verbose", "0"},
};

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* False: this kernel cannot. */
static bool prepare(struct port_world *w)
{
	char path[128];

	if (access("/proc/self/fail-nth", W_OK) < 0)
		return false;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", settings[i].file);
		if (!put(path, settings[i].value))
			port_failed(w, "%s: %s", path, strerror(errno));
	}
	return true;
}

/* Return: has the failure been met? It may be met only just by these calls themselves. */
static bool disarm(int fd)
{
	char text[16] = "";
	bool met = pread(fd, text, sizeof(text) - 1, 0) > 0 && strtoul(text, NULL, 10) == 0;

	while (pwrite(fd, "0", 1, 0) < 0 && errno == EFAULT)
		;
	return met;
}

/*
 * Ask while the @nth of what can fail does; *ret_hit: did it come to that many? Return: 0 or -errno
 * of the answer; 1: a check failed.
 */
static int ask_failing(struct port_world *w, union port_packet *req, unsigned nth, bool *ret_hit)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC), sent, rc;
	const struct sio_evt_settle *settled;
	union port_packet answer;
	char text[16] = "";
	unsigned fds = 0;

	req->req.cookie = ++w->cookie;
	snprintf(text, sizeof(text), "%u", nth);
	if (fd < 0 || pwrite(fd, text, strlen(text), 0) < 0)
		port_failed(w, "fail-nth: %s", strerror(errno));
	sent = w->t->send(w->ctx, 0, req, req->req.size, NULL, 0);
	*ret_hit = disarm(fd);
	close(fd);
	if (sent < 0 || port_await(w, 0, req->req.cookie, &answer, &fds))
		return sent < 0 ? sent : 1;
	rc = port_check_answer(w, &req->req, &answer, fds, NULL);
	settled = (const void *)&answer;
	if (rc == 0 && req->req.op == SIO_OP_SETTLE && settled->dmamaps != 1)
		port_failed(w, "failure %u: settled nothing, but said it was done", nth);
	return rc;
}

/* The things of a row, as long as nothing has happened to them. */
struct row {
	bool made;
	uint64_t digest;
};

static void end_row(struct port_world *w, struct row *row)
{
	port_things_end(w);
	row->made = false;
}

/* What gives something back needs no memory: who asks for it is not told that it failed. */
static bool gives_back(uint32_t op)
{
	return op == SIO_OP_OWNER_CLOSE || op == SIO_OP_FREE || op == SIO_OP_BAR_CLOSE ||
	       op == SIO_OP_DMAUNMAP || op == SIO_OP_IRQ_FREE || op == SIO_OP_DEVICE_CLOSE;
}

/* Return: false: it did not come to that many, or a check failed. */
static bool try_op(struct port_world *w, struct row *row, uint32_t op, unsigned nth)
{
	union port_packet req;
	uint64_t after = 0;
	bool hit = false;
	int rc;

	if (!row->made && (port_things_make(w) || port_digest(w, &row->digest)))
		return false;
	row->made = true;
	port_good(w, op, &req);
	rc = ask_failing(w, &req, nth, &hit);
	if (hit && (rc == -EINVAL || rc == -ENOENT || rc == -ENODEV))
		port_failed(w, "failure %u: answered %d", nth, rc);
	if (rc == -ENOMEM && gives_back(op))
		port_failed(w, "failure %u: no memory to give something back", nth);
	/* One whose answer could not be stored has happened. */
	if (rc >= 0 || rc == -EFAULT)
		end_row(w, row);
	else if (port_digest(w, &after) == 0 && row->digest != after)
		port_failed(w, "failure %u: refused with %d, but something has changed", nth, rc);
	return hit && !w->why[0];
}

/* Return: how many failures it came to. */
static unsigned run_op(struct port_world *w, uint32_t op)
{
	struct row row = {.made = false};
	union port_packet req, answer;
	unsigned nth = 1;
	char line[64];
	int rc;

	/*
	 * What is refused anyhow, for want of a descriptor or since things are in use, shows
	 * nothing.
	 */
	rc = port_things_make(w);
	port_good(w, op, &req);
	rc = rc ? rc : port_ask(w, 0, &req, req.req.size, &answer, NULL);
	port_things_end(w);
	if (rc < 0)
		return 0;
	while (nth < MOST && try_op(w, &row, op, nth))
		nth++;
	end_row(w, &row);
	snprintf(line, sizeof(line), "operation %u under %u failures", op, nth - 1);
	port_report(w, line);
	return nth - 1;
}

/* All interrupt lines of a device come with its first vector. */
static bool try_lines(struct port_world *w, unsigned nth)
{
	union port_packet req;
	uint64_t owner;
	bool hit = false;
	int fd = -1;

	shim_make(w, SIO_OP_DEVICE_CLOSE, 0, NULL);
	shim_make(w, SIO_OP_DEVICE_OPEN, 0, NULL);
	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	w->thing[T_OWNER] = owner;
	w->thing[T_IRQ] = shim_make(w, SIO_OP_IRQ_NEW, owner, NULL);
	port_good(w, SIO_OP_VECTOR, &req);
	ask_failing(w, &req, nth, &hit);
	close(fd);
	port_things_end(w);
	return hit && !w->why[0];
}

void port_failures(struct port_world *w)
{
	unsigned nth, all = 0;
	char line[64];

	if (!prepare(w)) {
		port_report(
			w, "each failure of the kernel # SKIP it fails on demand only if built so");
		return;
	}
	for (uint32_t op = SIO_OP_INFO; op < SIO_OP_COUNT; op++)
		if (port_served(w, op) && port_size(op))
			all += run_op(w, op);
	for (nth = 1; nth < MOST && try_lines(w, nth); nth++)
		all++;
	snprintf(line, sizeof(line), "the first vector under %u failures", nth - 1);
	port_report(w, line);
	shim_check(w, all > 50, "failures were met");
	port_report(w, "failures were met");
}
