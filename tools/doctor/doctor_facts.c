/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "doctor/doctor_facts.h"
#include "device/function.h"
#include "base/local.h"
#include "base/output.h"
#include "base/room.h"

/* ---- does the user mean real devices? ---- */

static bool has_our_device(const struct doctor_source *s)
{
	char **name, word[DOCTOR_LINE];
	bool ours = false;
	ssize_t n = doctor_names(s, &name, "/sys/bus/pci/devices");

	for (ssize_t i = 0; i < n && !ours; i++)
		ours = doctor_line(s, word, "/sys/bus/pci/devices/%s/driver_override", name[i]) &&
		       strcmp(word, TOOL_FUNCTION_DRIVER) == 0;
	doctor_names_free(name, n);
	return ours;
}

bool doctor_wants_hardware(const struct doctor *d)
{
	const struct doctor_source *s = &d->source;

	return d->hardware ||
	       (tool_where.state && strcmp(tool_where.state, TOOL_LOCAL_STATE) == 0) ||
	       doctor_exists(s, "/sys/module/" TOOL_FUNCTION_DRIVER) ||
	       doctor_exists(s, TOOL_LOCAL_STATE "/local") || has_our_device(s) ||
	       doctor_by_vfio(d);
}

/* ---- one cluster ---- */

static enum doctor_life life_of(const char *dir, const char *name, pid_t *ret_pid)
{
	struct tool_program p;
	char path[PATH_MAX];

	if (tool_state_program(dir, name, false, &p) == 0) {
		*ret_pid = p.pid;
		return DOCTOR_LIVES;
	}
	if (tool_path(path, sizeof(path), NULL, "%s/%s.pid", dir, name) < 0)
		return DOCTOR_ENDED;
	return access(path, F_OK) == 0 ? DOCTOR_DIED : DOCTOR_ENDED;
}

bool doctor_is_stopped(pid_t pid)
{
	static const struct doctor_source own = {.root = ""};
	char state[DOCTOR_LINE];

	return doctor_field(&own, "State:", state, "/proc/%d/status", (int)pid) &&
	       (*state == 'T' || *state == 't');
}

/* Asks a living daemon; one that is stopped would not answer. */
static void greet(const char *dir, struct doctor_host *x)
{
	x->stopped = x->pid && doctor_is_stopped(x->pid);
	if (x->stopped) {
		sio_fail(&x->why, -ETIMEDOUT, "process %d is stopped by a signal", (int)x->pid);
		return;
	}
	x->h.up =
		tool_client_open(&x->h.client, dir, x->h.topo->node, SIO_CLIENT_TOOL, &x->why) == 0;
}

static void add_hosts(struct doctor_cluster *c)
{
	char name[48];

	c->n_hosts = c->topology->n_hosts;
	c->host = tool_alloc(c->n_hosts, sizeof(*c->host));
	for (unsigned i = 0; i < c->n_hosts; i++) {
		struct doctor_host *x = &c->host[i];

		x->h = (struct tool_host){.topo = &c->topology->host[i], .client.fd = -1};
		tool_state_daemon_name(x->h.topo->node, name, sizeof(name));
		x->life = life_of(c->dir, name, &x->pid);
		if (x->life == DOCTOR_LIVES)
			greet(c->dir, x);
	}
}

static void collect_files(struct doctor_cluster *c)
{
	DIR *dir = opendir(c->dir);

	c->readable = dir || errno == ENOENT;
	if (!dir) {
		sio_fail(&c->why, -errno, "%s: %s", c->dir, strerror(errno));
		return;
	}
	closedir(dir);
	c->state = tool_state_probe(c->dir);
	c->room = life_of(c->dir, "emu", &c->room_pid);
	if (c->state != TOOL_STATE_RUNNING && c->state != TOOL_STATE_STALE)
		return;
	if (tool_state_topology(c->dir, &c->topology, &c->why) == 0)
		add_hosts(c);
	else
		c->topology = NULL;
	if (c->topology && c->topology->n_switches && c->room == DOCTOR_LIVES)
		tool_room_outage(c->dir, c->topology, &c->outage, NULL);
}

/* This machine's own smartiod: a user who may not look at its process can still ask it. */
static void collect_local(struct doctor_cluster *c)
{
	struct doctor_host *x;
	int r;

	c->local = c->readable = true;
	c->state = TOOL_STATE_RUNNING;
	r = tool_local_topology(&c->topology, &c->why);
	if (r < 0) {
		c->room = r == -ECONNREFUSED ? DOCTOR_DIED : DOCTOR_ENDED;
		return;
	}
	c->room = DOCTOR_LIVES;
	c->n_hosts = 1;
	x = c->host = tool_alloc(1, sizeof(*c->host));
	x->h = (struct tool_host){.topo = &c->topology->host[0], .client.fd = -1};
	x->life = DOCTOR_LIVES;
	greet(c->dir, x);
}

static struct doctor_cluster *add(struct doctor *d, const char *dir)
{
	struct doctor_cluster *c;

	d->cluster = tool_grow(d->cluster, d->n_clusters + 1, sizeof(*d->cluster));
	c = &d->cluster[d->n_clusters++];
	*c = (struct doctor_cluster){.state = TOOL_STATE_ABSENT};
	snprintf(c->dir, sizeof(c->dir), "%s", dir);
	return c;
}

/* ---- which clusters ---- */

/* Return: true: a cluster was named, and is in @d. */
static bool add_named(struct doctor *d)
{
	const char *env = getenv("SMARTIO_STATE"), *state = tool_where.state;
	char dir[PATH_MAX], real[PATH_MAX];
	struct doctor_cluster *c;
	struct sio_err err;

	if (!state && !tool_where.cluster)
		state = env && *env ? env : NULL;
	if (!state && !tool_where.cluster)
		return false;
	if (state)
		snprintf(dir, sizeof(dir), "%s", state);
	else if (tool_state_path(tool_where.cluster, dir, sizeof(dir), &err) < 0)
		*dir = '\0'; /* a name that no cluster can have */
	c = add(d, realpath(dir, real) ? real : dir);
	if (!*dir) {
		c->why = err;
		c->readable = true;
	} else if (strcmp(c->dir, TOOL_LOCAL_STATE) == 0) {
		collect_local(c);
	} else {
		collect_files(c);
	}
	return true;
}

static void add_all(struct doctor *d, enum tool_state state, bool hidden)
{
	char base[PATH_MAX], dir[PATH_MAX], **names;
	struct doctor_cluster *c;
	size_t n;

	if (tool_state_base(base, sizeof(base), NULL) < 0 ||
	    tool_state_list(&names, &n, state, hidden, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (tool_path(dir, sizeof(dir), NULL, "%s/%s", base, names[i]) == 0) {
			c = add(d, dir);
			c->hidden = hidden;
			collect_files(c);
		}
		free(names[i]);
	}
	free(names);
}

void doctor_collect(struct doctor *d)
{
	if (add_named(d))
		return;
	for (int hidden = 0; hidden < 2; hidden++) {
		add_all(d, TOOL_STATE_RUNNING, hidden);
		add_all(d, TOOL_STATE_STALE, hidden);
	}
	/* A copy of another machine's files does not say who listens on this one. */
	if (!*d->source.root && doctor_wants_hardware(d))
		collect_local(add(d, TOOL_LOCAL_STATE));
}

void doctor_collect_done(struct doctor *d)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		DOCTOR_EACH_HOST (c, x)
			tool_client_close(&x->h.client);
		sio_outage_free(c->outage);
		sio_topology_free(c->topology);
		free(c->host);
	}
	free(d->cluster);
	d->cluster = NULL;
	d->n_clusters = 0;
}

/* ---- what they answered ---- */

bool doctor_counter(const struct sio_rep_stats *stats, const char *name, uint64_t *ret)
{
	const size_t max = sizeof(stats->counter) / sizeof(stats->counter[0]);
	uint32_t n = sio_from_le32(stats->count);

	for (uint32_t i = 0; i < n && i < max; i++) {
		if (strncmp(stats->counter[i].name, name, sizeof(stats->counter[i].name)) != 0)
			continue;
		*ret = sio_from_le64(stats->counter[i].value);
		return true;
	}
	return false;
}

const struct sio_topo_device *doctor_device(const struct doctor_cluster *c, uint32_t fdid,
					    struct doctor_host **ret_host)
{
	DOCTOR_EACH_HOST (c, x)
		for (unsigned i = 0; i < x->h.topo->n_devices; i++)
			if (x->h.topo->device[i].fdid == fdid) {
				if (ret_host)
					*ret_host = x;
				return &x->h.topo->device[i];
			}
	return NULL;
}

const char *doctor_node_name(const struct doctor_cluster *c, uint32_t node)
{
	const struct sio_topo_host *h = c->topology ? sio_topology_host(c->topology, node) : NULL;

	return h ? h->name : "an unknown host";
}
