/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio cluster reload. On an emulated cluster the new file replaces the cluster's file when each
 * daemon, and then the machine room, has confirmed that it can accept it; on a real host its daemon
 * reads its own file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clusterfile.h"
#include "base/command.h"
#include "base/hint.h"
#include "base/hosts.h"
#include "base/local.h"
#include "base/output.h"
#include "base/room.h"
#include "base/state.h"
#include "cluster/cluster.h"
#include "cluster/keys.h"

static bool check_only, enforce;

static const struct tool_option reload_options[] = {
	{"check", .flag = &check_only, .text = "say what would change, and change nothing"},
	{"enforce", .flag = &enforce,
	 .text = "end what other hosts, and programs as borrowers, have and may have no more"},
	{.name = NULL}};

/* The answers of the daemons. */
struct outcome {
	struct json_object *changes, *forbidden, *hosts, *differ; /* with --json; else NULL */
	unsigned restart, now, forbids, taken, started, revoked;
	struct tool_room_item *item; /* what came and went */
	unsigned n_items;
	int room;  /* an emulated cluster's, which has prepared it; -1 */
	bool told; /* the changes were printed; each daemon sees the same */
};

/* ---- one daemon ---- */

static const char *kind_word(uint32_t kind)
{
	static const char *const word[SIO_RELOAD_KINDS] = {[SIO_RELOAD_NOW] = "",
							   [SIO_RELOAD_RESTART] =
								   "needs a restart: ",
							   [SIO_RELOAD_STAYS] = "stays: ",
							   [SIO_RELOAD_ENDS] = "ends: "};

	return kind < SIO_RELOAD_KINDS ? word[kind] : "";
}

static bool is_change(uint32_t kind)
{
	return kind == SIO_RELOAD_NOW || kind == SIO_RELOAD_RESTART;
}

static void report_line(struct outcome *o, const char *host, uint32_t kind, const char *text)
{
	struct json_object *line;

	if (!tool_where.json) {
		if (is_change(kind))
			printf("%s%s\n", kind_word(kind), text);
		else
			printf("%s: %s%s\n", host, kind_word(kind), text);
		return;
	}
	/* the command fails, and then its document has messages alone */
	if (kind == SIO_RELOAD_RESTART) {
		tool_error("%s%s", kind_word(kind), text);
		return;
	}
	line = tool_json_object();
	if (!is_change(kind))
		tool_json_string(line, "host", host);
	tool_json_string(line, "text", text);
	if (!is_change(kind))
		tool_json_bool(line, "ends", kind == SIO_RELOAD_ENDS);
	tool_json_append(is_change(kind) ? o->changes : o->forbidden, line);
}

static int report_lines(struct tool_host *h, struct outcome *o, unsigned n, struct sio_err *reterr)
{
	struct sio_rep_reload_line rep;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		struct sio_msg_reload_line req = {.index = sio_to_le32(i)};
		uint32_t kind;

		r = tool_client_call(&h->client, SIO_MSG_RELOAD_LINE, &req, sizeof(req), &rep,
				     sizeof(rep), reterr);
		if (r < 0)
			break;
		kind = sio_from_le32(rep.kind);
		rep.text[sizeof(rep.text) - 1] = '\0';
		if (!is_change(kind) || !o->told)
			report_line(o, h->topo->name, kind, rep.text);
	}
	o->told = true;
	return r;
}

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* @tell: print the answer. */
static int ask(struct tool_host *h, uint32_t flags, bool tell, struct outcome *o,
	       struct sio_err *reterr)
{
	struct sio_msg_reload req = {.flags = sio_to_le32(flags)};
	struct sio_rep_reload rep;
	int r = tool_client_call(&h->client, SIO_MSG_RELOAD, &req, sizeof(req), &rep, sizeof(rep),
				 reterr);

	if (r < 0)
		return sio_fail_prefix(reterr, "host '%s'", h->topo->name);
	/* One that started in between may go by the new file already. */
	o->restart = most(o->restart, sio_from_le32(rep.count[SIO_RELOAD_RESTART]));
	o->now = most(o->now, sio_from_le32(rep.count[SIO_RELOAD_NOW]));
	if (sio_from_le32(rep.applied))
		o->taken++;
	if (!tell)
		return 0;
	o->forbids += sio_from_le32(rep.count[SIO_RELOAD_STAYS]);
	return report_lines(h, o, sio_from_le32(rep.lines), reterr);
}

/* ---- all of them ---- */

/* The first error. A daemon that follows one that has died is asked all the same. */
static int ask_all(struct tool_hosts *hosts, uint32_t flags, bool tell, struct outcome *o,
		   struct sio_err *reterr)
{
	struct sio_err err;
	int r = 0;

	o->taken = o->restart = o->now = 0;
	for (unsigned i = 0; i < hosts->n; i++)
		if (hosts->host[i].up && ask(&hosts->host[i], flags, tell, o, &err) < 0 && r == 0) {
			*reterr = err;
			r = err.code;
		}
	return r;
}

/* A daemon that lives and cannot be reached would go on with the old file. */
static int all_reachable(const struct tool_hosts *hosts, struct sio_err *reterr)
{
	for (unsigned i = 0; i < hosts->n; i++)
		if (hosts->host[i].state == TOOL_HOST_SILENT)
			return sio_fail(reterr, -EBUSY,
					"smartiod of host '%s' runs, but does not answer: it would "
					"go on by the file of before; nothing was changed",
					hosts->host[i].topo->name);
	return 0;
}

/* All must be able to accept it before the first one does. */
static int check_all(struct tool_hosts *hosts, uint32_t flags, struct outcome *o,
		     struct sio_err *reterr)
{
	flags |= SIO_RELOAD_CHECK | (enforce ? SIO_RELOAD_ENFORCE : 0);
	return ask_all(hosts, flags, check_only, o, reterr);
}

static int refused(const struct outcome *o, bool local)
{
	return tool_error_code(-EOPNOTSUPP,
			       "%u of these changes need%s %s; nothing was changed, the file of "
			       "before is in force",
			       o->restart, o->restart == 1 ? "s" : "",
			       local ? "smartiod to be restarted"
				     : "the cluster to be taken down and brought up");
}

static int not_now(struct tool_hosts *hosts, uint32_t flags, struct outcome *o)
{
	struct sio_err err;

	if (!check_only && ask_all(hosts, flags | SIO_RELOAD_CHECK, true, o, &err) < 0)
		return tool_fail(&err);
	return refused(o, false);
}

/* ---- the other hosts' files ---- */

struct lines {
	struct json_object *array;
	const char *host, *other;
};

static void report_difference(void *ctx, bool mine, unsigned line, const char *text)
{
	struct lines *l = ctx;
	struct json_object *o;

	if (!l->array) {
		printf("%s line %u: %s\n", mine ? l->host : l->other, line, text);
		return;
	}
	o = tool_json_object();
	tool_json_string(o, "host", mine ? l->host : l->other);
	tool_json_number(o, "line", line);
	tool_json_string(o, "text", text);
	tool_json_append(l->array, o);
}

/*
 * A real host's file may differ from that of the others, because it is changed on each machine by
 * itself.
 */
static void compare_all(struct tool_hosts *hosts, struct outcome *o)
{
	struct tool_host *own = &hosts->host[0];

	tool_hosts_ask_others(hosts);
	for (unsigned i = 1; i < hosts->n; i++) {
		struct lines l = {o->differ, own->topo->name, hosts->host[i].topo->name};
		unsigned n;

		if (hosts->host[i].state != TOOL_HOST_AWAY)
			continue;
		if (tool_file_compare(&own->client, hosts->host[i].topo->node, report_difference,
				      &l, &n, NULL) == 0 &&
		    n > 0)
			tool_note("host '%s' has another file in force: %u line%s differ%s%s; the "
				  "same file on each host is right",
				  l.other, n, n == 1 ? "" : "s", n == 1 ? "s" : "",
				  n > TOOL_FILE_LINES ? ", of which the first 100 are shown" : "");
	}
}

/* ---- the file of an emulated cluster ---- */

static int put_file(const char *path, const struct tool_topofile *f, struct sio_err *reterr)
{
	size_t done = 0;
	ssize_t n = 0;
	int r = 0, fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	while (r == 0 && done < f->len) {
		n = write(fd, f->text + done, f->len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			r = -EIO;
	}
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r < 0 ? sio_fail(reterr, r, "%s: %s", path, strerror(-r)) : 0;
}

/* @local: on a real host, where the others read files of their own. */
static void print_done(const struct tool_hosts *hosts, const struct outcome *o, bool local)
{
	unsigned down = 0, on = o->taken + o->started;

	for (unsigned i = 0; i < hosts->n && !local; i++)
		down += !hosts->host[i].up && hosts->host[i].state != TOOL_HOST_AWAY;
	if (check_only)
		tool_note("%u change%s would be in force at once; nothing was changed", o->now,
			  o->now == 1 ? "" : "s");
	else
		tool_note("%u change%s in force on %u host%s", o->now,
			  o->now == 1 ? " is" : "s are", on, on == 1 ? "" : "s");
	if (o->forbids && !enforce)
		tool_note("%u thing%s that %s no longer allowed stay%s until given back; --enforce "
			  "ends borrows and other hosts' connections",
			  o->forbids, o->forbids == 1 ? "" : "s", o->forbids == 1 ? "is" : "are",
			  o->forbids == 1 ? "s" : "");
	if (o->revoked)
		tool_note("%u certificate%s of hosts that are gone %s revoked", o->revoked,
			  o->revoked == 1 ? "" : "s", o->revoked == 1 ? "is" : "are");
	if (down && !check_only)
		tool_note("%u host%s not up: %s the file when %s", down,
			  down == 1 ? " is" : "s are", down == 1 ? "it reads" : "they read",
			  down == 1 ? "it starts" : "they start");
}

static int print_json(const struct tool_hosts *hosts, struct outcome *o)
{
	struct json_object *doc = tool_json_object();
	char name[TOOL_NAME_TEXT];

	for (unsigned i = 0; i < hosts->n; i++)
		if (hosts->host[i].up && o->taken)
			tool_json_append(o->hosts, tool_json_word(hosts->host[i].topo->name));
	if (*tool_cluster_name(hosts->dir, name))
		tool_json_string(doc, "name", name);
	else
		tool_json_null(doc, "name");
	tool_json_string(doc, "directory", hosts->dir);
	tool_json_bool(doc, "applied", o->taken > 0);
	tool_json_add(doc, "hosts", o->hosts);
	tool_json_add(doc, "changes", o->changes);
	tool_json_add(doc, "forbidden", o->forbidden);
	tool_json_add(doc, "differences", o->differ);
	return tool_json_print("cluster-reload", doc);
}

/* Releases what has not become part of a document. */
static void release(struct outcome *o)
{
	json_object_put(o->changes);
	json_object_put(o->forbidden);
	json_object_put(o->hosts);
	json_object_put(o->differ);
}

/*
 * The machine room of an emulated cluster, which has the devices, makes what is new, so that
 * nothing fails for it later.
 */
static int prepare_room(const struct tool_hosts *hosts, bool next, struct outcome *o)
{
	struct sio_err err;
	int r = check_only ? tool_room_ask(hosts->dir,
					   next ? "reload check new" : "reload check now", &err)
			   : tool_room_prepare(hosts->dir, next, &o->room, &err);

	if (r == 0)
		return 0;
	tool_note("nothing was changed, the file of before is in force");
	return tool_fail(&err);
}

/*
 * Hosts that go first, then the daemons: they know a new device, or host, when it appears, and one
 * that goes until it is gone. The first error; the others go on by the new file all the same.
 */
static int change_all(struct tool_hosts *hosts, const struct sio_topology *now, struct outcome *o,
		      struct sio_err *reterr)
{
	struct sio_err err;
	int r;

	tool_cluster_stop_others(hosts->dir, now);
	r = ask_all(hosts, enforce ? SIO_RELOAD_ENFORCE : 0, true, o, reterr);
	if (tool_room_commit(o->room, hosts->dir, &o->item, &o->n_items, &err) < 0 && r == 0) {
		*reterr = err;
		r = err.code;
	}
	return r;
}

/* What hosts that went have left goes, too. */
static int start_new(struct tool_hosts *hosts, const struct sio_topology *now, struct outcome *o)
{
	char hint[TOOL_HINT_TEXT];
	struct sio_err err;

	for (unsigned i = 0; i < o->n_items; i++)
		if (o->item[i].what == TOOL_ROOM_GONE)
			tool_state_forget(hosts->dir, o->item[i].number);
	if (tool_cluster_start_new(hosts->dir, now, o->item, o->n_items, &o->started, &err) == 0)
		return 0;
	tool_note("the file is in force, and a host that is not up can be started: %s cluster "
		  "restart-node HOST",
		  tool_hint(hosts->dir, hint));
	return tool_fail(&err);
}

/*
 * The keys of an emulated cluster are made here, and are revoked here: a host that went, and is
 * added again, gets a new one.
 */
static int revoke_gone(const struct tool_hosts *hosts, const struct sio_topology *now,
		       struct outcome *o)
{
	char folder[PATH_MAX];
	struct sio_err err;

	if (now->n_hosts == 0 || !now->host[0].address.port)
		return 0;
	if (tool_path(folder, sizeof(folder), &err, "%s/keys", hosts->dir) == 0 &&
	    tool_keys_revoke_removed(folder, now, &o->revoked, &err) == 0)
		return 0;
	tool_note("the file is in force; certificates of hosts that it does not have are not "
		  "revoked: smartio cluster keys --revoke-removed TOPOLOGY %s",
		  folder);
	return tool_fail(&err);
}

/* @path: the new file, which says @now, to be renamed to @into; NULL: it is in its place. */
static int change(struct tool_hosts *hosts, const char *path, const char *into,
		  const struct sio_topology *now, struct outcome *o)
{
	uint32_t flags = path ? SIO_RELOAD_NEXT : 0;
	struct sio_err err;
	int r = check_all(hosts, flags, o, &err), status, keys;

	if (r < 0)
		return tool_fail(&err);
	if (o->restart)
		return not_now(hosts, flags, o);
	r = prepare_room(hosts, path, o);
	if (r != 0 || check_only)
		return r;
	if (path && rename(path, into) < 0)
		return tool_error_code(-errno, "%s: %s", into, strerror(errno));
	r = change_all(hosts, now, o, &err);
	keys = revoke_gone(hosts, now, o);
	status = start_new(hosts, now, o);
	if (r == 0)
		return status ? status : keys;
	tool_note("%u of %u hosts have the new file in force, the others are down, or have that of "
		  "before; the same command again mends it",
		  o->taken, hosts->n_up);
	return tool_fail(&err);
}

/* Whoever has the authority's key can revoke those of a host that went; a real host has it not. */
static int advise_on_keys(const struct tool_hosts *hosts)
{
	const struct sio_topology *before = hosts->topology;
	struct sio_topology *now;
	struct sio_err err;

	if (tool_local_topology(&now, &err) < 0)
		return tool_fail(&err);
	for (unsigned i = 0; i < before->n_hosts; i++)
		if (!sio_topology_host_by_name(now, before->host[i].name))
			tool_note("host '%s' is refused as long as the file does not have it; so "
				  "that its key is never good again, where ca.key is: smartio "
				  "cluster keys --revoke %s TOPOLOGY FOLDER, and give crl.pem to "
				  "each host",
				  before->host[i].name, before->host[i].name);
	sio_topology_free(now);
	return 0;
}

/*
 * One daemon, which takes the file that it reads, or says why not: reading it before, to see
 * whether it can be taken, would be of perhaps another one.
 */
static int change_local(struct tool_hosts *hosts, struct outcome *o)
{
	uint32_t flags = (check_only ? SIO_RELOAD_CHECK : 0) | (enforce ? SIO_RELOAD_ENFORCE : 0);
	struct sio_err err;

	if (ask_all(hosts, flags, true, o, &err) < 0)
		return tool_fail(&err);
	if (o->restart)
		return refused(o, true);
	return check_only ? 0 : advise_on_keys(hosts);
}

/* Those that go are not asked. */
static int leave_out(struct tool_hosts *hosts, const struct sio_topology *now,
		     struct sio_err *reterr)
{
	bool any = hosts->n_up > 0;

	for (unsigned i = hosts->n; i-- > 0;)
		if (!sio_topology_host_by_name(now, hosts->host[i].topo->name))
			tool_hosts_remove(hosts, i);
	if (all_reachable(hosts, reterr) < 0)
		return reterr->code;
	return hosts->n_up ? 0
			   : sio_fail(reterr, -ENOTCONN, "no host %s up; nothing was changed",
				      any ? "that stays in the cluster is" : "of the cluster is");
}

/* What follows is about the hosts that there are now. */
static int look_again(struct tool_hosts **hosts, const struct outcome *o, struct sio_err *reterr)
{
	struct tool_hosts *now;
	int r = tool_hosts_open_dir((*hosts)->dir, &now, reterr);

	if (r < 0)
		return r;
	tool_devices_await(now, (*hosts)->topology, o->item, o->n_items);
	tool_hosts_close(*hosts);
	*hosts = now;
	return 0;
}

static int change_emulated(struct tool_hosts **hosts, const char *from, struct outcome *o)
{
	char path[PATH_MAX] = "", into[PATH_MAX];
	struct tool_topofile f = {.text = NULL};
	const struct sio_topology *now = (*hosts)->topology;
	struct sio_err err;
	int r = 0, status;

	if (from)
		r = tool_topofile_load(from, &f, &err);
	if (r == 0 && from)
		now = f.topology;
	if (r == 0)
		r = leave_out(*hosts, now, &err);
	if (r == 0)
		r = tool_path(into, sizeof(into), &err, "%s/topology.yaml", (*hosts)->dir);
	if (r == 0)
		r = tool_path(path, sizeof(path), &err, "%s.new", into);
	if (r == 0 && from)
		r = put_file(path, &f, &err);
	status = r < 0 ? tool_fail(&err) : change(*hosts, from ? path : NULL, into, now, o);
	if (status == 0 && !check_only && look_again(hosts, o, &err) < 0)
		status = tool_fail(&err);
	if (from && *path)
		unlink(path); /* fails if it was renamed already, as it should */
	tool_topofile_done(&f);
	return status;
}

/* An emulated cluster is locked: no daemon starts meanwhile with the old file. */
static int open_all(struct tool_hosts **ret, int *ret_lock, struct sio_err *reterr)
{
	char dir[PATH_MAX];
	int r = tool_hosts_open_only(TOOL_NO_OTHER, ret, reterr);

	if (r < 0 || strcmp((*ret)->dir, TOOL_LOCAL_STATE) == 0)
		return r;
	memcpy(dir, (*ret)->dir, sizeof(dir));
	tool_hosts_close(*ret);
	r = tool_state_lock(dir, ret_lock, reterr);
	return r < 0 ? r : tool_hosts_open_dir(dir, ret, reterr);
}

static int reload(const struct tool_command *self, int argc, char **argv)
{
	struct tool_hosts *hosts = NULL;
	struct outcome o = {.room = -1};
	struct sio_err err;
	int first, status = 0, lock = -1;
	bool local;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (open_all(&hosts, &lock, &err) < 0) {
		status = tool_fail(&err);
		goto unlock;
	}
	local = strcmp(hosts->dir, TOOL_LOCAL_STATE) == 0;
	if (tool_where.json) {
		o.changes = tool_json_array();
		o.forbidden = tool_json_array();
		o.hosts = tool_json_array();
		o.differ = tool_json_array();
	}
	if (local && first < argc)
		status = tool_usage(self->name,
				    "%s: this machine's smartiod reads its own file; "
				    "change /etc/smartio/cluster.yaml",
				    argv[first]);
	else if (!local)
		status = change_emulated(&hosts, first < argc ? argv[first] : NULL, &o);
	else if (all_reachable(hosts, &err) < 0)
		status = tool_fail(&err);
	else if (hosts->n_up == 0)
		status = tool_error("smartiod is not up: it reads the file when it starts");
	else
		status = change_local(hosts, &o);
	if (local && status == 0)
		compare_all(hosts, &o);
	if (status == 0)
		print_done(hosts, &o, local);
	if (status == 0 && tool_where.json)
		status = print_json(hosts, &o);
	else
		release(&o);
	free(o.item);
	if (o.room >= 0)
		close(o.room);
	tool_hosts_close(hosts);
unlock:
	if (lock >= 0)
		close(lock);
	return status;
}

const struct tool_command tool_cluster_reload_command = {
	.name = "cluster reload",
	.summary = "Take a changed cluster's file over while the cluster runs",
	.help = "Has each daemon of the cluster read its file anew, from TOPOLOGY if given; a real host's reads\n"
		"/etc/smartio/cluster.yaml, on each host by itself. Access rules, quotas, and the names of users\n"
		"and groups are in force at once, also which other hosts there are and what leads where, on emulated\n"
		"clusters with hosts' daemons and their devices. If anything else differs, it is named, and nothing\n"
		"changes.\n",
	.page = "smartio-cluster",
	.schemas = "cluster-reload",
	.options = reload_options,
	.words = {{"[TOPOLOGY]", TOOL_TOPOLOGIES}},
	.run = reload};
