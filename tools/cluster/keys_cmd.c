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

static const struct tool_option keys_options[] = {
	{"renew", .value = &renew_host, .takes = "HOST", .kind = TOOL_KEYED,
	 .text = "a new key and certificate for this host; those of before stay good"},
	{"revoke", .value = &revoke_host, .takes = "HOST", .kind = TOOL_KEYED,
	 .text = "no certificate that this host has had until now is good any more"},
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

static int change(const char *folder, const struct sio_topology *t, unsigned days)
{
	const char *name = renew_host ? renew_host : revoke_host;
	const struct sio_topo_host *host;
	struct sio_err err;
	unsigned n = 1;

	if (tool_find_host(t, name, &host, &err) < 0)
		return tool_fail(&err);
	if (renew_host ? tool_keys_renew(folder, t, host, days, &err) < 0
		       : tool_keys_revoke(folder, t, host, &n, &err) < 0)
		return tool_fail(&err);
	if (renew_host)
		tool_note("%s/%s.key and .pem are new, good for %u days; give them to host '%s'",
			  folder, host->name, days, host->name);
	else
		tool_note("revoked %u certificate%s of host '%s'; give %s/crl.pem to each host", n,
			  n == 1 ? "" : "s", host->name, folder);
	return tool_where.json ? print_keys(folder, t, renew_host ? "renewed" : "revoked", n) : 0;
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
	if (renew_host && revoke_host)
		return tool_usage(self->name, "--renew or --revoke, one at a time");
	if (read_days(&days) < 0)
		return tool_usage(self->name, "--days %s: 1 to %d is right", days_text,
				  TOOL_KEYS_CA_DAYS);
	if (tool_topofile_load(argv[first], &f, &err) < 0)
		return tool_fail(&err);
	sio_topology_include_machines(f.topology, false);
	status = renew_host || revoke_host ? change(argv[first + 1], f.topology, days)
					   : make(argv[first + 1], f.topology, days);
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
