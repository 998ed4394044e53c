/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hosts.h"
#include "cluster/programs.h"

#define WAIT_MS 5000

/* A host's daemon. */
struct daemon {
	uint64_t since; /* the last event that it had sent before the change */
	bool asked;	/* and not heard yet */
	struct sio_rep_events_await rep;
};

struct tool_programs {
	struct tool_hosts *hosts;
	struct daemon daemon[SIO_MAX_HOSTS];
};

int tool_wait_parse(const char *seconds, uint32_t *ret_ms, struct sio_err *reterr)
{
	unsigned long n;
	char *end;

	*ret_ms = WAIT_MS;
	if (!seconds)
		return 0;
	n = strtoul(seconds, &end, 10);
	if (*seconds < '0' || *seconds > '9' || *end || n > SIO_EVENTS_LIMIT_MS / 1000)
		return sio_fail(reterr, -EINVAL, "--wait %s: seconds, up to %u, are right", seconds,
				SIO_EVENTS_LIMIT_MS / 1000);
	*ret_ms = (uint32_t)n * 1000;
	return 0;
}

/* It is heard later, so that none waits for the answer of another. */
static void ask(struct tool_programs *p, unsigned i, uint64_t since, uint32_t node, uint32_t ms)
{
	struct tool_host *h = &p->hosts->host[i];
	struct sio_msg_events_await req = {.since = sio_to_le64(since),
					   .node = sio_to_le32(node),
					   .limit_ms = sio_to_le32(ms)};
	struct sio_err err;

	if (!h->up)
		return;
	p->daemon[i].asked = true;
	if (tool_client_ask(&h->client, SIO_MSG_EVENTS_AWAIT, &req, sizeof(req), &err) < 0)
		tool_host_lost(p->hosts, h, &err);
}

/* What those that were asked answer, of whom each was given @ms. */
static void hear_all(struct tool_programs *p, uint32_t ms)
{
	int64_t deadline = tool_client_deadline() + ms;

	for (unsigned i = 0; i < p->hosts->n; i++) {
		struct tool_host *h = &p->hosts->host[i];
		struct daemon *d = &p->daemon[i];
		bool asked = d->asked;
		struct sio_err err;

		d->asked = false;
		if (asked && h->up &&
		    tool_client_answer(&h->client, SIO_MSG_EVENTS_AWAIT, &d->rep, sizeof(d->rep),
				       deadline, &err) < 0)
			tool_host_lost(p->hosts, h, &err);
	}
}

static uint32_t late(const struct tool_programs *p, unsigned i)
{
	return p->hosts->host[i].up ? sio_from_le32(p->daemon[i].rep.late) : 0;
}

int tool_programs_open(const char *dir, struct tool_programs **ret, struct sio_err *reterr)
{
	struct tool_programs *p = tool_alloc(1, sizeof(*p));
	int r = tool_hosts_open_dir(dir, &p->hosts, reterr);

	if (r < 0) {
		free(p);
		return r;
	}
	for (unsigned i = 0; i < p->hosts->n; i++)
		ask(p, i, SIO_EVENTS_NONE, 0, 0);
	hear_all(p, 0);
	for (unsigned i = 0; i < p->hosts->n; i++)
		p->daemon[i].since = sio_from_le64(p->daemon[i].rep.events);
	*ret = p;
	return 0;
}

static bool is_silent(const struct tool_programs *p, unsigned i)
{
	return p->hosts->host[i].state == TOOL_HOST_SILENT;
}

/*
 * All programs are asked before any is waited for, so that a slow one takes no time from the
 * others; first those of @node, whose daemon has then told the others'. If it is silent these do
 * not wait for it, too.
 */
static void ask_all(struct tool_programs *p, uint32_t node)
{
	uint32_t first = node;

	for (unsigned i = 0; i < p->hosts->n; i++)
		if (p->hosts->host[i].topo->node == first)
			ask(p, i, p->daemon[i].since, 0, 0);
	hear_all(p, 0);
	for (unsigned i = 0; i < p->hosts->n; i++)
		if (p->hosts->host[i].topo->node == first && is_silent(p, i))
			node = 0;
	for (unsigned i = 0; i < p->hosts->n; i++)
		if (p->hosts->host[i].topo->node != first)
			ask(p, i, p->daemon[i].since, node, 0);
	hear_all(p, 0);
}

static void wait_for_all(struct tool_programs *p, uint32_t ms)
{
	for (unsigned i = 0; i < p->hosts->n; i++)
		if (late(p, i))
			ask(p, i, SIO_EVENTS_NONE, 0, ms);
	hear_all(p, ms);
}

/* "?": it has ended since. */
static void name_of(uint32_t pid, char name[32])
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, name, 31);
		close(fd);
	}
	if (n <= 0)
		n = snprintf(name, 32, "?");
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

static void put(struct tool_table *table, struct json_object *array,
		const struct sio_topo_host *host, uint32_t pid)
{
	struct json_object *o;
	char name[32];

	name_of(pid, name);
	if (array) {
		o = tool_json_object();
		tool_json_string(o, "host", host->name);
		tool_json_number(o, "node", host->node);
		tool_json_number(o, "pid", pid);
		tool_json_string(o, "name", name);
		tool_json_append(array, o);
		return;
	}
	tool_table_cell(table, "%s", host->name);
	tool_table_cell(table, "%u", pid);
	tool_table_cell(table, "%s", name);
}

/* Return: how many there are. */
static unsigned put_all(const struct tool_programs *p, struct json_object *array)
{
	struct tool_table *table = array ? NULL : tool_table_new("HOST|>PID|PROGRAM");
	unsigned n = 0, shown = 0;

	for (unsigned i = 0; i < p->hosts->n; i++) {
		for (unsigned k = 0; k < late(p, i) && k < SIO_EVENTS_PIDS; k++, shown++)
			put(table, array, p->hosts->host[i].topo,
			    sio_from_le32(p->daemon[i].rep.pid[k]));
		n += late(p, i);
	}
	if (table && n)
		tool_table_end(table);
	else
		tool_table_free(table);
	if (shown < n)
		tool_note("and %u more", n - shown);
	return n;
}

/* Return: how many there are. */
static unsigned put_silent(const struct tool_programs *p, struct json_object *array)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->hosts->n; i++) {
		const char *name = p->hosts->host[i].topo->name;

		if (!is_silent(p, i))
			continue;
		if (array)
			tool_json_append(array, tool_json_word(name));
		tool_note("host '%s' does not answer: whether its programs have switched is not "
			  "known",
			  name);
		n++;
	}
	return n;
}

int tool_programs_await(struct tool_programs *p, uint32_t node, uint32_t ms,
			struct json_object *doc)
{
	struct json_object *array = tool_where.json ? tool_json_array() : NULL;
	struct json_object *silent = tool_where.json ? tool_json_array() : NULL;
	unsigned n, n_silent;

	ask_all(p, node);
	wait_for_all(p, ms);
	n = put_all(p, array);
	if (n)
		tool_note("%u program%s not switched within %g second%s: stopped, or in a callback "
			  "that does not end; the same command again, or with --wait, waits anew",
			  n, n == 1 ? " has" : "s have", ms / 1000.0, ms == 1000 ? "" : "s");
	n_silent = put_silent(p, silent);
	if (array) {
		tool_json_add(doc, "late", array);
		tool_json_add(doc, "silent", silent);
	}
	return n || n_silent ? TOOL_EXIT_LATE : 0;
}

void tool_programs_close(struct tool_programs *p)
{
	if (!p)
		return;
	tool_hosts_close(p->hosts);
	free(p);
}
