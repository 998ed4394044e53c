/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/hosts.h"
#include "base/local.h"
#include "base/output.h"
#include "base/state.h"

/* Nobody listens, or the daemon hung up while it was asked: in both cases the host is down. */
static bool means_down(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -ENOTCONN ||
	       error == -ECONNRESET;
}

static bool still_runs(const char *dir, uint32_t node)
{
	struct tool_program p;
	char name[48];

	tool_state_daemon_name(node, name, sizeof(name));
	return tool_state_program(dir, name, false, &p) == 0;
}

const char *tool_host_state_name(enum tool_host_state state)
{
	static const char *const name[] = {[TOOL_HOST_DOWN] = "down",
					   [TOOL_HOST_UP] = "up",
					   [TOOL_HOST_SILENT] = "no answer",
					   [TOOL_HOST_AWAY] = "up"};

	return name[state];
}

static void set_state(struct tool_host *host, enum tool_host_state state)
{
	host->state = state;
	host->up = state == TOOL_HOST_UP;
	host->answers = host->up || state == TOOL_HOST_AWAY;
	if (!host->answers)
		tool_client_close(&host->client);
}

/* Another machine's words go to this one's terminals. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

bool tool_host_lost(struct tool_hosts *h, struct tool_host *host, const struct sio_err *error)
{
	/* Whatever another machine refuses, the rest of the cluster can be shown. */
	if (host->state == TOOL_HOST_AWAY) {
		set_state(host, TOOL_HOST_SILENT);
		sio_fail(&host->why, error->code, "host '%s' cannot be asked: %s", host->topo->name,
			 error->text);
		make_printable(host->why.text);
		return true;
	}
	if (!means_down(error->code) && error->code != -ETIMEDOUT)
		return false;
	if (!still_runs(h->dir, host->topo->node)) {
		set_state(host, TOOL_HOST_DOWN);
		return true;
	}
	set_state(host, TOOL_HOST_SILENT);
	host->why = *error;
	if (error->code == -ENOTCONN)
		sio_fail(&host->why, -EBUSY,
			 "smartiod of host '%s' runs, but takes no more clients; "
			 "%s/smartiod.%u.log tells why",
			 host->topo->name, h->dir, host->topo->node);
	return true;
}

static int open_host(struct tool_hosts *h, struct tool_host *host, struct sio_err *reterr)
{
	struct sio_err err;
	int r = tool_client_open(&host->client, h->dir, host->topo->node, SIO_CLIENT_TOOL, &err);

	if (r == 0)
		set_state(host, TOOL_HOST_UP);
	else if (!tool_host_lost(h, host, &err)) {
		if (reterr)
			*reterr = err;
		return r;
	}
	h->n_up += host->up;
	return 0;
}

/* Our daemon asks another machine's for us: how much memory has it? */
static void ask_away(struct tool_hosts *h, struct tool_host *host)
{
	struct sio_msg_list req = {.kind = sio_to_le32(SIO_LIST_NODES),
				   .after = sio_to_le64(host->topo->node - 1),
				   .node = sio_to_le32(host->topo->node)};
	uint64_t generation = host->client.boot_generation;
	struct sio_err err;
	int r = tool_client_open(&host->client, h->dir, 0, SIO_CLIENT_TOOL, &err);

	host->client.of = host->topo->node;
	host->client.boot_generation = generation;
	set_state(host, TOOL_HOST_AWAY);
	if (r == 0)
		r = tool_client_ask(&host->client, SIO_MSG_LIST, &req, sizeof(req), &err);
	if (r < 0)
		tool_host_lost(h, host, &err);
}

static void hear_away(struct tool_hosts *h, struct tool_host *host, int64_t deadline)
{
	struct sio_topo_host *topo = &h->topology->host[host->topo - h->topology->host];
	struct sio_rep_list rep;
	struct sio_err err;

	if (tool_client_answer(&host->client, SIO_MSG_LIST, &rep, sizeof(rep), deadline, &err) < 0)
		tool_host_lost(h, host, &err);
	else if (sio_from_le32(rep.count) && sio_from_le32(rep.row[0].node) == topo->node)
		topo->ram_size = sio_from_le64(rep.row[0].bytes);
}

/* All that are @wanted at once, so that those that do not answer cost one wait. */
static void ask_all(struct tool_hosts *h, const bool *wanted)
{
	int64_t deadline;

	for (unsigned i = 0; i < h->n; i++)
		if (wanted[i])
			ask_away(h, &h->host[i]);
	deadline = tool_client_deadline();
	for (unsigned i = 0; i < h->n; i++)
		if (wanted[i] && h->host[i].answers)
			hear_away(h, &h->host[i], deadline);
}

void tool_hosts_ask_others(struct tool_hosts *h)
{
	bool wanted[SIO_MAX_HOSTS] = {false};

	for (unsigned i = 0; i < h->n; i++)
		wanted[i] = h->host[i].state == TOOL_HOST_AWAY && !h->host[i].answers;
	ask_all(h, wanted);
}

static bool is_called(const struct sio_topo_host *host, const char *only)
{
	char *end;

	return !only || strcmp(host->name, only) == 0 ||
	       (strtoul(only, &end, 0) == host->node && *end == '\0');
}

/* The other hosts' daemons are on other machines: this host's daemon says which of them are up. */
static int ask_of_others(struct tool_hosts *h, const char *only, struct sio_err *reterr)
{
	bool wanted[SIO_MAX_HOSTS] = {false};
	struct sio_wire_row *row;
	size_t n;
	int r;

	if (!h->host[0].up)
		return 0;
	r = tool_client_list(&h->host[0].client, SIO_LIST_NODES, &row, &n, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct tool_host *host = h->host + 1;

		while (host < h->host + h->n && host->topo->node != sio_from_le32(row[i].node))
			host++;
		if (host == h->host + h->n || !(sio_from_le32(row[i].flags) & SIO_ROW_UP))
			continue;
		host->state = TOOL_HOST_AWAY;
		host->client.boot_generation = sio_from_le64(row[i].owner);
		wanted[host - h->host] = is_called(host->topo, only);
	}
	free(row);
	ask_all(h, wanted);
	return 0;
}

static int open_dir(const char *dir, const char *only, struct tool_hosts **ret,
		    struct sio_err *reterr)
{
	struct tool_hosts *h = tool_alloc(1, sizeof(*h));
	bool local = strcmp(dir, TOOL_LOCAL_STATE) == 0;
	int r;

	r = tool_path(h->dir, sizeof(h->dir), reterr, "%s", dir);
	if (r == 0 && local)
		r = tool_local_topology(&h->topology, reterr);
	else if (r == 0)
		r = tool_state_topology(dir, &h->topology, reterr);
	if (r < 0) {
		free(h);
		return r;
	}
	tool_name_topology(h->topology, dir);
	h->n = h->topology->n_hosts;
	for (unsigned i = 0; i < h->n; i++)
		h->host[i] = (struct tool_host){.topo = &h->topology->host[i], .client.fd = -1};
	for (unsigned i = 0; r == 0 && i < (local ? 1 : h->n); i++)
		r = open_host(h, &h->host[i], reterr);
	if (r == 0 && local)
		r = ask_of_others(h, only, reterr);
	if (r < 0) {
		tool_hosts_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

int tool_hosts_open_dir(const char *dir, struct tool_hosts **ret, struct sio_err *reterr)
{
	return open_dir(dir, NULL, ret, reterr);
}

int tool_hosts_open(struct tool_hosts **ret, struct sio_err *reterr)
{
	return tool_hosts_open_only(NULL, ret, reterr);
}

int tool_hosts_open_only(const char *node, struct tool_hosts **ret, struct sio_err *reterr)
{
	char dir[PATH_MAX];
	int r;

	if (tool_where.state && strcmp(tool_where.state, TOOL_LOCAL_STATE) == 0)
		return open_dir(TOOL_LOCAL_STATE, node, ret, reterr);
	r = tool_state_find(tool_where.state, tool_where.cluster, dir, sizeof(dir), reterr);
	if (r == -ENOENT && !tool_where.state && !tool_where.cluster && tool_local_runs())
		return open_dir(TOOL_LOCAL_STATE, node, ret, reterr);
	return r < 0 ? r : open_dir(dir, node, ret, reterr);
}

void tool_hosts_close(struct tool_hosts *h)
{
	if (!h)
		return;
	for (unsigned i = 0; i < h->n; i++)
		tool_client_close(&h->host[i].client);
	sio_topology_free(h->topology);
	free(h);
}

void tool_hosts_remove(struct tool_hosts *h, unsigned index)
{
	h->n_up -= h->host[index].up;
	tool_client_close(&h->host[index].client);
	memmove(&h->host[index], &h->host[index + 1], (--h->n - index) * sizeof(h->host[0]));
}

int tool_host_adapter(struct tool_host *h, unsigned index, struct sio_rep_adapter *ret,
		      struct sio_err *reterr)
{
	struct sio_msg_adapter req = {.adapter = sio_to_le32(index),
				      .node = sio_to_le32(h->client.of)};
	int r = tool_client_call(&h->client, SIO_MSG_ADAPTER, &req, sizeof(req), ret, sizeof(*ret),
				 reterr);

	/* A reload is under way: the file has one that its daemon does not have yet. */
	if (r != -ENXIO)
		return r;
	memset(ret, 0, sizeof(*ret));
	return 0;
}

int tool_host_device(struct tool_host *h, uint32_t fdid, struct sio_rep_dev_list *ret,
		     struct sio_err *reterr)
{
	struct sio_msg_dev_list req = {.after = sio_to_le32(fdid - 1)};
	struct sio_rep_dev_list rep;
	int r;

	r = tool_client_call(&h->client, SIO_MSG_DEV_LIST, &req, sizeof(req), &rep, sizeof(rep),
			     reterr);
	if (r < 0)
		return r;
	if (sio_from_le32(rep.fdid) != fdid)
		return sio_fail(reterr, -ENODEV, "host '%s' knows no device %#x", h->topo->name,
				fdid);
	rep.name[sizeof(rep.name) - 1] = '\0';
	*ret = rep;
	return 0;
}

int tool_host_counters(struct tool_host *h, enum tool_counters kind, uint32_t id,
		       struct sio_rep_stats *ret, struct sio_err *reterr)
{
	struct sio_msg_stats req = {.kind = sio_to_le32(kind),
				    .id = sio_to_le32(id),
				    .node = sio_to_le64(h->client.of)};
	int r = tool_client_call(&h->client, SIO_MSG_STATS, &req, sizeof(req), ret, sizeof(*ret),
				 reterr);

	if (r != -ENXIO || kind != TOOL_COUNTERS_ADAPTER)
		return r;
	memset(ret, 0, sizeof(*ret));
	return 0;
}
