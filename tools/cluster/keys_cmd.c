/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio cluster keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "cluster/cluster.h"
#include "cluster/keys.h"

static const char *renew_host, *revoke_host, *days_text;
static bool revoke_removed;

static const struct tool_option keys_options[] = {
	{"renew", .value = &renew_host, .takes = "HOST", .kind = TOOL_KEYED,
	 .text = "a new key and certificate for this host; those of before stay good"},
	{"revoke", .value = &revoke_host, .takes = "HOST", .kind = TOOL_KEYED,
	 .text = "no certificate that this host has had until now is good any more, also one that\n"
		 "the file does not have any more"},
	{"revoke-removed", .flag = &revoke_removed,
	 .text = "the same of all hosts that the file does not have any more"},
	{"days", .value = &days_text, .takes = "N",
	 .text = "how long new certificates of hosts are good; 730 if not given"},
	{.name = NULL}};

static int print_keys(const char *folder, const struct sio_topology *t, const char *did, unsigned n)
{
	struct json_object *o = tool_json_object();

	tool_json_string(o, "directory", folder);
	tool_json_string(o, "cluster", t->name);
	tool_json_string(o, "did", did);
	tool_json_number(o, "certificates", n);
	return tool_json_print("cluster-keys", o);
}

/* Return: 0 with days; -1: a wrong number. */
static int read_days(unsigned *ret)
{
	char *end;
	long n;

	*ret = TOOL_KEYS_DAYS;
	if (!days_text)
		return 0;
	n = strtol(days_text, &end, 10);
	if (end == days_text || *end || n < 1 || n > TOOL_KEYS_CA_DAYS)
		return -1;
	*ret = (unsigned)n;
	return 0;
}

static int renew(const char *folder, const struct sio_topology *t, unsigned days)
{
	const struct sio_topo_host *host;
	struct sio_err err;

	if (tool_find_host(t, renew_host, &host, &err) < 0 ||
	    tool_keys_renew(folder, t, host, days, &err) < 0)
		return tool_fail(&err);
	tool_note("%s/%s.key and .pem are new, good for %u days; give them to host '%s'", folder,
		  host->name, days, host->name);
	return tool_where.json ? print_keys(folder, t, "renewed", 1) : 0;
}

/* By a name, or a node id, of the file; one that was in it before, by its name alone. */
static int end_keys(const char *folder, const struct sio_topology *t)
{
	const char *name = revoke_host;
	const struct sio_topo_host *host;
	struct sio_err err;
	unsigned n;

	if (!revoke_removed && tool_find_host(t, name, &host, &err) == 0)
		name = host->name;
	if (revoke_removed ? tool_keys_revoke_removed(folder, t, &n, &err) < 0
			   : tool_keys_revoke(folder, t->name, name, &n, &err) < 0)
		return tool_fail(&err);
	if (revoke_removed && n == 0)
		tool_note("no host that %s does not have has a certificate that is not revoked "
			  "already",
			  t->name);
	else
		tool_note("revoked %u certificate%s of %s%s%s; give %s/crl.pem to each host", n,
			  n == 1 ? "" : "s",
			  revoke_removed ? "hosts that the file does not have" : "host '",
			  revoke_removed ? "" : name, revoke_removed ? "" : "'", folder);
	return tool_where.json ? print_keys(folder, t, "revoked", n) : 0;
}

static int make(const char *folder, const struct sio_topology *t, unsigned days)
{
	struct sio_err err;

	if (tool_keys_make(folder, t, days, &err) < 0)
		return tool_fail(&err);
	tool_note("%s: the authority of cluster '%s' (ca.key stays with you), and a key and a "
		  "certificate for each of %u hosts, good for %u days; each host gets ca.pem, "
		  "crl.pem and its own .key and .pem",
		  folder, t->name, t->n_hosts, days);
	return tool_where.json ? print_keys(folder, t, "made", t->n_hosts) : 0;
}

static int keys(const struct tool_command *self, int argc, char **argv)
{
	struct tool_topofile f;
	struct sio_err err;
	unsigned days;
	int first, status = 0;

	first = tool_options(self, argc, argv, &status);
	if (first < 0)
		return status;
	if (!!renew_host + !!revoke_host + revoke_removed > 1)
		return tool_usage(self->name,
				  "--renew, --revoke or --revoke-removed, one at a time");
	if (read_days(&days) < 0)
		return tool_usage(self->name, "--days %s: 1 to %d is right", days_text,
				  TOOL_KEYS_CA_DAYS);
	if (tool_topofile_load(argv[first], &f, &err) < 0)
		return tool_fail(&err);
	sio_topology_include_machines(f.topology, false);
	if (renew_host)
		status = renew(argv[first + 1], f.topology, days);
	else if (revoke_host || revoke_removed)
		status = end_keys(argv[first + 1], f.topology);
	else
		status = make(argv[first + 1], f.topology, days);
	tool_topofile_done(&f);
	return status;
}

const struct tool_command tool_cluster_keys_command = {
	.name = "cluster keys",
	.summary = "Make, renew and revoke the keys by which hosts know each other",
	.help = "Makes FOLDER with the authority of the cluster that the file describes, and a key and a\n"
		"certificate for each host. Nothing that is there is overwritten, but by --renew.\n",
	.page = "smartio-cluster",
	.schemas = "cluster-keys",
	.options = keys_options,
	.words = {{"TOPOLOGY", TOOL_TOPOLOGIES}, {"FOLDER", TOOL_FOLDERS}},
	.run = keys};
